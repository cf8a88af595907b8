"""Judges in pydantic-evals and its evaluators in loopkit, each run for real by the other."""

import json
import sys
from dataclasses import dataclass

import pytest
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains, EqualsExpected, EvaluationReason, Evaluator, IsInstance

from loopkit import Loop, MaxIterations, Threshold
from loopkit.judges import Dimension, LabelError, Material, RubricJudge, calibrate
from loopkit.judges.evals import as_evaluator, from_evaluator, labelled_items, load_items
from loopkit.judges.rubric import truth
from loopkit.verdict import Failure, Feedback, Verdict
from tests.judges.biased import items


@dataclass(repr=False)
class Says(Evaluator):
    what: object

    def evaluate(self, ctx):
        return self.what


async def reported(judge, **settings):
    dataset = Dataset(name="d", cases=[Case(name="a", inputs="x"), Case(name="b", inputs="y")], evaluators=[])
    dataset.add_evaluator(as_evaluator(judge, **settings))
    report = await dataset.evaluate(lambda inputs: inputs * 3, progress=False)
    return {case.name: case for case in report.cases}


async def test_a_judge_scores_a_data_set():
    def judge(candidate, observation=None):
        return Verdict(
            score=0.9 if candidate == "xxx" else 0.5,
            dimensions={"clear": 0.7},
            feedback=Feedback(blocking=["too short"], suggestions=["add a y"]),
            voids={"complete": "quote not in the material"},
            barred="no licence" if candidate == "xxx" else None,
        )

    cases = await reported(judge, name="mine", threshold=0.4)
    assert {name: one.value for name, one in cases["a"].scores.items()} == {"mine": 0.9, "mine.clear": 0.7}
    assert cases["b"].scores["mine"].value == 0.5
    accepted = {name: case.assertions["mine.accepted"].value for name, case in cases.items()}
    assert accepted == {"a": False, "b": True}
    reason = cases["a"].scores["mine"].reason
    for word in ("no licence", "too short", "add a y", "complete is void"):
        assert word in reason


async def test_a_plain_number_without_a_threshold_is_one_score():
    cases = await reported(lambda candidate, observation=None: 0.25)
    assert {name: (one.value, one.reason) for name, one in cases["a"].scores.items()} == {
        "judge": (0.25, None)
    }
    assert cases["a"].assertions == {}


async def test_what_is_judged_can_be_made_of_the_whole_context():
    seen = []
    made = lambda context: Material(main=context.output, goal=context.inputs)  # noqa: E731
    await reported(lambda candidate, observation=None: seen.append(candidate) or 1, candidate=made)
    assert sorted(seen, key=lambda one: one.main) == [Material(main=3 * c, goal=c) for c in "xy"]


async def test_a_judge_that_fails_is_a_failure_in_the_report_and_no_score():
    def judge(candidate, observation=None):
        if candidate == "xxx":
            raise ConnectionError("no route")
        return 1

    cases = await reported(judge)
    assert cases["a"].scores == {} and "no route" in cases["a"].evaluator_failures[0].error_message
    assert cases["b"].scores["judge"].value == 1 and cases["b"].evaluator_failures == []


async def test_a_rubric_judge_scores_a_data_set():
    anchors = {1: "yes", 0: "no"}
    judge = RubricJudge("simulated:fair-judge", [Dimension(name="clear", question="Clear?", anchors=anchors)])
    dataset = Dataset(name="d", cases=[Case(inputs="Fold the towels. Iron the shirts.")])
    dataset.add_evaluator(as_evaluator(judge))
    token = truth.set({"clear": 0.75})
    report = await dataset.evaluate(lambda inputs: inputs, progress=False)
    truth.reset(token)
    (case,) = report.cases
    assert {name: one.value for name, one in case.scores.items()} == {"judge": 0.75, "judge.clear": 0.75}


@pytest.mark.parametrize(
    ("given", "score", "dimensions"),
    [
        (True, 1.0, {"Says": 1.0}),
        (False, 0.0, {"Says": 0.0}),
        (0.3, 0.3, {"Says": 0.3}),
        (EvaluationReason(value=0.3, reason="dull"), 0.3, {"Says": 0.3}),
        ({"a": True, "b": 0.5, "c": "funny"}, 0.75, {"a": 1.0, "b": 0.5}),
        ({"a": EvaluationReason(value=False), "b": 1}, 0.5, {"a": 0.0, "b": 1.0}),
    ],
)
async def test_whatever_an_evaluator_gives_is_a_verdict(given, score, dimensions):
    verdict = await from_evaluator(Says(given))("x", None)
    assert (verdict.score, verdict.dimensions) == (score, dimensions)


async def test_reasons_are_feedback():
    given = {
        "a": EvaluationReason(value=False, reason="no end"),
        "b": EvaluationReason(value=0.5, reason="dull"),
        "c": EvaluationReason(value=True, reason="has a title"),
        "d": False,
    }
    verdict = await from_evaluator(Says(given))("x")
    assert verdict.feedback.blocking == ("a: no end", "d: it does not hold")
    assert verdict.feedback.suggestions == ("b: dull",)


@pytest.mark.parametrize("given", ["funny", {"tone": "funny"}, {}])
async def test_a_label_alone_is_no_score(given):
    with pytest.raises(Failure, match="unscored"):
        await from_evaluator(Says(given))("x")


async def test_evaluators_that_ship_with_it_are_judges():
    assert (await from_evaluator(Contains(value="b"))("abc")).score == 1
    assert (await from_evaluator(Contains(value="b"))(Material(main="xyz"))).score == 0
    assert (await from_evaluator(IsInstance(type_name="str"))("x")).score == 1
    assert (await from_evaluator(EqualsExpected(), expected_output="x")("y")).score == 0


async def test_an_evaluator_stops_a_loop():
    loop = Loop(
        propose=lambda goal, history: "a" * (len(history) + 1),
        execute=lambda candidate: None,
        judge=from_evaluator(Contains(value="aaa")),
        gates=[Threshold(1.0), MaxIterations(9)],
    )
    outcome = await loop.run("a")
    assert len(outcome.history) == 3 and outcome.stopped_by.gate == "Threshold"


@pytest.mark.parametrize("suffix", ["yaml", "json"])
async def test_a_data_set_is_read_back_as_labelled_items(tmp_path, suffix):
    labelled = items(24)
    cases = [
        Case(
            name=item.id,
            inputs={"main": item.main, "goal": item.goal},
            metadata={"scores": item.scores, "reviewer": "somebody"},
        )
        for item in labelled
    ]
    path = tmp_path / f"set.{suffix}"
    Dataset(name="set", cases=cases, evaluators=[Says("unknown to the reader")]).to_file(
        path, schema_path=None
    )
    read = labelled_items(path)
    assert [(one.id, one.material) for one in read] == [(one.id, one.material) for one in labelled]
    assert [one.score for one in read] == pytest.approx([one.score for one in labelled])
    assert (await calibrate(lambda candidate, observation=None: 0.5, read, probes=()))["kappa"].n == 24


def test_cases_are_items_of_a_trial(tmp_path):
    path = tmp_path / "sums.json"
    cases = [
        {"inputs": {"a": 1}, "expected_output": 2, "evaluators": ["Unknown"]},
        {"name": "b", "inputs": 3},
    ]
    path.write_text(json.dumps({"cases": cases, "report_evaluators": ["Unknown"]}))
    assert [one.params for one in load_items(path)] == [
        {"name": "Case 1", "inputs": {"a": 1}, "expected_output": 2, "metadata": None},
        {"name": "b", "inputs": 3, "expected_output": None, "metadata": None},
    ]
    with pytest.raises(LabelError, match="'Case 1' is no labelled material"):
        labelled_items(path)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "null", "cases: 3", "cases: [{name: a}]", "cases: [1]", "cases: []\ncolour: red", "a: b: c"],
)
def test_what_is_no_data_set_is_refused(tmp_path, text):
    for suffix in ("yaml", "json"):
        path = tmp_path / f"bad.{suffix}"
        path.write_text(text)
        with pytest.raises(LabelError, match=f"bad.{suffix} is no pydantic-evals data set"):
            load_items(path)


def test_a_label_that_is_none_is_named(tmp_path):
    path = tmp_path / "set.yaml"
    path.write_text("cases: [{name: a, inputs: text, metadata: {score: 7}}]")
    with pytest.raises(LabelError, match=r"'a'.*score.*less than or equal to 1"):
        labelled_items(path)


def test_without_pydantic_evals_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_evals", None)
    for call in (lambda: as_evaluator(max), lambda: from_evaluator(Says(1)), lambda: load_items(tmp_path)):
        with pytest.raises(ImportError, match=r"pip install 'loopkit\[evals\]'"):
            call()
