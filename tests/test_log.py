"""The hash chain and the index: what was changed or lost is noticed, and the index is never a second truth."""

import getpass
import hashlib
import io
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

import loopkit.index
from loopkit import RunTaken, Store, StoreError
from loopkit.log import Tail
from loopkit.store import RunLog, read_events


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def record(folder, run="r", events=4, **params):
    """A log of as many events, among them what looks like other events."""
    store = Store(folder)
    with store.create(run, **params) as log:
        for number in range(events - 1):
            log.append("note", number=number, odd={"x": "é😀\n", "seq": 7, "hash": "0" * 32}, last={"a": 1})
    return store.path(run)


def refused(path, data, number=None, by=(read_events, RunLog)):
    """Whether both ways of reading refuse `data`, naming file and line, and leave every byte as it is."""
    path.write_bytes(data)
    for read in by:
        with pytest.raises(StoreError) as caught:
            read(path).close()  # of a log that was opened against expectation
        said = str(caught.value)
        place = f"{path}, line " if number is None else f"{path}, line {number}"
        assert number is None or (place in said and not said.partition(place)[2][:1].isdigit()), said
    assert path.read_bytes() == data
    return True


# --- the chain ---------------------------------------------------------------------------------------------


def changed(data, position, value):
    return data[:position] + bytes([value]) + data[position + 1 :]


def line_of(data, position):
    return data.count(b"\n", 0, position) + 1


def test_a_changed_byte_is_noticed_wherever_it_is(tmp_path):
    path = record(tmp_path, events=3)
    data = path.read_bytes()
    for position, byte in enumerate(data):
        assert refused(path, changed(data, position, byte ^ 1), line_of(data, position))
        for value in {byte ^ 32, 0, *b'\n}"'} - {byte}:
            assert refused(path, changed(data, position, value), line_of(data, position), by=[read_events])


def test_a_changed_byte_is_noticed_whatever_it_becomes(tmp_path):
    path = record(tmp_path, events=3)
    data, rng = path.read_bytes(), random.Random(0)
    ends = [position for position, byte in enumerate(data) if byte == 10]
    for position in {*ends, *(end - 1 for end in ends), 0, *rng.sample(range(len(data)), 8)}:
        for value in set(range(256)) - {data[position]}:
            by = [read_events, RunLog][: 1 + (value % 8 == 5)]  # "}" and carriage returns are among them
            assert refused(path, changed(data, position, value), line_of(data, position), by=by)


def test_a_byte_too_few_or_too_many_is_noticed(tmp_path):
    path = record(tmp_path, events=3)
    data = path.read_bytes()
    for position in range(len(data) - 1):
        line = line_of(data, position)
        assert refused(path, data[:position] + data[position + 1 :], line)
        for extra in (b" ", b"\n", b"0"):
            more = data[:position] + extra + data[position:]
            assert refused(path, more, line + (more[position : position + 2] == b"\n\n"), by=[read_events])


def test_lines_that_are_gone_moved_repeated_or_new_are_noticed(tmp_path):
    path, other = record(tmp_path, events=5), record(tmp_path, "other", events=5)
    lines, foreign = path.read_bytes().splitlines(keepends=True), other.read_bytes().splitlines(keepends=True)
    for n in range(5):
        if n < 4:
            assert refused(path, b"".join(lines[:n] + lines[n + 1 :]), n + 1)
        assert refused(path, b"".join([*lines[: n + 1], lines[n], *lines[n + 1 :]]), n + 2)
        for m in range(n + 1, 5):
            mixed = list(lines)
            mixed[n], mixed[m] = mixed[m], mixed[n]
            assert refused(path, b"".join(mixed), n + 1)
        for new in (
            b"\n",
            b"{}\n",
            foreign[n],
            lines[n].replace(b"note", b"nota").replace(b"start", b"stare"),
        ):
            first = n + 1 + (new == foreign[0])  # which may begin a log
            assert refused(path, b"".join([*lines[:n], new, *lines[n:]]), first)
            assert refused(path, b"".join([*lines[:n], new, *lines[n + 1 :]]), first)


def test_a_line_that_was_changed_and_hashed_anew_breaks_the_chain_at_the_next(tmp_path):
    path = record(tmp_path, events=4)
    lines = path.read_bytes().splitlines()
    before = json.loads(lines[0])["hash"]
    body = lines[1].rpartition(b',"hash":"')[0].replace(b'"number":0', b'"number":9') + b"}"
    digest = hashlib.sha256(before.encode() + body).hexdigest()[:32]
    lines[1] = body[:-1] + b',"hash":"' + digest.encode() + b'"}'
    path.write_bytes(b"\n".join(lines[:2]) + b"\n")
    assert read_events(path)[1]["number"] == 9  # honest, as far as it goes
    assert refused(path, b"\n".join(lines) + b"\n", 3)


def test_a_log_cut_anywhere_is_its_whole_lines_and_goes_on(tmp_path):
    path = record(tmp_path, events=4)
    data, events = path.read_bytes(), read_events(path)
    ends = [position for position, byte in enumerate(data) if byte == 10]
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        whole = sum(end <= size for end in ends)  # the newline itself may be missing
        assert read_events(path) == events[:whole]
        if size % 7 == 0 or size in ends:
            with RunLog(path) as log:
                assert log.past == events[:whole]
                log.append("more")
            *before, more = read_events(path)
            assert (before, more["event"], more["seq"]) == (events[:whole], "more", whole)


def mutate(data, other, rng):
    lines = data.splitlines(keepends=True)
    position, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    n, m = (rng.randrange(len(lines) + 1) for _ in range(2))
    foreign = rng.choice(other.splitlines(keepends=True))
    match rng.randrange(11):
        case 0:
            return data[:position] + rng.randbytes(rng.randint(1, 4)) + data[position:]
        case 1:
            return data[:position] + rng.randbytes(1) + data[position + 1 :]
        case 2:
            return data[:position]
        case 3:
            return data[:position] + data[end:]
        case 4:
            return data[:end] + data[position:]
        case 5:
            return b"".join(lines[:n] + lines[n + 1 :])
        case 6:
            return b"".join(lines[:n] + lines[m : m + 1] + lines[n:])
        case 7:
            return b"".join([*lines[:n], foreign, *lines[n:]])
        case 8:
            return data[:position] + rng.choice([b"\n", b"}", b"\r", b"\0", b'"', b"[" * 5000, b"9" * 5000]) + data[position:]  # fmt: skip
        case 9:
            return data + rng.choice(
                [foreign, foreign[:-1], lines[-1][:-1] if lines else b"", b"\xff", b"}\n"]
            )
        case _:
            return data.replace(b"\n", b"\r\n", 1) if rng.random() < 0.5 else data.upper()


def test_whatever_happens_to_a_log_it_is_refused_or_read_as_far_as_it_is_true(tmp_path):
    path, other = record(tmp_path, events=5), record(tmp_path, "other", events=3)
    data, foreign, events, rng = path.read_bytes(), other.read_bytes(), read_events(path), random.Random(1)
    lines = data.splitlines(keepends=True)
    outcomes = {"refused": 0, "read": 0}
    for number in range(3200):
        mutant = data
        for _ in range(rng.choice([1, 1, 2, 3])):
            mutant = mutate(mutant or b"\n", foreign, rng)
        path.write_bytes(mutant)
        found, opened = None, None
        try:
            found = read_events(path)
            assert found == events[: len(found)] or found == read_events(other)[: len(found)]
        except StoreError:
            pass
        outcomes["refused" if found is None else "read"] += 1
        if number % 4:
            continue
        try:
            with RunLog(path) as log:
                opened = log.past
        except StoreError:
            assert path.read_bytes() == mutant
        assert opened == found
        if found and found == events[: len(found)]:
            assert path.read_bytes() == b"".join(lines[: len(found)])  # what was torn is gone, and no more
    assert min(outcomes.values()) > 400


# --- writing -----------------------------------------------------------------------------------------------


def test_a_second_writer_is_told_who_holds_the_run_and_where(tmp_path):
    code = (
        "import sys; from loopkit import Store\n"
        "log = Store(sys.argv[1]).create('r'); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        for take in (lambda: Store(tmp_path).create("r"), lambda: Store(tmp_path).resume("r")):
            with pytest.raises(RunTaken) as caught:
                take()
            said = str(caught.value)
            assert f"process {holder.pid} " in said and getpass.getuser() in said and "r.jsonl" in said
    finally:
        holder.communicate()
    with Store(tmp_path).resume("r") as log:  # now it is ours, and we are named
        log.append("note", by_whom="a note says nothing about that")
        with pytest.raises(RunTaken, match=f"process {os.getpid()} "):
            Store(tmp_path).resume("r")


def test_events_of_several_threads_are_one_chain(tmp_path):
    def write(number):
        start.wait()
        for count in range(40):
            log.append("note", thread=number, count=count, text="x" * 3000)
            if count % 10 == 0:
                log.sync()

    start = threading.Barrier(8)
    with Store(tmp_path).create("r") as log:
        threads = [threading.Thread(target=write, args=[number]) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    notes = Store(tmp_path).run("r").all("note")
    for number in range(8):
        assert [note["count"] for note in notes if note["thread"] == number] == list(range(40))


@pytest.mark.parametrize("field", ["seq", "hash"])
def test_a_field_that_is_the_logs_own_is_refused(tmp_path, field):
    with Store(tmp_path).create("r") as log:
        with pytest.raises(ValueError, match=field):
            log.append("note", **{field: 1})
        log.append("note", other=1)
    assert len(Store(tmp_path).run("r").events) == 2


def test_an_event_is_there_for_others_before_it_is_synced(tmp_path):
    with Store(tmp_path).create("r") as log:
        log.append("note", number=7)
        code = "import sys; print(open(sys.argv[1]).read(), end='')"
        seen = subprocess.run([sys.executable, "-c", code, log.path], capture_output=True, text=True).stdout
    assert json.loads(seen.splitlines()[-1])["number"] == 7


def through(monkeypatch, write):
    """Every file that is opened from now on is written to by `write(file, data)`."""

    class File(io.FileIO):
        def write(self, data):
            return write(super().write, data)

    monkeypatch.setattr(Path, "open", lambda self, mode, **more: File(str(self), mode))


def test_a_line_that_the_disk_takes_piecemeal_is_whole(tmp_path, monkeypatch):
    through(monkeypatch, lambda write, data: write(data[:7]))
    path = record(tmp_path)
    monkeypatch.undo()
    assert len(read_events(path)) == 4


def test_ctrl_c_in_the_middle_of_a_line_tears_that_line_only(tmp_path, monkeypatch):
    def write(write, data):
        if b"torn" not in data:
            return write(data)
        write(data[:-20])
        raise KeyboardInterrupt

    through(monkeypatch, write)
    store = Store(tmp_path)
    with store.create("r") as log:
        log.append("note")
        with pytest.raises(KeyboardInterrupt):
            log.append("torn")
        with pytest.raises(StoreError, match="open it again"):
            log.append("after it")
    monkeypatch.undo()
    with store.resume("r") as log:
        log.append("again")
    assert [event["event"] for event in store.run("r").events] == ["start", "note", "resume", "again"]


def test_numbers_too_long_for_python_to_read_are_read(tmp_path):
    numbers = [7**9000, -(7**9000), 2**64, 10**4299]
    store = Store(tmp_path)
    with store.create("r", n=numbers[0]) as log:
        log.append("note", numbers=numbers)
    assert store.run("r").first("note")["numbers"] == numbers
    store.fork("r", "f", at=0).close()
    for _ in range(2):  # read, and out of the index
        assert list(store.runs_df()["n"]) == numbers[:1] * 2


def test_the_past_of_an_open_log_grows_with_it(tmp_path):
    store = Store(tmp_path)
    with store.create("r") as log:
        for number in range(3):
            log.append("note", number=number)
            assert log.past == read_events(log.path)
    store.path("r").write_bytes(store.path("r").read_bytes()[:-1])
    with store.resume("r") as log:
        assert [event["event"] for event in log.past] == ["start", "note", "note", "note", "resume"]
        log.append("note", number=3)
        assert log.past == read_events(log.path)


# --- followed by another -----------------------------------------------------------------------------------


def test_a_tail_has_seen_what_reading_the_whole_would_give_however_the_log_grows(tmp_path):
    data = record(tmp_path / "whole", events=8).read_bytes()
    rng, ends = random.Random(7), {at + 1 for at, byte in enumerate(data) if byte == ord("\n")}
    for _ in range(30):
        path = tmp_path / "r.jsonl"
        path.write_bytes(b"")
        tail, cuts = (
            Tail(path),
            sorted({rng.randrange(len(data)) for _ in range(6)} | {rng.choice([*ends]), len(data)}),
        )
        for end in cuts:
            path.write_bytes(data[:end])
            os.utime(path, ns=(end, end))  # written within one tick of the clock
            assert tail.look() and tail.events == read_events(path)
            assert tail.torn == (end not in ends and end + 1 not in ends and end > 0)
            assert not tail.look(), "nothing new"


def test_a_tail_tells_of_a_log_that_is_damaged_cut_or_gone_and_keeps_what_it_saw(tmp_path):
    path = record(tmp_path)
    data, tail = path.read_bytes(), Tail(path)
    tail.look()
    seen = tail.events
    for damage, said in ((data[:-40], "shorter than it was"), (data + b'{"event":"x"}\n', f"{path}, line 5")):
        path.write_bytes(damage)
        for _ in range(2):
            with pytest.raises(StoreError, match=re.escape(said)):
                tail.look()
    path.unlink()
    with pytest.raises(StoreError, match="cannot read"):
        tail.look()
    assert tail.events == seen
    path.write_bytes(data)  # put back
    os.utime(path, ns=(1, 1))
    assert tail.look() and tail.events == seen


# --- the index ---------------------------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch):
    """The logs that the index had read, by name."""
    names = []

    def counting(path):
        names.append(path.stem)
        return read_events(path)

    monkeypatch.setattr(loopkit.index, "read_events", counting)
    return names


def runs(folder, count=4):
    store = Store(folder)
    for number in range(count):
        record(folder, f"r{number}", events=3, arm="é" * number, size=number)
    return store


def index_of(store):
    return store.folder / "index.sqlite"


def without_index(store):
    """The frame as it is read from the logs alone."""
    index_of(store).unlink(missing_ok=True)
    return store.runs_df()


def same(one, other):
    pd.testing.assert_frame_equal(one, other)
    return True


def test_logs_that_did_not_change_are_read_once(tmp_path, reads):
    store = runs(tmp_path)
    first = store.runs_df()
    assert sorted(reads) == store.ids()
    reads.clear()
    assert same(Store(tmp_path).runs_df(), first) and reads == []
    with store.resume("r2") as log:
        log.append("iteration", iteration=1, decision="keep", score=0.5, seconds=1.0)
    record(tmp_path, "new", arm="x")
    frame = store.runs_df().set_index("run")
    assert sorted(reads) == ["new", "r2"]
    assert frame.loc["r2", "iterations"] == 1 and frame.loc["new", "arm"] == "x"
    assert same(store.runs_df(), without_index(store))


def test_lost_lines_are_noticed_once_the_index_saw_them(tmp_path):
    store = runs(tmp_path)
    path = store.path("r1")
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for kept in range(3):
        store.runs_df()
        path.write_bytes(b"".join(lines[:kept]))
        for _ in range(2):  # it is not taken for seen
            with pytest.raises(
                StoreError, match="does not hold the 3 events that index.sqlite saw"
            ) as caught:
                store.runs_df()
            assert str(path) in str(caught.value) and str(index_of(store)) in str(caught.value)
        assert len(store.run("r1").events) == kept  # by itself it tells nothing
        index_of(store).unlink()
        assert len(store.runs_df()) == 3 + bool(kept)
        path.write_bytes(whole)
        index_of(store).unlink()
    store.runs_df()
    path.write_bytes(b"".join(lines[:2]))
    with RunLog(path) as log:  # cut, and written on
        log.append("other")
        log.append("other")
    with pytest.raises(StoreError, match="does not hold the 3 events that index.sqlite saw"):
        store.runs_df()


def test_a_torn_tail_that_is_cut_off_is_no_loss(tmp_path):
    store = runs(tmp_path)
    path = store.path("r1")
    path.write_bytes(path.read_bytes() + b'{"seq":3,"ti')
    store.runs_df()
    store.resume("r1").close()
    assert same(store.runs_df(), without_index(store))


def test_a_changed_log_is_reported_and_the_others_stay_in_the_index(tmp_path, reads):
    store = runs(tmp_path)
    path = store.path("r3")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"number":1', b'"number":2'))
    with pytest.raises(StoreError, match="r3.jsonl, line 3"):
        store.runs_df()
    path.write_bytes(whole)
    reads.clear()
    assert len(store.runs_df()) == 4 and reads == ["r3"]


def test_a_run_deleted_and_made_again_is_another_run(tmp_path):
    store = runs(tmp_path)
    store.runs_df()
    store.path("r0").unlink()
    assert list(store.runs_df()["run"]) == ["r1", "r2", "r3"]
    record(tmp_path, "r0", events=2, arm="again", size=9)
    frame = store.runs_df()
    assert frame.loc[0, "arm"] == "again" and same(frame, without_index(store))


def test_a_damaged_index_is_never_believed(tmp_path):
    store = runs(tmp_path)
    expected = without_index(store)
    whole, rng = index_of(store).read_bytes(), random.Random(2)
    rows = [
        position for position in range(len(whole)) if whole[position : position + 4] in (b'"arm', b'{"ru')
    ]
    for number in range(100):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 1, 5, 200])):
            position = rng.choice(rows) + rng.randrange(80) if number % 2 else rng.randrange(len(damaged))
            damaged[min(position, len(damaged) - 1)] = rng.randrange(256)
        index_of(store).write_bytes(damaged)
        assert same(store.runs_df(), expected), number
        assert same(store.runs_df(), expected), number  # and what was made of it


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 5000, b"SQLite format 3\0", b"no database", b"SQLite format 3\0" + b"\xff" * 9000],
)
def test_an_index_that_is_none_is_made_again(tmp_path, reads, content):
    store = runs(tmp_path)
    expected = without_index(store)
    index_of(store).write_bytes(content)
    assert same(store.runs_df(), expected)
    reads.clear()
    assert same(store.runs_df(), expected) and reads == []


def test_a_half_written_index_is_made_again_or_done_without(tmp_path):
    store = runs(tmp_path, 12)
    expected = without_index(store)
    whole = index_of(store).read_bytes()
    for size in range(0, len(whole), 701):
        index_of(store).write_bytes(whole[:size])
        (tmp_path / "index.sqlite-journal").write_bytes(whole[size : size + 2000])
        assert same(store.runs_df(), expected), size


@pytest.mark.parametrize(
    "columns", ["run TEXT", "run TEXT PRIMARY KEY, version TEXT, size INTEGER, mtime INTEGER, line TEXT"]
)
def test_an_index_of_another_version_is_made_again(tmp_path, reads, columns):
    store = runs(tmp_path)
    expected = without_index(store)
    index_of(store).unlink()
    database = sqlite3.connect(index_of(store))
    database.execute(f"CREATE TABLE runs ({columns})")
    database.execute("INSERT INTO runs (run) VALUES ('r0')")
    database.commit()
    database.close()
    assert same(store.runs_df(), expected)
    reads.clear()
    assert same(store.runs_df(), expected) and reads == []


def test_rows_of_another_version_are_not_believed(tmp_path, monkeypatch):
    store = runs(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(loopkit.index, "VERSION", "another")
        expected = store.runs_df()
    with pytest.MonkeyPatch.context() as patched:
        row = property(lambda run: {"run": run.id, "new": len(run.events)})
        patched.setattr(loopkit.store.Run, "row", row)
        assert list(store.runs_df()["new"]) == [3] * 4
    assert list(expected.columns) != ["run", "new"]


def read_only(monkeypatch):
    def connect(path, **more):
        return sqlite3_connect(f"file:{path}?mode=ro", uri=True, **more)

    def unlink(self, **more):
        raise PermissionError(13, "Permission denied")

    sqlite3_connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", connect)
    monkeypatch.setattr(Path, "unlink", unlink)


@pytest.mark.parametrize("index", [None, "fresh", "stale", "damaged", "half"])
def test_an_index_that_cannot_be_written_is_done_without(tmp_path, monkeypatch, index):
    store = runs(tmp_path)
    store.runs_df()
    whole = index_of(store).read_bytes()
    record(tmp_path, "late", arm="x")
    expected = without_index(store)
    match index:
        case None:
            index_of(store).unlink()
        case "stale":
            index_of(store).write_bytes(whole)
        case "damaged":
            index_of(store).write_bytes(b"no database at all")
        case "half":
            index_of(store).write_bytes(whole[: len(whole) // 2])
    before = index_of(store).read_bytes() if index else None
    read_only(monkeypatch)
    for _ in range(2):
        assert same(store.runs_df(), expected)
    assert index_of(store).read_bytes() == before if index else not index_of(store).exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anything")
def test_a_folder_that_may_only_be_read_has_its_frame_too(tmp_path):
    store = runs(tmp_path / "runs")
    expected = without_index(store)
    for index in (index_of(store).read_bytes(), b"damaged", None):
        index_of(store).write_bytes(index) if index else index_of(store).unlink()
        store.folder.chmod(0o500)
        try:
            assert same(store.runs_df(), expected)
        finally:
            store.folder.chmod(0o700)


def test_an_index_that_is_a_folder_is_done_without(tmp_path):
    store = runs(tmp_path)
    expected = without_index(store)
    index_of(store).unlink()
    index_of(store).mkdir()
    assert same(store.runs_df(), expected)


def test_an_index_that_another_process_holds_is_done_without(tmp_path, monkeypatch):
    store = runs(tmp_path)
    store.runs_df()
    index = index_of(store).read_bytes()
    record(tmp_path, "late", arm="x")
    expected = without_index(store)
    index_of(store).write_bytes(index)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, timeout: connect(path, timeout=0.01))
    holder = connect(index_of(store))
    for lock in ("BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"):
        holder.execute(lock)
        assert same(store.runs_df(), expected)
        holder.rollback()
    holder.close()


def test_two_processes_may_look_while_a_third_writes(tmp_path):
    code = (
        "import sys; from loopkit import Store\n"
        "store = Store(sys.argv[1]); print('ready', flush=True); sys.stdin.readline()\n"
        "for _ in range(25): frame = store.runs_df()\n"
        "print(sorted(frame['run']), sorted(frame['size']))"
    )
    store = runs(tmp_path)
    others = [
        subprocess.Popen(
            [sys.executable, "-c", code, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for other in others:
        assert other.stdout.readline() == "ready\n"
    for other in others:
        other.stdin.write("\n")
        other.stdin.flush()
    for number in range(4, 9):
        record(tmp_path, f"r{number}", events=3, size=number)
        index_of(store).unlink(missing_ok=True) if number == 6 else store.runs_df()
    for other in others:
        assert other.wait(60) == 0
        assert "'r3'" in other.stdout.read()
        other.stdin.close(), other.stdout.close()
    assert same(store.runs_df(), without_index(store))
