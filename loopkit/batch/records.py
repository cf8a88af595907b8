"""What a batch's folder holds, read again: its trials as a frame, its report."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopkit.batch.status import RECORDS, STATUS, BatchRecord, read_batch
from loopkit.batch.summary import Row, attempts, longest, settle, summarise, trial_rows
from loopkit.export import to_frame
from loopkit.store import DAMAGED, Store, StoreError, flat

if TYPE_CHECKING:
    import pandas as pd


def trials_df(*folders: str | Path, every: bool = False) -> "pd.DataFrame":
    """One row per trial that has ended in the batches in `folders`: `folder`, the run that counts, the trial's
    parameters, result, kind and detail, iterations, stopped_by, tokens, seconds, when it `ended`, and its measures.

    Retries are resolved as the summary resolves them (`trial_rows`). The trials are those of the batch as it was last
    begun; `every` takes all on record, also those of earlier code or other parameters. A folder in which trials were
    played without a batch gives all of its trials. Only logs that changed since they were last read are read. Raises
    StoreError for a folder without records, and for a damaged log, by its name.
    """
    rows = []
    for folder in map(Path, folders):
        store = Store(folder / RECORDS)
        if not store.folder.is_dir():
            raise StoreError(
                f"no records in {folder}: name a folder that a batch, or an experiment's run, wrote"
            )
        keys = None if every or not (folder / STATUS).exists() else read_batch(folder).keys
        rows += [{"folder": str(folder)} | flat(row) for row in trial_rows(store, keys)]
    return to_frame(rows)


@dataclass(frozen=True, kw_only=True)
class Rewritten:
    """A report that was written again."""

    path: Path
    batch: BatchRecord
    trials: list[Row]
    """Those that have ended, as the page lists them."""
    damaged: tuple[str, ...]
    """What is wrong with each log that cannot be believed; its trial counts nowhere."""


def rewrite_report(folder: str | Path) -> Rewritten:
    """Write `report.html` of the batch in `folder` again, from its log and its records.

    A batch that still runs, or was interrupted, has a report too, which says so and counts the trials that have ended.
    Damaged records are named in it. Raises StoreError when there is no batch, its own log is damaged, or it was begun
    by a loopkit that did not record yet what this takes; OSError when the report cannot be written.
    """
    from loopkit.views import write_report

    batch = read_batch(folder)
    store = Store(batch.folder / RECORDS)
    runs = store.rows(attempts(store, batch.keys), strict=False)
    trials = settle(runs)
    damaged = tuple(run["problem"] for run in runs if run["status"] == DAMAGED)
    summary = summarise(batch, trials, name=batch.name, provenance=batch.provenance, declared=batch.declared)
    summary |= {"damaged": damaged} | _progress(batch, trials)
    path = write_report(batch.folder / "report.html", summary, trials, examples=longest(store, trials))
    # If it ended meanwhile, this page may stand in place of its last.
    if read_batch(folder).state != batch.state:
        return rewrite_report(folder)
    return Rewritten(path=path, batch=batch, trials=trials, damaged=damaged)


def _progress(batch: BatchRecord, trials: list[Row]) -> dict[str, Any]:
    """What the page says of a batch that is not finished; of one that is, what did not come to its end."""
    ended = [trial["trial"] for trial in trials]
    if batch.state == "finished":
        return {"problems": [*batch.failed, *batch.absent(ended)]}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    how_far = {"state": batch.state, "ended": len(ended), "planned": len(batch.keys), "at": now}
    return {"problems": batch.failed, "progress": how_far}
