"""An estimate with its interval: of a mean, and of any statistic by the bootstrap."""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loopkit.metrics.checks import column, fraction, numbers, same_length


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
        interval = "" if self.low is None else f" [{self.low:.2f}, {self.high:.2f}]"
        return f"{self.estimate:.2f}{interval}, n = {self.n}"


def mean(
    values: Sequence[float], clusters: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Estimate:
    """The mean with Student's t interval.

    `clusters` names, for each value, what it shares its fate with: the item, where each was tried several times. The
    standard error is then the cluster-robust one of K.-Y. Liang and S. L. Zeger (Biometrika 73, 1986), with one degree
    of freedom less than there are clusters. Each cluster counts by the number of its values.

    No interval from fewer than two values or clusters, nor from values (or clusters) that do not differ at all. Raises ValueError for no values,
    values that are not finite, or a number of `clusters` that is another one.
    """
    values = column(values)
    fraction(confidence, "confidence")
    centre = float(values.mean())
    low, high = _t_interval(values, clusters, confidence)
    return Estimate(n=len(values), estimate=centre, low=low, high=high)


def _t_interval(
    values: np.ndarray, clusters: Sequence[Hashable] | None, confidence: float
) -> tuple[float | None, float | None]:
    groups = np.arange(len(values)) if clusters is None else cluster_codes(values, clusters)
    count = groups.max() + 1
    if count < 2:
        return None, None
    from scipy.stats import t

    half = t.isf((1 - confidence) / 2, count - 1) * clustered_error(values, groups)
    return _spread(values.mean() - half, values.mean() + half)


def cluster_codes(values: np.ndarray, clusters: Sequence[Hashable]) -> np.ndarray:
    """The clusters numbered from 0, one number per value."""
    same_length(values, clusters, "values and clusters")
    numbered: dict[Hashable, int] = {}
    return np.array([numbered.setdefault(cluster, len(numbered)) for cluster in clusters])


def clustered_error(values: np.ndarray, groups: np.ndarray) -> float:
    """The cluster-robust standard error of the mean of `values`; `groups` numbers their clusters, two or more."""
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

    `values` has one number, or one row of k numbers, per observation: shape (n,) or (n, k). The observations are drawn
    with replacement, `resamples` times, and `statistic` gets each draw in the same shape. A plain percentile interval is too short where n is small; so its tail
    probabilities are those that make the interval of a mean as wide as Student's t would (T. Hesterberg, "What Teachers
    Should Know about the Bootstrap", The American Statistician 69, 2015, section 3.3).

    A statistic says that it is undefined by returning NaN: for all `values`, the estimate is None; for some resamples, they are
    left out; for more than half of them, there is no interval. Nor is there one where it would have width 0 (values that
    are all equal), for that would claim certainty. Raises ValueError for no values or values that are not finite.
    """
    values = numbers(values)
    fraction(confidence, "confidence")
    if resamples < 1:
        raise ValueError(f"resamples must be >= 1, got {resamples}")
    if statistic is None:
        values = column(values)
    n = len(values)
    estimate = float(values.mean() if statistic is None else statistic(values))
    if math.isnan(estimate):
        return Estimate(n=n, estimate=None, low=None, high=None)
    low, high = None, None
    if n > 1:
        drawn = np.fromiter(_resampled(values, statistic, resamples, seed), dtype=float, count=resamples)
        defined = drawn[~np.isnan(drawn)]
        if 2 * len(defined) >= resamples:
            tail = _expanded_tail(n, confidence)
            low, high = _spread(*np.quantile(defined, [tail, 1 - tail]))
    return Estimate(n=n, estimate=estimate, low=low, high=high)


def _resampled(
    values: np.ndarray, statistic: Callable[[np.ndarray], float] | None, resamples: int, seed: int
) -> Iterator[float]:
    rng = np.random.default_rng(seed)
    n = len(values)
    at_once = max(1, 1_000_000 // n)  # as many resamples as fit into some megabytes
    for start in range(0, resamples, at_once):
        draws = values[rng.integers(n, size=(min(at_once, resamples - start), n))]
        yield from draws.mean(axis=1) if statistic is None else map(statistic, draws)


def _expanded_tail(n: int, confidence: float) -> float:
    from scipy.stats import norm, t

    return float(norm.sf(math.sqrt(n / (n - 1)) * t.isf((1 - confidence) / 2, n - 1)))


def _spread(low: float, high: float) -> tuple[float | None, float | None]:
    """The interval, or none where its ends differ by rounding errors only."""
    if math.isclose(low, high, rel_tol=1e-12):
        return None, None
    return float(low), float(high)
