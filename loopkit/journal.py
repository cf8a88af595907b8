"""The journal: every step is done once. What the log holds is given back; the rest is run, and recorded.

Resuming is nothing else than running again over the same log. A loop or a flow asks its journal for one step after
another; the finished ones come back from the record, and so do the model calls that a half-finished one had
answered. Code between the steps must follow from what the steps returned: then it arrives where it was.
"""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from enum import Enum
from functools import lru_cache, partial
from inspect import isawaitable, isroutine, unwrap
from types import SimpleNamespace, UnionType
from typing import Any, Protocol, Union, get_args, get_origin, get_type_hints

from loopkit.history import BestOf, PhaseError
from loopkit.log import StoreError, decode, encode
from loopkit.usage import Usage, metered
from loopkit.verdict import Failure, Verdict


class Irreproducible(ValueError):
    """A record cannot give back what a step returned, or the code that resumes it is not the code that made it."""


class Log(Protocol):
    """Where a run is recorded: what `Store.create` returns, or anything with these three methods.

    `past`, if there is one, lists the events recorded before; without it nothing is resumed.
    """

    def append(self, event: str, **data: Any) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one step came to."""

    value: Any
    error: PhaseError | None
    usage: Usage
    seconds: float


Place = tuple[int, str, int | None]  # iteration, phase, and which of several candidates


class Journal:
    """A run in the making. `log` may be None: then nothing is recorded, and nothing is given back."""

    def __init__(self, log: Log | None) -> None:
        self._log, self._yielded = log, time.perf_counter()
        self._steps: dict[Place, dict[str, Any]] = {}
        self._answers: dict[Place, dict[str, deque[Any]]] = defaultdict(lambda: defaultdict(deque))
        self._notes: dict[tuple[str, int | None, int | None], dict[str, Any]] = {}
        self.iterations = 0
        """How many iterations were begun before: gates had their say on all but the last of them."""
        for event in getattr(log, "past", ()):
            self.iterations = max(self.iterations, event.get("iteration", 0))
            match event["event"]:
                case "step":
                    self._steps[_place(event)] = event
                case "call":
                    self._answers[_place(event)][event["request"]].append(event["answer"])
                case "stop" if event.get("resumable"):
                    pass  # it went on
                case kind:
                    self._notes[kind, event.get("iteration"), event.get("option")] = event

    def recorded(
        self, event: str, iteration: int | None = None, option: int | None = None
    ) -> dict[str, Any] | None:
        """The event of this kind (of this iteration) that was there before, or None."""
        return self._notes.get((event, iteration, option))

    def done(self, iteration: int, phase: str, option: int | None = None) -> bool:
        """Whether the record holds this step."""
        return (iteration, phase, option) in self._steps

    def note(
        self,
        event: str,
        *,
        iteration: int | None = None,
        option: int | None = None,
        same: tuple[str, ...] = (),
        **data: Any,
    ) -> bool:
        """Record an event, unless it was there before; then the fields named by `same` must be what they were.

        Returns whether it is new. Raises Irreproducible when one is not: another loop than the one that made the record.
        """
        if (before := self.recorded(event, iteration, option)) is None:
            self._append(event, iteration=iteration, option=option, **data)
            return True
        for key in same:
            if before.get(key) != data[key]:
                raise Irreproducible(
                    f"{event} {iteration or ''}: {key} was {before.get(key)} when this run was recorded and is now "
                    f"{data[key]}. Resume a run with the loop that began it, or fork it."
                )
        return False

    def _append(self, event: str, **fields: Any) -> None:
        if self._log is not None:
            self._log.append(event, **{key: one for key, one in fields.items() if one is not None})

    def goal(self, goal: Any) -> Any:
        """The goal of the run: `goal`, or what the record has where `goal` is None.

        Raises Irreproducible when it is another one, or has to be given because the record cannot give it back.
        """
        if (before := self.recorded("goal")) is None:
            if goal is None and self.recorded("resume") is not None:
                raise Irreproducible("this run died before its goal was recorded: pass it again")
            return goal
        known, name = before.get("goal"), before.get("type")
        if goal is None and name is None:
            return known
        if goal is None:
            raise Irreproducible(f"this run's goal was a {name}: pass it again, {known!r:.200}")
        if not _alike(decode(encode(goal)), known, name):
            raise Irreproducible(
                f"this run's goal is {known!r:.200}, got {goal!r:.200}: give it the same one"
            )
        return goal

    def settings(self, **settings: Any) -> None:
        """Record what a resumed or forked run goes by from here on, where that is not what its goal was begun with."""
        before = self.recorded("settings") or self.recorded("goal")
        if (
            before
            and not self.recorded("stop")
            and any(before.get(key) != one for key, one in settings.items())
        ):
            self._append("settings", **settings)

    def sync(self) -> None:
        """Return when all that was recorded is on the disk."""
        if self._log is not None:
            self._log.sync()

    async def step(
        self, iteration: int, phase: str, function: Callable[..., Any], *args: Any, option: int | None = None
    ) -> Step:
        """Do one step, `function(*args)`, or give back what it came to: value or error, what it spent, how long.

        A recorded value that was no plain data is made into the function's annotated return type. Raises
        Irreproducible when there is no such annotation, or it does not give back what was returned.
        """
        place = (iteration, phase, option)
        if (event := self._steps.get(place)) is not None:
            return Step(
                value=_restored(event, function),
                error=PhaseError(**event["error"]) if "error" in event else None,
                usage=Usage(**event.get("usage", {})),
                seconds=event["seconds"],
            )
        value, error, started = None, None, time.perf_counter()
        if started - self._yielded > 0.05:  # Ctrl-C is heard here, also where every step is a plain function
            await asyncio.sleep(0)
            self._yielded = started = time.perf_counter()
        # A loop without a log, inside a step of one that has, leaves its calls to that one.
        calls = Calls(self._log, place, self._answers.get(place)) if self._log is not None else _calls.get()
        token = _calls.set(calls)
        try:
            with metered() as usage:
                try:
                    value = function(*args)
                    if isawaitable(value):
                        value = await value
                except Failure as raised:
                    said = {"kind": raised.kind, "message": message_of(raised), "answer": raised.answer}
                    error = PhaseError(phase=phase, typed=True, **said)
                except (StoreError, Irreproducible):
                    raise  # the record itself: nothing more can be promised
                except Exception as raised:
                    kind = type(raised).__name__
                    error = PhaseError(phase=phase, kind=kind, message=message_of(raised), typed=False)
        finally:
            _calls.reset(token)
        if error:
            value = None
        seconds = round(time.perf_counter() - started, 6)
        if self._log is not None:
            event: dict[str, Any] = {"iteration": iteration, "phase": phase}
            if option is not None:
                event["option"] = option
            if value is not None:
                event["value"] = value
                if (name := type_name(value)) is not None:
                    event["type"] = name
            if error:
                event["error"] = asdict(error)
            if spent := usage.spent():
                event["usage"] = spent
            self._log.append("step", **event, seconds=seconds)
        return Step(value=value, error=error, usage=usage, seconds=seconds)


def message_of(error: Exception) -> str:
    """What an exception says, also of one that cannot be told."""
    try:
        return str(error)
    except Exception as unspeakable:
        return f"{type(unspeakable).__name__} in its message"


class Calls:
    """The model calls of one step: those answered before, and where to record the next."""

    def __init__(self, log: Log, place: Place, answered: dict[str, deque[Any]] | None) -> None:
        self._log, self._place, self._answered = log, place, answered or {}

    def recall(self, request: str) -> Any | None:
        """The next recorded answer to this request, as plain data; None if there is none."""
        waiting = self._answered.get(request)
        return waiting.popleft() if waiting else None

    def record(self, request: str, answer: Any, **data: Any) -> None:
        """Put an answer on the disk. What was paid for is not asked again, whatever happens next."""
        iteration, phase, option = self._place
        where = {"iteration": iteration, "phase": phase} | ({} if option is None else {"option": option})
        self._log.append("call", **where, request=request, **data, answer=answer)
        self._log.sync()


_calls: ContextVar[Calls | None] = ContextVar("loopkit_calls", default=None)


def current_calls() -> Calls | None:
    """The calls of the step that is running; None outside of one, and where nothing is recorded."""
    return _calls.get()


def _place(event: dict[str, Any]) -> Place:
    return event["iteration"], event["phase"], event.get("option")


def type_name(value: Any) -> str | None:
    """What JSON would not give back equal, by type, with the types inside of it; None for plain data.

    `tuple[app.Point]`, say, for a tuple that has instances of Point.
    """
    try:
        return VERDICT if _is_plain_verdict(value) else _name(value, {}, 40)
    except Exception:  # from an attribute of the value's own making
        return _own_name(value)


VERDICT = "loopkit.verdict.Verdict"


def _is_plain_verdict(value: Any) -> bool:
    """Every turn has one, and its parts are known: no need to look for what else may be inside."""
    if type(value) is not Verdict:
        return False
    feedback, evidence = value.feedback, value.evidence
    texts = (*feedback.blocking, *feedback.suggestions, *evidence, *evidence.values(), *value.dimensions)
    return all(type(text) is str for text in texts)


LOST = "?"  # what JSON cannot even hold: in no type's name


def _name(value: Any, known: dict[int, str], depth: int) -> str | None:
    if _plain(value):
        return None
    if not depth:
        return LOST
    if id(value) not in known:
        known[id(value)] = own = _own_name(value)  # a cycle ends here
        inner = {_name(part, known, depth - 1) for part in _parts(value)} - {None}
        if isinstance(value, dict):
            inner |= {_own_name(key) for key in value if type(key) is not str}
        if inner:
            known[id(value)] = f"{own}[{', '.join(sorted(inner))}]"
    return known[id(value)]


def _own_name(value: Any) -> str:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, bytes):
        try:
            value.decode()
        except UnicodeDecodeError:
            return f"{name}[{LOST}]"
    return name


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset | deque):
        return value
    names = getattr(type(value), "__dataclass_fields__", None) or getattr(type(value), "model_fields", ())
    return [getattr(value, name, None) for name in names]  # a pydantic model has model_fields


def _plain(value: Any, depth: int = 40) -> bool:
    if value is None or isinstance(value, str | int):
        return not isinstance(value, Enum)  # subclasses of another kind are as good as what they equal
    if isinstance(value, float):
        return value - value == 0  # neither NaN nor infinite
    if depth and type(value) is list:
        return all(_plain(one, depth - 1) for one in value)
    if depth and type(value) is dict:
        return all(type(key) is str and _plain(one, depth - 1) for key, one in value.items())
    return False


def _restored(event: dict[str, Any], function: Callable[..., Any]) -> Any:
    value, name = event.get("value"), event.get("type")
    if name is None:
        return value
    problem = ""
    for kind in _returned(function) if LOST not in name else ():
        try:
            restored = _adapter(kind).validate_python(value)
        except Exception as error:  # pydantic's, a validator's or a __post_init__'s own
            problem = problem or f" ({error})"
        else:
            if type_name(restored) == name and _alike(decode(encode(restored)), value, name):
                return restored
    raise Irreproducible(
        f"iteration {event['iteration']}, {event['phase']}: its record cannot give back the {name} that was "
        f"returned. Annotate the function's return type, with all that is inside, or return plain data{problem}"
    )


def _alike(one: Any, other: Any, name: str | None) -> bool:
    """Whether two records are equal. Where the type that `name` names has sets in it, lists may be in any order."""
    if name is None or "set" not in name:
        return one == other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key], name) for key in one)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        in_order = all(_alike(*both, name) for both in zip(one, other, strict=True))
        return in_order or sorted(map(encode, one)) == sorted(map(encode, other))
    return one == other


def _returned(function: Callable[..., Any]) -> list[Any]:
    """The types that a function may return: the annotated one, each of a union, and what every loop knows."""
    while isinstance(function, partial):
        function = function.func
    function = unwrap(function)
    if isinstance(function, type):
        return [function]
    if not isroutine(function):  # an object that can be called
        function = unwrap(type(function).__call__)
    try:
        # The return type alone: others may be there for type checkers only.
        said = {key: one for key, one in function.__annotations__.items() if key == "return"}
        names = getattr(function, "__globals__", {})
        hints = get_type_hints(SimpleNamespace(__annotations__=said), names, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError):  # a type that only its function could name
        hints = {}
    kinds = list(hints.values())
    if kinds and get_origin(kinds[0]) in (Union, UnionType):
        kinds += get_args(kinds[0])
    return [*kinds, BestOf]


def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    try:
        return _known_adapter(kind)
    except TypeError:  # a type that cannot be a cache's key
        return TypeAdapter(kind)


@lru_cache(maxsize=64)
def _known_adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
