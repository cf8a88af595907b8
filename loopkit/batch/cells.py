"""What experiments have in common: the parameters of a cell, and its trials played into a frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from loopkit.batch.summary import trial_rows
from loopkit.batch.trials import Trial, play
from loopkit.models import check_id
from loopkit.store import Store, flat

if TYPE_CHECKING:
    import pandas as pd


class CellParams(BaseModel):
    """The parameters of one cell of a batch: an experiment's `Params` adds its `arm` and what else it takes."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    model: str = "embedded"
    """`embedded`, `simulated:…`, or any id of pydantic-ai such as `openai:gpt-5-mini`."""
    data: str | None = None
    """A JSONL file of items to use, all of them, instead of the experiment's own."""

    @field_validator("*", mode="before")
    @classmethod
    def _number(cls, value: Any, info: ValidationInfo) -> Any:
        annotation = cls.model_fields[info.field_name].annotation
        if isinstance(value, bool) and int in (annotation, *get_args(annotation)):
            raise ValueError("must be a number")  # YAML's `yes` would count as 1
        return value

    @field_validator("model")
    @classmethod
    def _model(cls, value: str) -> str:
        return check_id(value)

    @field_validator("data")
    @classmethod
    def _data(cls, value: str | None) -> str | None:
        if value is None:
            return None
        path = Path(value).expanduser().resolve()
        if not path.is_file():
            raise ValueError(f"no such file: {path}")
        return str(path)

    @property
    def parallel(self) -> int:
        """Trials to play at a time. The embedded model computes on all cores for one; a second would only wait."""
        return 1 if self.model == "embedded" else 4


async def play_cell(
    params: CellParams, trials: Sequence[Trial], out: str | Path, on_done: Callable[[], None] | None = None
) -> pd.DataFrame:
    """Play those of a cell's trials that have no result in `out` yet; return one row per trial, in their order.

    `on_done` is called after each. The columns are those of `trial_rows`, and one for each measure.
    """
    import pandas as pd

    store = Store(Path(out) / "records")
    await play(trials, store, parallel=params.parallel, on_done=on_done)
    rows = {row["trial"]: row for row in trial_rows(store, [trial.key for trial in trials])}
    return pd.DataFrame([flat(rows[trial.key]) for trial in trials])
