"""What is known of each turn: the same from a log and from an outcome, and true to what was recorded."""

import asyncio

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loopkit import BestOf, Loop, MaxIterations, StoreError, Verdict
from loopkit.store import Run
from loopkit.views.fragments import turn_html
from loopkit.views.trace import Trace, as_run, find_difference

TURNS = (0.2, None, 0.5, 0.4, 0.9)
WORDS = st.lists(
    st.sampled_from(["the ", "cat", "dog", "\n", "  ", "é😀", "x.y", "\r\n", "\u2028"]), max_size=30
)


@settings(max_examples=200, deadline=None)
@given(WORDS.map("".join), WORDS.map("".join))
@example("", "x")
def test_a_difference_holds_both_texts(before, after):
    pieces = find_difference(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "new") == before
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == after
    assert all(piece.text for piece in pieces)
    assert before != after or all(piece.kind == "same" for piece in pieces)


def test_a_difference_is_as_small_as_a_word():
    pieces = find_difference("one\nthe cat sat\nend", "one\nthe dog sat\nend")
    assert [tuple(piece) for piece in pieces if piece.kind != "same"] == [("gone", " cat"), ("new", " dog")]


def test_texts_too_long_to_compare_by_word_are_compared_in_time():
    before, after = ("".join(f"{word}{n} " for n in range(9_000)) for word in "ab")
    kinds = [piece.kind for piece in find_difference(before, after)]
    assert kinds == ["gone", "new"]


def test_a_log_and_its_outcome_say_the_same_of_every_turn(drafts, store):
    loop = drafts(*TURNS)
    with store.create("r") as log:
        outcome = asyncio.run(loop.run("goal", log=log))
    by_log, by_outcome = Trace(store.run("r")), Trace(as_run(outcome))
    assert len(by_log) == len(by_outcome) == 5
    for number in range(1, 6):
        one, other = (vars(trace.turn(number)) | {"events": None} for trace in (by_log, by_outcome))
        assert one == other


def test_a_turn_is_told_as_it_was_recorded(drafts, recorded, hostile):
    trace = Trace(recorded(drafts(*TURNS)))
    first, crash, better, worse, best = map(trace.turn, range(1, 6))
    assert (first.before, first.difference, first.blocking, first.settled) == (None, (), ("say more",), ())
    assert [(one.name, one.score) for one in first.dimensions] == [("style", 0.5), ("length", None)]
    assert first.dimensions[1].evidence == "12 words"
    assert (crash.decision, crash.score, crash.candidate, crash.before) == ("crash", None, "", 1)
    assert crash.note.startswith("propose failed, malformed: <b>bold")
    assert (better.before, better.settled) == (1, ("say more",)), "what the best before was asked for"
    assert {piece.text for piece in better.difference if piece.kind == "new"} >= {"5", " 3"}
    assert (worse.decision, worse.before, best.before) == ("discard", 3, 3)
    assert (best.usage.tokens, best.usage.cost) == (15, 0.25) and best.seconds > 0
    assert [(row.event, row.where) for row in best.events] == [
        ("step", "propose"), ("step", "execute"), ("step", "judge"), ("iteration", ""),
    ]  # fmt: skip
    assert best.events[0].tokens == 15 and '"score": 0.9' in best.events[0].said


@pytest.mark.parametrize(("direction", "score"), [("maximise", 0.7), ("minimise", 0.1)])
def test_of_several_candidates_the_one_that_went_on_is_told(drafts, recorded, direction, score):
    loop = drafts((0.4, 0.7, 0.1), gates=[MaxIterations(1)], direction=direction)
    turn = Trace(recorded(loop)).turn(1)
    assert turn.score == score and f"score: {score}" in turn.candidate
    assert turn.observation.startswith(f"{score} in turn 1")
    assert {"execute 0", "execute 2", "judge 1"} < {row.where for row in turn.events}


def test_a_turn_that_goes_on_is_told_as_far_as_it_has_come(drafts, recorded, cut):
    recorded(drafts(*TURNS))
    trace = Trace(cut("r", 4))  # start, goal, propose, execute
    turn = trace.turn(len(trace))
    assert (turn.iteration, turn.decision, turn.score) == (1, None, None)
    assert "0.2 in turn 1" in turn.candidate and turn.observation and not turn.dimensions


def test_visits_of_a_flow_are_told_by_step_and_compared_with_the_visit_before(waiting):
    trace = Trace(waiting)
    turns = [trace.turn(number) for number in range(1, len(trace) + 1)]
    assert [turn.step for turn in turns] == ["write", "check", "write", "check", "ask"]
    assert [turn.before for turn in turns] == [None, None, 1, 2, None]
    assert turns[2].candidate == "words: 10"
    assert {piece.text for piece in turns[2].difference if piece.kind != "same"} == {" 5", " 10"}
    assert turns[1].note == "→ write, not output.ok (again 1 of 3)"
    assert turns[4].decision is None, "it waits"


@pytest.mark.parametrize("number", [0, 2])
def test_an_iteration_that_was_not_begun_is_refused(drafts, recorded, number):
    trace = Trace(recorded(drafts(0.9)))
    with pytest.raises(IndexError, match=f"1 iterations, there is no {number}"):
        trace.turn(number)


def test_a_run_is_found_by_the_path_of_its_log_with_its_ending_or_without(drafts, recorded, store):
    run = recorded(drafts(0.9), name="a.2")
    assert as_run(run) is run
    for path in (store.path("a.2"), str(store.path("a.2")), store.folder / "a.2"):
        assert as_run(path) == run and as_run(path).path == store.path("a.2")


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        ("nowhere/r", StoreError, "no run 'r' in nowhere"),
        ("nowhere/..jsonl", ValueError, "run id"),
        (7, TypeError, "got 7"),
        ([Run("r", [])], TypeError, "expected a Run, an Outcome or the path of a log"),
    ],
)
def test_what_is_no_run_is_refused(source, error, said):
    with pytest.raises(error, match=said):
        as_run(source)


def test_a_program_among_other_values_is_shown_line_by_line(recorded):
    program = "import sympy\n\nprint(sympy.factorint(15))"
    loop = Loop(
        propose=lambda goal, history: {"texts": [program], "lost": []},
        execute=lambda candidate: None,
        judge=lambda candidate, shown: 1.0,
        gates=[MaxIterations(1)],
    )
    shown = Trace(recorded(loop)).turn(1).candidate
    assert "  import sympy\n\n  print(sympy.factorint(15))\n" in shown
    assert yaml.safe_load(shown) == {"texts": [program], "lost": []}


def test_what_is_void_or_barred_says_why(recorded):
    verdict = Verdict(
        score=0.4,
        dimensions={"clear": 0.4},
        voids={"purpose": "quote not in the material"},
        barred="veto: parses",
    )
    loop = Loop(
        propose=lambda goal, history: "draft", execute=str, judge=lambda *_: verdict, gates=[MaxIterations(1)]
    )
    turn = Trace(recorded(loop)).turn(1)
    assert [(one.name, one.score) for one in turn.dimensions] == [("clear", 0.4), ("purpose", None)]
    assert turn.dimensions[1].evidence == "void: quote not in the material"
    assert turn.note == "may not stop the loop: veto: parses"
    assert "may not stop the loop: veto: parses" in turn_html(turn)


def test_of_two_candidates_with_one_score_the_one_that_was_not_barred_is_told(recorded):
    loop = Loop(
        propose=lambda goal, history: BestOf(["bribe", "honest"]),
        execute=str,
        judge=lambda candidate, _: Verdict(score=0.5, barred="veto" if candidate == "bribe" else None),
        gates=[MaxIterations(1)],
    )
    turn = Trace(recorded(loop)).turn(1)
    assert (turn.candidate, turn.note) == ("honest", "")
