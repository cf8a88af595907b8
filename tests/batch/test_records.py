"""A batch's folder read again: its trials as a frame, its report, and what the batch's own log says of it."""

from collections import Counter

import pytest

from loopkit import Store, StoreError, trials_df
from loopkit.batch import rewrite_report
from loopkit.batch.claims import Claim
from loopkit.batch.status import read_batch
from loopkit.store import RunLog, read_events

CLAIM = {"id": "half", "says": "Half are right.", "arm": "a", "at_least": 0.5}


def damage(path):
    path.write_bytes(path.read_bytes().replace(b'"seconds":0.25', b'"seconds":0.75', 1))


# --- trials ----------------------------------------------------------------------------------------------------


def test_a_row_per_trial_that_has_ended(tmp_path, make_batch):
    make_batch(tmp_path / "one", {"a": "cwf-.", "b": "ce"})
    frame = trials_df(tmp_path / "one")
    counted = Counter(zip(frame["arm"], frame["result"], strict=True))
    assert counted == {("a", "correct"): 1, ("a", "wrong"): 1, ("a", "failed"): 1, ("b", "correct"): 1, ("b", "error"): 1}  # fmt: skip
    assert frame["trial"].is_unique and set(frame["folder"]) == {str(tmp_path / "one")}
    item = frame[frame["item"] == "item-1"].iloc[0]
    assert (item["tokens"], item["seconds"], item["iterations"], item["size"]) == (11, 0.25, 1, 1)


def test_several_folders_are_one_frame(tmp_path, make_batch):
    make_batch(tmp_path / "one", {"a": "cw"})
    make_batch(tmp_path / "two", {"a": "cww"}, model="other")
    frame = trials_df(tmp_path / "one", tmp_path / "two")
    assert frame.groupby("folder").size().to_dict() == {str(tmp_path / "one"): 2, str(tmp_path / "two"): 3}
    assert list(frame["model"]) == ["m"] * 2 + ["other"] * 3
    assert trials_df().empty


def test_retries_are_resolved(tmp_path, make_batch):
    store = make_batch(tmp_path, {"a": "e"}, ends=False)
    [first] = store.ids()
    params = store.run(first).params
    with store.create(f"{first}.2", **params) as log:
        log.append("trial", result="correct", kind=None, detail=None)
    assert list(trials_df(tmp_path)["run"]) == [f"{first}.2"]
    assert list(trials_df(tmp_path)["result"]) == ["correct"]


def test_the_trials_are_those_of_the_batch_as_it_was_last_begun(tmp_path, make_batch):
    make_batch(tmp_path, {"a": "cw", "b": "ww"})
    make_batch(tmp_path, {"a": "cwc"})
    assert Counter(trials_df(tmp_path)["arm"]) == {"a": 3}
    assert Counter(trials_df(tmp_path, every=True)["arm"]) == {"a": 3, "b": 2}


def test_trials_that_were_played_without_a_batch_are_all_there(tmp_path, make_batch):
    make_batch(tmp_path, {"a": "cw"})
    (tmp_path / "status.jsonl").unlink()
    assert len(trials_df(tmp_path)) == 2


def test_what_is_no_batch_or_damaged_is_named(tmp_path, make_batch):
    with pytest.raises(StoreError, match="no records in .*nowhere"):
        trials_df(tmp_path / "nowhere")
    store = make_batch(tmp_path, {"a": "cw"})
    damage(store.path(store.ids()[0]))
    with pytest.raises(StoreError, match=f"{store.ids()[0]}.jsonl, line 2"):
        trials_df(tmp_path)


# --- the batch's own log ---------------------------------------------------------------------------------------


def test_a_batch_is_finished_running_or_interrupted(tmp_path, make_batch):
    make_batch(tmp_path, {"a": "c"}, ends=False)
    assert read_batch(tmp_path).state == "interrupted"
    with RunLog(tmp_path / "status.jsonl"):
        assert read_batch(tmp_path).state == "running"
    make_batch(tmp_path, {"a": "c"})
    assert read_batch(tmp_path).state == "finished"
    with RunLog(tmp_path / "status.jsonl"):
        assert read_batch(tmp_path).state == "finished", "it only lets go of its log"
    make_batch(tmp_path, {"a": "cc"}, ends=False)
    assert read_batch(tmp_path).state == "interrupted", "it was begun again"


def test_the_log_gives_back_what_was_asked(tmp_path, make_batch):
    make_batch(tmp_path, {"a": "cw", "b": "c"}, claims=[CLAIM], group_by=["size"], name="asked")
    batch = read_batch(tmp_path)
    assert (batch.name, batch.question, batch.group_by) == ("asked", "Why?", ["size"])
    assert [claim.model_dump(exclude_defaults=True) for claim in batch.claims] == [CLAIM]
    assert sorted(batch.keys) == Store(tmp_path / "records").ids()


def test_the_summary_is_one_small_event_with_verdicts(tmp_path, make_batch):
    make_batch(tmp_path, {"a": "cwe"}, claims=[CLAIM])
    make_batch(tmp_path, {"a": "cwe"}, claims=[CLAIM])
    first, second = (e for e in read_events(tmp_path / "status.jsonl") if e["event"] == "summary")
    [claim] = first["claims"]
    assert claim == {
        "id": "half", "verdict": "not supported", "n": 2, "p": None, "p_holm": None, "effect": 0.0, "models": ["m"],
        "digest": Claim(**CLAIM).digest, "declared": read_batch(tmp_path).declared[claim["digest"]],
        "seen": 0, "post_hoc": False, "simulated": "none",
    }  # fmt: skip
    assert (first["n"], first["errors"], first["complete"]) == (2, 1, True)
    assert first["provenance"]["loopkit"] == "0.1.0" and second["claims"] == first["claims"]


def test_notebooks_that_failed_and_were_not_repeated_with_success(tmp_path, make_batch):
    make_batch(tmp_path, {"a": "c", "b": "c", "c": "c"}, ends=False)
    with RunLog(tmp_path / "status.jsonl") as status:
        for cell, ended in (("a-m", "failed"), ("b-m", "timeout"), ("a-m", "done")):
            status.append("cell", cell=cell, status=ended, detail="why")
    assert read_batch(tmp_path).failed == ["b-m: notebook timeout: why"]


@pytest.mark.parametrize("content", [b"", b'{"seq":0,"eve', None])
def test_a_folder_without_a_batch_is_named(tmp_path, content):
    if content is not None:
        (tmp_path / "status.jsonl").write_bytes(content)
    for read in (read_batch, rewrite_report):
        with pytest.raises(StoreError, match=f"no batch in {tmp_path}"):
            read(tmp_path)


def test_a_batch_of_an_earlier_version_is_asked_to_run_again(tmp_path):
    with RunLog(tmp_path / "status.jsonl") as status:
        status.open("batch", name="old", command="loopkit batch old.yaml", claims=[], cells=["a"])
    (tmp_path / "records").mkdir()
    for read in (rewrite_report, trials_df):
        with pytest.raises(StoreError, match="an earlier loopkit.*: loopkit batch old.yaml"):
            read(tmp_path)
    assert trials_df(tmp_path, every=True).empty


# --- the report ------------------------------------------------------------------------------------------------


def page(report):
    """The page without its scripts."""
    return report.path.read_text(encoding="utf-8").partition('<script type="text/plain"')[0]


def test_a_finished_batch_has_its_report_again(tmp_path, make_batch):
    make_batch(tmp_path, {"a": "ccw", "b": "ww"}, claims=[CLAIM])
    report = rewrite_report(tmp_path)
    assert report.path == tmp_path / "report.html"
    assert (report.batch.state, len(report.trials), report.damaged) == ("finished", 5, ())
    for words in (
        "Why?",
        "Half are right.",
        "○ not supported",
        "2/3 = 66.7%",
        "5 trials",
        "loopkit batch small.yaml",
    ):
        assert words in page(report)
    for words in ("still running", "was interrupted", "not complete", "damaged"):
        assert words not in page(report)


@pytest.mark.parametrize("running", [True, False])
def test_a_batch_that_has_not_ended_says_so_in_its_report(tmp_path, make_batch, running):
    make_batch(tmp_path, {"a": "cw-..", "b": "c...."}, claims=[CLAIM], ends=False)
    if running:
        with RunLog(tmp_path / "status.jsonl"):
            report = rewrite_report(tmp_path)
    else:
        report = rewrite_report(tmp_path)
    assert "3 of 10 trials" in " ".join(page(report).split())
    assert ("This batch is still running." in page(report)) == running
    assert ("This batch was interrupted." in page(report)) != running
    assert "1/2 = 50.0%" in page(report), "what there is, is adjudicated"


def test_a_batch_that_ends_while_its_report_is_written_has_its_last_one(tmp_path, make_batch, monkeypatch):
    import loopkit.views

    make_batch(tmp_path, {"a": "c."}, ends=False)
    write = loopkit.views.write_report

    def ends_meanwhile(*args, **more):
        path = write(*args, **more)
        if read_batch(tmp_path).state != "finished":
            make_batch(tmp_path, {"a": "cw"})
        return path

    monkeypatch.setattr(loopkit.views, "write_report", ends_meanwhile, raising=False)
    report = rewrite_report(tmp_path)
    assert report.batch.state == "finished" and len(report.trials) == 2
    assert "was interrupted" not in page(report)


def test_damaged_records_count_nowhere_and_are_named(tmp_path, make_batch):
    store = make_batch(tmp_path, {"a": "cwcc"})
    broken = next(run.id for run in store.runs() if run.params["item"] == "item-1")
    damage(store.path(broken))
    report = rewrite_report(tmp_path)
    assert len(report.trials) == 3 and broken not in {trial["run"] for trial in report.trials}
    [problem] = report.damaged
    assert f"{store.path(broken)}, line 2" in problem
    assert "1 record is damaged." in page(report) and f"{broken}.jsonl, line 2" in page(report)
    assert "a-m: 1 of 4 trials have no result" in page(report)


def test_records_are_not_changed_by_looking(tmp_path, make_batch):
    store = make_batch(tmp_path, {"a": "cw-e"}, claims=[CLAIM])
    logs = [*store.folder.glob("*.jsonl"), tmp_path / "status.jsonl"]
    before = {path: path.read_bytes() for path in logs}
    rewrite_report(tmp_path), trials_df(tmp_path)
    assert {path: path.read_bytes() for path in logs} == before
