"""Trials: run once, recorded once, gone on with after any interruption."""

import asyncio
import subprocess
import sys
from dataclasses import replace
from importlib import invalidate_caches

import numpy as np
import pytest

from loopkit.batch import Result, Trial, code_version, play
from loopkit.batch import trials as trials_module
from loopkit.gates import MaxIterations
from loopkit.loop import Loop
from loopkit.store import Store, StoreError

CORRECT = Result(result="correct")
FAILED = Result(result="failed", kind="empty", detail="said nothing")
ERROR = Result(result="error", kind="ConnectionError", detail="no route")


class Player:
    """Makes trials that count how often they run; `grades` are given out in turn, the last one for ever."""

    def __init__(self):
        self.ran = []
        self.at_once = self.most_at_once = 0

    def trial(self, item, *grades, raises=None, code="c0ffee", **params):
        grades = list(grades or [CORRECT])

        async def propose(goal, history):
            await asyncio.sleep(0.005)
            return goal

        async def run(log):
            self.ran.append(item)
            self.at_once += 1
            self.most_at_once = max(self.at_once, self.most_at_once)
            try:
                loop = Loop(propose=propose, execute=len, judge=lambda *_: 1.0, gates=[MaxIterations(1)])
                outcome = await loop.run(item, log=log)
                if raises:
                    raise raises
                return outcome
            finally:
                self.at_once -= 1

        def grade(outcome):
            return grades.pop(0) if len(grades) > 1 else grades[0]

        return Trial(params={"item": item, **params}, code=code, run=run, grade=grade)


@pytest.fixture
def player():
    return Player()


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "records")


async def test_the_same_trials_again_run_nothing(player, store):
    wrong = Result(result="wrong", detail="about Ava")
    trials = [player.trial("a"), player.trial("b", wrong), player.trial("c", FAILED)]
    first = await play(trials, store)
    assert first == [CORRECT, wrong, FAILED], "in the order of the trials"
    assert sorted(player.ran) == ["a", "b", "c"]
    before = {run: store.path(run).read_bytes() for run in store.ids()}
    assert await play(trials, Store(store.folder)) == first
    assert sorted(player.ran) == ["a", "b", "c"]
    assert {run: store.path(run).read_bytes() for run in store.ids()} == before


async def test_only_what_is_missing_runs(player, store):
    await play([player.trial("a")], store)
    await play([player.trial(item) for item in "abc"], store)
    assert sorted(player.ran) == ["a", "b", "c"]


async def test_the_same_trial_twice_in_a_list_runs_once(player, store):
    assert await play([player.trial("a"), player.trial("a")], store) == [CORRECT, CORRECT]
    assert player.ran == ["a"]


async def test_what_is_recorded(player, store):
    trial = player.trial("a", FAILED, arm="clauses")
    await play([trial], store)
    run = store.run(trial.key)
    assert run.params == {"trial": trial.key, "code": "c0ffee", "item": "a", "arm": "clauses"}
    assert [event["event"] for event in run.events][-1] == "trial"
    last = run.events[-1]
    assert (last["result"], last["kind"], last["detail"]) == ("failed", "empty", "said nothing")
    assert run.status == "finished"


@pytest.mark.parametrize("parallel", [1, 3])
async def test_no_more_at_once_than_allowed(player, store, parallel):
    done = []
    trials = [player.trial(item) for item in "abcdef"]
    await play(trials, store, parallel=parallel, on_done=lambda: done.append(len(player.ran)))
    assert player.most_at_once == parallel
    assert len(done) == 6


async def test_an_error_is_tried_again_and_a_failure_is_not(player, store):
    shaky, weak = player.trial("shaky", ERROR, ERROR, CORRECT), player.trial("weak", FAILED, CORRECT)
    results = [await play([shaky, weak], store) for _ in range(4)]
    assert results == [[ERROR, FAILED], [ERROR, FAILED], [CORRECT, FAILED], [CORRECT, FAILED]]
    assert store.ids() == sorted([shaky.key, f"{shaky.key}.2", f"{shaky.key}.3", weak.key])
    kinds = [store.run(f"{shaky.key}{end}").first("trial")["kind"] for end in ("", ".2", ".3")]
    assert kinds == ["ConnectionError", "ConnectionError", None], "what went wrong before stays on record"


async def test_an_exception_is_an_error_and_the_others_go_on(player, store):
    trials = [player.trial("a"), player.trial("b", raises=ZeroDivisionError("by nought")), player.trial("c")]
    results = await play(trials, store, parallel=1)
    assert results == [
        CORRECT,
        Result(result="error", kind="ZeroDivisionError", detail="by nought"),
        CORRECT,
    ]
    assert store.run(trials[1].key).first("trial")["detail"] == "by nought"


async def test_an_exception_while_grading_is_an_error(player, store):
    def grade(outcome):
        raise KeyError("truth")

    (result,) = await play([replace(player.trial("a"), grade=grade)], store)
    assert (result.result, result.kind) == ("error", "KeyError")


async def test_a_store_error_passes_through_and_settles_nothing(player, store):
    full = player.trial("a", raises=StoreError("disk full"))
    with pytest.raises(StoreError, match="disk full"):
        await play([full], store)
    assert store.run(full.key).first("trial") is None
    assert not store.is_held(full.key)
    assert await play([player.trial("a")], store) == [CORRECT]


def test_a_key_is_of_params_and_code(player):
    def key(*args, **params):
        return player.trial(*args, **params).key

    base = key("a", seed=1, data=None)
    assert len(base) == 20
    assert int(base, 16) >= 0
    assert key("a", data=None, seed=1) == base
    others = [
        key("b", seed=1, data=None),
        key("a", seed=2, data=None),
        key("a", seed="1", data=None),
        key("a", seed=1, data="x"),
        key("a", seed=1),
        key("a", seed=1, data=None, code="decaf"),
    ]
    assert len({base, *others}) == 7


def test_a_key_is_not_of_the_order_of_nested_params(player):
    one = player.trial("a", solution={"Ava": True, "Bob": {"x": 1, "y": [2]}})
    other = player.trial("a", solution={"Bob": {"y": [2], "x": 1}, "Ava": True})
    assert one.key == other.key
    assert one.key != player.trial("a", solution={"Ava": True, "Bob": {"x": 1, "y": [3]}}).key


def test_a_key_is_not_of_what_runs(player):
    assert player.trial("a", FAILED).key == player.trial("a", CORRECT).key


async def test_other_code_runs_a_trial_again(player, store):
    await play([player.trial("a")], store)
    await play([player.trial("a", code="decaf")], store)
    assert player.ran == ["a", "a"]


# Opens the log of a run as another process would, says so, waits for a line, and perhaps leaves a result.
HOLDER = """
import sys
from loopkit.store import Store
folder, run, result = sys.argv[1:]
with Store(folder).create(run) as log:
    print("held", flush=True)
    sys.stdin.readline()
    if result:
        log.append("trial", result=result, kind=None, detail="by the other")
"""


@pytest.fixture
def hold(store):
    """Have another process hold a log; gives the process back."""
    held = []

    def start(run, result=""):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(store.folder), run, result],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        held.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in held:
        process.kill()
        process.communicate()


async def test_a_log_that_another_process_holds_is_waited_for(player, store, hold):
    trial = player.trial("a")
    other = hold(trial.key, "wrong")
    playing = asyncio.create_task(play([trial], store))
    await asyncio.sleep(0.5)
    assert not playing.done()
    other.stdin.write("\n")
    other.stdin.flush()
    assert await asyncio.wait_for(playing, 20) == [Result(result="wrong", detail="by the other")]
    assert player.ran == []


async def test_a_log_that_is_let_go_without_a_result_is_taken_up(player, store, hold):
    trial = player.trial("a")
    other = hold(trial.key)
    playing = asyncio.create_task(play([trial], store))
    await asyncio.sleep(0.3)
    other.kill()
    assert await asyncio.wait_for(playing, 20) == [CORRECT]
    assert store.ids() == [trial.key]


async def test_patience_ends(player, store, hold, monkeypatch):
    monkeypatch.setattr(trials_module, "PATIENCE_SECONDS", 0.4)
    trial = player.trial("a")
    hold(trial.key)
    with pytest.raises(StoreError, match=rf"{trial.key}.jsonl is held by another process; stop it"):
        await play([trial], store)
    assert player.ran == []


async def test_an_interrupted_run_is_taken_up_where_it_was(player, store):
    trial = player.trial("a")
    with store.create(trial.key, trial=trial.key) as log:
        log.append("goal", goal="a", gates=[])
    torn = store.path(trial.key)
    torn.write_bytes(torn.read_bytes() + b'{"seq":2,"event":"st')
    before = torn.read_bytes()
    for _ in range(2):
        assert await play([trial], store) == [CORRECT]
    assert player.ran == ["a"]
    assert store.ids() == [trial.key]
    assert torn.read_bytes().startswith(before[: before.rindex(b"\n")])
    assert store.run(trial.key).first("trial")["result"] == "correct"


async def test_cancelling_leaves_a_trial_that_runs_again(player, store):
    trial = player.trial("a")

    async def forever(log):
        await asyncio.sleep(60)

    playing = asyncio.create_task(play([replace(trial, run=forever)], store))
    while not store.path(trial.key).exists():
        await asyncio.sleep(0.01)
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    assert await play([trial], store) == [CORRECT]
    assert store.ids() == [trial.key]


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "path" / "tried_package"
    (folder / "inner").mkdir(parents=True)
    for name in ("__init__.py", "inner/__init__.py", "inner/deep.py"):
        (folder / name).write_text(f"# {name}\n")
    (tmp_path / "path" / "tried_module.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(folder.parent)
    invalidate_caches()
    yield folder
    for name in [name for name in sys.modules if name.startswith("tried_")]:
        del sys.modules[name]


def version(*names):
    """What another process would find: within one the answer is kept."""
    code_version.cache_clear()
    return code_version(*names)


@pytest.mark.parametrize("name", ["__init__.py", "inner/deep.py", "inner/new.py"])
def test_code_version_follows_every_file_of_a_package(package, name):
    before = version("tried_package")
    assert len(before) == 12
    assert version("tried_package") == before
    (package / name).write_text("changed = True\n")
    assert version("tried_package") != before


def test_code_version_follows_a_file_that_is_renamed(package):
    before = version("tried_package")
    (package / "inner" / "deep.py").rename(package / "inner" / "deeper.py")
    assert version("tried_package") != before


def test_code_version_follows_code_that_moves_to_the_next_file(package):
    first, second = package / "inner" / "__init__.py", package / "inner" / "deep.py"
    first.write_text("a = 1\nb = 2\n")
    second.write_text("c = 3\n")
    before = version("tried_package")
    first.write_text("a = 1\n")
    second.write_text("b = 2\nc = 3\n")
    assert version("tried_package") != before


def test_code_version_of_a_module_is_of_its_file_alone(package):
    before = version("tried_module")
    (package / "inner" / "deep.py").write_text("changed = True\n")
    (package.parent / "beside.py").write_text("new = True\n")
    assert version("tried_module") == before
    (package.parent / "tried_module.py").write_text("x = 2\n")
    assert version("tried_module") != before


def test_code_version_is_of_all_named_in_any_order(package):
    both = version("tried_package", "tried_module")
    assert version("tried_module", "tried_package") == both
    assert len({both, version("tried_package"), version("tried_module")}) == 3


def test_code_version_ignores_what_is_not_python(package):
    before = version("tried_package")
    (package / "notes.md").write_text("nothing\n")
    assert version("tried_package") == before


# --- measures ----------------------------------------------------------------------------------------------------


async def test_measures_are_recorded_and_come_back_with_the_row(player, store):
    given = {"depth": 3, "ratio": np.float64(0.1), "count": np.int64(7), "clean": True}
    trial = player.trial("a", Result(result="wrong", measures=given))
    plain = {"depth": 3, "ratio": 0.1, "count": 7.0, "clean": True}
    [result] = await play([trial], store)
    assert result.measures == plain
    assert await play([trial], store) == [result], "from the record"
    [row] = store.rows([trial.key])
    assert row["measures"] == plain and row["measures"]["clean"] is True
    assert store.rows([trial.key]) == [row], "from the index"
    [line] = store.runs_df().to_dict("records")
    assert {name: line[name] for name in plain} == plain and "measures" not in line


async def test_a_trial_on_record_from_before_there_were_measures(player, store):
    trial = player.trial("a", CORRECT)
    with store.create(trial.key, trial=trial.key, code=trial.code, item="a") as log:
        log.append("trial", result="wrong", kind=None, detail="old")
    assert await play([trial], store) == [Result(result="wrong", detail="old")]
    assert store.rows([trial.key])[0]["measures"] == {}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "3", None, 1j, [1]])
def test_a_measure_that_is_no_finite_number_is_refused(value):
    with pytest.raises(ValueError, match="measure 'depth' must be a finite number, True or False, got "):
        Result(result="correct", measures={"depth": value})


@pytest.mark.parametrize("name", ["accuracy", "tokens", "result", "ended", "two words", "", 3])
def test_a_measure_named_like_something_else_is_refused(name):
    with pytest.raises(ValueError, match=f"that is none of .*, got {name!r}"):
        Result(result="correct", measures={name: 1})


async def test_a_measure_named_like_a_parameter_is_an_error_of_its_trial(player, store):
    trial = player.trial("a", Result(result="correct", measures={"arm": 1.0}), arm="clauses")
    [result] = await play([trial], store)
    assert (result.result, result.kind) == ("error", "ValueError")
    assert result.detail == "measures named like parameters: arm; give them other names"
