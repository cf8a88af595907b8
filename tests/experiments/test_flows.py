"""The factory: its two scenarios end as they say, and its code steps do what they say, for real."""

import asyncio
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments.flows import factory
from loopkit import Store
from loopkit.flow import Flow, Simulation
from loopkit.models.simulated import POLICIES

FLOWS = Path(factory.__file__).parent
RIGHT, WRONG = "def double(x):\n    return 2 * x", "def double(x):\n    return x + 2"
ORDER = ["develop", "review", "test", "suite", "push", "ci"]


def scenario(name, **settings):
    flow = Flow.load(FLOWS / "factory.yaml")
    return asyncio.run(flow.run(simulation=Simulation.load(FLOWS / "scenarios" / f"{name}.yaml"), **settings))


def test_an_eventful_day_ends_in_a_merge(tmp_path):
    with Store(tmp_path).create("r") as log:
        outcome = scenario("eventful", log=log)
    counters = outcome.counters
    path = """
        develop review
        develop review test suite
        develop review test ask_person
        develop review test suite push ci repair push ci approve_merge merge
    """
    assert (outcome.status, outcome.path) == ("done", path.split())
    assert (len(outcome.history), outcome.usage.calls) == (21, 14)
    advice = Store(tmp_path).run("r").all("advice")
    assert [(event["step"], event["action"], event.get("refused")) for event in advice] == [
        ("develop", "retry", None), ("test", "goto", "'merge' is not in the recover list of 'test'"),
    ]  # fmt: skip
    assert counters.advice == {"followed": 1, "refused": 1}
    assert counters.polls == {
        ("ci", "pending"): 6,
        ("ci", "news"): 1,
        ("ci", "failing"): 1,
        ("ci", "done"): 1,
    }
    assert counters.polls_without_model == 8
    loops = ("review_cycle", "suite_cycle", "ci_cycle", "ask_person->develop")
    assert [counters.taken[name] for name in loops] == [1, 1, 1, 1]
    assert (counters.limits, counters.cancelled) == ({}, 0)


def test_a_reviewer_who_is_never_content_uses_the_way_back_up(tmp_path):
    with Store(tmp_path).create("r") as log:
        outcome = scenario("stubborn_review", log=log)
    assert (outcome.status, outcome.path) == ("failed", ["develop", "review"] * 4 + ["ask_person"])
    counters = outcome.counters
    assert (counters.taken["review_cycle"], counters.limits) == (3, {"review_cycle": 1})
    assert (counters.cancelled, counters.polls.total(), outcome.usage.calls) == (1, 0, 8)
    (cancelled,) = Store(tmp_path).run("r").all("cancelled")
    assert (cancelled["iteration"], cancelled["correction"]) == (8, "Longer.")


def test_the_readme_tells_the_numbers_of_the_scenarios():
    text = (FLOWS / "README.md").read_text(encoding="utf-8")
    outcomes = [scenario(name) for name in ("eventful", "stubborn_review")]
    steps = [f"{outcome.status}, after {len(outcome.history)} steps" for outcome in outcomes]
    assert re.search(rf"\| ends \| {steps[0]} \| {steps[1]}: the person gives up \|", text)
    assert f"| model calls | {outcomes[0].usage.calls} | {outcomes[1].usage.calls} |" in text
    cancelled = [outcome.counters.cancelled for outcome in outcomes]
    assert f"| corrections cancelled | {cancelled[0]} | {cancelled[1]} |" in text


# --- for real -----------------------------------------------------------------------------------------------


@pytest.fixture
def work(monkeypatch, tmp_path):
    """Runs the factory with a model that follows a script per kind of question; returns how, and what was asked."""
    monkeypatch.setattr(factory, "CI_SECONDS", 0.05)
    text = (FLOWS / "factory.yaml").read_text(encoding="utf-8").replace("interval: 1s", "interval: 20ms")
    text = text.replace("grace: 10s", "grace: 1s")
    asked = []

    def run(*, develop=(), repair=(), review=(), tests=("assert double(2) == 4",), **settings):
        scripts = {
            "Write a Python": [{"code": code} for code in develop or [RIGHT]],
            "The CI is red": [{"code": code} for code in repair],
            "Review this": [
                {"verdict": verdict, "comments": f"{verdict}!"} for verdict in review or ["approved"]
            ],
            "Write one line": [{"assertion": line} for line in tests],
        }

        def answer(request):
            kind = next(kind for kind in scripts if request.prompt.startswith(kind))
            asked.append((kind, request.prompt))
            script = scripts[kind]
            return json.dumps(script.pop(0) if len(script) > 1 else script[0])

        monkeypatch.setitem(POLICIES, "coder", answer)
        flow = Flow.parse(text)
        settings = {"person": lambda question: {"decision": "merge"}} | settings
        params = {"folder": tmp_path / "work"} | settings.pop("params", {})
        return asyncio.run(flow.run(model="simulated:coder", params=params, **settings))

    return SimpleNamespace(run=run, asked=asked, folder=tmp_path / "work")


def test_good_code_is_written_reviewed_tested_built_approved_and_merged(work):
    outcome = work.run()
    assert (outcome.status, outcome.path) == ("done", [*ORDER, "approve_merge", "merge"])
    assert (work.folder / "main.py").read_text() == RIGHT
    assert outcome.outputs["suite"] == {"passed": True, "log": ""}
    assert outcome.outputs["ci"] == {"status": "success", "poll": "done"}
    assert outcome.counters.polls["ci", "pending"] >= 1 and outcome.usage.calls == 3
    assert "double(x)" in work.asked[1][1] and RIGHT in work.asked[1][1]


def test_what_the_reviewer_wants_and_what_the_suite_says_reach_the_next_draft(work):
    outcome = work.run(develop=[WRONG, WRONG, RIGHT], review=["changes_requested", "approved"])
    assert outcome.path[:8] == [
        "develop",
        "review",
        "develop",
        "review",
        "test",
        "suite",
        "develop",
        "review",
    ]
    assert outcome.status == "done"
    prompts = [prompt for kind, prompt in work.asked if kind == "Write a Python"]
    assert prompts[0].rstrip().endswith("Answer with the code alone.")
    assert prompts[1].endswith("Correction: changes_requested!")
    assert "Correction: The suite failed: AssertionError" in prompts[2]


def test_a_red_ci_is_repaired_and_what_was_repaired_is_merged(work, monkeypatch):
    # The suite lets it through, the CI does not.
    monkeypatch.setattr(factory, "run_suite", lambda context: {"passed": True, "log": ""})
    outcome = work.run(develop=[WRONG], repair=[WRONG + "  # better", RIGHT])
    assert outcome.status == "done"
    assert outcome.path == [*ORDER, "repair", "push", "ci", "repair", "push", "ci", "approve_merge", "merge"]
    assert (work.folder / "main.py").read_text() == RIGHT
    assert outcome.counters.taken["ci_cycle"] == 2 and outcome.counters.polls["ci", "news"] == 2
    repairs = [prompt for kind, prompt in work.asked if kind == "The CI is red"]
    assert all(prompt.startswith("The CI is red: AssertionError") for prompt in repairs)
    assert WRONG in repairs[0] and WRONG + "  # better" in repairs[1]


def test_a_ci_that_stays_red_is_a_case_for_a_person_and_a_new_draft_is_not_the_old_repair(work, monkeypatch):
    monkeypatch.setattr(
        factory, "run_suite", lambda context: {"passed": True, "log": factory.code_of(context)}
    )
    answers = iter(["develop_again", "merge"])
    outcome = work.run(
        develop=[WRONG, RIGHT], repair=[WRONG], person=lambda question: {"decision": next(answers)}
    )
    assert outcome.path == [
        *ORDER,
        *["repair", "push", "ci"] * 2,
        "repair",
        "ask_person",
        *ORDER,
        "approve_merge",
        "merge",
    ]
    assert outcome.counters.limits == {"ci_cycle": 1}
    assert outcome.outputs["suite"]["log"] == RIGHT
    assert (work.folder / "main.py").read_text() == RIGHT


def test_code_that_never_works_is_given_up_and_nothing_is_merged(work):
    outcome = work.run(develop=[WRONG], person=lambda question: {"decision": "give_up"})
    assert (outcome.status, outcome.path[-1]) == ("failed", "ask_person")
    assert outcome.counters.limits == {"suite_cycle": 1} and outcome.counters.cancelled == 1
    assert not (work.folder / "main.py").exists()


def test_a_merge_that_fails_is_a_case_for_a_person(work):
    def person(question):
        if question.step == "approve_merge":
            (work.folder / "build" / "solution.py").unlink()
            return {"decision": "merge"}
        return {"decision": "give_up"}

    outcome = work.run(person=person)
    assert outcome.path[-3:] == ["approve_merge", "merge", "ask_person"]
    assert outcome.outputs["merge"]["exit_code"] == 1


def test_a_factory_that_waits_for_a_person_goes_on_in_another_process_and_merges(work, tmp_path):
    store = Store(tmp_path / "runs")
    with store.create("r") as log:
        outcome = work.run(log=log, person=None)
    assert (outcome.status, outcome.question.step) == ("waiting", "approve_merge")
    assert outcome.question.text.startswith("CI is green after 1 drafts. Merge?")
    with store.resume("r") as log:
        flow = Flow.of(log)
        flow.answer(log, {"decision": "merge"})
        outcome = asyncio.run(flow.run(log=log))
    assert (outcome.status, len(work.asked)) == ("done", 3)
    assert (work.folder / "main.py").read_text() == RIGHT


@pytest.mark.parametrize(
    ("code", "check", "passed"), [(RIGHT, "assert double(4) == 8", True), ("def (", "", False)]
)
def test_the_ci_writes_whether_the_check_passed(tmp_path, code, check, passed):
    (tmp_path / "solution.py").write_text(code)
    (tmp_path / "check.py").write_text(check)
    from experiments.flows import ci

    ci.main(tmp_path, 0.0)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["passed"] is passed and bool(result["log"]) is not passed
    assert not (tmp_path / "result.json.part").exists()
