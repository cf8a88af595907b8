"""Flows at work: which way a run takes, what models are told, what is counted, where it stops, what is recorded."""

import asyncio
from pathlib import Path

import pandas as pd
import pytest
from pydantic import BaseModel
from pydantic_ai.messages import ModelResponse, TextPart

from loopkit import Cancel, Failure, MaxIterations, Store
from loopkit.flow import Context, Flow, FlowError, Simulation
from loopkit.journal import Irreproducible
from loopkit.models.simulated import SimulatedModel
from loopkit.usage import Usage, spend

VERDICT = "output_schema: {properties: {verdict: {type: string, enum: [good, bad]}}}"


def walk(steps, functions=None, *, head="", **how):
    """Run the flow that has these steps."""
    return asyncio.run(Flow.parse(f"flow: small\n{head}\nsteps:\n{steps}", functions).run(**how))


def via(outcome, log):
    """Why the run went where it went."""
    return [event["via"] for event in log.past if event["event"] == "iteration"]


# --- ways ---------------------------------------------------------------------------------------------------


def test_the_first_transition_that_holds_is_taken_and_code_sees_what_the_steps_before_came_to():
    seen = []

    def count(context):
        seen.append(context)
        return {"n": context.visits}

    outcome = walk(
        """
  - id: count
    code: count
    output_schema: {properties: {n: {type: integer}}}
    transitions:
      - {when: output.n > 100, goto: failed}
      - {when: output.n < params.most, goto: look, send: "seen {{ output.n }}"}
      - {when: output.n < 100, goto: done}
      - goto: failed
  - {id: look, code: look, transitions: [{goto: count, max_visits: 9}]}
""",
        {"count": count, "look": lambda context: seen.append(context)},
        head="params: {most: 3}\ngoal: count up",
    )
    assert (outcome.status, outcome.path) == ("done", ["count", "look", "count", "look", "count"])
    assert outcome.stopped_by.reason == "count: output.n < 100"
    assert outcome.outputs == {"count": {"n": 3}, "look": {}}
    first, second, third = seen[:3]
    assert all(isinstance(context, Context) for context in seen)
    assert (first.params, first.goal, first.visits, first.correction) == ({"most": 3}, "count up", 1, None)
    assert first.steps["count"] == {"output": None, "visits": 1}
    assert (second.correction, second.steps["count"]) == ("seen 1", {"output": {"n": 1}, "visits": 1})
    assert (third.correction, third.steps["look"]["output"]) == (None, {})
    assert [turn.candidate for turn in outcome.history] == outcome.path
    assert [turn.observation for turn in outcome.history][::2] == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_visit_that_fails_has_no_output_of_its_own_and_the_last_one_stays():
    def work(context):
        if context.visits == 2:
            raise Failure("bad")
        return {"n": context.visits}

    steps = "  - {id: a, code: work, transitions: [{goto: a, max_visits: 1}], on_failure: b}\n  - {id: b, code: f, goto: done}"
    outcome = walk(steps, {"work": work, "f": lambda _: None})
    assert [turn.observation for turn in outcome.history] == [{"n": 1}, None, {}]
    assert outcome.outputs == {"a": {"n": 1}, "b": {}}


def test_a_run_starts_where_the_file_says():
    steps = "  - {id: one, code: f, goto: done}\n  - {id: two, code: f, goto: one}\n"
    assert walk(steps, {"f": lambda _: None}, head="start: two").path == ["two", "one"]


def test_plain_and_async_code_do_the_same_and_the_model_of_an_output_may_be_returned():
    class Made(BaseModel):
        n: int

    async def later(context):
        await asyncio.sleep(0)
        return Made(n=2)

    steps = "  - {id: one, code: f, output_schema: {properties: {n: {type: integer}}}, goto: done}\n"
    for function in (later, lambda _: Made(n=2), lambda _: {"n": 2}):
        assert walk(steps, {"f": function}).outputs == {"one": {"n": 2}}


@pytest.mark.parametrize(
    "bound", ["max_visits: 2, on_exhausted: end", "loop: {max_iterations: 2, on_exhausted: end}"]
)
def test_a_bounded_way_is_taken_as_often_as_it_says_then_the_run_goes_elsewhere(bound):
    steps = f"""
  - {{id: again, code: f, transitions: [{{goto: again, {bound}}}]}}
  - {{id: end, code: f, goto: done}}
"""
    outcome = walk(steps, {"f": lambda _: None})
    assert outcome.path == ["again"] * 3 + ["end"]
    assert outcome.counters.taken == {"again->again": 2}
    assert outcome.counters.limits == {"again->again": 1}


def test_both_bounds_on_one_transition_count_each_turn_once():
    bounds = "max_visits: 3, on_exhausted: failed, loop: {NAMEmax_iterations: 3, on_exhausted: done}"
    for name in ("", "name: x, "):
        steps = f"  - {{id: again, code: f, transitions: [{{goto: again, {bounds.replace('NAME', name)}}}]}}"
        assert walk(steps, {"f": lambda _: None}).path == ["again"] * 4


def test_transitions_that_share_a_name_share_the_count():
    steps = """
  - id: a
    code: f
    transitions:
      - {when: visits < 3, goto: b}
      - {goto: a, loop: {name: back, max_iterations: 3, on_exhausted: done}}
  - {id: b, code: f, transitions: [{goto: a, loop: {name: back, max_iterations: 3, on_exhausted: done}}]}
"""
    outcome = walk(steps, {"f": lambda _: None})
    assert outcome.path == ["a", "b", "a", "b", "a", "a"]
    assert (outcome.counters.taken, outcome.counters.limits) == ({"back": 3}, {"back": 1})
    rows = outcome.counters_df()
    assert rows[rows.name == "back"].to_dict("records") == [
        {"what": "loop", "name": "back", "count": 3, "limit": 3, "opened": 1}
    ]


def test_a_correction_reaches_the_next_step_and_is_cancelled_on_record_when_the_limit_opens(log):
    seen = []
    steps = """
  - {id: draft, code: draft, goto: review}
  - id: review
    code: review
    transitions:
      - goto: draft
        send: "wrong: {{ visits }}"
        loop: {name: rounds, max_iterations: 2, on_exhausted: end}
  - {id: end, code: draft, goto: done}
"""
    functions = {"draft": lambda context: seen.append(context.correction), "review": lambda _: None}
    outcome = walk(steps, functions, log=log)
    assert seen == [None, "wrong: 1", "wrong: 2", None]
    assert outcome.counters.cancelled == 1
    (cancelled,) = [event for event in log.past if event["event"] == "cancelled"]
    assert (cancelled["iteration"], cancelled["correction"]) == (6, "wrong: 3")
    assert cancelled["reason"] == "always, but rounds is used up (2)"
    assert via(outcome, log)[1::2] == [
        "always (rounds 1 of 2)",
        "always (rounds 2 of 2)",
        cancelled["reason"],
    ]


def test_a_goal_repeats_the_step_until_it_holds():
    steps = """
  - id: dig
    code: dig
    output_schema: {properties: {depth: {type: integer}}}
    goal: {until: output.depth >= 3, max_iterations: 5, on_exhausted: failed}
    goto: done
"""
    depth = iter(range(1, 99))
    outcome = walk(steps, {"dig": lambda _: {"depth": next(depth)}})
    assert (outcome.status, outcome.path, outcome.outputs) == ("done", ["dig"], {"dig": {"depth": 3}})


def test_a_goal_that_is_not_reached_is_left_after_as_many_turns_as_it_says():
    steps = """
  - {id: dig, code: dig, goal: {until: output.found, max_iterations: 4, on_exhausted: give_up}, goto: failed}
  - {id: give_up, code: last, goto: done}
"""
    turns = []
    outcome = walk(steps, {"dig": lambda _: turns.append(1), "last": lambda _: {"dug": len(turns)}})
    assert (outcome.path, outcome.outputs["give_up"]) == (["dig", "give_up"], {"dug": 4})
    assert outcome.counters.limits == {"dig: goal": 1}


# --- models -------------------------------------------------------------------------------------------------

REVIEW = f"""
  - id: write
    prompt: Write about {{{{ params.topic }}}}.
    output_schema: {{properties: {{text: {{type: string, minLength: 1}}}}}}
    goto: review
  - id: review
    prompt: "Is this good? {{{{ steps.write.output.text }}}}"
    {VERDICT}
    model: simulated:critic
    transitions:
      - {{when: output.verdict == 'good', goto: check}}
      - {{when: output.verdict == 'bad', goto: write, send: Shorter., loop: {{max_iterations: 2}}}}
  - {{id: check, code: check, goto: done}}
"""
HEAD = "params: {topic: tides}\nmodel: simulated:writer"


def test_models_fill_steps_in_and_code_works_with_what_they_said(policy):
    written = policy("writer", {"text": "long"}, {"text": "short"})
    asked = policy("critic", {"verdict": "bad"}, {"verdict": "good"})
    outcome = walk(
        REVIEW, {"check": lambda context: {"words": context.steps["write"]["output"]["text"]}}, head=HEAD
    )
    assert outcome.path == ["write", "review", "write", "review", "check"]
    assert written == ["Write about tides.", "Write about tides.\n\nCorrection: Shorter."]
    assert asked == ["Is this good? long", "Is this good? short"]
    assert outcome.outputs["check"] == {"words": "short"}
    assert (outcome.usage.calls, outcome.counters.model_turns) == (4, {"write": 2, "review": 2})
    assert [turn.usage.calls for turn in outcome.history] == [1, 1, 1, 1, 0]


def test_a_run_may_ask_one_model_in_place_of_all(policy):
    asked = policy("both", {"text": "t"}, {"verdict": "good"})
    assert walk(REVIEW, {"check": lambda _: None}, head=HEAD, model="simulated:both").status == "done"
    assert len(asked) == 2


def test_a_correction_that_has_a_place_in_the_prompt_is_not_said_twice(policy):
    asked = policy("writer", {"text": "t"})
    steps = """
  - id: write
    prompt: "Write.{{ correction }}"
    output_schema: {properties: {text: {type: string}}}
    transitions: [{goto: write, send: Shorter., max_visits: 1, on_exhausted: done}]
"""
    walk(steps, head="model: simulated:writer")
    assert asked == ["Write.", "Write.Shorter."]


def test_news_of_a_probe_and_advice_of_the_supervisor_stand_at_the_end_of_the_prompt(policy):
    asked = policy("worker", {"ok": False}, "no JSON", {"ok": True})
    policy("boss", {"action": "retry", "instruction": "Answer in JSON."})
    steps = """
  - id: work
    prompt: Work.
    output_schema: {properties: {ok: {type: boolean}}}
    wait: {probe: look, interval: 1ms, max_duration: 1m}
    goal: {until: output.ok, max_iterations: 5}
    goto: done
"""
    head = "model: simulated:worker\nsupervisor: {model: simulated:boss}"
    outcome = walk(steps, {"look": lambda _: {"state": "news", "log": "red"}}, head=head)
    assert outcome.status == "done"
    news = 'Work.\n\nNews: {"log":"red"}'
    assert asked == ["Work.", news, 'Work.\n\nAdvice: Answer in JSON.\n\nNews: {"log":"red"}']


@pytest.mark.parametrize(
    ("answer", "kind", "typed"),
    [
        ("no JSON", "malformed", True),
        ({"text": ""}, "malformed", True),
        ({"text": "t", "more": 1}, "malformed", True),
        ("", "empty", True),
        (ModelResponse(parts=[TextPart(content="{")], finish_reason="length"), "truncated", True),
        (ConnectionError("no network"), "ConnectionError", False),
    ],
)
def test_a_useless_answer_is_a_failure_with_its_kind_and_the_run_goes_where_the_step_says(
    policy, answer, kind, typed
):
    policy("writer", answer)
    steps = """
  - id: write
    prompt: Write.
    output_schema: {properties: {text: {type: string, minLength: 1}}}
    goto: done
    on_failure: other
  - {id: other, code: f, goto: done}
"""
    outcome = walk(steps, {"f": lambda _: None}, head="model: simulated:writer")
    error = outcome.history[0].error
    assert (error.kind, error.typed, error.phase) == (kind, typed, "prompt")
    assert (outcome.path, outcome.outputs) == (["write", "other"], {"other": {}})


def test_a_model_that_takes_too_long_is_a_timeout(monkeypatch):
    async def slow(*_):
        await asyncio.sleep(60)

    monkeypatch.setattr(SimulatedModel, "request", slow)
    steps = f"  - {{id: one, prompt: Hm., {VERDICT}, timeout: 20ms, goto: done}}"
    outcome = walk(steps, head="model: simulated:random")
    assert (outcome.status, outcome.history[0].error.kind) == ("failed", "timeout")


def test_a_model_that_is_not_there_is_refused_before_anything_runs(log):
    ran = []
    steps = f"  - {{id: one, code: f, goto: two}}\n  - {{id: two, prompt: Hm., {VERDICT}, goto: done}}"
    for how in ({"head": "model: simulated:nobody"}, {"model": "nobody:x"}):
        with pytest.raises(ValueError, match="unknown model '.*nobody"):
            walk(steps, {"f": ran.append}, log=log, **how)
    with pytest.raises(ValueError, match="unknown model"):
        walk("  - {id: one, code: f, goto: done}", {"f": ran.append}, head="supervisor: {model: nobody}")
    assert ran == [] and [event["event"] for event in log.past] == ["start"]


# --- budgets and gates --------------------------------------------------------------------------------------

TALK = f"""
  - {{id: work, code: work, transitions: [{{goto: talk, send: go}}]}}
  - {{id: talk, prompt: Hm., {VERDICT}, transitions: [{{goto: work, send: more, loop: {{max_iterations: 50}}}}]}}
"""


@pytest.mark.parametrize(
    ("budget", "calls", "said"),
    [
        ("calls: 3", 3, "3 of 3 calls spent"),
        ("calls: 0", 0, "0 of 0 calls spent"),
        ("tokens: 6", 2, "10 of 6 tokens spent"),
        ("cost: 1", 3, "1.2 of 1 cost spent"),
        ("seconds: 50ms", 2, "0.06 of 0.05 seconds spent"),
    ],
)
def test_a_budget_is_looked_at_before_each_model_turn(policy, priced, monkeypatch, log, budget, calls, said):
    asked = policy("talker", {"verdict": "good"})
    priced(0.4)
    head = f"model: simulated:talker\nbudget: {{{budget}}}"
    clock = [0.0]
    monkeypatch.setattr("loopkit.journal.time.perf_counter", lambda: clock[0])
    outcome = walk(TALK, {"work": lambda _: clock.append(clock.pop() + 0.02)}, head=head, log=log)
    assert len(asked) == outcome.usage.calls == calls
    assert (outcome.status, outcome.stopped_by.gate) == ("stopped", "Budget")
    assert said in outcome.stopped_by.reason
    assert outcome.path == ["work", "talk"] * (calls + 1)
    assert outcome.counters.cancelled == 1  # what was sent to the turn that was not done
    again = walk(TALK, {"work": None}, head=head, log=log)  # the record, walked again
    assert (again.stopped_by, again.path, len(asked)) == (outcome.stopped_by, outcome.path, calls)


def test_money_that_nobody_can_count_is_not_spent(policy, priced):
    asked = policy("talker", {"verdict": "good"})
    priced(0.0, unpriced=1)
    outcome = walk(TALK, {"work": lambda _: None}, head="model: simulated:talker\nbudget: {cost: 9}")
    assert len(asked) == 1
    assert "no known price" in outcome.stopped_by.reason


def test_code_that_asks_a_model_spends_the_budget_too():
    outcome = walk(
        TALK, {"work": lambda _: spend(Usage(calls=5))}, head="model: simulated:random\nbudget: {calls: 5}"
    )
    assert outcome.path == ["work", "talk"] and outcome.usage.calls == 5


def test_a_gate_is_asked_after_each_step():
    outcome = walk(TALK, {"work": lambda _: None}, head="model: simulated:random", gates=[MaxIterations(3)])
    assert (outcome.path, outcome.stopped_by.gate) == (["work", "talk", "work"], "MaxIterations")
    assert outcome.counters.cancelled == 1


def test_a_run_that_died_before_its_gate_opened_asks_it_again(tmp_path):
    flow = Flow.parse(
        "flow: f\nsteps: [{id: a, code: f, transitions: [{goto: a, max_visits: 9}]}]", {"f": lambda _: None}
    )
    store = Store(tmp_path)
    with store.create("r") as log:
        asyncio.run(flow.run(log=log, gates=[MaxIterations(3)]))
    *lines, last = store.path("r").read_bytes().splitlines(keepends=True)
    assert b'"stop"' in last
    store.path("r").write_bytes(b"".join(lines))
    with store.resume("r") as log:
        outcome = asyncio.run(flow.run(log=log, gates=[MaxIterations(3)]))
    assert (outcome.path, outcome.stopped_by.gate) == (["a"] * 3, "MaxIterations")


def test_somebody_may_cancel_a_run_and_it_goes_on_later(tmp_path):
    def work(context):
        done.append(context.correction)
        if len(done) == 2:
            cancel.request("by the button")
        return {}

    done, cancel = [], Cancel()
    steps = "  - {id: a, code: work, transitions: [{goto: a, send: go, max_visits: 3, on_exhausted: done}]}"
    flow = Flow.parse(f"flow: f\nsteps:\n{steps}", {"work": work})
    store = Store(tmp_path)
    with store.create("r") as log:
        outcome = asyncio.run(flow.run(log=log, gates=[cancel]))
    assert (outcome.status, outcome.stopped_by.gate) == ("stopped", "Cancel")
    assert (outcome.stopped_by.reason, outcome.counters.cancelled) == ("by the button", 0)
    assert (store.run("r").status, len(done)) == ("stopped", 2)
    with store.resume("r") as log:
        outcome = asyncio.run(flow.run(log=log))
    assert (outcome.status, done) == ("done", [None, "go", "go", "go"])
    assert outcome.counters.cancelled == 1  # by the limit that opened
    assert store.run("r").status == "finished"


# --- records ------------------------------------------------------------------------------------------------

PARAMS = """
  - id: a
    code: first
    transitions: [{when: "params.way == 'left'", goto: left}, {goto: right}]
  - {id: left, code: left, goto: ask}
  - {id: right, code: right, goto: ask}
  - {id: ask, human: "Go on?", goto: done}
"""
FUNCTIONS = {
    "first": lambda _: {},
    "left": lambda _: {"on": "the left"},
    "right": lambda _: {"on": "the right"},
}


def test_a_run_goes_on_with_the_settings_it_was_begun_with(tmp_path):
    flow = Flow.parse(f"flow: f\nparams: {{way: left, n: 1}}\nsteps:\n{PARAMS}", FUNCTIONS)
    store = Store(tmp_path)
    with store.create("r") as log:
        assert asyncio.run(flow.run(log=log, params={"way": "right"})).path == ["a", "right"]
    with store.resume("r") as log:
        assert asyncio.run(flow.run(log=log)).path == ["a", "right"]
        assert asyncio.run(flow.run(log=log, params={"way": "right"})).path == ["a", "right"]
        before = log.path.read_bytes()
        for name, changed in (
            ("params", {"params": {"way": "left"}}),
            ("model", {"model": "simulated:random"}),
            ("simulation", {"simulation": Simulation()}),
        ):
            with pytest.raises(Irreproducible, match=f"this run's {name} is .*leave it out, or fork"):
                asyncio.run(flow.run(log=log, **changed))
        other = Flow.parse(f"flow: f\nparams: {{way: left}}\nsteps:\n{PARAMS}", FUNCTIONS)
        with pytest.raises(Irreproducible, match="another flow"):
            asyncio.run(other.run(log=log))
        assert log.path.read_bytes() == before


def test_parameters_are_what_a_record_gives_back_from_the_beginning(log):
    seen, cycle = [], []
    cycle.append(cycle)
    given = {"path": Path("x"), "pair": (1, 2), "odd": "\ud800", "cycle": cycle}
    flow = Flow.parse(
        "flow: f\nparams: {path: a, pair: [], odd: b, cycle: []}\nsteps: [{id: a, code: f, goto: done}]",
        {"f": lambda context: seen.append(context.params)},
    )
    asyncio.run(flow.run(log=log, params=given))
    assert seen[0] | {"cycle": None} == {"path": "x", "pair": [1, 2], "odd": "\ud800", "cycle": None}
    (settings,) = [event for event in log.past if event["event"] == "settings"]
    assert settings["params"] == seen[0]
    assert asyncio.run(flow.run(log=log, params=given)).status == "done"


def test_a_simulation_is_never_taken_up_as_something_else(tmp_path):
    flow = Flow.parse(f"flow: f\nparams: {{way: left}}\nsteps:\n{PARAMS}")
    with Store(tmp_path).create("r") as log:
        done = asyncio.run(flow.run(log=log, simulation=Simulation(seed=3)))
        assert asyncio.run(flow.run(log=log)).outputs == done.outputs
        assert asyncio.run(Flow.of(log).run(log=log, simulation=Simulation(seed=3))).outputs == done.outputs
        with pytest.raises(Irreproducible, match="simulation"):
            asyncio.run(flow.run(log=log, simulation=Simulation(seed=4)))


def test_a_fork_takes_the_first_steps_along_and_may_be_given_other_settings(tmp_path):
    flow = Flow.parse(f"flow: f\nparams: {{way: left}}\nsteps:\n{PARAMS}", FUNCTIONS)
    store = Store(tmp_path)
    with store.create("r") as log:
        asyncio.run(flow.run(log=log))
    with store.fork("r", "one", at=1) as log:
        outcome = asyncio.run(flow.run(log=log, params={"way": "right"}, person=lambda _: {"answer": "x"}))
    # The way itself was chosen after the first step was done, so it is chosen anew.
    assert (outcome.path, outcome.outputs["right"]) == (["a", "right", "ask"], {"on": "the right"})
    with store.fork("r", "two", at=2) as log, pytest.raises(Irreproducible, match="visit 2: step was .?left"):
        asyncio.run(flow.run(log=log, params={"way": "right"}))
    with store.fork("r", "three", at=2) as log:
        assert asyncio.run(flow.run(log=log)).outputs["left"] == {"on": "the left"}


def test_a_run_that_cannot_begin_records_nothing(log):
    flow = Flow.parse(f"flow: f\nparams: {{way: left}}\nsteps:\n{PARAMS}", FUNCTIONS)
    for how, said in (
        ({"params": {"wya": 1}}, "no parameter wya; there are way"),
        ({"simulation": Simulation(script={"b": []})}, "answers for 'b'"),
    ):
        with pytest.raises(ValueError, match=said):
            asyncio.run(flow.run(log=log, **how))
        with pytest.raises(ValueError, match=said):
            flow.check(**how)
    assert [event["event"] for event in log.past] == ["start"]
    flow.check(params={"way": "up"})


def test_the_flow_of_a_run_is_the_one_it_was_begun_with(tmp_path):
    text = f"flow: f\nparams: {{way: left}}\nsteps:\n{PARAMS}  # as it was\n"
    store = Store(tmp_path)
    with store.create("r") as log:
        asyncio.run(Flow.parse(text, FUNCTIONS).run(log=log))
        assert Flow.of(log, FUNCTIONS).source.text == text
    assert Flow.of(store.run("r")).name == "f"
    with store.create("other") as log, pytest.raises(ValueError, match="not begun by a flow"):
        Flow.of(log)


def test_the_log_tells_what_happened_and_a_watcher_hears_of_new_events_only(log):
    heard = []
    flow = Flow.parse(f"flow: f\nparams: {{way: left}}\nsteps:\n{PARAMS}", FUNCTIONS)
    asyncio.run(flow.run(log=log, watch=heard.append))
    kinds = ["start", "settings", "goal", "visit", "step", "iteration", "visit", "step", "iteration"]
    assert [event["event"] for event in log.past] == [*kinds, "visit", "question"]
    assert [event["event"] for event in heard] == ["iteration", "iteration", "question"]
    assert [(event["step"], event["goto"]) for event in heard[:2]] == [("a", "left"), ("left", "ask")]
    flow.answer(log, {"answer": "yes"})
    asyncio.run(flow.run(log=log, watch=heard.append))
    assert [event["event"] for event in heard[3:]] == ["iteration", "stop"]


def test_an_outcome_shows_itself():
    outcome = walk("  - {id: a, human: 'A <b>?', goto: done}", head="supervisor: {}")
    assert repr(outcome) == "<FlowOutcome: waiting after 0 steps (A <b>?)>"
    assert "&lt;b&gt;" in outcome._repr_html_()
    assert isinstance(outcome.counters_df(), pd.DataFrame)


def test_a_flow_is_loaded_from_a_file_and_draws_itself(tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text(
        'flow: f\nsteps:\n  - {id: end, title: "two\\nlines <b>", code: f, transitions: [{when: "output.x == \\"q\\"", goto: done}, {goto: end, max_visits: 2}]}'
    )
    flow = Flow.load(path, {"f": lambda _: {"x": "q"}})
    assert asyncio.run(flow.run()).status == "done"
    drawn = flow.draw()
    assert drawn.splitlines()[:2] == ["flowchart TD", "  start((start)) --> s_end"]
    assert '  s_end["two lines &lt;b&gt;"]' in drawn.splitlines()
    assert '  s_end -->|"output.x == &quot;q&quot;"| s_done' in drawn.splitlines()
    assert '  s_end -->|"at most 2 times"| s_end' in drawn.splitlines()
    assert flow.outcomes_df().to_dict("records") == flow.outcomes()
    with pytest.raises(FlowError, match=f"{tmp_path}/none.yaml:1:1: cannot be read"):
        Flow.load(tmp_path / "none.yaml")


WAITING = """
flow: f
budget: {{ seconds: {seconds} }}
steps:
  - id: look
    wait: {{ probe: look, interval: 50ms, max_duration: 20s, on_exhausted: failed }}
    goto: done
"""


def test_a_wait_can_be_cancelled_and_goes_on(tmp_path):
    store, looks, cancel = Store(tmp_path), [], Cancel()

    def look(context):
        looks.append(1)
        if len(looks) == 2:
            cancel.request("enough for today")
        return "pending" if len(looks) < 4 else "done"

    flow = Flow.parse(WAITING.format(seconds=60), {"look": look})
    with store.create("r") as log:
        outcome = asyncio.run(flow.run(log=log, gates=[cancel]))
    assert (outcome.status, outcome.stopped_by.reason, len(looks)) == ("stopped", "enough for today", 2)
    assert (store.run("r").status, len(outcome.history)) == ("stopped", 0)
    with store.resume("r") as log:
        outcome = asyncio.run(flow.run(log=log))
    assert (outcome.status, outcome.path, len(looks)) == ("done", ["look"], 4)
    assert outcome.counters.polls == {("look", "pending"): 3, ("look", "done"): 1}


def test_a_wait_ends_with_the_time_of_the_run():
    flow = Flow.parse(WAITING.format(seconds=0.12), {"look": lambda _: "pending"})
    outcome = asyncio.run(flow.run())
    assert (outcome.status, outcome.stopped_by.gate) == ("stopped", "Budget")
    assert "seconds spent" in outcome.stopped_by.reason


def test_a_simulated_outcome_says_so_and_a_person_is_quoted():
    text = """
flow: f
steps:
  - id: ask
    human: Well?
    output_schema: { properties: { say: { type: string } } }
    transitions: [ { when: output.say == 'no', goto: failed }, { goto: done } ]
"""
    flow = Flow.parse(text)
    outcome = asyncio.run(flow.run(simulation=Simulation(script={"ask": [{"say": "yes"}]})))
    assert repr(outcome) == "<FlowOutcome (simulated): done after 1 steps (ask: answered say: yes)>"
    outcome = asyncio.run(flow.run(person=lambda question: {"say": "no"}))
    assert repr(outcome) == "<FlowOutcome: failed after 1 steps (ask: answered say: no)>"


def test_a_drawing_has_failures_on_request():
    flow = Flow.parse(
        "flow: f\nsteps:\n  - {id: a, code: f, on_failure: b, goto: done}\n  - {id: b, human: 'What?', goto: failed}"
    )
    assert "  s_a --> s_done" in flow.draw().splitlines()
    assert "failure" not in flow.draw()
    assert '  s_a -.->|"failure"| s_b' in flow.draw(failures=True).splitlines()
