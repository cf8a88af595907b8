"""Knights and knaves (experiment 5-4): does a code solver lift a weak model's logic above 90 %?

params = Params(arm="clauses", model="embedded", people="2-5", count=10)
results = await run(params, out="runs/explore")
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator, model_validator

from loopkit.batch.cells import CellParams, play_cell
from loopkit.batch.trials import LOOP, Result, Trial, code_version, unsolved
from loopkit.loop import Outcome
from loopkit.models import fingerprint, resolve
from loopkit.store import RunLog

from .arms import Arm, make
from .cutting import CutError, cut
from .puzzles import Perturb, Puzzle, generate, load

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CutError", "Params", "cut", "puzzles", "run", "trials"]


class Params(CellParams):
    """One cell of the batch: an arm and a model on some puzzles."""

    arm: Arm = "clauses"
    """`reasoning`, `program`, `sentence` or `clauses`."""
    people: str = Field(default="2-5", pattern=r"^[2-8](-[2-8])?$")
    """How many people a generated puzzle has: a number, or a range such as "2-5"."""
    count: int = Field(default=5, ge=1, le=10_000)
    """Generated puzzles for each number of people."""
    seed: int = Field(default=1, ge=0)
    """Of the generated puzzles."""
    perturb: Perturb = "none"
    """How the generated puzzles differ from the base puzzles of the same seed."""
    max_iterations: int = Field(default=3, ge=1, le=20)
    """Turns of the loop under `clauses`."""
    max_tokens: int = Field(default=250, ge=1)
    """Longest answer under `reasoning` and `program`. Models that think at length need thousands."""

    @field_validator("people", mode="before")
    @classmethod
    def _people(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _range(self) -> Params:
        if not self.sizes:
            raise ValueError(f"people {self.people!r} is an empty range: the smaller number comes first")
        return self

    @property
    def sizes(self) -> range:
        """The numbers of people, as a range."""
        low, _, high = self.people.partition("-")
        return range(int(low), int(high or low) + 1)


def puzzles(params: Params) -> list[Puzzle]:
    """The puzzles that `params` stand for. Raises PuzzleError for a file with bad lines."""
    if params.data:
        return load(params.data)
    return [
        puzzle
        for size in params.sizes
        for puzzle in generate(size, params.seed, params.count, params.perturb)
    ]


def trials(params: Params) -> list[Trial]:
    """One trial per puzzle. The model is loaded when the first of them runs."""
    code = code_version(__name__, *LOOP, "loopkit.models", "loopkit.sandbox")
    weights = fingerprint(params.model)

    def trial(puzzle: Puzzle) -> Trial:
        async def run(log: RunLog) -> Outcome:
            loop = make(
                params.arm,
                puzzle,
                _model(params.model),
                max_iterations=params.max_iterations,
                max_tokens=params.max_tokens,
            )
            return await loop.run(puzzle.quiz, log=log)

        return Trial(
            params={
                "experiment": "knights",
                "arm": params.arm,
                "model": params.model,
                "weights": weights,
                "item": puzzle.id,
                "people": len(puzzle.names),
                "perturb": "data" if params.data else params.perturb,
                "seed": params.seed,
                "max_iterations": params.max_iterations,
                "max_tokens": params.max_tokens,
                "solution": dict(zip(puzzle.names, puzzle.solution, strict=True)),
            },
            code=code,
            run=run,
            grade=lambda outcome: grade(outcome, puzzle),
        )

    return [trial(puzzle) for puzzle in puzzles(params)]


# One model object for all trials of a process, so that they share what it has loaded.
_model = lru_cache(maxsize=4)(resolve)


async def run(params: Params, out: str | Path, on_done: Callable[[], None] | None = None) -> pd.DataFrame:
    """Play all trials that have no result in `out` yet; return one row per trial, in the order of the puzzles."""
    return await play_cell(params, trials(params), out, on_done)


def grade(outcome: Outcome, puzzle: Puzzle) -> Result:
    """Compare the one solution that the loop arrived at, if it did, with the truth."""
    if result := unsolved(outcome):
        return result
    best = outcome.best
    found = best.observation.solutions
    if best.score < 1:
        kind = "astray" if len(found) == 1 else "several solutions" if found else "no solution"
        return Result(result="failed", kind=kind, detail="; ".join(best.verdict.feedback.blocking))
    truth = dict(zip(puzzle.names, puzzle.solution, strict=True))
    if dict(found[0]) == truth:
        return Result(result="correct")
    wrong = [name for name in puzzle.names if found[0].get(name) is not truth[name]]
    return Result(
        result="wrong", detail=f"wrong about {', '.join(wrong) or 'people who are not in the puzzle'}"
    )
