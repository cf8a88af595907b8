"""Proportions, against statsmodels and what defines Wilson's interval."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from loopkit.metrics import accuracy, balanced, clustered


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


def test_a_confidence_is_no_percentage():
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1, got 95"):
        accuracy(3, 4, 95)


@st.composite
def trials(draw):
    """Outcomes and the item of each: two items at least, of up to six trials."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=2, max_size=12))
    items = [item for item, size in enumerate(sizes) for _ in range(size)]
    return draw(st.lists(st.booleans(), min_size=len(items), max_size=len(items))), items


def sizes_behind(found, confidence):
    """The n of which `found` is Wilson's interval: at each of its ends b, n (p - b)^2 = z^2 b (1 - b)."""
    z = stats.norm.ppf((1 + confidence) / 2)
    ends = [end for end in (found.low, found.high) if abs(end - found.estimate) > 1e-9]
    return [z**2 * end * (1 - end) / (end - found.estimate) ** 2 for end in ends]


def effective_size(outcomes, items, confidence):
    n, count, rate = len(outcomes), len(set(items)), sum(outcomes) / len(outcomes)
    if rate in (0, 1):
        return count
    off = [outcome - rate for outcome in outcomes]
    shared = sum(off[i] * off[j] for i in range(n) for j in range(n) if items[i] == items[j])
    variance = max(shared, 0) / n**2 * count / (count - 1)
    t = [stats.t.ppf((1 + confidence) / 2, df) for df in (count - 1, n - 1)]
    if variance < 1e-12:
        return count
    return min(count, n * rate * (1 - rate) / (n - 1) / variance * (t[1] / t[0]) ** 2)


@given(trials(), st.sampled_from([0.8, 0.95, 0.99]))
@settings(max_examples=100, deadline=None)
def test_clustered_is_wilsons_interval_at_the_effective_size(drawn, confidence):
    outcomes, items = drawn
    found, expected = clustered(outcomes, items, confidence), effective_size(outcomes, items, confidence)
    assert (found.successes, found.n) == (sum(outcomes), len(outcomes))
    assert found.estimate == pytest.approx(sum(outcomes) / len(outcomes), abs=1e-12)
    for size in sizes_behind(found, confidence):
        assert size == pytest.approx(
            expected, rel=1e-6
        )  # what is left after taking a difference of close numbers
    low, high = proportion_confint(expected * found.estimate, expected, 1 - confidence, method="wilson")
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))


@given(st.lists(st.booleans(), min_size=2, max_size=40))
@settings(max_examples=50, deadline=None)
def test_one_trial_per_item_is_the_plain_interval(outcomes):
    found, plain = clustered(outcomes, range(len(outcomes))), accuracy(sum(outcomes), len(outcomes))
    assert (found.low, found.high) == (
        pytest.approx(plain.low, abs=1e-9),
        pytest.approx(plain.high, abs=1e-9),
    )


def test_trials_that_repeat_each_other_make_the_interval_no_shorter():
    outcomes = [True, True, False, True, False, True, True, True]
    plain = accuracy(sum(outcomes), 8)
    repeated = clustered(np.repeat(outcomes, 10), np.repeat(range(8), 10))
    assert repeated.n == 80
    assert repeated.low < plain.low < plain.high < repeated.high


def test_trials_that_never_fail_are_as_many_as_their_items():
    found, plain = clustered([True] * 60, np.repeat(range(6), 10)), accuracy(6, 6)
    assert (found.low, found.high) == (pytest.approx(plain.low, abs=1e-12), pytest.approx(1, abs=1e-12))


def test_one_trial_that_differs_makes_nothing_certain():
    items = np.repeat(range(10), 100)
    sure, one_wrong = clustered([True] * 1000, items), clustered([False] + [True] * 999, items)
    assert one_wrong.low == pytest.approx(sure.low, abs=0.005) == pytest.approx(accuracy(10, 10).low)


@given(trials(), st.sampled_from([0.8, 0.95]))
@settings(max_examples=50, deadline=None)
def test_balanced_is_wilsons_interval_of_the_items_shares(drawn, confidence):
    outcomes, items = drawn
    of_items = [
        [right for right, one in zip(outcomes, items, strict=True) if one == item] for item in set(items)
    ]
    share = sum(sum(one) / len(one) for one in of_items) / len(of_items)
    found = balanced(outcomes, items, confidence)
    assert (found.successes, found.n) == (sum(outcomes), len(outcomes))
    assert found.estimate == pytest.approx(share, abs=1e-12)
    for size in sizes_behind(found, confidence):
        assert size == pytest.approx(len(of_items), rel=1e-6)
    again = balanced(outcomes * 3, items * 3, confidence)
    assert (again.low, again.high) == (pytest.approx(found.low), pytest.approx(found.high))


def test_an_item_tried_often_weighs_no_more_than_one_tried_once():
    found = balanced([True] * 1000 + [False] * 10, ["easy"] * 1000 + list(range(10)))
    plain = accuracy(1, 11)
    assert (found.estimate, found.low, found.high) == (
        pytest.approx(plain.estimate),
        pytest.approx(plain.low),
        pytest.approx(plain.high),
    )
    assert str(found) == f"9.1% [{plain.low:.1%}, {plain.high:.1%}] by item, 1000/1010 in all"


@pytest.mark.parametrize("share", [clustered, balanced])
def test_trials_of_a_single_item_have_no_interval(share):
    found = share([True, False, True], ["a"] * 3)
    assert (found.successes, found.n, found.low, found.high) == (2, 3, None, None)


@pytest.mark.parametrize(
    ("outcomes", "items", "message"),
    [
        ([], [], "outcomes must not be empty"),
        ([True, 0.5], [1, 2], r"outcomes\[1\] must be True or False, got 0.5"),
        ([True, math.nan], [1, 2], r"outcomes\[1\] must be a finite number, got nan"),
        ([True, True], [1], "got 2 and 1"),
    ],
)
def test_what_is_no_outcome_is_refused_and_named(outcomes, items, message):
    for share in (clustered, balanced):
        with pytest.raises(ValueError, match=message):
            share(outcomes, items)
