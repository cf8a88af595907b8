"""Loops, flows and logs to look at."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from loopkit import BestOf, Failure, Feedback, Loop, MaxIterations, Store, Threshold, Usage, Verdict, spend
from loopkit.flow import Flow


@pytest.fixture(scope="session")
def hostile():
    """What a model may write, meant as text."""
    return "<b>bold</b> & <script>alert(1)</script> \"'</pre> $x^2$ %{x} \ud800"


@pytest.fixture
def drafts(hostile):
    """Makes a loop whose turn i scores `turns[i]`; None crashes it, a tuple is several candidates."""

    def make(*turns, gates=None, direction="maximise", wait=None):
        def propose(goal, history):
            spend(Usage(calls=1, input_tokens=10, output_tokens=5, cost=0.25))
            turn, number = turns[len(history)], len(history) + 1
            if turn is None:
                raise Failure("malformed", hostile, answer="no")
            several = turn if isinstance(turn, tuple) else (turn,)
            made = [{"score": score, "text": f"{score} in turn {number}\n{hostile}"} for score in several]
            return BestOf(made) if isinstance(turn, tuple) else made[0]

        async def execute(draft):
            if wait is not None:
                await wait()
            return draft["text"]

        def judge(draft, shown):
            return Verdict(
                score=draft["score"],
                feedback=Feedback(
                    blocking=["say more"] if draft["score"] < 0.4 else [], suggestions=["be brief"]
                ),
                dimensions={"style": 0.5},
                evidence={"style": hostile, "length": "12 words"},
            )

        gates = gates or [Threshold(0.8), MaxIterations(20)]
        return Loop(propose=propose, execute=execute, judge=judge, gates=gates, direction=direction)

    return make


def finished(coroutine):
    """Its result, also where an event loop is running already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@pytest.fixture
def recorded(store):
    """Runs a loop over a log of its own, and gives back the run."""

    def record(loop, name="r", **params):
        with store.create(name, **params) as log:
            finished(loop.run("goal", log=log))
        return store.run(name)

    return record


@pytest.fixture
def cut(store):
    """Cuts a run's log off after `events` events, as a kill does."""

    def shorten(name, events):
        path = store.path(name)
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:events]))
        return store.run(name)

    return shorten


@pytest.fixture
def approval():
    """A flow that writes until it is long enough, then asks a person."""
    text = """
flow: approval
steps:
  - id: write
    title: write <it>
    code: write
    output_schema: { properties: { words: { type: integer } } }
    goto: check
  - id: check
    code: check
    output_schema: { properties: { ok: { type: boolean } } }
    transitions:
      - { when: output.ok, goto: ask }
      - { when: not output.ok, goto: write, loop: { name: again, max_iterations: 3 } }
  - id: ask
    human: Ship it?
    output_schema: { properties: { decision: { type: string, enum: [yes, no] } } }
    transitions:
      - { when: output.decision == 'yes', goto: done }
      - goto: failed
"""
    functions = {
        "write": lambda context: {"words": 5 * context.visits},
        "check": lambda context: {"ok": context.steps["write"]["output"]["words"] > 7},
    }
    return Flow.parse(text, functions)


@pytest.fixture
def waiting(store, approval):
    """A run of that flow which waits for its person."""
    with store.create("flow") as log:
        assert finished(approval.run(log=log)).status == "waiting"
    return store.run("flow")


@pytest.fixture
def front_end(monkeypatch):
    """As if somebody listened: figures get their widgets. Returns what a browser says when it has drawn one."""
    monkeypatch.setattr("loopkit.views.showing.listening", lambda: True)
    monkeypatch.setattr("loopkit.views.live.listening", lambda: True)

    def drew(picture):
        picture.live._js2py_traceDeltas = {"trace_deltas": [], "trace_edit_id": 0}
        return picture.live

    return drew
