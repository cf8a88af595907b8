"""Runs side by side: the records of a comparison against plain counting, and the widget that goes down to the traces."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit import StoreError, compare
from loopkit.batch.summary import rows_of
from loopkit.store import Store
from loopkit.views.comparison import (
    disagreements_info,
    newest,
    pairs_figure,
    pairs_info,
    runs_figure,
    runs_info,
)

RESULTS = ("correct", "wrong", "failed", "error")


def row(arm, item, result, seed=0, **more):
    return {
        "run": f"{arm}-{item}-{seed}", "trial": f"{arm}{item}{seed}", "experiment": "e", "arm": arm,
        "model": "m", "item": item, "seed": seed, "result": result, "kind": None, "tokens": 1, "seconds": 0.1,
    } | more  # fmt: skip


TABLES = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["1", "2", "3", "4"]), st.sampled_from([0, 1])),
    st.sampled_from(RESULTS),
    max_size=24,
)


@settings(max_examples=80, deadline=None)
@given(TABLES)
def test_pairs_and_disagreements_are_those_that_counting_by_hand_finds(table):
    trials = [row(arm, item, result, seed) for (arm, item, seed), result in table.items()]
    right = {key: result == "correct" for key, result in table.items() if result != "error"}
    places = {(item, seed) for _, item, seed in right}
    for pair in pairs_info(trials):
        one, other = pair.first[0], pair.second[0]
        both = [place for place in places if (one, *place) in right and (other, *place) in right]
        if not both:
            assert pair.paired is None and pair.problem == "no item was tried by both"
            continue
        counts = Counter((right[one, *place], right[other, *place]) for place in both)
        assert (pair.paired.n, pair.paired.only_first, pair.paired.only_second) == (
            len(both), counts[True, False], counts[False, True],
        )  # fmt: skip
    arms = {arm for arm, _, _ in right}
    assert len(pairs_info(trials)) == len(arms) * (len(arms) - 1) // 2
    split = {
        place for place in places if len({right[arm, *place] for arm in arms if (arm, *place) in right}) == 2
    }
    found = disagreements_info(trials)
    assert {one.item for one in found} == {f"{item} · seed {seed}" for item, seed in split}
    for one in found:
        item, _, seed = one.item.partition(" · seed ")
        assert one.results == {
            f"{arm} · m": table[arm, item, int(seed)] for arm in arms if (arm, item, int(seed)) in right
        }
        assert all(run == f"{arm[0]}-{item}-{seed}" for arm, run in one.runs.items())


def test_what_was_tried_more_than_once_is_ambiguous_unless_it_is_told_apart():
    trials = [row(arm, "1", "correct", perturb=perturb) for arm in "ab" for perturb in ("none", "leaf")]
    (pair,) = pairs_info(trials)
    assert pair.paired is None and "ambiguous" in pair.problem
    (pair,) = pairs_info(trials, by=("item", "perturb"))
    assert pair.paired.n == 2


def test_items_of_different_experiments_are_different():
    trials = [row("a", "1", "correct", experiment="e"), row("b", "1", "wrong", experiment="f")]
    (pair,) = pairs_info(trials)
    assert pair.problem == "no item was tried by both" and disagreements_info(trials) == []


def test_of_trials_that_differ_in_the_code_only_the_newest_counts():
    old, new = row("a", "1", "wrong", code="1", trial="x"), row("a", "1", "correct", code="2", trial="y")
    other = row("a", "1", "wrong", seed=1, code="1")
    assert newest([old, other, new]) == [new, other]


def test_the_figure_of_pairs_says_who_was_right_alone_and_how_sure_that_is():
    trials = [row("a", str(n), "correct") for n in range(9)] + [row("b", str(n), "wrong") for n in range(9)]
    trials += [row("a", "9", "wrong"), row("b", "9", "correct"), row("c", "other", "correct")]
    pairs = pairs_info(trials)
    figure = pairs_figure(pairs)
    left, right = figure.data
    assert (left.x, right.x) == ((-9,), (1,)) and left.text == ("9",), "the third arm shares no item"
    assert left.marker.pattern.shape != right.marker.pattern.shape
    low, high = figure.layout.xaxis.range
    assert low == -high and "-" not in "".join(figure.layout.xaxis.ticktext)
    texts = [note.text for note in figure.layout.annotations]
    assert texts == ["a · m", "right over left -80.0%, p = 0.021", "b · m"]
    assert [note.text for note in pairs_figure([]).layout.annotations] == ["no two arms tried the same items"]


def test_runs_are_told_in_numbers_and_drawn_together(drafts, recorded):
    runs = {"one": recorded(drafts(0.2, None, 0.9)), "<two>": recorded(drafts(None, 0.3, 0.9), name="s")}
    first, second = runs_info(runs)
    assert (first.name, first.iterations, first.best, first.tokens, first.cost) == ("one", 3, 0.9, 45, 0.75)
    assert (second.stopped_by, second.status, second.unpriced) == ("Threshold", "finished", 0)
    figure = runs_figure(runs)
    assert [trace.name for trace in figure.data] == ["one", "&lt;two&gt;"]
    assert figure.data[0].y == (0.2, 0.2, 0.9) and figure.data[1].x == (2, 3)
    assert len({trace.marker.symbol for trace in figure.data}) == 2
    assert figure.layout.yaxis.range == (-0.03, 1.05)


# --- the widget ----------------------------------------------------------------------------------------------


@pytest.fixture
def batch(drafts, recorded, tmp_path):
    """The folder of a batch: two arms on three items, each a short run, and one that could not run."""
    store = Store(tmp_path / "batch" / "records")
    results = {"a": ("correct", "correct", "wrong"), "b": ("wrong", "failed", "wrong")}

    def record(arm, number, result, run):
        params = {"trial": run, "code": "c", "experiment": "e", "arm": arm, "model": "simulated:random"}
        recorded(drafts(0.2, 0.9), name=run)
        with store.create(run, **params, item=f"i{number}", seed=0) as log:
            for event in Store(tmp_path).run(run).events[1:]:
                log.append(
                    event["event"],
                    **{key: event[key] for key in event if key not in ("seq", "time", "event", "hash")},
                )
            log.append("trial", result=result, kind="empty" if result == "failed" else None, detail=None)

    for arm, outcomes in results.items():
        for number, result in enumerate(outcomes):
            record(arm, number, result, f"{arm}{number}")
    record("b", 9, "error", "b9")
    return tmp_path / "batch"


def shown(column):
    return column._facts.value + column.trace._page.value


def test_a_batch_is_compared_by_arm_and_down_to_the_traces(batch):
    view = compare(batch)
    assert len(view.trials) == 7 and [one.item for one in view.disagreements] == [
        "i0 · seed 0",
        "i1 · seed 0",
    ]
    assert [label for label, _ in view.item.options] == [
        "i0 · seed 0: a · random (simulated) ✓ correct, b · random (simulated) ✗ wrong",
        "i1 · seed 0: a · random (simulated) ✓ correct, b · random (simulated) ! failed",
    ]
    assert (view.left.menu.value, view.right.menu.value) == ("a0", "b0"), "who was right stands at the left"
    view.item.value = 1
    assert (view.left.menu.value, view.right.menu.value) == ("a1", "b1")
    assert "a1" in shown(view.left) and "iteration 2: keep" in shown(view.right)
    view.left.trace.slider.value = 1
    assert "iteration 1: keep" in shown(view.left) and "iteration 2: keep" in shown(view.right)
    pages = "".join(
        getattr(part, "value", "") for part in view.children if isinstance(getattr(part, "value", ""), str)
    )
    assert (
        "Some results come from simulated models" in pages and "2 items on which the arms disagree" in pages
    )
    assert {trace.name for trace in view.still().data} >= {"a · random (simulated)", "b · random (simulated)"}
    for control in (view.item, view.left.menu, view.right.menu, view.left.trace.slider):
        assert control.description


def test_a_trace_that_cannot_be_read_is_told_and_the_others_can(batch):
    view = compare(batch)
    path = Store(batch / "records").path("a1")
    path.write_bytes(path.read_bytes().replace(b'"score":0.9', b'"score":0.1'))
    view.item.value = 1
    assert "was changed" in shown(view.left) and "b1" in shown(view.right)


@pytest.mark.parametrize("kind", [list, dict])
def test_some_runs_are_compared_by_name(drafts, recorded, store, kind):
    runs = [recorded(drafts(0.2, 0.9)), store.folder / "s"]
    recorded(drafts(0.3, 0.5, 0.9), name="s")
    named = runs if kind is list else {"first": runs[0], "second": runs[1]}
    view = compare(named)
    names = ["r", "s"] if kind is list else ["first", "second"]
    assert list(view.runs) == names and (view.left.menu.value, view.right.menu.value) == tuple(names)
    assert [trace.name for trace in view.still().data] == names
    view.right.menu.value = names[0]
    assert "iteration 2: keep" in shown(view.right)


async def test_outcomes_without_names_are_numbered(drafts):
    outcome = await drafts(0.2, 0.9).run("goal")
    view = compare([outcome, outcome, outcome])
    assert list(view.runs) == ["outcome", "outcome (2)", "outcome (3)"]


def test_flows_are_compared_as_graphs(waiting):
    view = compare([waiting])
    assert "visit 5: ask" in shown(view.left) and "no run has a score" in [
        note.text for note in view.still().layout.annotations
    ]


@pytest.mark.parametrize(
    ("runs", "error", "said"),
    [
        ([], ValueError, "nothing to compare"),
        ({}, ValueError, "nothing to compare"),
        (7, TypeError, "got 7"),
        ([7], TypeError, "got 7"),
        ("nowhere", StoreError, "nowhere is no folder of a batch"),
    ],
)
def test_what_cannot_be_compared_is_refused(runs, error, said):
    with pytest.raises(error, match=said):
        compare(runs)


def test_a_batch_of_which_no_trial_has_ended_is_refused(tmp_path):
    with Store(tmp_path / "records").create("r", trial="t", arm="a", item="i"):
        pass
    with pytest.raises(ValueError, match="no trial has ended"):
        compare(tmp_path)


def test_rows_come_from_any_runs_as_they_come_from_a_store(batch):
    store = Store(batch / "records")
    rows = rows_of(list(store.runs())[::-1])
    assert [row["run"] for row in rows] == ["a0", "a1", "a2", "b0", "b1", "b2", "b9"], (
        "in the order of their beginning"
    )
