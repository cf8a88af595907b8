"""One score from several metrics, and guards that no gain can buy."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from loopkit.history import Direction
from loopkit.verdict import Failure, Feedback, Verdict


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One measured number, and what it is worth."""

    name: str
    reference: float
    """The value that is worth 0: of the baseline, say."""
    target: float
    """The value that is worth 1. What lies beyond it is worth 1, too: a surplus here cannot pay for a loss elsewhere."""
    direction: Direction
    weight: float = 1.0

    def __post_init__(self) -> None:
        for field in ("reference", "target", "weight"):
            _finite(f"metric {self.name!r}: {field}", getattr(self, field))
        if self.direction not in ("maximise", "minimise"):
            raise ValueError(
                f"metric {self.name!r}: direction must be 'maximise' or 'minimise', got {self.direction!r}"
            )
        if self.weight <= 0:
            raise ValueError(f"metric {self.name!r}: weight must be > 0, got {self.weight!r}")
        gain = self.target - self.reference
        if (gain if self.direction == "maximise" else -gain) <= 0:
            raise ValueError(
                f"metric {self.name!r}: to {self.direction} it, the target must be better than the reference, got "
                f"{self.target!r} after {self.reference!r}"
            )

    def worth(self, value: float) -> float:
        """0 at the reference, 1 at the target and beyond, linear between, negative before the reference."""
        return min((value - self.reference) / (self.target - self.reference), 1.0)


@dataclass(frozen=True, kw_only=True)
class Guard:
    """A bound on a measured number. A candidate that breaks it is barred, whatever it gained elsewhere."""

    name: str
    """Of the number."""
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if self.at_least is None and self.at_most is None:
            raise ValueError(f"guard {self.name!r} needs at_least= or at_most=")
        for field in ("at_least", "at_most"):
            if (value := getattr(self, field)) is not None:
                _finite(f"guard {self.name!r}: {field}", value)
        if None not in (self.at_least, self.at_most) and self.at_least > self.at_most:
            raise ValueError(
                f"guard {self.name!r}: at_least={self.at_least:g} lies above at_most={self.at_most:g}, which nothing can meet"
            )

    def broken(self, value: float) -> str | None:
        """What is wrong with `value`, or None."""
        if self.at_least is not None and value < self.at_least:
            return f"{self.name} is {value:g}, and must be at least {self.at_least:g}"
        if self.at_most is not None and value > self.at_most:
            return f"{self.name} is {value:g}, and must be at most {self.at_most:g}"
        return None


class Scalar:
    """A judge of measured candidates: the weighted mean of what each metric is worth, and the guards.

    `observation` maps names to finite numbers. The verdict's score is at most 1; its dimensions are what each metric is
    worth, its evidence the numbers. A broken guard bars the candidate, and is blocking feedback.

    Raises ValueError for metrics or guards that cannot be meant, and when called a `Failure` of kind `unmeasured` where a
    number is missing or not finite.
    """

    def __init__(self, *, metrics: Sequence[Metric], guards: Sequence[Guard] = ()) -> None:
        names = [metric.name for metric in metrics]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"Scalar needs one or more metrics with names of their own, got {names}")
        self.metrics, self.guards = tuple(metrics), tuple(guards)

    def __call__(self, candidate: Any, observation: Mapping[str, float]) -> Verdict:
        names = dict.fromkeys(one.name for one in (*self.metrics, *self.guards))
        values = {name: _measured(observation, name) for name in names}
        worth = {metric.name: metric.worth(values[metric.name]) for metric in self.metrics}
        weights = {metric.name: metric.weight for metric in self.metrics}
        broken = [problem for guard in self.guards if (problem := guard.broken(values[guard.name]))]
        return Verdict(
            score=sum(worth[name] * weights[name] for name in worth) / sum(weights.values()),
            feedback=Feedback(blocking=broken),
            dimensions=worth,
            evidence={name: f"{name} = {value:g}" for name, value in values.items()},
            barred=f"guard: {'; '.join(broken)}" if broken else None,
        )


def _measured(observation: Any, name: str) -> float:
    if not isinstance(observation, Mapping) or name not in observation:
        raise Failure("unmeasured", f"no {name!r} among what was measured: {observation!r:.200}")
    value = observation[name]
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise Failure("unmeasured", f"{name!r} must be a finite number, got {value!r:.80}")
    return float(value)


def _finite(what: str, value: float) -> None:
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{what} must be a finite number, got {value!r}")
