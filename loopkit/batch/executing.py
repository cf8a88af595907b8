"""Executing the notebooks of a batch: several at a time, tried again where that may help."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

from loopkit.batch.board import Board
from loopkit.batch.plan import Planned, notebook_digest
from loopkit.batch.spec import BatchSpec, Cell
from loopkit.store import RunLog, StoreError


class Hands(Protocol):
    """What executes notebooks, one call each: `loopkit.batch.local`, or `loopkit.batch.cluster`."""

    at_once: int
    """Calls that it takes at a time."""

    async def execute(self, cell: Cell) -> dict[str, str]:
        """Execute the cell's notebook; return its `status`, and a `detail` if that is not `done`."""


async def execute(
    planned: Sequence[Planned],
    spec: BatchSpec,
    out: Path,
    status: RunLog,
    board: Board,
    opening: AbstractAsyncContextManager[Hands],
) -> list[str]:
    """Run the notebooks; return what went wrong, a sentence each.

    How each began and ended is appended to `status`. Raises StoreError when a record cannot be written, and when the
    disk is full: what has not begun then would only fail as well.
    """
    problems: list[str] = []
    async with opening as hands:
        free = asyncio.Semaphore(hands.at_once)

        async def one(cell: Cell) -> None:
            async with free:
                how = await _until_settled(cell, spec, hands, status, board)
            if how["status"] != "done":
                where = out / "notebooks" / f"{cell.id}.ipynb"
                problems.append(f"{cell.id}: notebook {how['status']}: {how['detail']} (see {where})")

        try:
            async with asyncio.TaskGroup() as group:
                for each in planned:
                    group.create_task(one(each.cell))
        except ExceptionGroup as several:  # of a record that cannot be written one cell's word is enough
            raise several.exceptions[0] from None
    return problems


async def _until_settled(
    cell: Cell, spec: BatchSpec, hands: Hands, status: RunLog, board: Board
) -> dict[str, Any]:
    """Execute a notebook, and again as often as the kind of its failure deserves."""
    failures: Counter[str] = Counter()
    while True:
        attempt = failures.total() + 1
        status.append("begin", cell=cell.id, attempt=attempt)
        status.sync()
        board.begin(cell, attempt)
        started, digest = time.monotonic(), notebook_digest(spec.notebook)
        how = await hands.execute(cell)
        kind = how["status"]
        failures[kind] += 1
        again = kind != "done" and failures[kind] <= spec.retries.get(kind, 0)
        board.end(cell, how, again=again)
        seconds = round(time.monotonic() - started, 3)
        status.append(
            "cell", cell=cell.id, params=cell.params, notebook=digest, seconds=seconds, attempt=attempt, **how
        )
        status.sync()
        if kind == "disk_full":
            raise StoreError(
                f"{cell.id}: {how['detail']}; make room, then the same command goes on from here"
            )
        if not again:
            return how
