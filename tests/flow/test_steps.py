"""What steps do: code that is called, commands that are run, waits, questions to people."""

import asyncio
import json
import os
import shlex
import sys
import time
from pathlib import Path

import pytest

import loopkit.models
from loopkit import Failure, Store
from loopkit.flow import Flow, FlowError, Question, Simulation
from loopkit.usage import Usage

VERDICT = "output_schema: {properties: {verdict: {type: string, enum: [good, bad]}}}"


def walk(steps, functions=None, *, head="", **how):
    """Run the flow that has these steps."""
    return asyncio.run(Flow.parse(f"flow: small\n{head}\nsteps:\n{steps}", functions).run(**how))


# --- code ---------------------------------------------------------------------------------------------------

CODE = """
  - id: work
    code: work
    output_schema: {properties: {n: {type: integer, minimum: 1, maximum: 9}, note: {type: string}}, required: [n]}
    timeout: 20ms
    goto: done
"""


@pytest.mark.parametrize(
    ("result", "kind", "said"),
    [
        ({"n": 0}, "malformed", "n: Input should be greater"),
        ({"n": 10}, "malformed", "n: Input should be less"),
        ({"n": "1"}, "malformed", "n: Input should be a valid integer"),
        ({"n": 1.5}, "malformed", "n: "),
        ({"n": True}, "malformed", "n: "),
        ({"n": 1, "m": 2}, "malformed", "m: Extra inputs"),
        ({}, "malformed", "n: Field required"),
        (None, "malformed", "n: Field required"),
        (7, "malformed", "mapping of names, got 7"),
        ([1], "malformed", "mapping of names"),
        ({1: 2}, "malformed", "mapping of names"),
        (Failure("no luck", "today"), "no luck", "today"),
        (KeyError("lost"), "KeyError", "lost"),
    ],
)
def test_what_code_returns_is_checked_and_what_it_raises_is_a_failure_of_the_step(result, kind, said):
    def work(context):
        if isinstance(result, Exception):
            raise result
        return result

    outcome = walk(CODE, {"work": work})
    (turn,) = outcome.history
    assert (outcome.status, outcome.stopped_by.reason) == ("failed", f"work: failure: {kind}")
    assert (turn.decision, turn.error.kind, turn.error.phase) == ("crash", kind, "code")
    assert turn.error.typed is (kind != "KeyError") and said in turn.error.message
    assert outcome.outputs == {}


def test_what_an_output_may_leave_out_is_none_there():
    outcome = walk(CODE, {"work": lambda _: {"n": 3}})
    assert outcome.outputs == {"work": {"n": 3, "note": None}}


def test_async_code_that_takes_too_long_is_cancelled():
    ended = []

    async def work(context):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(1)

    assert walk(CODE, {"work": work}).history[0].error.kind == "timeout"
    assert ended == [1]


def test_an_output_without_a_schema_becomes_the_plain_data_that_a_record_gives_back(tmp_path):
    seen = []
    flow = Flow.parse(
        "flow: f\nparams: {folder: x}\nsteps:\n  - {id: a, code: make, goto: b}\n  - {id: b, human: 'Go?', goto: c}\n"
        "  - {id: c, code: look, goto: done}",
        {"make": lambda _: {"pair": (1, 2), "path": Path("x"), "odd": float("nan"), "set": {1}},
         "look": lambda context: seen.append(context)},
    )  # fmt: skip
    outputs = []
    for person in (lambda question: {"answer": "yes"}, None):
        with Store(tmp_path).create(f"r{len(outputs)}") as log:
            outcome = asyncio.run(flow.run(log=log, params={"folder": tmp_path}, person=person))
        if outcome.status == "waiting":
            with Store(tmp_path).resume("r1") as log:
                flow.answer(log, {"answer": "yes"})
                outcome = asyncio.run(flow.run(log=log))
        outputs.append(outcome.outputs["a"])
    assert outputs == [{"pair": [1, 2], "path": "x", "odd": "NaN", "set": [1]}] * 2
    assert [context.params for context in seen] == [{"folder": str(tmp_path)}] * 2


def test_a_function_that_is_not_there_is_refused_before_anything_runs(log):
    for name, said in (
        ("nobody", "package.module:function, or is a key"),
        ("os.path:nothing", "nothing"),
        ("no.such:module", "No module"),
        ("os:sep", "is no function"),
        (":x", "find the function"),
    ):
        with pytest.raises(ValueError, match=said):
            walk(f"  - {{id: a, code: '{name}', goto: done}}", log=log)
        with pytest.raises(ValueError, match=said):
            walk(
                f"  - {{id: a, wait: {{probe: '{name}', interval: 1s, max_duration: 1s}}, goto: done}}",
                log=log,
            )
    assert [event["event"] for event in log.past] == ["start"]
    assert walk("  - {id: a, code: 'os:getpid', goto: done}").history[0].error.kind == "TypeError"


@pytest.mark.parametrize(
    "when", ["output.n > 3", "len(output.n) > 3", "output.n == 1"], ids=["order", "length", "none holds"]
)
def test_a_condition_that_does_not_suit_the_output_is_a_failure_of_the_step(when):
    steps = f"""
  - {{id: a, code: f, transitions: [{{when: '{when}', goto: done}}, {{when: 'output.n == 2', goto: done}}, {{when: 'output.n != 0', goto: a, max_visits: 1}}], on_failure: b}}
  - {{id: b, code: f, goto: done}}
"""
    with (
        pytest.raises(FlowError, match="leads nowhere when")
        if when != "output.n == 1"
        else pytest.raises(FlowError)
    ):
        walk(steps, {"f": lambda _: {"n": 0}})
    steps = steps.replace("{when: 'output.n != 0', goto: a", "{goto: a")
    outcome = walk(steps, {"f": lambda _: {"n": None if ">" in when else 0}})
    assert outcome.path == (["a", "b"] if ">" in when else ["a", "a"])
    if ">" in when:
        assert (outcome.history[0].error.kind, outcome.history[0].error.typed) == ("expression", True)


def test_no_transition_at_run_time_is_a_failure_that_names_the_output():
    # Of text the check tries the words that are compared, and one beside them.
    steps = """
  - id: a
    code: f
    output_schema: {properties: {word: {type: string}}}
    transitions: [{when: "not ('secret' in output.word)", goto: done}]
    on_failure: b
  - {id: b, code: g, goto: done}
"""
    outcome = walk(steps, {"f": lambda _: {"word": "a secret"}, "g": lambda _: None})
    error = outcome.history[0].error
    assert (outcome.path, error.kind, error.typed) == (["a", "b"], "no transition", True)
    assert "'a secret'" in error.message


# --- commands -----------------------------------------------------------------------------------------------


def command(*argv, more="", **how):
    """Run one command as a step; its output, or its error."""
    text = json.dumps(list(argv))
    outcome = walk(f"  - {{id: run, command: {text}, goto: done{more}}}", **how)
    return outcome.outputs.get("run") or outcome.history[0].error


def test_what_is_filled_into_a_command_stays_one_argument():
    nasty = "; rm -rf / $(id) `id` * ~ \"q\" 'q' \\ | > x && y # \n z"
    show = "import json, sys; print(json.dumps(sys.argv[1:]))"
    outcome = walk(
        f"  - {{id: run, command: {json.dumps([sys.executable, '-c', show, '{{ params.x }}', 'a{{ params.x }}', ''])}, goto: done}}",
        head="params: {x: ''}",
        params={"x": nasty},
    )
    assert json.loads(outcome.outputs["run"]["stdout"]) == [nasty, "a" + nasty, ""]


def test_a_command_that_fails_is_an_output_like_any_other():
    assert command("sh", "-c", "echo out; echo err >&2; exit 3") == {
        "exit_code": 3, "stdout": "out\n", "stderr": "err\n",
    }  # fmt: skip
    assert command("sh", "-c", "kill -9 $$")["exit_code"] == -9


def test_a_command_reads_nothing_and_its_bytes_may_be_no_text():
    assert command("cat") == {"exit_code": 0, "stdout": "", "stderr": ""}
    assert command("printf", "\\377a")["stdout"] == "\ufffda"


@pytest.mark.parametrize(
    ("argv", "said"),
    [(["/no/such/program"], "/no/such/program"), ([""], "cannot run ''"), (["echo", "a\0b"], "null byte")],
)
def test_a_command_that_cannot_run(argv, said):
    error = command(*argv)
    assert (error.kind, error.typed) == ("not found", True) and said in error.message


def test_a_command_runs_in_its_folder(tmp_path):
    assert command("pwd", more=f", cwd: {tmp_path}")["stdout"] == f"{tmp_path}\n"
    assert f"in '{tmp_path}/no'" in command("pwd", more=f", cwd: {tmp_path}/no").message


def test_a_command_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path):
    pid = tmp_path / "pid"
    error = command(
        "sh", "-c", f"sleep 60 & echo $! > {shlex.quote(str(pid))}; wait", more=", timeout: 300ms"
    )
    assert (error.kind, error.message) == ("timeout", "timeout: no end after 0.3 s")
    for _ in range(100):  # until init has buried it
        if not Path(f"/proc/{pid.read_text().strip()}").exists():
            break
        time.sleep(0.01)
    else:
        state = Path(f"/proc/{pid.read_text().strip()}/stat").read_text().split()[2]
        assert state == "Z"


async def test_a_command_is_killed_when_the_run_is_cancelled(tmp_path):
    pid = tmp_path / "pid"
    flow = Flow.parse(
        f"flow: f\nsteps: [{{id: a, command: [sh, -c, 'echo $$ > {pid}; exec sleep 60'], goto: done}}]"
    )
    running = asyncio.create_task(flow.run())
    while not (pid.exists() and pid.read_text().strip()):
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_long_output_keeps_its_head_and_its_tail():
    said = command(sys.executable, "-c", "print('head'); print('x' * 100_000); print('tail')")["stdout"]
    assert said.startswith("head\n") and said.endswith("tail\n")
    assert len(said) < 21_000 and "… 80011 bytes left out …" in said
    assert command(sys.executable, "-c", "print('x' * 19_999)")["stdout"] == "x" * 19_999 + "\n"


def test_code_gets_a_copy_and_cannot_change_what_the_run_goes_by():
    def change(context):
        context.params["n"] += 1
        context.steps["a"]["output"]["list"].append(1)
        kept.append({"list": []})
        return kept[-1]

    kept = []
    steps = "  - {id: a, code: make, goto: b}\n  - {id: b, code: change, goto: c}\n  - {id: c, code: see, goto: done}"
    outcome = walk(
        steps,
        {"make": lambda _: {"list": []}, "change": change,
         "see": lambda context: kept[0]["list"].append(2) or {"n": context.params["n"], "b": context.steps["b"]["output"]}},
        head="params: {n: 1}",
    )  # fmt: skip
    assert outcome.outputs == {"a": {"list": []}, "b": {"list": []}, "c": {"n": 1, "b": {"list": []}}}


def test_what_is_to_be_done_once_is_not_done_again_on_advice_either(tmp_path, policy):
    class Died(BaseException):
        pass

    def work(context):
        done.append(1)
        raise Died

    done = []
    policy("boss", {"action": "retry"})
    flow = Flow.parse(
        "flow: f\nsupervisor: {model: 'simulated:boss'}\nsteps: [{id: a, code: work, once: true, goto: done}]",
        {"work": work},
    )
    store = Store(tmp_path)
    with store.create("r") as log, pytest.raises(Died):
        asyncio.run(flow.run(log=log))
    with store.resume("r") as log:
        outcome = asyncio.run(flow.run(log=log))
    assert (outcome.status, len(done), outcome.counters.advice) == ("failed", 1, {"refused": 1})


def test_a_step_to_be_done_once_is_not_done_again_after_its_process_died(tmp_path):
    class Died(BaseException):
        pass

    def work(context):
        done.append(context.visits)
        if len(done) == 2:
            raise Died
        return {}

    done = []
    flow = Flow.parse(
        "flow: f\nsteps:\n  - {id: a, code: work, once: true, goto: b}\n"
        "  - {id: b, code: work, once: true, goto: done, on_failure: c}\n  - {id: c, code: work, once: true, goto: done}",
        {"work": work},
    )
    store = Store(tmp_path)
    with store.create("r") as log, pytest.raises(Died):
        asyncio.run(flow.run(log=log))
    for _ in range(2):
        with store.resume("r") as log:
            outcome = asyncio.run(flow.run(log=log))
        assert (outcome.path, done) == (["a", "b", "c"], [1, 1, 1])
        assert (outcome.history[1].error.kind, outcome.history[1].error.typed) == ("interrupted", True)


# --- waits --------------------------------------------------------------------------------------------------


def waiting(*states, part="", **how):
    """Run a step that waits: the outcome, and the moments of the looks, from the first."""

    def look(context):
        looks.append(time.perf_counter())
        state = states[min(len(looks), len(states)) - 1]
        if isinstance(state, Exception):
            raise state
        return state

    looks = []
    steps = f"""
  - id: w
    wait: {{probe: look, interval: 20ms, max_duration: 10s, output: {{status: good}}{part}}}
    transitions:
      - {{when: output.poll == 'done' and output.status == 'good', goto: done}}
      - {{when: output.poll == 'news', goto: news}}
      - goto: failed
    on_failure: broken
  - {{id: news, code: f, goto: done}}
  - {{id: broken, code: f, goto: failed}}
  - {{id: late, code: f, goto: done}}
"""
    steps = steps if "late" in part else steps[: steps.index("  - {id: late")]
    outcome = walk(steps, {"look": look, "f": lambda _: None}, **how)
    return outcome, [moment - looks[0] for moment in looks]


def test_a_wait_looks_until_there_is_something_new_and_asks_no_model(monkeypatch):
    monkeypatch.setattr(loopkit.models, "ask", None)
    outcome, looks = waiting("pending", "pending", {"state": "done", "log": "green"})
    assert (outcome.status, outcome.usage) == ("done", Usage())
    assert outcome.outputs["w"] == {"status": "good", "poll": "done"}
    assert outcome.counters.polls == {("w", "pending"): 2, ("w", "done"): 1}
    assert outcome.counters.polls_without_model == 3
    assert looks[1] >= 0.019 and looks[2] >= 0.039
    assert outcome.history.seconds >= 0.04


def test_news_is_in_the_output():
    outcome, _ = waiting("pending", {"state": "news", "log": "red"})
    assert outcome.path == ["w", "news"]
    assert outcome.outputs["w"] == {"poll": "news", "news": {"log": "red"}}
    assert outcome.counters.polls_without_model == 1


def test_a_wait_that_is_over_leads_elsewhere():
    steps = """
  - {id: w, wait: {probe: look, interval: 20ms, max_duration: 50ms, on_exhausted: late}, goto: failed}
  - {id: late, code: f, goto: done}
"""
    outcome = walk(steps, {"look": lambda _: "pending", "f": lambda _: None})
    assert (outcome.path, outcome.outputs["w"]) == (["w", "late"], {"poll": "pending"})
    assert outcome.counters.limits == {"w: wait": 1}


@pytest.mark.parametrize(
    ("states", "grace", "path"),
    [
        ([ValueError("no")], "", ["w", "broken"]),
        (["pending", Failure("gone"), "done"], "", ["w", "broken"]),
        (["pending", Failure("gone"), ValueError("no"), "done"], ", grace: 9s", ["w"]),
        (["pending", *[ValueError("no")] * 99], ", grace: 30ms", ["w", "broken"]),
    ],
)
def test_a_probe_may_fail_as_long_as_grace_says(states, grace, path):
    outcome, _ = waiting(*states, part=grace)
    assert outcome.path == path
    assert outcome.counters.polls["w", "failing"] >= 1
    if path[1:]:
        error = outcome.history[0].error
        assert (error.phase, error.kind) == ("poll", "gone" if "gone" in str(states) else "ValueError")


@pytest.mark.parametrize(
    ("looks", "status", "failing"),
    [
        ("done", "done", 0), ("pending fail fail fail done", "done", 3), ("pending fail fail fail fail", "failed", 4),
        ("fail fail fail fail done", "done", 4), ("fail fail fail fail fail done", "failed", 5),
        ("fail fail fail pending fail fail fail pending fail done", "done", 7),
    ],
)  # fmt: skip
def test_grace_is_counted_from_the_last_look_that_was_good(looks, status, failing):
    """In simulated time, which is exact: three looks fit into the time of grace."""
    states = [{"fault": "crash"} if look == "fail" else look for look in looks.split()]
    steps = "  - {id: w, wait: {probe: p, interval: 10s, max_duration: 1h, grace: 30s}, goto: done}"
    outcome = walk(steps, simulation=Simulation(script={"w.wait": states}))
    assert (outcome.status, outcome.counters.polls["w", "failing"]) == (status, failing)


@pytest.mark.parametrize("said", ["soon", None, {"state": "soon"}, {"log": 1}, 7])
def test_a_probe_that_says_something_else_fails(said):
    outcome, _ = waiting(said)
    assert (outcome.path, outcome.history[0].error.kind) == (["w", "broken"], "malformed")


def test_a_probe_may_be_a_command_whose_exit_codes_say_how_it_is(tmp_path):
    file = tmp_path / "n"
    script = f"n=$(cat {file} 2>/dev/null || echo 0); n=$((n+1)); echo $n > {file}; echo look $n; [ $n -gt 2 ] && exit $1; exit 7"

    def probe(code, most="1m"):
        file.unlink(missing_ok=True)
        text = json.dumps(["sh", "-c", script, "sh", str(code)])
        return walk(
            f"""
  - id: w
    wait: {{probe: {{command: {text}, pending: [7, 8]}}, interval: 1ms, max_duration: {most}}}
    transitions: [{{when: "output.poll == 'done'", goto: done}}, {{goto: failed}}]
"""
        )

    done, news, odd = probe(0), probe(1), probe(8, "300ms")
    assert done.counters.polls == {("w", "pending"): 2, ("w", "done"): 1}
    assert (done.status, news.status) == ("done", "failed")
    assert news.outputs["w"]["news"] == {"exit_code": 1, "stdout": "look 3\n", "stderr": ""}
    assert set(odd.counters.polls) == {("w", "pending")}


def test_a_probe_that_is_a_command_may_fail_too():
    steps = "  - {id: w, wait: {probe: {command: [/no/such], pending: [1]}, interval: 1ms, max_duration: 9s}, goto: done}"
    assert walk(steps).history[0].error.kind == "not found"
    slow = steps.replace("[/no/such]", "[sleep, '9']").replace("pending: [1]", "pending: [1], timeout: 10ms")
    assert walk(slow).history[0].error.kind == "timeout"


def test_a_probe_sees_what_its_step_came_to():
    seen = []
    steps = "  - {id: push, code: push, wait: {probe: look, interval: 1ms, max_duration: 1s}, goto: done}"
    functions = {"push": lambda _: {"id": 7}, "look": lambda context: seen.append(context.output) or "done"}
    outcome = walk(steps, functions)
    assert (seen, outcome.outputs) == ([{"id": 7}], {"push": {"id": 7, "poll": "done"}})


def test_a_wait_survives_its_process_and_its_time_goes_on(tmp_path):
    class Died(BaseException):
        pass

    def look(context):
        looks.append(time.time())
        if len(looks) == 3:
            raise Died
        return "pending"

    looks = []
    flow = Flow.parse(
        "flow: f\nsteps: [{id: w, wait: {probe: look, interval: 100ms, max_duration: 1h, on_exhausted: done}, goto: failed}]",
        {"look": look},
    )
    store = Store(tmp_path)
    with store.create("r") as log, pytest.raises(Died):
        asyncio.run(flow.run(log=log))
    with pytest.MonkeyPatch.context() as patched, store.resume("r") as log:
        real = time.time
        patched.setattr("loopkit.flow.world.time.time", lambda: real() + 3600)  # an hour without a process
        outcome = asyncio.run(flow.run(log=log))
    assert (outcome.status, len(looks)) == ("done", 4)
    assert outcome.counters.polls == {("w", "pending"): 3}
    assert outcome.history.seconds > 3600


@pytest.mark.parametrize(("interval", "polls"), [(10, 7), (25, 4), (100, 2), (60, 2), (59, 3)])
def test_a_wait_is_never_longer_than_its_max_duration(log, interval, polls):
    """Simulated time is exact: looks at every interval, and one at the end."""
    steps = f"  - {{id: w, wait: {{probe: look, interval: {interval}s, max_duration: 1m, on_exhausted: done}}, goto: failed}}"
    simulation = Simulation(script={"w.wait": ["pending"] * 99})
    outcome = walk(steps, log=log, simulation=simulation)
    moments = [event["value"]["at"] for event in log.past if event.get("phase") == "poll"]
    expected = sorted({*range(0, 60, interval), 60})
    assert (outcome.status, moments) == ("done", expected)
    assert len(moments) == polls
    assert outcome.history.seconds == pytest.approx(60, abs=5)


# --- people -------------------------------------------------------------------------------------------------

ASK = """
  - {id: draft, code: draft, goto: ask}
  - id: ask
    human: "Ship {{ steps.draft.output.n }}?"
    output_schema: {properties: {go: {type: boolean}, why: {type: string}}, required: [go]}
    transitions:
      - {when: output.go, goto: done}
      - {goto: draft, max_visits: 5}
"""


def test_a_question_ends_the_run_until_it_is_answered(tmp_path):
    drafts = []

    def draft(context):
        drafts.append(1)
        return {"n": len(drafts)}

    store = Store(tmp_path)
    flow = Flow.parse(f"flow: f\nsteps:\n{ASK}", {"draft": draft})
    with store.create("r") as log:
        outcome = asyncio.run(flow.run(log=log))
    assert (outcome.status, outcome.path, outcome.stopped_by) == ("waiting", ["draft"], None)
    question = outcome.question
    assert isinstance(question, Question)
    assert (question.step, question.text, question.visit) == ("ask", "Ship 1?", 1)
    assert question.schema["properties"]["go"]["type"] == "boolean"
    assert (store.run("r").status, len(drafts)) == ("waiting", 1)

    with store.resume("r") as log:
        flow.answer(log, {"go": False})
        again = asyncio.run(flow.run(log=log))
    assert (again.path, again.question.text, again.question.visit) == (
        ["draft", "ask", "draft"],
        "Ship 2?",
        2,
    )
    with store.resume("r") as log:
        Flow.of(log).answer(log, {"go": True, "why": "good"})
        ended = asyncio.run(flow.run(log=log))
        assert asyncio.run(flow.run(log=log)).path == ended.path
    assert (ended.status, ended.path, len(drafts)) == ("done", ["draft", "ask"] * 2, 2)
    assert ended.outputs["ask"] == {"go": True, "why": "good"}
    assert store.run("r").status == "finished"


def test_a_run_may_be_answered_again_and_again_over_one_open_log(log):
    flow = Flow.parse(f"flow: f\nsteps:\n{ASK}", {"draft": lambda _: {"n": 1}})
    for _ in range(3):
        assert asyncio.run(flow.run(log=log)).status == "waiting"
        flow.answer(log, {"go": False})
    assert asyncio.run(flow.run(log=log)).path == ["draft", "ask"] * 3 + ["draft"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({}, "go: Field required"), ({"go": "maybe"}, "go: "), ({"go": True, "because": 1}, "because: "),
        (7, "mapping of names"), ("yes", "mapping of names"), (None, "mapping of names"), ([("go", True)], "mapping"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_refused_and_nothing_is_recorded(log, answer, said):
    flow = Flow.parse(f"flow: f\nsteps:\n{ASK}", {"draft": lambda _: {"n": 1}})
    asyncio.run(flow.run(log=log))
    before = log.path.read_bytes()
    with pytest.raises(ValueError, match=f"ask: .*{said}"):
        flow.answer(log, answer)
    assert log.path.read_bytes() == before
    if answer is not None:  # for a person: not now
        with pytest.raises(ValueError, match=f"ask: .*{said}"):
            asyncio.run(flow.run(log=log, person=lambda question: answer))
        assert log.path.read_bytes() == before
    flow.answer(log, {"go": True})
    assert asyncio.run(flow.run(log=log)).status == "done"


def test_a_run_that_waits_for_nothing_takes_no_answer(log):
    flow = Flow.parse(f"flow: f\nsteps:\n{ASK}", {"draft": lambda _: {"n": 1}})
    with pytest.raises(ValueError, match="r waits for no answer"):
        flow.answer(log, {"go": True})
    asyncio.run(flow.run(log=log))
    other = Flow.parse("flow: f\nsteps: [{id: x, human: 'Hm?', goto: done}]")
    with pytest.raises(ValueError, match="ask asks, and is no step"):
        other.answer(log, {"answer": "x"})
    flow.answer(log, {"go": True})
    for _ in range(2):
        with pytest.raises(ValueError, match="r waits for no answer"):
            flow.answer(log, {"go": True})
        asyncio.run(flow.run(log=log))


def test_a_person_who_is_there_answers_at_once_and_is_not_asked_again(tmp_path):
    asked = []

    def plain(question):
        asked.append(question.text)
        return {"go": len(asked) > 1}

    async def later(question):
        await asyncio.sleep(0)
        return plain(question)

    flow = Flow.parse(f"flow: f\nsteps:\n{ASK}", {"draft": lambda context: {"n": context.visits}})
    for person in (plain, later):
        asked.clear()
        with Store(tmp_path).create(person.__name__) as log:
            outcome = asyncio.run(flow.run(log=log, person=person))
            assert (outcome.status, asked) == ("done", ["Ship 1?", "Ship 2?"])
            assert asyncio.run(flow.run(log=log, person=person)).path == outcome.path
        assert len(asked) == 2
    assert asyncio.run(flow.run(person=lambda question: None)).status == "waiting"


def test_an_answer_without_a_schema_is_text():
    steps = "  - {id: ask, human: 'Name?', goto: done}"
    assert walk(steps, person=lambda question: {"answer": "Ava"}).outputs == {"ask": {"answer": "Ava"}}
