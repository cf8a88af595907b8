"""The supervisor: a model that is asked only when a step has failed, on a budget, and whose advice is checked."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from loopkit.flow.moves import Way
from loopkit.flow.schema import StepPart
from loopkit.flow.schema import Supervisor as Limits
from loopkit.flow.world import Advice
from loopkit.gates import Budget
from loopkit.history import PhaseError
from loopkit.usage import Usage
from loopkit.verdict import Failure

if TYPE_CHECKING:
    from loopkit.flow.engine import Walk


class Supervision:
    """What became of a supervisor's advice in one run."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._budget = None if limits.cost is None else Budget(cost=limits.cost)
        self._asked: Counter[str] = Counter()
        self._usage = Usage()

    async def consult(self, walk: "Walk", step: StepPart, error: PhaseError) -> Way | Advice:
        """A way out of the step that failed, or advice to follow in that very step (`retry`, `fix`)."""
        if limit := self._limit(step):
            walk.counters.limits[f"supervisor: {limit}"] += 1
            return Way(goto=step.on_failure, via=f"failure: {error.kind} (supervisor: {limit})")
        self._asked[step.id] += 1
        turn = self._asked.total()
        done = await walk.model_turn("supervisor", turn, _advise, walk, step, _case(step, error), turn)
        self._usage.add(done.usage)
        advice = Advice(**done.value) if done.value else None
        refused = self._refused(walk, step, error, advice) if advice else f"no advice ({done.error.kind})"
        walk.counters.advice["refused" if refused else "followed"] += 1
        event = {"step": step.id, "action": advice and advice.action, "refused": refused or None}
        if walk.journal.note("advice", iteration=walk.number, option=turn, **event):
            walk.watch({"event": "advice", **event})
        if refused or advice.action == "person":
            via = f"supervisor refused: {refused}" if refused else "supervisor: a person is asked"
            walk.cancel(via, advice and advice.instruction)
            return Way(goto=self.limits.on_refused or step.on_failure, via=via)
        if advice.action == "goto":
            walk.correction = advice.instruction or None
            return Way(goto=advice.goto, via="supervisor: goto")
        return advice

    def _limit(self, step: StepPart) -> str | None:
        """The limit that is used up, in words."""
        if self._asked[step.id] >= self.limits.per_step:
            return f"{self.limits.per_step} interventions for step {step.id}"
        if self._asked.total() >= self.limits.per_run:
            return f"{self.limits.per_run} interventions for the run"
        spent = self._budget and self._budget.spent(self._usage, 0.0)
        return spent.reason if spent else None

    def _refused(self, walk: "Walk", step: StepPart, error: PhaseError, advice: Advice) -> str | None:
        """Why this advice is not followed; None if it is."""
        # The one line that keeps a supervisor on the ways that were drawn.
        if advice.action == "goto" and advice.goto not in step.recover:
            return f"{advice.goto!r} is not in the recover list of {step.id!r}"
        if advice.action == "retry" and step.once and error.kind == "interrupted":
            return f"{step.id!r} is to be done once, and may have been done"
        if advice.action == "fix":
            if advice.fixed is None or step.kind not in ("prompt", "code"):
                return "it has no output to put in the step's place"
            try:
                walk.world.checked(step, advice.fixed)
            except Failure as failure:
                return f"its output does not fit: {failure.detail}"
        return None


async def _advise(walk: "Walk", step: StepPart, text: str, turn: int) -> dict[str, Any]:
    return (await walk.world.advise(step, text, turn=turn)).model_dump()


def _case(step: StepPart, error: PhaseError) -> str:
    said = f"\nIt had answered: {error.answer:.1000}" if error.answer else ""
    return (
        f"Step {step.id!r} ({step.title or step.kind}) failed: {error.kind}: {error.message:.1000}{said}\n"
        f"Steps you may send the run back to: {', '.join(step.recover) or 'none'}."
    )
