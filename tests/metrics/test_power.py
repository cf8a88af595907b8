"""How many items are needed, against the tests themselves, tried on everything that can happen."""

from functools import cache
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp
from statsmodels.stats.power import tt_solve_power

from loopkit.metrics import accuracy, mcnemar, n_for_bound, n_for_means, n_for_paired


@cache
def finds_the_first(only_first, only_second, alpha):
    """Whether `mcnemar` calls the first arm better; pairs that agree leave its p alone."""
    first = [True] * only_first + [False] * only_second
    return only_first > only_second and mcnemar(first, [not each for each in first]).p < alpha


def paired_power(n, a, b, alpha):
    """The probability that `mcnemar` finds the first arm better, over all tables of n items."""
    return sum(
        comb(n, x) * comb(n - x, y) * a**x * b**y * (1 - a - b) ** (n - x - y)
        for x in range(n + 1)
        for y in range(n - x + 1)
        if finds_the_first(x, y, alpha)
    )


@pytest.mark.parametrize(
    ("a", "b", "power", "alpha"),
    [
        (0.5, 0.1, 0.8, 0.05),
        (1.0, 0.0, 0.8, 0.05),
        (0.9, 0.1, 0.9, 0.05),
        (0.7, 0.2, 0.8, 0.01),
        (0.4, 0.0, 0.5, 0.1),
        (1.0, 0.0, 0.8, 0.03125),  # 2 / 2**6: six items reach it, and a claim asks for less
    ],
)
def test_the_exact_mcnemar_test_reaches_its_power_from_n_on_and_not_before(a, b, power, alpha):
    n = n_for_paired(a, b, power=power, alpha=alpha)
    assert n == n_for_paired(b, a, power=power, alpha=alpha)
    assert paired_power(n - 1, a, b, alpha) < power
    for more in range(n, n + 12):
        assert paired_power(more, a, b, alpha) >= power - 1e-9


def test_the_power_of_a_paired_test_is_a_saw():
    # Where all pairs are discordant, some n reaches the power and n + 1 falls short of it again.
    powers = {n: paired_power(n, 0.8, 0.2, 0.05) for n in range(15, 40)}
    n = n_for_paired(0.8, 0.2)
    assert min(powers[more] for more in range(n, 40)) >= 0.8
    assert any(powers[fewer] >= 0.8 for fewer in range(15, n - 1))


@cache
def clears(x, n, bound):
    found = accuracy(x, n)
    return found.low > bound, found.high < bound


def bound_power(n, rate, bound):
    return sum(
        comb(n, x) * rate**x * (1 - rate) ** (n - x)
        for x in range(n + 1)
        if clears(x, n, bound)[rate < bound]
    )


@pytest.mark.parametrize(
    ("rate", "bound", "power"),
    [(0.9, 0.6, 0.8), (0.3, 0.6, 0.9), (1.0, 0.8, 0.8), (0.0, 0.5, 0.8), (0.2, 0.0, 0.8)],
)
def test_the_whole_wilson_interval_clears_the_bound_from_n_on_and_not_before(rate, bound, power):
    n = n_for_bound(rate, bound, power=power)
    assert n == 2 or bound_power(n - 1, rate, bound) < power
    for more in range(n, n + 12):
        assert bound_power(more, rate, bound) >= power - 1e-9


# G*Power's and J. Cohen's figures for a paired t test at alpha 0.05, two-sided, power 0.8.
@pytest.mark.parametrize(("effect", "n"), [(0.2, 199), (0.5, 34), (0.8, 15), (-0.5, 34)])
def test_published_sizes_for_means(effect, n):
    assert n_for_means(effect, 1) == n_for_means(10 * effect, 10) == n


@pytest.mark.parametrize(("effect", "n"), [(2, 5), (5, 3), (8, 3), (20, 2), (50, 2), (1e6, 2)])
def test_large_effects_need_few_items(effect, n):
    # Simulated: 100,000 experiments of n and of n - 1 items.
    rng = np.random.default_rng(0)
    powers = {
        size: (ttest_1samp(rng.normal(effect, 1, size=(size, 100_000)), 0).pvalue < 0.05).mean()
        for size in {n, max(n - 1, 2)}
    }
    assert n_for_means(effect, 1) == min(size for size, power in powers.items() if power >= 0.8)


@given(st.floats(0.1, 1), st.sampled_from([0.5, 0.8, 0.9, 0.95]), st.sampled_from([0.01, 0.05, 0.1]))
@settings(max_examples=15, deadline=None)
def test_the_size_for_means_is_the_next_whole_number_after_the_solution(effect, power, alpha):
    solution = tt_solve_power(effect_size=effect, alpha=alpha, power=power)
    assert n_for_means(effect, 1, power=power, alpha=alpha) - solution == pytest.approx(0.5, abs=0.5 + 1e-6)


def test_more_power_and_smaller_effects_take_more_items():
    assert n_for_paired(0.3, 0.2) > n_for_paired(0.35, 0.15) and n_for_paired(
        0.3, 0.2, power=0.9
    ) > n_for_paired(0.3, 0.2)
    assert n_for_bound(0.8, 0.75) > n_for_bound(0.85, 0.75)
    assert n_for_paired(0.02, 0.01) > 2000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: n_for_paired(0.1, 0.1), "both 0.1: no n"),
        (lambda: n_for_paired(0.0, 0.0), "both 0.0: no n"),
        (lambda: n_for_paired(0.7, 0.4), "got 0.7 and 0.4"),
        (lambda: n_for_paired(-0.1, 0.4), "got -0.1 and 0.4"),
        (lambda: n_for_paired(float("nan"), 0.4), "got nan and 0.4"),
        (lambda: n_for_paired(0.2, 0.1, power=1), "power must lie between 0 and 1, got 1"),
        (lambda: n_for_paired(0.2, 0.1, alpha=0), "alpha must lie between 0 and 1, got 0"),
        (lambda: n_for_paired(0.2, 0.1999), "more than 1048576 would be needed"),
        (lambda: n_for_bound(0.5, 0.5), "both 0.5: no n"),
        (lambda: n_for_bound(1.5, 0.5), "got 1.5 and 0.5"),
        (lambda: n_for_bound(0.6, 0.5, power=80), "power must lie between 0 and 1, got 80"),
        (lambda: n_for_means(0, 1), "got 0: no n"),
        (lambda: n_for_means(float("nan"), 1), "got nan"),
        (lambda: n_for_means(1, 0), "sd must be a positive number, got 0"),
        (lambda: n_for_means(1, 1, alpha=5), "alpha must lie between 0 and 1, got 5"),
    ],
)
def test_what_no_n_would_show_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
