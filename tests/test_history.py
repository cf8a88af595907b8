"""A history against plain lists: totals, slices and branches say what counting by hand says."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit import BestOf, Decision, History, Iteration, Usage, Verdict
from loopkit.store import encode

CANDIDATES = st.sampled_from(
    [None, 1, 1.0, True, "1", [1], (1,), {"a": 1, "b": 2}, {"b": 2, "a": 1}, {1}, [None]]
)
DIRECTIONS = st.sampled_from(["maximise", "minimise"])
counts = st.integers(0, 9)
usages = st.builds(
    Usage,
    calls=counts,
    input_tokens=counts,
    output_tokens=counts,
    cached_tokens=counts,
    cost=st.sampled_from([0.0, 0.25, 1.5]),
    unpriced_calls=counts,
)


@st.composite
def turns(draw, number=1, most=8):
    made = []
    for place in range(draw(st.integers(0, most))):
        score = draw(st.none() | st.sampled_from([-1.0, 0.0, 0.5]))
        crash = score is None
        made.append(
            Iteration(
                number=number + place,
                decision=Decision.CRASH
                if crash
                else draw(st.sampled_from([Decision.KEEP, Decision.DISCARD])),
                candidate=draw(CANDIDATES),
                verdict=None if crash else Verdict(score=score),
                usage=draw(usages),
                seconds=draw(st.sampled_from([0.0, 0.5, 2.0])),
            )
        )
    return made


def grown(turns, direction="maximise"):
    history = History(direction=direction)
    for turn in turns:
        history = history.then(turn)
    return history


def says_what_the_list_says(history, turns, direction="maximise"):
    kept = [turn for turn in turns if turn.decision is Decision.KEEP]
    assert history.best == (kept[-1] if kept else None)
    for name in vars(Usage()):
        assert getattr(history.usage, name) == sum(getattr(turn.usage, name) for turn in turns)
    assert history.seconds == sum(turn.seconds for turn in turns)
    same = []
    if turns and turns[-1].candidate is not None:
        last = encode(turns[-1].candidate)
        same = [
            turn.number
            for turn in turns[:-1]
            if turn.candidate is not None and encode(turn.candidate) == last
        ]
    assert history.same == (len(same), same[0] if same else None)
    assert history.direction == direction
    assert (len(history), list(history), list(reversed(history))) == (len(turns), turns, turns[::-1])
    assert history == turns and history == tuple(turns)
    assert str(len(turns)) in repr(history)
    return True


@settings(max_examples=80, deadline=None)
@given(turns(), DIRECTIONS)
def test_it_says_what_counting_by_hand_says_however_it_was_made(made, direction):
    at_once = History(made, direction=direction)
    assert says_what_the_list_says(at_once, made, direction)
    assert says_what_the_list_says(grown(made, direction), made, direction)
    assert at_once == grown(made, direction)
    assert History.of(at_once) is at_once
    assert says_what_the_list_says(History.of(made), made) and says_what_the_list_says(
        History.of(tuple(made)), made
    )


@settings(max_examples=80, deadline=None)
@given(turns(), st.slices(8), DIRECTIONS)
def test_it_is_indexed_and_sliced_like_a_tuple(made, part, direction):
    history = grown(made, direction)
    assert history[part] == tuple(made)[part] and len(history[part]) == len(made[part])
    for index in range(-10, 10):
        if -len(made) <= index < len(made):
            assert history[index] is made[index]
        else:
            with pytest.raises(IndexError):
                history[index]
    for length in range(len(made) + 1):
        assert says_what_the_list_says(history[:length], made[:length], direction)
        for shorter in range(length + 1):
            assert says_what_the_list_says(history[:length][:shorter], made[:shorter], direction)
    for turn in made:
        assert (
            turn in history
            and history.index(turn) == made.index(turn)
            and history.count(turn) == made.count(turn)
        )


@settings(max_examples=80, deadline=None)
@given(turns(), st.data(), DIRECTIONS)
def test_a_turn_after_an_older_view_is_a_branch_and_disturbs_no_other(made, data, direction):
    branches = [(History(direction=direction), [])]
    for _ in range(data.draw(st.integers(1, 8))):
        history, as_list = data.draw(st.sampled_from(branches))
        cut = data.draw(st.integers(0, len(as_list)))
        history, as_list = history[:cut], as_list[:cut]
        for turn in data.draw(turns(number=cut + 1, most=3)):
            history, as_list = history.then(turn), [*as_list, turn]
            branches.append((history, as_list))
    for history, as_list in branches:
        assert says_what_the_list_says(history, as_list, direction)


@settings(max_examples=40, deadline=None)
@given(turns(), turns(), DIRECTIONS, DIRECTIONS)
def test_equal_ones_have_equal_turns_and_direction_and_the_same_hash(one, other, first, second):
    a, b = grown(one, first), History(other, direction=second)
    assert (a == b) == (one == other and first == second)
    assert a == grown(one, first) and hash(a) == hash(History(one, direction=first))
    assert (a == other) == (one == other) and a != "text" and a != {1} and a is not None
    if a == b:
        assert hash(a) == hash(b)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_gain_is_how_much_better(score, over):
    for direction, better in (("maximise", score > over), ("minimise", score < over)):
        gain = History(direction=direction).gain(score, over)
        assert (gain > 0) == better and abs(gain) == abs(score - over) and (gain == 0) == (score == over)


@pytest.mark.parametrize("direction", ["", "max", "maximize", "MAXIMISE", None, 1])
def test_a_direction_that_is_none_is_refused_by_name(direction):
    with pytest.raises(ValueError, match=f"direction must be .*'minimise', got {direction!r}"):
        History(direction=direction)


def test_what_it_counts_cannot_be_changed_through_it():
    turn = Iteration(number=1, decision=Decision.KEEP, verdict=Verdict(score=1), usage=Usage(calls=1))
    history = History([turn])
    longer = history.then(turn)
    assert (history.usage.calls, longer.usage.calls, longer[:1].usage.calls, turn.usage.calls) == (1, 2, 1, 1)
    longer.usage.add(Usage(calls=5))
    assert longer.usage.calls == 2 and longer.then(turn).usage.calls == 3
    with pytest.raises(TypeError):
        history[0] = turn
    with pytest.raises(AttributeError):
        history.best = None


@pytest.mark.parametrize(
    "pair",
    [
        ([1, 2], (1, 2)),
        ({"a": None}, {"a": None}),
        (math.inf, "Infinity"),
        (b"x", "x"),
        (Usage(), vars(Usage())),
    ],
)
def test_candidates_are_the_same_when_their_records_are(pair):
    made = [Iteration(number=n, decision=Decision.DISCARD, candidate=one) for n, one in enumerate(pair, 1)]
    assert json.loads(encode(pair[0])) == json.loads(encode(pair[1]))
    assert History(made).same == (1, 1)


def test_several_candidates_are_a_tuple_and_never_none():
    assert BestOf(n for n in range(3)) == BestOf([0, 1, 2]) == BestOf((0, 1, 2))
    assert BestOf([0]).candidates == (0,)
    with pytest.raises(ValueError, match="at least one candidate"):
        BestOf([])
