"""How near each door of a loop is: its gates, asked about the turns so far."""

from collections.abc import Sequence
from dataclasses import dataclass

from loopkit.gates import MaxIterations
from loopkit.history import Gate, Iteration


@dataclass(frozen=True, kw_only=True)
class Door:
    """A gate, and how near it is."""

    gate: str
    """Its repr, or the name of a plain function."""
    nearness: float | None
    """From 0 to 1, where it opens; None where there is no telling."""
    reason: str | None
    """Why it is open; None while it is closed."""


def doors_info(gates: Sequence[Gate], history: Sequence[Iteration]) -> list[Door]:
    """One record per gate, in the order in which a loop asks them. One that is not of loopkit is open or closed only."""
    doors = []
    for gate in gates:
        stop, asked = gate(history), getattr(gate, "nearness", None)
        nearness = asked(history) if asked else 1.0 if stop else None
        name = getattr(gate, "__name__", None) or repr(gate)
        doors.append(Door(gate=name, nearness=nearness, reason=stop.reason if stop else None))
    return doors


def most_turns(gates: Sequence[Gate]) -> int | None:
    """How many turns there are at most; None where no gate counts them."""
    return min((gate.n for gate in gates if isinstance(gate, MaxIterations)), default=None)
