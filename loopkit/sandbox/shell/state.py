"""What the shells of one command share, and what a call of a program is."""

from dataclasses import dataclass, field

from .decisions import Effect, Policy

Vars = dict[str, "str | list[str]"]


@dataclass
class Shared:
    """What all the shells of one command have in common."""

    folder: tuple[str, ...]
    policy: Policy
    effects: list[Effect] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Contents of files that the command itself writes, by place."""
    links: dict[str, str] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    """Functions that were called."""
    decoded: list[str] = field(default_factory=list)
    """Texts that came out of an encoding."""
    steps: int = 0


@dataclass
class Call:
    """One program about to be run: its words, its input as far as known, and the source it comes from."""

    name: str
    args: list[str]
    stdin: str
    source: str
    env: Vars = field(default_factory=dict)
