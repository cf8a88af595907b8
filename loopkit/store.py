"""Records are the truth: one append-only event log per run, as JSON lines; everything else is derived.

`Store(folder)` holds `<run>.jsonl` files, and an index that may be deleted at any time: it is made again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopkit.export import to_frame
from loopkit.index import NAME as INDEX
from loopkit.index import Index
from loopkit.log import RunLog, RunTaken, StoreError, encode, read_events
from loopkit.usage import Usage

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Run", "RunLog", "RunTaken", "Store", "StoreError", "encode", "read_events"]

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
DAMAGED = "damaged"
"""The status, in a listing, of a run whose log cannot be believed."""


@dataclass(frozen=True)
class Run:
    """A recorded run: its events, and the few questions that are always asked of them."""

    id: str
    events: list[dict[str, Any]] = field(repr=False)
    path: Path | None = field(default=None, repr=False, compare=False)
    """Where its log is; None for a run that was made up."""

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
    def stop(self) -> dict[str, Any] | None:
        """The event with which the run ended; None while it goes on, again or still."""
        last = next((event for event in reversed(self.events) if event["event"] in ("stop", "resume")), None)
        return last if last and last["event"] == "stop" else None

    @property
    def status(self) -> str:
        """`finished` once a gate opened, `stopped` if somebody cancelled it, `waiting` for a person, else `unfinished`."""
        if self.stop is None:
            return "waiting" if len(self.all("question")) > len(self.all("answer")) else "unfinished"
        return "stopped" if self.stop.get("resumable") else "finished"

    @property
    def iterations(self) -> int:
        """How many iterations are finished."""
        return len(self.all("iteration"))

    @property
    def usage(self) -> Usage:
        """What the finished iterations spent together."""
        total = Usage()
        for turn in self.all("iteration"):
            total.add(Usage(**turn.get("usage", {})))
        return total

    @property
    def row(self) -> dict[str, Any]:
        """What is most often asked of it, as `Store.rows` has it; `started` is None where nothing was recorded."""
        turns, stop, trial = self.all("iteration"), self.stop or {}, self.first("trial") or {}
        scores = {turn["iteration"]: turn.get("score") for turn in turns}
        spent = self.usage
        return {
            "run": self.id,
            "started": self.events[0].get("time"),
            "status": self.status,
            "parent": (self.events[0].get("parent") or {}).get("run"),
            "params": self.params,
            "iterations": len(turns),
            "stopped_by": stop.get("gate"),
            "best_score": scores.get(stop.get("best")),
            "calls": spent.calls,
            "tokens": spent.tokens,
            "cost": spent.cost,
            "seconds": sum(turn["seconds"] for turn in turns),
            "result": trial.get("result"),
            "kind": trial.get("kind"),
            "detail": trial.get("detail"),
            "ended": trial.get("time"),
            "measures": trial.get("measures", {}),
        }


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
        log = self._new(run)
        log.open("start", run=run, params=params)
        return log

    def resume(self, run: str) -> RunLog:
        """Open the log of a run to go on: `await loop.run(log=store.resume("r"))`, with the loop that began it.

        A finished run is opened too, and the loop gives its outcome back. Raises RunTaken, naming the holder, while
        another process writes it; StoreError when there is no such run, or its record was changed.
        """
        if not self.path(run).exists():
            raise self._no(run)
        log = RunLog(self.path(run))
        try:
            self._check(run, log.past)
            if Run(run, log.past).status != "finished":
                log.open("resume")
        except BaseException:
            log.close()
            raise
        return log

    def _check(self, run: str, events: list[dict[str, Any]]) -> None:
        """Raise StoreError for a run that cannot go on from these events."""
        if not events:
            raise StoreError(
                f"{self.path(run)} holds no event: the run died before it began; create it again"
            )
        if len(events) <= (events[0].get("parent") or {}).get("events", 0):
            raise StoreError(f"{self.path(run)} died while it was forked: delete it, and fork again")
        if (self.folder / INDEX).exists():
            with Index(self.folder) as index:
                index.check(self.path(run), events)

    def fork(self, run: str, new: str, *, at: int, **params: Any) -> RunLog:
        """Open a new run that goes on from iteration `at` of `run`, with other parameters or another loop.

        The first `at` iterations are copied, so the new run needs the old one no more; what they spent is part of
        its history, and its budget. `params` replace those of the parent by name. Nothing changes in `run`.
        Raises ValueError when `run` has not finished that many iterations, RunTaken when `new` exists.
        """
        parent = self.run(run)
        if not 0 <= at <= parent.iterations:
            raise ValueError(
                f"run {run!r} has {parent.iterations} finished iterations, cannot fork it at {at}"
            )
        ends = [event for event in parent.all("iteration") if event["iteration"] == at] or parent.events[:1]
        copied = [
            event for event in parent.events
            if event["event"] == "goal" or event.get("iteration", at + 1) <= at
            if event["event"] != "iteration"  # the new loop decides for itself
        ]  # fmt: skip
        log = self._new(new)
        origin = {"run": run, "at": at, "hash": ends[-1]["hash"], "events": len(copied)}
        log.open("start", run=new, params=parent.params | params, parent=origin)
        for event in copied:
            copy = {key: value for key, value in event.items() if key not in ("seq", "hash", "event")}
            log.append(event["event"], **copy)
        log.sync()
        return log

    def _new(self, run: str) -> RunLog:
        log = RunLog(self.path(run))
        if log.past:
            log.close()
            raise RunTaken(f"run {run!r} exists already in {self.folder}; resume it, or choose another id")
        return log

    def _no(self, run: str) -> StoreError:
        return StoreError(f"no run {run!r} in {self.folder}; there are {len(self.ids())}: {self.ids()[:5]}")

    def run(self, run: str) -> Run:
        """Read one run. Raises StoreError when its log cannot be read or was changed, and, naming what there is, when
        there is none."""
        if not self.path(run).exists():
            raise self._no(run)
        return Run(run, read_events(self.path(run)), self.path(run))

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
        """All runs that have at least a start event. Raises StoreError at a log that cannot be read or was changed."""
        for run in map(self.run, self.ids()):
            if run.events:
                yield run

    def rows(self, runs: Iterable[str] | None = None, *, strict: bool = True) -> list[dict[str, Any]]:
        """What is most often asked of each run, read through the index: only logs that changed since are read.

        Of `runs`, by id, or of all; a log without a whole event has no row. The keys are run, started (ISO 8601, UTC),
        status, parent, params, iterations, stopped_by, best_score, calls, tokens, cost (US dollars), seconds (inside
        the phases), and of a trial its result, kind and detail, when it `ended`, and its measures. Raises StoreError for a log that is missing, cannot be
        read or counted, was changed, or has lost events that the index had seen; unless `strict`, the row of such a log has run,
        status `damaged`, params (empty) and `problem` instead, and the others are as ever.
        """
        rows, runs = [], self.ids() if runs is None else list(runs)
        with Index(self.folder) as index:
            index.fetch(runs)
            for run in runs:
                try:
                    row = index.row(self.path(run), lambda name, events: Run(name, events).row)
                except StoreError as error:
                    if strict:
                        raise
                    row = {"run": run, "status": DAMAGED, "params": {}, "problem": str(error)}
                if row is not None:
                    rows.append(row)
        return rows

    def runs_df(self, *, strict: bool = True) -> "pd.DataFrame":
        """One row per run, as `rows` has them, with a column for each parameter and each measure.

        Raises StoreError as `rows` does; unless `strict`, a damaged log is a row of its own, with status `damaged` and
        the reason under `problem`.
        """
        return to_frame([flat(row) for row in self.rows(strict=strict)])

    def steps_df(self, run: str | None = None) -> "pd.DataFrame":
        """One row per phase of each iteration: run, iteration, phase, option, seconds, what it spent, error kind.

        Of one run, or of all. Every log is read; raises StoreError for one that cannot be read or was changed.
        """
        import pandas as pd

        columns: dict[str, list[Any]] = {name: [] for name in ("run", *STEP_FIELDS, *USAGE, "error")}
        for one in [self.run(run)] if run else self.runs():
            steps = one.all("step")
            columns["run"] += [one.id] * len(steps)
            for name in STEP_FIELDS:
                columns[name] += [step.get(name) for step in steps]
            for name in USAGE:
                columns[name] += [step.get("usage", NOTHING).get(name, 0) for step in steps]
            columns["error"] += [step.get("error", NOTHING).get("kind") for step in steps]
        return pd.DataFrame(columns if columns["run"] else [])


NOTHING: dict[str, Any] = {}
STEP_FIELDS = ["iteration", "phase", "option", "seconds"]
USAGE = [one.name for one in fields(Usage)]


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its parameters and measures in their place; one named like another column gives way to it."""
    columns: dict[str, Any] = {}
    for name, value in row.items():
        if name not in ("params", "measures"):
            columns[name] = value
            continue
        for inner, one in value.items():
            columns.setdefault(inner, one)
    return columns
