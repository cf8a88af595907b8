"""The loop: propose → execute → judge → decide, repeated until a gate opens.

The code owns the loop. A model only ever fills in one step; its answer comes back as data, and this file
decides what happens next, counts every turn and holds every exit. Read it first, then `gates.py`.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, replace
from inspect import isawaitable
from typing import Any

from loopkit.history import BestOf, Decision, Direction, Gate, History, Iteration, StopReason
from loopkit.journal import Journal, Log, Step, type_name
from loopkit.usage import Usage
from loopkit.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended. The best candidate is delivered whatever gate opened; None if every turn crashed."""

    goal: Any
    history: History
    stopped_by: StopReason
    gates: tuple[Gate, ...] = ()
    """Those that were asked."""

    @property
    def best(self) -> Iteration | None:
        return self.history.best

    @property
    def usage(self) -> Usage:
        """All iterations together."""
        return self.history.usage


class Loop:
    """`propose(goal, history)`, `execute(candidate)`, `judge(candidate, observation)`: plain functions or async ones.

    `propose` returns one candidate, or several as `BestOf([…])`: all of them are executed and judged, side by
    side, and the best is the turn's. `judge` returns a `Verdict` or a bare number. A candidate is kept if it is
    better than the best so far by at least `noise_floor`, in the given `direction`; one that its verdict bars
    (`Verdict.barred`) is worse than any that is not.

    `gates` are tried in order after every turn; the first that returns a `StopReason` ends the run. At least one
    must bound the number of turns by itself (`MaxIterations`, `Budget(seconds=…)`), else the loop is refused with
    a ValueError: hope is not an exit.
    """

    def __init__(
        self,
        *,
        propose: Callable[[Any, History], Any],
        execute: Callable[[Any], Any],
        judge: Callable[[Any, Any], Any],
        gates: Sequence[Gate],
        direction: Direction = "maximise",
        noise_floor: float = 0.0,
    ) -> None:
        if not any(getattr(gate, "bounds", False) for gate in gates):
            raise ValueError("no gate bounds this loop: add MaxIterations(n) or Budget(seconds=…) to `gates`")
        if not (math.isfinite(noise_floor) and noise_floor >= 0):
            raise ValueError(f"noise_floor must be a finite number >= 0, got {noise_floor!r}")
        History(direction=direction)  # refuses what is no direction
        self.propose, self.execute, self.judge, self.gates = propose, execute, judge, tuple(gates)
        self.direction, self.noise_floor = direction, noise_floor

    async def run(self, goal: Any = None, *, log: Log | None = None, gates: Sequence[Gate] = ()) -> Outcome:
        """Run until a gate opens. With a `log` every phase is recorded, synced to disk after each iteration.

        `gates` are asked in this run only, after the loop's own: `loopkit.Cancel`, a view that looks on.

        Over a log that was opened with `Store.resume` or `Store.fork` the run goes on where the record ends: no
        finished phase is done again, no answered model call asked again, and a `goal` of plain data may be left out.
        For that, phases may depend on their arguments only (draw a seed from `len(history)`, not from a counter).

        A phase that raises is a `crash` with the error as data, and the loop goes on; only cancelling
        (Ctrl-C, `asyncio.CancelledError`) leaves early, and the run can be resumed.
        """
        journal = Journal(log)
        goal = journal.goal(goal)
        settings = {"direction": self.direction, "noise_floor": self.noise_floor}
        gates = (*self.gates, *gates)
        settings["gates"] = [repr(gate) for gate in gates]
        journal.note("goal", goal=goal, type=type_name(goal), **settings)
        journal.settings(**settings)
        history = History(direction=self.direction)
        while True:
            turn = await self._turn(goal, history, journal)
            history = history.then(turn)
            # A gate that let the recorded run pass is not asked again: it may be another one now.
            stop = self._stop(gates, history, journal) if turn.number >= journal.iterations else None
            journal.note(
                "iteration",
                iteration=turn.number,
                same=("decision", "score"),
                decision=turn.decision,
                score=turn.score,
                best=history.best and history.best.number,
                options=turn.options or None,
                feedback=vars(turn.verdict.feedback) if turn.verdict else None,
                error=turn.error and asdict(turn.error),
                usage=turn.usage.spent() or None,
                seconds=turn.seconds,
            )
            if stop:
                best, resumable = history.best and history.best.number, getattr(stop[0], "resumable", None)
                journal.note("stop", **asdict(stop[1]), best=best, resumable=resumable)
            journal.sync()
            if stop:
                return Outcome(goal=goal, history=history, stopped_by=stop[1], gates=gates)

    async def _turn(self, goal: Any, history: History, journal: Journal) -> Iteration:
        number = len(history) + 1
        proposed = await journal.step(number, "propose", self.propose, goal, history)
        if proposed.error:
            error, usage, seconds = proposed.error, proposed.usage, proposed.seconds
            return Iteration(
                number=number, decision=Decision.CRASH, error=error, usage=usage, seconds=seconds
            )
        if not isinstance(proposed.value, BestOf):
            return await self._tried(journal, history, proposed.value, None, after=proposed)
        options = enumerate(proposed.value.candidates)
        tried = await _together([self._tried(journal, history, one, i) for i, one in options])
        judged = [one for one in tried if one.verdict]
        best = max(
            judged,
            key=lambda one: (not one.verdict.barred, history.gain(one.score, 0.0)),
            default=tried[0],
        )
        usage = Usage()
        for one in (proposed, *tried):
            usage.add(one.usage)
        seconds = round(proposed.seconds + max(one.seconds for one in tried), 6)
        return replace(best, options=tuple(one.score for one in tried), usage=usage, seconds=seconds)

    async def _tried(
        self,
        journal: Journal,
        history: History,
        candidate: Any,
        option: int | None,
        after: Step | None = None,
    ) -> Iteration:
        """Execute, judge and decide on one candidate of the next turn, which is billed for the step `after` too."""
        number, verdict = len(history) + 1, None
        done = await journal.step(number, "execute", self.execute, candidate, option=option)
        observation, error, usage, seconds = done.value, done.error, done.usage, done.seconds
        if not error:
            done = await journal.step(number, "judge", self._judged, candidate, observation, option=option)
            verdict, error, seconds = done.value, done.error, seconds + done.seconds
            usage.add(done.usage)
        if after:
            usage.add(after.usage)
            seconds = round(after.seconds + seconds, 6)
        return Iteration(
            number=number, decision=self._decision(verdict, history), candidate=candidate,
            observation=observation, verdict=verdict, error=error, usage=usage, seconds=seconds,
        )  # fmt: skip

    async def _judged(self, candidate: Any, observation: Any) -> Verdict:
        verdict = self.judge(candidate, observation)
        verdict = await verdict if isawaitable(verdict) else verdict
        return verdict if isinstance(verdict, Verdict) else Verdict(score=verdict)

    def _decision(self, verdict: Verdict | None, history: History) -> Decision:
        if verdict is None:
            return Decision.CRASH
        if history.best is None:
            return Decision.KEEP
        gain = history.advance(verdict, history.best.verdict)
        return Decision.KEEP if gain > 0 and gain >= self.noise_floor else Decision.DISCARD

    @staticmethod
    def _stop(gates: Sequence[Gate], history: History, journal: Journal) -> tuple[Gate, StopReason] | None:
        """The first gate that opens, and its reason; of a run that had ended, the recorded one."""
        if (before := journal.recorded("stop")) is not None:
            return (), StopReason(gate=before["gate"], reason=before["reason"])
        return next(((gate, stop) for gate in gates if (stop := gate(history))), None)


async def _together(coroutines: Sequence[Coroutine[Any, Any, Iteration]]) -> list[Iteration]:
    """All results, in order; if one raises, the others are stopped before it goes on."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
