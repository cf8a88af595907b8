"""Doing the steps for real: models asked, code called, commands run, probes looked at, time passing."""

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from inspect import isawaitable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError, create_model

from loopkit.flow.cases import output_schema
from loopkit.flow.schema import CommandProbe, FlowFile, StepPart
from loopkit.log import decode, encode
from loopkit.verdict import Failure

STATES = ("pending", "done", "news")
# What a command said, kept from both ends.
HEAD, TAIL = 2_000, 18_000


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a code step, or a probe, is called with: its own copy of everything."""

    params: Mapping[str, Any]
    steps: Mapping[str, Any]
    """By id: `{"output": …, "visits": …}`; the output is None until the step was done."""
    goal: str | None
    visits: int
    """How often the run has come to this step, this time included."""
    correction: str | None
    """What the step that led here sent along."""
    advice: str | None
    """The supervisor's instruction for this try."""
    news: Any
    """What the step's probe found."""
    output: Any = None
    """For a probe: what its step came to."""

    def scope(self) -> dict[str, Any]:
        """The names that expressions and templates read."""
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a human step asks, and what an answer must hold."""

    step: str
    iteration: int
    visit: int
    text: str
    schema: dict[str, Any]
    """The JSON schema of an answer."""


class Advice(BaseModel):
    """What a supervisor may answer. `fixed` is there only for a step that has an output schema."""

    action: Literal["fix", "retry", "goto", "person"]
    goto: str | None = None
    instruction: str = Field(default="", max_length=2000)
    reason: str = Field(default="", max_length=2000)
    fixed: Any = None


class World:
    """Carries the steps of one flow out. `functions` are what `code` and `probe` may name without a module.

    Raises ValueError for a function that cannot be found, before anything runs.
    """

    simulated = False
    look_every = 1.0
    """Seconds of a wait after which to see whether somebody cancelled it."""

    def __init__(
        self,
        file: FlowFile,
        functions: Mapping[str, Callable[..., Any]],
        *,
        model: str | None = None,
        person: Callable[[Question], Any] | None = None,
    ) -> None:
        self.file, self.model, self._person = file, model, person
        self.types = {step.id: schema.python_type() for step in file.steps if (schema := output_schema(step))}
        self._models: dict[str, Any] = {}
        self.functions = self._found(file, functions)

    def _found(
        self, file: FlowFile, functions: Mapping[str, Callable[..., Any]]
    ) -> dict[str, Callable[..., Any]]:
        names = [step.code for step in file.steps if step.code]
        names += [step.wait.probe for step in file.steps if step.wait and isinstance(step.wait.probe, str)]
        return {name: functions[name] if name in functions else _imported(name) for name in names}

    def check_models(self) -> None:
        """Raise ModelUnavailable for a model that cannot be asked, without loading or sending anything."""
        names = [step.model or self.file.model for step in self.file.steps if step.kind == "prompt"]
        names += [self.file.supervisor.model or self.file.model] if self.file.supervisor else []
        if names:
            from loopkit.models import check_id

            for name in [self.model] if self.model else dict.fromkeys(names):
                check_id(name)

    def resolved(self, name: str | None) -> Any:
        """The model of a step: what the run says, else what the step or the flow says."""
        from loopkit.models import resolve

        name = self.model or name or self.file.model
        return self._models.setdefault(name, resolve(name))

    async def prompt(self, step: StepPart, text: str, *, turn: int) -> dict[str, Any]:
        """Ask the step's model. Failure: what `loopkit.ask` raises, or `timeout`."""
        return await self._asked(step, text, self.resolved(step.model), turn)

    async def _asked(
        self, step: StepPart, text: str, model: Any, turn: int, expected: Any = None
    ) -> dict[str, Any]:
        from loopkit.models import ask

        answer = await _within(
            step.timeout,
            ask(
                model, text, output=self.types[step.id], instructions=step.instructions, seed=turn,
                temperature=step.temperature, max_tokens=step.max_tokens, expected=expected,
            ),
        )  # fmt: skip
        return answer.model_dump(by_alias=True)

    async def code(self, step: StepPart, context: Context, *, turn: int) -> dict[str, Any]:
        """Call the step's function. Failure(`malformed`) when what it returns is not what the step declares."""
        made = self.functions[step.code](deepcopy(context))
        made = await _within(step.timeout, made) if isawaitable(made) else made
        return self.checked(step, {} if made is None else made)

    def checked(self, step: StepPart, output: Any) -> dict[str, Any]:
        """`output`, validated by the step's schema where it has one. Failure(`malformed`) when it does not fit."""
        return checked(self.types.get(step.id), output)

    async def command(self, step: StepPart, argv: list[str], cwd: str | None, *, turn: int) -> dict[str, Any]:
        """Run it; a failing exit code is an output like any other. Failure: `not found`, `timeout`."""
        return await run_command(argv, cwd=cwd, timeout=step.timeout)

    async def probe(self, step: StepPart, context: Context, argv: list[str], *, poll: int) -> dict[str, Any]:
        """Look once: `{"state": "pending" | "done" | "news", …}`. What the probe raises passes through."""
        probe = step.wait.probe
        if isinstance(probe, CommandProbe):
            said = await run_command(argv, cwd=None, timeout=probe.timeout)
            state = "done" if said["exit_code"] == 0 else "news"
            return {"state": "pending" if said["exit_code"] in probe.pending else state, **said}
        found = self.functions[probe](deepcopy(context))
        found = await found if isawaitable(found) else found
        found = {"state": found} if isinstance(found, str) else found
        if not isinstance(found, dict) or found.get("state") not in STATES:
            raise Failure("malformed", f"a probe says {' or '.join(STATES)}, got {found!r:.200}")
        return checked(None, found)

    async def person(self, question: Question) -> dict[str, Any] | None:
        """The answer, where there is somebody who can be asked now; None to wait for one."""
        answer = self._person(question) if self._person else None
        return await answer if isawaitable(answer) else answer

    async def advise(self, step: StepPart, text: str, *, turn: int) -> Advice:
        """Ask the supervisor's model."""
        return await self._advised(step, text, self.resolved(self.file.supervisor.model), turn)

    async def _advised(
        self, step: StepPart, text: str, model: Any, turn: int, expected: Any = None
    ) -> Advice:
        from loopkit.models import ask

        shape: Any = Advice
        if step.id in self.types:
            shape = create_model("Advice", __base__=Advice, fixed=(self.types[step.id] | None, None))
        answer = await ask(
            model,
            text,
            output=shape,
            instructions=self.file.supervisor.instructions,
            seed=turn,
            expected=expected,
        )
        return Advice(**answer.model_dump(by_alias=True))

    def now(self) -> float:
        """Seconds since the epoch: it goes on while no process runs."""
        return time.time()

    def seen(self, moment: float) -> None:
        """A recorded moment was passed: a clock of one's own must not be behind it."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def checked(kind: type[BaseModel] | None, output: Any) -> dict[str, Any]:
    """`output`, validated by `kind` where there is one, as the plain data that a record gives back.

    Failure(`malformed`) when it does not fit.
    """
    if isinstance(output, BaseModel):
        output = output.model_dump(by_alias=True)
    if not isinstance(output, Mapping) or not all(isinstance(key, str) for key in output):
        raise Failure("malformed", f"a step's output is a mapping of names, got {output!r:.200}")
    try:
        fitting = dict(output) if kind is None else kind.model_validate(output).model_dump(by_alias=True)
    except ValidationError as error:
        listed = (f"{'.'.join(map(str, one['loc'])) or 'the whole'}: {one['msg']}" for one in error.errors())
        raise Failure("malformed", "; ".join(listed)) from error
    return plain(fitting)


def plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """`data` as its record gives it back, each value by itself."""
    return {str(key): decode(encode(value)) for key, value in data.items()}


async def _within(seconds: float, work: Any) -> Any:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await work
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise Failure("timeout", f"no end after {seconds:g} s") from error


def _imported(name: str) -> Callable[..., Any]:
    module, colon, function = name.partition(":")
    try:
        if not colon:
            raise AttributeError("it reads package.module:function, or is a key of `functions`")
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"cannot find the function {name!r}: {error}") from error
    if not callable(found):
        raise ValueError(f"{name!r} is no function: {found!r:.100}")
    return found


async def run_command(argv: list[str], *, cwd: str | None, timeout: float) -> dict[str, Any]:
    """Run a program without a shell, in a session of its own: `{"exit_code": …, "stdout": …, "stderr": …}`.

    Long output keeps its head and its tail. The whole group is killed at the timeout (seconds), and when the
    caller is cancelled. Failure: `not found`, `timeout`.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd, start_new_session=True
            )
        except (OSError, ValueError) as error:  # an argument with a null byte is a ValueError
            where = f" in {cwd!r}" if cwd and not Path(cwd).is_dir() else ""
            raise Failure("not found", f"cannot run {argv[0]!r}{where}: {error}") from error
        try:
            await _within(timeout, process.wait())
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return {"exit_code": process.returncode, "stdout": _ends(out), "stderr": _ends(err)}


def _ends(file: Any) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= HEAD + TAIL:
        return file.read().decode("utf-8", "replace")
    head = file.read(HEAD).decode("utf-8", "replace")
    file.seek(size - TAIL)
    left_out = size - HEAD - TAIL
    return f"{head}\n… {left_out} bytes left out …\n{file.read().decode('utf-8', 'replace')}"
