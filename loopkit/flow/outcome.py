"""How a flow ended, and what its limits did."""

import html
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loopkit.flow.schema import DONE, FlowFile
from loopkit.history import History, StopReason
from loopkit.usage import Usage

if TYPE_CHECKING:
    import pandas as pd

    from loopkit.flow.world import Question


class Counters:
    """What the engine counted."""

    def __init__(self, file: FlowFile) -> None:
        self._file = file
        self.visits: Counter[str] = Counter()
        """By step."""
        self.model_turns: Counter[str] = Counter()
        """By step; a supervisor's turns count for the step that had failed."""
        self.taken: Counter[str] = Counter()
        """How often a bounded way was taken, by the name of its loop, else `step->target`."""
        self.limits: Counter[str] = Counter()
        """How often a limit opened, by name."""
        self.polls: Counter[tuple[str, str]] = Counter()
        """By step and what the probe said: `pending`, `done`, `news`, `failing`."""
        self.advice: Counter[str] = Counter()
        """The supervisor's, `followed` and `refused`."""
        self.cancelled = 0
        """Corrections that were under way when a limit opened."""

    @property
    def polls_without_model(self) -> int:
        """Looks that called nobody: nothing new, or all well. Only `news` calls a model."""
        return sum(count for (_, state), count in self.polls.items() if state != "news")

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per counter: what it is, its name, the count, its limit, how often the limit opened."""

        def row(
            what: str, name: str, count: int, limit: int | None = None, opened: int = 0
        ) -> dict[str, Any]:
            return {"what": what, "name": name, "count": count, "limit": limit, "opened": opened}

        for step in self._file.steps:
            yield row("visits", step.id, self.visits[step.id])
            if self.model_turns[step.id]:
                yield row("model turns", step.id, self.model_turns[step.id])
            for state in ("pending", "failing", "news", "done"):
                if self.polls[step.id, state]:
                    yield row("polls", f"{step.id}: {state}", self.polls[step.id, state])
        told = set()
        for step in self._file.steps:
            for way in step.ways:
                for name, limit, _ in way.counts(step.id):
                    if name not in told:
                        told.add(name)
                        yield row("loop", name, self.taken[name], limit, self.limits[name])
        for name, opened in self.limits.items():
            if name not in told:
                yield row("limit", name, opened, None, opened)
        for kind in ("followed", "refused"):
            if self._file.supervisor:
                limit = self._file.supervisor.per_run if kind == "followed" else None
                yield row("supervisor", f"advice {kind}", self.advice[kind], limit)
        yield row("corrections", "cancelled", self.cancelled)


@dataclass(frozen=True)
class FlowOutcome:
    """Where a run of a flow got to."""

    history: History
    """One iteration per visit of a step: `candidate` is its id, `observation` its output."""
    outputs: dict[str, Any]
    """The last output of each step that was done, by id."""
    counters: Counters
    stopped_by: StopReason | None = None
    """`done` or `failed` when the flow came to its end; else the gate that opened."""
    question: "Question | None" = None
    """What a person is asked; the run goes on when it is answered."""
    simulated: bool = False
    """Whether nothing was executed."""

    @property
    def status(self) -> str:
        """`done`, `failed`, `waiting` (for a person), or `stopped` (a budget, a gate)."""
        if self.question:
            return "waiting"
        return self.stopped_by.gate if self.stopped_by.gate in (DONE, "failed") else "stopped"

    @property
    def usage(self) -> Usage:
        """All visits together."""
        return self.history.usage

    @property
    def path(self) -> list[str]:
        """The ids of the steps, in the order they were visited."""
        return [turn.candidate for turn in self.history]

    def counters_df(self) -> "pd.DataFrame":
        """One row per counter: `what`, `name`, `count`, `limit`, `opened` (how often the limit did)."""
        import pandas as pd

        frame = pd.DataFrame(list(self.counters.rows()))
        return frame.astype({"limit": "Int64"})

    def __repr__(self) -> str:
        why = self.question.text if self.question else self.stopped_by.reason
        label = " (simulated)" if self.simulated else ""
        return f"<FlowOutcome{label}: {self.status} after {len(self.history)} steps ({why})>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.counters_df().to_html(index=False, na_rep='')}"
