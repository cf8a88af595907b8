"""Event logs: what is recorded comes back, whatever happens while it is written."""

import asyncio
import errno
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from loopkit import Loop, MaxIterations, Store, StoreError, Usage, spend
from loopkit.store import Run, RunLog, RunTaken, encode, read_events


def record(folder, run="r", events=3, **params):
    store = Store(folder)
    with store.create(run, **params) as log:
        for number in range(events):
            log.append("note", number=number, text="é😀\n")
    return store.path(run)


# --- torn, mangled, missing ---------------------------------------------------------------------------------


def test_a_tail_torn_at_any_byte_loses_that_event_only_and_writing_goes_on(tmp_path):
    path = record(tmp_path)
    whole = path.read_bytes()
    events = read_events(path)
    last = whole.rindex(b"\n", 0, -1) + 1
    assert len(events) == 4
    for end in range(last, len(whole)):
        path.write_bytes(whole[:end])
        kept = 4 if end == len(whole) - 1 else 3  # without its newline an event is whole
        assert read_events(path) == events[:kept]
        with RunLog(path) as log:
            log.append("again", end=end)
        *before, added = read_events(path)
        assert before == events[:kept]
        assert (added["event"], added["end"], added["seq"]) == ("again", end, kept)


@settings(max_examples=40, deadline=None)
@given(tail=st.binary(max_size=40).filter(lambda tail: b"\n" not in tail))
def test_whatever_follows_the_last_newline_is_cut_off(tmp_path_factory, tail):
    path = record(tmp_path_factory.mktemp("tail"), events=1)
    events = read_events(path)
    path.write_bytes(path.read_bytes() + tail)
    assert read_events(path) == events
    RunLog(path).close()
    assert read_events(path) == events and path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize(
    "mangled", [b"{", b"\xff\xfe", b"[1]", b"7", b'"text"', b'{"seq":1}', b"null", b"\0\0", b""]
)
@pytest.mark.parametrize("number", [1, 2, 4])
def test_a_mangled_line_is_reported_with_its_file_and_number(tmp_path, mangled, number):
    path = record(tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = mangled
    path.write_bytes(b"\n".join(lines))
    for read in (read_events, RunLog):
        with pytest.raises(StoreError) as caught:
            read(path)
        assert f"{path}, line {number} " in str(caught.value)


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_missing_line_is_reported_where_the_gap_is(tmp_path, gone):
    path = record(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
    with pytest.raises(StoreError, match="a line is missing") as caught:
        read_events(path)
    assert f"{path}, line {gone + 1}" in str(caught.value)


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "folder.jsonl").mkdir()
    for path in (tmp_path / "file" / "r.jsonl", tmp_path / "folder.jsonl"):
        for use in (read_events, RunLog):
            with pytest.raises(StoreError) as caught:
                use(path)
            assert str(path) in str(caught.value)
    with pytest.raises(StoreError, match="no run 'r' .*there are 0"):
        Store(tmp_path / "nowhere").run("r")
    assert Store(tmp_path / "nowhere").ids() == []


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read and write anything"
)
def test_a_folder_without_permission_is_named(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match=str(tmp_path)):
            Store(tmp_path).create("r")
    finally:
        tmp_path.chmod(0o700)


# --- one writer ---------------------------------------------------------------------------------------------


def test_a_second_writer_is_refused_until_the_first_lets_go(tmp_path):
    store = Store(tmp_path)
    with store.create("r") as log:
        with pytest.raises(RunTaken, match=r"is being written by .*process \d+"):
            store.create("r")
        code = "import sys; from loopkit.store import *; RunLog(__import__('pathlib').Path(sys.argv[1]))"
        other = subprocess.run([sys.executable, "-c", code, store.path("r")], capture_output=True, text=True)
        assert other.returncode == 1 and "RunTaken" in other.stderr
        assert store.is_held("r")
        log.append("note")  # and the first is not disturbed
    assert not store.is_held("r")
    assert [event["event"] for event in store.run("r").events] == ["start", "note"]


def test_a_log_that_cannot_be_opened_is_let_go_of(tmp_path):
    path = record(tmp_path)
    good = path.read_bytes()
    path.write_bytes(b"mangled\n" + good)
    with pytest.raises(StoreError):
        RunLog(path)
    assert path.read_bytes() == b"mangled\n" + good  # nothing was cut off
    path.write_bytes(good)
    RunLog(path).close()


def test_creating_a_run_twice_is_refused_and_harms_nothing(tmp_path):
    path = record(tmp_path, arm="a")
    before = path.read_bytes()
    with pytest.raises(RunTaken, match="'r' exists already"):
        Store(tmp_path).create("r", arm="b")
    assert path.read_bytes() == before


def test_a_run_that_died_before_its_first_event_may_be_created_again(tmp_path):
    store = Store(tmp_path)
    store.path("r").write_bytes(b'{"seq":0,"event":"sta')
    assert list(store.runs()) == []
    store.create("r", arm="b").close()
    assert store.run("r").params == {"arm": "b"}


@pytest.mark.parametrize(
    "run", ["", ".", "..", ".hidden", "-x", "_x", "a/b", "../a", "a b", "é", "a\n", "a" * 129, "a\0"]
)
def test_a_run_id_that_is_no_plain_file_name_is_refused(tmp_path, run):
    store = Store(tmp_path / "runs")
    for use in (store.path, store.create, store.run):
        with pytest.raises(ValueError, match="run id"):
            use(run)
    assert list(tmp_path.rglob("*")) == []


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", fullmatch=True))
@settings(max_examples=30, deadline=None)
def test_a_plain_run_id_stays_inside_the_folder(run):
    assert Store("folder").path(run).parent == Path("folder")


# --- the disk -----------------------------------------------------------------------------------------------


def test_a_full_disk_is_reported_and_what_was_synced_is_kept(tmp_path, monkeypatch):
    log = Store(tmp_path).create("r")
    log.append("kept")
    log.sync()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        log.append("at risk")
        with pytest.raises(StoreError, match=os.strerror(errno.ENOSPC)) as caught:
            log.sync()
        assert str(log.path) in str(caught.value)
        log.close()  # said once is enough
    events = Store(tmp_path).run("r").events
    assert [event["event"] for event in events][:2] == ["start", "kept"]
    again = RunLog(log.path)  # the lock was let go
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        again.append("at risk too")
        with pytest.raises(StoreError):
            again.close()
    RunLog(log.path).close()  # closing failed, and still let go of the lock


def test_an_event_too_long_for_the_disk_is_reported_when_it_is_written(tmp_path):
    resource = pytest.importorskip("resource")
    log = Store(tmp_path).create("r")
    log.append("kept")
    log.sync()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(StoreError, match=os.strerror(errno.EFBIG)) as caught:
            log.append("long", text="x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(log.path) in str(caught.value)
    with pytest.raises(StoreError, match="open it again"):
        log.append("after", text="half a line may stand before this one")
    log.close()
    events = Store(tmp_path).run("r").events
    assert [event["event"] for event in events][:2] == ["start", "kept"]


def test_a_loop_ends_when_its_record_cannot_be_written(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    log = Store(tmp_path).create("r")
    loop = Loop(propose=lambda *_: 1, execute=lambda _: 1, judge=lambda *_: 1, gates=[MaxIterations(3)])
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError):
        asyncio.run(loop.run("goal", log=log))
    monkeypatch.undo()
    log.close()


def test_synced_events_are_on_the_disk_while_the_log_is_open(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with Store(tmp_path).create("r") as log:
        log.append("note")
        before = len(synced)
        log.sync()
        assert len(synced) == before + 1
        assert [event["event"] for event in Store(tmp_path).run("r").events] == ["start", "note"]


# --- encode -------------------------------------------------------------------------------------------------


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(plain)
@settings(max_examples=150, deadline=None)
def test_plain_data_comes_back_equal_on_one_line_of_utf_8(value):
    line = encode(value)
    assert b"\n" not in line
    assert json.loads(line.decode("utf-8")) == value


@pytest.mark.parametrize("text", ["\ud800", "\udfff", "\\\ud800", '"\ud800"', "é\ud83dé", "\udc00\ud800"])
def test_lone_surrogates_survive(text):
    assert json.loads(encode({"answer": text})) == {"answer": text}


@dataclass
class Point:
    x: int
    tags: frozenset[str] = frozenset()


class Colour(BaseModel):
    name: str
    shade: int | None = None


class Odd:
    def __repr__(self):
        return "<odd>"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1, frozenset("a")), {"x": 1, "tags": ["a"]}),
        (Colour(name="red"), {"name": "red", "shade": None}),
        ({"p": [Point(2)], "c": (Colour(name="x", shade=3),)}, {"p": [{"x": 2, "tags": []}], "c": [{"name": "x", "shade": 3}]}),
        ({7}, [7]),
        (Path("a") / "b", str(Path("a") / "b")),
        (Odd(), "<odd>"),
        ([Odd(), {"k": Odd()}], ["<odd>", {"k": "<odd>"}]),
        (Usage(calls=1), {"calls": 1, "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost": 0.0, "unpriced_calls": 0}),
        (b"bytes", "bytes"),
    ],
)  # fmt: skip
def test_what_json_has_no_word_for_is_written_plainly(value, expected):
    assert json.loads(encode(value)) == expected


def test_sets_of_several_come_back_as_lists():
    assert sorted(json.loads(encode({"b", "a", "c"}))) == ["a", "b", "c"]


class Unspeakable:
    def __repr__(self):
        raise RuntimeError("no words")


def cycle():
    around = []
    around.append({"back": around})
    return around


def nested(depth):
    inside = []
    for _ in range(depth):
        inside = [inside]
    return inside


AWKWARD = [
    {"\ud800": 1},
    b"\xff\n",
    {"k": [b"\xff"], b"\xfe": 1},
    cycle(),
    nested(300),
    nested(100_000),
    Unspeakable(),
    [Unspeakable()],
    {Unspeakable(): math.nan},
]
AWKWARD_IDS = [
    "surrogate key", "bytes", "bytes inside", "cycle", "deep", "very deep", "no repr", "no repr inside", "no repr as key",
]  # fmt: skip


def only_json_numbers(word):
    raise AssertionError(f"{word} is no JSON")


@pytest.mark.parametrize("value", AWKWARD, ids=AWKWARD_IDS)
def test_anything_at_all_is_one_line_of_json(value):
    for whole in (value, {"a": [value]}, [math.nan, value]):
        line = encode(whole)
        assert b"\n" not in line
        json.loads(line.decode("utf-8"), parse_constant=only_json_numbers)


def test_numbers_that_json_lacks_are_strings():
    found = json.loads(encode([math.nan, math.inf, -math.inf, 1.5]), parse_constant=only_json_numbers)
    assert found == ["NaN", "Infinity", "-Infinity", 1.5]


@pytest.mark.parametrize("value", AWKWARD, ids=AWKWARD_IDS)
def test_an_odd_field_does_not_take_the_others_along(tmp_path, value):
    with Store(tmp_path).create("r") as log:
        log.append("note", before=[1], odd=value, after={"k": "é"})
        log.append("note", before=[2], odd=None, after={})
    first, second = Store(tmp_path).run("r").all("note")
    assert (first["before"], first["after"]) == ([1], {"k": "é"})
    assert second["before"] == [2]


async def test_a_run_goes_on_whatever_its_phases_return(tmp_path):
    values = [b"\xff", *AWKWARD]
    loop = Loop(
        propose=lambda _, history: values[len(history)],
        execute=lambda candidate: candidate,
        judge=lambda *_: 0.5,
        gates=[MaxIterations(len(values))],
    )
    with Store(tmp_path).create("r") as log:
        outcome = await loop.run("goal", log=log)
    assert not any(turn.error for turn in outcome.history)
    run = Store(tmp_path).run("r")
    assert [turn["score"] for turn in run.all("iteration")] == [0.5] * len(values)
    assert run.status == "finished"


# --- data frames --------------------------------------------------------------------------------------------


async def two_runs(folder):
    store = Store(folder)

    def propose(goal, history):
        spend(Usage(calls=2, input_tokens=10, output_tokens=5, cached_tokens=4))
        if len(history) == 1:
            raise RuntimeError("second turn")
        return len(history)

    loop = Loop(
        propose=propose, execute=lambda n: n, judge=lambda n, _: [0.5, 0, 0.25][n], gates=[MaxIterations(3)]
    )
    with store.create("b", arm="x", size=3) as log:
        await loop.run("goal", log=log)
        log.append("trial", result="correct", kind=None, detail=None)
    store.create("a", arm="y").close()
    return store


async def test_runs_df_has_a_row_per_run_with_its_parameters_and_totals(tmp_path):
    store = await two_runs(tmp_path)
    assert store.ids() == ["a", "b"]
    frame = store.runs_df().set_index("run")
    done = frame.loc["b"]
    assert dict(done[["status", "arm", "size", "iterations", "stopped_by", "best_score", "result"]]) == {
        "status": "finished", "arm": "x", "size": 3, "iterations": 3, "stopped_by": "MaxIterations",
        "best_score": 0.5, "result": "correct",
    }  # fmt: skip
    assert (done["calls"], done["tokens"]) == (6, 45)
    seconds = [event["seconds"] for event in store.run("b").all("iteration")]
    assert done["seconds"] == pytest.approx(sum(seconds))
    begun = frame.loc["a"]
    assert (begun["status"], begun["arm"], begun["iterations"], begun["tokens"]) == ("unfinished", "y", 0, 0)
    assert frame[["size", "best_score", "result"]].loc["a"].isna().all()


async def test_steps_df_has_a_row_per_phase(tmp_path):
    frame = (await two_runs(tmp_path)).steps_df()
    phases = ["propose", "execute", "judge"]
    assert list(frame["phase"]) == [*phases, "propose", *phases]
    assert list(frame["iteration"]) == [1, 1, 1, 2, 3, 3, 3]
    assert set(frame["run"]) == {"b"}
    assert list(frame["calls"]) == [2, 0, 0, 2, 2, 0, 0]
    assert list(frame["input_tokens"]) == [10, 0, 0, 10, 10, 0, 0]
    assert [error for error in frame["error"] if isinstance(error, str)] == ["RuntimeError"]
    assert frame["error"][3] == "RuntimeError"
    assert (frame["seconds"] >= 0).all()


def test_an_empty_store_gives_empty_frames(tmp_path):
    assert Store(tmp_path).runs_df().empty
    assert Store(tmp_path).steps_df().empty


def test_a_file_that_no_run_wrote_is_passed_over(tmp_path):
    record(tmp_path, "a", arm="x")
    (tmp_path / "._a.jsonl").write_bytes(b"\0\5\x16\7 left by a file manager")
    store = Store(tmp_path)
    assert store.ids() == ["a"]
    assert list(store.runs_df()["run"]) == ["a"]
    assert store.steps_df().empty


async def test_resuming_notices_a_lost_end_that_the_index_had_seen(tmp_path):
    store = await two_runs(tmp_path)
    path = store.path("b")
    whole = path.read_bytes()
    store.runs_df()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-4]))
    with pytest.raises(StoreError, match="does not hold the .* events that index.sqlite saw"):
        store.resume("b")
    assert not store.is_held("b")
    path.write_bytes(whole)
    store.resume("b").close()


def test_a_run_knows_where_its_log_is(tmp_path):
    path = record(tmp_path)
    run = Store(tmp_path).run("r")
    assert run.path == path and run == Run("r", read_events(path)), (
        "where it is kept does not make it another"
    )
    assert Run("made-up", []).path is None
