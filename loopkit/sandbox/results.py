"""What the sandbox takes and gives: limits, protections, and the typed result of an execution."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Ended = Literal["ok", "error", "timeout", "memory", "output", "disk", "processes", "killed"]


class SandboxError(RuntimeError):
    """The sandbox itself does not work as asked: never because of what a program did."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one execution, or one cell of a session, may use."""

    seconds: float = 10.0
    """By the clock."""
    cpu: float | None = None
    """CPU seconds of all its processes together; None: twice `seconds`."""
    memory: int = 512 << 20
    """Bytes that it may add to what is loaded already, all its processes together."""
    processes: int = 32
    """Processes and threads."""
    file_size: int = 64 << 20
    """Bytes of one file."""
    open_files: int = 128
    disk: int = 256 << 20
    """Bytes of all files in its folder together. More than 20,000 files are too many, too."""
    output: int = 16 << 20
    """Bytes on stdout and stderr together."""
    shown: int = 8000
    """Characters of each stream that come back: head and tail. The whole is in a file."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is None and name == "cpu":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"{name} must be a number, got {value!r}")
            if not 0 < value < float("inf"):
                raise ValueError(f"{name} must be more than 0 and finite, got {value!r}")

    def spelled(self) -> dict[str, Any]:
        """As the warden wants them."""
        values = asdict(self)
        values["cpu"] = self.cpu or self.seconds * 2
        # /tmp within the sandbox lies in memory, so it is part of that.
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


@dataclass(frozen=True, kw_only=True)
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
    """The whole of stdout, when `stdout` was cut."""
    stderr_file: Path | None = None
    exit_code: int | None = None
    """None when it did not exit by itself."""
    seconds: float = 0.0
    cpu: float = 0.0
    memory: int = 0
    """Most bytes in use that were seen; a look every 20 ms misses short peaks."""

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
    text = data.decode("utf-8", "replace")
    return "".join(c if c in "\n\t" or c.isprintable() else _shown(c) for c in text)


def _shown(character: str) -> str:
    if character == "\r":
        return "\n"
    code = ord(character)
    return (
        character if code > 0xFF and character.isspace() else f"\\x{code:02x}" if code < 0x100 else "\ufffd"
    )
