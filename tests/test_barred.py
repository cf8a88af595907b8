"""Verdicts that may not stop a loop: vetoes, broken guards, judges that failed."""

import pytest

from loopkit import BestOf, Loop, MaxIterations, Stagnation, Threshold, Verdict


def barred(score, **more):
    return Verdict(score=score, barred="a veto", **more)


async def run_verdicts(*verdicts, gates=(), **options):
    loop = Loop(
        propose=lambda goal, history: len(history),
        execute=lambda turn: verdicts[turn],
        judge=lambda turn, verdict: verdict,
        gates=[*gates, MaxIterations(len(verdicts))],
        **options,
    )
    return await loop.run()


@pytest.mark.parametrize("direction", ["maximise", "minimise"])
async def test_what_is_barred_never_opens_the_threshold_and_is_worse_than_anything_else(direction):
    best, worst = (1.0, 0.0) if direction == "maximise" else (0.0, 1.0)
    verdicts = [barred(best), Verdict(score=worst), barred(best), barred(best, fallback="error")]
    gate = Threshold(best)
    outcome = await run_verdicts(*verdicts, gates=[gate], direction=direction)
    assert outcome.stopped_by.gate == "MaxIterations"
    assert [turn.decision for turn in outcome.history] == ["keep", "keep", "discard", "discard"]
    assert gate.nearness(outcome.history[:1]) == 0.0


async def test_among_barred_candidates_the_score_decides():
    outcome = await run_verdicts(barred(0.2), barred(0.5), barred(0.4))
    assert [turn.decision for turn in outcome.history] == ["keep", "keep", "discard"]


async def test_the_first_that_is_not_barred_is_a_gain():
    gate = Stagnation(patience=2)
    moved = await run_verdicts(barred(0.9), barred(0.9), Verdict(score=0.1), gates=[gate])
    assert moved.stopped_by.gate == "MaxIterations"
    stuck = await run_verdicts(barred(0.9), barred(0.8), barred(0.9), Verdict(score=0.1), gates=[gate])
    assert (stuck.stopped_by.gate, len(stuck.history)) == ("Stagnation", 3)


async def test_of_several_candidates_one_that_is_not_barred_is_taken():
    loop = Loop(
        propose=lambda goal, history: BestOf([barred(0.9), Verdict(score=0.2), Verdict(score=0.3)]),
        execute=lambda verdict: verdict,
        judge=lambda candidate, verdict: verdict,
        gates=[MaxIterations(1)],
    )
    assert (await loop.run()).best.score == 0.3


def test_a_fallback_must_say_what_went_wrong():
    with pytest.raises(ValueError, match="a fallback verdict must be barred"):
        Verdict(score=0.0, fallback="error")
