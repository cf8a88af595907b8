"""What is refused before anything runs, and where; and that whatever is accepted comes to an end."""

import asyncio
import itertools
import json
import re
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from loopkit.flow import Flow, FlowError, Simulation

QUICK = {"deadline": None, "phases": [Phase.explicit, Phase.reuse, Phase.generate]}


def problems(text):
    """What is wrong with a flow, each with its line and column."""
    try:
        Flow.parse(text)
    except FlowError as error:
        return [problem.removeprefix("flow:") for problem in error.problems]
    return []


def marked(text):
    """The text without its ^ marks, and the places they stand before, as line:column."""
    places = []
    for number, line in enumerate(text.splitlines(), 1):
        for count, found in enumerate(re.finditer(r"\^", line)):
            places.append(f"{number}:{found.start() + 1 - count}")
    return text.replace("^", ""), places


STEP = "steps: [{id: a, code: f, goto: done}]"
REVIEW = "output_schema: {properties: {verdict: {type: string, enum: [good, bad]}, n: {type: integer}, ok: {type: boolean}, tags: {type: array, items: {type: string, enum: [x, y]}}, word: {type: string}, r: {type: number}}}"


def step(rest, head=""):
    """A flow with one step whose output has a verdict, a number, a boolean, a list and a word."""
    return f"flow: f\n{head}\nsteps:\n  - id: a\n    code: f\n    {REVIEW}\n{rest}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # Fields.
        ("flow: f\n^stepz: 1\n" + STEP, "unknown field 'stepz'"),
        ("flow: f\nsteps: [{id: a, code: f, ^gotoo: done, goto: done}]", "unknown field 'gotoo'"),
        ("flow: f\nsteps: [{id: a, code: f, transitions: [{goto: done, ^wehn: x}]}]", "unknown field 'wehn'"),
        ("flow: f\n^budget: {}\n" + STEP, "a budget needs a limit"),
        ("flow: f\n^budget: {tokens: null}\n" + STEP, "a budget needs a limit"),
        ("flow: f\nbudget: {^tokens: -1}\n" + STEP, "greater than or equal to 0, got -1"),
        ("flow: f\nbudget: {^seconds: soon}\n" + STEP, "a duration reads 500ms, 90s, 10m, 1.5h or 2d, got 'soon'"),
        ("^" + STEP, "'flow' is missing"),
        ("^flow: f", "'steps' is missing"),
        ("flow: f\n^steps: []", "at least 1 item"),
        ("flow: f\n^steps: 7", "valid list, got 7"),
        ("^flow: 7\n" + STEP, "valid string, got 7"),
        ("^flow: a b\n" + STEP, "should match pattern"),
        ("flow: f\nparams: {^a-b: 1}\n" + STEP, "should match pattern"),
        ("flow: f\nsteps: [{^id: 9a, code: f, goto: done}]", "should match pattern"),
        ("flow: f\nsteps: [^{code: f, goto: done}]", "'id' is missing"),
        # What a step is.
        ("flow: f\nsteps: [^{id: a, goto: done}]", "exactly one of prompt, code, command, human, or a wait alone; found none"),
        ("flow: f\nsteps: [^{id: a, code: f, human: x, goto: done}]", "found code and human"),
        ("flow: f\nsteps: [^{id: a, code: f}]", "leads somewhere: give it either goto or transitions"),
        ("flow: f\nsteps: [^{id: a, code: f, goto: done, transitions: [{goto: done}]}]", "either goto or transitions"),
        ("flow: f\nsteps: [^{id: a, prompt: x, goto: done}]", "a prompt needs an output_schema"),
        ("flow: f\nsteps: [^{id: a, code: f, model: x, goto: done}]", "model means nothing for a code step (only for prompt)"),
        ("flow: f\nsteps: [^{id: a, human: x, on_failure: done, goto: done}]", "on_failure means nothing for a human step"),
        ("flow: f\nsteps: [^{id: a, human: x, goal: {until: x, max_iterations: 1}, goto: done}]", "goal means nothing for a human step"),
        ("flow: f\nsteps: [^{id: a, command: [x], output_schema: {}, goto: done}]", "output_schema means nothing for a command step"),
        ("flow: f\nsteps: [{id: a, ^command: [], goto: done}]", "at least 1 item"),
        ("flow: f\nsteps: [{id: a, code: f, ^timeout: 0s, goto: done}]", "greater than 0"),
        ("flow: f\nsteps: [{id: a, code: f, ^timeout: 400d, goto: done}]", "less than or equal to 31622400"),
        ("flow: f\nsteps: [{id: a, prompt: x, output_schema: {}, ^temperature: 3, goto: done}]", "less than or equal to 2"),
        # Bounds.
        ("flow: f\nsteps: [{id: a, code: f, transitions: [{goto: a, ^max_visits: 0}]}]", "greater than or equal to 1"),
        ("flow: f\nsteps: [{id: a, code: f, transitions: [{goto: a, ^max_visits: 10001}]}]", "less than or equal to 10000"),
        ("flow: f\nsteps: [{id: a, code: f, transitions: [{goto: a, ^max_visits: 1.0}]}]", "valid integer"),
        ("flow: f\nsteps: [{id: a, code: f, transitions: [^{goto: done, on_exhausted: done}]}]", "on_exhausted goes with max_visits"),
        ("flow: f\nsteps: [{id: a, code: f, transitions: [{goto: a, ^loop: {name: x}}]}]", "'max_iterations' is missing"),
        ("flow: f\nsteps: [{id: a, code: f, ^goal: {until: x}, goto: done}]", "'max_iterations' is missing"),
        ("flow: f\nsteps: [{id: a, ^wait: {probe: p, interval: 1s}, goto: done}]", "'max_duration' is missing"),
        ("flow: f\nsteps: [{id: a, wait: {probe: {^command: [], pending: [1]}, interval: 1s, max_duration: 1s}, goto: done}]", "at least 1 item"),
        ("flow: f\nsupervisor: {^per_step: 0}\n" + STEP, "greater than or equal to 1"),
        # Schemas.
        ("flow: f\nsteps: [^{id: a, code: f, output_schema: {type: string}, goto: done}]", "an object with properties, got string"),
        ("flow: f\nsteps: [{id: a, code: f, ^output_schema: {minimum: 1}, goto: done}]", "minimum means nothing for type object"),
        ("flow: f\nsteps: [{id: a, code: f, ^output_schema: {required: [x]}, goto: done}]", "required names x, which properties lacks"),
        ("flow: f\nsteps: [{id: a, code: f, output_schema: {properties: {^x: {type: integer, minimum: 2, maximum: 1}}}, goto: done}]", "minimum 2 is above maximum 1"),
        ("flow: f\nsteps: [{id: a, code: f, output_schema: {properties: {^x: {type: integer, minimum: 1.2, maximum: 1.8}}}, goto: done}]", "no integer from 1.2 to 1.8"),
        ("flow: f\nsteps: [{id: a, code: f, output_schema: {properties: {^x: {type: string, enum: [1]}}}, goto: done}]", "the enum of a string holds [1]"),
        ("flow: f\nsteps: [{id: a, code: f, output_schema: {properties: {x: {^type: text}}}, goto: done}]", "got 'text'"),
        ("flow: f\nsteps: [{id: a, code: f, output_schema: {properties: {x: {type: string, ^enum: []}}}, goto: done}]", "at least 1 item"),
        # Names of steps.
        ("flow: f\n^start: b\n" + STEP, "start: there is no step 'b'; there are a"),
        ("flow: f\nsteps: [{^id: done, code: f, goto: failed}]", "'done' is an end of every flow"),
        ("flow: f\nsteps: [{id: a, code: f, goto: done}, {^id: a, code: f, goto: done}]", "there are two steps 'a'"),
        ("flow: f\nsteps: [{id: a, code: f, ^goto: b}]", "goto: there is no step 'b'; there are a, done, failed"),
        ("flow: f\nsteps: [{id: a, code: f, goto: done, ^on_failure: b}]", "on_failure: there is no step 'b'"),
        ("flow: f\nsteps: [{id: a, code: f, transitions: [{^goto: b}]}]", "goto: there is no step 'b'"),
        ("flow: f\nsteps: [{id: a, code: f, transitions: [{goto: a, max_visits: 1, ^on_exhausted: b}]}]", "on_exhausted: there is no step 'b'"),
        ("flow: f\nsteps: [{id: a, code: f, transitions: [{goto: a, loop: {max_iterations: 1, ^on_exhausted: b}}]}]", "on_exhausted: there is no step 'b'"),
        ("flow: f\nsteps: [{id: a, code: f, goal: {until: x, max_iterations: 1, ^on_exhausted: b}, goto: done}]", "on_exhausted: there is no step 'b'"),
        ("flow: f\nsteps: [{id: a, wait: {probe: p, interval: 1s, max_duration: 1s, ^on_exhausted: b}, goto: done}]", "on_exhausted: there is no step 'b'"),
        ("flow: f\nsupervisor: {}\nsteps: [{id: a, code: f, goto: done, recover: [a, ^b]}]", "recover: there is no step 'b'"),
        ("flow: f\nsupervisor: {^on_refused: b}\n" + STEP, "on_refused: there is no step 'b'"),
        ("flow: f\nsteps: [{id: a, code: f, goto: done, ^recover: [a]}]", "recover is for a supervisor, and the flow has none"),
        ("flow: f\nsteps: [{id: a, code: f, goto: done}, {^id: b, code: f, goto: a}]", "no way leads to step 'b'"),
        # Cycles.
        ("flow: f\nsteps: [{id: a, code: f, ^goto: a}]", "nothing bounds the cycle a → a"),
        ("flow: f\nsteps: [{id: a, code: f, goto: b}, {id: b, code: f, transitions: [{^goto: a}]}]", "nothing bounds the cycle a → b → a"),
        ("flow: f\nsteps: [{id: a, code: f, goto: done, ^on_failure: a}]", "nothing bounds the cycle a → a"),
        ("flow: f\nsteps: [{id: a, code: f, transitions: [{goto: a, max_visits: 1, ^on_exhausted: a}]}]", "nothing bounds the cycle"),
        ("flow: f\nsteps: [{id: a, code: f, transitions: [{goto: a, loop: {max_iterations: 1, ^on_exhausted: a}}]}]", "nothing bounds"),
        ("flow: f\nsteps: [{id: a, wait: {probe: p, interval: 1s, max_duration: 1s, ^on_exhausted: a}, goto: done}]", "nothing bounds"),
        (
            "flow: f\nsteps:\n- {id: a, code: f, transitions: [{goto: a, loop: {name: x, max_iterations: 1}}]}\n- {id: b, code: f, transitions: [{goto: b, loop: {name: x, ^max_iterations: 2}}]}\nstart: b".replace("{goto: b,", "{when: visits < 3, goto: a}, {goto: b,"),
            "x has the limit 1 elsewhere, here max_iterations 2",
        ),
        # Names in expressions.
        (step("    transitions: [{^when: outptu.ok, goto: done}, {goto: failed}]"), "unknown name 'outptu'; there are params, steps"),
        (step("    transitions: [{^when: output.okay, goto: done}, {goto: failed}]"), "output.okay: the output of 'a' has verdict, n, ok, tags, word, r"),
        (step("    transitions: [{^when: output.ok.yes, goto: done}, {goto: failed}]"), "output.ok.yes: the output of 'a' has"),
        (step("    transitions: [{^when: output.tags.x, goto: done}, {goto: failed}]"), "output.tags.x: the output of 'a' has"),
        (step("    transitions: [{^when: params.x, goto: done}, {goto: failed}]", "params: {y: 1}"), "no parameter 'x'; there are y"),
        (step("    transitions: [{^when: steps.b.visits, goto: done}, {goto: failed}]"), "there is no step 'b'"),
        (step("    transitions: [{^when: steps.a.otput, goto: done}, {goto: failed}]"), "a step has output and visits, not 'otput'"),
        (step("    transitions: [{^when: steps.a.output.x, goto: done}, {goto: failed}]"), "the output of 'a' has"),
        (step("    transitions: [{^when: 'output.verdict == \"godo\"', goto: done}, {goto: failed}]"), "output.verdict is never 'godo': it is one of 'good', 'bad'"),
        (step("    transitions: [{^when: 'output.verdict in [\"good\", \"bda\"]', goto: done}, {goto: failed}]"), "output.verdict is never 'bda'"),
        (step("    transitions: [{^when: '\"z\" == steps.a.output.tags[0]', goto: done}, {goto: failed}]"), "steps.a.output.tags.0 is never 'z'"),
        (step("    transitions: [{^when: output.ok +, goto: done}, {goto: failed}]"), "invalid syntax"),
        (step("    transitions: [{^when: true, goto: done}]"), "the expression must be text, got True"),
        (step("    goal: {^until: output.x, max_iterations: 2}\n    goto: done"), "the output of 'a' has"),
        (step("    transitions: [{goto: done, ^send: '{{ output.x }}'}]"), "the output of 'a' has"),
        (step("    transitions: [{goto: done, ^send: '{{ output'}]"), "opens a hole that nothing closes"),
        ("flow: f\nsteps: [{id: a, human: x, goto: b}, {id: b, ^prompt: '{{ output.x }}', output_schema: {}, goto: done}]", "unknown name 'output'"),
        ("flow: f\nsteps: [{id: a, ^human: '{{ steps.a.output.x }}', goto: done}]", "the output of 'a' has answer"),
        ("flow: f\nsteps: [{id: a, command: [x, ^'{{ y }}'], goto: done}]", "unknown name 'y'"),
        ("flow: f\nsteps: [{id: a, command: [x], ^cwd: '{{ params.y }}', goto: done}]", "no parameter 'y'; there are none"),
        ("flow: f\nsteps: [{id: a, command: [x], transitions: [{^when: output.code, goto: done}, {goto: failed}]}]", "the output of 'a' has exit_code, stdout, stderr"),
        ("flow: f\nsteps: [{id: a, wait: {probe: p, interval: 1s, max_duration: 1s, output: {x: 1}}, transitions: [{^when: output.y, goto: done}, {goto: failed}]}]", "the output of 'a' has x, poll, news"),
        ("flow: f\nsteps: [{id: a, wait: {probe: {command: [x, ^'{{ y }}'], pending: [1]}, interval: 1s, max_duration: 1s}, goto: done}]", "unknown name 'y'"),
    ],
)  # fmt: skip
def test_what_is_refused_and_where(text, said):
    text, (place,) = marked(text)
    (problem,) = problems(text)
    assert problem.startswith(f"{place}: ")
    assert said in problem


@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        (["output.verdict == 'good'"], "output.verdict is 'bad'"),
        (["output.verdict == 'good' and output.ok", "output.verdict == 'bad'"], "output.verdict is 'good', output.ok is False"),
        (["output.ok"], "output.ok is False"),
        (["output.n < 3", "output.n > 3"], "output.n is 3"),
        (["output.n <= 3", "output.n > 4"], "output.n is 4"),
        (["output.r <= 3", "output.r >= 4"], "output.r is 3.5"),
        (["output.n == 3", "output.n != 3 and output.n < 100"], "output.n is 1000000000"),
        (["output.word == 'x'", "output.word == 'y'"], "output.word is 'something else'"),
        (["output.word"], "output.word is ''"),
        (["len(output.tags) == 0", "len(output.tags) > 1"], "output.tags is [None]"),
        (["output.tags[0] == 'x'", "output.tags[0] == 'y'"], "output.tags.0 is None"),
        (["visits < 3", "visits > 3"], "visits is 3"),
        (["params.p == 'x'"], "params.p is 'something else'"),
        (["params.q"], "params.q is False"),
        (["params.m < 5"], "params.m is 1000000000"),
        (["correction"], "correction is None"),
        (["steps.b.output.n == 1", "steps.b.output.n != 1 and steps.b.visits > 0"], "steps.b.output.n is "),
        (["output.word < 3"], "(\"'output.word < 3' does not work for 'something else' and 3"),
        ([f"output.verdict == 'good' and output.n == {n} and visits == {n} and params.m == {n} and output.m == {n}" for n in range(9)], "cases apart, more than are tried"),
    ],
)  # fmt: skip
def test_conditions_that_may_all_be_false_are_refused_with_a_case(conditions, left):
    listed = "\n".join(f'      - {{when: "{when}", goto: b}}' for when in conditions)
    text = step(
        f"    transitions:\n{listed}\n  - {{id: b, code: g, output_schema: {{properties: {{n: {{type: integer}}}}}}, goto: done}}",
        "params: {p: x, q: true, m: 4}",
    ).replace("n: {type: integer}, ok", "n: {type: integer}, m: {type: integer}, ok")
    (problem,) = problems(text)
    assert problem.startswith("7:5: step 'a' leads nowhere when ")
    assert left.strip('("') in problem
    assert problem.endswith(": add a transition without when")
    assert problems(text.replace(listed, listed + "\n      - goto: failed")) == []


@pytest.mark.parametrize(
    "conditions",
    [
        ["output.verdict == 'good'", "output.verdict == 'bad'"],
        ["output.verdict in ['good', 'bad']"],
        ["output.verdict == 'good' or output.ok", "not output.ok"],
        ["output.ok", "not output.ok"],
        ["output.n < 3", "output.n >= 3"],
        ["output.n <= 3", "output.n >= 4"],
        ["output.n < 3", "output.n == 3", "3 < output.n"],
        ["output.verdict != null and output.verdict == 'good'", "output.verdict == 'bad'"],
        ["output.word == ''", "output.word != ''"],
        ["len(output.tags) > 0", "output.tags == []"],
        ["output.tags[0] == 'x'", "output.tags[0] == 'y'", "len(output.tags) == 0"],
        ["visits < 3", "visits >= 3"],
        ["params.p == 'x'", "params.p != 'x'"],
        ["correction", "not correction"],
    ],
)
def test_conditions_of_which_one_always_holds_need_no_other(conditions):
    listed = "\n".join(f'      - {{when: "{when}", goto: done}}' for when in conditions)
    assert problems(step(f"    transitions:\n{listed}", "params: {p: x}")) == []


def test_what_another_step_came_to_may_be_none_unless_it_was_done_before():
    ask = "output_schema: {properties: {go: {type: boolean}}}"
    asked = f"""
flow: f
steps:
  - {{id: ask, code: f, {ask}, goto: use, on_failure: FAILING}}
  - id: use
    code: f
    transitions:
      - {{when: "steps.ask.output.go == true", goto: done}}
      - {{when: "steps.ask.output.go == false", goto: failed}}
"""
    assert problems(asked.replace("FAILING", "failed")) == []
    (problem,) = problems(asked.replace("FAILING", "use"))
    assert problem == (
        "7:5: step 'use' leads nowhere when steps.ask.output.go is None: add a transition without when"
    )


@pytest.mark.parametrize("optional", ["required: [n]", "required: []"])
def test_what_an_output_may_leave_out_may_be_none(optional):
    text = f"""
flow: f
steps:
  - id: a
    code: f
    output_schema: {{properties: {{n: {{type: integer}}, v: {{type: string, enum: [x, y]}}}}, {optional}}}
    transitions: [{{when: "output.v == 'x'", goto: done}}, {{when: "output.v == 'y'", goto: done}}]
"""
    (problem,) = problems(text)
    assert "when output.v is None" in problem


def test_all_problems_are_listed_at_once():
    text = """
flow: f
steps:
  - {id: a, code: f, goto: a, on_failure: a}
  - id: a
    code: f
    output_schema: {properties: {ok: {type: boolean}}}
    transitions: [{when: output.okay, goto: done}]
  - {id: b, code: f, goto: done}
  - {id: c, command: ["{{ x }}"], goto: done}
"""
    assert [problem.split(": ")[0] for problem in problems(text)] == [
        "5:5",
        "9:6",
        "10:6",
        "4:22",
        "4:31",
        "8:20",
        "10:23",
    ]
    several = problems("flow: f\nstart: 7\nparams: []\nsteps:\n  - {id: a, goto: done}\n  - {code: f}\n")
    assert [problem.split(": ")[0] for problem in several] == ["2:1", "3:1", "5:5", "6:5"]


def test_the_factory_is_accepted_and_a_typo_anywhere_in_it_is_not():
    text = (Path(__file__).parents[2] / "experiments/flows/factory.yaml").read_text(encoding="utf-8")
    assert problems(text) == []
    for typo, said in (
        (("goto: review", "goto: reveiw"), "goto: there is no step 'reveiw'"),
        (
            ("output.verdict == 'approved'", "output.verdict == 'aproved'"),
            "output.verdict is never 'aproved'",
        ),
        (
            ("loop: { name: ci_cycle, max_iterations: 2, on_exhausted: ask_person }", "send: again"),
            "nothing bounds the cycle",
        ),
        (("params.task", "params.taks"), "the flow has no parameter 'taks'"),
        (("recover: [push]", "recover: [pusch]"), "recover: there is no step 'pusch'"),
    ):
        found = problems(text.replace(*typo, 1))
        assert found and any(said in problem for problem in found), found


# --- graphs -------------------------------------------------------------------------------------------------


@st.composite
def graphs(draw):
    """Steps, and ways between them: (from, to, how it is declared)."""
    names = [f"s{index}" for index in range(draw(st.integers(1, 5)))]
    ends = [*names, "done", "failed"]
    kinds = ["goto", "goto", "max_visits", "loop", "on_failure", "recover", "goal", "wait"]
    ways = draw(
        st.lists(st.tuples(st.sampled_from(names), st.sampled_from(ends), st.sampled_from(kinds)), max_size=9)
    )
    return names, ways


def declared(names, ways):
    """The flow with these ways, and the edges that are free and those that are bounded, by an account of our own."""
    free, bounded, steps = set(), set(), []
    for name in names:
        step = {"id": name, "code": "f", "transitions": []}
        for _, target, kind in [way for way in ways if way[0] == name]:
            match kind:
                case "goto":
                    step["transitions"].append({"goto": target, "when": "visits > 1"})
                    free.add((name, target))
                case "max_visits":
                    step["transitions"].append({"goto": target, "when": "visits > 1", "max_visits": 2})
                    bounded.add((name, target))
                case "loop":
                    step["transitions"].append(
                        {"goto": target, "when": "visits > 1", "loop": {"max_iterations": 2}}
                    )
                    bounded.add((name, target))
                case "on_failure":
                    step["on_failure"] = target
                case "recover":
                    step["recover"] = [*step.get("recover", []), target]
                    bounded.add((name, target))
                case "goal":
                    step["goal"] = {"until": "output.ok", "max_iterations": 2, "on_exhausted": target}
                case "wait":
                    step["wait"] = {"probe": "p", "interval": 1, "max_duration": 2, "on_exhausted": target}
        free |= {(name, step[part]["on_exhausted"]) for part in ("goal", "wait") if part in step}
        free |= {(name, step["on_failure"])} if "on_failure" in step else set()
        step["transitions"].append({"goto": "done"})
        steps.append(step)
    return {"flow": "f", "supervisor": {}, "steps": steps}, free, bounded


def simple_cycles(names, edges):
    """Brute force: every choice of steps in every order that the edges close."""
    for size in range(1, len(names) + 1):
        for order in itertools.permutations(names, size):
            if all((one, other) in edges for one, other in zip(order, [*order[1:], order[0]], strict=True)):
                yield order


def reached(names, edges):
    """Brute force: the steps that end some path from the first without a repetition."""
    paths = (order for size in range(1, len(names) + 1) for order in itertools.permutations(names, size))
    return {
        order[-1]
        for order in paths
        if order[0] == names[0] and all(pair in edges for pair in itertools.pairwise(order))
    }


@settings(max_examples=120, **QUICK)
@given(graphs())
def test_a_flow_is_accepted_exactly_if_free_ways_make_no_cycle_and_every_step_is_reached(graph):
    names, ways = graph
    flow, free, bounded = declared(names, ways)
    found = problems(json.dumps(flow))
    cycles, away = set(simple_cycles(names, free)), set(names) - reached(names, free | bounded)
    assert {
        re.search(r"step '(\w+)'", problem)[1] for problem in found if "no way leads to" in problem
    } == away
    named = [
        tuple(re.search("cycle (.*):", problem)[1].split(" → ")[:-1])
        for problem in found
        if "nothing bounds" in problem
    ]
    assert set(named) <= cycles  # each one that is named is one
    assert bool(named) == bool(cycles)
    # Without the ways it blames nothing is left to blame.
    assert not any("nothing bounds" not in problem and "no way leads" not in problem for problem in found)


# --- everything that is accepted ends -----------------------------------------------------------------------


def most_visits(flow):
    """More steps than any walk can take: between two bounded ways it takes free ones, which make no cycle."""
    limits = {}
    for step in flow["steps"]:
        for way in step["transitions"]:
            name = f"{step['id']}->{way['goto']}"
            if "max_visits" in way:
                limits[name] = max(limits.get(name, 0), way["max_visits"])
            if "loop" in way:
                named = way["loop"].get("name", name)
                limits[named] = max(limits.get(named, 0), way["loop"]["max_iterations"])
    bounded = sum(limits.values()) + flow.get("supervisor", {}).get("per_run", 0)
    return (bounded + 1) * len(flow["steps"])


@settings(max_examples=120, **QUICK)
@given(data=st.data())
def test_every_flow_that_is_accepted_ends_and_goes_where_its_table_says(cases, quick_ask, data):
    text, plain, simulation = data.draw(cases())
    flow = Flow.parse(text)
    outcome = asyncio.run(flow.run(simulation=Simulation(**simulation)))
    assert outcome.status in ("done", "failed", "stopped")
    assert 1 <= len(outcome.path) <= most_visits(plain)
    assert (outcome.stopped_by.gate == "Budget") == (outcome.status == "stopped")
    table = {(row["step"], row["goto"]) for row in flow.outcomes()}
    ends = [] if outcome.status == "stopped" else [outcome.status]
    taken = set(itertools.pairwise([*outcome.path, *ends]))
    assert taken <= table
    drawn = flow.draw(failures=True)
    for source, target in taken - {(step, "failed") for step in outcome.path}:
        assert re.search(rf"^  s_{source} -.*> ?(\|.*\| )?s_{target}$", drawn, re.MULTILINE)
    counted = outcome.counters
    assert counted.visits == {name: outcome.path.count(name) for name in set(outcome.path)}
    for row in counted.rows():
        if row["what"] == "loop":
            assert row["count"] <= row["limit"]
        if row["what"] == "supervisor":
            assert row["limit"] is None or counted.advice.total() <= row["limit"]
    asked = sum(counted.model_turns.values())
    assert outcome.usage.calls <= asked  # a fault may go without a call
    if "supervisor" not in plain:
        assert counted.advice == {} and not any(
            turn.error and turn.error.phase == "supervisor" for turn in outcome.history
        )


@settings(max_examples=60, **QUICK)
@given(data=st.data())
def test_no_supervisor_and_no_model_is_asked_where_nothing_fails_and_nothing_is_new(cases, quick_ask, data):
    text, plain, simulation = data.draw(cases())
    waits = {step["id"]: ["pending", "done"] * 50 for step in plain["steps"] if "wait" in step}
    script = {f"{name}.wait": states for name, states in waits.items()}
    outcome = asyncio.run(Flow.parse(text).run(simulation=Simulation(seed=simulation["seed"], script=script)))
    assert outcome.counters.advice == {}
    prompts = {step["id"] for step in plain["steps"] if "prompt" in step}
    assert set(outcome.counters.model_turns) <= prompts
    assert outcome.usage.calls == sum(outcome.counters.model_turns.values())
    assert outcome.counters.polls_without_model == outcome.counters.polls.total()
