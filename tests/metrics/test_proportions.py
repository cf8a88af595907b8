"""Numbers and their uncertainty, against statsmodels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats import contingency_tables
from statsmodels.stats.proportion import proportion_confint

from loopkit import accuracy, mcnemar


@st.composite
def counts(draw):
    n = draw(st.integers(2, 5000))
    return draw(st.integers(0, n) | st.sampled_from([0, n])), n


@given(counts(), st.floats(0.5, 0.999))
@settings(max_examples=50, deadline=None)
def test_accuracy_has_the_wilson_interval(count, confidence):
    successes, n = count
    found = accuracy(successes, n, confidence)
    low, high = proportion_confint(successes, n, alpha=1 - confidence, method="wilson")
    assert (found.successes, found.n) == (successes, n)
    assert found.estimate == pytest.approx(successes / n, abs=1e-12)
    assert found.low == pytest.approx(low, abs=1e-9)
    assert found.high == pytest.approx(high, abs=1e-9)


def test_the_interval_is_a_95_percent_one_unless_asked_otherwise():
    assert accuracy(30, 40) == accuracy(30, 40, 0.95)
    assert accuracy(30, 40, 0.5).low > accuracy(30, 40).low


@pytest.mark.parametrize(("successes", "n", "estimate"), [(0, 0, None), (0, 1, 0.0), (1, 1, 1.0)])
def test_fewer_than_two_observations_have_no_interval(successes, n, estimate):
    found = accuracy(successes, n)
    assert (found.estimate, found.low, found.high) == (estimate, None, None)


@pytest.mark.parametrize(("successes", "n"), [(-1, 3), (4, 3), (0, -1), (float("nan"), 3)])
def test_impossible_counts_are_refused_and_named(successes, n):
    with pytest.raises(ValueError, match=f"n={n}, got {successes}"):
        accuracy(successes, n)


def test_a_proportion_as_words():
    assert str(accuracy(0, 0)) == "no data"
    assert str(accuracy(1, 1)) == "1/1 = 100.0%"
    low, high = proportion_confint(9, 10, method="wilson")
    assert str(accuracy(9, 10)) == f"9/10 = 90.0% [{100 * low:.1f}%, {100 * high:.1f}%]"


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
