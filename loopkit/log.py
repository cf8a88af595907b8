"""The event log: append-only JSON lines, each carrying a hash of itself and of the line before.

A changed, missing or moved line is found by reading (`read_events`) and named. The line that was being written
when a process died is torn; reading leaves it out, and opening a log to go on cuts it off.
"""

import contextlib
import gc
import getpass
import hashlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json, to_jsonable_python

# The last field of a line: SHA-256, cut to 128 bits, over the hash of the line before and the line without its hash.
HASH_FIELD, HASH_DIGITS = b',"hash":"', 32
TAIL = len(HASH_FIELD) + HASH_DIGITS + len(b'"}')


class StoreError(RuntimeError):
    """A log that cannot be read, written or taken; the message names the file and the remedy."""


class RunTaken(StoreError):
    """The run exists already, or another process is writing it."""


def encode(value: Any) -> bytes:
    """`value` as JSON on one line: dataclasses, pydantic models, sets, bytes and paths too; else its repr.

    Never raises. NaN and infinities become the strings "NaN" and "Infinity", since JSON has no such numbers;
    lone surrogates, which models do emit, are escaped; what cannot be taken apart (a cycle, say) is its repr.
    """
    try:
        return _to_json(value)
    except Exception:  # surrogates, bytes that are no UTF-8, cycles, deep nesting, a __repr__ that raises
        for mode in ("utf8", "base64"):
            with contextlib.suppress(Exception):
                plain = to_jsonable_python(value, bytes_mode=mode, serialize_unknown=True, fallback=repr)
                return json.dumps(plain, allow_nan=False).encode()
    try:
        return json.dumps(repr(value)).encode()
    except Exception as error:
        return json.dumps(f"<{type(value).__name__}: {type(error).__name__} in its repr>").encode()


def _to_json(value: Any) -> bytes:
    return to_json(value, inf_nan_mode="strings", serialize_unknown=True, fallback=repr)


def decode(line: bytes) -> Any:
    """What `encode` wrote; whole numbers of any length, which Python's own reading stops at 4300 digits."""
    try:
        return from_json(line)  # four times as quick, but it knows no lone surrogates
    except ValueError:
        pass
    try:
        return json.loads(line)
    except ValueError:
        return json.loads(line, parse_int=lambda digits: int(Decimal(digits)))


def read_events(path: Path) -> list[dict[str, Any]]:
    """All whole events of a log, in order. A torn last line is left out.

    Raises StoreError naming the first line that is not an event, was changed, or does not follow the one before,
    and when the file cannot be read.
    """
    return _parse(path, _bytes(path))[0]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error


def _parse(path: Path, data: bytes, first: int = 1, last: str = "") -> tuple[list[dict[str, Any]], int, str]:
    """The events in `data`, how many of its bytes they fill, and the last one's hash.

    `data` begins at line `first`; `last` is the hash of the line before it.
    """
    events: list[dict[str, Any]] = []
    *lines, rest = data.split(b"\n")  # whatever follows the last newline was never finished
    with _no_collecting():
        for number, line in enumerate(lines, first):
            event = _event(path, number, line, last)
            events.append(event)
            last = event["hash"]
    end, number = rest.rfind(HASH_FIELD) + TAIL, first + len(lines)
    try:
        whole = _event(path, number, rest[:end], last)
    except StoreError:  # torn, as a line may be
        return events, len(data) - len(rest), last
    if rest[end:]:  # nobody writes on after a whole event: its newline was changed
        raise StoreError(f"{path}, line {number} was changed: it goes on after its end. {REMEDY}")
    return [*events, whole], len(data), whole["hash"]


@contextlib.contextmanager
def _no_collecting() -> Iterator[None]:
    """Python's garbage collector would look at all events again and again while they are read: half of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


REMEDY = "Restore the file from a copy, or move it away to go on."


def _event(path: Path, number: int, line: bytes, last: str) -> dict[str, Any]:
    place = f"{path}, line {number}"
    true = line[-TAIL:] == _tail(_digest(last, line[:-TAIL] + b"}"))
    try:
        event = decode(line) if true else json.loads(line)
        seq = (event["event"], event["hash"], event["seq"])[-1]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoreError(f"{place} is not an event: {error!r:.200}. {REMEDY}") from error
    if seq != number - 1:
        found = encode(seq).decode()
        raise StoreError(
            f"{place}: expected event {number - 1}, found {found:.20}: a line is missing or was moved. {REMEDY}"
        )
    if true:
        return event
    raise StoreError(f"{place} (event {seq}) was changed, or does not follow line {number - 1}. {REMEDY}")


def _digest(last: str, body: bytes) -> str:
    return hashlib.sha256(last.encode("utf-8", "replace") + body).hexdigest()[:HASH_DIGITS]


def _tail(digest: str) -> bytes:
    return HASH_FIELD + digest.encode() + b'"}'


def _sync_folder(folder: Path) -> None:
    """Put a new file's name on the disk, where a folder can be opened: its content alone is not found again."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _now() -> str:
    """The time in UTC, ISO 8601, to the millisecond."""
    seconds, rest = divmod(time.time_ns(), 10**9)
    return f"{_to_the_second(seconds)}.{rest // 10**6:03}+00:00"


@lru_cache(maxsize=1)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _who() -> str:
    """This process, for whoever finds a run taken: user, machine, process id, program."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "somebody"
    return f"{user}@{socket.gethostname()}, process {os.getpid()} ({Path(sys.argv[0]).name or 'python'})"


class RunLog:
    """An open log. One process at a time: opening a log that another holds raises RunTaken, naming the holder.

    Events go to the operating system as they are appended, so they outlive the process; `sync` returns when they
    are on the disk, so they outlive the machine.
    """

    def __init__(self, path: Path) -> None:
        import portalocker

        self.path = path
        self._broken, self._writing, self._dirty = False, threading.Lock(), False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab+", buffering=0)
            if path.stat().st_size == 0:
                _sync_folder(path.parent)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from error
        try:
            portalocker.lock(self._file, portalocker.LOCK_EX | portalocker.LOCK_NB)
            data = _bytes(path)
            self._past, self._size, self._last = _parse(path, data)
            if self._size == len(data) and data and not data.endswith(b"\n"):
                self._file.write(b"\n")  # all that the last writer did not get to
                self._size += 1
            else:
                self._file.truncate(self._size)
        except portalocker.LockException as error:
            self._file.close()
            raise RunTaken(f"{path} is being written by {self._holder()}; wait for it, or stop it") from error
        except OSError as error:
            self._file.close()
            raise self._unwritten(error) from error
        except BaseException:
            self._file.close()
            raise
        self._next = len(self._past)

    @property
    def past(self) -> list[dict[str, Any]]:
        """All events so far, also those of this process: a loop that runs again over an open log goes on."""
        if (count := len(self._past)) < self._next:
            data, last = _bytes(self.path)[self._size :], self._past[-1]["hash"] if self._past else ""
            more, size, _ = _parse(self.path, data, count + 1, last)
            self._past, self._size = [*self._past, *more], self._size + size
        return self._past

    def _holder(self) -> str:
        with contextlib.suppress(StoreError):
            for event in reversed(read_events(self.path)):
                if "by" in event:
                    return event["by"]
        return "another process"

    def open(self, event: str, **data: Any) -> None:
        """Append the event with which this process takes the run, `by` whom it is held."""
        self.append(event, by=_who(), **data)
        self.sync()

    def append(self, event: str, **data: Any) -> None:
        """Write one event. It reaches the disk at the next `sync`. Raises StoreError when the disk is full."""
        if "seq" in data or "hash" in data:
            raise ValueError(f"an event has a seq and a hash of its own, got {sorted(data)}")
        with self._writing:
            fields = {"seq": self._next, "time": _now(), "event": event} | data
            try:
                body = _to_json(fields)
            except Exception:
                # Field by field, so that one value JSON has no words for does not take the others along.
                pairs = (encode(name) + b":" + encode(value) for name, value in fields.items())
                body = b"{" + b",".join(pairs) + b"}"
            digest = _digest(self._last, body)
            line = body[:-1] + _tail(digest) + b"\n"
            self._refuse_if_broken()
            try:
                while line:  # a full disk may take a part of it
                    line = line[self._file.write(line) :]
            except OSError as error:
                raise self._unwritten(error) from error
            except BaseException:  # Ctrl-C in the middle of a line
                self._broken = True
                raise
            self._next, self._last, self._dirty = self._next + 1, digest, True

    def sync(self) -> None:
        """Return when everything appended so far is on the disk. Raises StoreError when it cannot be (disk full)."""
        with self._writing:
            self._refuse_if_broken()
            try:
                if self._dirty:
                    os.fsync(self._file.fileno())
            except OSError as error:
                raise self._unwritten(error) from error
            self._dirty = False

    def _refuse_if_broken(self) -> None:
        if self._broken:  # half a line may stand in the file: what followed it could not be read
            raise StoreError(f"{self.path} could not be written before; open it again to go on")

    def _unwritten(self, error: OSError) -> StoreError:
        self._broken = True
        return StoreError(f"cannot write {self.path}: {error.strerror}. What was synced before is kept.")

    def close(self) -> None:
        """Sync and let go of the log."""
        try:
            if not self._broken and not self._file.closed:
                self.sync()
        finally:
            with contextlib.suppress(OSError):  # of what could not be written, and was reported
                self._file.close()

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Tail:
    """A log that another process may be writing: `look` reads on where the last look ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[dict[str, Any]] = []
        """All whole events seen so far."""
        self.torn = False
        """Whether half a line stands at the end: it is being written, or its writer died."""
        self._lines: list[dict[str, Any]] = []  # the events whose line has its end
        self._size, self._last, self._seen = 0, "", (-1, -1)

    def look(self) -> bool:
        """Whether the log has changed since the last look. Raises StoreError as `read_events` does, or when it shrank."""
        try:
            stat = self.path.stat()
            if (seen := (stat.st_size, stat.st_mtime_ns)) == self._seen:
                return False
            with self.path.open("rb") as file:
                file.seek(self._size)
                data = file.read()
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error.strerror}") from error
        if stat.st_size < self._size:
            raise StoreError(f"{self.path} is shorter than it was: something was cut off. {REMEDY}")
        end = data.rfind(b"\n") + 1
        lines, _, last = _parse(self.path, data[:end], len(self._lines) + 1, self._last)
        self._lines, self._size, self._last = [*self._lines, *lines], self._size + end, last
        whole, used, _ = _parse(self.path, data[end:], len(self._lines) + 1, last)
        self.events, self.torn, self._seen = [*self._lines, *whole], used < len(data) - end, seen
        return True
