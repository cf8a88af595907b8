"""pass@k and pass^k, against all ways of picking k trials."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit.metrics import bootstrap, pass_at_k, pass_hat_k


@st.composite
def counts(draw):
    k = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(k, 8), min_size=1, max_size=6))
    return [(n, draw(st.integers(0, n))) for n in sizes], k


def shares(items, k, right):
    """For each item, the share of its picks of k trials that are `right`."""
    picks = [list(combinations([True] * c + [False] * (n - c), k)) for n, c in items]
    return [sum(map(right, each)) / len(each) for each in picks]


@given(counts())
@settings(max_examples=50, deadline=None)
def test_both_are_the_share_of_all_ways_of_picking(drawn):
    items, k = drawn
    for found, right in ((pass_at_k(items, k), any), (pass_hat_k(items, k), all)):
        expected = bootstrap(shares(items, k, right))
        for name in ("n", "estimate", "low", "high"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-9), name


@pytest.mark.parametrize(("n", "c", "k"), [(200, 3, 1), (200, 3, 10), (200, 30, 100), (200, 101, 100)])
def test_pass_at_k_is_the_product_that_its_authors_compute(n, c, k):
    product = 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)) if n - c >= k else 1.0
    assert pass_at_k([(n, c)], k).estimate == pytest.approx(product, abs=1e-9)


def test_one_trial_is_right_as_often_as_all_of_one_and_one_of_one():
    items = [(4, 1), (8, 8), (5, 0)]
    assert pass_at_k(items, 1) == pass_hat_k(items, 1)
    assert pass_at_k(items, 1).estimate == pytest.approx((1 / 4 + 1 + 0) / 3, abs=1e-12)


def test_items_and_not_trials_carry_the_uncertainty():
    assert (pass_at_k([(100, 50)], 2).low, pass_hat_k([(100, 50)], 2).high) == (None, None)


@pytest.mark.parametrize(
    ("items", "k", "message"),
    [
        ([(5, 2), (2, 1)], 3, r"counts\[1\] has 2 trials, too few for k=3"),
        ([(5, 6)], 1, r"counts\[0\]: 6 right of 5 trials is impossible"),
        ([(5, -1)], 1, r"counts\[0\]: -1 right of 5"),
        ([(5, 2)], 0, "k must be >= 1, got 0"),
        ([], 1, "counts must not be empty"),
    ],
)
@pytest.mark.parametrize("statistic", [pass_at_k, pass_hat_k])
def test_impossible_counts_are_refused_and_named(statistic, items, k, message):
    with pytest.raises(ValueError, match=message):
        statistic(items, k)
