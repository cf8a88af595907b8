"""The trials of a report: compact data in the page, from which its script makes a table when somebody asks for it."""

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
RESULTS = {"wrong": "✗ wrong", "failed": "! failed", "error": "⊘ could not run", "correct": "✓ correct"}
BEFORE = ("result", "kind", "detail", "arm", "model", "item")
AFTER = ("iterations", "stopped_by", "tokens", "seconds", "ended", "run")
CHOICES = ("result", "arm", "model")
OTHER = {*BEFORE, *AFTER, "trial", "measures"}
FORMATS = {"iterations": ",", "tokens": ",", "seconds": ",.1f"}
VALUES = 50
"""A parameter with more values than this is as good as an item, and no column."""
LENGTH = 300
"""Longer texts are cut; the records hold them whole."""


def trials_info(trials: Sequence[Row]) -> dict[str, Any]:
    """What the page knows of the trials, the wrong and the failed ones first: `rows`, how many, and its `columns`.

    A column has a title, a `look` ("num" for numbers), whether it is one to `choose` by, and `texts`: one per row, or,
    where few are distinct, each of these once, and `at`, the place of each row's text among them. Columns that no trial
    has are left out; of the parameters those are in that tell trials apart by few values, of the measures all.
    """
    order = {result: rank for rank, result in enumerate(RESULTS)}
    ordered = sorted(trials, key=lambda trial: order.get(trial.get("result"), -1))
    told = [{**trial.get("measures", {}), **trial} for trial in ordered]
    measures = dict.fromkeys(name for trial in trials for name in trial.get("measures", {}))
    names = [*BEFORE, *_parameters(trials), *measures, *AFTER]
    columns = (_column(name, [trial.get(name) for trial in told]) for name in names)
    return {"rows": len(ordered), "columns": [column for column in columns if column]}


def _parameters(trials: Sequence[Row]) -> list[str]:
    """The parameters that tell trials apart, by few values."""
    values: dict[str, set[Any]] = {}
    for trial in trials:
        for name, value in trial.items():
            if name not in OTHER and isinstance(value, str | int | float):
                values.setdefault(name, set()).add(value)
    return [name for name, several in values.items() if 2 <= len(several) <= VALUES]


def _column(name: str, values: Sequence[Any]) -> dict[str, Any] | None:
    if all(value is None for value in values):
        return None
    texts = [_shown(name, value) for value in values]
    numbers = all(value is None or isinstance(value, int | float) for value in values)
    column = {"title": title(name), "look": "num" if numbers else "", "choose": False, "texts": texts}
    if len(distinct := list(dict.fromkeys(texts))) <= len(texts) / 2 or name in CHOICES:
        places = {text: place for place, text in enumerate(distinct)}
        column |= {"texts": distinct, "at": [places[text] for text in texts]}
        column["choose"] = name in CHOICES and 2 <= len(distinct) <= VALUES
    return column


def title(name: str) -> str:
    """The heading of the column `name`."""
    return name if name == "n" else name[:1].upper() + name[1:].replace("_", " ")


def _shown(name: str, value: Any) -> str:
    return shown(RESULTS.get(value, value) if name == "result" else value, FORMATS.get(name, ""))


def shown(value: Any, spec: str = "") -> str:
    """A value as tables show it: numbers formatted, a dash for what is missing, long texts cut."""
    text = format(value, spec) if isinstance(value, int | float) else "–" if value is None else str(value)
    return text if len(text) <= LENGTH else text[: LENGTH - 1] + "…"
