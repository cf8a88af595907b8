"""What the sandbox takes and gives: limits, protections, and the typed result of an execution."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

Ended = Literal["ok", "error", "timeout", "memory", "output", "disk", "processes", "killed"]


class SandboxError(RuntimeError):
    """The sandbox itself does not work as asked: never because of what a program did."""


_MOST = 1 << 53


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one execution, or one cell of a session, may use."""

    seconds: float = 10.0
    """By the clock."""
    cpu: float | None = None
    """CPU seconds of all its processes together; None: twice `seconds`."""
    memory: int = 512 << 20
    """Bytes that it may add to what is loaded already, all its processes together. /tmp and /dev/shm, which lie in
    memory, hold up to a quarter of it each on top."""
    processes: int = 32
    """Processes and threads."""
    file_size: int = 64 << 20
    """Bytes of one file."""
    open_files: int = 128
    disk: int = 256 << 20
    """Bytes that its folder may grow by. By more than 20,000 files is too much, and so are folders 100 deep."""
    output: int = 16 << 20
    """Bytes on stdout and stderr together."""
    shown: int = 8000
    """Characters of each stream that come back: head and tail. The whole is in a file."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is None and name == "cpu":
                continue
            wanted = int | float if name in ("seconds", "cpu") else int
            if isinstance(value, bool) or not isinstance(value, wanted):
                raise TypeError(
                    f"{name} must be {'a' if wanted is not int else 'a whole'} number, got {value!r}"
                )
            least = 1 << 20 if name == "memory" else 0
            if not least < value < _MOST:
                raise ValueError(f"{name} must be more than {least} and less than {_MOST:g}, got {value!r}")

    def spelled(self) -> dict[str, Any]:
        """As the warden wants them."""
        values = asdict(self)
        values["cpu"] = self.cpu or self.seconds * 2
        values["scratch"] = max(1 << 20, min(self.memory // 4, self.disk))
        return values


@dataclass(frozen=True, kw_only=True)
class Protection:
    """What keeps a program in on this machine; "none" where nothing does."""

    network: str
    files: str
    processes: str
    system_calls: str
    memory: str
    user: str

    def in_force(self) -> list[str]:
        """The names of those that are there, as `require` takes them."""
        return [name.replace("_", " ") for name, value in asdict(self).items() if value != "none"]

    def __str__(self) -> str:
        return "\n".join(f"{name.replace('_', ' '):<13}{value}" for name, value in asdict(self).items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{name.replace('_', ' ')}</th><td>{value}</td></tr>"
            for name, value in asdict(self).items()
        )
        return f"<table>{rows}</table>"


@dataclass(frozen=True, kw_only=True)
class ErrorInfo:
    """What a program failed with."""

    type: str
    message: str
    line: int | None
    """Of the program, where it is known."""
    traceback: str
    """The program's own frames, and the last one of a library."""


@dataclass(frozen=True, kw_only=True)
class MadeFile:
    """A file that was made or changed."""

    name: str
    """Relative to the folder, with `/`."""
    size: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Execution:
    """What a program did. Whatever that was, it is a result and no exception."""

    ended: Ended
    """`ok`; `error` (an exception, or an exit code other than 0); `killed` (by a signal); or the limit it broke:
    `timeout` (clock or CPU), `memory`, `output`, `disk`, `processes`."""
    message: str = ""
    """Why it did not end well, in one sentence. Empty when it did."""
    stdout: str = ""
    stderr: str = ""
    value: str | None = None
    """The last expression's value, as `repr` shows it; None where there is none."""
    result: dict[str, Any] | None = None
    """What a function of `Sandbox.call` returned."""
    error: ErrorInfo | None = None
    files: tuple[MadeFile, ...] = ()
    """What it made or changed in its folder, links and special files left out."""
    folder: Path
    """Where it worked. Kept until the sandbox closes, if it made files or its output was cut."""
    stdout_file: Path | None = None
    """The whole of stdout, when `stdout` was cut: raw, as the program wrote it."""
    stderr_file: Path | None = None
    exit_code: int | None = None
    """None when it was ended, and in a session that goes on."""
    seconds: float = 0.0
    cpu: float = 0.0
    memory: int = 0
    """Most bytes in use that were seen; a look every 20 ms misses short peaks."""

    def __repr__(self) -> str:
        told = ((field.name, getattr(self, field.name)) for field in fields(self) if field.name != "folder")
        return f"Execution({', '.join(f'{name}={value!r}' for name, value in told if value not in (None, '', ()))})"

    def _repr_html_(self) -> str:
        from html import escape

        color = "inherit" if self.ended == "ok" else "#b3261e"
        parts = [
            f"<div><b style='color:{color}'>{self.ended}</b> {escape(self.message)} ({self.seconds:.2f} s)</div>"
        ]
        for text in (self.stdout, self.stderr, self.value, self.error and self.error.traceback):
            if text:
                parts.append(f"<pre style='margin:2px 0 2px 1em'>{escape(text)}</pre>")
        return "".join(parts)


def readable_text(data: bytes) -> str:
    """Text that any terminal, JSON and model can take: no NUL, no escape, no broken UTF-8."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(c if c in _HARMLESS or c.isprintable() else _shown(c) for c in text)


# Not printable by themselves, but parts of scripts and emoji; other spaces too.
_HARMLESS = "\n\t\u00a0\u00ad\u200c\u200d"


def _shown(character: str) -> str:
    code = ord(character)
    if code > 0xFF:
        return " " if character.isspace() else "\ufffd"
    return f"\\x{code:02x}"
