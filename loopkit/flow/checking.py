"""From a file to a flow: parse, validate, and refuse what could go astray, each problem with its line and column."""

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from pydantic import ValidationError

from loopkit.flow.expressions import Expression, ExpressionError, Template
from loopkit.flow.schema import COMMAND_OUTPUT, ENDS, FlowFile, Schema, StepPart, Transition
from loopkit.flow.source import FlowError, Source

Loc = tuple[str | int, ...]
ANYWHERE = ("params", "steps", "goal", "visits", "correction", "news", "advice")
MOST_COMBINATIONS = 2000
ANSWER = Schema(properties={"answer": Schema(type="string")})


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


def read(source: Source) -> FlowFile:
    """The flow in `source`. Raises FlowError listing everything that is wrong with it."""
    try:
        file = FlowFile.model_validate(source.data)
    except ValidationError as error:
        raise FlowError([_problem(source, one) for one in error.errors()]) from None
    problems = [source.problem(loc, text) for loc, text in _problems(file)]
    if problems:
        raise FlowError(problems)
    return file


def _problem(source: Source, error: Mapping[str, Any]) -> str:
    text = error["msg"].removeprefix("Value error, ")
    match error["type"]:
        case "extra_forbidden":
            text = f"unknown field {error['loc'][-1]!r}"
        case "missing":
            text = f"{error['loc'][-1]!r} is missing"
        case kind if kind != "value_error":
            text += f", got {error['input']!r:.80}"
    return source.problem(error["loc"], text)


def output_schema(step: StepPart) -> Schema | None:
    """What the step's output holds before a wait adds to it; None when nobody has said."""
    defaults = {"command": COMMAND_OUTPUT, "human": ANSWER, "wait": Schema()}
    return step.output_schema or defaults.get(step.kind)


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
        if step.kind == "human":
            continue
        yield Edge(step.id, step.on_failure, "failure", False, (*at, "on_failure"))
        for number, target in enumerate(step.recover):
            yield Edge(step.id, target, "recover", True, (*at, "recover", number))
        if file.supervisor and file.supervisor.on_refused:
            yield Edge(step.id, file.supervisor.on_refused, "refused", True, ("supervisor", "on_refused"))


def _problems(file: FlowFile) -> Iterator[tuple[Loc, str]]:
    ids = [step.id for step in file.steps]
    places = {step.id: index for index, step in enumerate(file.steps)}
    for index, step in enumerate(file.steps):
        if step.id in ENDS:
            yield ("steps", index, "id"), f"{step.id!r} is an end of every flow, a step needs another id"
        if places[step.id] != index:
            yield ("steps", index, "id"), f"there are two steps {step.id!r}"
    if file.start is not None and file.start not in ids:
        yield ("start",), f"start: there is no step {file.start!r}; there are {', '.join(ids)}"
    known = {*ids, *ENDS}
    ways = list(edges(file))
    for edge in dict.fromkeys((edge.loc, edge.target) for edge in ways):
        if edge[1] not in known:
            yield (
                edge[0],
                f"{_field(edge[0])}: there is no step {edge[1]!r}; there are {', '.join([*ids, *ENDS])}",
            )
    if any(edge.target not in known for edge in ways) or (file.start or ids[0]) not in ids:
        return  # the rest would only repeat it
    reached = _reachable(file.start or ids[0], ways)
    for step in file.steps:
        if step.id not in reached:
            yield ("steps", places[step.id], "id"), f"no way leads to step {step.id!r}"
    for cycle in _free_cycles(ids, ways):
        names = " → ".join([edge.source for edge in cycle] + [cycle[0].source])
        yield (
            cycle[-1].loc,
            f"nothing bounds the cycle {names}: give one of its transitions a loop or max_visits",
        )
    if file.supervisor is None:
        for step in file.steps:
            if step.recover:
                yield (
                    ("steps", places[step.id], "recover"),
                    "recover is for a supervisor, and the flow has none",
                )
    yield from _limits_agree(file)
    astray = False
    for loc, one, extra in expressions(file):
        for problem in _names(file, one, extra):
            astray = True
            yield loc, problem
    if not astray:
        for index, step in enumerate(file.steps):
            if (left := _left_over(file, step)) is not None:
                yield (
                    ("steps", index, "transitions"),
                    f"step {step.id!r} leads nowhere when {left}: add a transition without when",
                )


def _field(loc: Loc) -> str:
    return str(next(part for part in reversed(loc) if isinstance(part, str)))


def _reachable(start: str, ways: list[Edge]) -> set[str]:
    reached, todo = {start}, deque([start])
    while todo:
        here = todo.popleft()
        for edge in ways:
            if edge.source == here and edge.target not in reached:
                reached.add(edge.target)
                todo.append(edge.target)
    return reached


def _free_cycles(ids: list[str], ways: list[Edge]) -> Iterator[list[Edge]]:
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


def _limits_agree(file: FlowFile) -> Iterator[tuple[Loc, str]]:
    limits: dict[str, int] = {}
    for index, step in enumerate(file.steps):
        for number, way in enumerate(step.ways):
            if way.loop and way.loop.name:
                limit = limits.setdefault(way.loop.name, way.loop.max_iterations)
                if limit != way.loop.max_iterations:
                    loc = ("steps", index, "transitions", number, "loop", "max_iterations")
                    yield (
                        loc,
                        f"loop {way.loop.name!r} has max_iterations {limit} elsewhere, here {way.loop.max_iterations}",
                    )


def expressions(file: FlowFile) -> Iterator[tuple[Loc, Expression | Template, tuple[str, StepPart | None]]]:
    """Every expression and template, where it stands, and what it may read beside the usual names."""
    for index, step in enumerate(file.steps):
        at: Loc = ("steps", index)
        for name in ("prompt", "human", "cwd"):
            if (text := getattr(step, name)) is not None:
                yield (*at, name), text, ("", None)
        for number, text in enumerate(step.command or ()):
            yield (*at, "command", number), text, ("", None)
        if step.goal:
            yield (*at, "goal", "until"), step.goal.until, ("output", step)
        if step.wait and not isinstance(step.wait.probe, str):
            for number, text in enumerate(step.wait.probe.command):
                yield (*at, "wait", "probe", "command", number), text, ("output", step)
        for number, way in enumerate(step.transitions):
            if way.when is not None:
                yield (*at, "transitions", number, "when"), way.when, ("output", step)
            if way.send is not None:
                yield (*at, "transitions", number, "send"), way.send, ("output", step)


def _names(file: FlowFile, one: Expression | Template, extra: tuple[str, StepPart | None]) -> Iterator[str]:
    """What is wrong with the names that an expression reads, and with the values it compares them to."""
    steps = {step.id: step for step in file.steps}
    word, own = extra
    literals = one.literals if isinstance(one, Expression) else ()
    for path in dict.fromkeys(one.paths):
        root, *rest = path
        shown = ".".join(path)
        owner: StepPart | None = None
        if root not in (*ANYWHERE, *filter(None, [word])):
            yield f"{shown}: unknown name {root!r}; there are {', '.join([*ANYWHERE, *filter(None, [word])])}"
        elif root == "params" and rest and rest[0] not in file.params:
            yield f"{shown}: the flow has no parameter {rest[0]!r}; there are {', '.join(file.params) or 'none'}"
        elif root == "output":
            owner, fields = own, rest
        elif root == "steps" and rest:
            owner, fields = steps.get(rest[0]), rest[2:]
            if owner is None:
                yield f"{shown}: there is no step {rest[0]!r}"
            elif len(rest) > 1 and rest[1] not in ("output", "visits"):
                yield f"{shown}: a step has output and visits, not {rest[1]!r}"
                owner = None
        if owner is None or not fields:
            continue
        schema = output_schema(owner)
        if fields[0] in _waited(owner) or schema is None:
            continue
        found = schema.at(tuple(fields))
        if found is None and "array" not in (schema.properties.get(fields[0], schema).type,):
            names = ", ".join([*schema.properties, *_waited(owner)]) or "nothing"
            yield f"{shown}: the output of {owner.id!r} has {names}"
        for compared, literal in literals:
            if compared == path and found is not None and found.enum and literal not in found.enum:
                yield f"{shown} is never {literal!r}: it is one of {', '.join(map(repr, found.enum))}"


def _waited(step: StepPart) -> list[str]:
    return [*step.wait.output, "poll", "news"] if step.wait else []


def _left_over(file: FlowFile, step: StepPart) -> str | None:
    """An output of the step under which no transition is taken, in words; None if there is none among those tried."""
    if any(way.when is None for way in step.ways):
        return None
    for scope, said in scopes(file, step):
        try:
            if not any(way.when.evaluate(scope) for way in step.ways):
                return said or "its conditions are false"
        except ExpressionError as error:
            return f"{said} ({error})"
    return None


def scopes(file: FlowFile, step: StepPart) -> Iterator[tuple[dict[str, Any], str]]:
    """What the step's transitions may find: each combination of values of what they read, and how to call it.

    Enums and booleans are tried in full; other fields by the values they are compared with, and some beside them.
    """
    paths: dict[tuple[str, ...], list[Any]] = {}
    for way in step.ways:
        if way.when is not None:
            for path in way.when.paths:
                paths.setdefault(path, _values(file, step, path))
            for path, literal in way.when.literals:
                if literal not in paths[path]:
                    paths[path].append(literal)
    for count, values in enumerate(product(*paths.values())):
        if count >= MOST_COMBINATIONS:
            return
        scope: dict[str, Any] = {}
        for path, value in zip(paths, values, strict=True):
            here = scope
            for key in path[:-1]:
                here = here.setdefault(key, {})
                if not isinstance(here, dict):
                    break
            else:
                here[path[-1]] = value
        yield (
            scope,
            ", ".join(f"{'.'.join(path)} is {value!r}" for path, value in zip(paths, values, strict=True)),
        )


def _values(file: FlowFile, step: StepPart, path: tuple[str, ...]) -> list[Any]:
    root, *rest = path
    if root == "params" and len(rest) == 1:
        return [file.params.get(rest[0])]
    if path == ("visits",) or (root == "steps" and rest[1:] == ["visits"]):
        return [1, 10**6]
    owner = (
        step if root == "output" else next((one for one in file.steps if rest and one.id == rest[0]), None)
    )
    fields = tuple(rest if root == "output" else rest[2:])
    if owner is not None and fields and fields[0] in _waited(owner):
        if fields[0] in owner.wait.output:
            return [owner.wait.output[fields[0]], None]
        return ["done", "news"] if fields[0] == "poll" else [None, "something"]
    schema = output_schema(owner) if owner is not None else None
    found = schema.at(fields) if schema else None
    if found is None:
        return ["something else"]
    if found.enum:
        return list(found.enum)
    match found.type:
        case "boolean":
            return [True, False]
        case "integer" | "number":
            kind = int if found.type == "integer" else float
            ends = ((found.minimum, -1e9), (found.maximum, 1e9))
            return [kind(other if end is None else end) for end, other in ends]
        case "array":
            return [[]]
        case "object":
            return [{}]
    return ["something else"]
