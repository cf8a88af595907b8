"""Records are the truth: one append-only event log per run, as JSON lines; everything else is derived.

`Store(folder)` holds `<run>.jsonl` files. A log is synced to disk once per iteration. The line that was being
written when a process died is torn; reading ignores it, and opening a log to go on cuts it off.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class StoreError(RuntimeError):
    """A log that cannot be read, written or taken; the message names the file and the remedy."""


class RunTaken(StoreError):
    """The run exists already, or another process is writing it."""


def encode(value: Any) -> bytes:
    """`value` as JSON on one line: dataclasses, pydantic models, sets, bytes and paths too; else its repr.

    Never raises. NaN and infinities become the strings "NaN" and "Infinity", since JSON has no such numbers;
    lone surrogates, which models do emit, are escaped; what cannot be taken apart (a cycle, say) is its repr.
    """
    from pydantic_core import to_json, to_jsonable_python

    try:
        return to_json(value, inf_nan_mode="strings", serialize_unknown=True, fallback=repr)
    except Exception:  # surrogates, bytes that are no UTF-8, cycles, deep nesting, a __repr__ that raises
        with contextlib.suppress(Exception):
            plain = to_jsonable_python(value, bytes_mode="base64", serialize_unknown=True, fallback=repr)
            return json.dumps(plain, allow_nan=False).encode()
    try:
        return json.dumps(repr(value)).encode()
    except Exception as error:
        return json.dumps(f"<{type(value).__name__}: {type(error).__name__} in its repr>").encode()


def read_events(path: Path) -> list[dict[str, Any]]:
    """All whole events of a log, in order. A torn last line is left out.

    Raises StoreError when a line before the last is not an event, or the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    events = []
    *lines, _torn = data.split(b"\n")  # whatever follows the last newline was never finished
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
            seq = (event["event"], event["seq"])[1]
        except (ValueError, TypeError, KeyError) as error:
            raise StoreError(
                f"{path}, line {number} is not an event: {error!r}. Move the file away to go on."
            ) from error
        if seq != number - 1:
            raise StoreError(
                f"{path}, line {number}: expected event {number - 1}, found {seq}: a line is missing"
            )
        events.append(event)
    return events


class RunLog:
    """An open log. One process at a time: opening a log that another holds raises RunTaken."""

    def __init__(self, path: Path) -> None:
        import portalocker

        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab+")
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from error
        try:
            portalocker.lock(self._file, portalocker.LOCK_EX | portalocker.LOCK_NB)
        except portalocker.LockException as error:
            self._file.close()
            raise RunTaken(f"{path} is being written by another process; wait for it, or stop it") from error
        events = read_events(path)
        self._file.seek(0)
        whole = self._file.read().rfind(b"\n") + 1
        self._file.truncate(whole)
        self._next = len(events)
        self._broken = False

    def append(self, event: str, **data: Any) -> None:
        """Write one event. It reaches the disk at the next `sync`. Raises StoreError when the disk is full."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        fields = {"seq": self._next, "time": now, "event": event} | data
        # Field by field, so that one value JSON has no words for does not take the others along.
        line = b",".join(encode(name) + b":" + encode(value) for name, value in fields.items())
        with self._writing():
            self._file.write(b"{" + line + b"}\n")
        self._next += 1

    def sync(self) -> None:
        """Return when everything appended so far is on the disk. Raises StoreError when it cannot be (disk full)."""
        with self._writing():
            self._file.flush()
            os.fsync(self._file.fileno())

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        if self._broken:  # half a line may stand in the file: what followed it could not be read
            raise StoreError(f"{self.path} could not be written before; open it again to go on")
        try:
            yield
        except OSError as error:
            self._broken = True
            raise StoreError(
                f"cannot write {self.path}: {error.strerror}. What was synced before is kept."
            ) from error

    def close(self) -> None:
        """Sync and let go of the log."""
        try:
            if not self._broken:
                self.sync()
        finally:
            with contextlib.suppress(OSError):  # of what could not be written, and was reported
                self._file.close()

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Run:
    """A recorded run: its events, and the few questions that are always asked of them."""

    id: str
    events: list[dict[str, Any]] = field(repr=False)

    def all(self, kind: str) -> list[dict[str, Any]]:
        """The events of one kind, in order."""
        return [event for event in self.events if event["event"] == kind]

    def first(self, kind: str) -> dict[str, Any] | None:
        """The first event of one kind, or None."""
        return next(iter(self.all(kind)), None)

    @property
    def params(self) -> dict[str, Any]:
        """What the run was started with."""
        return (self.first("start") or {}).get("params", {})

    @property
    def status(self) -> str:
        """`finished` once a gate opened, else `unfinished` (running, or interrupted)."""
        return "finished" if self.first("stop") else "unfinished"


class Store:
    """A folder of runs."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, run: str) -> Path:
        """Where the log of `run` is or would be. Raises ValueError for an id that is no plain file name."""
        if not RUN_ID.fullmatch(run):
            raise ValueError(
                f"run id {run!r} must be 1 to 128 of A-Z a-z 0-9 . _ - and start with a letter or digit"
            )
        return self.folder / f"{run}.jsonl"

    def create(self, run: str, **params: Any) -> RunLog:
        """Open a new log and record what the run starts with. Raises RunTaken when `run` exists already."""
        log = RunLog(self.path(run))
        if log._next:
            log.close()
            raise RunTaken(f"run {run!r} exists already in {self.folder}; choose another id")
        log.append("start", run=run, params=params)
        log.sync()
        return log

    def run(self, run: str) -> Run:
        """Read one run. Raises StoreError, naming what there is, when it does not exist."""
        if not self.path(run).exists():
            raise StoreError(
                f"no run {run!r} in {self.folder}; there are {len(self.ids())}: {self.ids()[:5]}"
            )
        return Run(run, read_events(self.path(run)))

    def is_held(self, run: str) -> bool:
        """Whether some process has the log of `run` open for writing."""
        import portalocker

        with self.path(run).open("rb") as file:
            try:
                portalocker.lock(file, portalocker.LOCK_SH | portalocker.LOCK_NB)
            except portalocker.LockException:
                return True
            return False

    def ids(self) -> list[str]:
        """The ids of all runs, sorted."""
        names = (path.stem for path in self.folder.glob("*.jsonl"))
        return sorted(name for name in names if RUN_ID.fullmatch(name))  # not what file managers leave about

    def runs(self) -> Iterator[Run]:
        """All runs that have at least a start event."""
        for run in map(self.run, self.ids()):
            if run.events:
                yield run

    def runs_df(self) -> "pd.DataFrame":
        """One row per run: its id, status, parameters, stop, best score, iterations, tokens, seconds, trial result."""
        import pandas as pd

        return pd.DataFrame([_run_row(run) for run in self.runs()])

    def steps_df(self) -> "pd.DataFrame":
        """One row per phase of each iteration: run, iteration, phase, seconds, calls, tokens, error kind."""
        import pandas as pd

        rows = [
            {"run": run.id, **{key: step[key] for key in ("iteration", "phase", "seconds")}}
            | step["usage"]
            | {"error": (step["error"] or {}).get("kind")}
            for run in self.runs()
            for step in run.all("step")
        ]
        return pd.DataFrame(rows)


def _run_row(run: Run) -> dict[str, Any]:
    turns, stop, trial = run.all("iteration"), run.first("stop") or {}, run.first("trial") or {}
    scores = {turn["iteration"]: turn["score"] for turn in turns}
    return {
        "run": run.id,
        "started": run.events[0]["time"],
        "status": run.status,
        **run.params,
        "iterations": len(turns),
        "stopped_by": stop.get("gate"),
        "best_score": scores.get(stop.get("best")),
        "calls": sum(turn["usage"]["calls"] for turn in turns),
        "tokens": sum(turn["usage"]["input_tokens"] + turn["usage"]["output_tokens"] for turn in turns),
        "seconds": sum(turn["seconds"] for turn in turns),
        "result": trial.get("result"),
        "kind": trial.get("kind"),
    }
