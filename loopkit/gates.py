"""Gates: pure functions of the history that say when to stop, and why.

`gate(history)` returns a `StopReason`, or None to go on. A gate with `bounds = True` is certain to open some
day on its own; a loop must have one. Any function with this signature is a gate.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from loopkit.loop import History, StopReason, best_of


@dataclass(frozen=True)
class Threshold:
    """Opens when the best score so far reaches `score`."""

    score: float

    def __post_init__(self) -> None:
        _check("Threshold", "score", self.score)

    def __call__(self, history: History) -> StopReason | None:
        best = best_of(history)
        if best is None or best.score < self.score:
            return None
        return StopReason(gate="Threshold", reason=f"score {best.score:g} reached {self.score:g}")


@dataclass(frozen=True)
class MaxIterations:
    """Opens after `n` turns, crashed ones included."""

    n: int
    bounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check("MaxIterations", "n", self.n, least=1, whole=True)

    def __call__(self, history: History) -> StopReason | None:
        if len(history) < self.n:
            return None
        return StopReason(gate="MaxIterations", reason=f"{len(history)} of {self.n} iterations used")


@dataclass(frozen=True)
class Stagnation:
    """Opens when the best score has not gained more than `min_gain` over the last `patience` turns.

    Turns before the first usable candidate count too: a loop that only crashes stagnates.
    """

    patience: int
    min_gain: float = 0.0

    def __post_init__(self) -> None:
        _check("Stagnation", "patience", self.patience, least=1, whole=True)
        _check("Stagnation", "min_gain", self.min_gain, least=0)

    def __call__(self, history: History) -> StopReason | None:
        if len(history) <= self.patience:
            return None
        before, now = best_of(history[: -self.patience]), best_of(history)
        if now is not None and (before is None or now.score - before.score > self.min_gain):
            return None
        return StopReason(
            gate="Stagnation",
            reason=f"no gain above {self.min_gain:g} in the last {self.patience} iterations",
        )


@dataclass(frozen=True)
class Budget:
    """Opens when any of the limits that are set has been used up, summed over the turns so far.

    It is looked at between turns, so the turn that crosses a limit is still finished and recorded.
    """

    tokens: int | None = None
    """Input and output tokens."""
    calls: int | None = None
    """Model requests."""
    seconds: float | None = None
    """Wall time inside the turns."""

    def __post_init__(self) -> None:
        if (self.tokens, self.calls, self.seconds) == (None, None, None):
            raise ValueError("a Budget needs a limit: tokens=, calls= or seconds=")
        for name in ("tokens", "calls", "seconds"):
            if (limit := getattr(self, name)) is not None:
                _check("Budget", name, limit, least=0)

    @property
    def bounds(self) -> bool:
        """Time runs out by itself; a loop that asks no model never spends tokens or calls."""
        return self.seconds is not None

    def __call__(self, history: History) -> StopReason | None:
        spent = {
            "tokens": sum(turn.usage.tokens for turn in history),
            "calls": sum(turn.usage.calls for turn in history),
            "seconds": sum(turn.seconds for turn in history),
        }
        for name, used in spent.items():
            limit = getattr(self, name)
            if limit is not None and used >= limit:
                return StopReason(gate="Budget", reason=f"{used:g} of {limit:g} {name} spent")
        return None


def _check(gate: str, name: str, value: float, *, least: float = -math.inf, whole: bool = False) -> None:
    """A gate's limit must be a number that can be reached: infinity would never open it, NaN always or never."""
    if (
        not isinstance(value, int if whole else int | float)
        or isinstance(value, bool)
        or not math.isfinite(value)
    ):
        raise ValueError(f"{gate}: {name} must be a {'whole' if whole else 'finite'} number, got {value!r}")
    if value < least:
        raise ValueError(f"{gate}: {name} must be >= {least}, got {value!r}")
