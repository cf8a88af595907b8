"""Two arms on the same items: does one do better?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopkit.metrics.checks import column, same_length, yes_or_no
from loopkit.metrics.intervals import mean
from loopkit.metrics.proportions import accuracy


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
    interval is made of the two arms' Wilson intervals and their correlation (R. G. Newcombe, Statistics in Medicine
    17, 1998, 2635-2650, method 10); it does not turn the test round, so near p = 0.05 the two need not agree.
    Raises ValueError when the sequences are empty, differ in length, or hold something that is neither yes nor no.
    """
    same_length(first, second, "paired outcomes")
    first, second = yes_or_no(first, "first"), yes_or_no(second, "second")
    n, both = len(first), int((first & second).sum())
    only_first, only_second = int(first.sum()) - both, int(second.sum()) - both
    p = 1.0
    if only_first + only_second:
        from scipy.stats import binomtest

        p = float(binomtest(only_first, only_first + only_second, 0.5).pvalue)
    low, high = _newcombe(both, only_first, only_second, n) if n > 1 else (None, None)
    return Paired(
        n=n,
        only_first=only_first,
        only_second=only_second,
        effect=(only_first - only_second) / n,
        p=p,
        low=low,
        high=high,
    )


def _newcombe(both: int, only_first: int, only_second: int, n: int) -> tuple[float, float]:
    one, two = accuracy(both + only_first, n), accuracy(both + only_second, n)
    margins = one.successes * (n - one.successes) * two.successes * (n - two.successes)
    together = both * (n - both - only_first - only_second) - only_first * only_second
    if together > 0:
        together = max(
            together - n / 2, 0
        )  # corrected for continuity, so that arms that agree have no width 0
    correlation = together / math.sqrt(margins) if margins else 0.0

    def reach(a: float, b: float) -> float:
        return math.sqrt(a**2 - 2 * correlation * a * b + b**2)

    effect = one.estimate - two.estimate
    low = effect - reach(one.estimate - one.low, two.high - two.estimate)
    return low, effect + reach(one.high - one.estimate, two.estimate - two.low)


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
    """Permutation test of the mean difference of paired scores (R. A. Fisher, The Design of Experiments, 1935).

    The null says that an item's two scores might as well be swapped. Where there are no more than `resamples` ways of
    swapping (2^n), all are looked at. Else that many are drawn, and p is (r + 1) / (resamples + 1) for r of them with a
    mean difference at least as far from 0 (B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 9, 2010).
    The interval is that of `mean` for the differences. Raises ValueError when the sequences are empty, differ in
    length, or hold a number that is not finite.
    """
    same_length(first, second, "paired scores")
    if resamples < 1:
        raise ValueError(f"resamples must be >= 1, got {resamples}")
    differences = column(first, "first") - column(second, "second")
    interval = mean(differences)
    return PairedMeans(
        n=len(differences),
        effect=interval.estimate,
        p=_swapping_p(differences, resamples, seed) if len(differences) > 1 else 1.0,
        exact=2 ** len(differences) <= resamples,
        low=interval.low,
        high=interval.high,
    )


def _swapping_p(differences: np.ndarray, resamples: int, seed: int) -> float:
    from scipy.stats import permutation_test

    largest = np.abs(differences).max() or 1.0

    def distance(swapped: np.ndarray, axis: int) -> np.ndarray:
        # Rounded: what is equal on paper differs in its last bits when summed with other signs, and ties count.
        return np.round(np.abs(np.mean(swapped, axis=axis)) / largest, 12)

    test = permutation_test(
        (differences,),
        distance,
        permutation_type="samples",  # of a single sample: changes of sign
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, 1_000_000 // len(differences)),
        alternative="greater",
        rng=seed,
    )
    return float(test.pvalue)
