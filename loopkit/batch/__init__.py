"""Batches: a YAML grid → notebooks through papermill → records → claims → report.

`spec` reads and checks the grid, `plan` holds it against the records, `executing` keeps `worker`s busy (which `warm` and
`forge` start quickly, or a `cluster`), `trials` plays and records one cell's trials, `claims` adjudicates, `summary`
counts, `runner` is the whole. `status` is a batch's own log, `records` reads its folder again, `ledger` all verdicts there
ever were; `cells` is what experiments build their `Params` and `run` on.
"""

from loopkit.batch.cells import CellParams, play_cell
from loopkit.batch.ledger import ledger_df
from loopkit.batch.plan import Choice, choose, plan
from loopkit.batch.records import rewrite_report, trials_df
from loopkit.batch.runner import run_batch
from loopkit.batch.spec import BatchSpec, SpecError, expand, load_spec
from loopkit.batch.summary import count_trials, summarise
from loopkit.batch.trials import Result, Trial, code_version, play, unsolved

__all__ = [
    "BatchSpec",
    "CellParams",
    "Choice",
    "Result",
    "SpecError",
    "Trial",
    "choose",
    "code_version",
    "count_trials",
    "expand",
    "ledger_df",
    "load_spec",
    "plan",
    "play",
    "play_cell",
    "rewrite_report",
    "run_batch",
    "summarise",
    "trials_df",
    "unsolved",
]
