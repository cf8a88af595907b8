"""The ledger: no verdict of any claim is lost, and none looks better than it is."""

import json

import pytest

from loopkit import StoreError, ledger_df
from loopkit.export import plain_rows
from loopkit.store import RunLog, read_events

HALF = {"id": "half", "says": "Half are right.", "arm": "a", "at_least": 0.5}
MORE = {"id": "more", "says": "More than by b.", "arm": "a", "over": "b"}
SUPPORTED = "c" * 20
OPEN = "cwcwcw"


def row(frame, claim="half"):
    [found] = plain_rows(frame[frame["claim"] == claim])
    return found


def summaries(folder):
    return [event for event in read_events(folder / "status.jsonl") if event["event"] == "summary"]


def test_a_line_per_claim_and_batch_with_its_numbers(tmp_path, make_batch):
    make_batch(tmp_path / "one", {"a": SUPPORTED, "b": "w" * 20}, claims=[HALF, MORE], name="first")
    make_batch(tmp_path / "deep" / "two", {"a": OPEN}, claims=[HALF])
    frame = ledger_df(tmp_path)
    lines = set(zip(frame["batch"], frame["claim"], frame["verdict"], frame["n"], strict=True))
    assert lines == {("first", "half", "supported", 20), ("first", "more", "supported", 20), ("small", "half", "not supported", 6)}  # fmt: skip
    assert set(frame["source"]) == {str(tmp_path / "one"), str(tmp_path / "deep" / "two")}
    more = row(frame, "more")
    assert more["p"] == pytest.approx(2 * 0.5**20) and more["effect"] == 1
    assert (more["experiment"], more["says"], more["state"], more["entries"]) == (
        "made",
        "More than by b.",
        "finished",
        1,
    )


def test_a_verdict_that_changed_tells_from_what_and_since_when(tmp_path, make_batch):
    for letters in (OPEN, OPEN, OPEN + SUPPORTED, OPEN + SUPPORTED):
        make_batch(tmp_path, {"a": letters}, claims=[HALF])
    found, times = row(ledger_df(tmp_path)), [event["time"] for event in summaries(tmp_path)]
    assert (found["verdict"], found["changes"]) == ("supported", "not supported → supported")
    assert (found["since"], found["entries"], found["n"]) == (times[2], 4, 26)
    history = ledger_df(tmp_path, history=True)
    assert list(history["verdict"]) == ["not supported"] * 2 + ["supported"] * 2
    assert list(history["time"]) == times and list(history["n"]) == [6, 6, 26, 26]
    assert set(history["command"]) == {"loopkit batch small.yaml"} and set(history["loopkit"]) == {"0.1.0"}


def test_what_did_not_change_has_no_changes(tmp_path, make_batch):
    for _ in range(3):
        make_batch(tmp_path, {"a": OPEN}, claims=[HALF])
    found = row(ledger_df(tmp_path))
    assert found["changes"] is None and found["entries"] == 3
    assert found["since"] == summaries(tmp_path)[0]["time"]


@pytest.mark.parametrize(
    "change", [{"at_least": 0.1}, {"says": "Some are right."}, {"where": {"model": "m"}}]
)
def test_a_claim_that_was_restated_is_marked_even_if_its_verdict_is_the_same(tmp_path, make_batch, change):
    make_batch(tmp_path, {"a": SUPPORTED}, claims=[HALF])
    make_batch(tmp_path, {"a": SUPPORTED}, claims=[HALF | change])
    found, history = row(ledger_df(tmp_path)), ledger_df(tmp_path, history=True)
    assert found["changes"] == "supported → supported (restated)"
    assert found["since"] == summaries(tmp_path)[1]["time"]
    assert list(history["restated"]) == [False, True]
    assert list(history["says"]) == [HALF["says"], (HALF | change)["says"]]
    make_batch(tmp_path, {"a": SUPPORTED}, claims=[HALF | change])
    assert row(ledger_df(tmp_path))["changes"] == "supported → supported (restated)", "once"


def test_a_claim_that_was_restated_without_a_verdict_yet_keeps_the_words_of_the_last_one(
    tmp_path, make_batch
):
    make_batch(tmp_path, {"a": SUPPORTED}, claims=[HALF])
    make_batch(
        tmp_path, {"a": SUPPORTED + "."}, claims=[HALF | {"says": "All are.", "at_least": 0.9}], ends=False
    )
    found = row(ledger_df(tmp_path))
    assert (found["verdict"], found["says"], found["changes"]) == (
        "supported",
        HALF["says"],
        "supported → (restated)",
    )
    make_batch(tmp_path, {"a": SUPPORTED + "."}, claims=[HALF], ends=False)
    assert row(ledger_df(tmp_path))["changes"] is None


def test_a_claim_that_was_left_out_stays_in_the_ledger(tmp_path, make_batch):
    make_batch(tmp_path, {"a": "w" * 20}, claims=[HALF])
    make_batch(tmp_path, {"a": "w" * 20}, claims=[])
    found = row(ledger_df(tmp_path))
    assert (found["verdict"], found["state"]) == ("contradicted", "withdrawn")


def test_batches_that_share_a_folder_are_told_apart_by_their_names(tmp_path, make_batch):
    make_batch(tmp_path, {"a": OPEN}, claims=[HALF], name="one")
    make_batch(tmp_path, {"a": SUPPORTED}, claims=[HALF], name="two", model="other")
    frame = ledger_df(tmp_path).set_index("batch")
    assert dict(frame["verdict"]) == {"one": "not supported", "two": "supported"}
    assert set(frame["state"]) == {"finished"}


def test_a_batch_that_has_not_ended_has_its_claims_in_the_ledger(tmp_path, make_batch):
    make_batch(tmp_path, {"a": "c."}, claims=[HALF], ends=False)
    found = row(ledger_df(tmp_path))
    assert found["verdict"] is None and found["since"] is None and found["entries"] == 0
    assert found["state"] == "interrupted"
    with RunLog(tmp_path / "status.jsonl"):
        assert row(ledger_df(tmp_path))["state"] == "running"
    make_batch(tmp_path, {"a": SUPPORTED}, claims=[HALF])
    make_batch(tmp_path, {"a": SUPPORTED + "."}, claims=[HALF], ends=False)
    found = row(ledger_df(tmp_path))
    assert (found["verdict"], found["state"], found["entries"]) == ("supported", "interrupted", 1)


def test_what_is_simulated_is_labelled(tmp_path, make_batch):
    make_batch(tmp_path / "real", {"a": OPEN}, claims=[HALF], model="m")
    make_batch(tmp_path / "sim", {"a": OPEN}, claims=[HALF], model="simulated:oracle")
    frame = ledger_df(tmp_path).set_index("source")
    assert list(frame["simulated"]) == ["none", "all"]
    assert list(ledger_df(tmp_path / "sim", history=True)["simulated"]) == ["all"]
    as_before(tmp_path / "sim")
    assert list(ledger_df(tmp_path / "sim")["simulated"]) == ["all"], "by its models"


def test_a_verdict_of_a_batch_that_was_not_complete_says_so(tmp_path, make_batch):
    make_batch(
        tmp_path, {"a": SUPPORTED + "."}, claims=[HALF], problems=["a-m: 1 of 21 trials have no result"]
    )
    make_batch(tmp_path, {"a": SUPPORTED + "c"}, claims=[HALF])
    assert list(ledger_df(tmp_path, history=True)["complete"]) == [False, True]
    assert row(ledger_df(tmp_path))["complete"]


def record(tmp_path, make_batch, name="batch", **changes):
    """A summary as an experiment commits it, in the words of the first version unless changed."""
    make_batch(tmp_path / "made", {"a": SUPPORTED}, claims=[HALF], name=name)
    summary = json.loads((tmp_path / "made" / "summary.json").read_text())
    for claim in summary["claims"]:
        del claim["n"], claim["models"]
    path = tmp_path / "experiments" / "puzzles" / "results" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary | changes))
    return path


def test_a_result_that_is_committed_with_the_project_is_a_recorded_one(tmp_path, make_batch):
    path = record(tmp_path, make_batch)
    [found] = ledger_df(tmp_path / "experiments").to_dict("records")
    assert (found["experiment"], found["batch"], found["claim"]) == ("made", "batch", "half")
    assert (found["verdict"], found["state"], found["source"]) == ("supported", "recorded", str(path))
    assert found["since"] == "2026-11-30T12:00:00.000+00:00" and found["simulated"] == "none"


def test_runs_and_experiments_are_where_it_looks_by_itself(tmp_path, make_batch, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ledger_df().empty and ledger_df(history=True).empty
    record(tmp_path, make_batch)
    make_batch(tmp_path / "runs" / "x", {"a": OPEN}, claims=[HALF])
    assert sorted(ledger_df()["state"]) == ["finished", "recorded"]
    with pytest.raises(StoreError, match="no folder .*nowhere"):
        ledger_df(tmp_path / "nowhere")


def test_other_files_among_results_are_passed_over(tmp_path, make_batch):
    path = record(tmp_path, make_batch)
    for name, content in (("list.json", "[1]"), ("other.json", '{"rows": []}'), ("notes.md", "{")):
        (path.parent / name).write_text(content)
    assert len(ledger_df(tmp_path / "experiments")) == 1


@pytest.mark.parametrize(
    "content",
    ["{", "\udcff", '{"claims": 5}', '{"claims": [], "rows": [], "provenance": {}}',
     '{"claims": [{}], "rows": [{"model": 1, "experiment": 2}], "batch": "b", "provenance": {"finished": "2026-11-30"}}',
     '{"claims": [], "rows": [], "batch": "b", "provenance": {"finished": "soon"}}'],
)  # fmt: skip
def test_a_damaged_result_is_a_row_and_hides_no_other(tmp_path, make_batch, content):
    good = record(tmp_path, make_batch)
    (good.parent / "bad.json").write_text(content, errors="surrogateescape")
    bad, fine = ledger_df(tmp_path / "experiments").to_dict("records")
    assert (bad["state"], bad["source"]) == ("damaged", str(good.parent / "bad.json"))
    assert f"cannot read {good.parent / 'bad.json'} as the summary" in bad["problem"]
    assert fine["state"] == "recorded"
    assert len(ledger_df(tmp_path / "experiments", history=True)) == 1


def test_a_damaged_log_is_a_row_and_hides_no_other(tmp_path, make_batch):
    for name in ("bad", "good"):
        make_batch(tmp_path / name, {"a": OPEN}, claims=[HALF])
    path = tmp_path / "bad" / "status.jsonl"
    path.write_bytes(path.read_bytes().replace(b"not supported", b"well supported"))
    bad, good = ledger_df(tmp_path).to_dict("records")
    assert (bad["state"], bad["source"]) == ("damaged", str(tmp_path / "bad"))
    assert f"{path}, line 3" in bad["problem"]
    assert (good["state"], good["claim"]) == ("finished", "half")


def earlier(folder, claims, *, finished, verdict="supported"):
    """A folder as the first version left it: no verdict in the log, the last one in summary.json."""
    with RunLog(folder / "status.jsonl") as status:
        status.open("batch", name="small", command="loopkit batch small.yaml", claims=claims, cells=["a"])
    found = [
        {"id": claim["id"], "says": claim["says"], "verdict": verdict, "p": None, "effect": 0.5}
        for claim in claims
    ]
    summary = {"batch": "small", "rows": [{"experiment": "made", "model": "m"}], "claims": found}
    (folder / "summary.json").write_text(json.dumps(summary | {"provenance": {"finished": finished}}))


def test_of_an_earlier_version_the_last_verdict_is_known(tmp_path, make_batch):
    earlier(tmp_path, [HALF], finished="2100-01-01T00:00:00+00:00")
    found = row(ledger_df(tmp_path))
    assert (found["verdict"], found["state"], found["entries"]) == ("supported", "finished", 1)
    assert found["since"] == "2100-01-01T00:00:00.000+00:00"
    make_batch(tmp_path, {"a": OPEN}, claims=[HALF])
    found = row(ledger_df(tmp_path))
    assert (found["verdict"], found["entries"]) == ("not supported", 1), "the log has the word from then on"


def test_an_earlier_summary_is_not_taken_for_one_of_a_batch_begun_after_it(tmp_path):
    earlier(tmp_path, [HALF], finished="2000-01-01T00:00:00+00:00")
    found = row(ledger_df(tmp_path))
    assert found["verdict"] is None and found["state"] == "interrupted"


# --- when a claim was declared -----------------------------------------------------------------------------------

LESS = HALF | {"id": "less", "says": "Some are right.", "at_least": 0.1}


def test_a_claim_declared_before_its_trials_is_not_post_hoc_ever_after(tmp_path, make_batch):
    for letters in (OPEN, OPEN + SUPPORTED):
        make_batch(tmp_path, {"a": letters}, claims=[HALF])
    found, [first, _] = row(ledger_df(tmp_path)), batches(tmp_path)
    assert (found["declared"], found["seen"], found["post_hoc"]) == (first["time"], 0, False)
    assert found["digest"] == first["digests"]["half"]


def test_a_claim_declared_over_trials_on_record_is_post_hoc(tmp_path, make_batch):
    make_batch(tmp_path, {"a": OPEN}, claims=[HALF])
    make_batch(tmp_path, {"a": OPEN + SUPPORTED}, claims=[HALF, LESS])
    frame, [_, second] = ledger_df(tmp_path), batches(tmp_path)
    assert row(frame)["post_hoc"] is False
    late = row(frame, "less")
    assert (late["declared"], late["seen"], late["n"], late["post_hoc"]) == (second["time"], 6, 26, True)
    history = ledger_df(tmp_path, history=True)
    assert list(history["claim"]) == ["half", "half", "less"]
    assert list(history["post_hoc"]) == [False, False, True]


@pytest.mark.parametrize(
    ("change", "post_hoc"), [({"says": "Said better."}, False), ({"id": "half"}, False), ({"at_least": 0.1}, True), ({"where": {"model": "m"}}, True)]
)  # fmt: skip
def test_changed_terms_are_a_new_declaration_and_changed_words_are_not(
    tmp_path, make_batch, change, post_hoc
):
    make_batch(tmp_path, {"a": SUPPORTED}, claims=[HALF])
    make_batch(tmp_path, {"a": SUPPORTED}, claims=[HALF | change])
    assert row(ledger_df(tmp_path))["post_hoc"] is post_hoc


def test_what_another_batch_in_the_folder_declared_does_not_count(tmp_path, make_batch):
    make_batch(tmp_path, {"a": SUPPORTED}, claims=[HALF], name="one")
    make_batch(tmp_path, {"a": SUPPORTED}, claims=[HALF], name="two")
    frame = ledger_df(tmp_path).set_index("batch")
    assert dict(frame["post_hoc"]) == {"one": False, "two": True}


def test_the_claims_of_a_batch_are_corrected_together(tmp_path, make_batch):
    again = MORE | {"id": "again"}
    make_batch(tmp_path, {"a": SUPPORTED, "b": "w" * 20}, claims=[HALF, MORE, again])
    frame = ledger_df(tmp_path)
    assert row(frame)["p_holm"] is None
    assert row(frame, "more")["p_holm"] == pytest.approx(2 * row(frame, "more")["p"])


OLD = ("digests", "by", "seq", "hash", "event", "time")


def as_before(folder):
    """Write the log of `folder` anew as a loopkit wrote it that knew neither digests nor Holm."""
    path = folder / "status.jsonl"
    events = read_events(path)
    path.unlink()
    with RunLog(path) as status:
        for event in events:
            fields = {key: value for key, value in event.items() if key not in OLD}
            if event["event"] == "batch":
                known = ("id", "says", "arm", "where", "over", "over_where", "p_below", "at_least", "at_most")
                fields["claims"] = [{key: claim[key] for key in known} for claim in event["claims"]]
                status.open("batch", **fields)
            elif event["event"] == "summary":
                known = ("id", "verdict", "n", "p", "effect", "models")
                fields["claims"] = [{key: claim[key] for key in known} for claim in event["claims"]]
                status.append("summary", **fields)


def test_a_log_without_digests_tells_by_its_terms_when_a_claim_was_declared(tmp_path, make_batch):
    make_batch(tmp_path, {"a": OPEN, "b": "wwwwww"}, claims=[HALF, MORE])
    as_before(tmp_path)
    before = row(ledger_df(tmp_path))
    assert (before["verdict"], before["n"], before["p_holm"], before["post_hoc"]) == ("not supported", 6, None, None)  # fmt: skip
    [old] = batches(tmp_path)
    assert "digests" not in old
    make_batch(tmp_path, {"a": OPEN + SUPPORTED, "b": "wwwwww"}, claims=[HALF | {"says": "Reworded."}, MORE, LESS])  # fmt: skip
    frame = ledger_df(tmp_path)
    assert [row(frame, name)["declared"] == old["time"] for name in ("half", "more", "less")] == [True, True, False]  # fmt: skip
    assert row(frame)["changes"] == "not supported → supported (restated)", "for its words"
    assert row(frame, "more")["changes"] is None or "restated" not in row(frame, "more")["changes"]


def test_a_declaration_cannot_be_dated_back(tmp_path, make_batch):
    make_batch(tmp_path, {"a": SUPPORTED}, claims=[HALF])
    make_batch(tmp_path, {"a": SUPPORTED}, claims=[LESS])
    path = tmp_path / "status.jsonl"
    first, second = (event["digests"] for event in batches(tmp_path))
    path.write_bytes(path.read_bytes().replace(first["half"].encode(), second["less"].encode(), 1))
    [damaged] = ledger_df(tmp_path).to_dict("records")
    assert damaged["state"] == "damaged" and f"{path}, line 1" in damaged["problem"]


def batches(folder):
    return [event for event in read_events(folder / "status.jsonl") if event["event"] == "batch"]
