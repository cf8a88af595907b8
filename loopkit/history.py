"""What has happened so far: the turns of a loop, and their running totals.

A `History` never changes; `history.then(turn)` gives the next one. Totals are kept as turns are added, so a gate
looks at the last turn only, however long the loop has run.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

from loopkit.log import encode
from loopkit.usage import Usage
from loopkit.verdict import Verdict

T = TypeVar("T")
Direction = Literal["maximise", "minimise"]


class Decision(StrEnum):
    """What became of a candidate: better than the best so far, not better, or a phase failed."""

    KEEP = "keep"
    DISCARD = "discard"
    CRASH = "crash"


@dataclass(frozen=True)
class BestOf(Generic[T]):
    """Several candidates of one turn: all are executed and judged, side by side, and the best goes on."""

    candidates: tuple[T, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", tuple(self.candidates))
        if not self.candidates:
            raise ValueError("BestOf needs at least one candidate")


@dataclass(frozen=True, kw_only=True)
class PhaseError:
    """A phase that raised, as data."""

    phase: str
    """`propose`, `execute` or `judge`; in a flow what the step was doing."""
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
    options: tuple[float | None, ...] = ()
    """After a `BestOf`: the score of each candidate, in order; None for one that crashed."""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    """Time inside the phases."""

    @property
    def score(self) -> float | None:
        """The verdict's score; None after a crash."""
        return self.verdict.score if self.verdict else None


@dataclass(frozen=True, kw_only=True)
class StopReason:
    """Which gate opened, and why, in words."""

    gate: str
    reason: str


class _Totals(NamedTuple):
    best: Iteration | None
    usage: Usage
    seconds: float
    same: tuple[int, int | None]


class History(Sequence[Iteration]):
    """The turns so far. Indexing, slicing and iterating work as on a tuple; a slice from the start is a History."""

    def __init__(self, turns: Sequence[Iteration] = (), *, direction: Direction = "maximise") -> None:
        if direction not in ("maximise", "minimise"):
            raise ValueError(f"direction must be 'maximise' or 'minimise', got {direction!r}")
        self.direction = direction
        self._turns: list[Iteration] = []
        self._totals = [_Totals(None, Usage(), 0.0, (0, None))]  # [n]: after n turns
        self._proposed: dict[bytes, tuple[int, int]] = {}  # by digest: how often, first where
        self._length = 0
        for turn in turns:
            self._add(turn)

    @classmethod
    def of(cls, turns: Sequence[Iteration]) -> "History":
        """`turns` as a History (of a loop that maximises, unless they are one already)."""
        return turns if isinstance(turns, History) else cls(turns)

    def then(self, turn: Iteration) -> "History":
        """This history and one more turn. The lists are shared: an earlier History looks at its part only."""
        newest = self._length == len(self._turns)
        later = self._until(self._length) if newest else History(tuple(self), direction=self.direction)
        later._add(turn)
        return later

    def _add(self, turn: Iteration) -> None:
        before = self._totals[self._length]
        usage = Usage(**vars(before.usage))
        usage.add(turn.usage)
        best = turn if turn.decision is Decision.KEEP else before.best
        same: tuple[int, int | None] = (0, None)
        if turn.candidate is not None:
            digest = hashlib.sha256(encode(turn.candidate)).digest()
            same = self._proposed.get(digest, same)
            self._proposed[digest] = (same[0] + 1, same[1] or turn.number)
        self._turns.append(turn)
        self._totals.append(_Totals(best, usage, before.seconds + turn.seconds, same))
        self._length += 1

    def _until(self, length: int) -> "History":
        view = History(direction=self.direction)
        view._turns, view._totals, view._proposed = self._turns, self._totals, self._proposed
        view._length = length
        return view

    @property
    def best(self) -> Iteration | None:
        """The turn to deliver: the last one kept."""
        return self._totals[self._length].best

    @property
    def usage(self) -> Usage:
        """All turns together. A copy: adding to it changes no history."""
        return Usage(**vars(self._totals[self._length].usage))

    @property
    def seconds(self) -> float:
        """All turns together."""
        return self._totals[self._length].seconds

    @property
    def same(self) -> tuple[int, int | None]:
        """How many earlier turns had the last turn's candidate (the very same JSON), and the number of the first."""
        return self._totals[self._length].same

    def gain(self, score: float, over: float) -> float:
        """By how much `score` is better than `over`, in this loop's direction; negative if it is worse."""
        return score - over if self.direction == "maximise" else over - score

    def advance(self, verdict: Verdict, over: Verdict) -> float:
        """By how much one verdict is better than another: the gain of its score, or ±infinity where only one is barred."""
        if bool(verdict.barred) != bool(over.barred):
            return math.inf if over.barred else -math.inf
        return self.gain(verdict.score, over.score)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Iteration: ...
    @overload
    def __getitem__(self, index: slice) -> "Sequence[Iteration]": ...
    def __getitem__(self, index: int | slice) -> "Iteration | Sequence[Iteration]":
        places = range(self._length)[index]
        if isinstance(places, int):
            return self._turns[places]
        if places == range(len(places)):
            return self._until(len(places))
        return tuple(self._turns[place] for place in places)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, History) and other.direction != self.direction:
            return False
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((self._length, self.direction))

    def __repr__(self) -> str:
        best = f"best {self.best.score:g} at {self.best.number}" if self.best else "nothing kept"
        return f"<History: {self._length} turns, {best}>"


Gate = Callable[[Sequence[Iteration]], StopReason | None]
