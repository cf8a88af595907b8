"""Trials: one arm on one item at one seed, recorded once.

A trial's key is a hash of all that decides its outcome: parameters, item, model, code and data. Playing the same
trials again runs only those that have no result on record, so a batch killed at any moment goes on where it was.
"""

import asyncio
import contextlib
import hashlib
import json
import math
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib import import_module
from inspect import isawaitable
from numbers import Real
from pathlib import Path
from typing import Any, Literal

from loopkit.loop import Outcome
from loopkit.store import RunLog, RunTaken, Store, StoreError, encode

COLUMNS = (
    "folder", "run", "trial", "result", "kind", "detail", "accuracy", "iterations", "stopped_by", "tokens", "seconds",
    "ended", "measures",
)  # fmt: skip
"""What a row of a trial has beside its parameters and measures, and what is a measure of every trial."""

# How long to wait for another process that holds a trial: it may be finishing after its batch was killed.
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Result:
    """How a trial came out. `failed` is the model's doing and counts; `error` is ours or the network's and does not."""

    result: Literal["correct", "wrong", "failed", "error"]
    kind: str | None = None
    """For `failed` and `error`: the word to count by."""
    detail: str | None = None
    measures: Mapping[str, float] = field(default_factory=dict)
    """What else a claim may be about, by name: finite numbers, or True and False."""

    def __post_init__(self) -> None:
        for name, value in self.measures.items():
            if not isinstance(name, str) or not name.isidentifier() or name in COLUMNS:
                raise ValueError(
                    f"a measure needs a name of letters, digits and _ that is none of {', '.join(COLUMNS)}, got {name!r}"
                )
            if not isinstance(value, Real) or not math.isfinite(value):
                raise ValueError(f"measure {name!r} must be a finite number, True or False, got {value!r}")
        plain = {name: one if isinstance(one, int) else float(one) for name, one in self.measures.items()}
        object.__setattr__(self, "measures", plain)  # numpy's numbers would be recorded as text


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What to play."""

    params: Mapping[str, Any]
    """Everything but the code that decides the outcome; it goes into the record."""
    code: str
    """A `code_version`."""
    run: Callable[[RunLog], Awaitable[Outcome]]
    """Runs the loop, recording into the log it is given."""
    grade: Callable[[Outcome], Result | Awaitable[Result]]
    """Compares with the truth, which the loop itself never sees."""

    @property
    def key(self) -> str:
        """20 hex digits that name the trial."""
        canonical = json.dumps(json.loads(encode([self.code, self.params])), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:20]


async def play(
    trials: Sequence[Trial], store: Store, *, parallel: int = 2, on_done: Callable[[], None] | None = None
) -> list[Result]:
    """Play those trials that have no result yet, `parallel` at a time; return all results, in order.

    An exception inside a trial is recorded as an `error`, and the others go on.
    """
    free = asyncio.Semaphore(parallel)

    async def one(trial: Trial) -> Result:
        async with free:
            result = await _play_one(trial, store)
            if on_done:
                on_done()
            return result

    return list(await asyncio.gather(*map(one, trials)))


async def _play_one(trial: Trial, store: Store) -> Result:
    params = {"trial": trial.key, "code": trial.code, **trial.params}
    opened = await _open(store, trial.key, params)
    if isinstance(opened, Result):
        return opened
    with opened as log:
        try:
            graded = trial.grade(await trial.run(log))
            result = await graded if isawaitable(graded) else graded
            if taken := sorted(result.measures.keys() & params.keys()):
                raise ValueError(f"measures named like parameters: {', '.join(taken)}; give them other names")
        except StoreError:
            raise  # the record itself cannot be written: nothing more can be promised
        except Exception as error:
            result = Result(result="error", kind=type(error).__name__, detail=str(error))
        log.append("trial", **asdict(result))
    return result


async def _open(store: Store, key: str, params: dict[str, Any]) -> RunLog | Result:
    """The result on record, or a log to play into: of the attempt that was interrupted, else of the next one.

    Attempts are `<key>`, `<key>.2`, `<key>.3`, …; one that ended in an `error` is followed by another.
    """
    waited, attempt = 0.0, 1
    while True:
        run = key if attempt == 1 else f"{key}.{attempt}"
        try:
            return store.create(run, **params)
        except RunTaken:
            pass
        events = store.run(run).events
        if result := recorded_result(events):
            return result
        if any(event["event"] == "trial" for event in events):
            attempt += 1
        elif not store.is_held(run):
            with contextlib.suppress(RunTaken):  # somebody was quicker: look again
                return store.resume(run)
        elif waited >= PATIENCE_SECONDS:
            raise StoreError(f"{store.path(run)} is held by another process; stop it, then run this again")
        else:
            await asyncio.sleep(0.2)
            waited += 0.2


def recorded_result(events: Sequence[Mapping[str, Any]]) -> Result | None:
    """The result among a run's events, unless it is an `error`, which does not settle a trial."""
    for event in events:
        if event["event"] == "trial" and event["result"] != "error":
            # Earlier records have no measures.
            given = {name: event[name] for name in ("result", "kind", "detail", "measures") if name in event}
            return Result(**given)
    return None


def unsolved(outcome: Outcome) -> Result | None:
    """The result of a loop that no turn of which was judged; None if there is something to grade."""
    last = outcome.history[-1]
    if last.error and not last.error.typed:
        return Result(result="error", kind=last.error.kind, detail=last.error.message)
    if outcome.best is None:
        return Result(result="failed", kind=last.error.kind, detail=last.error.message)
    return None


# What makes up the loop itself.
LOOP = ("loopkit.loop", "loopkit.gates", "loopkit.history", "loopkit.journal", "loopkit.verdict")


@lru_cache
def code_version(*modules: str) -> str:
    """12 hex digits over the Python files of the named modules or packages (with all inside them).

    Name what can change a result: an experiment's package, the modules of `LOOP`, `loopkit.models`, … Editing a figure
    then leaves finished trials valid.
    """
    digest = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    for name in sorted(modules):
        file = Path(import_module(name).__file__ or "")
        files = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
        for path in files:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(file.parent)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]
