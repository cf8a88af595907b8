"""Which runs there are: one frame over all stores below a folder."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from loopkit.export import to_frame
from loopkit.log import StoreError
from loopkit.store import Store, flat

if TYPE_CHECKING:
    import pandas as pd


def runs_df(*folders: str | Path) -> "pd.DataFrame":
    """One row per run recorded at or below `folders` (default: `runs`): its `store`, then what `Store.runs_df` tells.

    Stores are in the order of their paths, the runs of each in that of their ids. Always works: a damaged log is a row
    too, with status `damaged` and the reason under `problem`. Raises StoreError for a folder that is not there.
    """
    return to_frame(
        [
            {"store": str(store.folder)} | flat(row)
            for folder in folders or ("runs",)
            for store, runs in _stores(Path(folder))
            for row in store.rows(runs, strict=False)
        ]
    )


def _stores(folder: Path) -> Iterator[tuple[Store, list[str]]]:
    """The stores at or below `folder`, with the runs of each. Hidden folders are passed over."""
    if not folder.is_dir():
        raise StoreError(f"no folder {folder}: name one that runs were recorded in")
    for path, inner, _ in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        store = Store(path)
        # A batch's own log stands beside the folder of its records, and is no run.
        batch = "records" in inner
        if runs := [run for run in store.ids() if not (batch and run == "status")]:
            yield store, runs
