"""The records behind the figures, and what the figures make of them; no pixels."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit import Failure, Feedback, Loop, MaxIterations, Store, Threshold, Verdict
from loopkit.history import Decision, Iteration
from loopkit.store import Run
from loopkit.views import arms_figure, convergence_figure, items_figure
from loopkit.views.figures import Turn, arms_info, convergence_info, items_info, model_label

HOSTILE = "<b>bold</b> & <script>alert(1)</script> $x^2$ %{x} \ud800"


GATES = (Threshold(0.8), MaxIterations(20))


async def outcome_of(scores, *, gates=GATES, log=None, asks=()):
    """Run a loop whose turns score `scores`; None crashes the turn."""
    left = iter(scores)

    def propose(goal, history):
        if (score := next(left)) is None:
            raise Failure("malformed", HOSTILE)
        return score

    def judge(candidate, score):
        return Verdict(score=score, feedback=Feedback(blocking=asks, suggestions=("be brief",)))

    loop = Loop(propose=propose, execute=float, judge=judge, gates=gates)
    return await loop.run("goal", log=log)


async def run_of(tmp_path, scores, **more):
    store = Store(tmp_path)
    with store.create("run-1") as log:
        await outcome_of(scores, log=log, **more)
    return store.run("run-1")


def trace(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


def row(arm="clauses", model="embedded", correct=3, n=4, low=0.3, high=0.95, **more):
    accuracy = correct / n if n else None
    numbers = {"correct": correct, "n": n, "accuracy": accuracy, "wilson_low": low, "wilson_high": high}
    return {"experiment": "knights", "arm": arm, "model": model} | numbers | more


async def test_a_log_and_its_outcome_have_the_same_turns(tmp_path):
    scores = [0.2, None, 0.5, 0.4, 0.9]
    info = convergence_info(await run_of(tmp_path, scores, asks=("name everybody",)))
    outcome = await outcome_of(scores, asks=("name everybody",))
    assert convergence_info(outcome).turns == convergence_info(outcome.history).turns == info.turns
    assert info.turns[0] == Turn(1, "keep", 0.2, 0.2, "name everybody; (optional) be brief")
    assert [turn.best for turn in info.turns] == [0.2, 0.2, 0.5, 0.5, 0.9]
    assert info.turns[1].score is None and info.turns[1].note.startswith("propose failed, malformed: <b>bold")
    assert info.threshold == 0.8 and info.ended == "Threshold: score 0.9 reached 0.8"
    assert convergence_info(outcome).ended == info.ended and convergence_info(outcome.history).ended is None


async def test_convergence_figure(tmp_path):
    figure = convergence_figure(await run_of(tmp_path, [0.2, None, 0.5, 0.4, 0.9]))
    assert trace(figure, "kept").x == (1, 3, 5) and trace(figure, "kept").y == (0.2, 0.5, 0.9)
    assert trace(figure, "discarded").x == (4,)
    assert trace(figure, "best so far").line.shape == "hv"
    assert (
        trace(figure, "threshold 0.8").y == (0.8, 0.8) and trace(figure, "threshold 0.8").line.dash == "dash"
    )
    assert [shape.x0 for shape in figure.layout.shapes] == [5]
    assert [note.text for note in figure.layout.annotations] == ["Threshold: score 0.9 reached 0.8"]
    colors = {trace(figure, name).marker.color for name in ("kept", "discarded", "crashed")}
    symbols = {trace(figure, name).marker.symbol for name in ("kept", "discarded", "crashed")}
    assert len(colors) == len(symbols) == 3


async def test_a_crash_is_never_drawn_on_the_scale_of_scores():
    figure = convergence_figure(await outcome_of([None, 0.5, 0.9]))
    assert trace(figure, "crashed").yaxis == "y2" and trace(figure, "kept").yaxis in (None, "y")
    assert figure.layout.yaxis2.domain[1] < figure.layout.yaxis.domain[0]


async def test_only_crashes():
    figure = convergence_figure(await outcome_of([None, None], gates=[MaxIterations(2)]))
    assert [trace.name for trace in figure.data] == ["crashed"]
    assert not figure.layout.yaxis.showticklabels
    assert "no turn has a score" in [note.text for note in figure.layout.annotations]


async def test_a_single_iteration():
    figure = convergence_figure(await outcome_of([0.9]))
    assert figure.layout.xaxis.range == (0.5, 1.5)


async def test_scores_outside_0_to_1_choose_their_own_scale():
    assert convergence_figure(await outcome_of([0.1, 0.9])).layout.yaxis.range == (-0.03, 1.05)
    figure = convergence_figure(await outcome_of([-3, -1], gates=[MaxIterations(2)]))
    assert figure.layout.yaxis.range is None


async def test_an_unfinished_run_says_so(tmp_path):
    run = await run_of(tmp_path, [0.2, 0.9])
    cut = Run(run.id, [event for event in run.events if event["event"] != "stop"])
    assert convergence_info(cut).ended == "unfinished: no gate has opened"
    assert convergence_info(Run("empty", run.events[:1])).turns == []
    figure = convergence_figure(Run("empty", run.events[:1]))
    assert "no turn has been recorded" in [note.text for note in figure.layout.annotations]


async def test_the_threshold_of_an_outcome_is_drawn_like_that_of_a_record(tmp_path):
    with Store(tmp_path).create("r") as log:
        outcome = await outcome_of([0.1, 0.9], log=log)
    assert convergence_info(outcome) == convergence_info(Store(tmp_path).run("r"))
    assert convergence_info(outcome).threshold == 0.8


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        ([repr(Threshold(0.8))], 0.8),
        ([repr(MaxIterations(3)), repr(Threshold(-1e-05))], -1e-05),
        (["Threshold(score=__import__('os'))", "<function gate>", 3], None),
        (["Threshold(score=nan)"], None),
        (None, None),
    ],
)
def test_the_threshold_is_read_from_the_recorded_gates(gates, expected):
    assert convergence_info(Run("r", [{"event": "goal", "gates": gates}])).threshold == expected


def test_ten_thousand_iterations():
    turns = [
        Iteration(
            number=n, decision=Decision.KEEP if n == 1 else Decision.DISCARD, verdict=Verdict(score=1 / n)
        )
        for n in range(1, 10_001)
    ]
    figure = convergence_figure(turns)
    assert len(trace(figure, "best so far").x) == 10_000 and set(trace(figure, "best so far").y) == {1.0}
    assert len(trace(figure, "discarded").x) == 9_999


@pytest.mark.parametrize("wrong", ["run-1", [1, 2], 7])
def test_anything_else_is_refused(wrong):
    with pytest.raises(TypeError):
        convergence_figure(wrong)


async def test_hostile_text_is_shown_verbatim():
    figure = convergence_figure(await outcome_of([None, 0.9]))
    hover = trace(figure, "crashed").hovertext[0]
    assert "&lt;script&gt;" in hover and "<script" not in hover and "<b>" not in hover and "$" not in hover
    hover.encode()  # a lone surrogate would be refused here


@settings(max_examples=30, deadline=None)
@given(st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_every_turn_is_drawn_exactly_once(scores):
    turns, best = [], None
    for number, score in enumerate(scores, 1):
        decision = Decision.CRASH if score is None else Decision.DISCARD
        if score is not None and (best is None or score > best):
            decision, best = Decision.KEEP, score
        verdict = None if score is None else Verdict(score=score)
        turns.append(Iteration(number=number, decision=decision, verdict=verdict))
    drawn = [x for trace in convergence_figure(turns).data if trace.mode == "markers" for x in trace.x]
    assert sorted(drawn) == list(range(1, len(scores) + 1))
    levels = [turn.best for turn in convergence_info(turns).turns if turn.best is not None]
    assert levels == sorted(levels)


def test_arms_are_sorted_best_first_and_those_without_result_last():
    shares = arms_info([row("a", correct=1), row("none", n=0, correct=0, low=None, high=None), row("b")])
    assert [share.label for share in shares] == ["b · embedded", "a · embedded", "none · embedded"]


def test_arms_figure():
    rows = [
        row(),
        row(model="simulated:random", correct=1, low=0.01, high=0.7),
        row("once", n=1, correct=1, low=None),
    ]
    rows.append(row("none", n=0, correct=0, low=None, high=None))
    figure = arms_figure(rows, target=0.8)
    assert [bar.x for bar in figure.data if bar.name == "interval"] == [(0.3, 0.95), (0.01, 0.7)]
    assert trace(figure, "clauses · embedded").marker.symbol == "circle"
    assert trace(figure, "clauses · random (simulated)").marker.symbol == "circle-open"
    assert trace(figure, "once · embedded").y == (0,), "best at the top"
    assert trace(figure, "none · embedded").x == (None,)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    texts = [note.text for note in figure.layout.annotations]
    assert "clauses · random (simulated)" in texts and "1 of 4" in texts and "target 80%" in texts
    assert "3/4 = 75.0% [30.0%, 95.0%]" in trace(figure, "clauses · embedded").hovertext[0]
    low, high = figure.layout.xaxis.range
    assert low <= 0 and high >= 1


def test_several_experiments_are_named():
    labels = [share.label for share in arms_info([row(), row(experiment="aime")])]
    assert labels == ["aime · clauses · embedded", "knights · clauses · embedded"]


@pytest.mark.parametrize("figure", [arms_figure([]), items_figure([]), items_figure([row()])])
def test_nothing_to_draw_is_said(figure):
    assert not figure.data and len(figure.layout.annotations) == 1


def test_items_are_pooled_over_the_other_keys():
    groups = [row(people=3, perturb="none"), row(people=3, perturb="leaf", correct=1), row(people=None)]
    [share] = items_info(groups)
    assert (share.value, share.result.successes, share.result.n) == (3, 4, 8)
    assert 0.2 < share.result.low < 0.5 < share.result.high < 0.8
    assert [share.value for share in items_info(groups, by="perturb")] == ["none", "leaf"]


def test_items_figure():
    groups = [row(arm, model, people=n) for arm in "ab" for model in ("m", "simulated:x") for n in (5, 3, 4)]
    figure = items_figure(groups)
    lines = [trace for trace in figure.data if trace.name != "interval"]
    assert [line.name for line in lines] == ["a · m", "a · x (simulated)", "b · m", "b · x (simulated)"]
    assert all(list(line.x) == sorted(line.x) for line in lines)
    assert len({line.marker.symbol for line in lines}) == len({line.marker.color for line in lines}) == 4
    assert [line.line.dash for line in lines] == ["solid", "dot"] * 2
    assert figure.layout.xaxis.tickvals == (3, 4, 5)
    assert len(figure.data) == 4 + 12


def test_items_without_numbers_are_ordered_as_given():
    figure = items_figure([row(perturb="none"), row(perturb="<leaf>")], by="perturb")
    assert figure.layout.xaxis.ticktext == ("none", "&lt;leaf&gt;") and figure.layout.xaxis.tickvals == (0, 1)


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=80), st.text(max_size=80))
def test_any_name_can_be_drawn(arm, model):
    figures = arms_figure([row(arm, model)]), items_figure([row(arm, model, people=2)])
    for figure in figures:
        texts = [note.text for note in figure.layout.annotations] + [trace.name for trace in figure.data]
        assert not any("<" in (text or "").replace("<br>", "") for text in texts)
        json.loads(figure.to_json())


@pytest.mark.parametrize(
    ("model", "label"), [("embedded", "embedded"), ("simulated:random", "random (simulated)")]
)
def test_model_label(model, label):
    assert model_label(model) == label


def test_plotly_loads_when_a_figure_is_asked_for():
    loaded = "assert ('plotly' in sys.modules) is"
    code = f"import sys, loopkit.views; {loaded} False; loopkit.views.arms_figure; {loaded} True"
    subprocess.run([sys.executable, "-c", code], check=True)
