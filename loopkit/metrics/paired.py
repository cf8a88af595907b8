"""Two arms on the same items: does one do better?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopkit.metrics.checks import column, same_length, yes_or_no
from loopkit.metrics.intervals import bootstrap


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
    low: float | None
    """95 % interval of the effect; None for a single item."""
    high: float | None


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """Exact McNemar test of two paired yes/no outcomes, item by item (Q. McNemar, Psychometrika 12, 1947).

    Given the discordant pairs, the null says each falls to either side with probability 1/2: a binomial test. The
    interval is the adjusted Wald one of D. G. Bonett and R. M. Price (J. Educational and Behavioral Statistics 37,
    2012); it is no inversion of the test, so the two may disagree near p = 0.05.
    Raises ValueError when the sequences are empty, differ in length, or hold anything but yes and no.
    """
    same_length(first, second, "paired outcomes")
    first, second = yes_or_no(first, "first"), yes_or_no(second, "second")
    n, only_first, only_second = len(first), int((first & ~second).sum()), int((second & ~first).sum())
    p = 1.0
    if only_first + only_second:
        from scipy.stats import binomtest

        p = float(binomtest(only_first, only_first + only_second, 0.5).pvalue)
    low, high = _bonett_price(only_first, only_second, n) if n > 1 else (None, None)
    return Paired(
        n=n,
        only_first=only_first,
        only_second=only_second,
        effect=(only_first - only_second) / n,
        p=p,
        low=low,
        high=high,
    )


def _bonett_price(only_first: int, only_second: int, n: int) -> tuple[float, float]:
    from scipy.stats import norm

    a, b = (only_first + 1) / (n + 2), (only_second + 1) / (n + 2)
    half = norm.isf(0.025) * math.sqrt((a + b - (a - b) ** 2) / (n + 2))
    return max(float(a - b - half), -1.0), min(float(a - b + half), 1.0)


@dataclass(frozen=True, kw_only=True)
class PairedMeans:
    """Two arms' scores on the same items: how far apart their means are."""

    n: int
    effect: float
    """Mean of the first minus mean of the second."""
    p: float
    """Two-sided."""
    exact: bool
    """True when every permutation was looked at, False when `p` is from a random sample of them."""
    low: float | None
    """95 % interval of the effect; None for a single item, and where all differences are equal."""
    high: float | None


def permutation(
    first: Sequence[float], second: Sequence[float], *, resamples: int = 9999, seed: int = 0
) -> PairedMeans:
    """Permutation test of the mean difference of paired scores (R. A. Fisher, The Design of Experiments, 1935, § 21).

    The null says that an item's two scores could as well be swapped. All 2^n ways of swapping are looked at if they are no more
    than `resamples`; else that many are drawn, and p is (r + 1) / (resamples + 1), where r of them are as extreme as what was seen (B. Phipson and
    G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 9, 2010). The interval is the `bootstrap` one of the differences.
    Raises ValueError when the sequences are empty, differ in length, or hold a value that is not finite.
    """
    same_length(first, second, "paired scores")
    if resamples < 1:
        raise ValueError(f"resamples must be >= 1, got {resamples}")
    differences = column(first, "first") - column(second, "second")
    n, largest = len(differences), float(np.abs(differences).max())
    interval = bootstrap(differences, seed=seed)
    from scipy.stats import permutation_test

    def size(swapped: np.ndarray, axis: int) -> np.ndarray:
        # Rounded, for sums that are equal on paper differ by the order of their terms, and ties count as extreme.
        return np.round(np.abs(np.mean(swapped, axis=axis)) / (largest or 1.0), 12)

    test = permutation_test(
        (differences,),
        size,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, 1_000_000 // n),
        alternative="greater",
        rng=seed,
    )
    return PairedMeans(
        n=n,
        effect=interval.estimate,
        p=float(test.pvalue),
        exact=2**n <= resamples,
        low=interval.low,
        high=interval.high,
    )
