"""What a judge of commands finds and says."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["allow", "ask", "refuse"]
GRAVITY: dict[str, int] = {"allow": 0, "ask": 1, "refuse": 2}

Kind = Literal[
    "read", "write", "delete", "execute", "network", "install", "publish", "privilege", "persist", "system",
    "signal", "secret", "exhaust", "discard", "unknown", "obscure",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One thing that a command does, or may do."""

    kind: Kind
    target: str
    """A path, a host, a program; parts that are not known beforehand are shown as `…`."""
    source: str
    """The part of the command that does it."""
    verdict: Verdict
    why: str
    """What it would do, as the end of a sentence: "deletes outside the folder"."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The judge's word on one command."""

    verdict: Verdict
    reasons: tuple[str, ...]
    """Why it asks or refuses; empty where it allows."""
    effects: tuple[Effect, ...]
    """All that was found, allowed effects too, in the order of the command."""

    @classmethod
    def of(cls, effects: Iterable[Effect]) -> "Decision":
        """The gravest verdict among the effects, and the reasons that have it."""
        effects = tuple(dict.fromkeys(effects))
        verdict = max((effect.verdict for effect in effects), key=GRAVITY.__getitem__, default="allow")
        grave = [effect for effect in effects if effect.verdict == verdict != "allow"]
        reasons = dict.fromkeys(f"`{effect.source}`: {effect.why}" for effect in grave)
        return cls(verdict=verdict, reasons=tuple(reasons), effects=effects)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Where a command may act besides its folder."""

    scratch: tuple[str, ...] = ("/tmp", "/var/tmp")
    """Absolute folders in which it may write and delete: private in the sandbox."""
    readable: tuple[str, ...] = (
        "/usr", "/bin", "/lib", "/lib64", "/opt", "/etc/os-release", "/etc/debian_version", "/etc/lsb-release",
        "/etc/timezone", "/etc/localtime", "/etc/mime.types", "/etc/services", "/etc/shells", "/etc/alternatives",
        "/etc/ssl/certs", "/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/loadavg", "/proc/uptime",
        "/proc/self/status", "/sys/fs/cgroup", "/sys/devices/system/cpu",
    )  # fmt: skip
    """Absolute paths that hold no one's data; what is below them may be read and run."""

    def __post_init__(self) -> None:
        for path in (*self.scratch, *self.readable):
            if not path.startswith("/") or path == "/":
                raise ValueError(f"Policy: a place must be an absolute path below /, got {path!r}")
