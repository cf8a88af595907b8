"""The index: what was read from each log last time, in one SQLite file beside the logs.

It only saves work. Deleted, damaged or unwritable, it is made again or done without; but as long as it is there,
it also knows how far each log had come, so that events missing from a log's end are noticed.
"""

import contextlib
import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from loopkit.log import StoreError, decode, encode, read_events

NAME = "index.sqlite"
TABLE = """CREATE TABLE IF NOT EXISTS runs (
    run TEXT PRIMARY KEY, version TEXT, size INTEGER, mtime INTEGER,
    events INTEGER, first TEXT, last TEXT, line TEXT, sum TEXT)"""
COLUMNS = ("run", "version", "size", "mtime", "events", "first", "last", "line", "sum")
CHUNK = 500
# Changes when the rows do, so that an index written by another version is not believed.
VERSION = "4"
# What a damaged file leads to; its bytes may be part of a message, and no UTF-8.
ERRORS = (sqlite3.Error, UnicodeError)


class Index:
    """Opened with `with`; `row` gives the row of one log."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._database: sqlite3.Connection | None = None
        self._made: list[tuple[Any, ...]] = []
        self._fetched: dict[str, tuple[Any, ...] | None] = {}

    def __enter__(self) -> "Index":
        if self.path.parent.is_dir():
            with contextlib.suppress(*ERRORS, OSError):
                self._database = self._opened()
        return self

    def _opened(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=5)
        try:
            database.execute(TABLE)
            database.execute(f"SELECT {', '.join(COLUMNS)} FROM runs LIMIT 1")
        except ERRORS as error:
            database.close()
            # Other operational errors: it is locked, or in a folder that may not be written.
            if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise
            # Damaged, or another version's: it holds nothing that the logs do not.
            self.path.unlink()
            database = sqlite3.connect(self.path, timeout=5)
            database.execute(TABLE)
        return database

    def __exit__(self, *_: object) -> None:
        if self._database is not None:
            with contextlib.suppress(*ERRORS):  # all at once: nobody waits for long
                values = ", ".join("?" * len(COLUMNS))
                self._database.executemany(f"INSERT OR REPLACE INTO runs VALUES ({values})", self._made)
                self._database.commit()
            self._database.close()

    def row(
        self, path: Path, make: Callable[[str, list[dict[str, Any]]], dict[str, Any]]
    ) -> dict[str, Any] | None:
        """`make(run, events)` for the log at `path`: from the index, if the log is as it was; None if it has no event.

        Raises StoreError when the log cannot be read, was changed, is shorter than it has been, or holds what `make`
        cannot count.
        """
        try:
            run, stat = path.stem, path.stat()
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}") from error
        known = self._known(run)
        if known is not None and (known["size"], known["mtime"]) == (stat.st_size, stat.st_mtime_ns):
            return decode(known["line"])
        events = read_events(path)
        self.check(path, events)
        if not events:
            return None
        try:
            row = make(run, events)
        except (LookupError, TypeError, ValueError) as error:  # whole, but not as a loop or a flow writes it
            raise StoreError(f"{path} holds an event that cannot be counted: {error!r:.200}") from error
        values = (
            run, VERSION, stat.st_size, stat.st_mtime_ns, len(events), events[0]["hash"], events[-1]["hash"],
            encode(row).decode(),
        )  # fmt: skip
        self._made.append((*values, _sum(values)))
        return row

    def check(self, path: Path, events: list[dict[str, Any]]) -> None:
        """Raise StoreError when the log at `path`, which holds `events`, has lost some that the index had seen."""
        if (known := self._known(path.stem)) is None:
            return
        if events and events[0]["hash"] != known["first"]:
            return  # another run of the same name, made after the old one was deleted
        count = known["events"]
        if len(events) < count or events[count - 1]["hash"] != known["last"]:
            raise StoreError(
                f"{path} does not hold the {count} events that {self.path.name} saw in it last: some are missing "
                f"or were changed. Restore it from a copy, or delete {self.path} to take it as it is."
            )

    def fetch(self, runs: Sequence[str]) -> None:
        """Look up many runs at once, as thousands of single questions take their time."""
        for start in range(0, len(runs), CHUNK):
            some = runs[start : start + CHUNK]
            places = ", ".join("?" * len(some))
            found = self._asked(f"run IN ({places}) AND version = ?", (*some, VERSION))
            self._fetched |= dict.fromkeys(some) | {values[0]: values for values in found}

    def _known(self, run: str) -> dict[str, Any] | None:
        if run in self._fetched:
            values = self._fetched[run]
        else:
            values = next(iter(self._asked("run = ? AND version = ?", (run, VERSION))), None)
        if values is None or values[-1] != _sum(values[:-1]):  # SQLite does not see a changed byte
            return None
        return dict(zip(COLUMNS, values, strict=True))

    def _asked(self, condition: str, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
        if self._database is None:
            return []
        try:
            return self._database.execute(
                f"SELECT {', '.join(COLUMNS)} FROM runs WHERE {condition}", values
            ).fetchall()
        except ERRORS:
            return []


def _sum(values: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr(values).encode("utf-8", "replace")).hexdigest()[:32]
