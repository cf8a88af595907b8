"""Kappa and Spearman, against scikit-learn and scipy."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from loopkit.metrics import bootstrap, kappa, spearman

GRADES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=25)


def same(found, expected):
    """Equal to 1e-9, where NaN there is None here."""
    assert found == (None if math.isnan(expected) else pytest.approx(expected, abs=1e-9))


@given(GRADES, st.sampled_from([None, "linear", "quadratic"]))
@settings(max_examples=12, deadline=None)
def test_kappa_is_scikit_learns_on_the_whole_scale(pairs, weights):
    first, second = zip(*pairs, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 0 / 0 there
        expected = cohen_kappa_score(first, second, labels=range(1, 6), weights=weights)
    found = kappa(first, second, weights=weights)
    assert found.n == len(pairs)
    same(found.estimate, expected if len({*first, *second}) > 1 else math.nan)
    assert kappa(second, first, weights=weights).estimate == pytest.approx(found.estimate, abs=1e-9)


def test_the_interval_of_kappa_is_a_bootstrap_over_items():
    rng = np.random.default_rng(5)
    first = rng.integers(0, 3, 40)
    second = np.where(rng.uniform(size=40) < 0.7, first, rng.integers(0, 3, 40))

    def written_out(rows):
        agree = np.mean(rows[:, 0] == rows[:, 1])
        chance = sum(np.prod(np.mean(rows == label, axis=0)) for label in range(3))
        return (agree - chance) / (1 - chance)

    expected = bootstrap(np.column_stack([first, second]), written_out)
    found = kappa(first, second)
    assert (found.low, found.high) == (
        pytest.approx(expected.low, abs=1e-9),
        pytest.approx(expected.high, abs=1e-9),
    )
    assert -1 <= found.low < found.estimate < found.high <= 1


def test_labels_may_be_anything_that_can_be_told_apart():
    numbers = kappa([1, 1, 2, 3, 3, 1], [1, 2, 2, 3, 1, 1])
    assert kappa(["a", "a", None, (), (), "a"], ["a", None, None, (), "a", "a"]) == numbers


def test_a_grade_that_nobody_gave_keeps_its_place_on_the_scale():
    first, second = [1, 1, 5, 2, 2], [1, 2, 5, 2, 5]
    whole = cohen_kappa_score(first, second, labels=range(1, 6), weights="quadratic")
    assert kappa(first, second, weights="quadratic").estimate == pytest.approx(whole, abs=1e-9)
    assert abs(whole - cohen_kappa_score(first, second, weights="quadratic")) > 0.01


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=25))
@settings(max_examples=10, deadline=None)
def test_spearman_is_scipys(pairs):
    first, second = zip(*pairs, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a side that does not vary
        expected = spearmanr(first, second).statistic
    same(spearman(first, second).estimate, expected)


def test_the_interval_of_spearman_is_a_bootstrap_over_pairs():
    rows = np.random.default_rng(6).normal(size=(15, 2))
    expected = bootstrap(rows, lambda rows: spearmanr(rows[:, 0], rows[:, 1]).statistic)
    found = spearman(*rows.T)
    assert found.low == pytest.approx(expected.low, abs=1e-9)
    assert found.high == pytest.approx(expected.high, abs=1e-9)


@pytest.mark.parametrize(
    "found", [kappa([1, 2, 3], [1, 2, 3]), spearman([1, 2, 3], [2, 4, 9])], ids=["kappa", "spearman"]
)
def test_perfect_agreement_claims_no_certainty(found):
    assert (found.n, found.estimate, found.low, found.high) == (3, pytest.approx(1), None, None)


@pytest.mark.parametrize("found", [kappa("aa", "aa"), kappa([1], [1], weights="linear"), spearman([1], [2]), spearman([1, 1], [1, 2])])  # fmt: skip
def test_what_does_not_vary_agrees_no_better_than_chance(found):
    assert (found.estimate, found.low, found.high) == (None, None, None)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kappa([], []), "got 0 and 0"),
        (lambda: kappa("ab", "a"), "labels must be equally long and not empty, got 2 and 1"),
        (lambda: kappa([1, math.nan], [1, 2]), "a label is NaN"),
        (lambda: kappa("ab", "ab", weights="linear"), "'a'"),
        (lambda: kappa([1, 2], [1, 2], weights="cubic"), "got 'cubic'"),
        (lambda: spearman([1, 2], [1]), "paired values must be equally long and not empty, got 2 and 1"),
        (lambda: spearman([1, 2], [1, math.inf]), r"second\[1\] must be a finite number, got inf"),
    ],
)
def test_what_cannot_be_compared_is_refused_and_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
