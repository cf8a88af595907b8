"""Means and bootstrap intervals, against statsmodels, scipy and formulas written out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from loopkit.metrics import Estimate, bootstrap, mean

NUMBERS = st.lists(st.integers(-1000, 1000).map(lambda n: n / 8), min_size=2, max_size=30)
VARIED = NUMBERS.filter(lambda values: len(set(values)) > 1)


def close(found, low, high):
    assert found.low == pytest.approx(low, rel=1e-9, abs=1e-9)
    assert found.high == pytest.approx(high, rel=1e-9, abs=1e-9)


@given(VARIED, st.floats(0.5, 0.999))
@settings(max_examples=50, deadline=None)
def test_the_mean_has_students_interval(values, confidence):
    found = mean(values, confidence=confidence)
    assert (found.n, found.estimate) == (len(values), pytest.approx(sum(values) / len(values), abs=1e-9))
    close(found, *DescrStatsW(values).tconfint_mean(alpha=1 - confidence))


@given(VARIED, st.data())
@settings(max_examples=50, deadline=None)
def test_clusters_add_what_their_values_share_to_the_error(values, data):
    clusters = data.draw(st.lists(st.sampled_from("abcd"), min_size=len(values), max_size=len(values)))
    found, n, count = mean(values, clusters), len(values), len(set(clusters))
    if count == 1:
        assert (found.low, found.high) == (None, None)
        return
    off = [value - sum(values) / n for value in values]
    shared = sum(off[i] * off[j] for i in range(n) for j in range(n) if clusters[i] == clusters[j])
    half = stats.t.ppf(0.975, count - 1) * math.sqrt(max(shared, 0) / n**2 * count / (count - 1))
    if half > 1e-6:
        close(found, found.estimate - half, found.estimate + half)


@given(VARIED)
@settings(max_examples=25, deadline=None)
def test_a_cluster_for_each_value_changes_nothing(values):
    plain = mean(values)
    close(mean(values, range(len(values))), plain.low, plain.high)


def test_trials_that_repeat_each_other_make_the_interval_of_a_mean_no_shorter():
    values = [1.0, 2.0, 4.0, 3.0]
    plain, repeated = mean(values), mean(np.repeat(values, 5), np.repeat(range(4), 5))
    close(repeated, plain.low, plain.high)
    assert repeated.n == 20


@given(VARIED.filter(lambda values: len(values) > 5), st.floats(0.5, 0.99), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_the_bootstrap_is_a_percentile_interval_as_wide_as_students_asks(values, confidence, seed):
    n = len(values)
    tail = stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf((1 + confidence) / 2, n - 1))
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=300, confidence_level=1 - 2 * tail, method="percentile", rng=seed
    )
    found = bootstrap(values, confidence=confidence, resamples=300, seed=seed)
    assert found.estimate == pytest.approx(np.mean(values), abs=1e-9)
    close(found, *theirs.confidence_interval)


@pytest.mark.parametrize("statistic", [np.median, np.std])
def test_any_statistic_will_do(statistic):
    values = np.random.default_rng(1).exponential(size=20)
    tail = stats.norm.cdf(-math.sqrt(20 / 19) * stats.t.ppf(0.975, 19))
    theirs = stats.bootstrap(
        (values,), statistic, n_resamples=500, confidence_level=1 - 2 * tail, method="percentile", rng=4
    )
    found = bootstrap(values, statistic, resamples=500, seed=4)
    assert found.estimate == pytest.approx(statistic(values), abs=1e-12)
    close(found, *theirs.confidence_interval)


def test_rows_stay_together():
    x = np.arange(12.0)
    assert bootstrap(
        np.column_stack([x, x]), lambda rows: float(np.ptp(rows[:, 0] - rows[:, 1]))
    ) == Estimate(n=12, estimate=0.0, low=None, high=None)
    assert bootstrap(np.column_stack([x, -x]), lambda rows: rows[:, 0].mean()) == bootstrap(x)


def test_many_values_are_resampled_a_part_at_a_time():
    values = np.random.default_rng(2).normal(size=400_000)
    found, expected = bootstrap(values, resamples=100), mean(values)
    assert found.high - found.low == pytest.approx(expected.high - expected.low, rel=0.5)


def test_the_bootstrap_depends_on_nothing_but_its_seed():
    values = [0.1, 0.5, 0.2, 0.9, 0.4, 0.3]
    assert bootstrap(values) == bootstrap(np.array(values), seed=0)
    assert bootstrap(values).low != bootstrap(values, seed=1).low


@pytest.mark.parametrize("values", [[0.1], [0.1] * 7, [3.0, 3.0]])
def test_nothing_is_certain_of_one_value_or_of_values_without_spread(values):
    for found in (mean(values), bootstrap(values), bootstrap(values, np.median)):
        assert (found.n, found.low, found.high) == (len(values), None, None)
        assert found.estimate == pytest.approx(values[0], abs=1e-12)


def test_clusters_with_one_mean_claim_no_certainty():
    found = mean([0.1, 0.2, -0.3] * 3, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert (found.low, found.high) == (None, None)


def test_the_range_of_fewer_than_six_values_is_no_interval():
    for n in range(2, 6):
        assert (bootstrap(range(n)).low, bootstrap(range(n)).high) == (None, None)
        assert 2 * 0.5**n > 0.05, "all values lie to one side of their median"
    found = bootstrap(range(6))
    assert 0 <= found.low < 2.5 < found.high <= 5 and 2 * 0.5**6 < 0.05


def undefined_without_a_one(rows):
    return rows.mean() if (rows == 1).any() else math.nan


def test_resamples_where_a_statistic_is_undefined_are_left_out():
    # A resample of n lacks a value that is there once with probability (1 - 1/n)^n: about 0.35.
    found = bootstrap([1, 2, 3, 4, 5, 6], undefined_without_a_one, resamples=400, seed=3)
    draws = np.array([1, 2, 3, 4, 5, 6.0])[np.random.default_rng(3).integers(6, size=(400, 6))]
    tail = stats.norm.cdf(-math.sqrt(6 / 5) * stats.t.ppf(0.975, 5))
    close(found, *np.quantile(draws[(draws == 1).any(axis=1)].mean(axis=1), [tail, 1 - tail]))


def test_a_statistic_that_is_mostly_undefined_has_no_interval():
    def all_there(rows):
        return rows[0] if len(set(rows)) == 6 else math.nan  # 6! / 6^6 of the resamples: 1.5 %

    assert bootstrap([3, 2, 1, 6, 5, 4], all_there) == Estimate(n=6, estimate=3.0, low=None, high=None)
    assert bootstrap([2, 3], undefined_without_a_one) == Estimate(n=2, estimate=None, low=None, high=None)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean([]), "values must not be empty"),
        (lambda: mean([1, math.nan]), r"values\[1\] must be a finite number, got nan"),
        (lambda: mean([[1, 2]]), r"shape \(1, 2\)"),
        (lambda: mean([1, 2], ["a"]), "values and clusters must be equally long and not empty, got 2 and 1"),
        (lambda: mean([1, 2], confidence=95), "confidence must lie between 0 and 1, got 95"),
        (lambda: bootstrap([[1, 2], [3, math.inf]], np.mean), r"values\[1, 1\] .* got inf"),
        (lambda: bootstrap([[1, 2], [3, 4]]), r"shape \(2, 2\)"),
        (lambda: bootstrap([1, 2], resamples=0), "resamples must be >= 1, got 0"),
        (lambda: bootstrap([1, 2], confidence=1), "confidence must lie between 0 and 1, got 1"),
    ],
)
def test_what_cannot_be_computed_is_refused_and_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_estimate_as_words():
    assert str(Estimate(n=60, estimate=0.42, low=0.31, high=0.55)) == "0.42 [0.31, 0.55], n = 60"
    assert str(Estimate(n=1, estimate=0.42, low=None, high=None)) == "0.42, n = 1"
    assert str(Estimate(n=3, estimate=None, low=None, high=None)) == "undefined, n = 3"
    assert str(Estimate(n=9, estimate=2e-4, low=1e-4, high=3e-4)) == "0.0002 [0.0001, 0.0003], n = 9"
    assert str(Estimate(n=9, estimate=-0.001, low=None, high=None)) == "0.00, n = 9"
