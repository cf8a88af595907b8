"""Gates: pure functions of the history that say when to stop, and why.

`gate(history)` returns a `StopReason`, or None to go on. A gate with `bounds = True` is certain to open some
day on its own; a loop must have one. Any function with this signature is a gate.

Those here also say how near they are: `gate.nearness(history)` is 1 when they open and less before, from 0 up, or
None where there is no telling.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from loopkit.history import History, Iteration, StopReason
from loopkit.usage import Usage


@dataclass(frozen=True)
class Threshold:
    """Opens when the best score so far reaches `score`: from below, or from above where the loop minimises.

    A candidate that is barred (`Verdict.barred`: a veto, a broken guard, a judge that failed) never opens it.
    """

    score: float

    def __post_init__(self) -> None:
        _check("Threshold", "score", self.score)

    def __call__(self, history: Sequence[Iteration]) -> StopReason | None:
        history = History.of(history)
        if history.best is None or history.best.verdict.barred:
            return None
        if history.gain(history.best.score, self.score) < 0:
            return None
        return StopReason(gate="Threshold", reason=f"score {history.best.score:g} reached {self.score:g}")

    def nearness(self, history: Sequence[Iteration]) -> float | None:
        """The best score as a part of the one asked for; None where that is no part of anything (`score` <= 0).

        0 as long as nothing was kept but what is barred.
        """
        history = History.of(history)
        if history.best is None or history.best.verdict.barred:
            return 0.0
        if self(history):
            return 1.0
        if self.score <= 0:
            return None
        best = history.best.score
        return max(best / self.score, 0.0) if history.direction == "maximise" else self.score / best


@dataclass(frozen=True)
class MaxIterations:
    """Opens after `n` turns, crashed ones included."""

    n: int
    bounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check("MaxIterations", "n", self.n, least=1, whole=True)

    def __call__(self, history: Sequence[Iteration]) -> StopReason | None:
        if len(history) < self.n:
            return None
        return StopReason(gate="MaxIterations", reason=f"{len(history)} of {self.n} iterations used")

    def nearness(self, history: Sequence[Iteration]) -> float:
        """The part of the turns that is used."""
        return min(len(history) / self.n, 1.0)


@dataclass(frozen=True)
class Stagnation:
    """Opens when the best score has not gained more than `min_gain` over the last `patience` turns.

    The first candidate that is not barred (`Verdict.barred`) is a gain, whatever its score. Turns before the first
    usable candidate count too: a loop that only crashes stagnates.
    """

    patience: int
    min_gain: float = 0.0

    def __post_init__(self) -> None:
        _check("Stagnation", "patience", self.patience, least=1, whole=True)
        _check("Stagnation", "min_gain", self.min_gain, least=0)

    def __call__(self, history: Sequence[Iteration]) -> StopReason | None:
        if not self._stood_still(History.of(history), self.patience):
            return None
        reason = f"no gain above {self.min_gain:g} in the last {self.patience} iterations"
        return StopReason(gate="Stagnation", reason=reason)

    def nearness(self, history: Sequence[Iteration]) -> float:
        """The part of the patience that is used: how long ago the best score last gained more than `min_gain`."""
        history = History.of(history)
        turns = (turns for turns in range(self.patience, 0, -1) if self._stood_still(history, turns))
        return next(turns, 0) / self.patience

    def _stood_still(self, history: History, turns: int) -> bool:
        if len(history) <= turns:
            return False
        before, now = history[:-turns].best, history.best
        if now is None or before is None:
            return now is None
        return history.advance(now.verdict, before.verdict) <= self.min_gain


@dataclass(frozen=True)
class Repetition:
    """Opens when the last candidate equals at least `times` earlier ones, as they are recorded (as JSON).

    A turn that crashed before it had a candidate counts for nothing.
    """

    times: int = 1

    def __post_init__(self) -> None:
        _check("Repetition", "times", self.times, least=1, whole=True)

    def __call__(self, history: Sequence[Iteration]) -> StopReason | None:
        history = History.of(history)
        count, first = history.same
        if count < self.times:
            return None
        reason = f"iteration {len(history)} proposed what iteration {first} had"
        return StopReason(gate="Repetition", reason=reason)

    def nearness(self, history: Sequence[Iteration]) -> float:
        """How often the last candidate was there before, as a part of `times`."""
        return min(History.of(history).same[0] / self.times, 1.0)


@dataclass(frozen=True)
class Budget:
    """Opens when any of the limits that are set has been used up, summed over the turns so far.

    It is looked at between turns, so the turn that crosses a limit is still finished and recorded. Where `cost`
    is limited and a call has no known price, it opens: money nobody can count is not spent unattended.
    """

    tokens: int | None = None
    """Input and output tokens."""
    calls: int | None = None
    """Model requests."""
    seconds: float | None = None
    """Wall time inside the turns."""
    cost: float | None = None
    """US dollars."""

    def __post_init__(self) -> None:
        limits = vars(self)
        if all(limit is None for limit in limits.values()):
            raise ValueError("a Budget needs a limit: tokens=, calls=, seconds= or cost=")
        for name, limit in limits.items():
            if limit is not None:
                _check("Budget", name, limit, least=0)

    @property
    def bounds(self) -> bool:
        """Time runs out by itself; a loop that asks no model never spends tokens, calls or money."""
        return self.seconds is not None

    def __call__(self, history: Sequence[Iteration]) -> StopReason | None:
        history = History.of(history)
        return self.spent(history.usage, history.seconds)

    def spent(self, usage: Usage, seconds: float) -> StopReason | None:
        """The same for totals that somebody else summed up: a flow, a supervisor."""
        for name, used, limit in self._used(usage, seconds):
            if used >= limit:
                return StopReason(gate="Budget", reason=f"{used:g} of {limit:g} {name} spent")
        if self.cost is not None and usage.unpriced_calls:
            reason = f"{usage.unpriced_calls} calls have no known price: limit tokens= instead of cost="
            return StopReason(gate="Budget", reason=reason)
        return None

    def nearness(self, history: Sequence[Iteration]) -> float:
        """The part that is spent of the limit that is nearest to its end."""
        history = History.of(history)
        if self(history):
            return 1.0
        return max(used / limit for _, used, limit in self._used(history.usage, history.seconds))

    def _used(self, usage: Usage, seconds: float) -> list[tuple[str, float, float]]:
        """Each limit that is set: its name, what is used of it, the limit."""
        used = {"tokens": usage.tokens, "calls": usage.calls, "seconds": seconds, "cost": usage.cost}
        return [(name, used[name], limit) for name, limit in vars(self).items() if limit is not None]


class Cancel:
    """Opens when somebody asked: `cancel.request("by the stop button")`, from any thread. The run can be resumed."""

    resumable = True

    def __init__(self) -> None:
        self.reason: str | None = None

    def request(self, reason: str = "cancelled by the user") -> None:
        """Stop after the turn that is running."""
        self.reason = reason

    def __call__(self, history: Sequence[Iteration]) -> StopReason | None:
        return StopReason(gate="Cancel", reason=self.reason) if self.reason is not None else None

    def nearness(self, history: Sequence[Iteration]) -> float | None:
        """None until somebody asks: nothing leads up to it."""
        return None if self.reason is None else 1.0

    def __repr__(self) -> str:
        return "Cancel()"  # recorded among a run's gates: the same one after a restart


def _check(gate: str, name: str, value: float, *, least: float = -math.inf, whole: bool = False) -> None:
    """A gate's limit must be a number that can be reached: infinity would never open it, NaN always or never."""
    kind = int if whole else int | float
    if not isinstance(value, kind) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{gate}: {name} must be a {'whole' if whole else 'finite'} number, got {value!r}")
    if value < least:
        raise ValueError(f"{gate}: {name} must be >= {least}, got {value!r}")
