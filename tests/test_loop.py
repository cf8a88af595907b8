"""The loop: what a turn becomes, which turn is delivered, what is recorded and billed, and every way out."""

import asyncio
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit import Budget, Decision, Failure, Loop, MaxIterations, Stagnation, Store, Threshold, Usage
from loopkit.history import StopReason
from loopkit.usage import metered, spend
from loopkit.verdict import Feedback, Verdict

CRASH = "crash"


def play(*turns, gates=None, log=None, wrap=lambda function: function):
    """A loop whose turn i is `turns[i]`: a score, or an exception that its `execute` raises."""

    def propose(goal, history):
        return turns[len(history)]

    def execute(candidate):
        if isinstance(candidate, Exception):
            raise candidate
        return candidate

    def judge(candidate, observation):
        return observation

    loop = Loop(
        propose=wrap(propose),
        execute=wrap(execute),
        judge=wrap(judge),
        gates=gates or [MaxIterations(len(turns))],
    )
    return asyncio.run(loop.run("goal", log=log))


def as_async(function):
    async def later(*args):
        await asyncio.sleep(0)
        return function(*args)

    return later


class ListLog:
    """The three methods a loop needs of a log, in memory."""

    def __init__(self):
        self.events, self.synced, self.closed = [], [], False

    def append(self, event, **data):
        self.events.append((event, data))

    def sync(self):
        self.synced.append(len(self.events))

    def close(self):
        self.closed = True


scores = st.floats(-1e6, 1e6) | st.integers(-3, 3)
turns = st.lists(scores | st.just(CRASH), min_size=1, max_size=12)


@settings(max_examples=50, deadline=None)
@given(turns)
def test_the_best_is_the_first_highest_score_and_decisions_follow_from_the_scores(history):
    outcome = play(*(RuntimeError("no") if turn == CRASH else turn for turn in history))

    usable = {number: score for number, score in enumerate(history, 1) if score != CRASH}
    expected = max(usable, key=lambda number: (usable[number], -number), default=None)
    assert (outcome.best.number if outcome.best else None) == expected
    for turn in outcome.history:
        if history[turn.number - 1] == CRASH:
            assert (turn.decision, turn.score, turn.verdict) == (Decision.CRASH, None, None)
            continue
        before = [score for number, score in usable.items() if number < turn.number]
        better = all(turn.score > score for score in before)
        assert turn.decision is (Decision.KEEP if better else Decision.DISCARD)


@pytest.mark.parametrize(
    ("gate", "gates"),
    [
        ("MaxIterations", [MaxIterations(3)]),
        ("Stagnation", [MaxIterations(9), Stagnation(patience=2)]),
        ("Budget", [Budget(seconds=1e-9)]),
        ("Threshold", [MaxIterations(9), Threshold(0.5)]),
        ("mine", [MaxIterations(9), lambda history: StopReason(gate="mine", reason="enough")]),
    ],
)
def test_the_best_so_far_is_delivered_whatever_gate_opened(gate, gates):
    outcome = play(0.7, 0.2, 0.1, 0.0, gates=gates)
    assert outcome.stopped_by.gate == gate
    assert (outcome.best.number, outcome.best.candidate, outcome.best.score) == (1, 0.7, 0.7)


def test_gates_are_tried_in_order_and_the_first_that_opens_is_named():
    both = [Threshold(0.5), MaxIterations(1)]
    assert play(1.0, gates=both).stopped_by.gate == "Threshold"
    assert play(1.0, gates=both[::-1]).stopped_by.gate == "MaxIterations"


@pytest.mark.parametrize("wrap", [lambda function: function, as_async])
def test_plain_and_async_phases_do_the_same(wrap):
    outcome = play(0.1, RuntimeError("x"), 0.3, wrap=wrap)
    assert [turn.decision for turn in outcome.history] == ["keep", "crash", "keep"]
    assert outcome.best.score == 0.3


@pytest.mark.parametrize("mixed", ["propose", "execute", "judge"])
def test_phases_may_be_mixed_and_each_sees_what_the_others_made(mixed):
    seen = []
    phases = {
        "propose": lambda goal, history: seen.append((goal, len(history))) or "candidate",
        "execute": lambda candidate: seen.append(candidate) or "observation",
        "judge": lambda candidate, observation: seen.append((candidate, observation)) or 1,
    }
    phases[mixed] = as_async(phases[mixed])
    outcome = asyncio.run(Loop(**phases, gates=[MaxIterations(2)]).run("goal"))
    turn = [("candidate"), ("candidate", "observation")]
    assert seen == [("goal", 0), *turn, ("goal", 1), *turn]
    assert (outcome.goal, outcome.history[1].observation) == ("goal", "observation")


def test_what_propose_is_shown_cannot_be_changed_by_it():
    shown = []
    loop = Loop(
        propose=lambda goal, history: shown.append(history) or 1,
        execute=lambda candidate: candidate,
        judge=lambda *_: 1,
        gates=[MaxIterations(2)],
    )
    asyncio.run(loop.run("goal"))
    assert [len(history) for history in shown] == [0, 1]  # an earlier one does not grow
    with pytest.raises(TypeError):
        shown[1][0] = None


def test_a_failure_is_typed_and_keeps_the_answer_and_any_other_exception_is_not():
    outcome = play(Failure("empty", "nothing came", answer="  "), KeyError("lost"), Failure("odd"))
    failure, other, bare = (turn.error for turn in outcome.history)
    assert (failure.phase, failure.kind, failure.typed, failure.answer) == ("execute", "empty", True, "  ")
    assert "nothing came" in failure.message
    assert (other.kind, other.typed, other.answer) == ("KeyError", False, None)
    assert (bare.kind, bare.typed, bare.answer) == ("odd", True, None)
    assert outcome.best is None


@pytest.mark.parametrize("broken", ["propose", "execute", "judge"])
def test_a_crash_names_its_phase_and_keeps_what_was_made_before_it(broken):
    def fail(*_):
        raise ValueError("broken")

    phases = {
        "propose": lambda *_: "candidate",
        "execute": lambda _: "observation",
        "judge": lambda *_: 1,
    } | {broken: fail}
    log = ListLog()
    outcome = asyncio.run(Loop(**phases, gates=[MaxIterations(1)]).run(None, log=log))
    (turn,) = outcome.history
    assert (turn.error.phase, turn.error.message) == (broken, "broken")
    assert turn.candidate == (None if broken == "propose" else "candidate")
    assert turn.observation == ("observation" if broken == "judge" else None)
    steps = [data["phase"] for event, data in log.events if event == "step"]
    assert steps == ["propose", "execute", "judge"][: len(steps)]
    assert steps[-1] == broken


@pytest.mark.parametrize(
    "gates", [[], [Threshold(1)], [Stagnation(1)], [Budget(tokens=5)], [Budget(calls=5)]]
)
def test_a_loop_that_nothing_bounds_is_refused(gates):
    with pytest.raises(ValueError, match="no gate bounds this loop"):
        play(1, gates=gates or [lambda history: None])


@pytest.mark.parametrize("number", [1, 0.25, -3, True])
def test_a_bare_number_becomes_a_verdict(number):
    verdict = play(number).best.verdict
    assert verdict == Verdict(score=number)
    assert verdict.feedback == Feedback()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "1", None, [1]])
def test_a_score_that_is_no_finite_number_is_a_crash_of_the_judge_that_names_it(bad):
    outcome = play(bad)
    (turn,) = outcome.history
    assert (turn.decision, turn.error.phase, turn.error.kind, turn.error.typed) == (
        Decision.CRASH,
        "judge",
        "ValueError",
        False,
    )
    assert repr(bad) in turn.error.message


def test_a_dimension_that_is_not_finite_is_refused_by_name():
    with pytest.raises(ValueError, match="clarity.*nan"):
        Verdict(score=1, dimensions={"clarity": math.nan})


@pytest.mark.parametrize("number", [np.int64(1), np.float32(0.5), np.float64(0.25)])
def test_numbers_of_numpy_are_numbers(number):
    verdict = play(number).best.verdict
    assert type(verdict.score) is float and verdict.score == number
    assert Verdict(score=1, dimensions={"clarity": number}).dimensions["clarity"] == number
    with pytest.raises(ValueError, match="score.*nan"):
        Verdict(score=np.float32("nan"))


def test_feedback_as_a_checklist():
    assert Feedback().checklist() == ""
    both = Feedback(blocking=("a", "b"), suggestions=("c",))
    assert both.checklist() == "- [ ] a\n- [ ] b\n- [ ] (optional) c"


# --- usage -------------------------------------------------------------------------------------------------


def call(tokens=1):
    spend(Usage(calls=1, input_tokens=tokens, output_tokens=1, cached_tokens=tokens // 2))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(0, 50), max_size=4), min_size=1, max_size=5))
def test_each_turn_is_billed_for_what_its_phases_asked_however_they_fan_out(spends):
    async def one(tokens):
        await asyncio.sleep(0)
        call(tokens)

    async def propose(goal, history):
        await asyncio.gather(*map(one, spends[len(history)]))

    async def execute(candidate):
        await asyncio.to_thread(call, 7)

    def judge(*_):
        with metered():  # a meter of its own does not take the bill away from the loop
            call(3)
        return 1

    log = ListLog()
    loop = Loop(propose=propose, execute=execute, judge=judge, gates=[MaxIterations(len(spends))])
    outcome = asyncio.run(loop.run(None, log=log))
    for turn, asked in zip(outcome.history, spends, strict=True):
        assert turn.usage.calls == len(asked) + 2
        assert turn.usage.input_tokens == sum(asked) + 10
        assert turn.usage.tokens == sum(asked) + 10 + len(asked) + 2
    assert outcome.usage.calls == sum(turn.usage.calls for turn in outcome.history)
    steps = [data.get("usage", {}).get("calls", 0) for event, data in log.events if event == "step"]
    assert steps == [calls for asked in spends for calls in (len(asked), 1, 1)]


def test_a_phase_that_raises_is_billed_too():
    def propose(*_):
        call(5)
        raise Failure("empty")

    loop = Loop(propose=propose, execute=None, judge=None, gates=[MaxIterations(2)])
    assert asyncio.run(loop.run(None)).usage == Usage(
        calls=2, input_tokens=10, output_tokens=2, cached_tokens=4
    )


def test_meters_nest_and_end_also_when_the_block_raises():
    call()  # nobody counts
    with metered() as outer:
        call(10)
        with pytest.raises(ZeroDivisionError), metered() as inner:
            call(20)
            raise ZeroDivisionError
        call(30)
    call()
    assert (inner.calls, inner.input_tokens) == (1, 20)
    assert (outer.calls, outer.input_tokens, outer.cached_tokens) == (3, 60, 30)


def test_loops_side_by_side_do_not_pay_for_each_other():
    async def propose(goal, history):
        await asyncio.sleep(0)
        call(goal)
        await asyncio.sleep(0)

    loop = Loop(propose=propose, execute=lambda _: None, judge=lambda *_: 1, gates=[MaxIterations(2)])

    async def both():
        return await asyncio.gather(loop.run(1), loop.run(100))

    small, large = asyncio.run(both())
    assert (small.usage.input_tokens, large.usage.input_tokens) == (2, 200)


# --- records -----------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(turns)
def test_the_log_tells_the_whole_story_in_order(history):
    log = ListLog()
    outcome = play(*(RuntimeError("no") if turn == CRASH else turn for turn in history), log=log)

    expected = ["goal"]
    for turn in history:
        expected += ["step"] * (2 if turn == CRASH else 3) + ["iteration"]
    assert [event for event, _ in log.events] == [*expected, "stop"]
    turns = [data for event, data in log.events if event == "iteration"]
    assert [data["iteration"] for data in turns] == list(range(1, len(history) + 1))
    for data, turn in zip(turns, outcome.history, strict=True):
        best = outcome.history[: turn.number].best
        assert (data["decision"], data.get("score")) == (turn.decision, turn.score)
        assert data.get("best") == (best.number if best else None)
        assert ("error" in data) == (turn.decision is Decision.CRASH)
    stop = log.events[-1][1]
    assert (stop["gate"], stop.get("best")) == ("MaxIterations", turns[-1].get("best"))
    # Synced once per turn, and the last time after the stop.
    ends = [index for index, (event, _) in enumerate(log.events, 1) if event == "iteration"]
    assert log.synced == [*ends[:-1], len(log.events)]


def test_feedback_and_errors_reach_the_record_as_data(tmp_path):
    verdicts = [Verdict(score=0.5, feedback=Feedback(blocking=("shorter",))), Failure("odd", answer="hm")]

    def judge(candidate, observation):
        if isinstance(candidate, Failure):
            raise candidate
        return candidate

    loop = Loop(
        propose=lambda _, history: verdicts[len(history)],
        execute=lambda candidate: None,
        judge=judge,
        gates=[MaxIterations(2)],
    )
    with Store(tmp_path).create("r") as log:
        asyncio.run(loop.run({"what": "goal"}, log=log))
    run = Store(tmp_path).run("r")
    first, second = run.all("iteration")
    assert run.first("goal")["goal"] == {"what": "goal"}
    assert run.first("goal")["gates"] == ["MaxIterations(n=2)"]
    assert first["feedback"] == {"blocking": ["shorter"], "suggestions": []}
    assert (second["error"]["kind"], second["error"]["answer"]) == ("odd", "hm")
    assert (run.status, run.first("stop")["best"]) == ("finished", 1)


@pytest.mark.parametrize("phase", ["propose", "execute", "judge"])
def test_cancelling_leaves_at_once_with_a_readable_log(tmp_path, phase):
    async def hang(*_):
        if calls.append(1) or len(calls) == 2:  # in the second turn
            reached.set()
            await asyncio.Event().wait()
        return 1

    async def cancelled():
        phases = {name: lambda *_: 1 for name in ("propose", "execute", "judge")} | {phase: hang}
        with Store(tmp_path).create("r") as log:
            running = asyncio.create_task(Loop(**phases, gates=[MaxIterations(5)]).run("g", log=log))
            await reached.wait()
            running.cancel()
            await running

    calls, reached = [], asyncio.Event()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    run = Store(tmp_path).run("r")
    finished = ["propose", "execute", "judge"].index(phase)
    events = ["start", "goal", *["step"] * 3, "iteration", *["step"] * finished]
    assert [event["event"] for event in run.events] == events
    assert run.status == "unfinished"


def test_a_keyboard_interrupt_is_not_a_crash():
    def propose(*_):
        raise KeyboardInterrupt

    loop = Loop(propose=propose, execute=None, judge=None, gates=[MaxIterations(5)])
    with pytest.raises(KeyboardInterrupt):
        loop.run(None).send(None)
