"""How many items are needed: n planned before the run, so that an effect that is there will be seen.

Power need not grow with n: what is counted is whole, so one item more can make a test stricter than it makes it stronger. Each n returned reaches the
power that is asked for, and so does every larger n that was looked at: some multiples of sqrt(n) further on, beyond which the saw's teeth are too small.
"""

import math
from collections.abc import Callable

import numpy as np

from loopkit.metrics.checks import fraction

LARGEST = 2**20


def n_for_paired(only_first: float, only_second: float, *, power: float = 0.8, alpha: float = 0.05) -> int:
    """How many items `mcnemar` needs to find the better arm: p <= `alpha`, two-sided, and in the right direction.

    In a share `only_first` of all items only the first arm is right, in `only_second` only the second. The power is exact: the number of
    discordant pairs is binomial, and given it, so is how many of them fall to the better arm.
    Raises ValueError for shares that are equal or impossible.
    """
    discordant = only_first + only_second
    if not (only_first >= 0 and only_second >= 0 and discordant <= 1):
        raise ValueError(
            f"only_first and only_second must be shares of all items, got {only_first} and {only_second}"
        )
    if only_first == only_second:
        raise ValueError(
            f"only_first and only_second are both {only_first}: no n shows a difference that is not there"
        )
    fraction(power, "power")
    fraction(alpha, "alpha")
    from scipy.stats import binom

    better = max(only_first, only_second) / discordant

    def power_at(n: int) -> float:
        low, high = binom.interval(1 - 1e-12, n, discordant)
        pairs = np.arange(low, high + 1)
        most_by_chance = binom.isf(alpha / 2, pairs, 0.5)
        return float(binom.pmf(pairs, n, discordant) @ binom.sf(most_by_chance, pairs, better))

    return _smallest(power_at, power)


def n_for_bound(rate: float, bound: float, *, power: float = 0.8) -> int:
    """How many trials it takes until the whole 95 % interval of `accuracy` lies on the same side of `bound` as `rate` does.

    Raises ValueError for a rate or a bound outside [0, 1], or where they are equal.
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

    `sd` is the standard deviation of the differences, in the unit of `effect`. `permutation` needs about as many.
    Raises ValueError for an effect of 0 or a standard deviation that is not positive.
    """
    if effect == 0 or not math.isfinite(effect):
        raise ValueError(
            f"effect must be a finite number other than 0, got {effect}: no n shows one that is not there"
        )
    if not 0 < sd < math.inf:
        raise ValueError(f"sd must be a positive number, got {sd}")
    fraction(power, "power")
    fraction(alpha, "alpha")
    from statsmodels.stats.power import TTestPower

    return _smallest(lambda n: float(TTestPower().power(abs(effect) / sd, n, alpha)), power)


def _smallest(power_at: Callable[[int], float], power: float) -> int:
    """The smallest n >= 2 from which on, as far as we look, `power` is reached."""
    enough = 2
    while power_at(enough) < power:
        enough *= 2
        if enough > LARGEST:
            raise ValueError(f"more than {LARGEST} would be needed: the effect is too small to be shown")
    short = enough // 2
    while enough - short > 1:
        middle = (short + enough) // 2
        if power_at(middle) < power:
            short = middle
        else:
            enough = middle
    for n in range(enough, enough + 5 * math.isqrt(enough) + 20):
        if power_at(n) < power:
            short = n
    return short + 1
