"""A flow as its user meets it: load, look, run, answer."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopkit.flow.cases import output_schema
from loopkit.flow.checking import read
from loopkit.flow.drawing import mermaid, outcomes
from loopkit.flow.engine import Walk, Watch
from loopkit.flow.outcome import FlowOutcome
from loopkit.flow.simulation import SimulatedWorld, Simulation
from loopkit.flow.source import Source
from loopkit.flow.world import World, checked, plain
from loopkit.history import Gate
from loopkit.journal import Irreproducible, Journal, Log
from loopkit.log import RunLog
from loopkit.store import Run
from loopkit.verdict import Failure

if TYPE_CHECKING:
    import pandas as pd


class Flow:
    """A declared graph of steps: `Flow.load(path)`, `Flow.parse(text)`, or `Flow.of(run)` for a recorded one.

    `functions` are what its `code` steps and probes may name without a module. All three raise FlowError, listing
    every problem with its line and column, before anything runs.
    """

    def __init__(self, source: Source, functions: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self.source, self.functions = source, dict(functions or {})
        self.file = read(source)

    @classmethod
    def load(cls, path: str | Path, functions: Mapping[str, Callable[..., Any]] | None = None) -> "Flow":
        """The flow in a YAML file."""
        return cls(Source.read(path), functions)

    @classmethod
    def parse(cls, text: str, functions: Mapping[str, Callable[..., Any]] | None = None) -> "Flow":
        """The flow in a YAML text."""
        return cls(Source.parse(text), functions)

    @classmethod
    def of(cls, run: Run | RunLog, functions: Mapping[str, Callable[..., Any]] | None = None) -> "Flow":
        """The flow that a run was begun with, as it was then. Raises ValueError when the run is no flow's."""
        events = run.past if isinstance(run, RunLog) else run.events
        text = next((event.get("definition") for event in events if event["event"] == "goal"), None)
        if text is None:
            raise ValueError(
                "this run was not begun by a flow, or died at once: begin it again under another name"
            )
        return cls(Source.parse(text, "recorded flow"), functions)

    @property
    def name(self) -> str:
        return self.file.flow

    def draw(self, *, failures: bool = False) -> str:
        """The graph as a Mermaid flowchart; with `failures` also where a failure leads."""
        return mermaid(self.file, failures=failures)

    def outcomes(self) -> list[dict[str, Any]]:
        """Where each outcome of each step leads, limits and failures included: rows of `step`, `outcome`, `goto`."""
        return outcomes(self.file)

    def outcomes_df(self) -> "pd.DataFrame":
        """`outcomes` as a frame."""
        import pandas as pd

        return pd.DataFrame(self.outcomes())

    async def run(
        self,
        *,
        log: Log | None = None,
        params: Mapping[str, Any] | None = None,
        model: str | None = None,
        simulation: Simulation | None = None,
        person: Callable[..., Any] | None = None,
        gates: Sequence[Gate] = (),
        watch: Watch | None = None,
    ) -> FlowOutcome:
        """Walk the flow to its end, to a question nobody is there to answer, or to a limit.

        `params` replace the file's by name; `model` is asked in place of every other; with a `simulation` nothing is
        executed, and nothing waits. `person(question)`, plain or async, answers human steps at once (None: not now).
        `gates` are asked after each step, `loopkit.Cancel` among them. `watch` is called with each new event.

        Over a log from `Store.resume` or `Store.fork` the run goes on where the record ends, with its recorded
        parameters where none are given. Raises ValueError for an unknown parameter or a function that is not there,
        Irreproducible for another flow than the recorded one.
        """
        journal = Journal(log)
        settings = self._settings(journal, params, model, simulation)
        world = self._world(settings, person)
        if journal.recorded("stop") is None:
            world.check_models()
        # In this order: a run killed in between must not go on as another, a simulation as no simulation.
        journal.note("settings", **settings)
        journal.note("goal", goal=self.file.goal, flow=self.name, definition=self.source.text)
        walk = Walk(self.file, world, journal, params=settings["params"], gates=gates, watch=watch)
        return await walk.run()

    def check(
        self,
        params: Mapping[str, Any] | None = None,
        model: str | None = None,
        simulation: Simulation | None = None,
    ) -> None:
        """Raise the ValueError that a new run with these settings would raise, before there is a log of it."""
        self._world(self._settings(Journal(None), params, model, simulation), None).check_models()

    def _world(self, settings: Mapping[str, Any], person: Callable[..., Any] | None) -> World:
        if (recorded := settings.get("simulation")) is not None:
            return SimulatedWorld(self.file, Simulation(**recorded))
        return World(self.file, self.functions, model=settings.get("model"), person=person)

    def _settings(
        self,
        journal: Journal,
        params: Mapping[str, Any] | None,
        model: str | None,
        simulation: Simulation | None,
    ) -> dict[str, Any]:
        """What the run goes by: what is on record, else what is given, as the record would give it back."""
        if unknown := set(params or ()) - set(self.file.params):
            there = ", ".join(self.file.params) or "none"
            raise ValueError(
                f"flow {self.name!r} has no parameter {', '.join(sorted(unknown))}; there are {there}"
            )
        given = {
            "params": None if params is None else self.file.params | plain(params),
            "model": model,
            "simulation": simulation and plain(simulation.record()),
        }
        before = journal.recorded("goal")
        if before is not None and before.get("definition") != self.source.text:
            raise Irreproducible("this run was begun with another flow; Flow.of(log) is the one it was")
        known = journal.recorded("settings")
        if known is None:
            return given | {"params": self.file.params if params is None else given["params"]}
        for name, value in given.items():
            if value is not None and value != known.get(name):
                raise Irreproducible(
                    f"this run's {name} is {known.get(name)!r:.200}, got {value!r:.200}: leave it out, or fork the run"
                )
        return {name: known.get(name) for name in given}

    def answer(self, log: RunLog, value: Mapping[str, Any]) -> None:
        """Record a person's answer to the question that a run waits for; then run it over the same log.

        Raises ValueError when nothing is asked, or the answer does not fit.
        """
        asked = [event for event in log.past if event["event"] == "question"]
        answered = {event["iteration"] for event in log.past if event["event"] == "answer"}
        if not asked or asked[-1]["iteration"] in answered:
            raise ValueError(f"{log.path.stem} waits for no answer")
        question = asked[-1]
        step = next((step for step in self.file.steps if step.id == question["step"]), None)
        if step is None:
            raise ValueError(
                f"{question['step']} asks, and is no step of flow {self.name!r}: Flow.of(log) has it"
            )
        try:
            answer = checked(output_schema(step).python_type(), value)
        except Failure as failure:
            raise ValueError(f"{step.id}: {failure.detail}") from failure
        log.append("answer", iteration=question["iteration"], step=step.id, answer=answer)
        log.sync()
