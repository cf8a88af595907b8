"""Listing what is on record below a folder: every run is there, whatever is damaged beside it."""

import pandas as pd
import pytest

from loopkit import Store, StoreError, runs_df
from loopkit.export import plain_rows


@pytest.fixture
def runs(tmp_path, make_batch):
    """Three folders of runs, one of them a batch's."""
    Store(tmp_path / "hello").create("first", size=3).close()
    Store(tmp_path / "deep" / "er").create("second", size="big").close()
    make_batch(tmp_path / "batch", {"a": "cw-"})
    return tmp_path


def test_every_run_below_is_listed_once_with_its_store(runs):
    frame = runs_df(runs)
    assert len(frame) == 5 and frame["run"].is_unique
    counts = frame["store"].value_counts().to_dict()
    stores = {"hello": 1, "deep/er": 1, "batch/records": 3}
    assert counts == {str(runs / store): count for store, count in stores.items()}
    assert list(frame.columns[:2]) == ["store", "run"]
    named = runs_df(runs / "hello", runs / "deep" / "er", runs / "batch")
    pd.testing.assert_frame_equal(named[frame.columns], frame.iloc[[4, 3, 0, 1, 2]].reset_index(drop=True))


def test_the_log_of_a_batch_is_no_run_but_a_run_may_be_called_status(runs):
    assert "status" not in set(runs_df(runs)["run"])
    Store(runs / "hello").create("status").close()
    assert "status" in set(runs_df(runs)["run"])


def test_a_row_says_what_the_store_says(runs):
    ours, theirs = runs_df(runs / "batch"), Store(runs / "batch" / "records").runs_df()
    pd.testing.assert_frame_equal(ours.drop(columns="store"), theirs)
    assert sorted(ours["result"].dropna()) == ["correct", "wrong"]
    assert sorted(ours["status"]) == ["finished", "finished", "unfinished"]


def damage(path):
    path.write_bytes(path.read_bytes().replace(b'"time":"2', b'"time":"3', 1))


def test_damaged_logs_are_rows_beside_the_others(runs):
    whole = {(row["store"], row["run"]): row for row in plain_rows(runs_df(runs))}
    path = runs / "hello" / "first.jsonl"
    damage(path)
    (runs / "deep" / "er" / "not-a-log.jsonl").write_text('{"quiz": "who?"}\n')
    found = {(row["store"], row["run"]): row for row in plain_rows(runs_df(runs))}
    broken = {key: row["problem"] for key, row in found.items() if row["status"] == "damaged"}
    assert set(broken) == {(str(runs / "hello"), "first"), (str(runs / "deep" / "er"), "not-a-log")}
    assert f"{path}, line 1" in broken[str(runs / "hello"), "first"]
    del whole[str(runs / "hello"), "first"]
    assert {key: row for key, row in found.items() if key not in broken} == {
        key: row | {"problem": None} for key, row in whole.items()
    }


def test_a_lost_end_is_a_damage_that_the_index_knows(runs):
    runs_df(runs)
    path = next((runs / "batch" / "records").glob("*.jsonl"))
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:1]))
    frame = runs_df(runs).set_index("run")
    assert frame.loc[path.stem, "status"] == "damaged"
    assert "some are missing" in frame.loc[path.stem, "problem"]
    assert (frame["status"] == "damaged").sum() == 1


def test_an_event_that_cannot_be_counted_hides_no_other(runs):
    with Store(runs / "hello").create("odd") as log:
        log.append("iteration", number="one")
    frame = runs_df(runs / "hello").set_index("run")
    assert dict(frame["status"]) == {"first": "unfinished", "odd": "damaged"}
    assert "odd.jsonl holds an event that cannot be counted: KeyError" in frame.loc["odd", "problem"]


def test_a_store_raises_unless_told_otherwise(runs):
    store = Store(runs / "hello")
    store.create("third").close()
    damage(store.path("first"))
    with pytest.raises(StoreError, match="first.jsonl, line 1"):
        store.runs_df()
    with pytest.raises(StoreError, match="first.jsonl, line 1"):
        store.rows()
    assert list(store.runs_df(strict=False)["status"]) == ["damaged", "unfinished"]
    assert [row["run"] for row in store.rows(["third"])] == ["third"], "the others are not looked at"
    with pytest.raises(StoreError, match="cannot read .*nowhere.jsonl"):
        store.rows(["nowhere"])


def test_a_parameter_gives_way_to_a_column_of_the_same_name(tmp_path):
    store = Store(tmp_path)
    store.create("r", status="odd", cost="dear", detail="small", colour="red").close()
    [row] = plain_rows(store.runs_df())
    assert (row["status"], row["cost"], row["detail"], row["colour"]) == ("unfinished", 0.0, None, "red")
    assert store.rows()[0]["params"]["cost"] == "dear", "there it is found"


def test_hidden_folders_are_passed_over_and_missing_ones_named(runs):
    Store(runs / ".trash").create("gone").close()
    assert "gone" not in set(runs_df(runs)["run"])
    with pytest.raises(StoreError, match="no folder .*nowhere"):
        runs_df(runs / "nowhere")
    (runs / "empty").mkdir()
    assert runs_df(runs / "empty").empty


def test_runs_is_where_it_looks_by_itself(runs, monkeypatch):
    monkeypatch.chdir(runs)
    with pytest.raises(StoreError, match="no folder runs"):
        runs_df()
    Store("runs").create("here").close()
    assert list(runs_df()["run"]) == ["here"] and list(runs_df()["store"]) == ["runs"]
