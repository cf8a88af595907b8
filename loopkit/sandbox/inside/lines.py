"""Speaking over a socket, a JSON value a line, without ever waiting for the other side."""

import json
import math
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_PART = 1 << 16
_DEEPEST = 50


class Lines:
    """The warden's end of a channel. `most`: bytes of the longest line that may come in."""

    def __init__(self, end: socket.socket, most: int = 1 << 62) -> None:
        end.setblocking(False)
        self.end, self.most = end, most
        self.open, self.too_long = True, False
        self._read: list[bytes] = []  # pieces of a line that is not whole yet
        self._length = 0
        self._unsent = bytearray()

    @property
    def waits(self) -> bool:
        """Whether there is something left to send."""
        return bool(self._unsent)

    def send(self, value: dict[str, Any]) -> None:
        self._unsent += json.dumps(value).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send what can be sent now."""
        try:
            while self._unsent:
                del self._unsent[: self.end.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError:  # nobody is there any more; what they still said can be read
            self._unsent.clear()

    def finish(self) -> None:
        """Send all of it, however long that takes."""
        self.end.setblocking(True)
        with suppress(OSError):
            self.end.sendall(self._unsent)

    def hear(self) -> Iterator[dict[str, Any]]:
        """The lines that have come in. What is no JSON object, or absurdly deep, is passed over."""
        try:
            data = self.end.recv(_PART)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.open = bool(data)
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._read, lines[0]])
            self._read, self._length = [], 0
        self._read.append(rest)
        self._length += len(rest)
        self.too_long = self._length > self.most
        for line in lines:
            with suppress(ValueError, RecursionError):
                value = json.loads(line)
                if isinstance(value, dict) and _plain(value, _DEEPEST):
                    yield value


def _plain(value: Any, depth: int) -> bool:
    """Whether anybody can write it down as JSON again."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return depth > 0 and all(_plain(part, depth - 1) for part in value)
    return not isinstance(value, float) or math.isfinite(value)
