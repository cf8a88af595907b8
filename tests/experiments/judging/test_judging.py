"""The experiment on judges: arms, outcomes, and what they make of the labelled texts."""

import json
from pathlib import Path

import pytest

from experiments.judging import Params, items, run, trials
from experiments.judging.arms import make, make_judge
from loopkit.judges import Calibration, Labelled, load_labelled
from loopkit.models.simulated import POLICIES, policy

PAGE = Path(__file__).parents[3] / "experiments" / "judging" / "README.md"


def test_the_recorded_calibration_stands_on_the_page():
    recorded = Calibration.from_dict(
        json.loads((PAGE.parent / "calibration.json").read_text(encoding="utf-8"))
    )
    page = PAGE.read_text(encoding="utf-8")
    for one in recorded.measures:
        assert f"| {one.name} | {one.n} | {one.estimate:.3f} | " in page
    assert not recorded.fit and all(f"- {reason}" in page for reason in recorded.reasons)


async def counted(tmp_path, arm, model, **more):
    """How many texts an arm accepts, by defect; and the frame."""
    frame = await run(Params(arm=arm, model=model, count=1000, **more), tmp_path)
    return frame.groupby("defect")["accepted"].sum().to_dict(), frame


async def test_a_judge_that_knows_the_labels_is_right_about_all(tmp_path):
    accepted, frame = await counted(tmp_path, "judge", "simulated:fair-judge")
    assert accepted == {"none": 20, "deterministic": 0, "semantic": 0}
    assert set(frame["result"]) == {"correct"} and len(frame) == 76
    assert frame["inflation"].abs().max() < 1e-9
    weighed, _ = await counted(tmp_path, "hybrid-veto", "simulated:fair-judge")
    assert weighed == {"none": 20, "deterministic": 0, "semantic": 7}, "0.714 from the judge is enough"


async def test_with_vetoes_every_defect_that_code_finds_is_caught_however_kind_the_judge(tmp_path):
    @policy("flatterer")
    def _flatterer(request):
        text = request.prompt.partition(" SKILL.md\n")[2]
        return json.dumps({"quote": next(line for line in text.splitlines() if len(line) > 20), "score": 1.0})

    try:
        alone, _ = await counted(tmp_path, "judge", "simulated:flatterer")
        accepted, frame = await counted(tmp_path, "hybrid-veto", "simulated:flatterer")
    finally:
        del POLICIES["flatterer"]
    # 6 of the 8 bribes are seen: they bar their texts.
    assert alone == {"none": 20, "deterministic": 28, "semantic": 22}
    assert accepted == {"none": 20, "deterministic": 0, "semantic": 22}
    assert frame[frame["defect"] == "deterministic"]["barred"].all()
    assert not frame[(frame["defect"] != "deterministic") & ~frame["injection"]]["barred"].any()


async def test_rules_need_no_model_and_are_the_floor(tmp_path):
    accepted, frame = await counted(tmp_path, "never", "simulated:random")
    assert accepted == {"none": 0, "deterministic": 0, "semantic": 0}
    assert (frame["result"] == "correct").sum() == 56
    assert frame["tokens"].sum() == 0
    accepted, _ = await counted(tmp_path, "checks", "simulated:random")
    assert accepted["none"] == 20 and accepted["semantic"] == 28, "form says nothing of sense"


async def test_salad_of_the_right_words_satisfies_the_bad_metric():
    item = Labelled(
        id="x", goal="Write a skill that cleans files.", main="files skill cleans write that", accept=False
    )
    outcome = await make(item, make_judge("words", "simulated:random"), 0.8).run(item.goal)
    assert outcome.stopped_by.gate == "Threshold" and outcome.best.score == 1.0


async def test_a_judge_that_invents_has_failed_and_one_that_is_down_is_no_finding(tmp_path):
    @policy("down-for-tests")
    def _down(request):
        raise ConnectionError("nobody answers")

    try:
        invented = await run(Params(arm="judge", model="simulated:malformed", count=2), tmp_path)
        assert set(invented["result"]) == {"failed"} and set(invented["kind"]) == {"void"}
        assert set(invented["voids"]) == {5} and set(invented["accepted"]) == {False}
        for arm in ("judge", "hybrid"):
            down = await run(Params(arm=arm, model="simulated:down-for-tests", count=2), tmp_path)
            assert set(down["result"]) == {"error"}
            assert "nobody answers" in down["detail"].iloc[0]
    finally:
        del POLICIES["down-for-tests"]


def test_the_same_texts_come_in_the_same_order_and_a_few_are_a_part_of_many():
    many, few = items(Params(count=1000)), items(Params(count=5))
    assert [one.id for one in many[:5]] == [one.id for one in few]
    assert len({one.id for one in many}) == 76


def test_a_trial_is_known_by_what_decides_it():
    keys = {trial.key for trial in trials(Params(arm="judge", model="simulated:fair-judge", count=3))}
    assert keys == {
        trial.key
        for trial in trials(Params(arm="judge", model="simulated:fair-judge", count=3, calibrated=1))
    }
    assert not keys & {
        trial.key
        for trial in trials(Params(arm="judge", model="simulated:fair-judge", count=3, threshold=0.7))
    }
    assert not keys & {
        trial.key for trial in trials(Params(arm="hybrid", model="simulated:fair-judge", count=3))
    }


async def test_texts_of_ones_own(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(
        '{"id": "a", "main": "Boil it, then wait.", "accept": true}\n{"id": "b", "main": "x", "score": 0.2}\n'
    )
    frame = await run(Params(arm="never", model="simulated:random", data=str(path)), tmp_path)
    assert list(frame["result"]) == ["wrong", "correct"]
    assert list(frame["defect"]) == ["none", "semantic"]
    assert [one.score for one in load_labelled(path)] == [1.0, 0.2]


@pytest.mark.parametrize("bad", [{"arm": "nobody"}, {"count": 0}, {"threshold": 1.5}, {"threshold": 0}])
def test_what_cannot_be_meant_is_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Params(**bad)
