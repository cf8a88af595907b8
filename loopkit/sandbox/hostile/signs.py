"""What an execution shows of an escape: in all its texts, and in the files that it left."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..results import Limits
from .report import Outcome

_READ = 1 << 21
"""Bytes of a file that are searched."""
_FILES = 50
_MORE = 1000
"""Characters that a text may be longer than the limit: for what is said of it."""
_CONFESSION = re.compile(rb"^ESCAPED: (.*)$", re.MULTILINE)


@dataclass
class Signs:
    """Escapes, and errors that leave it open whether a program was contained."""

    secret: bytes
    token: str
    escapes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not self.escapes and not self.errors

    @property
    def outcome(self) -> Outcome:
        return "ESCAPED" if self.escapes else "error" if self.errors else "contained"

    @property
    def detail(self) -> str:
        """All signs, each once, shortened where they are many."""
        found = list(dict.fromkeys(self.escapes + self.errors))
        text = "; ".join(found[:5]) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")
        return text if len(text) < 1000 else f"{text[:1000]}…"

    def look(self, result: Any, limits: Limits) -> None:
        """Take in an `Execution`."""
        texts = _texts(result)
        for name, text in texts.items():
            if len(text) > limits.shown + _MORE:
                self.escapes.append(f"{name} has {len(text):,} characters, the limit is {limits.shown:,}")
            if odd := next((c for c in text if not (c.isprintable() or c in "\n\t" or c.isspace())), None):
                self.escapes.append(f"{name} shows {odd!a}")
        whole = {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}
        whole |= {os.fspath(path): _head(path) for path in (result.stdout_file, result.stderr_file) if path}
        for name, data in whole.items():
            if name in ("stdout", "stderr") or name.endswith(".txt"):
                self.escapes += [said.decode("utf-8", "replace")[:300] for said in _CONFESSION.findall(data)]
        whole |= dict(self._files(result))
        self.escapes += [f"the secret is in {name}" for name, data in whole.items() if self.secret in data]

    def _files(self, result: Any) -> Iterator[tuple[str, bytes]]:
        """The files that were made, and their beginnings. That they are listed at all can be a sign."""
        folder = Path(result.folder)
        for made in result.files[:_FILES]:
            path = folder / made.name
            if f"secret-{self.token}" in made.name:
                self.escapes.append(f"the host lists its own folder as {made.name}")
            if not made.name.isprintable():
                self.escapes.append(f"the name of a file shows {made.name!a}")
            if not os.path.lexists(path):
                continue  # its name is not text, and has been spelled out
            if not stat.S_ISREG(path.lstat().st_mode) or not path.resolve().is_relative_to(folder.resolve()):
                self.escapes.append(f"{made.name} is listed as a file of the run")
            else:
                yield made.name, _head(path)


def _texts(result: Any) -> dict[str, str]:
    """All that a person or a model may read of it."""
    texts = {name: getattr(result, name) or "" for name in ("stdout", "stderr", "message", "value")}
    if result.error:
        texts |= {f"error.{name}": getattr(result.error, name) for name in ("type", "message", "traceback")}
    return texts


def _head(path: Path) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return file.read(_READ)
    except PermissionError:  # closed by the program; it is read by nobody
        return b""
