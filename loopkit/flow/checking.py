"""From a file to a flow: parse, validate, and refuse what could go astray, each problem with its line and column."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from loopkit.flow.cases import left_over, output_schema, waited
from loopkit.flow.expressions import Expression, Template
from loopkit.flow.graph import Loc, edges, free_cycles, reachable
from loopkit.flow.schema import ENDS, FlowFile, StepPart
from loopkit.flow.source import FlowError, Source

ANYWHERE = ("params", "steps", "goal", "visits", "correction", "news", "advice")


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


def _problems(file: FlowFile) -> Iterator[tuple[Loc, str]]:
    ids = [step.id for step in file.steps]
    places = {step.id: index for index, step in reversed(list(enumerate(file.steps)))}
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
    reached = reachable(file.start or ids[0], ways)
    for step in file.steps:
        if step.id not in reached:
            yield ("steps", places[step.id], "id"), f"no way leads to step {step.id!r}"
    for cycle in free_cycles(ids, ways):
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
            if (left := left_over(file, step)) is not None:
                yield (
                    ("steps", index, "transitions"),
                    f"step {step.id!r} leads nowhere when {left}: add a transition without when",
                )


def _field(loc: Loc) -> str:
    return str(next(part for part in reversed(loc) if isinstance(part, str)))


def _limits_agree(file: FlowFile) -> Iterator[tuple[Loc, str]]:
    """Ways that share a count must share its limit: what is used up for one is used up for all."""
    limits: dict[str, int] = {}
    for index, step in enumerate(file.steps):
        for number, way in enumerate(step.transitions):
            at: Loc = ("steps", index, "transitions", number)
            for name, limit, part in way.counts(step.id):
                if (known := limits.setdefault(name, limit)) != limit:
                    field = part[-1]
                    yield (
                        (*at, *part),
                        f"{name} has the limit {known} elsewhere, here {field} {limit}: ways that share a name, or have "
                        "none and lead the same way, share a count",
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
        if fields[0] in waited(owner) or schema is None:
            continue
        found = schema.at(tuple(fields))
        if found is None:
            names = ", ".join([*schema.properties, *waited(owner)]) or "nothing"
            yield f"{shown}: the output of {owner.id!r} has {names}"
        for compared, literal in literals:
            known = [*found.enum, None] if found and found.enum else None
            if compared == path and known and literal not in known:
                yield f"{shown} is never {literal!r}: it is one of {', '.join(map(repr, found.enum))}"
