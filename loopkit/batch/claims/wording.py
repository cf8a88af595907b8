"""How values of a measure are told: shares as percentages, other numbers as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from loopkit.batch.claims.claim import ACCURACY
from loopkit.metrics import Estimate, Proportion


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

    def average(self, got: Proportion | Estimate) -> str:
        """A mean with its interval and n."""
        if self.measure == ACCURACY:
            return str(got)
        if self.share:
            return f"{self.measure} in {got}"
        interval = f"[{number(got.low)}, {number(got.high)}]"
        return f"mean {self.measure} {number(got.estimate)} {interval}, n = {got.n}"

    def level(self, value: float) -> str:
        """A value, or a bound on it."""
        return f"{100 * value:.3g}%" if self.share else number(value)

    def change(self, value: float) -> str:
        """A difference, with its sign."""
        if self.share:
            return f"{value:+.1%}"
        return f"+{number(value)}" if value >= 0 else number(value)


def number(value: float) -> str:
    """Three digits of a small number, all that stand before the point of a large one."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


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
