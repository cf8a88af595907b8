"""Compare runs: the arms of a batch, the items on which they disagree, and two traces side by side."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ipywidgets
import plotly.graph_objects as go

from loopkit.batch.summary import ROW, Row, count_trials, rows_of
from loopkit.log import StoreError
from loopkit.store import Run, Store
from loopkit.views.comparison import (
    MARKS,
    PAIRED,
    Disagreement,
    by_arm_and_item,
    disagreements_info,
    newest,
    pairs_figure,
    pairs_info,
    runs_figure,
    runs_info,
)
from loopkit.views.explorer import LABEL, TraceView, explore_figure
from loopkit.views.figures import arms_figure
from loopkit.views.fragments import facts_html, page, table_html, text, warning
from loopkit.views.showing import View, printed
from loopkit.views.trace import Source, Trace, as_run

LISTED = 200
"""Items that are listed at most; the menu has them all."""
INTERVALS = (
    "Accuracy with 95% Wilson intervals, by item where seeds repeat one; open symbols are simulated models."
)
SIMULATED = (
    "Some results come from simulated models. They show how an experiment behaves, not what a model can do."
)


class Comparison(View):
    """Runs side by side: what `loopkit.compare` returns."""

    def __init__(
        self,
        runs: Sequence[Source] | Mapping[str, Source] | str | Path,
        *,
        by: Sequence[str] = ("item", "seed"),
    ) -> None:
        self.runs, self._run = _gathered(runs)
        """The runs by name; of a batch none, since its trials are read when they are looked at."""
        self.trials = newest(rows_of(self.runs.values() if self.runs else _of_batch(runs)))
        """One row per trial, if they are trials; of those that differ in the code only, the newest."""
        self.disagreements = disagreements_info(self.trials, by)
        """The items on which an arm was right and another was not."""
        if not self.runs and not self.trials:
            raise ValueError(f"nothing to compare: no trial has ended in {runs}")
        parts: list[ipywidgets.Widget] = []
        if self.runs:
            rows = [vars(row) for row in runs_info(self.runs)]
            parts += [
                ipywidgets.HTML(page(table_html(tuple(rows[0]), rows))),
                printed(runs_figure(self.runs)),
            ]
        if self.trials:
            parts += self._arms(by)
        self._choosing = threading.RLock()
        self.item = ipywidgets.Dropdown(description="item", style=LABEL, layout={"width": "98%"})
        self.left, self.right = _Column("left", self._run), _Column("right", self._run)
        columns = ipywidgets.HBox([self.left, self.right], layout={"flex_flow": "row wrap"})
        if self.disagreements and not self.runs:
            self.item.options = [(_told(one), number) for number, one in enumerate(self.disagreements)]
            self.item.value = 0
            self.item.observe(lambda _: self._choose(), names="value")
            parts.append(self.item)
        super().__init__([*parts, columns])
        self._choose()

    def still(self) -> go.Figure:
        """The arms of trials, else the curves of runs."""
        return arms_figure(count_trials(self.trials, *ROW)) if self.trials else runs_figure(self.runs)

    def _arms(self, by: Sequence[str]) -> list[ipywidgets.Widget]:
        rows, pairs = count_trials(self.trials, *ROW), pairs_info(self.trials, by)
        arms = list(dict.fromkeys(arm for one in self.disagreements for arm in one.results))
        simulated = warning(SIMULATED) if any(row["model"].startswith("simulated:") for row in rows) else ""
        problems = "".join(
            f"<p>{text(pair.first)} and {text(pair.second)}: {text(pair.problem)}</p>"
            for pair in pairs
            if pair.problem
        )
        count = len(self.disagreements)
        listed = table_html(("item", *arms), by_arm_and_item(self.disagreements[:LISTED], arms))
        left = f"<p>The first {LISTED} are listed.</p>" if count > LISTED else ""
        details = (
            f"<details><summary>{count} items on which the arms disagree</summary>{listed}{left}</details>"
        )
        return [
            ipywidgets.HTML(page(simulated, f"<p>{INTERVALS}</p>")),
            printed(arms_figure(rows)),
            ipywidgets.HTML(page(f"<p>{PAIRED}</p>", problems)),
            printed(pairs_figure(pairs)),
            ipywidgets.HTML(page(details)),
        ]

    def _choose(self) -> None:
        """Show two runs of the item that was chosen, one that was right and one that was not; else the first two."""
        with self._choosing:
            if self.runs:
                options = [(name, name) for name in self.runs]
            elif self.disagreements:
                one = self.disagreements[self.item.value]
                right_first = sorted(one.results, key=lambda arm: one.results[arm] != "correct")
                options = [(f"{arm}: {MARKS[one.results[arm]]}", one.runs[arm]) for arm in right_first]
            else:
                options = [(_trial(row), row["run"]) for row in self.trials]
            other = options[-1] if self.disagreements and not self.runs else options[:2][-1]
            self.left.offer(options, options[0][1])
            self.right.offer(options, other[1])


class _Column(ipywidgets.VBox):
    """A menu of runs, and the one that was chosen."""

    def __init__(self, side: str, run: Callable[[str], Run]) -> None:
        self._run, self._offering = run, False
        self.menu = ipywidgets.Dropdown(description=side, style=LABEL, layout={"width": "98%"})
        self._facts, self._picture = ipywidgets.HTML(), ipywidgets.VBox()
        self.trace = TraceView()
        super().__init__(
            [self.menu, self._facts, self._picture, self.trace], layout={"flex": "1 1 24em", "min_width": "0"}
        )
        self.menu.observe(lambda _: self._show(), names="value")

    def offer(self, options: Sequence[tuple[str, Any]], chosen: Any) -> None:
        """Offer these runs, and show the one chosen."""
        with self.trace.drawing:
            self._offering = True  # the menu passes through values that nobody chose
            self.menu.options, self.menu.value = options, chosen
            self._offering = False
            self._show()

    def _show(self) -> None:
        with self.trace.drawing:
            if self._offering:
                return
            try:
                run, problem = self._run(self.menu.value), ""
            except StoreError as error:  # a log that was changed: the others can be looked at
                run, problem = Run(self.menu.value, []), str(error)
            self._facts.value = page(facts_html(run), warning(problem))
            self._picture.children = [printed(explore_figure(run, len(Trace(run))))]
            self.trace.show(run, anew=True)


def _gathered(runs: Any) -> tuple[dict[str, Run], Callable[[str], Run]]:
    """The runs by name, and what gives one. A batch's are read one at a time."""
    if isinstance(runs, str | Path):
        return {}, Store(Path(runs) / "records").run
    if isinstance(runs, Mapping):
        named = {str(name): as_run(run) for name, run in runs.items()}
    elif isinstance(runs, Sequence):
        named = {}
        for run in map(as_run, runs):
            count = sum(name == run.id or name.startswith(f"{run.id} (") for name in named)
            named[f"{run.id} ({count + 1})" if count else run.id] = run
    else:
        raise TypeError(
            f"expected runs, outcomes, paths of logs, or the folder of a batch, got {runs!r:.200}"
        )
    if not named:
        raise ValueError("nothing to compare: give at least one run")
    return named, named.__getitem__


def _of_batch(folder: str | Path) -> Any:
    store = Store(Path(folder) / "records")
    if not store.folder.is_dir():
        raise StoreError(f"{folder} is no folder of a batch: it has no records/")
    return store.runs()


def _told(one: Disagreement) -> str:
    return f"{one.item}: {', '.join(f'{arm} {MARKS[result]}' for arm, result in one.results.items())}"


def _trial(row: Row) -> str:
    return f"{row.get('arm')}, {row.get('item')}: {row['result']} ({row['run']})"
