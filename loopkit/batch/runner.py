"""Runs a batch: each cell's notebook in a worker process, a status for each, then the summary and the report.

The folder of a batch holds `records/` (the truth: one log per trial), `status.jsonl` (the runner's own log, also the
lock that keeps a second batch out), `notebooks/` and `logs/` (one per cell), and what is derived from the
records: `summary.json`, `report.html`.
"""

import asyncio
import contextlib
import json
import os
import platform
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import loopkit
from loopkit.batch.spec import BatchSpec, Cell, expand
from loopkit.batch.summary import Row, summarise, trial_rows
from loopkit.store import RunLog, RunTaken, Store, StoreError, read_events


@dataclass(frozen=True, kw_only=True)
class BatchOutcome:
    """What `run_batch` returns. `complete` is false when a notebook or a trial could not run; `problems` says which."""

    summary: Row
    problems: tuple[str, ...]
    out: Path

    @property
    def complete(self) -> bool:
        return not self.problems


async def run_batch(
    spec: BatchSpec, out: Path, *, name: str, command: str, workers: int | None = None
) -> BatchOutcome:
    """Run what is missing of a batch, `workers` notebooks at a time (default: 2, or 1 on a single core).

    Everything is checked before the first kernel starts. Interrupting leaves a batch that the same call continues.
    Raises SpecError for a batch that cannot be run, StoreError when `out` cannot be written or another batch runs there.
    """
    cells = expand(spec)
    out = out.resolve()
    store = Store(out / "records")
    for folder in (store.folder, out / "notebooks", out / "logs"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot create {folder}: {error.strerror}") from error
    try:
        status = RunLog(out / "status.jsonl")
    except RunTaken as error:
        raise StoreError(
            f"another batch is running in {out}; wait for it, or choose another --out"
        ) from error
    with status:
        status.open(
            "batch", name=name, command=command, claims=spec.claims, cells=[cell.id for cell in cells]
        )
        todo = _missing(cells, store, spec, out)
        failed = await _run_cells(todo, spec, out, store, status, workers or min(2, os.cpu_count() or 1))
        keys = [key for cell in cells for key in cell.keys]
        trials = trial_rows(store, keys)
        problems = (*failed, *_problems(cells, trials))
        summary = summarise(spec, trials, name=name, provenance=_provenance(command, out))
        summary["problems"] = list(problems)
        _write(out / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False))
        from loopkit.views import write_report

        write_report(out / "report.html", summary, trials, examples=_examples(store, trials))
    return BatchOutcome(summary=summary, problems=problems, out=out)


def _missing(cells: Sequence[Cell], store: Store, spec: BatchSpec, out: Path) -> list[Cell]:
    """Cells with a trial that is not settled, or whose notebook was never executed to its end as it is now."""
    done = {
        event["cell"]
        for event in read_events(out / "status.jsonl")
        if event["event"] == "cell"
        and event["status"] == "done"
        and event["notebook"] == _digest(spec.notebook)
    }
    settled = {
        row["trial"]
        for row in trial_rows(store, [key for cell in cells for key in cell.keys])
        if row["result"] != "error"
    }
    return [cell for cell in cells if cell.id not in done or not settled.issuperset(cell.keys)]


async def _run_cells(
    cells: Sequence[Cell], spec: BatchSpec, out: Path, store: Store, status: RunLog, workers: int
) -> list[str]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    problems: list[str] = []
    free = asyncio.Semaphore(workers)
    # Several workers share the cores: one thread each beats all threads for all, which would wait for each other.
    threads = os.environ.get("LOOPKIT_THREADS") or str(max(1, (os.cpu_count() or 1) // workers))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trials"),
        TimeElapsedColumn(),
    )

    async def one(cell: Cell) -> None:
        async with free:
            bar = progress.add_task(cell.id, total=len(cell.keys))
            worker = asyncio.create_task(_run_cell(cell, spec, out, threads))
            try:
                while not worker.done():
                    progress.update(bar, completed=_started(cell, store))
                    await asyncio.wait([worker], timeout=0.5)
            finally:
                worker.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await worker
            ended = worker.result()
            progress.update(bar, completed=_started(cell, store))
            status.append("cell", cell=cell.id, params=cell.params, notebook=_digest(spec.notebook), **ended)
            status.sync()
            if ended["status"] != "done":
                where = out / "notebooks" / f"{cell.id}.ipynb"
                problems.append(f"{cell.id}: notebook {ended['status']}: {ended['detail']} (see {where})")
                progress.console.print(f"[red]✗[/red] {problems[-1]}", highlight=False)

    with Progress(*columns, console=Console(stderr=True)) as progress:
        try:
            async with asyncio.TaskGroup() as group:
                for cell in cells:
                    group.create_task(one(cell))
        except ExceptionGroup as several:  # the record cannot be written: one cell's word is enough
            raise several.exceptions[0] from None
    return problems


def _started(cell: Cell, store: Store) -> int:
    return sum(store.path(key).exists() for key in cell.keys)


async def _run_cell(cell: Cell, spec: BatchSpec, out: Path, threads: str) -> dict[str, str]:
    job = {
        "notebook": str(spec.notebook.resolve()),
        "output": str(out / "notebooks" / f"{cell.id}.ipynb"),
        "parameters": cell.params | {"out": str(out)},
        "timeout": spec.timeout,
        "cwd": str(spec.notebook.resolve().parent),
    }
    with _open_log(out / "logs" / f"{cell.id}.log") as log:
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "loopkit.batch.worker", str(os.getpid())),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env=os.environ | {"LOOPKIT_THREADS": threads},
            start_new_session=True,  # Ctrl-C reaches the runner, which ends its workers in order
        )
        try:
            stdout, _ = await worker.communicate(json.dumps(job).encode())
        except asyncio.CancelledError:
            await _end(worker)
            raise
    last = stdout.decode("utf-8", "replace").strip().rpartition("\n")[2]
    try:
        return json.loads(last)
    except ValueError:
        how = f"signal {-worker.returncode}" if worker.returncode < 0 else f"exit code {worker.returncode}"
        return {"status": "dead_worker", "detail": f"the worker process ended with {how} and no report"}


def _open_log(path: Path) -> BinaryIO:
    try:
        return path.open("ab")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error


async def _end(worker: asyncio.subprocess.Process) -> None:
    """Ask the worker to stop (it takes its kernel along); after 5 seconds, insist."""
    with contextlib.suppress(ProcessLookupError):
        worker.terminate()
    try:
        await asyncio.wait_for(worker.wait(), 5)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        await worker.wait()


def _problems(cells: Sequence[Cell], trials: Sequence[Row]) -> list[str]:
    """Each trial that could not run, and how many have no record at all, by cell."""
    rows = {row["trial"]: row for row in trials}
    problems = []
    for cell in cells:
        for key in cell.keys:
            row = rows.get(key)
            if row and row["result"] == "error":
                problems.append(
                    f"{cell.id}: item {row['item']} could not run: {row['kind']}: {row['detail']}"
                )
        if absent := sum(key not in rows for key in cell.keys):
            problems.append(f"{cell.id}: {absent} of {len(cell.keys)} trials have no result")
    return problems


def _examples(store: Store, trials: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The runs that say most about how the loop converges: those that took the most turns, up to three."""
    longest = sorted(trials, key=lambda row: (-row["iterations"], row["run"]))[:3]
    return [store.run(row["run"]) for row in longest if row["iterations"] > 1]


def _provenance(command: str, out: Path) -> dict[str, str]:
    from importlib.metadata import version

    return {
        "command": command,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "loopkit": loopkit.__version__,
        **{package: version(package) for package in ("pydantic-ai-slim", "xllamacpp", "papermill")},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:12]


def _write(path: Path, text: str) -> None:
    """Replace a derived file in one step, so that a reader never sees half of it."""
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
