"""A run killed anywhere goes on as if nothing had happened, and does nothing twice that was finished."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from loopkit import Store
from loopkit.flow import Flow, Simulation
from loopkit.flow.simulation import SimulatedWorld
from loopkit.log import read_events
from loopkit.models.simulated import POLICIES

QUICK = {"deadline": None, "phases": [Phase.explicit, Phase.reuse, Phase.generate]}
FACTORY = Path(__file__).parents[2] / "experiments" / "flows"
TURNS = {"prompt": "prompt", "code": "code", "command": "command", "probe": "poll", "advise": "supervisor"}


@pytest.fixture(scope="module")
def done():
    """Counts all that is done in a simulation: requests to models, turns, polls, questions."""
    counts = Counter()

    def counted(function, name):
        def counting(*args, **named):
            counts[name] += 1
            return function(*args, **named)

        return counting

    with pytest.MonkeyPatch.context() as patched:
        for policy in ("random", "oracle", "malformed", "empty", "truncated"):
            patched.setitem(POLICIES, policy, counted(POLICIES[policy], "call"))
        for name in (*TURNS, "person"):
            patched.setattr(SimulatedWorld, name, counted(getattr(SimulatedWorld, name), name))
        yield counts


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """New stores, on a disk that nobody waits for."""
    root, numbers = tmp_path_factory.mktemp("runs"), iter(range(10**9))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda descriptor: None)
        yield lambda: Store(root / str(next(numbers)))


def told(outcome):
    """All that a run came to, but for the time it took."""
    counters = {name: value for name, value in vars(outcome.counters).items() if name != "_file"}
    turns = [(turn.candidate, turn.decision, turn.observation, turn.error) for turn in outcome.history]
    return outcome.status, outcome.stopped_by, outcome.outputs, outcome.usage, counters, turns, outcome.path


def events(path):
    """What is on record, but for when and by whom it was written, and how long things took."""

    def kept(event):
        event = {
            key: one for key, one in event.items() if key not in ("time", "seq", "hash", "by", "seconds")
        }
        if event["event"] == "call":
            event["answer"] = {key: one for key, one in event["answer"].items() if key != "timestamp"}
        return event

    return [kept(event) for event in read_events(path) if event["event"] not in ("resume", "start")]


def walk(flow, log, **settings):
    with log:
        return asyncio.run(flow.run(log=log, **settings))


def cut(path, place, inside):
    """Leave of the log its first lines, and of the next one a part."""
    lines = path.read_bytes().splitlines(keepends=True)
    kept = 1 + int(place * (len(lines) - 1))
    torn = b"".join(lines[kept : kept + 1])
    path.write_bytes(b"".join(lines[:kept]) + torn[: int(len(torn) * inside)])


def expect_the_same(flow, store, places, inside, done, **begun):
    path = store.path("r")
    whole = walk(flow, store.create("r"), **begun)
    everything = events(path)
    for place in places:
        cut(path, place, inside)
        before = events(path)
        done.clear()
        resumed = walk(flow, store.resume("r"), **({} if before else begun))
        assert told(resumed) == told(whole)
        assert everything[: len(before)] == before
        assert events(path) == everything
        new = everything[len(before) :]
        for kind, phase in TURNS.items():
            assert done[kind] == sum(one["event"] == "step" and one["phase"] == phase for one in new)
        for kind, event in (("call", "call"), ("person", "answer")):
            assert done[kind] == sum(one["event"] == event for one in new)
    return whole


PLACES = st.lists(st.floats(0, 1), min_size=1, max_size=2)  # killed, and perhaps once more on the way
INSIDE = st.just(0.0) | st.floats(0, 1)


@pytest.mark.parametrize("scenario", ["eventful", "stubborn_review"])
def test_the_factory_killed_at_any_event_comes_to_the_same(stores, done, scenario):
    flow = Flow.load(FACTORY / "factory.yaml")
    simulation = Simulation.load(FACTORY / "scenarios" / f"{scenario}.yaml")
    # Each time the run goes on it is killed a little later. The real `ask`: this test comes before `quick_ask`.
    places = [number / 12 for number in range(12)]
    expect_the_same(flow, stores(), places, 0.5, done, simulation=simulation)


@settings(max_examples=160, **QUICK)
@given(data=st.data(), places=PLACES, inside=INSIDE)
def test_a_run_killed_anywhere_comes_to_the_same_and_does_nothing_twice(
    cases, quick_ask, done, stores, data, places, inside
):
    text, _, simulation = data.draw(cases(once=False))
    expect_the_same(Flow.parse(text), stores(), places, inside, done, simulation=Simulation(**simulation))


@settings(max_examples=40, **QUICK)
@given(data=st.data(), at=st.floats(0, 1), places=PLACES)
def test_a_fork_anywhere_comes_to_the_same_and_does_only_what_follows(
    cases, quick_ask, done, stores, data, at, places
):
    text, _, simulation = data.draw(cases(once=False))
    flow, store, simulation = Flow.parse(text), stores(), Simulation(**simulation)
    whole = walk(flow, store.create("r"), simulation=simulation)
    kept = int(at * len(whole.path))
    done.clear()
    forked = walk(flow, store.fork("r", "f", at=kept), simulation=simulation)
    assert told(forked) == told(whole)
    after = [event for event in events(store.path("r")) if event.get("iteration", 0) > kept]
    assert done["call"] == sum(event["event"] == "call" for event in after)
    assert sum(done[kind] for kind in TURNS) == sum(
        event["event"] == "step" and event["phase"] != "wait" for event in after
    )
    other = Simulation(seed=simulation.seed + 1)
    assert walk(flow, store.fork("r", "g", at=kept), simulation=other).path[:kept] == whole.path[:kept]


@settings(max_examples=60, **QUICK)
@given(data=st.data(), place=st.floats(0, 1))
def test_a_step_to_be_done_once_is_never_begun_twice(cases, quick_ask, done, stores, data, place):
    text, plain, simulation = data.draw(cases())
    once = {step["id"] for step in plain["steps"] if step.get("once")}
    flow, store = Flow.parse(text), stores()
    path = store.path("r")
    walk(flow, store.create("r"), simulation=Simulation(**simulation))
    cut(path, place, 0.0)
    before = read_events(path)
    done.clear()
    outcome = walk(
        flow, store.resume("r"), **({} if len(before) > 1 else {"simulation": Simulation(**simulation)})
    )
    assert outcome.status in ("done", "failed", "stopped")
    begun = [(event["step"], event["option"]) for event in read_events(path) if event["event"] == "begun"]
    assert len(begun) == len(set(begun)) and {name for name, _ in begun} <= once
    if before[-1]["event"] == "begun":
        (turn,) = [
            event
            for event in read_events(path)
            if event["event"] == "step" and event["seq"] == len(before) + 1  # after the resume
        ]
        assert turn["error"]["kind"] == "interrupted"


# --- a real process -----------------------------------------------------------------------------------------

SLOW = """
flow: slow
params: {folder: ""}
steps:
  - id: work
    code: slow_steps:work
    output_schema: {properties: {n: {type: integer}}}
    transitions:
      - {when: output.n < 4, goto: work, send: "after {{ output.n }}", max_visits: 9}
      - {goto: wait}
  - id: wait
    wait: {probe: slow_steps:look, interval: 50ms, max_duration: 1m}
    goto: command
  - id: command
    command: [sh, -c, "sleep 0.2; echo command >> $0", "{{ params.folder }}/done"]
    goto: ask
  - {id: ask, human: "Good?", goto: done}
"""
STEPS = """
import time
from pathlib import Path

def work(context):
    time.sleep(0.15)
    with open(Path(context.params["folder"]) / "done", "a") as file:
        file.write(f"work {context.visits} {context.correction}\\n")
    return {"n": context.visits}

def look(context):
    began = Path(context.params["folder"]) / "began"
    if not began.exists():
        began.touch()
    return "done" if time.time() > began.stat().st_mtime + 0.4 else "pending"
"""


def test_a_process_killed_again_and_again_ends_as_one_that_was_not(tmp_path):
    (tmp_path / "slow.yaml").write_text(SLOW)
    (tmp_path / "slow_steps.py").write_text(STEPS)
    run, path = tmp_path / "runs" / "r", tmp_path / "runs" / "r.jsonl"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPATH": str(tmp_path)}

    def loopkit(*arguments):
        command = [Path(sys.executable).with_name("loopkit"), "flow", *map(str, arguments)]
        return subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)

    def size():
        return path.read_bytes().count(b"\n") if path.exists() else 0

    begin = ["run", "slow.yaml", "--set", f"folder={tmp_path}", "--run", "r", "--out", "runs"]
    process, kills, seen = loopkit(*begin), 0, []
    while kills < 4:
        lines, deadline = size(), time.monotonic() + 30
        while size() < max(4, lines + 4) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(0.04 * kills)
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        kills += 1
        seen.append(events(path))
        process = loopkit("resume", run)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, kills >= 2) == (3, True)
    assert "Good?" in out and "Traceback" not in out
    answered = loopkit("answer", run, "answer=yes")
    out, _ = answered.communicate(timeout=60)
    assert answered.returncode == 0
    whole = events(path)
    for before in seen:
        assert whole[: len(before)] == before
    turns = [event for event in whole if event["event"] == "iteration"]
    assert [turn["step"] for turn in turns] == ["work"] * 4 + ["wait", "command", "ask"]
    steps = Counter(
        (one["iteration"], one["phase"], one.get("option")) for one in whole if one["event"] == "step"
    )
    assert set(steps.values()) == {1}
    lines = (tmp_path / "done").read_text().splitlines()
    expected = [f"work {n} {f'after {n - 1}' if n > 1 else None}" for n in range(1, 5)] + ["command"]
    assert sorted(set(lines)) == sorted(expected)
    assert len(lines) <= len(expected) + kills  # only what was running is done again
