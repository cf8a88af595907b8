"""The index: what was read from each log last time, in one SQLite file beside the logs.

It only saves work. Deleted, damaged or unwritable, it is made again or done without; but as long as it is there,
it also knows how far each log had come, so that events missing from a log's end are noticed.
"""

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loopkit.log import StoreError, encode, read_events

NAME = "index.sqlite"
TABLE = """CREATE TABLE IF NOT EXISTS runs (
    run TEXT PRIMARY KEY, version TEXT, size INTEGER, mtime INTEGER,
    events INTEGER, first TEXT, last TEXT, line TEXT)"""
# Changes when the rows do, so that an index written by another version is not believed.
VERSION = "1"


class Index:
    """Opened with `with`; `row` gives the row of one log."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._database: sqlite3.Connection | None = None

    def __enter__(self) -> "Index":
        if self.path.parent.is_dir():
            with contextlib.suppress(sqlite3.Error):
                self._database = self._opened()
        return self

    def _opened(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=5)
        try:
            database.execute(TABLE)
            database.execute("SELECT run, version, size, mtime, events, first, last, line FROM runs LIMIT 1")
        except sqlite3.OperationalError:  # locked, or in a folder that may not be written
            database.close()
            raise
        except sqlite3.DatabaseError:  # damaged: it holds nothing that the logs do not
            database.close()
            self.path.unlink()
            database = sqlite3.connect(self.path, timeout=5)
            database.execute(TABLE)
        return database

    def __exit__(self, *_: object) -> None:
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.commit()
            self._database.close()

    def row(
        self, path: Path, make: Callable[[str, list[dict[str, Any]]], dict[str, Any]]
    ) -> dict[str, Any] | None:
        """`make(run, events)` for the log at `path`: from the index, if the log is as it was; None if it has no event.

        Raises StoreError when the log cannot be read, was changed, or is shorter than it has been.
        """
        run, stat = path.stem, path.stat()
        known = self._known(run)
        if known is not None and (known["size"], known["mtime"]) == (stat.st_size, stat.st_mtime_ns):
            return json.loads(known["line"])
        events = read_events(path)
        if known is not None:
            self._check(path, known, events)
        if not events:
            return None
        row = make(run, events)
        self._remember(
            run, VERSION, stat.st_size, stat.st_mtime_ns, len(events), events[0]["hash"], events[-1]["hash"],
            encode(row).decode(),
        )  # fmt: skip
        return row

    def _check(self, path: Path, known: dict[str, Any], events: list[dict[str, Any]]) -> None:
        if not events or events[0]["hash"] != known["first"]:
            return  # another run of the same name, made after the old one was deleted
        count = known["events"]
        if len(events) < count or events[count - 1]["hash"] != known["last"]:
            raise StoreError(
                f"{path} has {len(events)} events, but had {count} when {self.path.name} saw it last: some are missing "
                f"or were changed. Restore it from a copy, or delete {self.path} to take it as it is."
            )

    def _known(self, run: str) -> dict[str, Any] | None:
        if self._database is None:
            return None
        try:
            found = self._database.execute("SELECT * FROM runs WHERE run = ? AND version = ?", (run, VERSION))
            values = found.fetchone()
        except sqlite3.Error:
            return None
        return values and dict(zip([column[0] for column in found.description], values, strict=True))

    def _remember(self, *values: Any) -> None:
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
