"""What the batch executor is worth: short notebooks beside plain papermill in a loop, and a warm kernel beside a fresh one.

Both execute the same notebook with the same parameters, which imports what our notebooks import and plays one trial of a
simulated model. papermill does so in one process, one notebook after the other, as its manual shows; `loopkit batch` is
the whole command, with its start, its summary and its report. Then a batch of many, to see whether something adds up.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import yaml

REAL = Path(__file__).parents[2] / "notebooks" / "02_constraint_solving.ipynb"
CODE = """\
import pandas as pd
import plotly.graph_objects as go
import ipywidgets
import pydantic_ai
from loopkit import views
from experiments.knights import Params, run

_ = await run(Params(arm=arm, model=model, people=people, count=count, seed=seed), out)
"""
PARAMETERS = {"arm": "clauses", "model": "simulated:oracle", "people": 2, "count": 1}


def write(folder: Path, count: int) -> Path:
    """A batch of `count` notebooks that differ in their seed; the path of its file."""
    real = nbformat.read(REAL, as_version=4)
    cells = [cell for cell in real.cells if "parameters" in cell.metadata.get("tags", [])]
    made = nbformat.v4.new_notebook(metadata=real.metadata, cells=[*cells, nbformat.v4.new_code_cell(CODE)])
    nbformat.write(made, folder / "short.ipynb")
    grid = [PARAMETERS | {"seed": list(range(1, count + 1))}]
    data = {"experiment": "knights", "notebook": "short.ipynb", "question": "How long?", "grid": grid}
    (folder / "short.yaml").write_text(yaml.safe_dump(data))
    return folder / "short.yaml"


def command(file: Path, out: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "loopkit", "batch", str(file), "--out", str(out), *arguments]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what kernels say on standard error (that they speak TCP) out of the table."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def play_plain(folder: Path, count: int) -> float:
    """Seconds for the notebooks through papermill alone."""
    import papermill

    started = time.perf_counter()
    for seed in range(1, count + 1):
        papermill.execute_notebook(
            folder / "short.ipynb",
            folder / f"plain-{seed}.ipynb",
            parameters=PARAMETERS | {"seed": seed, "out": str(folder / "plain")},
            progress_bar=False,
        )
    return time.perf_counter() - started


def play_batch(file: Path, out: Path, count: int, *arguments: str) -> float:
    """Seconds for the same as a batch."""
    started = time.perf_counter()
    done = subprocess.run(command(file, out, *arguments), capture_output=True, text=True)
    seconds = time.perf_counter() - started
    rows = json.loads((out / "summary.json").read_text())["rows"]
    if done.returncode or sum(row["n"] for row in rows) != count:
        raise SystemExit(f"the batch went wrong:\n{done.stdout}{done.stderr}")
    return seconds


def compare(folder: Path, count: int) -> None:
    file = write(folder, count)
    with quiet():
        plain = play_plain(folder, count)
    print(f"{count} notebooks{'':12}{'seconds':>9}{'each':>7}{'ratio':>7}")
    print(f"{'plain papermill':24}{plain:9.1f}{plain / count:7.2f}{1:7.1f}")
    for name, arguments in {"loopkit batch": (), "loopkit batch --cold": ("--cold",)}.items():
        seconds = play_batch(file, folder / name.replace(" ", ""), count, *arguments)
        print(f"{name:24}{seconds:9.1f}{seconds / count:7.2f}{plain / seconds:7.1f}", flush=True)


async def first_answer(provisioner: str, address: str | None) -> float:
    """Seconds from starting a kernel to the end of a cell that imports."""
    from jupyter_client import AsyncKernelManager
    from jupyter_client.provisioning import KernelProvisionerFactory

    from loopkit.batch.warm import FORGE

    KernelProvisionerFactory.instance().default_provisioner_name = provisioner
    os.environ.pop(FORGE, None)
    os.environ |= {FORGE: address} if address else {}
    started = time.perf_counter()
    manager = AsyncKernelManager(kernel_name="python3")
    await manager.start_kernel()
    client = manager.client()
    client.start_channels()
    await client.wait_for_ready(timeout=60)
    reply = await client.execute_interactive(CODE.partition("\n\n")[0], timeout=60)
    seconds = time.perf_counter() - started
    client.stop_channels()
    await manager.shutdown_kernel(now=True)
    if reply["content"]["status"] != "ok":
        raise SystemExit(f"a kernel went wrong: {reply['content']}")
    return seconds


async def kernels(rounds: int) -> None:
    """Start to first answer, warm and fresh kernels in turn."""
    from loopkit.batch.warm import Forge

    times: dict[str, list[float]] = {"warm kernel": [], "fresh kernel": []}
    with tempfile.TemporaryFile() as log:
        async with Forge("knights", REAL, env=os.environ, log=log) as forge:
            address = await forge.address()
            for _ in range(rounds):
                times["warm kernel"].append(await first_answer("loopkit", address))
                with quiet():
                    times["fresh kernel"].append(await first_answer("local-provisioner", None))
    print(f"\nstart to first answer{'':3}{'kernels':>9}{'p50 s':>7}{'max s':>7}")
    for name, seconds in times.items():
        print(f"{name:24}{len(seconds):9}{statistics.median(seconds):7.2f}{max(seconds):7.2f}", flush=True)


def forge_of(pid: int) -> int | None:
    """The process below `pid` that forks kernels, once there is one."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return next(
            (
                int(one)
                for one in children
                if b"loopkit.batch.forge" in Path(f"/proc/{one}/cmdline").read_bytes()
            ),
            None,
        )
    except OSError:
        return None


def resident(pid: int | None) -> float:
    """MiB, 0 for a process that is not there."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return (
        int(next((line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")), "0")) / 1024
    )


def many(folder: Path, count: int) -> None:
    """A long batch: memory of its runner and its forge by quarters, and what is left afterwards."""
    file, out, mark = write(folder, count), folder / "many", f"LOOPKIT_BENCH={os.getpid()}"
    temporary = folder / "tmp"
    temporary.mkdir()
    env = os.environ | {"TMPDIR": str(temporary), "LOOPKIT_BENCH": str(os.getpid())}
    batch = subprocess.Popen(
        command(file, out), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    print(f"\n{'of ' + str(count):>10}{'runner MiB':>12}{'forge MiB':>11}")
    quarter = 1
    while batch.poll() is None:
        ended = len(list((out / "notebooks").glob("*.ipynb")))
        if ended * 4 >= quarter * count:
            print(f"{ended:10}{resident(batch.pid):12.1f}{resident(forge_of(batch.pid)):11.1f}", flush=True)
            quarter += 1
        time.sleep(0.2)
    rows = json.loads((out / "summary.json").read_text())["rows"]
    left = [
        path.parent.name for path in Path("/proc").glob("[0-9]*/environ")
        if mark.encode() in read(path) and path.parent.name != str(os.getpid())
    ]  # fmt: skip
    print(f"{count} notebooks, {sum(row['correct'] for row in rows)} right; left: {len(left)} processes, "
          f"{len(list(temporary.iterdir()))} temporary files")  # fmt: skip


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a sixth of the notebooks")
    quick = parser.parse_args().quick
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), 4 if quick else 24)
    asyncio.run(kernels(3 if quick else 10))
    if sys.platform.startswith("linux"):
        with tempfile.TemporaryDirectory() as folder:
            many(Path(folder), 32 if quick else 200)


if __name__ == "__main__":
    main()
