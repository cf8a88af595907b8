"""Two arms on the same items, against statsmodels, all swaps, and published examples."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import sem, t
from statsmodels.stats import contingency_tables

from loopkit.metrics import mcnemar, permutation


def outcomes(both, only_first, only_second, neither):
    first = [True] * (both + only_first) + [False] * (only_second + neither)
    return first, [True] * both + [False] * only_first + [True] * only_second + [False] * neither


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
@settings(max_examples=50, deadline=None)
def test_mcnemar_is_the_exact_test_on_the_paired_table(pairs):
    first, second = zip(*pairs, strict=True)
    found = mcnemar(first, second)
    table = [[pairs.count((a, b)) for b in (True, False)] for a in (True, False)]
    assert (found.n, found.only_first, found.only_second) == (len(pairs), table[0][1], table[1][0])
    assert found.effect == pytest.approx((sum(first) - sum(second)) / len(pairs), abs=1e-12)
    if table[0][1] + table[1][0]:
        assert found.p == pytest.approx(contingency_tables.mcnemar(table, exact=True).pvalue, abs=1e-9)
    else:
        assert found.p == 1.0
    swapped = mcnemar(second, first)
    assert (swapped.p, swapped.effect) == (found.p, -found.effect)


def test_mcnemar_takes_arrays():
    first, second = [True, True, False, True], [False, True, True, False]
    assert mcnemar(np.array(first), np.array(second)) == mcnemar(first, second)
    with pytest.raises(ValueError, match="got 0 and 0"):
        mcnemar(np.array([]), np.array([]))


@pytest.mark.parametrize(("first", "second"), [([], []), ([True], []), ([True], [True, False])])
def test_outcomes_that_are_not_paired_are_refused(first, second):
    with pytest.raises(ValueError, match=f"got {len(first)} and {len(second)}"):
        mcnemar(first, second)


# The intervals that R's contingencytables prints, to the digits it prints, for Cavo et al. 2012; and for Bentur et al.
# 2009 those of Fagerland, Lydersen and Laake, Statistics in Medicine 33 (2014).
@pytest.mark.parametrize(
    ("table", "low", "high", "digits"),
    [((59, 6, 16, 80), -0.1186, -0.0046, 4), ((1, 1, 7, 12), -0.507, -0.026, 3)],
    ids=["Cavo", "Bentur"],
)
def test_published_intervals_of_the_effect(table, low, high, digits):
    found = mcnemar(*outcomes(*table))
    assert (round(found.low, digits), round(found.high, digits)) == (low, high)


def newcombe(a, b, c, d):
    """Method 10 from its definition: z of the Wilson equation, phi with its correction, square and add."""
    z, n = 1.959963984540054, a + b + c + d

    def wilson(x):
        return np.sort(np.roots([n * n + n * z * z, -(2 * n * x + n * z * z), x * x]).real)

    (l1, u1), (l2, u2), p1, p2 = wilson(a + b), wilson(a + c), (a + b) / n, (a + c) / n
    numerator, margins = a * d - b * c, (a + b) * (c + d) * (a + c) * (b + d)
    if numerator > 0:
        numerator = numerator - n / 2 if numerator > n / 2 else 0
    phi = numerator / math.sqrt(margins) if margins else 0
    down, up = np.array([p1 - l1, u2 - p2]), np.array([u1 - p1, p2 - l2])
    form = np.array([[1, -phi], [-phi, 1]])
    return p1 - p2 - math.sqrt(down @ form @ down), p1 - p2 + math.sqrt(up @ form @ up)


@given(st.tuples(*[st.integers(0, 30)] * 4).filter(lambda table: sum(table) > 1))
@settings(max_examples=100, deadline=None)
def test_the_interval_of_the_effect_is_newcombes(table):
    found = mcnemar(*outcomes(*table))
    low, high = newcombe(*table)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))
    assert -1 - 1e-12 <= found.low <= found.effect <= found.high <= 1 + 1e-12
    assert found.low < found.high


def test_a_single_item_has_no_interval():
    assert (mcnemar([True], [False]).low, mcnemar([True], [False]).high) == (None, None)


@pytest.mark.parametrize("strange", [2, 0.5, None, math.nan])
def test_what_is_neither_right_nor_wrong_is_refused_and_named(strange):
    with pytest.raises(ValueError, match=r"second\[1\] must be"):
        mcnemar([True, True], [False, strange])


def all_swaps(differences):
    """The share of all 2^n changes of sign with a sum at least as far from 0, in whole numbers."""
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return sum(each >= abs(sum(differences)) for each in sums) / len(sums)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=9))
@settings(max_examples=50, deadline=None)
def test_few_items_are_swapped_in_all_ways(pairs):
    first, second = ([each / 10 for each in side] for side in zip(*pairs, strict=True))
    found = permutation(first, second)
    assert found.exact
    assert found.n == len(pairs)
    assert found.p == pytest.approx(all_swaps([a - b for a, b in pairs]), abs=1e-9)
    assert found.effect == pytest.approx(sum(a - b for a, b in pairs) / 10 / len(pairs), abs=1e-9)
    swapped = permutation(second, first)
    assert (swapped.p, swapped.effect) == (
        pytest.approx(found.p, abs=1e-12),
        pytest.approx(-found.effect, abs=1e-12),
    )


DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_darwins_maize():
    # R. A. Fisher, The Design of Experiments, 1935, section 21: 1,726 of 32,768 ways, "5.267 per cent."
    found = permutation(DARWIN, [0] * 15, resamples=2**15)
    assert found.exact
    assert found.p == pytest.approx(1726 / 32768, abs=1e-12)


def test_many_items_are_swapped_at_random_and_never_give_a_p_of_zero():
    found = permutation(DARWIN, [0] * 15)
    assert not found.exact
    # Three standard deviations of a binomial share of 9,999 draws.
    assert found.p == pytest.approx(1726 / 32768, abs=3 * math.sqrt(0.05 * 0.95 / 9999))
    assert found == permutation(np.array(DARWIN), np.zeros(15), seed=0)
    assert found.p != permutation(DARWIN, [0] * 15, seed=1).p
    assert permutation(range(1, 31), [0] * 30, resamples=99).p == 1 / 100


def test_the_interval_of_a_mean_difference_is_students():
    found = permutation(DARWIN, [0] * 15)
    assert found.effect == pytest.approx(sum(DARWIN) / 15)
    assert (found.low, found.high) == pytest.approx(t.interval(0.95, 14, np.mean(DARWIN), sem(DARWIN)))


@pytest.mark.parametrize(("n", "p"), [(1, 1.0), (3, 0.25)])
def test_differences_without_spread_have_no_interval(n, p):
    found = permutation([0.7] * n, [0.2] * n)
    assert (found.n, found.p, found.exact, found.low, found.high) == (n, p, True, None, None)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: permutation([], []), "got 0 and 0"),
        (lambda: permutation([1, 2], [1]), "paired scores must be equally long and not empty, got 2 and 1"),
        (lambda: permutation([1, math.nan], [1, 2]), r"first\[1\] must be a finite number, got nan"),
        (lambda: permutation([1], [2], resamples=0), "resamples must be >= 1, got 0"),
    ],
)
def test_scores_that_are_not_paired_are_refused_and_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
