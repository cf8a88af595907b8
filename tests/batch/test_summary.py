"""Summaries: nothing is counted twice, nothing gets lost, and a trial counts by the attempt that settled it."""

import os
import time
from collections import Counter
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, sem, t

from loopkit.batch import BatchSpec, count_trials, summarise
from loopkit.batch.summary import settle, trial_rows
from loopkit.metrics import balanced
from loopkit.store import Store, StoreError, read_events


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


NUMBERS = count()


def row(result="correct", kind=None, **params):
    """A trial on an item of its own."""
    kind = kind or (result if result in {"failed", "error"} else None)
    return {
        "experiment": "e", "arm": "a", "model": "m", "item": f"i{next(NUMBERS)}", "seed": 1,
        "result": result, "kind": kind, "tokens": 10, "seconds": 0.5,
    } | params  # fmt: skip


ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["correct", "wrong", "failed", "error"]),
        st.sampled_from(["empty", "truncated", "malformed"]),
        arm=st.sampled_from(["a", "b"]),
        people=st.sampled_from([2, 3, None]),
        tokens=st.integers(0, 1000),
        seconds=st.integers(0, 100),
    )
)


@given(ROWS)
def test_the_parts_add_up(trials):
    counted = count_trials(trials, "arm", "people")
    for group in counted:
        members = [t for t in trials if (t["arm"], t["people"]) == (group["arm"], group["people"])]
        ran = [t for t in members if t["result"] != "error"]
        assert group["n"] == len(ran)
        assert group["correct"] + group["wrong"] + sum(group["failures"].values()) == group["n"]
        assert group["errors"] == len(members) - len(ran), "counted apart"
        assert group["failures"] == Counter(t["kind"] for t in ran if t["result"] == "failed")
        assert group["tokens"] == sum(t["tokens"] for t in ran)
        assert group["seconds"] == sum(t["seconds"] for t in ran)
    assert sum(group["n"] + group["errors"] for group in counted) == len(trials)
    places = [(group["arm"], group["people"]) for group in counted]
    assert len(set(places)) == len(places), "one row a group"


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 3))
def test_accuracy_has_the_interval_of_scipy(right, wrong, errors):
    results = ["correct"] * right + ["wrong"] * wrong + ["error"] * errors
    trials, n = list(map(row, results)), right + wrong
    for group in count_trials(trials, "arm"):
        assert group["accuracy"] == (right / n if n else None)
        if n < 2:
            assert group["wilson_low"] is None
            assert group["wilson_high"] is None
        else:
            interval = binomtest(right, n).proportion_ci(0.95, method="wilson")
            assert (group["wilson_low"], group["wilson_high"]) == pytest.approx((interval.low, interval.high))


def test_trials_of_no_item_are_each_their_own():
    trials = [row(), row(), row("wrong")]
    bare = [{key: value for key, value in trial.items() if key != "item"} for trial in trials]
    assert count_trials(bare, "arm") == count_trials(trials, "arm")


def test_an_item_under_several_seeds_makes_the_interval_no_shorter():
    once = [row(item=f"item-{n}") for n in range(8)] + [row("wrong", item=f"item-{n}") for n in (8, 9)]
    often = [trial | {"seed": seed} for trial in once for seed in range(10)]
    [one], [many] = count_trials(once, "arm"), count_trials(often, "arm")
    assert (many["n"], many["accuracy"]) == (100, one["accuracy"])
    got = balanced([trial["result"] == "correct" for trial in often], [trial["item"] for trial in often])
    assert (many["wilson_low"], many["wilson_high"]) == (got.low, got.high)
    assert many["wilson_high"] - many["wilson_low"] > 0.9 * (one["wilson_high"] - one["wilson_low"])


def test_measures_have_their_means_and_how_many_recorded_them():
    trials = [row(measures={"depth": n, "clean": n > 1}) for n in (1, 2, 6)]
    trials += [row("wrong", measures={"depth": 1.0}), row(), row("error", measures={"depth": 99})]
    [group] = count_trials(trials, "arm")
    assert list(group["measures"]) == ["clean", "depth"]
    depth, clean = group["measures"]["depth"], group["measures"]["clean"]
    assert (depth["n"], depth["mean"], clean["n"], clean["mean"]) == (4, 2.5, 3, 2 / 3)
    low, high = t.interval(0.95, 3, 2.5, sem([1, 2, 6, 1]))
    assert (depth["low"], depth["high"]) == pytest.approx((low, high))
    wilson = binomtest(2, 3).proportion_ci(0.95, method="wilson")
    assert (clean["low"], clean["high"]) == pytest.approx((wilson.low, wilson.high))


def test_order_of_trials_does_not_matter_to_counts():
    trials = [row(arm="b"), row(arm="a"), row("wrong", arm="b"), row("failed", "empty", arm="a")]
    assert count_trials(trials, "arm") == count_trials(trials[::-1], "arm")


def test_nothing_to_count():
    assert count_trials([], "arm") == []


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def attempt(store, run, result=None, kind=None, turns=1, **params):
    """One recorded attempt at trial `key` (the part of `run` before the dot); without a result: interrupted."""
    key = run.partition(".")[0]
    with store.create(run, trial=key, **{"item": "i", "arm": "a"} | params) as log:
        for number in range(1, turns + 1):
            usage = {"calls": 1, "input_tokens": 100, "output_tokens": 10 * number, "cached_tokens": 0}
            log.append("iteration", iteration=number, usage=usage, seconds=0.25)
        if result:
            log.append("stop", gate="MaxIterations", reason="enough", best=None)
            log.append("trial", result=result, kind=kind, detail=run)


def settled(store, *keys):
    return {found["trial"]: (found["run"], found["result"]) for found in trial_rows(store, keys)}


def test_a_row_holds_params_result_and_cost(store):
    attempt(store, "k1", "failed", "empty", turns=3, people=4)
    assert trial_rows(store, ["k1"]) == [
        {
            "run": "k1", "trial": "k1", "item": "i", "arm": "a", "people": 4,
            "result": "failed", "kind": "empty", "detail": "k1",
            "iterations": 3, "stopped_by": "MaxIterations", "tokens": 360, "seconds": 0.75,
            "ended": store.run("k1").events[-1]["time"], "measures": {},
        }
    ]  # fmt: skip


def test_the_attempt_that_settled_it_counts(store):
    attempt(store, "k1", "error")
    attempt(store, "k1.2", "error")
    attempt(store, "k1.3", "wrong")
    assert settled(store, "k1") == {"k1": ("k1.3", "wrong")}


def test_an_interrupted_attempt_is_passed_over(store):
    attempt(store, "k1")
    attempt(store, "k1.2", "correct")
    attempt(store, "k2", "error")
    attempt(store, "k2.2")
    attempt(store, "k3")
    assert settled(store, "k1", "k2", "k3") == {"k1": ("k1.2", "correct"), "k2": ("k2", "error")}


def test_without_a_settling_attempt_the_last_error_counts(store):
    for end in ("", ".2", ".3"):
        attempt(store, f"k1{end}", "error", "TimeoutError")
    assert settled(store, "k1") == {"k1": ("k1.3", "error")}


def test_the_settling_attempt_counts_even_after_ten(store):
    for end in ("", *(f".{number}" for number in range(2, 12))):
        attempt(store, f"k1{end}", "error")
    attempt(store, "k1.12", "correct")
    assert settled(store, "k1") == {"k1": ("k1.12", "correct")}


def test_the_last_error_counts_even_after_ten(store):
    for end in ("", *(f".{number}" for number in range(2, 12))):
        attempt(store, f"k1{end}", "error")
        time.sleep(0.002)  # attempts are told apart by when they began, to the millisecond
    assert settled(store, "k1") == {"k1": ("k1.11", "error")}


def test_trials_of_other_batches_in_the_folder_do_not_count(store):
    attempt(store, "k1", "correct")
    attempt(store, "k2", "wrong")
    assert settled(store, "k2", "k9") == {"k2": ("k2", "wrong")}


ENDS = st.sampled_from([None, "correct", "wrong", "failed", "error"])


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["k1", "k2", "k3"]), st.lists(ENDS, min_size=1, max_size=4)), st.data()
)
def test_whatever_was_attempted_the_index_counts_as_the_logs_do(tmp_path_factory, trials, data):
    store = Store(tmp_path_factory.mktemp("store"))
    made = dict.fromkeys(trials, 0)
    for key in data.draw(st.permutations([key for key, ends in trials.items() for _ in ends])):
        made[key] += 1
        attempt(store, named(key, made[key]), trials[key][made[key] - 1], turns=made[key])
        if data.draw(st.booleans()):
            trial_rows(store, ["k1", "k2"])  # the index has some of them by now, as they are
    expected = {}
    for key, ends in trials.items():
        settling = [number for number, end in enumerate(ends, 1) if end not in (None, "error")]
        errors = [number for number, end in enumerate(ends, 1) if end == "error"]
        if settling or errors:
            expected[key] = named(key, settling[0] if settling else errors[-1])
    indexed = trial_rows(store, trials)
    assert {row["trial"]: row["run"] for row in indexed} == expected
    assert trial_rows(store) == indexed, "all there are"
    (store.folder / "index.sqlite").unlink()
    assert trial_rows(store, trials) == indexed, "read from the logs"


def named(key, number):
    return key if number == 1 else f"{key}.{number}"


def test_logs_are_read_once_and_those_of_other_trials_never(store, monkeypatch):
    attempt(store, "k1", "error")
    attempt(store, "k1.2", "correct")
    attempt(store, "k2", "wrong")
    read = []
    monkeypatch.setattr("loopkit.index.read_events", lambda path: read.append(path.stem) or read_events(path))
    for _ in range(3):
        assert settled(store, "k1") == {"k1": ("k1.2", "correct")}
    assert read == ["k1", "k1.2"]
    attempt(store, "k3", "correct")
    assert len(trial_rows(store)) == 3 and sorted(read) == ["k1", "k1.2", "k2", "k3"]


def test_a_damaged_log_is_no_result(store):
    attempt(store, "k1", "correct")
    attempt(store, "k2", "wrong")
    path = store.path("k2")
    path.write_bytes(path.read_bytes().replace(b'"wrong"', b'"right"'))
    assert settled(store, "k1") == {"k1": ("k1", "correct")}, "those of other trials are not looked at"
    with pytest.raises(StoreError, match="k2.jsonl, line 4"):
        trial_rows(store, ["k1", "k2"])
    rows = settle(store.rows(strict=False))
    assert [row["trial"] for row in rows] == ["k1"]


def test_the_summary_splits_groups_and_adjudicates_every_claim():
    spec = BatchSpec(
        experiment="e", notebook="n.ipynb", question="Why?", grid=[{}], group_by=["people"],
        claims=[{"id": str(bound), "says": "s", "arm": "a", "at_least": bound} for bound in (0.01, 0.9)],
    )  # fmt: skip
    trials = [row(people=people) for people in (2, 2, 3)] + [row("wrong", people=3, model="other")]
    found = summarise(spec, trials, name="try", provenance={"command": "loopkit"})
    assert (found["batch"], found["question"], found["provenance"]) == ("try", "Why?", {"command": "loopkit"})
    assert [(r["model"], r["n"], r["correct"]) for r in found["rows"]] == [("m", 3, 3), ("other", 1, 0)]
    groups = [(r["model"], r["people"], r["n"]) for r in found["groups"]]
    assert groups == [("m", 2, 2), ("m", 3, 1), ("other", 3, 1)]
    assert [c["id"] for c in found["claims"]] == ["0.01", "0.9"]
    assert [c["verdict"] for c in found["claims"]] == ["supported", "not supported"]
