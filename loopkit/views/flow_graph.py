"""A run of a flow as a graph: its steps one below the other, its ways beside them, and how often each was taken."""

from collections import Counter
from dataclasses import dataclass

import plotly.graph_objects as go

from loopkit.flow import Flow
from loopkit.flow.graph import edges
from loopkit.flow.schema import ENDS, FlowFile
from loopkit.store import Run
from loopkit.views.figures import BLUE, GREY, STYLE, VERMILLION, plain_text

ROW = 58
"""Pixels from one step to the next."""
HALF = 1.5
"""Half the width of a step's box, in the units in which an arc bulges by one for each step it passes."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A step, or an end."""

    name: str
    title: str
    kind: str
    """`prompt`, `code`, `command`, `human`, `wait`, or `end`."""
    visits: int
    failures: int
    here: bool
    """Whether the run stands there."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """Where a step leads."""

    source: str
    target: str
    taken: int
    limit: int | None
    """How often it may be taken; None where nothing counts."""
    why: tuple[str, ...]
    """The conditions, failures and limits that lead there."""


@dataclass(frozen=True, kw_only=True)
class FlowInfo:
    """A run of a flow, as drawn."""

    name: str
    nodes: tuple[Node, ...]
    """In the order of the file, then the ends that can be reached."""
    ways: tuple[Way, ...]
    """Those that are declared; where a failure or a supervisor leads only if it was taken."""


def is_flow(run: Run) -> bool:
    """Whether the run is one of a flow."""
    return any("definition" in event for event in run.all("goal"))


def flow_info(run: Run, at: int | None = None) -> FlowInfo:
    """The graph of a flow's run with its counters, as they were after visit `at`. Raises ValueError for another run."""
    file = Flow.of(run).file
    visits = [event for event in run.all("visit") if at is None or event["iteration"] <= at]
    ended = [event for event in run.all("iteration") if at is None or event["iteration"] <= at]
    taken = Counter((event["step"], event["goto"]) for event in ended if event.get("goto"))
    failed = Counter(event["step"] for event in ended if event.get("error"))
    count = Counter(event["step"] for event in visits)
    if ended and ended[-1].get("goto") in ENDS:
        count[ended[-1]["goto"]] += 1
    here = visits[-1]["step"] if visits else None
    if at is None and len(ended) == len(visits) > 0:
        here = ended[-1].get("goto") or here  # that visit is over
    ways = _ways(file, taken)
    reached = {way.target for way in ways}
    steps = [
        Node(
            name=step.id, title=step.title or step.id, kind=step.kind, visits=count[step.id],
            failures=failed[step.id], here=step.id == here,
        )
        for step in file.steps
    ]  # fmt: skip
    ends = [
        Node(name=end, title=end, kind="end", visits=count[end], failures=0, here=end == here)
        for end in ENDS
        if end in reached
    ]
    return FlowInfo(name=file.flow, nodes=(*steps, *ends), ways=tuple(ways))


def _ways(file: FlowFile, taken: Counter[tuple[str, str]]) -> list[Way]:
    why: dict[tuple[str, str], list[str]] = {}
    limits: dict[tuple[str, str], list[int]] = {}
    for edge in edges(file):
        place = edge.source, edge.target
        if edge.why not in ("goto", "exhausted") and not taken[place]:
            continue
        said = edge.transition.when.text if edge.transition and edge.transition.when else ""
        reason = {"goto": said, "exhausted": "a limit", "failure": "a failure"}.get(
            edge.why, "the supervisor"
        )
        why.setdefault(place, [])
        why[place] += [reason] if reason and reason not in why[place] else []
        if edge.why == "goto" and edge.transition:
            limits.setdefault(place, []).extend(limit for _, limit, _ in edge.transition.counts(edge.source))
    return [
        Way(
            source=place[0], target=place[1], taken=taken[place],
            limit=min(limits.get(place, ()), default=None), why=tuple(reasons),
        )
        for place, reasons in why.items()
    ]  # fmt: skip


def flow_figure(info: FlowInfo) -> go.Figure:
    """The graph: forward ways at the right, ways back at the left; those that were taken are blue and say how often.

    A step that was visited has a solid border, the one where the run stands a thick one.
    """
    rows = {node.name: row for row, node in enumerate(info.nodes)}
    reach = max((abs(rows[way.source] - rows[way.target]) for way in info.ways), default=1)
    figure = go.Figure(layout={"template": {"layout": STYLE}, "height": 40 + ROW * max(len(rows), 1)})
    for way in sorted(info.ways, key=lambda way: way.taken):
        _add_way(figure, way, rows)
    for node in info.nodes:
        _add_node(figure, node, rows[node.name])
    width = HALF + 0.8 + 0.5 * reach
    look = {"visible": False, "fixedrange": True}
    figure.update_layout(
        xaxis=look | {"range": [-width, width]},
        yaxis=look | {"range": [len(rows) - 0.5, -0.5]},
        showlegend=False,
        dragmode=False,
        margin={"l": 0, "r": 0, "t": 20, "b": 20},
    )
    return figure


def _add_node(figure: go.Figure, node: Node, row: int) -> None:
    color = VERMILLION if node.failures else BLUE if node.visits else GREY
    line = {"color": color, "width": 4 if node.here else 1.5, "dash": "solid" if node.visits else "dot"}
    figure.add_shape(type="rect", x0=-HALF, x1=HALF, y0=row - 0.3, y1=row + 0.3, line=line, name=node.name)
    times = f" ×{node.visits}" if node.visits else ""
    failed = f"{node.failures} failed" if node.failures else ""
    here = "▶ " if node.here else ""
    figure.add_scatter(
        x=[0], y=[row], mode="text", text=[f"{here}{plain_text(node.title[:28])}{times}"],
        name=node.name, hoverinfo="text", textfont={"color": GREY},
        hovertext=["<br>".join(filter(None, [f"{plain_text(node.name)}, {node.kind}{times}", failed]))],
    )  # fmt: skip


def _add_way(figure: go.Figure, way: Way, rows: dict[str, int]) -> None:
    start, end = rows[way.source], rows[way.target]
    x, y = _line(start, end)
    color, width = (BLUE, 2.5) if way.taken else (GREY, 1)
    said = "" if not way.taken else f"{way.taken}×"
    if way.limit:
        said = f"{way.taken} of {way.limit}"
    middle = len(x) // 2
    arrow = "triangle-down" if end == start + 1 else "triangle-left" if end > start else "triangle-right"
    figure.add_scatter(
        x=x, y=y, mode="lines+markers+text", name=f"{way.source} → {way.target}",
        line={"color": color, "width": width, "dash": "solid" if way.taken else "dot"},
        marker={"color": color, "symbol": arrow, "size": [0] * (len(x) - 1) + [9]},
        text=[f"\u2002{said}\u2002" if said and place == middle else "" for place in range(len(x))],
        textposition="middle right" if end > start else "middle left", textfont={"color": GREY},
        hovertext=plain_text(f"{way.source} → {way.target}: {' or '.join(way.why) or 'always'}"), hoverinfo="text",
    )  # fmt: skip


def _line(start: int, end: int) -> tuple[list[float], list[float]]:
    """Straight down to the next step; else an arc, at the right downwards and at the left upwards."""
    if end == start + 1:
        return [0.0, 0.0, 0.0], [start + 0.3, start + 0.5, end - 0.36]
    side = 1 if end > start else -1
    bulge = HALF + 0.5 * max(abs(end - start), 1)
    first, last = start + 0.12, end - 0.12
    if start == end:
        first, last = start + 0.2, end - 0.2
    steps = [step / 20 for step in range(21)]
    x = [side * ((1 - t) ** 2 * HALF + 2 * t * (1 - t) * bulge + t**2 * (HALF + 0.06)) for t in steps]
    y = [(1 - t) ** 2 * first + t * (1 - t) * (first + last) + t**2 * last for t in steps]
    return x, y
