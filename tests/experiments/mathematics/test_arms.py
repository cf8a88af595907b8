"""The arms, from the prompt to the verdict, with scripted and simulated models; grading, and what is measured."""

import ast
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from experiments.mathematics import Params, problems, run
from experiments.mathematics.arms import (
    ARMS,
    Answers,
    Attempt,
    Setting,
    answer_in,
    copied,
    index,
    judge_agreement,
    judge_votes,
    make,
    numbers_unused,
    read_answers,
    run_programs,
)
from experiments.mathematics.grading import PRELOAD, equal
from experiments.mathematics.measures import by_family, libraries, measure, summary
from experiments.mathematics.problems import Problem, generate, shipped, shown
from loopkit.metrics import accuracy
from loopkit.sandbox import Sandbox
from loopkit.store import Store
from loopkit.verdict import Failure

SEVEN = Problem(id="seven", problem="What is 21 divided by 3?", answer="7")


@pytest.fixture(scope="module")
def sandbox():
    box = Sandbox(preload=PRELOAD)
    yield box
    box.close()


def scripted(*answers: str) -> SimpleNamespace:
    """A model that gives these answers in turn, the last one for ever; it keeps what it was told each time."""
    told: list[str] = []

    def answer(messages, info):
        told.append(f"{messages[-1].instructions}\n{messages[-1].parts[-1].content}")
        return ModelResponse(
            parts=[TextPart(answers[min(len(told), len(answers)) - 1])], finish_reason="stop"
        )

    return SimpleNamespace(model=FunctionModel(answer), told=told)


async def played(arm, answers, sandbox, problem=SEVEN, **setting):
    script = scripted(*answers)
    loop = make(arm, problem, Setting(model=script.model, sandbox=sandbox, **setting))
    return await loop.run(problem.problem), script.told


GOOD, ALSO_GOOD = "print(21 // 3)", "n = 21\nprint(n // 3)"


async def test_a_loop_ends_when_two_programs_agree(sandbox):
    outcome, prompts = await played("code-loop", [GOOD, ALSO_GOOD], sandbox)
    assert (outcome.stopped_by.gate, len(outcome.history), outcome.best.observation.answer) == (
        "Threshold",
        2,
        "7",
    )
    assert outcome.history[0].verdict.dimensions == {"valid": 1.0, "accounted": 1.0, "agrees": 0.0}
    assert len(prompts) == 2


async def test_one_program_without_the_loop_is_enough(sandbox):
    outcome, prompts = await played("code", [GOOD], sandbox)
    assert (outcome.best.observation.answer, len(prompts)) == ("7", 1)


@pytest.mark.parametrize(
    ("bad", "kind", "told"),
    [
        ("1/0", "crashed", "ZeroDivisionError"),
        ("print(", "malformed", "not Python"),
        (" ", "empty", "answered with nothing"),
        ("# x", "empty", "no program"),
        ("x = 21 // 3", "no answer", "printed nothing"),
        ("print('7' * 300)", "no answer", "300 characters"),
    ],
)
async def test_what_went_wrong_is_typed_and_told_to_the_next_turn(sandbox, bad, kind, told):
    outcome, prompts = await played("code-loop", [bad, GOOD, ALSO_GOOD], sandbox)
    assert outcome.history[0].error.kind == kind and outcome.history[0].error.typed
    assert told in prompts[1] and told not in prompts[0]
    assert (outcome.stopped_by.gate, outcome.best.observation.answer) == ("Threshold", "7")


async def test_a_value_out_of_range_and_an_unused_number_are_told(sandbox):
    outcome, prompts = await played("code-loop", ["print(7.5)", GOOD, GOOD], sandbox)
    assert "not one integer from 0 to 999" in prompts[1]
    assert "does not use 21, 3" in prompts[1]
    assert outcome.best.observation.answer == "7"


async def test_the_best_is_delivered_when_no_two_agree(sandbox):
    answers = ["print(21 // 3)", "print(21 + 3)", "print(5)"]
    outcome, _ = await played("code-loop", answers, sandbox, max_iterations=3)
    assert (outcome.stopped_by.gate, outcome.best.observation.answer) == ("MaxIterations", "7")


async def test_of_several_samples_the_most_common_answer_counts(sandbox):
    answers = ["print(9)", GOOD, "print(", ALSO_GOOD, "1/0"]
    outcome, _ = await played("code", answers, sandbox, samples=5)
    assert outcome.best.observation.answer == "7"
    assert outcome.best.score == pytest.approx(2 / 5)
    assert outcome.best.candidate.lost == ("malformed",)
    assert [why.partition(":")[0] for why in outcome.best.observation.failed] == ["crashed"]


async def test_samples_that_are_all_of_no_use_are_a_failure(sandbox):
    outcome, _ = await played("code", ["print("], sandbox, samples=3)
    assert outcome.best is None and outcome.history[-1].error.kind == "malformed"


@pytest.mark.parametrize("arm", [arm for arm in ARMS if arm != "copying"])
@pytest.mark.parametrize(
    ("policy", "results"),
    [("oracle", {"correct"}), ("random", {"wrong", "failed"}), ("truncated", {"failed"})],
)
async def test_every_arm_under_models_that_know_all_and_nothing(arm, policy, results, tmp_path):
    frame = await run(Params(arm=arm, model=f"simulated:{policy}", count=4, max_iterations=2), tmp_path)
    assert set(frame["result"]) <= results
    counts = measure(Store(tmp_path / "records").runs())
    if policy == "oracle" and arm != "reasoning":
        assert counts["programs"].tolist() == [2 if arm.endswith("loop") else 1] * 4
        assert (counts["duplicate"] == counts["programs"] - 1).all()
    elif policy == "truncated":
        assert counts["programs"].sum() == 0 or arm == "reasoning"  # nothing that is no program is ever run
    assert summary(counts)["trials"].tolist() == [4]


async def test_copying_asks_no_model(tmp_path):
    frame = await run(Params(arm="copying", model="simulated:malformed", count=6), tmp_path)
    assert frame["tokens"].tolist() == [0] * 6
    assert (frame["result"] == "correct").sum() >= 5


def test_copying_an_example_onto_itself_changes_nothing():
    for example in shown()[::20]:
        assert copied(example, example.problem) == example.program


def test_copying_takes_each_number_from_its_place():
    example = Problem(id="e", problem="From -2 and 3, 3 times: find it.", answer="7", parameters={})
    program = "# From -2\na = -2\n# and 3\nb, c = 3, 3\nprint(a + 3 * b * c)"
    told = SimpleNamespace(problem=example.problem, program=program)
    assert copied(told, "From 5 and -4, 6 times: find it.") == (
        "# From -2\na = 5\n# and 3\nb, c = -4, 6\nprint(a + 3 * b * c)"
    )


async def test_an_answer_that_was_faulty_before_does_not_count_as_found_before(sandbox):
    outcome, _ = await played("code-loop", ["print(7)", GOOD, ALSO_GOOD], sandbox)
    assert [round(turn.score, 2) for turn in outcome.history] == [0.33, 0.67, 1.0]


def test_the_prompt_never_holds_the_problem_it_asks():
    posed = [*shipped("seen")[:40], *generate("reworded", 10, 1)]
    for one in posed:
        assert one.problem not in {example.problem for example in index()(one.problem, 5)}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("thus\nAnswer: 42", "42"),
        ("Answer: 1\nno, Answer: **2**.", "2"),
        ("The answer is: 17.", "17"),
        ("so $\\boxed{\\frac{3}{4}}$.", "\\frac{3}{4}"),
        ("Answer: $\\boxed{204}$", "204"),
        ("Answer: $x^2$", "x^2"),
        ("I do not know.", None),
        ("Answer:", None),
    ],
)
def test_the_answer_in_a_text(text, answer):
    assert answer_in(text) == answer
    if answer is None:
        with pytest.raises(Failure, match="no line"):
            read_answers(Attempt(texts=(text,)))


@given(st.text())
def test_any_text_has_an_answer_or_none(text):
    assert answer_in(text) is None or answer_in(text).strip()


@given(st.lists(st.sampled_from(["1", "2", "3"]), min_size=1), st.integers(0, 5))
def test_votes(given_answers, lost):
    answers = Answers(given=tuple(given_answers))
    attempt = Attempt(texts=tuple(given_answers), lost=("empty",) * lost)
    most = max(given_answers.count(one) for one in given_answers)
    assert given_answers.count(answers.answer) == most
    assert judge_votes(attempt, answers).score == pytest.approx(most / (len(given_answers) + lost))


@given(st.integers(-50, 1100), st.booleans(), st.booleans(), st.booleans())
def test_agreement_needs_all_three(value, uses, before, integer):
    attempt = Attempt(texts=(f"print({value}{' + 21 * 3' if uses else ''})",), earlier=(str(value),) * before)
    verdict = judge_agreement(attempt, Answers(given=(str(value),)), problem=SEVEN.problem, integer=integer)
    valid = 0 <= value <= 999 or not integer
    used = uses or {str(abs(value))} >= {"21", "3"}
    assert verdict.score == pytest.approx((valid + used + (before and valid and used)) / 3)
    assert bool(verdict.feedback.blocking) == (not valid or not used)


def test_numbers_that_go_without_saying():
    assert numbers_unused("Two of 2 and 1 and 30 and 0.5", "print(30)") == ["0.5"]


async def test_programs_run_at_once_and_keep_their_order(sandbox):
    attempt = Attempt(texts=tuple(f"print({n})" for n in range(5)))
    assert (await run_programs(attempt, sandbox=sandbox)).given == ("0", "1", "2", "3", "4")


@pytest.mark.parametrize(
    ("truth", "said", "right"),
    [
        ("204", "204", True),
        ("204", "204.0", True),
        ("204", "205", False),
        ("\\frac{3}{4}", "3/4", True),
        ("\\frac{\\sqrt{2}}{2}", "sqrt(2)/2", True),
        ("\\left( 3, \\frac{\\pi}{2} \\right)", "(3, pi/2)", True),
        ("6 - 5i", "6-5*I", True),
        ("10", "ten", False),
        ("7", "__import__('os').listdir('/')", False),
    ],
)
async def test_grading(sandbox, truth, said, right):
    assert await equal(truth, said, sandbox) is right


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (
            "import numpy as np, sympy.ntheory\nfrom scipy.optimize import linprog",
            {"numpy", "sympy", "scipy"},
        ),
        ("from . import x\nprint(1)", set()),
        ("print(", set()),
    ],
)
def test_libraries(program, found):
    assert libraries(program) == found


def test_an_interval_by_family_is_wide_where_families_are_all_or_nothing():
    def trials(right):
        return pd.DataFrame(
            [
                {"family": f, "result": "correct" if right(f, n) else "wrong"}
                for f in range(20)
                for n in range(6)
            ]
        )

    assert by_family(trials(lambda family, number: True)) == (1.0, 1.0)
    assert by_family(trials(lambda family, number: True).head(6)) == (None, None)
    low, high = by_family(trials(lambda family, number: family < 15))  # as good as 15 of 20
    alone = accuracy(15, 20)
    assert (low, high) == pytest.approx((alone.low, alone.high), abs=0.06)
    # Six in ten of every family: nothing differs from draw to draw.
    assert by_family(trials(lambda family, number: number < 3)) == (0.5, 0.5)


@given(st.text())
def test_libraries_of_any_text(text):
    assert libraries(text) == set() or ast.parse(text)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"arm": "thinking"}, "arm"),
        ({"count": 201}, "200 seen problems ship"),
        ({"split": "unseen", "count": 101}, "100 unseen problems ship"),
        ({"arm": "code-loop", "samples": 3}, "samples=3 is for"),
        ({"data": "nowhere.jsonl"}, "no such file"),
        ({"count": True}, "must be a number"),
        ({"seeds": 1}, "seeds"),
    ],
)
def test_parameters_that_cannot_be_run_are_refused(wrong, why):
    with pytest.raises(ValidationError, match=why):
        Params(**wrong)


def test_a_file_of_ones_own_is_taken_whole(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"problem": "1+1?", "answer": 2}\n{"problem": "half of 1?", "answer": "\\\\frac12"}\n')
    assert [one.answer for one in problems(Params(data=str(path), count=1))] == ["2", "\\frac12"]
