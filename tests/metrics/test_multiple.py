"""Holm's correction, against the step-down procedure it stands for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from loopkit.metrics import holm


def step_down(ps, alpha):
    """Which of `ps` are rejected: from the smallest on, as long as each is at most alpha over those not yet rejected."""
    rejected = set()
    for place in sorted(range(len(ps)), key=ps.__getitem__):
        if ps[place] > alpha / (len(ps) - len(rejected)):
            break
        rejected.add(place)
    return rejected


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=8))
@settings(max_examples=20, deadline=None)
def test_an_adjusted_p_is_the_smallest_alpha_at_which_the_procedure_rejects(ps):
    for place, adjusted in enumerate(holm(ps)):
        assert ps[place] <= adjusted <= 1
        assert adjusted == 1 or place in step_down(ps, adjusted + 1e-9)
        assert place not in step_down(ps, adjusted - 1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
@settings(max_examples=5, deadline=None)  # each call there collects garbage
def test_it_is_that_of_statsmodels(ps):
    assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist())


def test_a_worked_example():
    # R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02], abs=1e-12)


def test_a_claim_without_a_test_does_not_count():
    assert holm([0.01, None, 0.04]) == pytest.approx([0.02, None, 0.04], abs=1e-12)
    assert holm([None, None]) == [None, None]
    assert holm([]) == []


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_is_refused_and_named(p):
    with pytest.raises(ValueError, match=rf"ps\[1\] must lie between 0 and 1, got {p}"):
        holm([0.5, p])
