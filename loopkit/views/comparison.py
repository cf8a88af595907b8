"""Runs side by side, as plain records and as figures: one by one, by arm, and item by item."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import plotly.graph_objects as go

from loopkit.metrics import Paired, mcnemar
from loopkit.store import Run
from loopkit.views.figures import (
    BLUE,
    LEGEND,
    PALETTE,
    STYLE,
    SYMBOLS,
    VERMILLION,
    Row,
    arm_labels,
    convergence_info,
    plain_text,
    say,
)

MARKS = {"correct": "✓ correct", "wrong": "✗ wrong", "failed": "! failed"}
PAIRED = "On the same items, how often only the one arm was right; p is McNemar's exact one, for each pair by itself."
DRAWN = 12
"""Runs whose curves are drawn together at most."""


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run, in numbers."""

    name: str
    model: str | None
    status: str
    stopped_by: str | None
    iterations: int
    best: float | None
    """The best score; None where nothing was kept."""
    tokens: int
    cost: float
    """US dollars; a lower bound where `unpriced` calls were made."""
    unpriced: int
    seconds: float
    """Inside the phases."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two arms on the items that both tried."""

    first: str
    second: str
    paired: Paired | None
    """None where there is nothing to compare."""
    problem: str
    """Why there is not, in words."""


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """An item on which the arms do not agree."""

    item: str
    results: Mapping[str, str]
    """`correct`, `wrong` or `failed`, by arm."""
    runs: Mapping[str, str]
    """The id of each arm's run."""


def runs_info(runs: Mapping[str, Run]) -> list[RunRow]:
    """One record per run, in the order given."""
    rows = []
    for name, run in runs.items():
        spent, turns = run.usage, convergence_info(run).turns
        rows.append(
            RunRow(
                name=name,
                model=run.params.get("model"),
                status=run.status,
                stopped_by=run.stop["gate"] if run.stop else None,
                iterations=len(turns),
                best=turns[-1].best if turns else None,
                tokens=spent.tokens,
                cost=spent.cost,
                unpriced=spent.unpriced_calls,
                seconds=sum(turn.get("seconds") or 0.0 for turn in run.all("iteration")),
            )
        )
    return rows


def runs_figure(runs: Mapping[str, Run]) -> go.Figure:
    """The best score so far of each run, by iteration; of many runs the first twelve."""
    figure = go.Figure(layout={"template": {"layout": STYLE}, "height": 400})
    levels, last = [], 1
    for index, (name, run) in enumerate(list(runs.items())[:DRAWN]):
        turns = [turn for turn in convergence_info(run).turns if turn.best is not None]
        color, symbol = PALETTE[index % len(PALETTE)], SYMBOLS[index % len(SYMBOLS)]
        figure.add_scatter(
            x=[turn.iteration for turn in turns],
            y=[turn.best for turn in turns],
            name=plain_text(name),
            mode="lines+markers",
            line={"color": color, "shape": "hv", "dash": "solid" if index < len(PALETTE) else "dot"},
            marker={"symbol": symbol, "size": 8},
            cliponaxis=False,
        )
        levels += [turn.best for turn in turns]
        last = max([last, *(turn.iteration for turn in turns)])
    unit = {"range": [-0.03, 1.05], "dtick": 0.2} if all(0 <= level <= 1 for level in levels) else {}
    x = {"title": {"text": "iteration"}, "range": [0.5, last + 0.5], "tickformat": "d"}
    if not levels:
        say(figure, "no run has a score")
    y = {"title": {"text": "best score so far"}, "showticklabels": bool(levels)} | unit
    return figure.update_layout(xaxis=x, yaxis=y, legend=LEGEND, showlegend=True)


def newest(trials: Iterable[Row]) -> list[Row]:
    """Of trials that differ in nothing but the code, and so in their key, those that were begun last.

    `trials` come in the order in which they were begun, as `trial_rows` has them.
    """
    kept: dict[str, Row] = {}
    for row in trials:
        same = {key: one for key, one in row.items() if key not in MADE}
        kept[repr(sorted(same.items(), key=lambda pair: pair[0]))] = row
    return list(kept.values())


MADE = (
    "run", "trial", "code", "weights", "result", "kind", "detail", "iterations", "stopped_by", "tokens", "seconds",
    "ended", "measures",
)  # fmt: skip
"""What a row of a trial has beside its parameters, and what only says by which version it was made."""


def pairs_info(trials: Sequence[Row], by: Sequence[str] = ("item", "seed")) -> list[Pair]:
    """Each two arms on the same items, with the exact McNemar test; p is not corrected for the number of pairs.

    A failed trial is not right; one that could not run is left out. What an arm tried more than once is ambiguous.
    """
    arms = _by_arm(trials, by)
    return [_pair(first, arms[first], second, arms[second]) for first, second in combinations(arms, 2)]


def _pair(first: str, ours: Mapping[str, list[Row]], second: str, theirs: Mapping[str, list[Row]]) -> Pair:
    shared, paired, problem = [item for item in ours if item in theirs], None, ""
    if any(len(rows[item]) > 1 for rows in (ours, theirs) for item in shared):
        problem = "ambiguous: an item was tried more than once by one of them; name what tells the trials apart in `by`"
    elif not shared:
        problem = "no item was tried by both"
    else:
        right = [[rows[item][0]["result"] == "correct" for item in shared] for rows in (ours, theirs)]
        paired = mcnemar(*right)
    return Pair(first=first, second=second, paired=paired, problem=problem)


def disagreements_info(trials: Sequence[Row], by: Sequence[str] = ("item", "seed")) -> list[Disagreement]:
    """The items on which one arm was right and another was not, those with the most different results first."""
    arms, found = _by_arm(trials, by), []
    for item in dict.fromkeys(item for rows in arms.values() for item in rows):
        tried = {arm: rows[item][0] for arm, rows in arms.items() if item in rows}
        results = {arm: row["result"] for arm, row in tried.items()}
        if len({result == "correct" for result in results.values()}) == 2:
            found.append(
                Disagreement(item=item, results=results, runs={arm: row["run"] for arm, row in tried.items()})
            )
    return sorted(found, key=lambda one: -len(one.results))


def _by_arm(trials: Sequence[Row], by: Sequence[str]) -> dict[str, dict[str, list[Row]]]:
    """The trials that ran, by arm and item; several experiments have each their own."""
    ran = [row for row in trials if row["result"] != "error"]
    several = len({row.get("experiment") for row in ran}) > 1
    names = [key for key in ("experiment",) if several] + list(by)
    arms: dict[str, dict[str, list[Row]]] = {}
    for row, (arm, _) in zip(ran, arm_labels(ran), strict=True):
        told = [str(row[key]) if key == "item" else f"{key} {row[key]}" for key in names if key in row]
        arms.setdefault(arm, {}).setdefault(" · ".join(told), []).append(row)
    return arms


def pairs_figure(pairs: Sequence[Pair]) -> go.Figure:
    """For each pair, on how many items only the one arm was right (to the left), and only the other (to the right)."""
    drawn = [pair for pair in pairs if pair.paired]
    figure = go.Figure(layout={"template": {"layout": STYLE}, "height": 108 + 64 * max(len(drawn), 1)})
    most = max([1, *(max(pair.paired.only_first, pair.paired.only_second) for pair in drawn)])
    sides = (("only the left one right", -1, VERMILLION, "/"), ("only the right one right", 1, BLUE, ""))
    for name, side, color, pattern in sides:
        counts = [pair.paired.only_first if side < 0 else pair.paired.only_second for pair in drawn]
        figure.add_bar(
            x=[side * count for count in counts],
            y=list(range(len(drawn))),
            orientation="h",
            name=name,
            text=[str(count) for count in counts],
            textposition="outside",
            textfont={"color": STYLE["font"]["color"]},
            marker={"color": color, "pattern": {"shape": pattern}, "line": {"color": color, "width": 1}},
            hoverinfo="skip",
            width=0.32,
            cliponaxis=False,
        )
    place = {"xref": "paper", "yanchor": "bottom", "yshift": 12, "showarrow": False}
    for y, pair in enumerate(drawn):
        found = pair.paired
        p = "p < 0.001" if found.p < 0.001 else f"p = {found.p:.3f}"
        middle = f"right over left {0 - found.effect:+.1%}, {p}"
        for x, anchor, said in ((0, "left", pair.first), (0.5, "center", middle), (1, "right", pair.second)):
            figure.add_annotation(x=x, y=y, text=plain_text(said[:48]), xanchor=anchor, **place)
    if not drawn:
        say(figure, "no two arms tried the same items")
    ticks = sorted({-most, -most // 2, 0, most // 2, most})
    x = {"title": {"text": "items"}, "range": [-1.15 * most, 1.15 * most], "tickvals": ticks}
    x |= {"ticktext": [str(abs(tick)) for tick in ticks]}
    y = {"range": [len(drawn) - 0.5, -0.7], "visible": False, "fixedrange": True}
    return figure.update_layout(
        xaxis=x, yaxis=y, barmode="overlay", legend=LEGEND, showlegend=bool(drawn), dragmode=False
    )


def by_arm_and_item(found: Iterable[Disagreement], arms: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a table: an item, and how each arm came out."""
    for one in found:
        yield {"item": one.item, **{arm: MARKS.get(one.results.get(arm, ""), "–") for arm in arms}}
