"""The graph of a flow: every way the engine can take, what they reach, and the cycles that nothing bounds."""

from collections.abc import Iterator
from typing import NamedTuple

from loopkit.flow.schema import ENDS, FlowFile, Transition

Loc = tuple[str | int, ...]


class Edge(NamedTuple):
    """One way from a step to another, or to an end."""

    source: str
    target: str
    why: str
    """`goto`, `exhausted`, `failure`, `recover` or `refused`."""
    bounded: bool
    """Whether a counter limits how often it is taken."""
    loc: Loc
    transition: Transition | None = None


def edges(file: FlowFile) -> Iterator[Edge]:
    """Every way the engine can take. `supervisor.on_refused` counts from each step that can fail."""
    for index, step in enumerate(file.steps):
        at: Loc = ("steps", index)
        for number, way in enumerate(step.ways):
            loc = (*at, "goto") if step.goto else (*at, "transitions", number, "goto")
            yield Edge(step.id, way.goto, "goto", way.bounded, loc, way)
            if way.loop:
                yield Edge(
                    step.id,
                    way.loop.on_exhausted,
                    "exhausted",
                    False,
                    (*loc[:-1], "loop", "on_exhausted"),
                    way,
                )
            if way.max_visits:
                yield Edge(step.id, way.on_exhausted, "exhausted", False, (*loc[:-1], "on_exhausted"), way)
        for name, part in (("goal", step.goal), ("wait", step.wait)):
            if part:
                yield Edge(step.id, part.on_exhausted, "exhausted", False, (*at, name, "on_exhausted"))
        yield Edge(step.id, step.on_failure, "failure", False, (*at, "on_failure"))
        if step.kind == "human":
            continue
        for number, target in enumerate(step.recover):
            yield Edge(step.id, target, "recover", True, (*at, "recover", number))
        if file.supervisor and file.supervisor.on_refused:
            yield Edge(step.id, file.supervisor.on_refused, "refused", True, ("supervisor", "on_refused"))


def reachable(start: str, ways: list[Edge]) -> set[str]:
    out: dict[str, list[str]] = {}
    for edge in ways:
        out.setdefault(edge.source, []).append(edge.target)
    reached, todo = {start}, [start]
    while todo:
        for target in out.get(todo.pop(), ()):
            if target not in reached:
                reached.add(target)
                todo.append(target)
    return reached


def free_cycles(ids: list[str], ways: list[Edge]) -> Iterator[list[Edge]]:
    """A cycle of edges that no counter limits, for each way back that closes one.

    A run takes bounded edges a finite number of times only, so an endless run ends in such a cycle.
    """
    out: dict[str, list[Edge]] = {name: [] for name in (*ids, *ENDS)}
    for edge in ways:
        if not edge.bounded:
            out[edge.source].append(edge)
    state: dict[str, int] = {}  # 1 while on the path, 2 when done
    for root in ids:
        path: list[Edge] = []
        stack = [(root, iter(out[root]))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            here, left = stack[-1]
            if (edge := next(left, None)) is None:
                state[here] = 2
                stack.pop()
                if path:
                    path.pop()
            elif state.get(edge.target) == 1:
                begin = next((i for i, one in enumerate(path) if one.source == edge.target), len(path))
                yield [*path[begin:], edge]
            elif edge.target not in state:
                state[edge.target] = 1
                path.append(edge)
                stack.append((edge.target, iter(out[edge.target])))
