"""How values of a measure are told: shares as percentages, other numbers as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from loopkit.batch.claims.claim import ACCURACY
from loopkit.metrics import Estimate, Proportion
from loopkit.metrics.intervals import more_digits


@dataclass(frozen=True, kw_only=True)
class Words:
    """For one measure."""

    measure: str
    share: bool
    """Whether its values are yes or no, which makes their mean a share."""

    @property
    def verb(self) -> str:
        """What an arm did where the value was yes."""
        return "was right" if self.measure == ACCURACY else f"had {self.measure}"

    def average(self, got: Proportion | Estimate, *limits: float) -> str:
        """A mean with its interval and n, in so many digits that an end does not read like a limit that it is not."""
        more = self.digits((got.low, got.high), limits)
        if self.share:
            return got.told(more) if self.measure == ACCURACY else f"{self.measure} in {got.told(more)}"
        low, high = number(got.low, more), number(got.high, more)
        return f"mean {self.measure} {number(got.estimate, more)} [{low}, {high}], n = {got.n}"

    def digits(self, ends: Sequence[float], limits: Sequence[float]) -> int:
        """How many digits more than usual it takes to tell the ends of an interval from each other and from limits."""
        told = (lambda value, more: f"{value:z.{1 + more}%}") if self.share else number
        pairs = [(end, other) for end in ends for other in (*ends, *limits)]
        return max(more_digits(told, *pair) for pair in pairs)

    def level(self, value: float) -> str:
        """A mean."""
        return f"{100 * value:.3g}%" if self.share else number(value)

    def bound(self, value: float) -> str:
        """What a claim asks for, to the last digit that it gives."""
        return f"{100 * value:.12g}%" if self.share else f"{value:,.12g}"

    def change(self, value: float, more: int = 0) -> str:
        """A difference, with its sign."""
        if self.share:
            return f"{value:+z.{1 + more}%}"
        return f"+{number(value, more)}" if value >= 0 else number(value, more)


def number(value: float, more: int = 0) -> str:
    """Three digits of a small number, all that stand before the point of a large one; and `more`."""
    if abs(value) >= 999.5:
        return f"{value:,.{more}f}"
    return f"{value + 0.0:.{3 + more}g}"  # -0.0 is 0


def exactly(value: float) -> str:
    """Every digit, where values are compared one by one."""
    return repr(float(value)).removesuffix(".0")


def count(n: int, what: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def several(items: Sequence[str]) -> str:
    """` over 20 items` for trials that repeat theirs, which `items` names one by one."""
    distinct = len(set(items))
    return "" if distinct == len(items) else f" over {count(distinct, 'item')}"
