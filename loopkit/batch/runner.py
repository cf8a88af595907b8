"""Runs a batch: each cell's notebook in a worker process, a status for each, then the summary and the report.

The folder of a batch holds `records/` (the truth: one log per trial), `status.jsonl` (the runner's own log, also the
lock that keeps a second batch out), `notebooks/` and `logs/` (one per cell), and what is derived from the
records: `summary.json`, `report.html`.
"""

import asyncio
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import loopkit
from loopkit.batch.board import Board
from loopkit.batch.cluster import cluster_hands
from loopkit.batch.executing import execute
from loopkit.batch.local import local_hands
from loopkit.batch.plan import ALL, Choice, choose, plan
from loopkit.batch.spec import BatchSpec, Cell, expand
from loopkit.batch.status import opening, read_batch, record_summary
from loopkit.batch.summary import Row, longest, summarise, trial_rows
from loopkit.store import RunLog, RunTaken, Store, StoreError

SUMMING_UP = ("scipy.stats", "loopkit.views.report")
"""Loaded while notebooks run: the summary and the report need them, and importing them takes longer than a short notebook."""


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
    spec: BatchSpec,
    out: Path,
    *,
    name: str,
    command: str,
    workers: int | None = None,
    choice: Choice = ALL,
    warm: bool = True,
    dask: str | None = None,
) -> BatchOutcome:
    """Run what is missing of a batch, `workers` notebooks at a time (default: 2, or 1 on a single core).

    Everything is checked before the first kernel starts. Interrupting leaves a batch that the same call continues.
    With a `choice` the other cells are left as they are; the summary counts all that is on record. `warm` starts
    kernels as forks of a loaded process, where that can be done (on Linux). `dask` is the address of a scheduler whose
    workers execute the notebooks instead.
    Raises SpecError for a batch or a cluster that cannot be run, StoreError when `out` cannot be written or another batch runs there.
    """
    cells = expand(spec)
    chosen = choose(cells, choice)
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
        planned = plan(chosen, spec, out, failed=choice.failed)
        todo = [one for one in planned if one.reason]
        status.open("batch", **opening(spec, cells, name=name, command=command))
        failed: list[str] = []
        if todo:
            with Board(todo, store) as board:
                workers = workers or min(2, os.cpu_count() or 1)
                if dask:
                    hands = cluster_hands(spec, out, dask)
                else:
                    hands = local_hands(spec, out, todo, workers=workers, warm=warm)
                failed, *_ = await asyncio.gather(
                    execute(todo, spec, out, status, board, hands),
                    *(asyncio.to_thread(import_module, name) for name in SUMMING_UP),
                )
        trials = trial_rows(store, [key for cell in cells for key in cell.keys])
        problems = (*failed, *_problems([one.cell for one in planned], trials))
        summary = summarise(
            spec, trials, name=name, provenance=_provenance(command, out), declared=read_batch(out).declared
        )
        left = len(cells) - len(planned)
        summary["problems"] = [
            *problems,
            *([f"{left} of {len(cells)} notebooks were not asked for"] if left else []),
        ]
        _write(out / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False))
        record_summary(status, summary)
        from loopkit.views import write_report

        write_report(out / "report.html", summary, trials, examples=longest(store, trials))
    return BatchOutcome(summary=summary, problems=problems, out=out)


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


def _write(path: Path, text: str) -> None:
    """Replace a derived file in one step, so that a reader never sees half of it."""
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
