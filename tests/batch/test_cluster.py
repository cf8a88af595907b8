"""A batch on a Dask cluster: a scheduler and two workers, processes of their own on loopback."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
import yaml

from loopkit.batch import expand, load_spec
from loopkit.store import Store, read_events

ROOT = Path(__file__).parents[2]
REAL = ROOT / "notebooks" / "02_constraint_solving.ipynb"
CODE = """\
import os, time
from pathlib import Path
from experiments.knights import Params, run
_ = await run(Params(arm=arm, model=model, people=people, count=count, seed=seed), out)
print("executed by", os.getpid())
if seed == 1 and (flag := Path(os.environ["LOOPKIT_TEST_FLAG"])).exists():
    flag.write_text(str(os.getpid()))
    time.sleep(120)
"""


pytestmark = pytest.mark.slow
pytest.importorskip("distributed", reason="the extra loopkit[dask] is not installed")


@contextlib.contextmanager
def running(*command, env):
    """A process and its first lines of log, up to the one with an address."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True
    )
    try:
        for line in process.stderr:
            if found := re.search(r"(?:Scheduler at|Registered to): +(tcp://[\d.:]+)", line):
                yield process, found[1]
                break
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The scheduler's address, the two workers, and a file: while it exists, the notebook with seed 1 hangs."""
    flag = tmp_path_factory.mktemp("cluster") / "hang"
    env = os.environ | {"LOOPKIT_TEST_FLAG": str(flag)}
    host = ("--host", "127.0.0.1")
    with contextlib.ExitStack() as opened:
        command = (
            sys.executable,
            "-m",
            "distributed.cli.dask_scheduler",
            *host,
            "--port",
            "0",
            "--no-dashboard",
        )
        _, address = opened.enter_context(running(*command, env=env))
        worker = (
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            address,
            *host,
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
        )
        workers = [opened.enter_context(running(*worker, env=env))[0] for _ in range(2)]
        yield address, workers, flag


def write(folder, seeds):
    real = nbformat.read(REAL, as_version=4)
    cells = [cell for cell in real.cells if "parameters" in cell.metadata.get("tags", [])]
    made = nbformat.v4.new_notebook(metadata=real.metadata, cells=[*cells, nbformat.v4.new_code_cell(CODE)])
    nbformat.write(made, folder / "plain.ipynb")
    grid = [{"arm": "clauses", "model": "simulated:oracle", "people": 2, "count": 5, "seed": seeds}]
    data = {"experiment": "knights", "notebook": "plain.ipynb", "question": "Who is what?", "grid": grid}
    (folder / "far.yaml").write_text(yaml.safe_dump(data))
    return folder / "far.yaml"


def start(file, address):
    command = [
        sys.executable,
        "-m",
        "loopkit",
        "batch",
        str(file),
        "--out",
        str(file.parent / "out"),
        "--dask",
        address,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def hanging(process, flag):
    """The process of the cluster's worker over which the notebook with seed 1 hangs, once it does."""
    deadline = time.monotonic() + 240
    while not flag.read_text():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    kernel = psutil.Process(int(flag.read_text()))
    return kernel, kernel.parent().parent()


def test_a_lost_worker_is_replaced_and_everything_comes_home(cluster, tmp_path):
    address, workers, flag = cluster
    flag.write_text("")
    file = write(tmp_path, [1, 2, 3, 4])
    process = start(file, address)
    kernel, lost = hanging(process, flag)
    flag.unlink()
    assert lost.pid in {worker.pid for worker in workers}
    lost.kill()
    said = process.communicate(timeout=240)
    assert process.returncode == 0, said
    kernel.wait(20)
    out = tmp_path / "out"
    keys = [key for cell in expand(load_spec(file)) for key in cell.keys]
    runs = list(Store(out / "records").runs())
    assert sorted(run.params["trial"] for run in runs) == sorted(keys)
    assert {run.first("trial")["result"] for run in runs} == {"correct"}
    notebooks = list((out / "notebooks").glob("*.ipynb"))
    assert len(notebooks) == 4
    assert all("executed by" in path.read_text() for path in notebooks)
    ended = [event for event in read_events(out / "status.jsonl") if event["event"] == "cell"]
    assert {event["status"] for event in ended} == {"done"}


def test_an_ended_batch_ends_its_notebooks_on_the_cluster(cluster, tmp_path):
    address, _, flag = cluster
    flag.write_text("")
    process = start(write(tmp_path, [1]), address)
    kernel, _ = hanging(process, flag)
    process.terminate()
    said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    kernel.wait(20)


def test_no_cluster(tmp_path):
    process = start(write(tmp_path, [1]), "tcp://127.0.0.1:9")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "no Dask scheduler answers at 'tcp://127.0.0.1:9'" in said
    assert "Traceback" not in said
