"""Checks and a judge, weighed; vetoes; judges that fail."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopkit import Feedback, Loop, MaxIterations, StoreError, Threshold, Verdict
from loopkit.judges import Check, Hybrid, Material, verdict_of


def passing(name="good"):
    return Check(name=name, test=lambda material: None)


def failing(name="bad", veto=False):
    return Check(name=name, test=lambda material: "no use", veto=veto)


KIND = Verdict(
    score=0.9,
    feedback=Feedback(blocking=["from the judge"], suggestions=["more of it"]),
    dimensions={"clear": 0.9},
    evidence={"clear": "a quote"},
)


async def test_the_weights_are_those_of_the_article():
    hybrid = Hybrid(checks=[passing(), failing()], judge=lambda candidate, observation: KIND)
    verdict = await hybrid("text")
    assert verdict.score == pytest.approx(0.30 * 0.5 + 0.70 * 0.9)
    assert verdict.dimensions == {"checks": 0.5, "judge": 0.9, "clear": 0.9}
    assert verdict.evidence == {"checks": "1 of 2 passed; failed: bad", "clear": "a quote"}
    assert hybrid.gate == Threshold(0.8)
    assert (verdict.barred, verdict.fallback) == (None, None)


async def test_feedback_of_checks_and_judge_is_one_checklist():
    verdict = await Hybrid(checks=[failing()], judge=lambda candidate, observation: KIND)("text")
    assert verdict.feedback.blocking[0].startswith("bad: ") and "no use" in verdict.feedback.blocking[0]
    assert verdict.feedback.blocking[1:] == ("from the judge",)
    assert verdict.feedback.suggestions == ("more of it",)


async def test_a_veto_bars_without_asking_the_judge():
    asked = []
    hybrid = Hybrid(
        checks=[passing(), failing(veto=True)], judge=lambda candidate, observation: asked.append(1) or 1.0
    )
    verdict = await hybrid("text")
    assert (verdict.score, asked) == (pytest.approx(0.15), [])
    assert "veto: bad" in verdict.barred and not verdict.fallback
    assert "judge" not in verdict.dimensions


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.9, 0.1), (0.3, 0.7)])
async def test_a_vetoed_candidate_never_opens_the_threshold_and_loses_to_any_other(weights):
    many = [passing(str(number)) for number in range(99)]
    only_short = Check(name="short", test=lambda material: len(material.main) < 10, veto=True)
    hybrid = Hybrid(
        checks=[*many, only_short], judge=lambda candidate, observation: 0.0, weights=weights, threshold=0.2
    )
    texts = ["much too long a text", "short", "again much too long"]
    loop = Loop(
        propose=lambda goal, history: texts[len(history)],
        execute=lambda text: text,
        judge=hybrid,
        gates=[hybrid.gate, MaxIterations(3)],
    )
    outcome = await loop.run()
    assert outcome.best.candidate == "short"
    assert outcome.history[0].verdict.barred
    assert outcome.history[1].decision == "keep"
    assert outcome.stopped_by.gate == "Threshold" and len(outcome.history) == 2


async def test_a_judge_that_fails_leaves_the_part_of_the_checks_marked():
    def broken(candidate, observation):
        raise RuntimeError("out of credit")

    verdict = await Hybrid(checks=[passing(), failing()], judge=broken)("text")
    assert verdict.fallback and verdict.barred == "the judge failed: RuntimeError: out of credit"
    assert verdict.score == pytest.approx(0.15)
    assert verdict.dimensions == {"checks": 0.5}


@pytest.mark.parametrize("score", [float("nan"), float("inf"), 7, -0.2, "0.9", None])
async def test_a_score_that_is_none_is_a_fallback(score):
    verdict = await Hybrid(checks=[passing()], judge=lambda candidate, observation: score)("text")
    assert verdict.fallback and verdict.score == pytest.approx(0.3)
    assert "the judge failed" in verdict.barred


async def test_the_record_itself_is_no_judge_that_failed():
    def full(candidate, observation):
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="disk is full"):
        await Hybrid(checks=[passing()], judge=full)("text")
    with pytest.raises(StoreError, match="disk is full"):
        await verdict_of(full, "text")


async def test_what_is_judged_is_the_material():
    seen = []
    package = Material(main="from execute")
    hybrid = Hybrid(checks=[passing()], judge=lambda candidate, observation: seen.append(candidate) or 1.0)
    await hybrid("candidate", package)
    await hybrid("candidate", "an observation that is no material")
    own = Hybrid(
        checks=[passing()],
        judge=lambda candidate, observation: seen.append(candidate) or 1.0,
        material=lambda candidate, observation: f"{candidate} and {observation}",
    )
    await own("one", "two")
    assert [one.main for one in seen] == ["from execute", "candidate", "one and two"]


async def test_an_async_judge_and_a_bare_number_are_fine():
    async def judge(candidate, observation):
        return 0.5

    assert (await Hybrid(checks=[passing()], judge=judge)("x")).score == pytest.approx(0.3 + 0.35)


@given(st.floats(0, 1), st.lists(st.booleans(), min_size=1, max_size=8), st.floats(0, 1))
def test_the_score_is_a_weighted_mean_within_bounds(weight, outcomes, judged):
    import asyncio

    checks = [passing(str(i)) if good else failing(str(i)) for i, good in enumerate(outcomes)]
    hybrid = Hybrid(checks=checks, judge=lambda candidate, observation: judged, weights=(weight, 1 - weight))
    verdict = asyncio.run(hybrid("x"))
    share = sum(outcomes) / len(outcomes)
    assert min(share, judged) - 1e-9 <= verdict.score <= max(share, judged) + 1e-9
    assert math.isclose(verdict.score, weight * share + (1 - weight) * judged, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": (0.3, 0.6)}, "must sum to 1"),
        ({"weights": (1.3, -0.3)}, ">= 0"),
        ({"weights": (float("nan"), 0.5)}, "finite"),
        ({"weights": (1.0,)}, "two finite numbers"),
        ({"threshold": 0}, "threshold must lie above 0"),
        ({"threshold": 1.1}, "got 1.1"),
        ({"checks": []}, "needs checks"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Hybrid(**{"checks": [passing()], "judge": lambda candidate, observation: 1.0, **options})
