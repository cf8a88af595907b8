"""Several metrics as one score, and guards that no gain can buy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopkit import Failure, Loop, MaxIterations, Threshold
from loopkit.judges import Guard, Metric, Scalar

QUALITY = Metric(name="rmse", reference=0.6, target=0.4, direction="minimise", weight=2)
SPEED = Metric(name="ms", reference=10, target=2, direction="minimise")


def test_worth_is_linear_between_reference_and_target_and_capped_there():
    assert [QUALITY.worth(value) for value in (0.7, 0.6, 0.5, 0.4, 0.1)] == pytest.approx(
        [-0.5, 0, 0.5, 1, 1]
    )
    up = Metric(name="accuracy", reference=0.5, target=0.9, direction="maximise")
    assert [up.worth(value) for value in (0.4, 0.5, 0.7, 0.9, 1.0)] == pytest.approx([-0.25, 0, 0.5, 1, 1])


def test_the_score_is_the_weighted_mean():
    verdict = Scalar(metrics=[QUALITY, SPEED])("model", {"rmse": 0.5, "ms": 4, "other": 1})
    assert verdict.score == pytest.approx((2 * 0.5 + 0.75) / 3)
    assert verdict.dimensions == pytest.approx({"rmse": 0.5, "ms": 0.75})
    assert verdict.evidence == {"rmse": "rmse = 0.5", "ms": "ms = 4"}
    assert verdict.barred is None


async def test_a_smaller_faster_worse_model_is_discarded_however_much_faster_it_is():
    measured = [{"rmse": 0.5, "ms": 9}, {"rmse": 0.55, "ms": 0.001}, {"rmse": 0.49, "ms": 9.5}]
    heavy = Metric(name="ms", reference=10, target=2, direction="minimise", weight=100)
    scalar = Scalar(metrics=[QUALITY, heavy], guards=[Guard(name="rmse", at_most=0.52)])

    def loop(judge):
        return Loop(
            propose=lambda goal, history: len(history),
            execute=lambda turn: measured[turn],
            judge=judge,
            gates=[Threshold(0.9), MaxIterations(3)],
        )

    unguarded = await loop(Scalar(metrics=[QUALITY, heavy])).run()
    assert unguarded.best.number == 2 and unguarded.stopped_by.gate == "Threshold"
    guarded = await loop(scalar).run()
    assert [turn.decision for turn in guarded.history] == ["keep", "discard", "discard"]
    assert guarded.stopped_by.gate == "MaxIterations" and guarded.best.number == 1
    assert guarded.history[1].score > guarded.history[0].score
    assert "rmse is 0.55, and must be at most 0.52" in guarded.history[1].verdict.barred
    assert guarded.history[1].verdict.feedback.blocking == ("rmse is 0.55, and must be at most 0.52",)


@given(
    st.floats(-1e6, 1e6), st.floats(-1e6, 1e6).filter(lambda x: abs(x) > 1e-3), st.floats(-1e6, 1e6), st.floats(0.01, 1e3)
)  # fmt: skip
def test_better_is_never_worth_less(reference, width, value, step):
    direction = "maximise" if width > 0 else "minimise"
    metric = Metric(name="m", reference=reference, target=reference + width, direction=direction)
    better = value + math.copysign(step, width)
    assert metric.worth(value) <= metric.worth(better) <= 1


@pytest.mark.parametrize("value", [None, "fast", float("nan"), float("inf"), True])
def test_what_was_not_measured_is_a_typed_failure(value):
    scalar = Scalar(metrics=[SPEED], guards=[Guard(name="mb", at_most=5)])
    with pytest.raises(Failure, match="unmeasured: 'ms' must be a finite number") as raised:
        scalar("x", {"ms": value, "mb": 1})
    assert raised.value.kind == "unmeasured"
    for observation in ({"ms": 3}, None, "ms", [3]):
        with pytest.raises(Failure, match="unmeasured: no '"):
            scalar("x", observation)


def test_guards_hold_on_both_sides():
    guard = Guard(name="mb", at_least=1, at_most=5)
    assert (guard.broken(1), guard.broken(5)) == (None, None)
    assert guard.broken(0.5) == "mb is 0.5, and must be at least 1"
    assert guard.broken(6) == "mb is 6, and must be at most 5"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scalar(metrics=[]), "one or more metrics"),
        (lambda: Scalar(metrics=[SPEED, SPEED]), "names of their own"),
        (lambda: Guard(name="mb"), "needs at_least= or at_most="),
        (lambda: Guard(name="mb", at_least=2, at_most=1), "nothing can meet"),
        (lambda: Guard(name="mb", at_most=float("nan")), "at_most must be a finite number, got nan"),
        (lambda: Metric(name="m", reference=1, target=1, direction="maximise"), "target must be better"),
        (lambda: Metric(name="m", reference=1, target=2, direction="minimise"), "target must be better"),
        (lambda: Metric(name="m", reference=1, target=2, direction="up"), "got 'up'"),
        (
            lambda: Metric(name="m", reference=1, target=2, direction="maximise", weight=0),
            "weight must be > 0",
        ),
        (
            lambda: Metric(name="m", reference=1, target=math.inf, direction="maximise"),
            "target must be a finite",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
