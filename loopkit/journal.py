"""The journal: every step is done once. What the log holds is given back; the rest is run, and recorded.

Resuming is nothing else than running again over the same log. A loop or a flow asks its journal for one step after
another; the finished ones come back from the record, and so do the model calls that a half-finished one had
answered. Code between the steps must follow from what the steps returned: then it arrives where it was.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import lru_cache
from inspect import isawaitable
from typing import Any, Protocol, get_type_hints

from loopkit.history import PhaseError
from loopkit.log import StoreError
from loopkit.usage import Usage, metered
from loopkit.verdict import Failure


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
        self._log = log
        self._steps: dict[Place, dict[str, Any]] = {}
        self._answers: dict[Place, dict[str, deque[Any]]] = defaultdict(lambda: defaultdict(deque))
        self._notes: dict[tuple[str, int | None], dict[str, Any]] = {}
        self.iterations = 0
        """How many iterations were begun before: gates had their say on all but the last of them."""
        for event in getattr(log, "past", ()):
            match event["event"]:
                case "step":
                    self._steps[_place(event)] = event
                    self.iterations = max(self.iterations, event["iteration"])
                case "call":
                    self._answers[_place(event)][event["request"]].append(event["answer"])
                case "stop" if event.get("resumable"):
                    pass  # it went on
                case kind:
                    self._notes[kind, event.get("iteration")] = event

    def recorded(self, event: str, iteration: int | None = None) -> dict[str, Any] | None:
        """The event of this kind (of this iteration) that was there before, or None."""
        return self._notes.get((event, iteration))

    def note(
        self, event: str, *, iteration: int | None = None, same: tuple[str, ...] = (), **data: Any
    ) -> None:
        """Record an event, unless it was there before; then the fields named by `same` must be what they were.

        Raises Irreproducible when one is not: another loop than the one that made the record.
        """
        if (before := self.recorded(event, iteration)) is None:
            if self._log is not None:
                where = {} if iteration is None else {"iteration": iteration}
                self._log.append(
                    event, **where, **{key: value for key, value in data.items() if value is not None}
                )
            return
        for key in same:
            if before.get(key) != data[key]:
                raise Irreproducible(
                    f"{event} {iteration}: {key} was {before.get(key)!r} when this run was recorded and is now "
                    f"{data[key]!r}. Resume a run with the loop that began it, or fork it."
                )

    def sync(self) -> None:
        """Return when all that was recorded is on the disk."""
        if self._log is not None:
            self._log.sync()

    async def step(
        self, iteration: int, phase: str, function: Callable[..., Any], *args: Any, option: int | None = None
    ) -> Step:
        """Do one step, `function(*args)`, or give back what it came to: value or error, what it spent, how long.

        A recorded value that was no plain data is made into the function's annotated return type. Raises
        Irreproducible when there is no such annotation, or it does not fit.
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
        token = _calls.set(
            Calls(self._log, place, self._answers.get(place)) if self._log is not None else None
        )
        try:
            with metered() as usage:
                try:
                    value = function(*args)
                    if isawaitable(value):
                        value = await value
                except Failure as raised:
                    said = {"kind": raised.kind, "message": str(raised), "answer": raised.answer}
                    error = PhaseError(phase=phase, typed=True, **said)
                except (StoreError, Irreproducible):
                    raise  # the record itself: nothing more can be promised
                except Exception as raised:
                    error = PhaseError(
                        phase=phase, kind=type(raised).__name__, message=str(raised), typed=False
                    )
        finally:
            _calls.reset(token)
        if error:
            value = None
        seconds = round(time.perf_counter() - started, 6)
        if self._log is not None:
            event = {
                "iteration": iteration,
                "phase": phase,
                "option": option,
                "value": value,
                "type": type_name(value),
            }
            event |= {"error": error and asdict(error), "usage": usage.spent() or None, "seconds": seconds}
            self._log.append("step", **{key: one for key, one in event.items() if one is not None})
        return Step(value=value, error=error, usage=usage, seconds=seconds)


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
    """The name of a type that JSON would not give back equal; None for plain data."""
    return None if _plain(value) else f"{type(value).__module__}.{type(value).__qualname__}"


def _plain(value: Any, depth: int = 40) -> bool:
    if value is None or isinstance(
        value, str | int
    ):  # their subclasses too: an enum's member equals its value
        return True
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
    restored = problem = None
    if (adapter := _adapter(function)) is not None:
        try:
            restored = adapter.validate_python(value)
        except ValueError as error:
            problem = f": {error}"
    if type_name(restored) != name:
        raise Irreproducible(
            f"iteration {event['iteration']}, {event['phase']}: its record cannot give back the {name} that was "
            f"returned. Annotate the function's return type, or return plain data{problem or ''}"
        )
    return restored


def _adapter(function: Callable[..., Any]) -> Any | None:
    """What makes plain data into the annotated return type of a function; None without one."""
    from pydantic.errors import PydanticUserError

    function = getattr(function, "__wrapped__", function)
    if not hasattr(function, "__annotations__"):  # an object that can be called, or a partial
        function = getattr(function, "func", type(function).__call__)
    try:
        annotation = get_type_hints(function).get("return")
        return None if annotation is None else _adapter_of(annotation)
    except (
        NameError,
        TypeError,
        AttributeError,
        PydanticUserError,
    ):  # a type that only its function could name
        return None


@lru_cache(maxsize=64)
def _adapter_of(annotation: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(annotation)
