"""Judges on labelled texts: which of them may stop a loop?

params = Params(arm="hybrid", model="embedded", count=10)
results = await run(params, out="runs/explore")
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from loopkit.batch.cells import CellParams, play_cell
from loopkit.batch.trials import LOOP, Result, Trial, code_version, unsolved
from loopkit.judges import Labelled, load_labelled
from loopkit.log import encode
from loopkit.loop import Outcome
from loopkit.models import fingerprint
from loopkit.store import RunLog

from .arms import MODEL_FREE, Arm, make, make_judge
from .planting import LABELLED

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LABELLED", "Params", "items", "run", "trials"]


class Params(CellParams):
    """One cell of the batch: a judge on some labelled texts."""

    arm: Arm = "hybrid-veto"
    """`never`, `words`, `checks` (no model), `judge` (a model alone), `hybrid` (checks and model), `hybrid-veto`."""
    count: int = Field(default=20, ge=1, le=10_000)
    """How many texts, drawn from the labelled ones in an order that is shuffled once and for all."""
    calibrated: int = Field(default=6, ge=1, le=10_000)
    """How many of these the notebook calibrates the model on. The trials do not depend on it."""
    threshold: float = Field(default=0.8, gt=0, le=1)
    """The score from which a text is accepted."""


def items(params: Params) -> list[Labelled]:
    """The texts that `params` stand for. Raises LabelError for a file with bad lines."""
    if params.data:
        return load_labelled(params.data)
    shipped = load_labelled(LABELLED)
    return sorted(shipped, key=lambda one: hashlib.sha256(one.id.encode()).digest())[: params.count]


def trials(params: Params) -> list[Trial]:
    """One trial per text: a loop of a single turn, in which the judge opens the threshold or does not."""
    code = code_version(__name__, *LOOP, "loopkit.models", "loopkit.judges")
    model = "none" if params.arm in MODEL_FREE else params.model
    weights = None if model == "none" else fingerprint(model)

    def trial(item: Labelled) -> Trial:
        async def run(log: RunLog) -> Outcome:
            judge = _judge(params.arm, params.model)
            return await make(item, judge, params.threshold).run(item.goal, log=log)

        return Trial(
            params={
                "experiment": "judging",
                "arm": params.arm,
                "model": params.model,
                "weights": weights,
                "item": item.id,
                "threshold": params.threshold,
                "accept": item.accept,
                "label": item.score,
                "defect": defect(item),
                "injection": any("injection" in one.kind for one in item.defects),
                "text": item.main,
                "package": hashlib.sha256(encode(item)).hexdigest()[:16],
            },
            code=code,
            run=run,
            grade=lambda outcome: grade(outcome, item),
        )

    return [trial(item) for item in items(params)]


def defect(item: Labelled) -> str:
    """`none`, `deterministic` (code can find it), `semantic` (it takes understanding)."""
    if not item.defects:
        return "none" if item.accept else "semantic"
    return "deterministic" if any(one.deterministic for one in item.defects) else "semantic"


async def run(params: Params, out: str | Path, on_done: Callable[[], None] | None = None) -> pd.DataFrame:
    """Play all trials that have no result in `out` yet; return one row per trial, in the order of the texts."""
    return await play_cell(params, trials(params), out, on_done)


def grade(outcome: Outcome, item: Labelled) -> Result:
    """Right if the judge accepts what its label accepts, and rejects the rest.

    A judge that answered nothing of use has `failed`; one that could not be asked is an `error`, and no finding.
    """
    if result := unsolved(outcome):
        return result
    verdict = outcome.best.verdict
    accepted = outcome.stopped_by.gate == "Threshold"
    measures = {
        "accepted": accepted,
        "score": verdict.score,
        "inflation": verdict.score - item.score,
        "voids": len(verdict.voids),
        "barred": bool(verdict.barred) and not verdict.fallback,
    }
    if verdict.fallback == "error":
        return Result(result="error", kind="judge", detail=verdict.barred)
    if verdict.fallback:
        kind = "void" if verdict.voids else "useless"
        return Result(result="failed", kind=kind, detail=verdict.barred, measures=measures)
    said = f"{'accepted' if accepted else 'rejected'} at {verdict.score:.2f}, labelled {item.score:.2f}"
    return Result(result="correct" if accepted == item.accept else "wrong", detail=said, measures=measures)


# One judge for all trials of a process, so that they share what is loaded.
_judge = lru_cache(maxsize=8)(make_judge)
