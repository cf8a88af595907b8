"""The engine: walks a flow, counts every turn, waits, and asks a supervisor only when a step has failed.

A model fills in a step; its answer comes back as fields, and this file picks the way. Every step goes through the
journal, so a run killed at any moment walks its record again, in no time, and goes on where it was.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from loopkit.flow.expressions import ExpressionError, Template
from loopkit.flow.moves import Asked, RunStopped, StepFailed, Way
from loopkit.flow.outcome import Counters, FlowOutcome
from loopkit.flow.schema import ENDS, FlowFile, StepPart, Transition
from loopkit.flow.supervision import Supervision
from loopkit.flow.waiting import wait
from loopkit.flow.world import Advice, Context, Question, World
from loopkit.gates import Budget
from loopkit.history import Decision, Gate, History, Iteration, PhaseError, StopReason
from loopkit.journal import Journal, Step
from loopkit.usage import Usage
from loopkit.verdict import Failure

Watch = Callable[[dict[str, Any]], None]


class Walk:
    """One run of a flow. `run` takes it from the start, over the record, to wherever it can get."""

    def __init__(
        self,
        file: FlowFile,
        world: World,
        journal: Journal,
        *,
        params: dict[str, Any],
        gates: Sequence[Gate],
        watch: Watch | None,
    ) -> None:
        self.file, self.world, self.journal, self.params, self.gates = file, world, journal, params, gates
        self.watch = watch or (lambda event: None)
        self.steps = {step.id: step for step in file.steps}
        self.budget = Budget(**file.budget.model_dump()) if file.budget else None
        self.supervision = Supervision(file.supervisor) if file.supervisor else None
        self.history, self.counters = History(), Counters(file)
        self.outputs: dict[str, Any] = {}
        self._counts: Counter[str] = Counter()
        self.correction: str | None = None
        """For the step that comes next."""
        # Of the visit that is going on:
        self.number, self.usage, self.seconds = 0, Usage(), 0.0
        self._received: str | None = None
        """The correction that came with it,"""
        self._acted = False
        """whether a turn has been done with it,"""
        self._output: dict[str, Any] | None = None
        """what it came to,"""
        self._error: PhaseError | None = None
        """and how it failed, as long as nobody knows a way out."""

    async def run(self) -> FlowOutcome:
        here = self.file.start or self.file.steps[0].id
        while True:
            step = self.steps[here]
            self.number += 1
            self.usage, self.seconds = Usage(), 0.0
            self.counters.visits[here] += 1
            # A fork with other parameters must not give one step what another came to.
            self.journal.note("visit", iteration=self.number, same=("step",), step=here)
            way, error, reason = None, None, None
            try:
                way, error = await self._visit(step)
            except Asked as waiting:
                self.journal.sync()
                return self._outcome(question=waiting.question)
            except RunStopped as stopped:
                if stopped.resumable:  # the visit is not over: it goes on when the run does
                    return self._stop(stopped.reason, resumable=True)
                reason, error = stopped.reason, self._error
                self.cancel(reason.reason, None if self._acted else self._received)
            self._finish(step, way, error, reason)
            if way and way.goto in ENDS:
                reason = StopReason(gate=way.goto, reason=f"{step.id}: {way.via}")
            gate = None
            if reason is None and self.number >= self.journal.iterations:
                gate, reason = self._opened()
                if reason and not getattr(gate, "resumable", False):
                    self.cancel(reason.reason)
            if reason:
                return self._stop(reason, resumable=getattr(gate, "resumable", None))
            self.journal.sync()
            here = way.goto

    def _stop(self, reason: StopReason, *, resumable: bool | None) -> FlowOutcome:
        if self.journal.note("stop", **asdict(reason), resumable=resumable):
            self.watch({"event": "stop", **asdict(reason)})
        self.journal.sync()
        return self._outcome(stopped_by=reason)

    def _outcome(self, **ended: Any) -> FlowOutcome:
        simulated = self.world.simulated
        return FlowOutcome(self.history, self.outputs, self.counters, simulated=simulated, **ended)

    def may_go_on(self) -> None:
        """Looked at before each model turn, and while the run waits. Raises RunStopped."""
        for gate in self.gates:
            if getattr(gate, "resumable", False) and (reason := gate(self.history)):
                raise RunStopped(reason, resumable=True)
        if self.budget:
            usage, seconds = Usage(**self.history.usage.spent()), self.history.seconds + self.seconds
            usage.add(self.usage)
            if reason := self.budget.spent(usage, seconds):
                raise RunStopped(reason)

    def _opened(self) -> tuple[Gate | None, StopReason | None]:
        if (before := self.journal.recorded("stop")) is not None:
            return None, StopReason(gate=before["gate"], reason=before["reason"])
        found = ((gate, stop) for gate in self.gates if (stop := gate(self.history)))
        return next(found, (None, None))

    def _finish(
        self, step: StepPart, way: Way | None, error: PhaseError | None, reason: StopReason | None
    ) -> None:
        decision = Decision.CRASH if error else Decision.KEEP
        turn = Iteration(
            number=self.number, decision=decision, candidate=step.id, observation=self._output,
            error=error, usage=self.usage, seconds=round(self.seconds, 6),
        )  # fmt: skip
        self.history = self.history.then(turn)
        event = {
            "step": step.id, "visit": self.counters.visits[step.id], "decision": decision,
            "goto": way and way.goto, "via": way.via if way else reason.reason,
            "error": error and asdict(error), "usage": self.usage.spent() or None, "seconds": turn.seconds,
        }  # fmt: skip
        if self.journal.note("iteration", iteration=self.number, same=("step", "goto"), **event):
            self.watch({"event": "iteration", "iteration": self.number, **event})

    # --- one visit -----------------------------------------------------------------------------------------

    async def _visit(self, step: StepPart) -> tuple[Way, PhaseError | None]:
        """The way on, and the error if the step failed for good. A correction is for this visit only."""
        self._received, self.correction = self.correction, None
        self._acted, self._output, self._error = False, None, None
        advice: Advice | None = None
        news, rounds = None, 0
        while True:
            try:
                fixed = advice is not None and advice.action == "fix"
                output = advice.fixed if fixed else await self._act(step, advice, news)
                self._acted = True
                if step.wait:
                    output, news, over = await wait(self, step, output)
                self.outputs[step.id] = self._output = output
                if step.wait and over:
                    name = f"{step.id}: wait"
                    return self._exhausted(step.wait.on_exhausted, name, "max_duration is over"), None
                if step.goal and not self._holds(step, output):
                    rounds, advice = rounds + 1, None
                    if rounds >= step.goal.max_iterations:
                        name = f"{step.id}: goal"
                        return self._exhausted(step.goal.on_exhausted, name, "goal not reached"), None
                    continue
                return self._choose(step, output), None
            except StepFailed as failed:
                self._error = failed.error
                found = await self._failed(step, failed.error)
                if isinstance(found, Way):
                    return found, failed.error
                advice, self._error = found, None

    async def _failed(self, step: StepPart, error: PhaseError) -> Way | Advice:
        if self.supervision and step.kind != "human":
            return await self.supervision.consult(self, step, error)
        return Way(goto=step.on_failure, via=f"failure: {error.kind}")

    async def _act(self, step: StepPart, advice: Advice | None, news: Any) -> dict[str, Any]:
        """One turn of the step's own work. Raises StepFailed."""
        if step.kind == "wait":
            return {}
        if step.kind == "human":
            return await self._person(step)
        turn = self.count(step.id)
        context = self.context(step, advice.instruction if advice else None, news)
        match step.kind:
            case "prompt":
                text = self._filled(step.prompt, context)
                done = await self.model_turn("prompt", turn, self.world.prompt, step, text, turn=turn)
            case "code":
                done = await self.step(
                    "code", turn, self.world.code, step, context, turn=turn, once=step.once
                )
            case _:
                argv = self.rendered(step.command, context)
                cwd = step.cwd and self._rendered(step.cwd, context)
                done = await self.step(
                    "command", turn, self.world.command, step, argv, cwd, turn=turn, once=step.once
                )
        if done.error:
            raise StepFailed(done.error)
        return done.value

    async def model_turn(self, phase: str, option: int, function: Any, *args: Any, **named: Any) -> Step:
        """A step that asks a model: the budget of the run is looked at first, unless it is on record."""
        if not self.journal.done(self.number, phase, option):
            self.may_go_on()
        step = await self.step(phase, option, function, *args, **named)
        self.counters.model_turns[next(one for one in args if isinstance(one, StepPart)).id] += 1
        return step

    async def step(
        self, phase: str, option: int, function: Any, *args: Any, once: bool = False, **named: Any
    ) -> Step:
        async def call() -> Any:
            if interrupted:
                raise Failure(
                    "interrupted", "it was running when the process died, and is to be done once only"
                )
            return await function(*args, **named)

        interrupted = False
        if once and not self.journal.done(self.number, phase, option):
            interrupted = self.journal.recorded("begun", self.number, option) is not None
            self.journal.note("begun", iteration=self.number, option=option, step=args[0].id)
            self.journal.sync()
        step = await self.journal.step(self.number, phase, call, option=option)
        self.usage.add(step.usage)
        self.seconds += step.seconds
        return step

    async def _person(self, step: StepPart) -> dict[str, Any]:
        text = self._rendered(step.human, self.context(step))
        visit = self.counters.visits[step.id]
        schema = self.world.types[step.id].model_json_schema()
        question = Question(step=step.id, iteration=self.number, visit=visit, text=text, schema=schema)
        if self.journal.note("question", iteration=self.number, step=step.id, text=text, schema=schema):
            self.watch({"event": "question", "step": step.id, "text": text})
        answer = self.journal.recorded("answer", self.number)
        if answer is None:
            self.journal.sync()
            said = await self.world.person(question)
            if said is None:
                raise Asked(question)
            try:
                answer = {"answer": self.world.checked(step, said)}
            except Failure as failure:
                raise ValueError(f"{step.id}: {failure.detail}") from failure
            self.journal.note("answer", iteration=self.number, step=step.id, answer=answer["answer"])
        return answer["answer"]

    # --- ways ----------------------------------------------------------------------------------------------

    def _choose(self, step: StepPart, output: dict[str, Any]) -> Way:
        scope = self.context(step, output=output).scope()
        try:
            for way in step.ways:
                if way.when is None or way.when.evaluate(scope):
                    return self._take(step, way, scope)
        except ExpressionError as error:
            raise StepFailed.because("expression", str(error)) from error
        raise StepFailed.because(
            "no transition", f"no condition of step {step.id!r} holds for {output!r:.300}"
        )

    def _take(self, step: StepPart, way: Transition, scope: dict[str, Any]) -> Way:
        """Count a way that is bounded; once its limit is reached, go elsewhere, and cancel what was under way."""
        said = way.when.text if way.when is not None else "otherwise" if len(step.ways) > 1 else "always"
        if step.kind == "human":
            said = "answered " + ", ".join(f"{name}: {value}" for name, value in scope["output"].items())[:80]
        correction = way.send.render(scope) if way.send else None
        opened, counted = None, way.counts(step.id)
        for name, limit, part in counted:
            if self.counters.taken[name] >= limit:
                elsewhere = way.loop.on_exhausted if part[0] == "loop" else way.on_exhausted
                opened = (elsewhere, name, f"{said}, but {name} is used up ({limit})")
        if opened:
            self.cancel(opened[2], correction)
            return self._exhausted(*opened)
        for name, limit in {name: limit for name, limit, _ in counted}.items():
            self.counters.taken[name] += 1
            said += f" ({name} {self.counters.taken[name]} of {limit})"
        self.correction = correction
        return Way(goto=way.goto, via=said)

    def _exhausted(self, goto: str, name: str, via: str) -> Way:
        self.counters.limits[name] += 1
        return Way(goto=goto, via=via)

    def cancel(self, why: str, correction: str | None = None) -> None:
        """What nobody will check any more must not happen."""
        correction, self.correction = correction or self.correction, None
        if correction:
            self.counters.cancelled += 1
            event = {"correction": correction, "reason": why}
            if self.journal.note("cancelled", iteration=self.number, **event):
                self.watch({"event": "cancelled", **event})

    def _holds(self, step: StepPart, output: dict[str, Any]) -> bool:
        try:
            return bool(step.goal.until.evaluate(self.context(step, output=output).scope()))
        except ExpressionError as error:
            raise StepFailed.because("expression", str(error)) from error

    # --- what a step sees ----------------------------------------------------------------------------------

    def context(
        self, step: StepPart, advice: str | None = None, news: Any = None, output: Any = None
    ) -> Context:
        visits = self.counters.visits
        steps = {name: {"output": self.outputs.get(name), "visits": visits[name]} for name in self.steps}
        return Context(
            params=self.params, steps=steps, goal=self.file.goal, visits=visits[step.id],
            correction=self._received, advice=advice or None, news=news, output=output,
        )  # fmt: skip

    def count(self, what: str) -> int:
        """One more of these in this run: what tells the turns of a step, and its polls, from each other."""
        self._counts[what] += 1
        return self._counts[what]

    def _filled(self, prompt: Template, context: Context) -> str:
        """The prompt; what was sent along and has no place in it stands at its end."""
        text = self._rendered(prompt, context)
        placed = {path[0] for path in prompt.paths}
        for name in ("correction", "advice", "news"):
            value = getattr(context, name)
            if value and name not in placed:
                said = self._rendered(Template(f"{{{{ {name} }}}}"), context)
                text += f"\n\n{name.capitalize()}: {said}"
        return text

    def rendered(self, templates: Sequence[Template], context: Context) -> list[str]:
        """Each filled in by itself, as the arguments of a command are."""
        return [self._rendered(one, context) for one in templates]

    def _rendered(self, template: Template, context: Context) -> str:
        try:
            return template.render(context.scope())
        except ExpressionError as error:
            raise StepFailed.because("expression", str(error)) from error
