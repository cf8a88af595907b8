"""What a step can come to: its output as far as the flow says, and the cases that its conditions tell apart."""

import math
import re
from collections.abc import Iterator
from itertools import islice, pairwise, product
from typing import Any

from loopkit.flow.expressions import ExpressionError
from loopkit.flow.graph import edges, reachable
from loopkit.flow.schema import COMMAND_OUTPUT, FlowFile, Schema, StepPart

MOST_CASES = 25_000
ANSWER = Schema(properties={"answer": Schema(type="string")})
Path = tuple[str, ...]
INDEX = re.compile(r"-?\d+")


def output_schema(step: StepPart) -> Schema | None:
    """What the step's output holds before a wait adds to it; None when nobody has said."""
    defaults = {"command": COMMAND_OUTPUT, "human": ANSWER, "wait": Schema()}
    return step.output_schema or defaults.get(step.kind)


def waited(step: StepPart) -> list[str]:
    """What a wait adds to the output of its step."""
    return [*step.wait.output, "poll", "news"] if step.wait else []


def left_over(file: FlowFile, step: StepPart) -> str | None:
    """An output of the step under which no transition is taken, in words; None if there is none among those tried."""
    if any(way.when is None for way in step.ways):
        return None
    if (count := math.prod(map(len, _tried(file, step).values()))) > _most(step):
        return f"none of its conditions holds, and they tell {count} cases apart, more than are tried"
    for scope, said in scopes(file, step):
        try:
            if not any(way.when.evaluate(scope) for way in step.ways):
                return said or "its conditions are false"
        except ExpressionError as error:
            return f"{said} ({error})"
    return None


def scopes(file: FlowFile, step: StepPart) -> Iterator[tuple[dict[str, Any], str]]:
    """What the step's transitions may find: combinations of values of what they read, and how to call each.

    Enums and booleans are tried in full; numbers at and between those that the conditions name; other fields by the
    values they are compared with, and some beside them.
    """
    paths = _tried(file, step)
    for values in islice(product(*paths.values()), _most(step)):
        scope: dict[str, Any] = {}
        if not all([_put(scope, path, value) for path, value in zip(paths, values, strict=True)]):
            continue
        said = (f"{'.'.join(path)} is {value!r:.60}" for path, value in zip(paths, values, strict=True))
        yield scope, ", ".join(said)


def _most(step: StepPart) -> int:
    """How many cases are tried: fewer where each takes long."""
    reads = sum(len(way.when.paths) for way in step.ways if way.when is not None)
    return max(100, MOST_CASES // max(5, reads))


def _put(scope: dict[str, Any], path: Path, value: Any) -> bool:
    """Set what `path` leads to. False where there is no such case: an item of a list that is too short, say."""
    here: Any = scope
    for key, last in zip(path, [*[False] * (len(path) - 1), True], strict=True):
        below = (value.copy() if isinstance(value, dict | list) else value) if last else {}
        index = int(key) if INDEX.fullmatch(key) else None
        if isinstance(here, list):
            if index is None or not -len(here) <= index < len(here):
                return value is None
            if last and value is None:
                return False
            here[index] = below if last or here[index] is None else here[index]
            here = here[index]
        elif isinstance(here, dict):
            if last or key not in here:
                here[key] = below
                if index is not None:  # how an expression reads it
                    here[index] = below
            here = here[key]
        else:
            return value is None
    return True


def _tried(file: FlowFile, step: StepPart) -> dict[Path, list[Any]]:
    """The values that are tried of each path that the conditions read; of a path before what is inside of it."""
    conditions = [way.when for way in step.ways if way.when is not None]
    numbers = {float(found) for when in conditions for found in re.findall(r"-?\d+(?:\.\d+)?", when.text)}
    compared: dict[Path, list[Any]] = {path: [] for when in conditions for path in when.paths}
    for when in conditions:
        for path, literal in when.literals:
            compared[path].append(literal)
    found = {path: _values(file, step, path, numbers, compared[path]) for path in compared}
    return dict(sorted(found.items(), key=lambda item: len(item[0])))


def _values(
    file: FlowFile, step: StepPart, path: Path, numbers: set[float], compared: list[Any]
) -> list[Any]:
    """Some values that `path` may have when the step chooses its way; `compared` are constants it is compared with."""
    root, *rest = path
    anything = _distinct([None, "something else", *compared])
    if root == "params" and len(rest) == 1:  # a run may give it another value
        match file.params.get(rest[0]):
            case bool():
                return [True, False]
            case int() | float() as default:
                return _distinct([default, *_between(numbers, -(10**9), 10**9)])
            case None:
                return anything
            case default:
                return _distinct(
                    [default, *(["something else"] if isinstance(default, str) else []), *compared]
                )
    if path == ("visits",):
        return _between(numbers, 1, 10**6)
    if root == "steps" and rest[1:] == ["visits"]:
        return _between(numbers, 0, 10**6)
    if root == "goal":
        return [file.goal]
    owner = step if root == "output" else next((one for one in file.steps if rest[:1] == [one.id]), None)
    if owner is None:
        return anything
    fields = tuple(rest if root == "output" else rest[2:])
    undone = root == "steps" and _may_be_undone(file, step, owner)
    if fields and fields[0] in waited(owner):
        if fields == ("poll",):
            return ["done", "news", *(["pending"] if root == "steps" else []), *([None] if undone else [])]
        return _distinct([owner.wait.output.get(fields[0], "something else"), None])
    schema = output_schema(owner)
    if schema is None or (found := schema.at(fields)) is None:
        return anything
    lacks = undone or schema.may_lack(fields)
    return [*_fitting(found, numbers, compared), *([None] if lacks else [])]


def _fitting(schema: Schema, numbers: set[float], compared: list[Any]) -> list[Any]:
    """Some values that fit; of an enum or a boolean all."""
    if schema.enum:
        return list(schema.enum)
    match schema.type:
        case "boolean":
            return [True, False]
        case "integer" | "number":
            low, high = schema.bounds
            low = min(-(10**9), 0 if high is None else high - 1) if low is None else low
            high = max(10**9, low + 1) if high is None else high
            return _between(numbers, low, high, whole=schema.type == "integer")
        case "array":
            most = 1000 if schema.maxItems is None else min(1000, schema.maxItems)
            return [[None] * size for size in _between(numbers, min(1000, schema.minItems or 0), most)]
        case "object":
            return [{}]
    texts = [one for one in compared if isinstance(one, str)]
    return _distinct(["something else", *([] if schema.minLength else [""]), *texts])


def _distinct(values: list[Any]) -> list[Any]:
    return [one for index, one in enumerate(values) if one not in values[:index]]


def _between(numbers: set[float], low: Any, high: Any, *, whole: bool = True) -> list[Any]:
    """`low`, `high`, and of the `numbers` those between, with a number in each gap: what comparisons can tell apart."""
    inside = sorted(one for one in numbers if low <= one <= high)
    if whole:
        beside = {
            near for one in inside for near in (math.floor(one), math.floor(one) + 1, math.ceil(one) - 1)
        }
        inside = sorted(one for one in beside if low < one < high)
    else:
        ends = [low, *inside, high]
        inside += [one / 2 + other / 2 for one, other in pairwise(ends)]
    return list(dict.fromkeys([low, high, *inside]))


def _may_be_undone(file: FlowFile, step: StepPart, other: StepPart) -> bool:
    """Whether the run may come to `step` before `other` had an output."""
    without = [
        edge for edge in edges(file) if edge.source != other.id or edge.why not in ("goto", "exhausted")
    ]
    return other.id != step.id and step.id in reachable(file.start or file.steps[0].id, without)
