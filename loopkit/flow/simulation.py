"""Walking a flow without a model, without a person, without running anything, and without waiting."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from loopkit.flow.cases import output_schema
from loopkit.flow.schema import FlowFile, StepPart
from loopkit.flow.source import FlowError, Source
from loopkit.flow.world import STATES, Advice, Context, Question, World, checked
from loopkit.verdict import Failure

# What can go wrong with a model's answer is simulated by a model that answers so; the rest is raised.
MODEL_FAULTS = ("malformed", "empty", "truncated")
FAULTS = (*MODEL_FAULTS, "refused", "timeout", "crash")


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """How a flow is walked: what its steps answer. Nothing is executed, and time only counts.

    `script` maps a step's id to its answers, one per turn; `<id>.wait` to what its probe says; `supervisor` to its
    advice. An answer `{"fault": kind}` is one that goes wrong: malformed, empty, truncated, refused, timeout, crash.
    When a script is at its end, or there is none, a step answers at random whatever its schema allows, a command
    exits with 0, a probe says `done`.
    """

    policy: str = "random"
    """The simulated model that answers prompts without a script."""
    seed: int = 0
    script: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Plain data, for the log; `Simulation(**data)` gives it back."""
        return asdict(self)

    @classmethod
    def load(cls, path: str | Path, **settings: Any) -> "Simulation":
        """A simulation with the script in a YAML file. Raises FlowError when it is none."""
        source = Source.read(path)
        problems = [
            source.problem((name,), f"{name}: a list of answers, got {type(answers).__name__}")
            for name, answers in source.data.items()
            if not isinstance(answers, list)
        ]
        if problems:
            raise FlowError(problems)
        return cls(script=source.data, **settings)

    def check(self, file: FlowFile) -> None:
        """Raise ValueError for a script that is for another flow."""
        from loopkit.models.simulated import POLICIES

        if self.policy not in POLICIES:
            raise ValueError(f"there is no simulated:{self.policy}; there are {', '.join(sorted(POLICIES))}")
        steps = {step.id: step for step in file.steps}
        names = {step.id for step in file.steps if step.kind != "wait"}
        names |= {f"{step.id}.wait" for step in file.steps if step.wait}
        names |= {"supervisor"} if file.supervisor else set()
        for name, answers in self.script.items():
            if name not in names:
                raise ValueError(f"the script answers for {name!r}; there are {', '.join(sorted(names))}")
            if not isinstance(answers, list | tuple):
                raise ValueError(f"the script of {name!r} must be a list of answers, got {answers!r:.100}")
            for answer in answers:
                fault = _fault(answer)
                if fault is not None and fault not in FAULTS:
                    raise ValueError(
                        f"the script of {name!r} has fault {fault!r}; there are {', '.join(FAULTS)}"
                    )
                if name in steps and steps[name].kind == "human" and answer is not None:
                    if fault:
                        raise ValueError(f"{name!r} asks a person: a fault means nothing there")
                    try:
                        checked(output_schema(steps[name]).python_type(), answer)
                    except Failure as failure:
                        raise ValueError(
                            f"the script of {name!r} has {answer!r:.100}: {failure.detail}"
                        ) from failure
                if name.endswith(".wait") and fault is None and _state(answer) not in STATES:
                    raise ValueError(
                        f"the script of {name!r} has {answer!r}; a probe says {', '.join(STATES)}"
                    )


class SimulatedWorld(World):
    """A World that does nothing. Model steps still go through a model, a simulated one, and are billed and recorded."""

    simulated = True
    look_every = float("inf")

    def __init__(self, file: FlowFile, simulation: Simulation) -> None:
        simulation.check(file)
        super().__init__(file, {}, model=f"simulated:{simulation.policy}")
        self.simulation = simulation
        self._elapsed = 0.0

    def _found(self, file: Any, functions: Any) -> dict[str, Any]:
        return {}  # nothing is called, so nothing need be there

    def _scripted(self, name: str, turn: int) -> Any:
        """The answer of this turn (from 1, over the whole run), or None."""
        answers = self.simulation.script.get(name, ())
        return answers[turn - 1] if turn <= len(answers) else None

    def _random(self, *what: Any) -> random.Random:
        return random.Random(repr((self.simulation.seed, *what)))

    def _raise_fault(self, answer: Any) -> None:
        fault = _fault(answer)
        if fault == "crash":
            raise RuntimeError("simulated crash")
        if fault is not None:
            raise Failure(fault, "simulated")

    def _answer(self, step: StepPart, turn: int) -> Any:
        answer = self._scripted(step.id, turn)
        if answer is None and step.id in self.types:
            schema = self.types[step.id].model_json_schema()
            from loopkit.models.simulated import sample

            answer = sample(schema, self._random(step.id, turn))
            if step.kind == "command":
                answer = {"exit_code": 0, "stdout": "", "stderr": ""}
        return {} if answer is None else answer

    async def prompt(self, step: StepPart, text: str, *, turn: int) -> dict[str, Any]:
        scripted = self._scripted(step.id, turn)
        fault = _fault(scripted)
        if fault in MODEL_FAULTS:
            return await self._asked(step, text, self._policy(fault), turn)
        self._raise_fault(scripted)
        if scripted is not None:
            return await self._asked(step, text, self._policy("oracle"), turn, scripted)
        expected = self._answer(step, turn)  # for a policy that knows
        return await self._asked(step, text, self.resolved(None), self.simulation.seed + turn, expected)

    def _policy(self, name: str) -> Any:
        from loopkit.models import resolve

        return self._models.setdefault(name, resolve(f"simulated:{name}"))

    async def code(self, step: StepPart, context: Context, *, turn: int) -> dict[str, Any]:
        answer = self._answer(step, turn)
        self._raise_fault(answer)
        return self.checked(step, answer)

    async def command(self, step: StepPart, argv: list[str], cwd: str | None, *, turn: int) -> dict[str, Any]:
        answer = self._answer(step, turn)
        self._raise_fault(answer)
        return self.checked(step, {"exit_code": 0, "stdout": "", "stderr": ""} | answer)

    async def probe(self, step: StepPart, context: Context, argv: list[str], *, poll: int) -> dict[str, Any]:
        answer = self._scripted(f"{step.id}.wait", poll)
        self._raise_fault(answer)
        return {"state": answer or "done"} if answer is None or isinstance(answer, str) else dict(answer)

    async def person(self, question: Question) -> dict[str, Any] | None:
        step = next(step for step in self.file.steps if step.id == question.step)
        return self._answer(step, question.visit)

    async def advise(self, step: StepPart, text: str, *, turn: int) -> Advice:
        scripted = self._scripted("supervisor", turn)
        fault = _fault(scripted)
        if fault in MODEL_FAULTS:
            return await self._advised(step, text, self._policy(fault), turn)
        self._raise_fault(scripted)
        if scripted is not None:
            return await self._advised(step, text, self._policy("oracle"), turn, scripted)
        return await self._advised(
            step, text, self.resolved(None), self.simulation.seed + turn, {"action": "retry"}
        )

    def now(self) -> float:
        return self._elapsed

    def seen(self, moment: float) -> None:
        self._elapsed = max(self._elapsed, moment)

    async def sleep(self, seconds: float) -> None:
        self._elapsed += seconds


def _state(answer: Any) -> Any:
    return answer.get("state") if isinstance(answer, Mapping) else answer


def _fault(answer: Any) -> Any:
    return answer["fault"] if isinstance(answer, Mapping) and set(answer) == {"fault"} else None
