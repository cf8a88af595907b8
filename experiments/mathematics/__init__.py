"""Code-aided mathematics (experiment 5-3): does writing and running code lift a weak model's mathematics?

params = Params(arm="examples-loop", model="embedded", count=10)
results = await run(params, out="runs/explore")
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from loopkit.batch.cells import CellParams, play_cell
from loopkit.batch.trials import LOOP, Result, Trial, code_version, unsolved
from loopkit.loop import Outcome
from loopkit.models import fingerprint, resolve
from loopkit.sandbox import Sandbox
from loopkit.store import RunLog

from .arms import LOOPS, Arm, Setting, make
from .grading import PRELOAD, equal
from .problems import Problem, Split, generate, in_range, load, shipped

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Params", "problems", "run", "trials"]


class Params(CellParams):
    """One cell of the batch: an arm and a model on some problems."""

    arm: Arm = "examples-loop"
    """`reasoning`, `code`, `code-loop`, `examples`, `examples-loop`, or `copying` (no model)."""
    split: Split = "seen"
    """Which problems: `seen` (of families whose solved examples may be shown), `reworded` (the same families, in a
    wording that no example has), `unseen` (other families)."""
    count: int = Field(default=20, ge=1, le=10_000)
    """How many problems: the first of those that ship, or of those that `seed` generates."""
    seed: int | None = Field(default=None, ge=0)
    """Generates other problems than those that ship. The `reworded` ones are always generated, with seed 0 if none is given."""
    samples: int = Field(default=1, ge=1, le=100)
    """Answers drawn for each problem by the arms without a loop; the most common one counts."""
    max_iterations: int = Field(default=4, ge=1, le=20)
    """Turns of the arms with a loop."""
    max_tokens: int = Field(default=200, ge=1)
    """Longest answer. Models that think at length need thousands."""
    shown: int = Field(default=3, ge=1, le=20)
    """Solved examples in the prompt of the arms `examples`."""

    @model_validator(mode="after")
    def _together(self) -> Params:
        if self.samples > 1 and self.arm in (*LOOPS, "copying"):
            raise ValueError(
                f"samples={self.samples} is for reasoning, code and examples; {self.arm} takes 1"
            )
        if self.data is None and self.seed is None and self.split != "reworded":
            there = len(shipped(self.split))
            if self.count > there:
                raise ValueError(
                    f"count={self.count}, but {there} {self.split} problems ship: give a seed for more"
                )
        return self


def problems(params: Params) -> list[Problem]:
    """The problems that `params` stand for, like beside like. Raises ProblemError for a file with bad lines."""
    if params.data:
        return load(params.data)
    if params.seed is None and params.split != "reworded":
        found = shipped(params.split)[: params.count]
    else:
        found = generate(params.split, params.count, params.seed or 0)
    # Neighbours share their examples, and so the part of the prompt that a model with a prefix cache need not read again.
    return sorted(found, key=lambda one: (one.family, one.wording, one.id))


def trials(params: Params) -> list[Trial]:
    """One trial per problem. The model is loaded, and the sandboxes start, when the first of them runs."""
    code = code_version(__name__, *LOOP, "loopkit.models", "loopkit.sandbox.inside")
    weights = fingerprint(params.model)
    todo = problems(params)
    integer = all(in_range(one.answer) for one in todo)

    def trial(problem: Problem) -> Trial:
        async def run(log: RunLog) -> Outcome:
            setting = Setting(
                model=_model(params.model),
                sandbox=_sandbox(),
                samples=params.samples,
                max_iterations=params.max_iterations,
                max_tokens=params.max_tokens,
                shown=params.shown,
                integer=integer,
            )
            return await make(params.arm, problem, setting).run(problem.problem, log=log)

        return Trial(
            params={
                "experiment": "mathematics",
                "arm": params.arm,
                "model": params.model,
                "weights": weights,
                "item": problem.id,
                "split": problem.split,
                "family": problem.family,
                "topic": problem.topic,
                "level": problem.level,
                "seed": params.seed,
                "samples": params.samples,
                "max_iterations": params.max_iterations,
                "max_tokens": params.max_tokens,
                "shown": params.shown,
                "integer": integer,
                "problem": problem.problem,
                "answer": problem.answer,
            },
            code=code,
            run=run,
            grade=lambda outcome: grade(outcome, problem),
        )

    return [trial(problem) for problem in todo]


# One model object and one sandbox for all trials of a process, so that they share what is loaded.
_model = lru_cache(maxsize=4)(resolve)


@lru_cache(maxsize=1)
def _sandbox() -> Sandbox:
    return Sandbox()


@lru_cache(maxsize=1)
def _grader() -> Sandbox:
    return Sandbox(preload=PRELOAD)


async def run(params: Params, out: str | Path, on_done: Callable[[], None] | None = None) -> pd.DataFrame:
    """Play all trials that have no result in `out` yet; return one row per trial, in the order of the problems."""
    return await play_cell(params, trials(params), out, on_done)


async def grade(outcome: Outcome, problem: Problem) -> Result:
    """Compare the answer that the loop arrived at with the truth."""
    if result := unsolved(outcome):
        return result
    answer = outcome.best.observation.answer
    if await equal(problem.answer, answer, _grader()):
        return Result(result="correct", detail=answer)
    return Result(result="wrong", detail=answer)
