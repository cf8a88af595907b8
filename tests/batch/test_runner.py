"""Batches as a user runs them: a command, real notebooks, real kernels, and whatever may end them halfway.

Processes are slow to start, so each situation is set up once and looked at by several tests.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import nbformat
import pytest
import yaml

from loopkit.batch import expand, load_spec, plan, rewrite_report
from loopkit.store import Store, read_events

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "02_constraint_solving.ipynb"
MARK = "LOOPKIT_TEST_RUN"
PUZZLES = 30
PATIENCE = 240  # seconds for a command that takes about ten

# The least that records a cell's trials.
PLAIN = """\
from experiments.knights import Params, run
_ = await run(Params(arm=arm, model=model, people=people, count=count, seed=seed), out)
"""
# Goes wrong in the way that the seed says.
FAULTY = """\
import os, signal, time
print("about to go wrong", flush=True)
if seed == 1:
    raise ZeroDivisionError("by nought")
if seed == 2:
    os._exit(3)
if seed == 3:
    os.kill(os.getpid(), signal.SIGKILL)
if seed == 4:
    time.sleep(120)
if seed == 5:
    import asyncio
    await asyncio.sleep(120)
if seed == 6:
    grown = bytearray(1 << 50)
"""


def notebook(path: Path, *code: str) -> Path:
    """A notebook with the parameters of the real one, and more cells."""
    real = nbformat.read(NOTEBOOK, as_version=4)
    parameters = [cell for cell in real.cells if "parameters" in cell.metadata.get("tags", [])]
    made = nbformat.v4.new_notebook(metadata=real.metadata, cells=parameters)
    made.cells += map(nbformat.v4.new_code_cell, code)
    nbformat.write(made, path)
    return path


@dataclass
class Batch:
    """A batch file in a folder of its own, and the processes that it starts."""

    folder: Path
    mark: str = field(default_factory=lambda: uuid4().hex)

    def write(self, *, notebook: Path, model="simulated:random", seed=1, **more):
        grid = [{"arm": "clauses", "model": model, "people": 2, "count": PUZZLES, "seed": seed}]
        data = {"experiment": "knights", "notebook": str(notebook), "question": "Who is what?", "grid": grid}
        self.folder.mkdir(exist_ok=True)
        self.file.write_text(yaml.safe_dump(data | more))
        return self

    @property
    def file(self) -> Path:
        return self.folder / "small.yaml"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def store(self) -> Store:
        return Store(self.out / "records")

    def start(self, *arguments: str, script: bool = False, before: Sequence[str] = ()) -> subprocess.Popen:
        command = (
            [str(Path(sys.executable).with_name("loopkit"))] if script else [sys.executable, "-m", "loopkit"]
        )
        return subprocess.Popen(
            [*before, *command, "batch", str(self.file), "--out", str(self.out), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=os.environ | {MARK: self.mark},
            # Whoever starts the tests in the background may have them ignore SIGINT, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, *arguments: str, script: bool = False) -> subprocess.CompletedProcess:
        process = self.start(*arguments, script=script)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def summary(self) -> dict:
        return json.loads((self.out / "summary.json").read_text(encoding="utf-8"))

    def cells(self) -> list[dict]:
        """The runner's own events about cells that ended."""
        return self.events("cell")

    def settled(self) -> Counter:
        """How many runs settled each trial."""
        if not self.store.folder.exists():
            return Counter()
        ended = [
            run for run in self.store.runs() if (run.first("trial") or {}).get("result", "error") != "error"
        ]
        return Counter(run.params["trial"] for run in ended)

    def processes(self) -> list[int]:
        """Whatever runs on behalf of this batch: the mark in the environment is handed down to every child."""
        wanted, found = f"{MARK}={self.mark}".encode(), []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:  # ended meanwhile, or somebody else's
                pass
        return found

    def events(self, kind: str) -> list[dict]:
        """The runner's own events of one kind, as long as there is a log."""
        log = self.out / "status.jsonl"
        return [event for event in read_events(log) if event["event"] == kind] if log.exists() else []


def wait_until(condition, seconds: float = PATIENCE) -> float:
    """Seconds until `condition()` holds, or a failure."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > seconds:
            pytest.fail(f"not so after {seconds} s")
        time.sleep(0.05)
    return time.monotonic() - started


def without_seconds(rows):
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


# --- a batch that nobody disturbs ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A batch through the real notebook, and what the command said."""
    batch = Batch(tmp_path_factory.mktemp("done")).write(
        notebook=NOTEBOOK,
        model=["simulated:oracle", "simulated:random"],
        group_by=["people"],
        claims=[
            {"id": "oracle", "says": "It knows.", "arm": "clauses", "where": {"model": "simulated:oracle"}, "at_least": 0.8},
            {"id": "floor", "says": "The floor is high.", "arm": "clauses", "where": {"model": "simulated:random"}, "at_least": 0.9},
            {"id": "pair", "says": "Knowing helps.", "arm": "clauses", "where": {"model": "simulated:oracle"},
             "over": "clauses", "over_where": {"model": "simulated:random"}, "p_below": 0.001},
        ],
    )  # fmt: skip
    said = batch.run(script=True)
    assert said.returncode == 0, said.stdout + said.stderr
    return batch, said


def test_rows_of_the_summary(done):
    rows = {row["model"]: row for row in done[0].summary()["rows"]}
    assert set(rows) == {"simulated:oracle", "simulated:random"}
    for row in rows.values():
        assert {
            "experiment", "arm", "model", "n", "correct", "accuracy",
            "wilson_low", "wilson_high", "failures", "tokens", "seconds",
        } <= set(row)  # fmt: skip
        assert (row["experiment"], row["arm"], row["n"]) == ("knights", "clauses", PUZZLES)
        assert 0 <= row["wilson_low"] <= row["accuracy"] <= row["wilson_high"] <= 1
        assert row["tokens"] > 0
        assert row["seconds"] > 0
    oracle, random = rows["simulated:oracle"], rows["simulated:random"]
    assert (oracle["correct"], oracle["failures"]) == (PUZZLES, {})
    assert random["correct"] < PUZZLES / 4
    assert sum(random["failures"].values()) + random["correct"] + random["wrong"] == PUZZLES


def test_claims_of_the_summary(done):
    claims = {claim["id"]: claim for claim in done[0].summary()["claims"]}
    assert all({"id", "says", "verdict", "p", "effect"} <= set(claim) for claim in claims.values())
    verdicts = {name: claim["verdict"] for name, claim in claims.items()}
    assert verdicts == {"oracle": "supported", "floor": "contradicted", "pair": "supported"}
    assert claims["pair"]["p"] < 0.001 < claims["pair"]["effect"]
    [opened, *_] = read_events(done[0].out / "status.jsonl")
    assert {name: claim["digest"] for name, claim in claims.items()} == opened["digests"]
    for claim in claims.values():
        assert (claim["declared"], claim["seen"], claim["post_hoc"]) == (opened["time"], 0, False)


def test_what_is_printed_when_piped(done):
    batch, said = done
    for words in (
        "Who is what?",
        "accuracy",
        "oracle (simulated)",
        "SUPPORTED, simulated  It knows.",
        "CONTRADICTED",
    ):
        assert words in said.stdout
    assert f"report: {batch.out / 'report.html'}" in said.stdout
    assert "\x1b" not in said.stdout
    assert max(map(len, said.stdout.splitlines())) <= max(120, len(f"report: {batch.out / 'report.html'}"))


def test_the_report_is_written(done):
    page = (done[0].out / "report.html").read_text(encoding="utf-8")
    assert "Who is what?" in page
    assert "Knowing helps." in page
    assert "simulated" in page


def test_the_log_keeps_the_verdicts_and_the_report_can_be_had_again(done):
    batch, _ = done
    [first, *_] = [event for event in read_events(batch.out / "status.jsonl") if event["event"] == "summary"]
    told = {claim["id"]: (claim["verdict"], claim["n"]) for claim in batch.summary()["claims"]}
    assert {claim["id"]: (claim["verdict"], claim["n"]) for claim in first["claims"]} == told
    assert first["complete"] and first["n"] == 2 * PUZZLES
    page = (batch.out / "report.html").read_bytes()
    (batch.out / "report.html").unlink()
    assert rewrite_report(batch.out).path.read_bytes() == page


def test_executed_notebooks_have_outputs_and_no_error(done):
    files = sorted((done[0].out / "notebooks").glob("*.ipynb"))
    assert len(files) == 2
    for file in files:
        code = [cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"]
        outputs = [output for cell in code for output in cell.outputs]
        assert all(cell.execution_count for cell in code)
        assert not [output for output in outputs if output.output_type == "error"]
        assert any("application/vnd.plotly.v1+json" in output.get("data", {}) for output in outputs)
        items = {run.params["item"] for run in done[0].store.runs()}
        assert len(items) == PUZZLES
        assert all(item in str(outputs) for item in items), "the frame of results"


def test_the_same_command_again_takes_no_kernel(done):
    batch, _ = done
    before, cells, runs = batch.summary(), batch.cells(), batch.store.ids()
    assert [cell["status"] for cell in cells] == ["done", "done"]
    started = time.monotonic()
    again = batch.run()
    assert again.returncode == 0, again.stderr
    assert batch.cells() == cells
    assert batch.store.ids() == runs
    assert batch.summary()["rows"] == before["rows"]
    assert batch.summary()["claims"] == before["claims"]
    assert time.monotonic() - started < PATIENCE / 4


# --- batches that are ended halfway --------------------------------------------------------------------------

SIGNALS = {"SIGKILL": -signal.SIGKILL, "SIGTERM": 130, "SIGINT": 130}


@dataclass
class Interrupted:
    signal: str
    batch: Batch
    code: int
    said: str
    before: dict[str, bytes]
    """The logs of the trials that were settled when everything had ended."""
    seconds_until_gone: float
    cells: list
    """The runner's events about cells by then."""
    again: subprocess.CompletedProcess


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("SIGKILL", marks=pytest.mark.slow),
        "SIGTERM",
        pytest.param("SIGINT", marks=pytest.mark.slow),
    ],
)
def interrupted(request, tmp_path_factory):
    """A batch that was ended by a signal after a few trials, then run again."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc to see what is left of a batch")
    root = tmp_path_factory.mktemp("interrupted")
    batch = Batch(root / "batch").write(notebook=notebook(root / "plain.ipynb", PLAIN))
    process = batch.start()
    wait_until(lambda: len(batch.settled()) >= 3 or process.poll() is not None)
    process.send_signal(getattr(signal, request.param))
    said = "".join(process.communicate(timeout=60))
    gone = wait_until(lambda: not batch.processes(), 60)
    kept = {run: batch.store.path(run).read_bytes() for run in batch.settled()}
    return Interrupted(request.param, batch, process.returncode, said, kept, gone, batch.cells(), batch.run())


def test_an_ended_batch_leaves_no_process_behind(interrupted):
    ended, name = interrupted, interrupted.signal
    assert ended.code == SIGNALS[name], ended.said
    assert ended.seconds_until_gone < 10
    assert 3 <= len(ended.before) < PUZZLES, "or it was not halfway"
    assert ended.cells == []
    if name != "SIGKILL":
        assert "interrupted; the same command goes on from here" in ended.said
        assert "Traceback" not in ended.said


def test_an_ended_batch_goes_on_as_if_nothing_had_been(interrupted, done):
    ended = interrupted
    assert ended.again.returncode == 0, ended.again.stderr
    undisturbed = [row for row in done[0].summary()["rows"] if row["model"] == "simulated:random"]
    assert without_seconds(ended.batch.summary()["rows"]) == without_seconds(undisturbed)


def test_no_finished_trial_runs_twice(interrupted):
    batch, before = interrupted.batch, interrupted.before
    (cell,) = expand(load_spec(batch.file))
    assert batch.settled() == dict.fromkeys(cell.keys, 1)
    assert {run: batch.store.path(run).read_bytes() for run in before} == before


# Runs a command with Ctrl-C ignored, as a shell does with what it puts into the background.
DEAF = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")


@pytest.mark.parametrize("how", [pytest.param("--cold", marks=pytest.mark.slow), None], ids=["cold", "warm"])
@pytest.mark.parametrize(
    "delay", [0.1, pytest.param(3.0, marks=pytest.mark.slow)], ids=["at once", "a little later"]
)
@pytest.mark.parametrize(
    ("name", "before", "code"),
    [("SIGKILL", (), -signal.SIGKILL), ("SIGTERM", DEAF, 130)],
    ids=["killed", "terminated with Ctrl-C ignored"],
)
def test_a_batch_ended_as_its_first_notebook_starts_leaves_no_process_behind(
    tmp_path, name, before, code, delay, how
):
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc")
    slow = notebook(tmp_path / "slow.ipynb", "import time; time.sleep(120)")
    batch = Batch(tmp_path / "early").write(notebook=slow)
    process = batch.start(*([how] if how else []), before=before)
    wait_until(lambda: batch.events("begin") or process.poll() is not None)
    time.sleep(delay)
    process.send_signal(getattr(signal, name))
    try:
        said = "".join(process.communicate(timeout=30))
        assert process.returncode == code, said
        wait_until(lambda: not batch.processes(), 10)
    finally:
        for pid in batch.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert batch.cells() == []


# --- notebooks that go wrong ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """Cells that go wrong, each in its way, what the command said, and what another one said meanwhile."""
    root = tmp_path_factory.mktemp("faulty")
    batch = Batch(root).write(
        notebook=notebook(root / "faulty.ipynb", FAULTY),
        seed=[4, 5, 1, 2, 3, 6],
        timeout=4,
        retries={"dead_kernel": 1},
    )
    process = batch.start("--workers", "2")
    wait_until(lambda: (batch.out / "status.jsonl").exists() and read_events(batch.out / "status.jsonl"))
    second = batch.run()
    still_running = process.poll() is None
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert still_running, "the first ended before the second was refused"
    return batch, subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr), second


@pytest.mark.parametrize(
    ("seed", "status", "detail"),
    [
        (1, "failed", "ZeroDivisionError: by nought"),
        (2, "dead_kernel", "died (exit code 3)"),
        (3, "dead_kernel", "died (signal 9)"),
        (4, "timeout", "a cell took longer than 4 s"),
        (5, "timeout", "a cell took longer than 4 s"),
        (6, "out_of_memory", "MemoryError"),
    ],
)
def test_a_notebook_that_goes_wrong_is_named_with_its_fault(faulty, seed, status, detail):
    batch, said, _ = faulty
    ended = [cell for cell in batch.cells() if cell["params"]["seed"] == seed]
    assert [cell["attempt"] for cell in ended] == ([1, 2] if status == "dead_kernel" else [1])
    assert {cell["status"] for cell in ended} == {status}
    cell = ended[-1]
    assert detail in cell["detail"]
    flat = " ".join(said.stdout.split())
    assert f"COULD NOT RUN {cell['cell']}: notebook {status}: " in flat
    assert detail in flat
    assert f"{cell['cell']}: {PUZZLES} of {PUZZLES} trials have no result" in flat
    assert cell["cell"] in said.stderr, "said when it happens, too"


@pytest.mark.slow
def test_a_notebook_that_takes_too_long_as_a_whole_is_ended(tmp_path):
    slow = notebook(tmp_path / "slow.ipynb", *["import time; time.sleep(0.5)"] * 60)
    batch = Batch(tmp_path / "long").write(notebook=slow, notebook_timeout=5)
    said = batch.run()
    assert said.returncode == 1, said.stderr
    (cell,) = batch.cells()
    assert (cell["status"], cell["detail"]) == ("timeout", "the notebook took longer than 5 s")
    assert 5 <= cell["seconds"] < 30
    done = [
        one
        for one in nbformat.read(batch.out / "notebooks" / f"{cell['cell']}.ipynb", 4).cells
        if one.get("execution_count")
    ]
    assert done, "what it had executed is kept"


def test_what_went_wrong_shows_in_the_exit_code_and_not_in_a_traceback(faulty):
    batch, said, _ = faulty
    assert said.returncode == 1
    assert len({cell["cell"] for cell in batch.cells()}) == 6, (
        "one bad notebook does not keep the others from running"
    )
    assert "Traceback" not in said.stderr
    assert batch.summary()["rows"] == []
    assert (batch.out / "report.html").exists()


def test_nothing_is_left_of_notebooks_that_went_wrong(faulty):
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc")
    wait_until(lambda: not faulty[0].processes(), 10)


def test_a_second_batch_in_the_same_folder_is_refused(faulty):
    batch, _, second = faulty
    assert second.returncode == 2
    assert f"another batch is running in {batch.out}" in second.stderr
    assert "Traceback" not in second.stderr
    assert len([e for e in read_events(batch.out / "status.jsonl") if e["event"] == "batch"]) == 1


def test_what_cannot_run_is_said_before_anything_is_written(tmp_path):
    batch = Batch(tmp_path / "wrong").write(notebook=NOTEBOOK)
    said = batch.run("--set", "cuont=5")
    assert said.returncode == 2
    assert "unknown parameter 'cuont'" in said.stderr
    assert "Traceback" not in said.stderr
    assert said.stdout == ""
    assert not batch.out.exists()


def test_a_puzzle_that_cannot_be_cut_is_a_failure_and_not_the_end_of_the_notebook(tmp_path):
    puzzle = {
        "quiz": "Saints always tell the truth and sinners always lie. You meet Al and Bob. Al says that Bob is a "
        "sinner. Bob says neither of us is a saint. Who is what?",
        "names": ["Al", "Bob"],
        "solution": [True, False],
        "knight_knave": ["saint", "sinner"],
    }
    data = tmp_path / "hard.jsonl"
    data.write_text(json.dumps(puzzle))
    batch = Batch(tmp_path / "hard").write(notebook=NOTEBOOK, fixed={"data": str(data)})
    done = batch.run()
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((batch.out / "summary.json").read_text())["rows"]
    assert row["failures"] == {"uncut": 1}


def test_a_batch_that_is_not_complete_says_so_in_its_report(faulty):
    batch, _, _ = faulty
    page = (batch.out / "report.html").read_text(encoding="utf-8")
    assert "This batch is not complete." in page and "ZeroDivisionError: by nought" in page


# --- killed again and again ----------------------------------------------------------------------------------

KILLS = int(os.environ.get("LOOPKIT_KILLS", "3"))


@pytest.mark.slow
def test_a_batch_that_is_killed_at_any_moment_loses_nothing_and_runs_nothing_twice(tmp_path):
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc to see what is left of a batch")
    dice = random.Random(5)
    batch = Batch(tmp_path / "killed").write(
        notebook=notebook(tmp_path / "plain.ipynb", PLAIN), seed=[1, 2, 3]
    )
    keys = [key for cell in expand(load_spec(batch.file)) for key in cell.keys]
    kept: dict[str, bytes] = {}
    for kill in range(KILLS):
        process = batch.start()
        goal = dice.randint(len(keys) * kill // KILLS, len(keys) * (kill + 1) // KILLS)
        wait_until(lambda: batch.settled().total() >= goal or process.poll() is not None)  # noqa: B023 - waits here
        time.sleep(dice.random() / 4)
        process.kill()
        process.communicate(timeout=60)
        wait_until(lambda: not batch.processes(), 60)
        assert all(batch.store.path(run).read_bytes() == log for run, log in kept.items())
        kept = {run: batch.store.path(run).read_bytes() for run in batch.settled()}
        done = {event["cell"] for event in batch.cells() if event["status"] == "done"}
        for one in plan(expand(load_spec(batch.file)), load_spec(batch.file), batch.out):
            assert (one.reason == "") == (one.cell.id in done)
            assert one.missing == sum(key not in kept for key in one.cell.keys)
    assert batch.run().returncode == 0
    assert batch.settled() == dict.fromkeys(keys, 1)
    assert all(batch.store.path(run).read_bytes() == log for run, log in kept.items())
    ended = [event["cell"] for event in batch.cells()]
    assert len(ended) == len(set(ended)) == 3
