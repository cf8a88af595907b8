"""Batches: a YAML grid → notebooks through papermill → records → claims → report.

`spec` reads and checks the grid, `trials` plays and records one cell's trials, `runner` keeps the workers busy,
`claims` adjudicates, `summary` counts, `cells` is what experiments build their `Params` and `run` on.
"""

from loopkit.batch.cells import CellParams, play_cell
from loopkit.batch.runner import run_batch
from loopkit.batch.spec import BatchSpec, SpecError, load_spec
from loopkit.batch.summary import count_trials, summarise
from loopkit.batch.trials import Result, Trial, code_version, play, unsolved

__all__ = [
    "BatchSpec",
    "CellParams",
    "Result",
    "SpecError",
    "Trial",
    "code_version",
    "count_trials",
    "load_spec",
    "play",
    "play_cell",
    "run_batch",
    "summarise",
    "unsolved",
]
