"""The supervisor, who is asked only when a step has failed; and simulations, in which nothing is done at all."""

import asyncio
import time

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

import loopkit.models
from loopkit import Failure, resolve
from loopkit.flow import Flow, FlowError, Simulation

VERDICT = "output_schema: {properties: {verdict: {type: string, enum: [good, bad]}}}"


def walk(steps, functions=None, *, head="", **how):
    """Run the flow that has these steps."""
    return asyncio.run(Flow.parse(f"flow: small\n{head}\nsteps:\n{steps}", functions).run(**how))


# --- the supervisor -----------------------------------------------------------------------------------------

SUPERVISED = """
  - id: work
    code: work
    output_schema: {properties: {n: {type: integer}}}
    transitions: [{when: output.n == 1, goto: done}, {goto: after, send: "from work"}]
    recover: [before]
    on_failure: after
  - {id: before, code: note, transitions: [{goto: work, max_visits: 9}]}
  - {id: after, code: note, transitions: [{goto: failed}]}
"""
SUPERVISED = "  - {id: first, code: note, goto: before}\n" + SUPERVISED


def supervised(advice, *results, per_step=2, per_run=6, more="", steps=SUPERVISED, policy, log=None):
    """Run `work`, which comes to each of the results; the outcome, the contexts of work, and what the boss was asked."""

    def work(context):
        seen.append(context)
        result = results[min(len(seen), len(results)) - 1]
        if isinstance(result, Exception):
            raise result
        return {"n": result}

    seen, notes = [], []
    asked = policy("boss", *advice)
    head = f"supervisor: {{model: 'simulated:boss', per_step: {per_step}, per_run: {per_run}{more}}}"
    functions = {"work": work, "note": lambda context: notes.append(context.correction)}
    return walk(steps, functions, head=head, log=log), seen, asked, notes


BAD = Failure("bad", "no luck", answer="hm")


def test_the_supervisor_is_not_asked_while_nothing_fails(policy):
    outcome, _, asked, _ = supervised([{"action": "retry"}], 1, policy=policy)
    assert (outcome.status, asked) == ("done", [])
    assert outcome.counters.advice == {}


def test_retry_does_the_step_again_with_the_instruction(policy):
    advice = {"action": "retry", "instruction": "Try harder."}
    outcome, seen, asked, _ = supervised([advice], BAD, 1, policy=policy)
    assert (outcome.status, outcome.path) == ("done", ["first", "before", "work"])
    assert [context.advice for context in seen] == [None, "Try harder."]
    assert outcome.counters.advice == {"followed": 1}
    assert "Step 'work' (code) failed: bad: bad: no luck" in asked[0]
    assert "It had answered: hm" in asked[0] and "send the run back to: before." in asked[0]
    assert outcome.counters.model_turns == {"work": 1}
    assert outcome.usage.calls == 1


def test_fix_puts_an_output_in_the_steps_place(policy):
    outcome, seen, _, _ = supervised([{"action": "fix", "fixed": {"n": 1}}], BAD, policy=policy)
    assert (outcome.status, outcome.outputs["work"], len(seen)) == ("done", {"n": 1}, 1)
    assert outcome.history[-1].error is None


@pytest.mark.parametrize("fixed", [{}, {"fixed": None}])
def test_a_fix_without_an_output_is_refused(policy, fixed):
    outcome, *_ = supervised([{"action": "fix"} | fixed], BAD, policy=policy)
    assert (outcome.path[-1], outcome.counters.advice) == ("after", {"refused": 1})


def test_a_fix_that_does_not_fit_is_no_advice_at_all(policy):
    outcome, *_ = supervised([{"action": "fix", "fixed": {"n": "one"}}], BAD, policy=policy)
    assert (outcome.path[-1], outcome.counters.advice) == ("after", {"refused": 1})


def test_a_fix_of_code_without_a_schema_must_be_a_mapping(policy):
    steps = "  - {id: work, code: work, goto: done}"
    for fixed, status in (([1], "failed"), ({"any": 1}, "done")):
        outcome, *_ = supervised([{"action": "fix", "fixed": fixed}], BAD, policy=policy, steps=steps)
        assert outcome.status == status


def test_goto_sends_the_run_back_with_the_instruction_as_a_correction(policy):
    advice = {"action": "goto", "goto": "before", "instruction": "Prepare better."}
    outcome, _, _, notes = supervised([advice], BAD, 1, policy=policy)
    assert outcome.path == ["first", "before", "work", "before", "work"]
    assert notes == [None, None, "Prepare better."]
    assert outcome.history[2].error.kind == "bad"


@pytest.mark.parametrize("target", ["after", "work", "done", "nowhere", None])
def test_advice_to_go_where_recover_does_not_say_is_not_followed(policy, log, target):
    advice = {"action": "goto", "goto": target, "instruction": "Go there."}
    outcome, seen, _, notes = supervised([advice], BAD, policy=policy, log=log)
    assert outcome.path == ["first", "before", "work", "after"]
    assert (notes[-1], len(seen)) == (None, 1)
    assert outcome.counters.advice == {"refused": 1}
    (event,) = [event for event in log.past if event["event"] == "advice"]
    assert "is not in the recover list of 'work'" in event["refused"]
    assert outcome.counters.cancelled == 1  # its instruction must not happen


def test_a_person_is_asked_where_the_file_says(policy):
    steps = SUPERVISED + "  - {id: ask, human: 'Help?', goto: failed}\n"
    for advice, said in (({"action": "person"}, "followed"), ({"action": "goto", "goto": "ask"}, "refused")):
        outcome, *_ = supervised([advice], BAD, more=", on_refused: ask", steps=steps, policy=policy)
        assert (outcome.status, outcome.question.step) == ("waiting", "ask")
        assert outcome.counters.advice == {said: 1}


@pytest.mark.parametrize("answer", ["no JSON", "", {"action": "dance"}, ConnectionError("gone")])
def test_a_supervisor_that_says_nothing_useful_is_not_followed(policy, answer):
    outcome, seen, *_ = supervised([answer], BAD, policy=policy)
    assert (outcome.path[-1], len(seen)) == ("after", 1)
    assert outcome.counters.advice == {"refused": 1}


def test_interventions_are_limited_per_step(policy):
    outcome, seen, asked, _ = supervised([{"action": "retry"}], BAD, per_step=3, policy=policy)
    assert (len(asked), len(seen), outcome.path[-1]) == (3, 4, "after")
    assert outcome.counters.limits == {"supervisor: 3 interventions for step work": 1}
    assert outcome.history[2].error.kind == "bad"


def test_interventions_are_limited_per_run(policy):
    steps = """
  - {id: a, code: work, goto: b, on_failure: b}
  - {id: b, code: work, goto: done, on_failure: c}
  - {id: c, code: work, goto: done}
"""
    outcome, seen, asked, _ = supervised(
        [{"action": "retry"}], BAD, per_step=2, per_run=3, policy=policy, steps=steps
    )
    assert (outcome.path, len(asked), len(seen)) == (["a", "b", "c"], 3, 6)
    assert outcome.counters.limits == {
        "supervisor: 2 interventions for step a": 1, "supervisor: 3 interventions for the run": 2,
    }  # fmt: skip


@pytest.mark.parametrize(("cost", "unpriced", "turns"), [(0.4, 0, 3), (0.5, 0, 2), (0.0, 1, 1)])
def test_interventions_are_limited_in_money(policy, priced, cost, unpriced, turns):
    priced(cost, unpriced)
    outcome, _, asked, _ = supervised(
        [{"action": "retry"}], BAD, per_step=9, per_run=9, more=", cost: 1", policy=policy
    )
    assert (len(asked), outcome.path[-1]) == (turns, "after")


def test_a_supervisor_without_money_is_never_asked(policy):
    _, _, asked, _ = supervised([{"action": "retry"}], BAD, more=", cost: 0", policy=policy)
    assert asked == []


def test_a_run_without_budget_for_advice_stops_with_the_failure_on_record(policy):
    policy("boss", {"action": "retry"})

    def work(context):
        raise Failure("bad")

    head = "supervisor: {model: simulated:boss}\nbudget: {calls: 0}"
    outcome = walk("  - {id: a, code: work, goto: done}", {"work": work}, head=head)
    assert (outcome.status, outcome.stopped_by.gate) == ("stopped", "Budget")
    assert (outcome.history[0].decision, outcome.history[0].error.kind) == ("crash", "bad")


def test_a_failing_probe_and_a_failing_condition_are_cases_for_the_supervisor_too(policy):
    policy("boss", {"action": "retry"})
    looks = iter([ValueError("no"), "done"])

    def look(context):
        if isinstance(said := next(looks), Exception):
            raise said
        return said

    steps = "  - {id: w, wait: {probe: look, interval: 1ms, max_duration: 1s}, goto: done}"
    outcome = walk(steps, {"look": look}, head="supervisor: {model: simulated:boss}")
    assert (outcome.status, outcome.counters.advice) == ("done", {"followed": 1})
    values = iter(["text", 5])
    steps = "  - {id: a, code: f, transitions: [{when: output.n > 3, goto: done}, {goto: failed}]}"
    outcome = walk(steps, {"f": lambda _: {"n": next(values)}}, head="supervisor: {model: simulated:boss}")
    assert (outcome.status, outcome.counters.advice) == ("done", {"followed": 1})


# --- simulation ---------------------------------------------------------------------------------------------

ALL = f"""
  - {{id: ask, prompt: Hm., {VERDICT}, goto: code}}
  - {{id: code, code: 'no.such:thing', {VERDICT}, goto: run}}
  - {{id: run, command: [/no/such], goto: look}}
  - {{id: look, wait: {{probe: 'no.such:probe', interval: 1d, max_duration: 300d}}, goto: person}}
  - {{id: person, human: 'Hm?', {VERDICT}, goto: done}}
"""


def test_a_simulation_needs_nothing_executes_nothing_and_waits_for_nothing():
    started = time.perf_counter()
    script = {"look.wait": ["pending"] * 200}
    outcome = walk(ALL, head="model: openai:gpt-5", simulation=Simulation(seed=1, script=script))
    assert (outcome.status, outcome.path) == ("done", ["ask", "code", "run", "look", "person"])
    assert outcome.outputs["run"] == {"exit_code": 0, "stdout": "", "stderr": ""}
    assert outcome.counters.polls == {("look", "pending"): 200, ("look", "done"): 1}
    assert time.perf_counter() - started < 5
    assert outcome.history.seconds > 199 * 86400


def test_a_simulation_is_the_same_every_time_and_seeds_differ():
    def outputs(seed):
        return walk(ALL, simulation=Simulation(seed=seed)).outputs

    assert outputs(7) == outputs(7)
    assert len({str(outputs(seed)) for seed in range(8)}) > 1


def test_scripts_answer_turn_by_turn_then_chance_does():
    steps = f"  - {{id: a, prompt: Hm., {VERDICT}, transitions: [{{when: output.verdict == 'bad', goto: a, max_visits: 5}}, {{goto: done}}]}}"
    script = {"a": [{"verdict": "bad"}, {"verdict": "bad"}, {"verdict": "good"}]}
    assert walk(steps, simulation=Simulation(script=script)).path == ["a"] * 3
    lengths = {
        len(walk(steps, simulation=Simulation(seed=seed, script={"a": [None]})).path) for seed in range(9)
    }
    assert len(lengths) > 1


@pytest.mark.parametrize("step", ["ask", "code", "run"])
@pytest.mark.parametrize("fault", ["malformed", "empty", "truncated", "refused", "timeout", "crash"])
def test_faults_go_wrong_as_they_say(step, fault):
    outcome = walk(ALL, simulation=Simulation(script={step: [{"fault": fault}]}))
    error = outcome.history[-1].error
    assert (outcome.status, outcome.path[-1]) == ("failed", step)
    assert (error.kind, error.typed) == (("RuntimeError", False) if fault == "crash" else (fault, True))


def test_a_fault_of_a_probe_and_of_the_supervisor():
    simulation = Simulation(script={"look.wait": [{"fault": "refused"}], "supervisor": [{"fault": "crash"}]})
    outcome = walk(ALL, simulation=simulation, head="supervisor: {}")
    assert (outcome.history[-1].error.kind, outcome.counters.advice) == ("refused", {"refused": 1})
    assert outcome.counters.polls["look", "failing"] == 1


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ({"b": []}, "answers for 'b'; there are ask, code, look.wait, person, run"),
        ({"look": []}, "answers for 'look'"),
        ({"ask.wait": []}, "answers for 'ask.wait'"),
        ({"supervisor": []}, "answers for 'supervisor'"),
        ({"ask": [{"fault": "boredom"}]}, "'boredom'; there are malformed"),
        ({"ask": [{"fault": ["crash"]}]}, "has fault"),
        ({"person": [{"fault": "crash"}]}, "a fault means nothing there"),
        ({"person": [{"verdict": "ugly"}]}, "verdict: Input should be 'good' or 'bad'"),
        ({"person": ["good"]}, "mapping of names"),
        ({"look.wait": ["soon"]}, "'soon'; a probe says pending, done, news"),
        ({"look.wait": [None]}, "None; a probe says"),
        ({"look.wait": [["done"]]}, "a probe says"),
        ({"ask": {"verdict": "good"}}, "must be a list"),
        ({"ask": "good"}, "must be a list"),
        ({"ask": 7}, "must be a list"),
    ],
)
def test_a_script_for_another_flow_is_refused(script, said):
    with pytest.raises(ValueError) as caught:
        walk(ALL, simulation=Simulation(script=script))
    assert said in str(caught.value)


def test_a_policy_that_is_not_there_is_refused_and_one_of_ones_own_is_asked(policy):
    with pytest.raises(ValueError, match="no simulated:nobody; there are empty"):
        walk(ALL, simulation=Simulation(policy="nobody"))
    asked = policy("mine", {"verdict": "good"})
    assert walk(ALL, simulation=Simulation(policy="mine")).status == "done"
    assert asked == ["Hm."]
    assert walk(ALL, simulation=Simulation(policy="empty")).history[0].error.kind == "empty"
    assert walk(ALL, simulation=Simulation(policy="oracle")).status == "done"


def test_a_script_is_read_from_yaml(tmp_path):
    path = tmp_path / "script.yaml"
    path.write_text("ask: [{verdict: good}]\nlook.wait: [pending, done]\n")
    simulation = Simulation.load(path, seed=2)
    assert (simulation.seed, simulation.script["look.wait"]) == (2, ["pending", "done"])
    assert Simulation(**simulation.record()) == simulation
    path.write_text("ask: {verdict: good}\nrun: 3\n")
    with pytest.raises(FlowError) as caught:
        Simulation.load(path)
    assert [problem.split(": ", 1)[1] for problem in caught.value.problems] == [
        "ask: a list of answers, got dict", "run: a list of answers, got int",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "part",
    [
        "type: integer, minimum: 0.5", "type: integer, minimum: 1, maximum: 1", "type: number, minimum: -2",
        "type: string, maxLength: 0", "type: string, minLength: 30", "type: array, minItems: 2, maxItems: 3",
        "type: array, items: {type: array, items: {type: boolean}}", "type: object, properties: {x: {type: integer}}",
        "type: integer, enum: [3, 5]", "type: number, enum: [0.5, 2]", "type: object",
    ],
)  # fmt: skip
def test_chance_answers_whatever_a_schema_allows(part):
    steps = "".join(
        f"  - {{id: {kind}, {kind}: Hm, output_schema: {{properties: {{a: {{{part}}}, b: {{{part}}}}}, required: [b]}}, goto: {goto}}}\n"
        for kind, goto in (("prompt", "code"), ("code", "human"), ("human", "done"))
    )
    for seed in range(4):
        assert walk(steps, simulation=Simulation(seed=seed)).status == "done"


def test_a_model_from_pydantic_ai_is_billed_and_asked_like_any(monkeypatch):
    def answer(messages, info):
        return ModelResponse(parts=[TextPart(content='{"verdict": "good"}')])

    monkeypatch.setattr(loopkit.models, "resolve", lambda name: resolve(FunctionModel(answer)))
    outcome = walk(f"  - {{id: a, prompt: Hm., {VERDICT}, goto: done}}", head="model: simulated:random")
    assert (outcome.outputs, outcome.usage.calls) == ({"a": {"verdict": "good"}}, 1)
