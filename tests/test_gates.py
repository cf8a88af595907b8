"""Gates against a restatement of what they promise, on random histories."""

import copy
import math
import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit import Budget, Cancel, MaxIterations, Repetition, Stagnation, Threshold, Usage
from loopkit.history import Decision, History, Iteration, PhaseError
from loopkit.verdict import Verdict

# Few distinct scores, all exact in binary, so that ties and gains of exactly `min_gain` come up.
SCORES = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0])
tokens = st.integers(0, 20)
usages = st.builds(
    Usage,
    calls=st.integers(0, 3),
    input_tokens=tokens,
    output_tokens=tokens,
    cost=st.sampled_from([0.0, 0.25, 1.0]),
    unpriced_calls=st.sampled_from([0, 0, 0, 1, 2]),
)


@st.composite
def histories(draw):
    """What a loop leaves behind: crashes, and candidates kept only when they are better than all before."""
    history, best = [], -math.inf
    for number in range(1, draw(st.integers(0, 8)) + 1):
        score = draw(st.none() | SCORES)
        if score is None:
            made = {
                "decision": Decision.CRASH,
                "error": PhaseError(phase="judge", kind="x", message="x", typed=False),
            }
        else:
            decision = Decision.KEEP if score > best else Decision.DISCARD
            made = {"decision": decision, "verdict": Verdict(score=score)}
            best = max(best, score)
        seconds = draw(st.sampled_from([0.0, 0.5, 2.0]))
        candidate = draw(st.sampled_from([None, "a", "b", ["a"], {"a": 1}]))
        history.append(
            Iteration(number=number, candidate=candidate, usage=draw(usages), seconds=seconds, **made)
        )
    return tuple(history)


def top(history):
    return max((turn.score for turn in history if turn.score is not None), default=None)


def opened(gate, history):
    stop = gate(history)
    assert stop is None or (stop.gate == type(gate).__name__ and stop.reason)
    return stop is not None


@settings(max_examples=60, deadline=None)
@given(histories(), SCORES)
def test_threshold_opens_once_any_score_reached_it(history, score):
    expected = any(turn.score is not None and turn.score >= score for turn in history)
    assert opened(Threshold(score), history) == expected


@settings(max_examples=60, deadline=None)
@given(histories(), st.integers(1, 9))
def test_max_iterations_counts_every_turn(history, n):
    assert opened(MaxIterations(n), history) == (len(history) >= n)


@settings(max_examples=60, deadline=None)
@given(histories(), st.integers(1, 5), st.sampled_from([0.0, 0.25, 0.5]))
def test_stagnation_opens_without_a_gain_above_the_least_one(history, patience, min_gain):
    if len(history) <= patience:
        expected = False
    else:
        before, now = top(history[: len(history) - patience]), top(history)
        if now is None:
            expected = True  # only crashes
        elif before is None:
            expected = False  # the first usable candidate is a gain
        else:
            expected = not now - before > min_gain
    assert opened(Stagnation(patience, min_gain), history) == expected


@settings(max_examples=60, deadline=None)
@given(
    histories(),
    st.none() | st.integers(0, 60),
    st.none() | st.integers(0, 8),
    st.none() | st.sampled_from([0.0, 0.5, 1.0, 3.5]),
)
def test_budget_opens_when_any_limit_is_used_up(history, tokens, calls, seconds):
    limits = {"tokens": tokens, "calls": calls, "seconds": seconds}
    if set(limits.values()) == {None}:
        with pytest.raises(ValueError, match="needs a limit"):
            Budget(**limits)
        return
    spent = {"tokens": 0, "calls": 0, "seconds": 0.0}
    for turn in history:
        spent["tokens"] += turn.usage.input_tokens + turn.usage.output_tokens
        spent["calls"] += turn.usage.calls
        spent["seconds"] += turn.seconds
    over = [name for name, limit in limits.items() if limit is not None and spent[name] >= limit]
    stop = Budget(**limits)(history)
    assert (stop is not None) == bool(over)
    assert stop is None or any(name in stop.reason for name in over)


@settings(max_examples=60, deadline=None)
@given(histories(), st.sampled_from([0.0, 0.25, 1.0, 2.5]), st.none() | st.integers(0, 8))
def test_a_budget_of_money_opens_when_it_is_spent_or_nobody_can_count_it(history, cost, calls):
    spent, unpriced = 0.0, 0
    for turn in history:
        spent, unpriced = spent + turn.usage.cost, unpriced + turn.usage.unpriced_calls
    stop = Budget(cost=cost, calls=calls)(history)
    over = spent >= cost or (calls is not None and sum(turn.usage.calls for turn in history) >= calls)
    assert (stop is not None) == (over or unpriced > 0)
    if not over and unpriced:
        assert stop.reason == f"{unpriced} calls have no known price: limit tokens= instead of cost="
    assert Budget(tokens=10**9)(history) is None  # where money is no limit, it need not be counted


def test_a_budget_may_be_held_against_totals_of_others():
    budget = Budget(tokens=10, seconds=2)
    assert budget.spent(Usage(input_tokens=9), 1.9) is None
    assert "10 of 10 tokens" in budget.spent(Usage(input_tokens=9, output_tokens=1), 0).reason
    assert "2.5 of 2 seconds" in budget.spent(Usage(), 2.5).reason


@settings(max_examples=60, deadline=None)
@given(histories(), st.integers(1, 4))
def test_repetition_opens_when_the_last_candidate_had_been_there_often_enough(history, times):
    last = history[-1].candidate if history else None
    earlier = [turn.number for turn in history[:-1] if last is not None and turn.candidate == last]
    stop = Repetition(times)(history)
    assert opened(Repetition(times), history) == (len(earlier) >= times)
    assert stop is None or stop.reason == f"iteration {len(history)} proposed what iteration {earlier[0]} had"


def mirrored(history):
    """The same history in a loop that minimises."""
    turned = [replace(turn, verdict=Verdict(score=-turn.score)) if turn.verdict else turn for turn in history]
    return History(turned, direction="minimise")


@settings(max_examples=60, deadline=None)
@given(histories(), SCORES, st.integers(1, 4), st.sampled_from([0.0, 0.25, 0.5]))
def test_a_loop_that_minimises_stops_where_its_mirror_image_that_maximises_does(
    history, score, patience, gain
):
    minimising = mirrored(history)
    assert opened(Threshold(-score), minimising) == opened(Threshold(score), history)
    for gate in (Stagnation(patience, gain), MaxIterations(3), Budget(tokens=40), Repetition(1)):
        assert opened(gate, minimising) == opened(gate, history)


@settings(max_examples=60, deadline=None)
@given(histories(), st.data())
def test_plain_lists_tuples_and_histories_are_judged_alike_at_any_length(history, data):
    gate = data.draw(st.sampled_from(GATES))
    grown = History()
    for length, turn in enumerate(history, 1):
        grown = grown.then(turn)
        expected = gate(list(history[:length]))
        assert gate(grown) == gate(history[:length]) == gate(History(history)[:length]) == expected


def test_cancel_opens_when_it_is_told_to_and_says_why():
    cancel = Cancel()
    assert cancel([]) is None and cancel(History()) is None and cancel.nearness([]) is None
    thread = threading.Thread(target=cancel.request)
    thread.start()
    thread.join()
    assert (cancel([]).gate, cancel([]).reason) == ("Cancel", "cancelled by the user")
    assert cancel.nearness([]) == 1.0 and repr(cancel) == "Cancel()", "recorded alike by each process"
    cancel.request("by the stop button")
    assert cancel(History()).reason == "by the stop button"
    assert cancel.resumable and not any(getattr(gate, "resumable", False) for gate in GATES)


GATES = [
    Threshold(0.5),
    MaxIterations(3),
    Stagnation(2, 0.25),
    Budget(tokens=40, calls=5, seconds=3),
    Budget(cost=1.0),
    Repetition(2),
]


@settings(max_examples=60, deadline=None)
@given(histories(), st.sampled_from(GATES))
def test_a_gate_is_a_pure_function_of_the_history(history, gate):
    before, first = copy.deepcopy(history), gate(history)
    for other in GATES:  # asking about another history in between leaves no trace
        other(history[:1])
    assert gate(history) == gate(list(history)) == copy.copy(gate)(history) == first
    assert history == before


@settings(max_examples=60, deadline=None)
@given(histories(), st.sampled_from([MaxIterations(3), Budget(tokens=40), Budget(seconds=1), Threshold(0.5)]))
def test_what_has_opened_stays_open(history, gate):
    opens = [gate(history[:length]) is not None for length in range(len(history) + 1)]
    assert opens == sorted(opens)


@settings(max_examples=100, deadline=None)
@given(histories(), st.sampled_from([*GATES, Threshold(-0.5), Threshold(0.0)]), st.booleans())
def test_a_gate_is_all_the_way_near_when_it_opens_and_only_then(history, gate, minimise):
    history = mirrored(history) if minimise else History(history)
    nearness = gate.nearness(history)
    assert (nearness == 1.0) == (gate(history) is not None)
    assert nearness is None or 0.0 <= nearness <= 1.0
    assert nearness is not None or isinstance(gate, Threshold)


@settings(max_examples=60, deadline=None)
@given(histories(), st.integers(1, 5), st.sampled_from([0.0, 0.25]))
def test_how_near_stagnation_is_counts_the_turns_since_the_last_gain(history, patience, min_gain):
    still = 0
    while still < min(patience, len(history) - 1):
        before, now = top(history[: len(history) - still - 1]), top(history)
        if now is not None and (before is None or now - before > min_gain):
            break
        still += 1
    assert Stagnation(patience, min_gain).nearness(history) == still / patience


def test_how_near_the_others_are():
    def turn(number, score, **more):
        made = {"decision": Decision.KEEP, "verdict": Verdict(score=score)}
        return Iteration(number=number, candidate="a", **made | more)

    usage = Usage(calls=2, input_tokens=10, cost=0.5)
    rising = History([turn(1, 0.2), turn(2, 0.6, usage=usage, seconds=3.0)])
    falling = History([turn(1, 120.0), turn(2, 80.0)], direction="minimise")
    assert Threshold(0.8).nearness(rising) == pytest.approx(0.75)
    assert Threshold(60).nearness(falling) == pytest.approx(0.75)
    assert Threshold(0.8).nearness(History([turn(1, -3.0)])) == 0.0
    assert Threshold(-1).nearness(History([turn(1, -3.0)])) is None, "no part of anything"
    assert MaxIterations(8).nearness(rising) == 0.25
    assert Repetition(4).nearness(rising) == 0.25
    assert Budget(calls=8, tokens=20, seconds=30).nearness(rising) == 0.5, "the limit that is nearest"


def test_only_what_ends_by_itself_bounds_a_loop():
    bounding = [MaxIterations(1), Budget(seconds=1), Budget(seconds=1, tokens=1)]
    others = [Threshold(1), Stagnation(1), Budget(tokens=1), Budget(calls=1), Budget(calls=1, tokens=1)]
    others += [Budget(cost=1), Repetition(1), Cancel()]
    assert all(gate.bounds for gate in bounding)
    assert not any(getattr(gate, "bounds", False) for gate in others)


@pytest.mark.parametrize(
    ("make", "bad"),
    [
        *[(Threshold, bad) for bad in (math.nan, math.inf)],
        *[(MaxIterations, bad) for bad in (0, -1, 1.5, math.nan, math.inf, True)],
        *[(Stagnation, bad) for bad in (0, -2, 1.5, math.nan, math.inf)],
        *[(lambda bad: Stagnation(1, min_gain=bad), bad) for bad in (-0.1, math.nan)],
        *[(Repetition, bad) for bad in (0, -1, 1.5, math.nan, True)],
        *[(lambda bad: Budget(cost=bad), bad) for bad in (-0.5, math.nan, math.inf)],
        *[(lambda bad: Budget(tokens=bad), bad) for bad in (-1, math.nan)],
        *[(lambda bad: Budget(calls=bad), bad) for bad in (-1, math.nan)],
        *[(lambda bad: Budget(seconds=bad), bad) for bad in (-0.5, math.nan, math.inf)],
    ],
)
def test_a_bad_limit_is_refused_and_named(make, bad):
    with pytest.raises(ValueError, match=f"must be (>= [01]|a whole number|a finite number), got {bad}"):
        make(bad)
