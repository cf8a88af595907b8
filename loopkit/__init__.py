"""loopkit: loop, judge and metric primitives for people who want to understand, run and trust agent loops.

    from loopkit import Loop, Threshold, MaxIterations

Names load when they are first used, so that `import loopkit` is quick.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Loop": "loop", "Outcome": "loop",
    "Iteration": "history", "History": "history", "StopReason": "history", "Decision": "history", "BestOf": "history",
    "Verdict": "verdict", "Feedback": "verdict", "Failure": "verdict",
    "Threshold": "gates", "MaxIterations": "gates", "Stagnation": "gates", "Repetition": "gates",
    "Budget": "gates", "Cancel": "gates",
    "Usage": "usage", "spend": "usage", "metered": "usage",
    "runs_df": "listing", "trials_df": "batch.records", "ledger_df": "batch.ledger",
    "Store": "store", "StoreError": "log", "RunTaken": "log", "Irreproducible": "journal",
    "accuracy": "metrics", "mcnemar": "metrics",
    "resolve": "models", "ask": "models",
    "convergence_figure": "views", "explore": "views", "watch": "views", "compare": "views",
}  # fmt: skip
__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'loopkit' has no attribute {name!r}")
    return getattr(import_module(f"loopkit.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
