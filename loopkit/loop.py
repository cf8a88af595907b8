"""The loop: propose → execute → judge → decide, repeated until a gate opens.

The code owns the loop. A model only ever fills in one step; its answer comes back as data, and this file
decides what happens next, counts every turn and holds every exit. Read it first, then `gates.py`.
"""

import inspect
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from numbers import Real
from typing import Any, Protocol

from loopkit.usage import Usage, metered


class Failure(Exception):
    """A typed failure: a step ended without something usable, and we know how.

    Raise it from a phase to say "the model's answer was empty", never to say "our network is down": the
    first is a finding about the model, the second is not. `kind` is a short word to count by (`empty`,
    `truncated`, `malformed`, …), `detail` is for people, `answer` is what the model said, for the record.
    """

    def __init__(self, kind: str, detail: str = "", *, answer: str | None = None) -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind, self.detail, self.answer = kind, detail, answer


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """What a judge asks for, as two lists, so that nobody has to parse prose."""

    blocking: tuple[str, ...] = ()
    """Must be fixed before the candidate can pass."""
    suggestions: tuple[str, ...] = ()
    """May be improved."""

    def checklist(self) -> str:
        """Both lists as a Markdown checklist, for the next proposal and for people; empty when nothing is asked."""
        lines = [f"- [ ] {text}" for text in self.blocking]
        return "\n".join(lines + [f"- [ ] (optional) {text}" for text in self.suggestions])


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a judge says of a candidate. Higher scores are better; a score that is not finite is refused."""

    score: float
    feedback: Feedback = Feedback()
    dimensions: Mapping[str, float] = field(default_factory=dict)
    """Score per dimension, where the judge has several."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """What each dimension's score rests on: a quote, a measurement."""

    def __post_init__(self) -> None:
        for name, value in {"score": self.score, **self.dimensions}.items():
            # numbers.Real takes numpy's scalars in.
            if not isinstance(value, Real) or not math.isfinite(value):
                raise ValueError(f"a verdict's {name} must be a finite number, got {value!r}")
        object.__setattr__(self, "score", float(self.score))
        object.__setattr__(
            self, "dimensions", {name: float(value) for name, value in self.dimensions.items()}
        )


class Decision(StrEnum):
    """What became of a candidate: better than the best so far, not better, or a phase failed."""

    KEEP = "keep"
    DISCARD = "discard"
    CRASH = "crash"


@dataclass(frozen=True, kw_only=True)
class PhaseError:
    """A phase that raised, as data."""

    phase: str
    """`propose`, `execute` or `judge`."""
    kind: str
    """`Failure.kind`, or the exception's class name."""
    message: str
    typed: bool
    """True for a `Failure` (a finding), False for anything else (a bug, or infrastructure)."""
    answer: str | None = None
    """What the model had said, where the `Failure` carries it."""


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """One turn of the loop. `number` counts from 1; what a failed phase did not produce is None."""

    number: int
    decision: Decision
    candidate: Any = None
    observation: Any = None
    """What `execute` returned."""
    verdict: Verdict | None = None
    error: PhaseError | None = None
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    @property
    def score(self) -> float | None:
        """The verdict's score; None after a crash."""
        return self.verdict.score if self.verdict else None


@dataclass(frozen=True, kw_only=True)
class StopReason:
    """Which gate opened, and why, in words."""

    gate: str
    reason: str


History = Sequence[Iteration]
Gate = Callable[[History], StopReason | None]


class Log(Protocol):
    """Where a run is recorded: what `Store.create` returns, or anything with these three methods."""

    def append(self, event: str, **data: Any) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...


def best_of(history: History) -> Iteration | None:
    """The kept iteration with the highest score, which is always the last one kept."""
    return next((turn for turn in reversed(history) if turn.decision is Decision.KEEP), None)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended. The best candidate is delivered whatever gate opened; None if every turn crashed."""

    goal: Any
    history: tuple[Iteration, ...]
    stopped_by: StopReason

    @property
    def best(self) -> Iteration | None:
        return best_of(self.history)

    @property
    def usage(self) -> Usage:
        """All iterations together."""
        total = Usage()
        for turn in self.history:
            total.add(turn.usage)
        return total


class Loop:
    """`propose(goal, history)`, `execute(candidate)`, `judge(candidate, observation)`: plain functions or async ones.

    `judge` returns a `Verdict` or a bare number. `gates` are tried in order after every turn; the first that
    returns a `StopReason` ends the run. At least one must bound the number of turns by itself
    (`MaxIterations`, `Budget(seconds=…)`), else the loop is refused with a ValueError: hope is not an exit.
    """

    def __init__(
        self,
        *,
        propose: Callable[[Any, History], Any],
        execute: Callable[[Any], Any],
        judge: Callable[[Any, Any], Any],
        gates: Sequence[Gate],
    ) -> None:
        if not any(getattr(gate, "bounds", False) for gate in gates):
            raise ValueError("no gate bounds this loop: add MaxIterations(n) or Budget(seconds=…) to `gates`")
        self.propose, self.execute, self.judge, self.gates = propose, execute, judge, tuple(gates)

    async def run(self, goal: Any, *, log: Log | None = None) -> Outcome:
        """Run until a gate opens. With a `log` every phase is recorded, synced to disk after each iteration.

        A phase that raises is a `crash` with the error as data, and the loop goes on; only cancelling
        (Ctrl-C, `asyncio.CancelledError`) leaves early, and what was recorded by then stays.
        """
        history: list[Iteration] = []
        record = log.append if log else lambda event, **data: None
        record("goal", goal=goal, gates=[repr(gate) for gate in self.gates])
        while True:
            turn = await self._turn(goal, history, record)
            history.append(turn)
            stop = self._stop(history)
            best = best_of(history)
            record(
                "iteration",
                iteration=turn.number,
                decision=turn.decision,
                score=turn.score,
                best=best.number if best else None,
                feedback=asdict(turn.verdict.feedback) if turn.verdict else None,
                error=asdict(turn.error) if turn.error else None,
                usage=asdict(turn.usage),
                seconds=round(turn.seconds, 6),
            )
            if stop:
                record("stop", gate=stop.gate, reason=stop.reason, best=best.number if best else None)
            if log:
                log.sync()
            if stop:
                return Outcome(goal=goal, history=tuple(history), stopped_by=stop)

    async def _turn(self, goal: Any, history: list[Iteration], record: Callable[..., None]) -> Iteration:
        number, started = len(history) + 1, time.perf_counter()
        made: dict[str, Any] = {}
        error = None
        phases = (
            ("candidate", "propose", lambda: self.propose(goal, tuple(history))),
            ("observation", "execute", lambda: self.execute(made["candidate"])),
            ("verdict", "judge", lambda: self._judged(made["candidate"], made["observation"])),
        )
        with metered() as usage:
            for product, phase, call in phases:
                value, error = await _recorded(record, number, phase, call)
                if error:
                    break
                made[product] = value
        best = best_of(history)
        if error:
            decision = Decision.CRASH
        elif best is None or made["verdict"].score > best.score:
            decision = Decision.KEEP
        else:
            decision = Decision.DISCARD
        seconds = time.perf_counter() - started
        return Iteration(number=number, decision=decision, error=error, usage=usage, seconds=seconds, **made)

    async def _judged(self, candidate: Any, observation: Any) -> Verdict:
        verdict = await _value(self.judge(candidate, observation))
        return verdict if isinstance(verdict, Verdict) else Verdict(score=verdict)

    def _stop(self, history: History) -> StopReason | None:
        return next((stop for gate in self.gates if (stop := gate(history))), None)


async def _value(result: Any) -> Any:
    """What a plain function returned, or what an async one will have."""
    return await result if inspect.isawaitable(result) else result


async def _recorded(
    record: Callable[..., None], number: int, phase: str, call: Callable[[], Any]
) -> tuple[Any, PhaseError | None]:
    """Run one phase of turn `number`; return its value, or the error that it raised."""
    value, error, started = None, None, time.perf_counter()
    with metered() as usage:
        try:
            value = await _value(call())
        except Failure as raised:
            error = PhaseError(
                phase=phase, kind=raised.kind, message=str(raised), typed=True, answer=raised.answer
            )
        except Exception as raised:
            error = PhaseError(phase=phase, kind=type(raised).__name__, message=str(raised), typed=False)
    record(
        "step",
        iteration=number,
        phase=phase,
        value=value,
        error=asdict(error) if error else None,
        usage=asdict(usage),
        seconds=round(time.perf_counter() - started, 6),
    )
    return value, error
