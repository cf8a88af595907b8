"""Proportions of yes/no outcomes: of independent trials, and of several trials on each item."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from loopkit.metrics.checks import fraction, yes_or_no
from loopkit.metrics.intervals import clustered_error, numbered


@dataclass(frozen=True, kw_only=True)
class Proportion:
    """`successes` of `n`, with a two-sided interval."""

    successes: int
    n: int
    estimate: float | None
    """The share of `successes`, or with `balanced` the mean of the clusters' shares; None when n is 0."""
    low: float | None
    high: float | None

    def __str__(self) -> str:
        return self.told()

    def told(self, more: int = 0) -> str:
        """In words, with `more` digits in the interval than one after the point."""
        if self.estimate is None:
            return "no data"
        interval = "" if self.low is None else f" [{self.low:.{1 + more}%}, {self.high:.{1 + more}%}]"
        if not math.isclose(self.estimate, self.successes / self.n, abs_tol=1e-12):
            return f"{self.estimate:.1%}{interval} by item, {self.successes}/{self.n} in all"
        return f"{self.successes}/{self.n} = {self.estimate:.1%}{interval}"


def accuracy(successes: int, n: int, confidence: float = 0.95) -> Proportion:
    """A proportion with its Wilson score interval (E. B. Wilson, JASA 22, 1927).

    Raises ValueError unless 0 <= successes <= n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"successes must lie between 0 and n={n}, got {successes}")
    fraction(confidence, "confidence")
    if n < 2:
        return Proportion(
            successes=successes, n=n, estimate=successes / n if n else None, low=None, high=None
        )
    from scipy.stats import binomtest  # takes half a second to import

    interval = binomtest(successes, n).proportion_ci(confidence_level=confidence, method="wilson")
    return Proportion(
        successes=successes, n=n, estimate=successes / n, low=float(interval.low), high=float(interval.high)
    )


def clustered(outcomes: Sequence[bool], clusters: Sequence[Hashable], confidence: float = 0.95) -> Proportion:
    """The share of yes among outcomes that come several to a cluster: the trials on one item.

    `clusters` names the cluster of each outcome. The interval is Wilson's at the effective sample size of E. L. Korn and
    B. I. Graubard (Survey Methodology 24, 1998): n over the design effect (the cluster-robust variance, as in `mean`,
    over that of n independent outcomes) and over the squared ratio of the t quantiles with G - 1 and n - 1 degrees of
    freedom, for a variance estimated from G clusters is itself uncertain; but at most G. Without that cap a single
    outcome that differs from all others would make them seem independent, and trials of few items sure of themselves.
    With one outcome per cluster this is `accuracy`.

    `successes` and `n` count outcomes, as observed. No interval from fewer than two clusters. Raises ValueError for no
    outcomes, one that is neither yes nor no, or `clusters` of another length.
    """
    right = yes_or_no(outcomes)
    fraction(confidence, "confidence")
    groups = numbered(clusters, right)
    n, successes = len(right), int(right.sum())
    low, high = None, None
    if groups.max() > 0:
        low, high = _wilson(successes / n, _effective_size(right, groups, confidence), confidence)
    return Proportion(successes=successes, n=n, estimate=successes / n, low=low, high=high)


def _effective_size(right: np.ndarray, groups: np.ndarray, confidence: float) -> float:
    n, count, rate = len(right), int(groups.max()) + 1, right.mean()
    if rate in (0, 1):
        return count  # no variance to go by
    from scipy.stats import t

    design = clustered_error(right.astype(float), groups) ** 2 / (rate * (1 - rate) / (n - 1))
    tail = (1 - confidence) / 2
    return n / max(design * (t.isf(tail, count - 1) / t.isf(tail, n - 1)) ** 2, n / count)


def balanced(outcomes: Sequence[bool], clusters: Sequence[Hashable], confidence: float = 0.95) -> Proportion:
    """The share of yes of a cluster, on average: each weighs the same, however many outcomes it has.

    The interval is Wilson's at the mean of the G clusters' own shares and n = G. It is never too short for shares: of
    all values between 0 and 1 with a given mean, those that are only 0 or 1 vary the most. `estimate` is that mean;
    `successes` and `n` count outcomes, as observed. With one outcome per cluster this is `accuracy`.

    No interval from fewer than two clusters. Raises ValueError for no outcomes, one that is neither yes nor no, or
    `clusters` of another length.
    """
    right = yes_or_no(outcomes)
    fraction(confidence, "confidence")
    groups = numbered(clusters, right)
    count = int(groups.max()) + 1
    share = float(np.mean(np.bincount(groups, weights=right) / np.bincount(groups)))
    low, high = _wilson(share, count, confidence) if count > 1 else (None, None)
    return Proportion(successes=int(right.sum()), n=len(right), estimate=share, low=low, high=high)


def _wilson(share: float, size: float, confidence: float) -> tuple[float, float]:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(size * share, size, alpha=1 - confidence, method="wilson")
    return float(low), float(high)
