"""Numbers with their uncertainty. scipy does the statistics; here they get names and guards.

An estimate from fewer than two observations has no interval: `low` and `high` are None, never the estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Proportion:
    """`successes` of `n`, with a two-sided interval."""

    successes: int
    n: int
    estimate: float | None
    """None when n is 0."""
    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.estimate is None:
            return "no data"
        interval = "" if self.low is None else f" [{self.low:.1%}, {self.high:.1%}]"
        return f"{self.successes}/{self.n} = {self.estimate:.1%}{interval}"


def accuracy(successes: int, n: int, confidence: float = 0.95) -> Proportion:
    """A proportion with its Wilson score interval (E. B. Wilson, JASA 22, 1927).

    Raises ValueError unless 0 <= successes <= n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"successes must lie between 0 and n={n}, got {successes}")
    if n < 2:
        return Proportion(
            successes=successes, n=n, estimate=successes / n if n else None, low=None, high=None
        )
    from scipy.stats import binomtest  # takes half a second to import

    interval = binomtest(successes, n).proportion_ci(confidence_level=confidence, method="wilson")
    return Proportion(
        successes=successes, n=n, estimate=successes / n, low=float(interval.low), high=float(interval.high)
    )


@dataclass(frozen=True, kw_only=True)
class Paired:
    """Two arms on the same items: how often each was right where the other was not."""

    n: int
    only_first: int
    only_second: int
    effect: float
    """Accuracy of the first minus accuracy of the second."""
    p: float
    """Two-sided exact p; 1.0 when the arms never disagree."""


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """Exact McNemar test of two paired yes/no outcomes, item by item (Q. McNemar, Psychometrika 12, 1947).

    Given the discordant pairs, the null says each falls to either side with probability 1/2: a binomial test.
    Raises ValueError when the sequences are empty or differ in length.
    """
    if len(first) != len(second) or len(first) == 0:
        raise ValueError(
            f"paired outcomes must be equally long and not empty, got {len(first)} and {len(second)}"
        )
    only_first = sum(bool(a) and not b for a, b in zip(first, second, strict=True))
    only_second = sum(bool(b) and not a for a, b in zip(first, second, strict=True))
    p = 1.0
    if only_first + only_second:
        from scipy.stats import binomtest

        p = float(binomtest(only_first, only_first + only_second, 0.5).pvalue)
    return Paired(
        n=len(first),
        only_first=only_first,
        only_second=only_second,
        effect=(only_first - only_second) / len(first),
        p=p,
    )
