"""Figures of a run and of a batch. Each is data first (`*_info`: plain records), then a drawing (`*_figure`).

Colours are Okabe and Ito's, safe for colour-blind readers, and never the only cue: a symbol says the same. Two are
darkened, so that all stand out by 3 : 1 from white and from a dark theme's black.
Backgrounds are transparent and ink is mid-grey, so that a figure reads in a light and in a dark notebook.
plotly reads a little HTML in any text, so whatever a model or a person wrote passes through `plain_text`.
"""

import html
import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import plotly.graph_objects as go

from loopkit.history import Gate, Iteration
from loopkit.loop import Outcome
from loopkit.metrics import Proportion, accuracy
from loopkit.store import Run
from loopkit.views.trace import as_event, note

Row = Mapping[str, Any]

GREEN, VERMILLION, BLUE, GREY = "#009E73", "#D55E00", "#0072B2", "#7A7A7A"
PALETTE = (BLUE, VERMILLION, GREEN, "#CC79A7", "#B88000", "#2E93CC")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "star")
DECISIONS = {  # name, colour, symbol, axis
    "keep": ("kept", GREEN, "circle", "y"),
    "discard": ("discarded", VERMILLION, "diamond-open", "y"),
    "crash": ("crashed", GREY, "x-thin", "y2"),
}
DASHED = {"color": GREY, "width": 1.5, "dash": "dash"}
AXIS = {"gridcolor": "rgba(128,128,128,0.22)", "tickcolor": GREY, "ticks": "outside", "zeroline": False}
STYLE = {
    "font": {"color": GREY, "size": 13, "family": "system-ui, sans-serif"},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "margin": {"l": 16, "r": 16, "t": 40, "b": 52},
    "hoverlabel": {"align": "left"},
    "xaxis": AXIS | {"title": {"font": {"size": 13}}},
    "yaxis": AXIS | {"title": {"font": {"size": 13}, "standoff": 8}, "automargin": True},
}
PERCENT = {"title": {"text": "accuracy"}, "range": [-0.02, 1.02], "tickformat": ".0%", "dtick": 0.2}
LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}


class Turn(NamedTuple):
    """One iteration, as drawn."""

    iteration: int
    decision: str
    score: float | None
    """None after a crash."""
    best: float | None
    """The best score so far; None before the first kept candidate."""
    note: str
    """The feedback or the error, in words."""


class Convergence(NamedTuple):
    """A run, as drawn."""

    turns: list[Turn]
    threshold: float | None
    ended: str | None
    """Which gate opened and why; None when the source cannot tell."""


class Share(NamedTuple):
    """How often one arm with one model was right, overall (`value` is None) or at one value of a key."""

    label: str
    simulated: bool
    value: Any
    result: Proportion


def model_label(model: str) -> str:
    """A model's name for people: `simulated:random` reads "random (simulated)"."""
    return f"{model.removeprefix('simulated:')} (simulated)" if model.startswith("simulated:") else model


def convergence_info(run: Run | Outcome | Sequence[Iteration], *, gates: Sequence[Gate] = ()) -> Convergence:
    """The turns of a run, as drawn; `gates` are those of a run that goes on, and has only a history so far.

    Raises TypeError for anything but a `Run`, an `Outcome` or a sequence of `Iteration`.
    """
    threshold, ended = _threshold(list(map(repr, gates))), None
    if isinstance(run, Run):
        turns, stop = run.all("iteration"), run.stop
        settings = [*run.all("goal"), *run.all("settings")][-1:]
        threshold = _threshold(settings[0].get("gates") or () if settings else ())
        ended = f"{stop['gate']}: {stop['reason']}" if stop else "unfinished: no gate has opened"
    else:
        history = list(run.history if isinstance(run, Outcome) else run)
        if not all(isinstance(turn, Iteration) for turn in history):
            raise TypeError(f"expected a Run, an Outcome or a sequence of Iteration, got {run!r:.200}")
        turns = [as_event(turn) for turn in history]
        if isinstance(run, Outcome):
            threshold = _threshold(list(map(repr, run.gates)))
            ended = f"{run.stopped_by.gate}: {run.stopped_by.reason}"
    records, best = [], None
    for turn in turns:
        best = turn.get("score") if turn["decision"] == "keep" else best
        records.append(Turn(turn["iteration"], str(turn["decision"]), turn.get("score"), best, note(turn)))
    return Convergence(records, threshold, ended)


def convergence_figure(run: Run | Outcome | Sequence[Iteration], *, gates: Sequence[Gate] = ()) -> go.Figure:
    """Score by iteration: kept, discarded, the best so far, the threshold, and the gate that opened.

    A crash has no score; it stands in a lane of its own below the plot. Scores that all lie between 0 and 1
    are shown on that whole scale. `gates` and TypeError as in `convergence_info`.
    """
    turns, threshold, ended = convergence_info(run, gates=gates)
    last = max((turn.iteration for turn in turns), default=1)
    figure = go.Figure(layout={"template": {"layout": STYLE}, "height": 400})
    if any(turn.best is not None for turn in turns):
        steps = {"x": [turn.iteration for turn in turns], "y": [turn.best for turn in turns]}
        line = {"color": BLUE, "shape": "hv"}
        figure.add_scatter(**steps, name="best so far", mode="lines", line=line, hoverinfo="skip")
    if threshold is not None:
        ends, name = {"x": [0.5, last + 0.5], "y": [threshold] * 2}, f"threshold {threshold:g}"
        figure.add_scatter(**ends, name=name, mode="lines", line=DASHED, hoverinfo="skip")
    for decision, (name, color, symbol, axis) in DECISIONS.items():
        if some := [turn for turn in turns if turn.decision == decision]:
            marker = {"color": color, "symbol": symbol, "size": 9 if len(turns) <= 100 else 4}
            figure.add_scatter(
                x=[turn.iteration for turn in some],
                y=[turn.score or 0.0 for turn in some],
                yaxis=axis,
                name=name,
                mode="markers",
                marker=marker | {"line": {"color": color, "width": 1.5}},
                hovertext=[_turn_hover(turn) for turn in some],
                hoverinfo="text",
                cliponaxis=False,
            )
    levels = [level for level in (threshold, *(turn.score for turn in turns)) if level is not None]
    unit = {"range": [-0.03, 1.05], "dtick": 0.2} if all(0 <= level <= 1 for level in levels) else {}
    crashed = any(turn.decision == "crash" for turn in turns)
    y = {"title": {"text": "score"}, "domain": [0.16 * crashed, 1], "showticklabels": bool(levels)}
    x = {"title": {"text": "iteration"}, "range": [0.5, last + 0.5], "tickformat": "d"}
    x |= {"anchor": "free", "position": 0, "dtick": 1 if last <= 20 else None}
    figure.update_layout(xaxis=x, yaxis=y | unit, legend=LEGEND | {"y": 1.12}, margin_t=48)
    if crashed:
        lane = {"domain": [0, 0.1], "range": [-1, 1], "tickvals": [0], "ticktext": ["crash"]}
        figure.update_layout(yaxis2=lane | {"fixedrange": True, "showgrid": False, "ticks": ""})
    if all(turn.score is None for turn in turns):
        say(figure, "no turn has a score" if turns else "no turn has been recorded")
    if ended:
        figure.add_vline(x=last, line=DASHED | {"dash": "dot"})
        place = {"xref": "paper", "yref": "paper", "xanchor": "right", "yanchor": "bottom"}
        figure.add_annotation(
            text=plain_text(ended, width=54), x=1, y=1, align="right", showarrow=False, **place
        )
    return figure


def arms_info(rows: Sequence[Row]) -> list[Share]:
    """One record per row of a summary, best first; rows without any result last."""
    shares = []
    for row, (label, simulated) in zip(rows, arm_labels(rows), strict=True):
        shares.append(Share(label, simulated, None, _result(row)))
    return sorted(shares, key=lambda share: (share.result.n == 0, -(share.result.estimate or 0), share.label))


def _result(row: Row) -> Proportion:
    counts = {"successes": row["correct"], "n": row["n"], "estimate": row["accuracy"]}
    return Proportion(**counts, low=row["wilson_low"], high=row["wilson_high"])


def arms_figure(rows: Sequence[Row], *, target: float | None = None) -> go.Figure:
    """Accuracy with its interval: a line of text and a point per arm × model, best at the top.

    `target` draws a vertical line. Simulated models have open markers and say so.
    """
    shares = arms_info(rows)
    figure = go.Figure(layout={"template": {"layout": STYLE}, "height": 108 + 48 * max(len(shares), 1)})
    place = {"xref": "paper", "yanchor": "bottom", "yshift": 6, "showarrow": False}
    for y, share in enumerate(shares):
        _add_shares(figure, [share], [y], color=BLUE, symbol="circle", upright=False)
        name, count = textwrap.shorten(share.label, 56), f"{share.result.successes} of {share.result.n}"
        figure.add_annotation(x=0, y=y, text=plain_text(name), xanchor="left", **place)
        figure.add_annotation(x=1, y=y, text=count, xanchor="right", **place)
    if target is not None:
        label = {"annotation_text": f"target {target:.0%}", "annotation_yanchor": "bottom"}
        figure.add_vline(x=target, line=DASHED, **label)
    if not shares:
        say(figure, "no arm has been tried")
    y = {"range": [len(shares) - 0.5, -0.7], "visible": False, "fixedrange": True}
    return figure.update_layout(xaxis=PERCENT, yaxis=y, showlegend=False, dragmode=False)


def items_info(groups: Sequence[Row], *, by: str = "people") -> list[Share]:
    """One record per arm × model and value of the key `by`, pooled over whatever else tells `groups` apart.

    The interval of what is pooled is Wilson's, of the counts. Rows without `by`, or without a result, are left out.
    """
    pooled: dict[tuple[str, bool, Any], list[Row]] = {}
    for row, arm in zip(groups, arm_labels(groups), strict=True):
        if row.get(by) is not None and row["n"]:
            pooled.setdefault((*arm, row[by]), []).append(row)
    return [Share(*key, _pooled(rows)) for key, rows in pooled.items()]


def _pooled(rows: Sequence[Row]) -> Proportion:
    if len(rows) == 1:
        return _result(rows[0])
    return accuracy(sum(row["correct"] for row in rows), sum(row["n"] for row in rows))


def items_figure(groups: Sequence[Row], *, by: str = "people") -> go.Figure:
    """Accuracy against the number of people, or another key `by`: a line with intervals per arm × model.

    Points at the same value stand side by side, so that no interval hides another.
    """
    shares = items_info(groups, by=by)
    figure = go.Figure(layout={"template": {"layout": STYLE}, "height": 420})
    values = list(dict.fromkeys(share.value for share in shares))
    numeric = all(isinstance(value, int | float) for value in values)
    ordered = sorted(values) if numeric else values
    at = {value: value if numeric else index for index, value in enumerate(ordered)}
    gap = min((at[b] - at[a] for a, b in pairwise(ordered)), default=1)
    labels = list(dict.fromkeys(share.label for share in shares))
    for index, label in enumerate(labels):
        line = sorted((share for share in shares if share.label == label), key=lambda share: at[share.value])
        shift = gap * 0.4 * (index - (len(labels) - 1) / 2) / max(len(labels), 4)
        look = {"color": PALETTE[index % len(PALETTE)], "symbol": SYMBOLS[index % len(SYMBOLS)]}
        _add_shares(figure, line, [at[share.value] + shift for share in line], **look, upright=True)
    if not shares:
        say(figure, f"no result says its {by}")
    ticks = {"tickvals": list(at.values()), "ticktext": [plain_text(str(value)) for value in ordered]}
    figure.update_layout(xaxis=ticks | {"title": {"text": plain_text(by)}, "showgrid": False}, yaxis=PERCENT)
    return figure.update_layout(legend=LEGEND, showlegend=True, dragmode=False)


def _threshold(gates: Sequence[str]) -> float | None:
    """The score in the first `Threshold(score=…)`; gates are recorded by their repr."""
    found = (re.fullmatch(r"Threshold\(score=(-?\d+(\.\d+)?(e[-+]?\d+)?)\)", str(gate)) for gate in gates)
    return next((float(match[1]) for match in found if match), None)


def _turn_hover(turn: Turn) -> str:
    score = "crash" if turn.score is None else f"{turn.decision}, score {turn.score:g}"
    return f"iteration {turn.iteration}: {score}<br>{plain_text(turn.note)}"


def arm_labels(rows: Sequence[Row]) -> list[tuple[str, bool]]:
    """Each row's label, and whether its model is simulated. Several experiments are named, one is not."""
    several = len({row.get("experiment") for row in rows}) > 1
    labels = [f"{row['arm']} · {model_label(row['model'])}" for row in rows]
    if several:
        labels = [f"{row.get('experiment')} · {label}" for row, label in zip(rows, labels, strict=True)]
    return [(label, row["model"].startswith("simulated:")) for row, label in zip(rows, labels, strict=True)]


def plain_text(text: str, *, width: int = 60) -> str:
    """`text` as plotly shows it verbatim: wrapped, cut short, its markup, TeX and lone surrogates escaped."""
    whole = text[:2000].encode("utf-8", "backslashreplace").decode()
    lines = textwrap.wrap(whole, width, max_lines=6, placeholder=" …")
    return "<br>".join(html.escape(line, quote=False).replace("$", "&#36;") for line in lines)


def say(figure: go.Figure, text: str) -> None:
    """Words in the middle of an empty plot."""
    figure.add_annotation(text=plain_text(text), x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)


def _add_shares(
    figure: go.Figure, shares: Sequence[Share], at: Sequence[float], *, color: str, symbol: str, upright: bool
) -> None:
    """Points of one label, their intervals as translucent bars; upright ones are joined by a line."""
    along, across = ("y", "x") if upright else ("x", "y")
    for share, place in zip(shares, at, strict=True):
        if share.result.low is not None:
            ends = {along: [share.result.low, share.result.high], across: [place, place]}
            bar = {"mode": "lines", "line": {"color": color, "width": 7}, "opacity": 0.3}
            figure.add_scatter(**ends, **bar, name="interval", showlegend=False, hoverinfo="skip")
    label, simulated, *_ = shares[0]
    heads = ["" if share.value is None else f"{plain_text(str(share.value))}: " for share in shares]
    figure.add_scatter(
        **{along: [share.result.estimate for share in shares], across: list(at)},
        name=plain_text(label),
        mode="lines+markers" if upright else "markers",
        line={"color": color, "width": 1.5, "dash": "dot" if simulated else "solid"},
        marker={"color": color, "symbol": symbol + "-open" * simulated, "size": 10},
        marker_line_width=2 * simulated,
        hovertext=[f"{plain_text(label)}<br>{head}{s.result}" for head, s in zip(heads, shares, strict=True)],
        hoverinfo="text",
        cliponaxis=False,
    )
