"""Runs that were killed, cancelled or forked: whatever moment it was, the end is the one of a run left in peace."""

import asyncio
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from loopkit import (
    BestOf,
    Budget,
    Cancel,
    Failure,
    Feedback,
    Irreproducible,
    Loop,
    MaxIterations,
    Repetition,
    RunTaken,
    Stagnation,
    Store,
    StoreError,
    Threshold,
    Usage,
    Verdict,
    ask,
    resolve,
    spend,
)
from loopkit.models.simulated import POLICIES, policy
from loopkit.store import encode, read_events
from loopkit.views.figures import convergence_info


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


# --- random loops -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    n: int
    tags: tuple[str, ...] = ("a", "b")


class Shade(BaseModel):
    n: int
    points: list[Point] = Field(default_factory=list)


class Pair(NamedTuple):
    n: int
    when: date


class Letter(StrEnum):
    A, B, C, D = "abcd"


class Size(Enum):
    S, M, L, XL = range(4)


KINDS = {
    "text": (str, lambda n: f"candidate {n}\ud800"),
    "data": (dict[str, Any], lambda n: {"n": n, "deep": [{"é": [n, None, 0.1, True]}]}),
    "tuple": (tuple[int, tuple[str, ...]], lambda n: (n, ("x", "y"))),
    "dataclass": (Point, Point),
    "model": (Shade, lambda n: Shade(n=n, points=[Point(n)])),
    "list": (list[Point], lambda n: [Point(n), Point(n, ())]),
    "named": (Pair, lambda n: Pair(n, date(2020, 1, 1 + n))),
    "word": (Letter, lambda n: list(Letter)[n]),
    "enum": (Size, lambda n: list(Size)[n]),
    "set": (frozenset[int], lambda n: frozenset(range(n))),
    "keys": (dict[int, Path], lambda n: {n: Path("a")}),
}
SCORES = [-1.0, 0.0, 0.25, 0.5, 1.0]
asks = st.lists(st.integers(0, 2), max_size=2)  # equal numbers are equal requests


@dataclass(frozen=True)
class Fate:
    """What becomes of a candidate: an error in `phase`, if any, else a score; and what its phases ask."""

    phase: str | None
    typed: bool
    score: float
    execute: list[int]
    judge: list[int]


fates = st.builds(
    Fate,
    st.sampled_from([None] * 4 + ["execute", "judge"]),
    st.booleans(),
    st.sampled_from(SCORES),
    asks,
    asks,
)


@dataclass(frozen=True)
class Script:
    """A loop to be: turn i proposes `turns[i]`, one candidate's number, or several, or None: it raises."""

    turns: list[Any]
    fates: list[Fate]
    asks: list[int]
    kind: str
    follows: bool
    later: bool
    way: str
    settings: dict[str, Any]
    limits: list[Any]


numbers = st.integers(0, 3)
limits = st.one_of(
    st.builds(Threshold, st.sampled_from(SCORES)),
    st.builds(Stagnation, st.integers(1, 4), st.sampled_from([0.0, 0.25])),
    st.builds(Repetition, st.integers(1, 3)),
    st.builds(Budget, tokens=st.integers(1, 80)),
    st.builds(Budget, calls=st.integers(1, 12)),
    st.builds(Budget, cost=st.just(1.0)),
)
settings_ = st.fixed_dictionaries(
    {
        "direction": st.sampled_from(["maximise", "minimise"]),
        "noise_floor": st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    }
)
scripts = st.builds(
    Script,
    turns=st.lists(
        st.none() | numbers | numbers | st.lists(numbers, min_size=1, max_size=3), min_size=1, max_size=5
    ),
    fates=st.lists(fates, min_size=4, max_size=4),
    asks=asks,
    kind=st.sampled_from(sorted(KINDS)),
    follows=st.booleans(),
    later=st.booleans(),
    way=st.sampled_from(["model"] * 5 + ["ask"]),
    settings=settings_,
    limits=st.lists(limits, max_size=3),
)


class Seen:
    """What really happened, as opposed to what came back from a record."""

    def __init__(self):
        self.phases, self.asked = Counter(), Counter()


class CountingModel(Model):
    """Answers with the question, and counts."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    model_name = "counting"
    system = "simulated"

    async def request(self, messages, model_settings, model_request_parameters):
        prompt = messages[-1].parts[-1].content
        await asyncio.sleep(0)
        self.seen.asked[prompt] += 1
        usage = RequestUsage(input_tokens=len(prompt.split()), output_tokens=1)
        return ModelResponse(parts=[TextPart(prompt)], usage=usage)


SEEN = Seen()


@pytest.fixture(scope="module", autouse=True)
def a_policy_that_counts():
    @policy("counting")
    def counting(request):
        SEEN.asked[request.prompt] += 1
        return request.prompt

    yield
    POLICIES.pop("counting")


def make_loop(script, *, gates=None, **changed):
    """The loop of a script, and what it will really have done. Its phases depend on their arguments only."""
    global SEEN
    SEEN = seen = Seen()
    kind, make = KINDS[script.kind]
    number_of = {encode(make(n)): n for n in range(4)}
    model = resolve(CountingModel(seen) if script.way == "model" else "simulated:counting")

    async def asked(question):
        if script.way == "ask":
            return await ask(model, question)
        message = ModelRequest(parts=[UserPromptPart(question)])
        return (await model.request([message], None, ModelRequestParameters())).parts[0].content

    async def ask_all(phase, which, questions):
        # The first one alone, the others at once.
        for together in (questions[:1], questions[1:] * 2):
            wanted = [f"{phase} {which} asks {question}" for question in together]
            assert await asyncio.gather(*map(asked, wanted)) == wanted

    def failed(phase, typed):
        return Failure("odd", f"in {phase}", answer="hm\ud800") if typed else KeyError(phase)

    async def propose(goal, history):
        number = len(history) + 1
        seen.phases["propose", number] += 1
        if script.later:
            await ask_all("propose", number, script.asks)
        turn = script.turns[(number - 1) % len(script.turns)]
        if turn is None:
            raise failed("propose", number % 2)
        best = history.best.number if script.follows and history.best else 0
        if isinstance(turn, list):
            return BestOf([make((n + best) % 4) for n in turn])
        return make((turn + best) % 4)

    async def execute(candidate):
        n = number_of[encode(candidate)]
        seen.phases["execute", n] += 1
        if script.later:
            await ask_all("execute", n, script.fates[n].execute)
        if script.fates[n].phase == "execute":
            raise failed("execute", script.fates[n].typed)
        return make((n + 1) % 4)

    async def judge(candidate, observation):
        n, fate = number_of[encode(candidate)], script.fates[number_of[encode(candidate)]]
        assert type(observation) is type(make(n)) and observation == make((n + 1) % 4)
        seen.phases["judge", n] += 1
        if script.later:
            await ask_all("judge", n, fate.judge)
        if fate.phase == "judge":
            raise failed("judge", fate.typed)
        if n % 2:
            return fate.score
        feedback = Feedback(blocking=["shorter"], suggestions=("a", "b"))
        return Verdict(
            score=fate.score, feedback=feedback, dimensions={"clear": n}, evidence={"clear": "é\ud800"}
        )

    phases = {"propose": propose, "execute": execute, "judge": judge}
    if not script.later:
        phases = {name: in_step(function) for name, function in phases.items()}
    phases["propose"].__annotations__["return"] = kind | BestOf[kind]
    phases["execute"].__annotations__["return"] = kind
    gates = gates or [*script.limits, MaxIterations(len(script.turns) + 1)]
    return Loop(**phases, gates=gates, **script.settings | changed), seen


def in_step(function):
    """A plain function out of an async one that never waits."""

    def now(*args):
        try:
            function(*args).send(None)
        except StopIteration as stop:
            return stop.value

    return now


def essence(outcome):
    """All of an outcome but the times."""

    def typed(value):
        return type(value), value

    turns = [replace(turn, seconds=0.0) for turn in outcome.history]
    values = [
        [typed(one) for one in (turn.candidate, turn.observation, turn.verdict, turn.decision, turn.error)]
        for turn in turns
    ]
    best = outcome.best and replace(outcome.best, seconds=0.0)
    history = outcome.history
    return typed(outcome.goal), turns, values, best, outcome.usage, outcome.stopped_by, history.same


def places(events):
    """Which steps and calls a record holds."""
    steps, calls = Counter(), Counter()
    for event in events:
        place = event.get("iteration"), event.get("phase"), event.get("option")
        if event["event"] == "step":
            steps[place] += 1
        if event["event"] == "call":
            calls[*place, event["answer"]["parts"][0]["content"]] += 1
    return steps, calls


def lacking(script, whole, part):
    """What is still to be done and to be asked, by the same names as `Seen` has."""
    _, make = KINDS[script.kind]
    number_of = {json.dumps(json.loads(encode(make(n)))): n for n in range(4)}
    proposed = {event["iteration"]: event for event in whole if event.get("phase") == "propose" and event["event"] == "step"}  # fmt: skip
    (steps, calls), (had, answered) = places(whole), places(part)
    phases, asked = Counter(), Counter()
    for iteration, phase, option in (steps - had).elements():
        which = iteration
        if phase != "propose":
            value = proposed[iteration]["value"]
            which = number_of[json.dumps(value if option is None else value["candidates"][option])]
        phases[phase, which] += 1
    for *_, prompt in (calls - answered).elements():
        asked[prompt] += 1
    return phases, asked


MEMORY = next((folder for folder in ("/dev/shm",) if os.access(folder, os.W_OK)), None)


@contextmanager
def store_of(script, goal="the goal"):
    """A store with the script's run in it, left in peace: its outcome, and its events."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        store = Store(folder)
        loop, _ = make_loop(script)
        with store.create("r", arm="a") as log:
            outcome = asyncio.run(loop.run(goal, log=log))
        yield store, outcome, read_events(store.path("r"))


def resumed(script, store, run, *, goal="the goal", **changed):
    """The outcome of a run resumed, and what was really done for it."""
    loop, seen = make_loop(script, **changed)
    with store.resume(run) as log:
        known = any(event["event"] == "goal" for event in log.past)
        return asyncio.run(loop.run(None if known else goal, log=log)), seen


# --- killed and resumed ------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(scripts, st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=2))
def test_a_run_killed_at_any_moment_ends_as_if_nothing_had_been(script, cuts):
    with store_of(script) as (store, outcome, events):
        path = store.path("r")
        for in_a_line, at in cuts:  # killed again and again; each time may be earlier or later than before
            data = path.read_bytes()
            lines = data.splitlines(keepends=True)
            if in_a_line:
                size = len(lines[0]) + round(at * (len(data) - len(lines[0])))
                data = data[:size]
            else:
                data = b"".join(lines[: 1 + round(at * (len(lines) - 1))])
            path.write_bytes(data)
            cut = read_events(path)

            again, seen = resumed(script, store, "r")

            assert essence(again) == essence(outcome)
            phases, asked = lacking(script, events, cut)
            assert seen.phases == phases  # nothing finished is done again, nothing is left out
            assert seen.asked == asked  # nothing answered is asked again
            after = read_events(path)  # the chain holds
            assert after[: len(cut)] == cut  # nothing recorded is lost
            assert places(after) == places(events)
            done = [event["iteration"] for event in after if event["event"] == "iteration"]
            assert done == [turn.number for turn in outcome.history]
            assert (store.run("r").status, store.run("r").stop["reason"]) == (
                "finished",
                outcome.stopped_by.reason,
            )


@settings(max_examples=50, deadline=None)
@given(scripts, st.integers(0, 40), st.integers(0, 40))
def test_a_run_that_dies_in_the_middle_of_a_phase_may_be_resumed_twice_in_a_row(script, first, second):
    class Killed(BaseException):
        pass

    def deadly(loop, countdown):
        def dying(phase):
            def died(*args):
                nonlocal countdown
                countdown -= 1
                if countdown < 0:
                    raise Killed
                return phase(*args)

            return functools.wraps(phase)(died)

        loop.propose, loop.execute, loop.judge = map(dying, (loop.propose, loop.execute, loop.judge))
        return loop

    with store_of(script) as (store, outcome, events), store.create("killed", arm="a") as log:
        with pytest.raises(Killed) if first < sum(places(events)[0].values()) else nullcontext():
            asyncio.run(deadly(make_loop(script)[0], first).run("the goal", log=log))
        log.close()
        with store.resume("killed") as log, suppress(Killed):
            asyncio.run(deadly(make_loop(script)[0], second).run("the goal", log=log))
        again, _ = resumed(script, store, "killed")
        assert essence(again) == essence(outcome)
        assert places(read_events(store.path("killed"))) == places(events)


@settings(max_examples=30, deadline=None)
@given(scripts)
def test_a_finished_run_gives_its_outcome_back_and_nothing_is_written_or_done(script):
    with store_of(script) as (store, outcome, _):
        before = store.path("r").read_bytes()
        again, seen = resumed(script, store, "r")
        # The recorded end counts, whatever gates there are now.
        later, idle = resumed(script, store, "r", gates=[MaxIterations(99)])
        assert essence(again) == essence(later) == essence(outcome)
        assert again.history == outcome.history  # with the times
        assert not (seen.phases or seen.asked or idle.phases or idle.asked)
        assert store.path("r").read_bytes() == before


@settings(max_examples=60, deadline=None)
@given(scripts, st.data())
def test_with_other_gates_an_unfinished_run_goes_on(script, data):
    with store_of(script) as (store, _, events):
        turns = [number for number, event in enumerate(events, 1) if event["event"] == "iteration"]
        lines = store.path("r").read_bytes().splitlines(keepends=True)
        k = data.draw(st.integers(1, len(turns)))
        store.path("r").write_bytes(b"".join(lines[: turns[k - 1]]))
        gates = [*data.draw(st.lists(limits, max_size=2)), MaxIterations(data.draw(st.integers(1, 8)))]
        again, _ = resumed(script, store, "r", gates=gates)
        loop, _ = make_loop(script, gates=[not_before(k, gates)])
        assert essence(again) == essence(asyncio.run(loop.run("the goal")))


def not_before(k, gates):
    """`gates`, none of which is asked before turn `k`."""

    def gate(history):
        opened = (gate(history) for gate in gates if len(history) >= k)
        return next((stop for stop in opened if stop), None)

    gate.bounds = True
    return gate


def test_the_answer_on_record_is_the_one_that_counts():
    """A model that never says the same thing twice, killed after each of its answers."""

    class Fickle(CountingModel):
        async def request(self, messages, model_settings, model_request_parameters):
            response = await super().request(messages, model_settings, model_request_parameters)
            return replace(response, parts=[TextPart(f"{response.parts[0].content} {random.random()}")])

    def loop():
        seen = Seen()
        model = resolve(Fickle(seen))

        async def propose(goal, history):
            # Three the same at once, then one that depends on what they said.
            said = await asyncio.gather(*(ask(model, "three") for _ in range(3)))
            return [*said, await ask(model, f"one more after {sorted(said)}")]

        return Loop(propose=propose, execute=len, judge=lambda *_: 1, gates=[MaxIterations(1)]), seen

    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        with store.create("r") as log:
            outcome = asyncio.run(loop()[0].run("g", log=log))
        lines = store.path("r").read_bytes().splitlines(keepends=True)
        answers = [event["answer"]["parts"][0]["content"] for event in read_events(store.path("r")) if event["event"] == "call"]  # fmt: skip
        assert sorted(answers) == sorted(outcome.best.candidate)
        for known in range(5):
            store.path("r").write_bytes(b"".join(lines[: 2 + known]))
            resuming, seen = loop()
            with store.resume("r") as log:
                again = asyncio.run(resuming.run(log=log))
            assert seen.asked.total() == 4 - known
            candidate = again.best.candidate
            assert set(answers[: min(known, 3)]) <= set(candidate[:3])
            assert again.usage == outcome.usage
            if known == 4:
                assert sorted(candidate) == sorted(outcome.best.candidate)


def test_an_inner_loop_without_a_log_leaves_its_calls_to_the_step_it_runs_in(tmp_path):
    def loop():
        seen = Seen()
        model = resolve(CountingModel(seen))

        async def asking(*args):
            return await ask(model, "inner")

        inner = Loop(propose=asking, execute=asking, judge=lambda *_: 1, gates=[MaxIterations(2)])

        async def propose(goal, history):
            return (await inner.run(goal)).best.candidate

        return Loop(propose=propose, execute=len, judge=lambda *_: 1, gates=[MaxIterations(1)]), seen

    store = Store(tmp_path)
    with store.create("r") as log:
        outcome = asyncio.run(loop()[0].run("g", log=log))
    assert outcome.usage.calls == 4
    lines = store.path("r").read_bytes().splitlines(keepends=True)
    assert sum(b'"event":"call"' in line for line in lines) == 4
    store.path("r").write_bytes(b"".join(lines[:5]))
    resuming, seen = loop()
    with store.resume("r") as log:
        assert asyncio.run(resuming.run(log=log)).usage == outcome.usage
    assert seen.asked == {"inner": 1}


# --- really killed -----------------------------------------------------------------------------------------

# One process that forks the others, so that what they import is imported once.
KILLER = """
import asyncio, io, json, os, random, signal, sys, time
from pathlib import Path
from loopkit import *
from loopkit.store import read_events

how, folder, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
store, rng = Store(folder), random.Random(seed)

def did(*what):
    with open(folder / "did", "a") as file:
        file.write(json.dumps(what) + "\\n")

def loop():
    async def propose(goal, history):
        did("propose", len(history) + 1)
        await asyncio.sleep(0.0005)
        return BestOf([10 * len(history) + n for n in range(2)]) if len(history) % 3 else 10 * len(history)
    async def execute(candidate):
        did("execute", candidate)
        await asyncio.sleep(0.0005)
        return {"text": "x" * 500, "n": candidate}
    def judge(candidate, observation):
        did("judge", candidate)
        if candidate % 40 == 0: raise Failure("odd")
        return candidate * 7919 % 1000
    return Loop(propose=propose, execute=execute, judge=judge, gates=[MaxIterations(25)])

class Dying(io.FileIO):
    left = 0
    def write(self, data):
        Dying.left -= 1
        if Dying.left == 0:
            super().write(data[:rng.randrange(len(data) + 1)])
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write(data)

def child():
    if how == "write":
        Dying.left = rng.randint(2, 30)
        Path.open = lambda self, mode, **more: Dying(str(self), mode)
    with opened() as log:
        asyncio.run(loop().run("goal", log=log))

def opened():
    try:
        return store.resume("r")
    except StoreError:  # it has not begun
        return store.create("r")

def known():
    return store.path("r").read_bytes().rpartition(b"\\n")[0] if store.path("r").exists() else b""

for _ in range(2):  # what is imported late is imported here
    with Store(folder / "warm").create("r") if not _ else Store(folder / "warm").resume("r") as log:
        asyncio.run(loop().run("goal", log=log))

kills, problems = 0, []
while True:
    before = known()
    steps = [json.loads(line) for line in before.splitlines()]
    (folder / "did").write_text("")
    pid = os.fork()
    if pid == 0:
        try: child()
        except BaseException:
            import traceback; traceback.print_exc(); os._exit(1)
        os._exit(0)
    if how == "time":
        if kills < 8: time.sleep(rng.uniform(0.002, 0.03)) or os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not known().startswith(before): problems.append("lost")
    proposed = {s["iteration"]: s["value"] for s in steps if s.get("phase") == "propose"}
    def which(s):
        if s["phase"] == "propose": return s["iteration"]
        value = proposed[s["iteration"]]
        return value["candidates"][s["option"]] if "option" in s else value
    finished = {(s["phase"], which(s)) for s in steps if s["event"] == "step"}
    twice = [line for line in (folder / "did").read_text().splitlines() if tuple(json.loads(line)) in finished]
    if twice: problems.append(twice)
    if status == 0 or os.WEXITSTATUS(status): break
    kills += 1
print(json.dumps({"kills": kills, "problems": problems, "status": status}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("how", "seed"), [("time", 1), ("write", 2)])
def test_a_process_killed_again_and_again_gets_there(tmp_path, how, seed):
    run = subprocess.run(
        [sys.executable, "-c", KILLER, how, tmp_path, str(seed)], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert (said["status"], said["problems"]) == (0, []), run.stderr
    assert said["kills"] >= 3
    store = Store(tmp_path)
    run = store.run("r")
    assert run.status == "finished"
    assert [turn["iteration"] for turn in run.all("iteration")] == list(range(1, 26))
    assert (
        len(run.all("resume")) >= said["kills"] - 2
    )  # some died before they had a start or a resume to show
    best = -1
    for turn in run.all("iteration"):
        first = 10 * (turn["iteration"] - 1)
        candidates = [first, first + 1] if (turn["iteration"] - 1) % 3 else [first]
        scores = [None if one % 40 == 0 else one * 7919 % 1000 for one in candidates]
        usable = [one for one in scores if one is not None]
        assert turn.get("score") == max(usable, default=None)
        assert turn["decision"] == ("crash" if not usable else "keep" if max(usable) > best else "discard")
        best = max([best, *usable])


# --- not the run it was ------------------------------------------------------------------------------------


def simple(values=(0.5, 0.75, 0.25), **changed):
    """A loop whose turn i proposes values[i], which is its own score."""
    parts = {
        "propose": lambda goal, history: values[len(history) % len(values)],
        "execute": lambda candidate: candidate,
        "judge": lambda candidate, observation: candidate,
        "gates": [MaxIterations(3)],
    }
    return Loop(**parts | changed)


def record(store, loop=None, run="r", goal="goal", keep=None):
    """A run of a loop; with `keep` only its first lines are left."""
    with store.create(run) as log:
        outcome = asyncio.run((loop or simple()).run(goal, log=log))
    if keep:
        lines = store.path(run).read_bytes().splitlines(keepends=True)
        store.path(run).write_bytes(b"".join(lines[:keep]))
    return outcome


def resume(store, loop=None, run="r", goal=None):
    with store.resume(run) as log:
        return asyncio.run((loop or simple()).run(goal, log=log))


FIRST_TURN = 6  # lines: start, goal, three steps, iteration


def test_another_goal_is_refused_and_the_same_one_is_welcome(tmp_path):
    store = Store(tmp_path)
    goal = {"b": [1, 2.0], "a": ("x", None)}
    record(store, goal=goal, keep=FIRST_TURN)
    before = store.path("r").read_bytes()
    for other in ({"b": [2.0, 1], "a": ("x", None)}, "goal", 0, [], {}):
        with pytest.raises(Irreproducible, match="this run's goal is .*'b'.*, got") as caught:
            resume(store, goal=other)
        assert repr(other) in str(caught.value)
    assert [event["event"] for event in store.run("r").events[FIRST_TURN:]] == ["resume"] * 5
    same = {"a": ("x", None), "b": [1, 2]}
    assert resume(store, goal=same).goal == same
    assert store.path("r").read_bytes().startswith(before)


@dataclass
class Task:
    names: frozenset[str]
    size: float = 1


def test_a_goal_that_is_no_plain_data_is_to_be_given_again(tmp_path):
    store = Store(tmp_path)
    goal = Task(frozenset(["a", "b", "c"]))
    record(store, goal=goal, keep=FIRST_TURN)
    with pytest.raises(Irreproducible, match=r"goal was a .*Task\[frozenset\]: pass it again"):
        resume(store)
    with pytest.raises(Irreproducible, match="this run's goal is"):
        resume(store, goal=Task(frozenset(["a", "b"])))
    assert resume(store, goal=goal).goal is goal


def test_settings_that_change_a_recorded_decision_are_refused_by_name(tmp_path):
    store = Store(tmp_path)
    record(store, keep=FIRST_TURN + 4)  # two turns: both kept
    for changed in ({"noise_floor": 0.5}, {"direction": "minimise"}):
        with pytest.raises(Irreproducible, match="iteration 2: decision was keep .* now .*discard.*fork it"):
            resume(store, simple(**changed))
    assert resume(store, simple(noise_floor=0.25)).best.number == 2  # changes none


def test_a_recorded_step_is_not_asked_whether_it_would_do_the_same_now(tmp_path):
    store = Store(tmp_path)
    record(store, keep=FIRST_TURN)
    again = resume(store, simple(values=(9.0, 0.125, 0.0625)))
    assert [turn.score for turn in again.history] == [0.5, 0.125, 0.0625]


@dataclass
class Holder:
    inside: Any


@dataclass
class Loose:
    number: float = 0
    other: Any = None


class Renamed(BaseModel):
    x: int = Field(0, serialization_alias="y")


class Choosy:
    """Its attributes have types, which say nothing of what it returns."""

    model: str = "m"

    def __init__(self, value):
        self.value = value

    def __call__(self, goal, history) -> Point:
        return self.value


class Mute:
    def __call__(self, goal, history):
        return Point(1)


def returning(value, annotation=None):
    def propose(goal, history):
        return value

    if annotation is not None:
        propose.__annotations__["return"] = annotation
    return propose


def nested(value, depth):
    for _ in range(depth):
        value = [value]
    return value


def around():
    value = []
    value.append(value)
    return value


COMES_BACK = [
    returning(Point(1), Point),
    returning(Point(1), "Point"),
    returning(Point(1), Annotated[Point, "described"]),
    returning(Point(1), Point | None),
    returning(None, Point | None),
    returning([Point(1), (2,)], list[Point | tuple[int]]),
    returning(Holder([1, {"a": None}]), Holder),
    returning(Loose(1), Loose),
    returning(BestOf([1, "a", None, [2]])),
    returning(BestOf((1, 2)), BestOf),
    returning(BestOf([Point(1)]), BestOf[Point]),
    returning(BestOf([(1, 2)]), BestOf[tuple[int, int]]),
    returning((1.5, float("inf")), tuple[float, float]),
    returning({"k": b"bytes"}, dict[str, bytes]),
    returning((b"bytes", "\ud800"), tuple[bytes, Any]),
    returning(Letter.A, Letter),
    returning([Size.S], list[Size]),
    returning(frozenset("abcdef"), frozenset[str]),
    returning({1, 2, 3}, set[int]),
    returning(7**6000),
    returning({"n": [-(7**6000), 1e300, -0.0, 5e-324, 2**64]}),
    returning(nested(1, 35)),
    returning("\ud800\0\u2028"),
    Choosy(Point(1)),
    functools.partial(lambda goal, history, more: more, more=[1]),
    functools.partial(Choosy(Point(2))),
    functools.wraps(returning(None, Point))(lambda *_: Point(3)),
]  # fmt: skip

IS_LOST = [
    returning(Point(1)),
    returning((1, 2)),
    returning({1: 2}),
    returning([{"a": [(1,)]}]),
    returning({1, 2}),
    returning(b"bytes"),
    returning(Letter.A),
    returning(Size.S),
    returning(float("nan")),
    returning(object()),
    returning(Point(1), Any),
    returning(Point(1), dict),
    returning(Point(1), Shade),
    returning(Point(1), "Nowhere"),
    returning(Point(1), "not a type"),
    returning(object(), object),
    returning((Point(1), (2,)), tuple),
    returning(([1], (2,)), tuple[Any, Any]),
    returning(BestOf([Point(1)])),
    returning(BestOf([Point(1)]), BestOf),
    returning(Holder(Point(1)), Holder),
    returning(Holder({1: 2}), Holder),
    returning(Loose("1"), Loose),
    returning({1: (2,)}, dict[str, tuple[int]]),
    returning(Renamed(x=5), Renamed),
    returning(b"\xff", bytes),
    returning([b"ok", b"\xff"], list[bytes]),
    returning(nested(1, 300), list),
    returning(around(), list),
    Mute(),
]


@pytest.mark.parametrize("propose", COMES_BACK, ids=lambda propose: str(propose)[:40])
def test_what_an_annotation_describes_comes_back_equal_and_of_the_same_type(tmp_path, propose):
    store = Store(tmp_path)
    loop = simple(propose=propose, execute=lambda candidate: 1, judge=lambda *_: 1, gates=[MaxIterations(1)])
    outcome = record(store, loop, keep=3)
    again = resume(store, loop)
    assert essence(again) == essence(outcome)


@pytest.mark.parametrize("propose", IS_LOST, ids=[str(number) for number in range(len(IS_LOST))])
def test_what_a_record_cannot_give_back_is_refused_with_its_place_and_the_remedy(tmp_path, propose):
    store = Store(tmp_path)
    loop = simple(propose=propose, execute=lambda candidate: 1, judge=lambda *_: 1, gates=[MaxIterations(1)])
    record(store, loop, keep=3)
    before = store.path("r").read_bytes()
    with pytest.raises(Irreproducible, match="iteration 1, propose: .* cannot give back the .* Annotate"):
        resume(store, loop)
    assert store.path("r").read_bytes().startswith(before)


def test_there_is_no_run_to_resume_without_a_start(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(StoreError, match="no run 'r'"):
        store.resume("r")
    record(store)
    whole = store.path("r").read_bytes()
    for size in (0, 1, whole.index(b"\n") - 1):
        store.path("r").write_bytes(whole[:size])
        with pytest.raises(StoreError, match="create it again"):
            store.resume("r")
        store.create("r").close()
    with store.create("held"), pytest.raises(RunTaken, match="process"):
        store.resume("held")


def test_a_loop_that_runs_again_over_an_open_log_goes_on_too(tmp_path):
    store, done = Store(tmp_path), []

    def execute(candidate):
        done.append(candidate)
        if len(done) == 2:
            raise asyncio.CancelledError
        return candidate

    loop = simple(execute=execute)
    with store.create("r") as log:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(loop.run("goal", log=log))
        first = asyncio.run(loop.run(log=log))
        before = store.path("r").read_bytes()
        assert essence(asyncio.run(loop.run(log=log))) == essence(first)
    assert store.path("r").read_bytes() == before
    assert done == [0.5, 0.75, 0.75, 0.25]
    assert [turn["iteration"] for turn in store.run("r").all("iteration")] == [1, 2, 3]


# --- cancelled ---------------------------------------------------------------------------------------------


def test_a_cancelled_run_is_stopped_and_can_be_resumed_until_it_is_finished(tmp_path):
    store, cancels = Store(tmp_path), []

    def loop(at):
        cancel = Cancel()
        cancels.append(cancel)

        def execute(candidate):
            if candidate == at:
                cancel.request("enough for today")
            return candidate

        return simple(execute=execute, gates=[cancel, MaxIterations(3)])

    outcome = record(store, loop(0.5))
    assert (outcome.stopped_by.gate, outcome.stopped_by.reason) == ("Cancel", "enough for today")
    assert (len(outcome.history), store.run("r").status) == (1, "stopped")
    assert store.runs_df().loc[0, ["status", "stopped_by"]].to_list() == ["stopped", "Cancel"]

    again = resume(store, loop(0.75))
    assert (again.stopped_by.gate, len(again.history), store.run("r").status) == ("Cancel", 2, "stopped")

    with store.resume("r"):
        assert store.run("r").status == "unfinished"  # it goes on
    last = resume(store, loop(None))
    assert (last.stopped_by.gate, store.run("r").status) == ("MaxIterations", "finished")
    assert essence(last) == essence(asyncio.run(simple().run("goal")))
    assert [stop["gate"] for stop in store.run("r").all("stop")] == ["Cancel", "Cancel", "MaxIterations"]
    assert store.run("r").stop["gate"] == "MaxIterations"


def test_another_thread_may_cancel(tmp_path):
    store, cancel, reached = Store(tmp_path), Cancel(), threading.Event()

    async def execute(candidate):
        reached.set()
        await asyncio.sleep(0.001)
        return candidate

    def stop():
        reached.wait(10)
        cancel.request()

    thread = threading.Thread(target=stop)
    thread.start()
    outcome = record(store, simple(execute=execute, gates=[cancel, MaxIterations(10_000)]))
    thread.join()
    assert outcome.stopped_by.gate == "Cancel" and 1 <= len(outcome.history) < 10_000
    assert store.run("r").status == "stopped"
    more = len(outcome.history) + 2
    assert len(resume(store, simple(gates=[MaxIterations(more)])).history) == more


def test_a_run_without_a_log_may_be_cancelled_before_its_first_turn_ends():
    cancel = Cancel()
    cancel.request("")
    outcome = asyncio.run(simple(gates=[MaxIterations(3), cancel]).run())
    assert (outcome.stopped_by.gate, len(outcome.history)) == ("Cancel", 1)


# --- forked ------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(scripts)
def test_a_fork_anywhere_with_the_same_loop_ends_the_same(script):
    with store_of(script) as (store, outcome, events):
        before = store.path("r").read_bytes()
        for k in range(len(outcome.history) + 1):
            loop, seen = make_loop(script)
            with store.fork("r", f"f{k}", at=k, size=3) as log:
                again = asyncio.run(loop.run(log=log))
            assert essence(again) == essence(outcome)
            assert seen_is_what_lacks(script, seen, events, k)
            fork = store.run(f"f{k}")
            assert places(fork.events) == places(events)
            assert fork.params == {"arm": "a", "size": 3}
            ends = [event for event in events if event["event"] == "iteration" and event["iteration"] == k]
            parent = {"run": "r", "at": k, "hash": (ends or events)[0]["hash"]}
            assert parent.items() <= fork.first("start")["parent"].items()
        assert store.path("r").read_bytes() == before
        store.path("r").unlink()  # the forks stand on their own
        again, seen = resumed(script, store, f"f{len(outcome.history) // 2}")
        assert essence(again) == essence(outcome) and not seen.phases


def seen_is_what_lacks(script, seen, events, k):
    phases, asked = lacking(script, events, [one for one in events if one.get("iteration", k + 1) <= k])
    return (seen.phases, seen.asked) == (phases, asked)


@settings(max_examples=80, deadline=None)
@given(scripts, settings_, st.lists(limits, max_size=2), st.integers(1, 8), st.data())
def test_a_fork_with_another_loop_goes_on_from_there(script, changed, others, n, data):
    script = replace(script, follows=False)  # else the new loop would have proposed otherwise from the start
    with store_of(script) as (store, outcome, events):
        k = data.draw(st.integers(0, len(outcome.history)))
        gates = [*others, MaxIterations(n)]
        loop, seen = make_loop(script, gates=gates, **changed)
        with store.fork("r", "f", at=k) as log:
            forked = asyncio.run(loop.run(log=log))
        loop, fresh = make_loop(script, gates=[not_before(k, gates)], **changed)
        assert essence(forked) == essence(asyncio.run(loop.run("the goal")))
        copied = [one for one in events if one.get("iteration", k + 1) <= k]
        assert seen.phases + lacking(script, copied, [])[0] == fresh.phases

        # A fork of the fork, killed somewhere, is no other than the fork.
        at = data.draw(st.integers(0, len(forked.history)))
        store.fork("f", "g", at=at).close()
        store.path("f").unlink()
        again, _ = resumed(script, store, "g", gates=gates, **changed)
        if at <= k:  # gates are asked from `at` on
            loop, _ = make_loop(script, gates=[not_before(at, gates)], **changed)
            forked = asyncio.run(loop.run("the goal"))
        assert essence(again) == essence(forked)


def test_a_fork_that_is_already_good_enough_stops_where_it_begins(tmp_path):
    store = Store(tmp_path)
    record(store)
    with store.fork("r", "f", at=2) as log:
        outcome = asyncio.run(simple(gates=[Threshold(0.75), MaxIterations(9)]).run(log=log))
    assert (outcome.stopped_by.gate, len(outcome.history)) == ("Threshold", 2)
    assert [event["event"] for event in store.run("f").events] == [
        "start", "goal", *["step"] * 6, "settings", "iteration", "iteration", "stop",
    ]  # fmt: skip


def test_what_the_copied_part_spent_belongs_to_the_fork_and_its_budget(tmp_path):
    store = Store(tmp_path)

    def execute(candidate):
        spend(Usage(calls=1, input_tokens=10))
        return candidate

    record(store, simple(execute=execute))
    with store.fork("r", "f", at=2) as log:
        outcome = asyncio.run(
            simple(execute=execute, gates=[Budget(tokens=20), MaxIterations(9)]).run(log=log)
        )
    assert (outcome.stopped_by.gate, outcome.usage.tokens, len(outcome.history)) == ("Budget", 20, 2)


@pytest.mark.parametrize("at", [-1, 4, 99])
def test_a_fork_needs_as_many_finished_iterations(tmp_path, at):
    store = Store(tmp_path)
    record(store)
    with pytest.raises(ValueError, match=f"'r' has 3 finished iterations, cannot fork it at {at}"):
        store.fork("r", "f", at=at)
    assert store.ids() == ["r"]


def test_a_fork_overwrites_no_run_and_needs_one(tmp_path):
    store = Store(tmp_path)
    record(store)
    record(store, run="other")
    before = {run: store.path(run).read_bytes() for run in store.ids()}
    for new in ("r", "other"):
        with pytest.raises(RunTaken, match=f"'{new}' exists already"):
            store.fork("r", new, at=1)
    with pytest.raises(StoreError, match="no run 'nobody'"):
        store.fork("nobody", "f", at=0)
    assert {run: store.path(run).read_bytes() for run in store.ids()} == before


def test_a_fork_that_died_before_all_was_copied_is_refused(tmp_path):
    store = Store(tmp_path)
    record(store)
    store.fork("r", "f", at=2).close()
    lines = store.path("f").read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + 1 + 6
    for kept in range(1, len(lines)):
        store.path("f").write_bytes(b"".join(lines[:kept]) + lines[kept][:20])
        for _ in range(2):
            with pytest.raises(StoreError, match="f.jsonl died while it was forked: delete it"):
                store.resume("f")
        assert read_events(store.path("f")) == [json.loads(line) for line in lines[:kept]]
        with pytest.raises(RunTaken, match="exists already"):
            store.fork("r", "f", at=2)
    store.path("f").write_bytes(b"".join(lines))
    assert len(resume(store, run="f").history) == 3


def test_an_unfinished_run_may_be_forked_while_it_is_written(tmp_path):
    store = Store(tmp_path)
    record(store, keep=FIRST_TURN + 2)
    with store.resume("r") as log:
        with store.fork("r", "f", at=1) as fork:
            asyncio.run(simple().run(log=fork))
        asyncio.run(simple().run(log=log))
    assert [store.run(run).status for run in ("r", "f")] == ["finished"] * 2
    assert store.runs_df().set_index("run")["parent"].dropna().to_dict() == {"f": "r"}


def test_a_run_that_goes_on_by_other_rules_says_so_in_its_record(tmp_path):
    store = Store(tmp_path)
    scores = [0.1, 0.2, 0.3, 0.4]

    def loop(*gates):
        return Loop(
            propose=lambda _, history: scores[len(history)],
            execute=lambda score: score,
            judge=lambda _, score: score,
            gates=[*gates, MaxIterations(4)],
        )

    with store.create("r") as log:
        asyncio.run(loop(MaxIterations(2)).run("goal", log=log))
    assert not store.run("r").all("settings")
    with store.fork("r", "f", at=2) as log:
        asyncio.run(loop(Threshold(0.3)).run(log=log))
    (settings,) = store.run("f").all("settings")
    assert settings["gates"] == ["Threshold(score=0.3)", "MaxIterations(n=4)"]
    assert convergence_info(store.run("f")).threshold == 0.3


def test_a_run_that_died_before_its_goal_was_recorded_wants_it_again(tmp_path):
    store = Store(tmp_path)
    store.create("r").close()
    loop = Loop(propose=lambda *_: 1, execute=lambda _: 1, judge=lambda *_: 1, gates=[MaxIterations(1)])
    with store.resume("r") as log:
        with pytest.raises(Irreproducible, match="died before its goal was recorded"):
            asyncio.run(loop.run(log=log))
        assert asyncio.run(loop.run("goal", log=log)).goal == "goal"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_is_heard_between_plain_functions_too(tmp_path):
    code = """
import asyncio, signal, sys, time
from loopkit import Loop, MaxIterations, Store
signal.signal(signal.SIGINT, signal.default_int_handler)
def execute(candidate):
    print(candidate, flush=True)
    time.sleep(0.05)
loop = Loop(propose=lambda _, history: len(history), execute=execute, judge=lambda *_: 1, gates=[MaxIterations(200)])
with Store(sys.argv[1]).create("r") as log:
    asyncio.run(loop.run("goal", log=log))
"""
    child = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True)
    while child.stdout.readline() != "3\n":
        pass
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=20)
    assert child.returncode != 0
    run = Store(tmp_path).run("r")
    assert run.status == "unfinished" and 3 <= run.iterations < 20
