"""A flow to look at: its graph, and where each outcome of each step leads."""

from collections.abc import Iterator
from typing import Any

from loopkit.flow.cases import scopes
from loopkit.flow.expressions import ExpressionError
from loopkit.flow.graph import Edge, edges
from loopkit.flow.schema import ENDS, FAILED, FlowFile, StepPart, Transition

SHAPES = {
    "prompt": ("([", "])"), "code": ("[", "]"), "command": ("[[", "]]"), "human": ("[/", "/]"), "wait": ("{{", "}}"),
}  # fmt: skip


def mermaid(file: FlowFile, *, failures: bool = False) -> str:
    """The graph as a Mermaid flowchart: https://mermaid.js.org/syntax/flowchart.html.

    Rounded: a model. Boxes: code (single) and commands (double). Slanted: a person. Hexagons: a wait alone. Dashed:
    where a limit leads; with `failures` also where a failure, and after it the supervisor, leads.
    """
    lines = ["flowchart TD", f"  start((start)) --> {_node(file.start or file.steps[0].id)}"]
    for step in file.steps:
        opening, closing = SHAPES[step.kind]
        notes = [step.title or step.id]
        if step.goal:
            notes.append(f"until {step.goal.until.text}, at most {step.goal.max_iterations} times")
        if step.wait:
            notes.append(f"looks every {_time(step.wait.interval)}, up to {_time(step.wait.max_duration)}")
        lines.append(f"  {_node(step.id)}{opening}{_label('<br>'.join(map(_escaped, notes)))}{closing}")
    drawn = set()
    shown = [edge for edge in edges(file) if edge.why in ("goto", "exhausted") or failures]
    for edge in shown:
        if edge.why == "failure" and edge.target == FAILED:
            continue  # what every step can do
        said = _said(edge.transition) if edge.why == "goto" else _limit(edge)
        arrow = {"goto": "-->", "recover": "-. recover .->"}.get(edge.why, "-.->")
        label = f"|{_label(_escaped(said))}|" if said and edge.why != "recover" else ""
        line = f"  {_node(edge.source)} {arrow}{label} {_node(edge.target)}"
        if line not in drawn:
            drawn.add(line)
            lines.append(line)
    reached = {edge.target for edge in shown}
    lines += [f"  {_node(end)}((({end})))" for end in ENDS if end in reached]
    return "\n".join(lines) + "\n"


def _node(name: str) -> str:
    return f"s_{name}"  # a step may be called `end`, which Mermaid takes for its own


def _label(text: str) -> str:
    return f'"{text}"'


def _escaped(text: str) -> str:
    return (
        " ".join(text.split())
        .replace("&", "&amp;")
        .replace('"', "&quot;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )


def _time(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"


def _said(way: Transition) -> str:
    parts = [way.when.text] if way.when is not None else []
    if way.max_visits:
        parts.append(f"at most {way.max_visits} times")
    if way.loop:
        parts.append(f"{way.loop.name or 'loop'}: at most {way.loop.max_iterations} times")
    return ", ".join(parts)


def outcomes(file: FlowFile) -> list[dict[str, Any]]:
    """Where each outcome of each step leads: one row per `step`, `outcome`, `goto`.

    Outcomes are the combinations of values that the step's transitions tell apart, and what goes wrong: failures,
    limits, the supervisor's ways. A test can compare these rows with what they were: nothing has to run.
    """
    return [dict(row) for step in file.steps for row in _rows(file, step)]


def _rows(file: FlowFile, step: StepPart) -> Iterator[dict[str, Any]]:
    seen, taken, ways = set(), set(), step.ways
    for scope, said in scopes(file, step):
        try:
            number, way = next(
                (number, way)
                for number, way in enumerate(ways)
                if way.when is None or way.when.evaluate(scope)
            )
        except ExpressionError:
            continue  # a failure, which has a row of its own
        taken.add(number)
        if (said, way.goto) not in seen:
            seen.add((said, way.goto))
            yield {"step": step.id, "outcome": said or "done", "goto": way.goto}
    for number, way in enumerate(ways):
        if number not in taken:
            said = "else" if way.when is None else way.when.text
            yield {"step": step.id, "outcome": said, "goto": way.goto}
    for edge in edges(file):
        if edge.source == step.id and edge.why != "goto":
            what = {"recover": "supervisor: goto", "refused": "supervisor: refused"}
            yield {"step": step.id, "outcome": what.get(edge.why) or _limit(edge), "goto": edge.target}


def _limit(edge: Edge) -> str:
    """What kind of edge it is, for people; for one that a limit opens, which limit."""
    if edge.why != "exhausted":
        return edge.why
    part = edge.loc[-2]  # of …, loop, on_exhausted
    if edge.transition is None:
        return f"limit reached: {part}"
    field = "loop" if part == "loop" else "max_visits"
    counts = edge.transition.counts(edge.source)
    return f"limit reached: {next(name for name, _, place in counts if place[0] == field)}"
