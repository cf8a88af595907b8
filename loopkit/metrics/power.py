"""How many items show an effect: n planned before the run.

Each n returned reaches the power asked for, and so does every larger n that was looked at. That is not the first n
to reach it: counts are whole, so with one more item a test can get stricter faster than it gets stronger, and power
against n is a saw. Looked at are some multiples of sqrt(n) more, which is further than the saw's teeth reach.

Of several claims that are corrected together (`holm`), each has the power asked for at `alpha` divided by their number.
"""

import math
from collections.abc import Callable

import numpy as np

from loopkit.metrics.checks import fraction

LARGEST = 2**20


def n_for_paired(only_first: float, only_second: float, *, power: float = 0.8, alpha: float = 0.05) -> int:
    """How many items `mcnemar` needs to find the better arm: p < `alpha`, two-sided, and in the right direction.

    On a share `only_first` of all items only the first arm is right, on `only_second` only the second. The power is
    exact: how many pairs are discordant is binomial, and so is, given that, how many of them fall to the better arm.
    Raises ValueError for shares that are impossible, or equal: no n would do.
    """
    discordant = only_first + only_second
    if not (only_first >= 0 and only_second >= 0 and discordant <= 1):
        raise ValueError(
            f"only_first and only_second must be shares of all items, got {only_first} and {only_second}"
        )
    if only_first == only_second:
        raise ValueError(f"only_first and only_second are both {only_first}: no n shows a difference")
    fraction(power, "power")
    fraction(alpha, "alpha")
    from scipy.stats import binom

    better = max(only_first, only_second) / discordant

    def power_at(n: int) -> float:
        low, high = binom.interval(1 - 1e-12, n, discordant)
        pairs = np.arange(low, high + 1)
        most_by_chance = binom.isf(alpha / 2, pairs, 0.5)
        # A claim asks for p below alpha: a tail of exactly alpha / 2 is by chance, too.
        most_by_chance += binom.sf(most_by_chance, pairs, 0.5) >= alpha / 2 * (1 - 1e-12)
        return float(binom.pmf(pairs, n, discordant) @ binom.sf(most_by_chance, pairs, better))

    return _smallest(power_at, power)


def n_for_bound(rate: float, bound: float, *, power: float = 0.8) -> int:
    """How many trials at `rate` put the whole 95 % interval of `accuracy` on that side of `bound` where `rate` is.

    Raises ValueError for a rate or a bound outside [0, 1], or where they are equal: no n would do.
    """
    if not (0 <= rate <= 1 and 0 <= bound <= 1):
        raise ValueError(f"rate and bound must lie between 0 and 1, got {rate} and {bound}")
    if rate == bound:
        raise ValueError(f"rate and bound are both {rate}: no n sets them apart")
    fraction(power, "power")
    if rate < bound:
        rate, bound = 1 - rate, 1 - bound
    from scipy.stats import binom, norm

    def power_at(n: int) -> float:
        # Wilson's interval is the score test turned round: it lies above the bound when the test rejects the bound.
        most_by_chance = math.floor(n * bound + norm.isf(0.025) * math.sqrt(n * bound * (1 - bound)))
        return float(binom.sf(most_by_chance, n, rate))

    return _smallest(power_at, power)


def n_for_means(effect: float, sd: float, *, power: float = 0.8, alpha: float = 0.05) -> int:
    """How many items a two-sided paired t test needs to find a mean difference of `effect`.

    `sd` is the standard deviation of the items' differences, in the unit of `effect`. `permutation` needs about as
    many. Raises ValueError for an effect of 0 (no n would do) or a standard deviation that is not positive.
    """
    if effect == 0 or not math.isfinite(effect):
        raise ValueError(f"effect must be a finite number other than 0, got {effect}: no n shows it")
    if not 0 < sd < math.inf:
        raise ValueError(f"sd must be a positive number, got {sd}")
    fraction(power, "power")
    fraction(alpha, "alpha")
    from scipy.stats import f, ncf

    def power_at(n: int) -> float:
        # The square of t is F. The non-central t, which statsmodels' TTestPower takes, is NaN for many a large effect.
        return float(ncf.sf(f.isf(alpha, 1, n - 1), 1, n - 1, n * (effect / sd) ** 2))

    return _smallest(power_at, power)


def _smallest(power_at: Callable[[int], float], power: float) -> int:
    """The smallest n >= 2 from which on, as far as we look, `power` is reached."""
    enough = 2
    while not power_at(enough) >= power:  # NaN is not enough
        enough *= 2
        if enough > LARGEST:
            raise ValueError(f"more than {LARGEST} would be needed: the effect is too small to be shown")
    short = enough // 2
    while enough - short > 1:
        middle = (short + enough) // 2
        if not power_at(middle) >= power:
            short = middle
        else:
            enough = middle
    for n in range(enough, enough + 5 * math.isqrt(enough) + 20):
        if not power_at(n) >= power:
            short = n
    return short + 1
