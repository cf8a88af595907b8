"""What a batch has to do, and why: the cells of the grid, held against what is on record."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from loopkit.batch.spec import BatchSpec, Cell, SpecError
from loopkit.batch.summary import trial_rows
from loopkit.store import Store, read_events


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which cells of a batch to look at; by default all."""

    only: tuple[str, ...] = ()
    """Any of these: a pattern for the cell's name (`clauses-*`), or `parameter=value`."""
    failed: bool = False
    """Those whose notebook, or one of whose trials, could not run last time."""
    shard: tuple[int, int] | None = None
    """`(i, n)`: the i-th of n parts, counted from 1. The parts are disjoint, and together all there is."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A cell, and what is to be done about it."""

    cell: Cell
    missing: int
    """How many of its trials have no result."""
    reason: str
    """Why its notebook has to run; empty if it has not."""
    failed: bool
    """Whether it, or one of its trials, could not run last time."""


ALL = Choice()


def choose(cells: Sequence[Cell], choice: Choice) -> list[Cell]:
    """Those of a batch's cells that `only` and `shard` ask for. Raises SpecError when there is none."""
    fitting = [cell for cell in cells if _fits(cell, choice.only)]
    if not fitting:
        raise SpecError(
            f"no notebook is {_listed(map(repr, choice.only))}; there are {_listed(cell.id for cell in cells)}"
        )
    if choice.shard is None:
        return fitting
    part, parts = choice.shard
    if not 1 <= part <= min(parts, len(fitting)):
        raise SpecError(f"shard {part}/{parts} of {len(fitting)} notebooks is empty")
    return fitting[part - 1 :: parts]


def plan(cells: Sequence[Cell], spec: BatchSpec, out: Path, *, failed: bool = False) -> list[Planned]:
    """The cells in their order; those with a `reason` have to run. With `failed`, only those that could not run.

    Reads, and writes nothing. Raises StoreError for a record that cannot be read.
    """
    ended, begun = _past(out / "status.jsonl")
    trials = trial_rows(Store(out / "records"), [key for cell in cells for key in cell.keys])
    results = {row["trial"]: row["result"] for row in trials}
    digest = notebook_digest(spec.notebook)
    planned = [_planned(cell, results, ended.get(cell.id), cell.id in begun, digest) for cell in cells]
    return [one for one in planned if one.failed or not failed]


def notebook_digest(path: Path) -> str:
    """12 hex digits over the notebook's file."""
    return sha256(path.read_bytes()).hexdigest()[:12]


def _planned(
    cell: Cell, results: Mapping[str, str], last: Mapping[str, Any] | None, begun: bool, digest: str
) -> Planned:
    missing = sum(key not in results for key in cell.keys)
    errors = sum(results.get(key) == "error" for key in cell.keys)
    reasons = []
    if begun:
        reasons.append("was interrupted")
    elif last is None:
        reasons.append("never run")
    elif last["status"] != "done":
        reasons.append(f"ended as {last['status']} last time")
    elif last["notebook"] != digest:
        reasons.append("the notebook has changed")
    elif missing == len(cell.keys):
        reasons.append("code or data have changed")
    if missing and last is not None:
        reasons.append(f"{missing} of {len(cell.keys)} trials have no result")
    if errors:
        reasons.append(f"{errors} of {len(cell.keys)} trials could not run")
    failed = bool(errors or (last and last["status"] != "done"))
    return Planned(cell=cell, missing=missing + errors, reason="; ".join(reasons), failed=failed)


def _past(path: Path) -> tuple[dict[str, Mapping[str, Any]], set[str]]:
    """How each cell ended last, and the cells that began and have not ended since."""
    ended: dict[str, Mapping[str, Any]] = {}
    begun: set[str] = set()
    for event in read_events(path) if path.exists() else ():
        if event["event"] == "begin":
            begun.add(event["cell"])
        elif event["event"] == "cell":
            ended[event["cell"]] = event
            begun.discard(event["cell"])
    return ended, begun


def _fits(cell: Cell, patterns: Sequence[str]) -> bool:
    def fits(pattern: str) -> bool:
        name, equals, value = pattern.partition("=")
        if equals and name in cell.params:
            return str(cell.params[name]) == value
        return fnmatchcase(cell.id, pattern)

    return not patterns or any(map(fits, patterns))


def _listed(words: Iterable[str]) -> str:
    first = list(words)
    return ", ".join(first if len(first) <= 8 else [*first[:8], f"{len(first) - 8} more"])
