"""An estimate with its interval: of a mean, and of any statistic by the bootstrap."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from loopkit.metrics.checks import column, fraction, numbers, same_length

FEWEST = 6
"""Observations that `bootstrap` must have for an interval: the range of fewer holds a median less than 95 % of the time."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number computed from `n` observations, with a two-sided interval."""

    n: int
    estimate: float | None
    """None where the statistic is undefined for these data."""
    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.estimate is None:
            return f"undefined, n = {self.n}"
        if self.low is None:
            return f"{self.estimate:z.2f}, n = {self.n}"
        digits = 2 + more_digits(lambda value, more: f"{value:z.{2 + more}f}", self.low, self.high)
        return f"{self.estimate:z.{digits}f} [{self.low:z.{digits}f}, {self.high:z.{digits}f}], n = {self.n}"


def more_digits(told: Callable[[float, int], str], *values: float) -> int:
    """How many `more` digits `told(value, more)` must give for unequal values not to read alike; 16 at most."""
    return next(
        (more for more in range(16) if len({told(one, more) for one in values}) >= len(set(values))), 16
    )


def mean(
    values: Sequence[float], clusters: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Estimate:
    """The mean with Student's t interval.

    `clusters` names what each value shares with others: its item, where items are tried several times. The standard
    error is then the cluster-robust one (K.-Y. Liang and S. L. Zeger, Biometrika 73, 1986, times G / (G - 1) for G
    clusters), with G - 1 degrees of freedom. `n` counts values; a cluster weighs by how many it has.

    No interval from fewer than two values or clusters, nor where it would have width 0. Raises ValueError for no
    values, one that is not finite, or `clusters` of another length.
    """
    values = column(values)
    fraction(confidence, "confidence")
    groups = None if clusters is None else numbered(clusters, values)
    centre, low, high = float(values.mean()), None, None
    count = len(values) if groups is None else int(groups.max()) + 1
    if count > 1:
        from scipy.stats import sem, t

        error = sem(values) if groups is None else clustered_error(values, groups)
        half = t.isf((1 - confidence) / 2, count - 1) * error
        low, high = _interval(centre - half, centre + half, scale=np.abs(values).max())
    return Estimate(n=len(values), estimate=centre, low=low, high=high)


def numbered(clusters: Sequence[Hashable], values: np.ndarray) -> np.ndarray:
    """The cluster of each value as a number, from 0 in order of appearance."""
    same_length(values, clusters, "values and clusters")
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters])


def clustered_error(values: np.ndarray, groups: np.ndarray) -> float:
    """The cluster-robust standard error of the mean of `values`, from two `groups` (numbered from 0) or more."""
    from statsmodels.regression.linear_model import OLS

    fit = OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    return float(fit.bse[0])


def bootstrap(
    values: Sequence[float] | Sequence[Sequence[float]],
    statistic: Callable[[np.ndarray], float] | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """`statistic(values)`, by default the mean, with its expanded percentile interval.

    `values` has one number, or one row of k numbers, per observation: shape (n,) or (n, k). Observations are drawn with
    replacement, n at a time, `resamples` times; `statistic` gets each draw in the same shape. A percentile interval is
    too short for small n, so its tails are taken so far out that that of a mean is about as wide as Student's t interval
    (T. C. Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69, 2015). At n = 10,
    30 and 100 the 95 % interval of a mean covers it 95 % of the time for normal values, but only 91, 93 and 94 % for
    exponential ones: skewed values need more of them.

    A statistic is NaN where it is undefined: for `values`, the estimate is None; for some resamples, they are left
    out; for more than half of them, there is no interval. Nor is there one where it would have width 0 (all values
    equal), which would claim certainty, or from fewer than six observations: a mean of resamples cannot leave the range
    of the values, and that of n normal values misses their mean 50, 25, 12 and 6 % of the time for n = 2 to 5. Raises
    ValueError for no values or one that is not finite.
    """
    values = numbers(values) if statistic else column(values)
    fraction(confidence, "confidence")
    if resamples < 1:
        raise ValueError(f"resamples must be >= 1, got {resamples}")
    n = len(values)
    estimate = float(statistic(values) if statistic else values.mean())
    if math.isnan(estimate):
        return Estimate(n=n, estimate=None, low=None, high=None)
    low, high = None, None
    if n >= FEWEST:
        drawn = _resampled(values, statistic, resamples, np.random.default_rng(seed))
        defined = drawn[~np.isnan(drawn)]
        if 2 * len(defined) >= resamples:
            tail = _expanded_tail(n, confidence)
            low, high = _interval(*np.quantile(defined, [tail, 1 - tail]), scale=np.abs(defined).max())
    return Estimate(n=n, estimate=estimate, low=low, high=high)


def _resampled(
    values: np.ndarray,
    statistic: Callable[[np.ndarray], float] | None,
    resamples: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """What scipy's bootstrap draws, too; that one warns of a wrong cause where a resample is undefined."""
    n = len(values)
    at_once = max(1, 1_000_000 // n)  # some megabytes, however many observations there are
    found = []
    for start in range(0, resamples, at_once):
        draws = values[rng.integers(n, size=(min(at_once, resamples - start), n))]
        found.append([statistic(draw) for draw in draws] if statistic else draws.mean(axis=1))
    return np.concatenate(found)


def _expanded_tail(n: int, confidence: float) -> float:
    from scipy.stats import norm, t

    return float(norm.sf(math.sqrt(n / (n - 1)) * t.isf((1 - confidence) / 2, n - 1)))


def _interval(low: float, high: float, *, scale: float) -> tuple[float | None, float | None]:
    """The two ends, or none where nothing but rounding, of numbers as large as `scale`, keeps them apart."""
    if high - low <= 1e-12 * scale:
        return None, None
    return float(low), float(high)
