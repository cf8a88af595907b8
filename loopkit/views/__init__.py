"""What people look at: figures, widgets, the report of a batch, a form to answer a run. Heavy things load when first used."""

from importlib import import_module
from typing import Any

_HOME = {
    "convergence_figure": "figures",
    "arms_figure": "figures",
    "items_figure": "figures",
    "model_label": "figures",
    "write_report": "report",
    "answer_form": "answering",
    "explore": "front",
    "watch": "front",
    "compare": "front",
    "playground": "front",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'loopkit.views' has no attribute {name!r}")
    return getattr(import_module(f"loopkit.views.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
