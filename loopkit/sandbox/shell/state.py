"""What the shells of one command share, and what a call of a program is."""

from collections.abc import Callable
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
    linked: bool = False
    """Whether the command made links, be it within the folder."""
    fixed: set[str] = field(default_factory=set)
    """Variables that keep their value."""
    called: set[str] = field(default_factory=set)
    """Functions that were called."""
    steps: int = 0


@dataclass
class Call:
    """One program about to be run: its words, and its input as far as known."""

    name: str
    args: list[str]
    stdin: str


class Above:
    """What a shell calls in the modules that are built on it. They set it when loaded, so that imports go one way."""

    run: Callable[..., str]
    """`statements.run`, `run_all` and `continued`: walk the statements of a tree."""
    run_all: Callable[..., str]
    continued: Callable[..., str]
    invoke: Callable[..., str]
    """`programs.invoke`: what a program does."""
    assigned: Callable[..., None]
    """`environment.assigned`: what setting a variable does to later programs."""
    snippet: Callable[..., str]
    """`languages.snippet`, and `python.snippet`: programs in other languages."""
    python: Callable[..., str]


above = Above()
