"""Batches as a user runs them: a command, real notebooks, real kernels, and whatever may end them halfway.

Processes are slow to start, so each situation is set up once and looked at by several tests.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import nbformat
import pytest
import yaml

from loopkit.batch import load_spec
from loopkit.batch.spec import expand
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
"""


def notebook(path: Path, code: str) -> Path:
    """A notebook with the parameters of the real one, and one more cell."""
    real = nbformat.read(NOTEBOOK, as_version=4)
    parameters = [cell for cell in real.cells if "parameters" in cell.metadata.get("tags", [])]
    made = nbformat.v4.new_notebook(metadata=real.metadata, cells=parameters)
    made.cells.append(nbformat.v4.new_code_cell(code))
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
            [str(Path(sys.executable).with_name("loopkit"))]
            if script
            else [sys.executable, "-m", "loopkit.cli"]
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
        """The runner's own events about cells."""
        return [event for event in read_events(self.out / "status.jsonl") if event["event"] == "cell"]

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

    def workers(self) -> list[int]:
        """Those among the processes that execute a notebook."""
        found = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                if b"loopkit.batch.worker" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    found.append(pid)
        return found


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


def test_what_is_printed_when_piped(done):
    batch, said = done
    for words in ("Who is what?", "accuracy", "oracle (simulated)", "SUPPORTED  It knows.", "CONTRADICTED"):
        assert words in said.stdout
    assert f"report: {batch.out / 'report.html'}" in said.stdout
    assert "\x1b" not in said.stdout
    assert max(map(len, said.stdout.splitlines())) <= max(120, len(f"report: {batch.out / 'report.html'}"))


def test_the_report_is_written(done):
    page = (done[0].out / "report.html").read_text(encoding="utf-8")
    assert "Who is what?" in page
    assert "Knowing helps." in page
    assert "simulated" in page


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
    batch: Batch
    code: int
    said: str
    before: dict[str, bytes]
    """The logs of the trials that were settled when everything had ended."""
    seconds_until_gone: float
    cells: list
    """The runner's events about cells by then."""
    again: subprocess.CompletedProcess


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """One batch for each signal, all at the same time: ended after a few trials, then run again."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc to see what is left of a batch")
    root = tmp_path_factory.mktemp("interrupted")
    plain = notebook(root / "plain.ipynb", PLAIN)

    def interrupt(name):
        batch = Batch(root / name).write(notebook=plain)
        process = batch.start()
        wait_until(lambda: len(batch.settled()) >= 3 or process.poll() is not None)
        process.send_signal(getattr(signal, name))
        said = "".join(process.communicate(timeout=60))
        gone = wait_until(lambda: not batch.processes(), 60)
        kept = {run: batch.store.path(run).read_bytes() for run in batch.settled()}
        return Interrupted(batch, process.returncode, said, kept, gone, batch.cells(), batch.run())

    with ThreadPoolExecutor() as pool:
        return dict(zip(SIGNALS, pool.map(interrupt, SIGNALS), strict=True))


@pytest.mark.parametrize("name", SIGNALS)
def test_an_ended_batch_leaves_no_process_behind(interrupted, name):
    ended = interrupted[name]
    assert ended.code == SIGNALS[name], ended.said
    assert ended.seconds_until_gone < 10
    assert 3 <= len(ended.before) < PUZZLES, "or it was not halfway"
    assert ended.cells == []
    if name != "SIGKILL":
        assert "interrupted; the same command goes on from here" in ended.said
        assert "Traceback" not in ended.said


@pytest.mark.parametrize("name", SIGNALS)
def test_an_ended_batch_goes_on_as_if_nothing_had_been(interrupted, done, name):
    ended = interrupted[name]
    assert ended.again.returncode == 0, ended.again.stderr
    undisturbed = [row for row in done[0].summary()["rows"] if row["model"] == "simulated:random"]
    assert without_seconds(ended.batch.summary()["rows"]) == without_seconds(undisturbed)


@pytest.mark.parametrize("name", SIGNALS)
def test_no_finished_trial_runs_twice(interrupted, name):
    batch, before = interrupted[name].batch, interrupted[name].before
    (cell,) = expand(load_spec(batch.file))
    assert batch.settled() == dict.fromkeys(cell.keys, 1)
    assert {run: batch.store.path(run).read_bytes() for run in before} == before


# Runs a command with Ctrl-C ignored, as a shell does with what it puts into the background.
DEAF = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")


@pytest.mark.parametrize(
    ("name", "before", "code"),
    [("SIGKILL", (), -signal.SIGKILL), ("SIGTERM", DEAF, 130)],
    ids=["killed", "terminated with Ctrl-C ignored"],
)
def test_a_batch_ended_as_its_first_worker_starts_leaves_no_process_behind(tmp_path, name, before, code):
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc")
    slow = notebook(tmp_path / "slow.ipynb", "import time; time.sleep(120)")
    batch = Batch(tmp_path / "early").write(notebook=slow)
    process = batch.start(before=before)
    wait_until(lambda: batch.workers() or process.poll() is not None)
    time.sleep(0.1)  # by now the worker has its job, and is still importing
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
    """Five cells that go wrong in as many ways, what the command said, and what another one said meanwhile."""
    root = tmp_path_factory.mktemp("faulty")
    batch = Batch(root).write(
        notebook=notebook(root / "faulty.ipynb", FAULTY), seed=[4, 5, 1, 2, 3], timeout=6
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
        (2, "dead_kernel", "died"),
        (3, "dead_kernel", "died"),
        (4, "timeout", "a cell took longer than 6 s"),
        (5, "timeout", "a cell took longer than 6 s"),
    ],
)
def test_a_notebook_that_goes_wrong_is_named_with_its_fault(faulty, seed, status, detail):
    batch, said, _ = faulty
    (cell,) = [cell for cell in batch.cells() if cell["params"]["seed"] == seed]
    assert cell["status"] == status
    assert detail in cell["detail"]
    flat = " ".join(said.stdout.split())
    assert f"COULD NOT RUN {cell['cell']}: notebook {status}: " in flat
    assert detail in flat
    assert f"{cell['cell']}: {PUZZLES} of {PUZZLES} trials have no result" in flat
    assert cell["cell"] in said.stderr, "said when it happens, too"


def test_what_went_wrong_shows_in_the_exit_code_and_not_in_a_traceback(faulty):
    batch, said, _ = faulty
    assert said.returncode == 1
    assert len(batch.cells()) == 5, "one bad notebook does not keep the others from running"
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
