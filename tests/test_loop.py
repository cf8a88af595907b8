"""The loop: what a turn becomes, which turn is delivered, what is recorded and billed, and every way out."""

import asyncio
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit import (
    BestOf,
    Budget,
    Cancel,
    Decision,
    Failure,
    History,
    Irreproducible,
    Loop,
    MaxIterations,
    Repetition,
    Stagnation,
    Store,
    StoreError,
    Threshold,
    Usage,
)
from loopkit.history import StopReason
from loopkit.usage import metered, spend
from loopkit.verdict import Feedback, Verdict

CRASH = "crash"


def play(*turns, gates=None, log=None, wrap=lambda function: function, **settings):
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
        **settings,
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


# Exact in binary, so that gains of exactly the noise floor come up.
exact = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 5e-324])
several = st.lists(exact | st.just(CRASH), min_size=1, max_size=4)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(exact | st.just(CRASH) | several, min_size=1, max_size=8),
    st.sampled_from(["maximise", "minimise"]),
    st.sampled_from([0.0, 0.25, 0.5, 2.0]),
)
def test_a_turn_is_kept_when_it_is_better_than_the_last_one_kept_by_the_noise_floor(turns, direction, floor):
    sign = 1 if direction == "maximise" else -1
    failing = {CRASH: RuntimeError("no")}
    shown = [
        BestOf([failing.get(one, one) for one in turn]) if isinstance(turn, list) else failing.get(turn, turn)
        for turn in turns
    ]
    outcome = play(*shown, direction=direction, noise_floor=floor)

    best, kept = None, None
    for turn, played in zip(turns, outcome.history, strict=True):
        options = turn if isinstance(turn, list) else [turn]
        usable = [(sign * score, -place) for place, score in enumerate(options) if score != CRASH]
        if not usable:
            assert (played.decision, played.score) == (Decision.CRASH, None)
            assert played.candidate is failing[CRASH]
        else:
            score = options[-max(usable)[1]]
            gain = math.inf if best is None else sign * (score - best)
            better = gain > 0 and gain >= floor
            assert (played.score, played.candidate) == (score, score)
            assert played.decision is (Decision.KEEP if better else Decision.DISCARD)
            if better:
                best, kept = score, played.number
        scores = tuple(None if one == CRASH else one for one in turn) if isinstance(turn, list) else ()
        assert played.options == scores
    assert (outcome.best and outcome.best.number) == kept
    assert outcome.history.direction == direction


@pytest.mark.parametrize(
    ("scores", "settings", "best"),
    [
        ((0.5, 0.75), {"noise_floor": 0.25}, 2),  # a gain of just the floor is one
        ((0.5, 0.75), {"noise_floor": 0.2500001}, 1),
        ((0.5, 0.5), {"noise_floor": 0.0}, 1),  # without a floor there must be a gain
        ((0.5, 0.5 + 2**-53), {}, 2),
        ((0.5, 0.625, 0.75), {"noise_floor": 0.25}, 3),  # against the last one kept, not the last one
        ((0.5, 0.25), {"direction": "minimise", "noise_floor": 0.25}, 2),
        ((0.5, 0.75), {"direction": "minimise"}, 1),
        ((1e308, -1e308), {"direction": "minimise", "noise_floor": 1e308}, 2),
        ((-7.0,), {"noise_floor": 100}, 1),  # the first usable one is always kept
        ((RuntimeError("no"), -7.0), {"noise_floor": 100}, 2),
    ],
)
def test_a_gain_as_large_as_the_noise_floor_counts(scores, settings, best):
    assert play(*scores, **settings).best.number == best


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, -math.inf])
def test_a_noise_floor_that_is_none_is_refused_by_name(bad):
    with pytest.raises(ValueError, match=f"noise_floor must be a finite number >= 0, got {bad}"):
        play(1, noise_floor=bad)


@pytest.mark.parametrize("bad", ["", "minimize", "down", None, -1])
def test_a_direction_that_is_none_is_refused_by_name(bad):
    with pytest.raises(ValueError, match=f"direction must be 'maximise' or 'minimise', got {bad!r}"):
        play(1, direction=bad)


@pytest.mark.parametrize("wrap", [lambda function: function, as_async])
def test_a_loop_that_minimises_reaches_a_threshold_from_above(wrap):
    gates = [Threshold(0.25), MaxIterations(9)]
    outcome = play(0.75, 0.5, 0.25, 0.0, gates=gates, direction="minimise", wrap=wrap)
    assert (outcome.stopped_by.gate, outcome.best.number) == ("Threshold", 3)


def test_a_loop_that_proposes_what_it_had_proposed_may_be_stopped():
    gates = [Repetition(), MaxIterations(9)]
    assert play(1, 2, 1.5, 2, 3, gates=gates).stopped_by.reason == "iteration 4 proposed what iteration 2 had"
    # What was tried beside the best of several had not been the turn's.
    assert len(play(BestOf([1, 2]), 1, 3, 2, gates=gates).history) == 4


# --- several candidates ------------------------------------------------------------------------------------


def test_several_candidates_are_tried_at_the_same_time():
    running, most = 0, []

    async def busy(candidate, *_):
        nonlocal running
        running += 1
        most.append(running)
        await all_here.wait() if running < 3 else all_here.set()
        running -= 1
        return candidate

    async def run():
        nonlocal all_here
        all_here = asyncio.Event()
        return await asyncio.wait_for(loop.run(), 10)

    all_here = None
    loop = Loop(
        propose=lambda *_: BestOf([1, 3, 2]), execute=busy, judge=lambda one, _: one, gates=[MaxIterations(1)]
    )
    outcome = asyncio.run(run())
    assert max(most) == 3
    assert (outcome.best.candidate, outcome.best.options) == (3, (1, 3, 2))


def test_the_time_of_several_is_that_of_the_longest_and_the_bill_is_of_them_all():
    async def execute(candidate):
        await asyncio.sleep(candidate / 100)
        spend(Usage(calls=candidate))

    log = ListLog()
    loop = Loop(
        propose=lambda *_: spend(Usage(calls=10)) or BestOf([1, 0, 5]),
        execute=execute,
        judge=lambda one, _: spend(Usage(calls=100)) or -one,
        gates=[MaxIterations(1)],
    )
    (turn,) = asyncio.run(loop.run(log=log)).history
    assert (turn.candidate, turn.usage.calls) == (0, 10 + 1 + 0 + 5 + 300)
    steps = [data for event, data in log.events if event == "step"]
    seconds = {
        option: sum(step["seconds"] for step in steps if step.get("option") == option)
        for option in (None, 0, 1, 2)
    }
    assert turn.seconds == pytest.approx(seconds[None] + seconds[2], abs=2e-6) and turn.seconds >= 0.05
    assert sum(step.get("usage", {}).get("calls", 0) for step in steps) == turn.usage.calls


def test_several_that_all_crash_are_a_crash_with_the_first_ones_error():
    (turn,) = play(BestOf([Failure("first"), KeyError("second")])).history
    assert (turn.decision, turn.error.kind, turn.options) == (Decision.CRASH, "first", (None, None))
    assert isinstance(turn.candidate, Failure) and turn.verdict is None


def test_no_candidates_at_all_are_a_crash_of_propose():
    loop = Loop(propose=lambda *_: BestOf([]), execute=None, judge=None, gates=[MaxIterations(1)])
    (turn,) = asyncio.run(loop.run()).history
    assert (turn.error.phase, turn.error.kind, turn.error.typed) == ("propose", "ValueError", False)
    assert "at least one candidate" in turn.error.message


def test_each_of_several_is_recorded_at_its_place(tmp_path):
    with Store(tmp_path).create("r") as log:
        play(BestOf([0.5, RuntimeError("no"), 0.75]), 0.25, log=log)
    run = Store(tmp_path).run("r")
    steps = [(step["phase"], step.get("option")) for step in run.all("step") if step["iteration"] == 1]
    assert steps[0] == ("propose", None) and run.all("step")[-1].get("option") is None
    assert sorted(steps[1:]) == [*(("execute", n) for n in (0, 1, 2)), ("judge", 0), ("judge", 2)]
    first, second = run.all("iteration")
    assert (first["options"], first["score"]) == ([0.5, None, 0.75], 0.75)
    assert "options" not in second
    frame = Store(tmp_path).steps_df("r")
    assert frame.loc[frame["error"].notna(), "option"].to_list() == [1]


@pytest.mark.parametrize("error", [StoreError("the disk is full"), Irreproducible("another loop")])
def test_when_the_record_itself_fails_the_other_candidates_are_stopped(error):
    ended = []

    async def execute(candidate):
        if candidate == 1:
            await asyncio.sleep(0.001)
            raise error
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(candidate)

    loop = Loop(
        propose=lambda *_: BestOf([0, 1, 2]), execute=execute, judge=lambda *_: 1, gates=[MaxIterations(9)]
    )
    with pytest.raises(type(error), match=str(error)):
        asyncio.run(asyncio.wait_for(loop.run(), 10))
    assert ended == [0, 2]


def test_cancelling_stops_all_candidates():
    ended = []

    async def execute(candidate):
        try:
            reached.set()
            await asyncio.Event().wait()
        finally:
            ended.append(candidate)

    async def cancelled():
        nonlocal reached
        reached = asyncio.Event()
        running = asyncio.create_task(loop.run())
        await reached.wait()
        running.cancel()
        await running

    reached = None
    loop = Loop(
        propose=lambda *_: BestOf([0, 1, 2]), execute=execute, judge=lambda *_: 1, gates=[MaxIterations(9)]
    )
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert ended == [0, 1, 2]


# --- gates -------------------------------------------------------------------------------------------------


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


def test_gates_of_one_run_are_asked_after_the_loops_own_and_are_part_of_its_record(tmp_path):
    cancel, seen = Cancel(), []

    def look(history):
        seen.append(len(history))
        if len(history) == 2:
            cancel.request("enough")

    loop = Loop(
        propose=lambda goal, history: len(history),
        execute=lambda candidate: candidate,
        judge=lambda candidate, observation: observation,
        gates=[MaxIterations(4)],
    )
    store = Store(tmp_path)
    with store.create("r") as log:
        stopped = asyncio.run(loop.run(log=log, gates=[look, cancel]))
    assert (stopped.stopped_by, stopped.gates) == (
        StopReason(gate="Cancel", reason="enough"),
        (*loop.gates, look, cancel),
    )
    assert store.run("r").status == "stopped" and store.run("r").first("goal")["gates"][-1] == "Cancel()"
    with store.resume("r") as log:
        assert asyncio.run(loop.run(log=log, gates=[look])).stopped_by.gate == "MaxIterations"
    assert seen == [1, 2, 2, 3], (
        "where its own gate opens no other is asked; after the cut its turn is asked again"
    )


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


def test_an_exception_that_has_no_words_is_a_crash_too():
    class Speechless(Exception):
        def __str__(self):
            raise RuntimeError

    class Mute(Failure):
        __str__ = Speechless.__str__

    first, second = play(Speechless(), Mute("odd")).history
    assert (first.error.kind, first.error.message) == ("Speechless", "RuntimeError in its message")
    assert (second.error.kind, second.error.typed) == ("odd", True)


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
    "gates",
    [
        *([], [Threshold(1)], [Stagnation(1)], [Repetition(1)], [Cancel()]),
        *([Budget(tokens=5)], [Budget(calls=5)], [Budget(cost=5)]),
    ],
)
def test_a_loop_that_nothing_bounds_is_refused(gates):
    with pytest.raises(ValueError, match="no gate bounds this loop"):
        play(1, gates=gates or [lambda history: None])


def test_the_history_that_gates_and_propose_see_knows_the_direction():
    seen = []
    gates = [lambda history: seen.append(history), MaxIterations(2)]
    play(0.5, 0.25, gates=gates, direction="minimise")
    assert [(type(history), history.direction, history.best.score) for history in seen] == [
        (History, "minimise", 0.5),
        (History, "minimise", 0.25),
    ]


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
    assert (run.first("goal")["direction"], run.first("goal")["noise_floor"]) == ("maximise", 0.0)
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
        asyncio.run(loop.run(None))
