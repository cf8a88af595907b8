"""What a flow file may hold. Everything is checked before anything runs; nothing unknown is passed over."""

import math
import re
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    create_model,
    model_validator,
)

from loopkit.flow.expressions import Expression, Template

DONE, FAILED = "done", "failed"
ENDS = (DONE, FAILED)
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _duration(value: Any) -> Any:
    """Seconds, from a number or from text such as `90s`, `10m`, `1.5h`."""
    if isinstance(value, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(ms|s|m|h|d)", value)
        if not found:
            raise ValueError(f"a duration reads 500ms, 90s, 10m, 1.5h or 2d, got {value!r}")
        return float(found[1]) * UNITS[found[2]]
    return value


def _expression(value: Any) -> Any:
    return value if isinstance(value, Expression) else Expression(value)


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float | bool | None):
        raise ValueError(f"a single value is needed here, got {value!r:.80}")
    return value


def _template(value: Any) -> Any:
    return value if isinstance(value, Template) else Template(value)


Duration = Annotated[float, BeforeValidator(_duration), Field(gt=0, le=366 * 86400, allow_inf_nan=False)]
When = Annotated[Expression, BeforeValidator(_expression)]
Text = Annotated[Template, BeforeValidator(_template)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
Count = Annotated[int, Field(ge=1, le=10_000, strict=True)]
Scalar = Annotated[Any, BeforeValidator(_scalar)]
Money = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Part(BaseModel):
    """Base of all parts of a flow file."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Schema(Part):
    """The part of JSON Schema that an output may use."""

    type: Literal["object", "array", "string", "integer", "number", "boolean"] = "object"
    description: str | None = None
    properties: dict[Name, "Schema"] = {}
    required: list[Name] | None = None
    """Default: all properties."""
    items: "Schema | None" = None
    enum: list[Scalar] | None = Field(default=None, min_length=1, max_length=200)
    minimum: float | None = Field(default=None, allow_inf_nan=False)
    maximum: float | None = Field(default=None, allow_inf_nan=False)
    minLength: int | None = Field(default=None, ge=0)
    maxLength: int | None = Field(default=None, ge=0)
    minItems: int | None = Field(default=None, ge=0)
    maxItems: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> "Schema":
        allowed = {
            "object": {"properties", "required"},
            "array": {"items", "minItems", "maxItems"},
            "string": {"enum", "minLength", "maxLength"},
            "integer": {"enum", "minimum", "maximum"},
            "number": {"enum", "minimum", "maximum"},
            "boolean": set(),
        }[self.type]
        if wrong := self.model_fields_set - allowed - {"type", "description"}:
            raise ValueError(f"{', '.join(sorted(wrong))} means nothing for type {self.type}")
        if unknown := set(self.required or ()) - set(self.properties):
            raise ValueError(f"required names {', '.join(sorted(unknown))}, which properties lacks")
        for low, high in (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")):
            least, most = getattr(self, low), getattr(self, high)
            if least is not None and most is not None and least > most:
                raise ValueError(f"{low} {least:g} is above {high} {most:g}")
        low, high = self.bounds
        if low is not None and high is not None and low > high:
            raise ValueError(f"there is no integer from {self.minimum:g} to {self.maximum:g}")
        kinds = {"string": str, "integer": int, "number": (int, float)}
        if self.enum and not all(
            isinstance(one, kinds[self.type]) and one is not True and one is not False for one in self.enum
        ):
            raise ValueError(f"the enum of a {self.type} holds {self.enum!r}")
        return self

    @property
    def bounds(self) -> tuple[Any, Any]:
        """`minimum` and `maximum`; of an integer the least and the greatest whole number."""
        low, high = self.minimum, self.maximum
        if self.type == "integer":
            low, high = low if low is None else math.ceil(low), high if high is None else math.floor(high)
        return low, high

    def python_type(self, name: str = "Output") -> Any:
        """The pydantic type that validates such a value, and whose JSON schema constrains a model's answer."""
        match self.type:
            case "object":
                required = self.properties if self.required is None else self.required
                fields: dict[str, Any] = {}
                for index, (key, part) in enumerate(self.properties.items()):
                    kind = part.python_type(f"{name}_{key}")
                    about = {"alias": key, "description": part.description}
                    # Names of our own, so that a property may be called `json` or `copy`.
                    fields[f"field_{index}"] = (
                        (kind, Field(**about))
                        if key in required
                        else (kind | None, Field(default=None, **about))
                    )
                return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
            case "array":
                inner = self.items.python_type(f"{name}_item") if self.items else str
                return Annotated[list[inner], Field(min_length=self.minItems, max_length=self.maxItems)]
            case "string" if not self.enum:
                return Annotated[str, Field(min_length=self.minLength, max_length=self.maxLength)]
            case "boolean":
                return bool
            case _ if self.enum:
                return Literal[tuple(self.enum)]
        number, (low, high) = int if self.type == "integer" else float, self.bounds
        return Annotated[number, Field(ge=low, le=high, allow_inf_nan=False, strict=number is int)]

    def at(self, path: tuple[str, ...]) -> "Schema | None":
        """The part that a dotted path names; None if there is none."""
        here: Schema | None = self
        for key in path:
            if here and here.type == "array":
                here = (here.items or Schema(type="string")) if re.fullmatch(r"-?\d+", key) else None
            else:
                here = here.properties.get(key) if here else None
        return here

    def may_lack(self, path: tuple[str, ...]) -> bool:
        """Whether a fitting value may have nothing where `path` leads: an optional property, a short list."""
        here: Schema | None = self
        for key in path:
            if here.type == "array":
                needed = max(int(key) + 1, -int(key))
                if (here.minItems or 0) < needed:
                    return True
            elif here.required is not None and key not in here.required:
                return True
            here = here.at((key,))
        return False


class Bound(Part):
    """How often a way back may be taken. Transitions that share a name share the count, and so its limit.

    Without a name a bound is called `step->target`, as `max_visits` is.
    """

    name: Name | None = None
    max_iterations: Count
    on_exhausted: Name = FAILED
    """Where the run goes instead, from then on."""


class Transition(Part):
    """Where a step leads. The first one whose `when` holds is taken."""

    when: When | None = None
    """Left out: always."""
    goto: Name
    send: Text | None = None
    """A correction for the step it leads to: there it is `correction`. Cancelled when a limit opens."""
    loop: Bound | None = None
    max_visits: Count | None = None
    on_exhausted: Name = FAILED
    """For `max_visits`."""

    @model_validator(mode="after")
    def _used(self) -> "Transition":
        if "on_exhausted" in self.model_fields_set and self.max_visits is None:
            raise ValueError("on_exhausted goes with max_visits (a loop has one of its own)")
        return self

    @property
    def bounded(self) -> bool:
        return self.loop is not None or self.max_visits is not None

    def counts(self, step: str) -> list[tuple[str, int, tuple[str, ...]]]:
        """What is counted when `step` goes this way: the name of the count, its limit, and the field it stands in."""
        name = f"{step}->{self.goto}"
        found = [(name, self.max_visits, ("max_visits",))] if self.max_visits else []
        if self.loop:
            found.append((self.loop.name or name, self.loop.max_iterations, ("loop", "max_iterations")))
        return found


class Goal(Part):
    """The step is done again until `until` holds, at most `max_iterations` times."""

    until: When
    max_iterations: Count
    on_exhausted: Name = FAILED


class CommandProbe(Part):
    """A probe that is a command: exit code 0 is `done`, one of `pending` is `pending`, any other is `news`."""

    command: list[Text] = Field(min_length=1)
    pending: list[int] = Field(min_length=1)
    timeout: Duration = 60.0


class Wait(Part):
    """The engine looks, again and again, and calls nobody while there is nothing new."""

    probe: Annotated[
        Annotated[str, Tag("function")] | Annotated[CommandProbe, Tag("command")],
        Discriminator(lambda value: "function" if isinstance(value, str) else "command"),
    ]
    """A function that returns `pending`, `done` or `news` (or a mapping with that as `state`), or a command."""
    interval: Duration
    max_duration: Duration
    on_exhausted: Name = FAILED
    """Where the run goes when `max_duration` is over."""
    grace: Duration | None = None
    """For how long a probe that fails counts as `pending`; without it the step fails at once."""
    output: dict[Name, Scalar] = {}
    """What `done` puts into the step's output."""


class RunBudget(Part):
    """Limits of a whole run, looked at before each model turn and while it waits."""

    tokens: int | None = Field(default=None, ge=0)
    calls: int | None = Field(default=None, ge=0)
    seconds: Annotated[float, BeforeValidator(_duration), Field(ge=0, allow_inf_nan=False)] | None = None
    """Time inside steps and waits; waiting for a person is not counted."""
    cost: Money | None = None
    """US dollars."""

    @model_validator(mode="after")
    def _some(self) -> "RunBudget":
        if all(limit is None for limit in vars(self).values()):
            raise ValueError("a budget needs a limit: tokens, calls, seconds or cost")
        return self


class Supervisor(Part):
    """A model that is called only when a step has failed. Its advice is checked before it is followed."""

    model: str | None = None
    """Default: the flow's."""
    instructions: str = (
        "A step of a workflow has failed. Advise what to do. `fix`: give the step's output yourself. `retry`: do the "
        "step again, with your instruction. `goto`: go back to one of the steps listed. `person`: ask a person."
    )
    per_step: Count = 2
    per_run: Count = 6
    cost: Money | None = None
    """US dollars, for all its turns together."""
    on_refused: Name | None = None
    """Where the run goes when advice is refused, or it asks for a person. Default: the step's on_failure."""


class StepPart(Part):
    """One step: a `prompt` to a model, `code`, a `command`, a question to a `human`; or a `wait` alone."""

    id: Name
    title: str | None = None
    prompt: Text | None = None
    code: str | None = None
    """`package.module:function`, or the name of a function given to `Flow.load`. Called with a `Context`."""
    command: list[Text] | None = Field(default=None, min_length=1)
    """Program and arguments, each filled in by itself: no shell reads them."""
    human: Text | None = None
    model: str | None = None
    instructions: str | None = None
    temperature: float = Field(default=0.0, ge=0, le=2)
    max_tokens: int = Field(default=512, ge=1)
    cwd: Text | None = None
    timeout: Duration = 600.0
    """For one turn of a prompt, a command, or code that is async; a plain function cannot be interrupted."""
    once: bool = False
    """A turn that was running when the process died is not done again: it fails as `interrupted`."""
    output_schema: Schema | None = None
    goal: Goal | None = None
    wait: Wait | None = None
    goto: Name | None = None
    """Short for a single transition."""
    transitions: list[Transition] = []
    on_failure: Name = FAILED
    recover: list[Name] = []
    """Where the supervisor may send the run after a failure of this step. Elsewhere it may not."""

    @model_validator(mode="after")
    def _one_kind(self) -> "StepPart":
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(kinds) > 1 or not (kinds or self.wait):
            found = f"found {' and '.join(kinds)}" if kinds else "found none"
            raise ValueError(f"a step has exactly one of {', '.join(KINDS)}, or a wait alone; {found}")
        if (self.goto is None) == (not self.transitions):
            raise ValueError("a step leads somewhere: give it either goto or transitions")
        if self.kind == "prompt" and self.output_schema is None:
            raise ValueError("a prompt needs an output_schema: the engine reads fields, not prose")
        if self.output_schema and self.output_schema.type != "object":
            raise ValueError(f"an output_schema is an object with properties, got {self.output_schema.type}")
        for field, only in ONLY.items():
            if field in self.model_fields_set and self.kind not in only:
                raise ValueError(f"{field} means nothing for a {self.kind} step (only for {', '.join(only)})")
        if self.goal and self.kind == "human":
            raise ValueError("goal means nothing for a human step: lead it back with a bounded transition")
        return self

    @property
    def kind(self) -> str:
        """`prompt`, `code`, `command`, `human` or `wait`."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), "wait")

    @property
    def ways(self) -> list[Transition]:
        """The transitions, `goto` included."""
        return [Transition(goto=self.goto)] if self.goto else self.transitions


KINDS = ("prompt", "code", "command", "human")
ONLY = {
    "model": ("prompt",), "instructions": ("prompt",), "temperature": ("prompt",), "max_tokens": ("prompt",),
    "cwd": ("command",), "timeout": ("prompt", "code", "command"), "once": ("code", "command"),
    "goal": ("prompt", "code", "command"), "recover": ("prompt", "code", "command", "wait"),
    "on_failure": ("prompt", "code", "command", "wait"), "output_schema": ("prompt", "code", "human"),
    "wait": ("prompt", "code", "command", "wait"),
}  # fmt: skip


class FlowFile(Part):
    """The whole file."""

    flow: Name
    goal: str | None = None
    """What it is for; steps read it as `goal`."""
    start: Name | None = None
    """Default: the first step."""
    params: dict[Name, Any] = {}
    """With their defaults; a run may replace them by name."""
    model: str = "embedded"
    """For prompts and the supervisor, where they name none."""
    budget: RunBudget | None = None
    supervisor: Supervisor | None = None
    steps: list[StepPart] = Field(min_length=1, max_length=500)


COMMAND_OUTPUT = Schema(
    properties={
        "exit_code": Schema(type="integer", minimum=-255, maximum=255),
        "stdout": Schema(type="string"),
        "stderr": Schema(type="string"),
    }
)
