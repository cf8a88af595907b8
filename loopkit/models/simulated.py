"""Deterministic stand-ins for tests and teaching. What they answer is never a result about a model.

A policy is a function of a `Request`; `POLICIES` holds them by name, and a test or a notebook may add its own:

    @policy("always-yes")
    def always_yes(request): return "yes"
"""

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage
from pydantic_core import to_jsonable_python

from loopkit.models.asking import expected_answer


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a policy may look at."""

    prompt: str
    """The last thing the user said."""
    schema: dict[str, Any] | None
    """The JSON schema the answer must have; None for free text."""
    rng: random.Random
    """Seeded by the whole request and its `seed` setting, so that the same request gets the same answer."""
    shown: tuple[str, ...]
    """The answers in the examples that came with it."""
    expected: Any
    """The right answer, where the caller of `ask` gave it."""


Policy = Callable[[Request], str | ModelResponse]
POLICIES: dict[str, Policy] = {}


def policy(name: str) -> Callable[[Policy], Policy]:
    """Register a policy, so that `simulated:<name>` resolves to it."""

    def register(function: Policy) -> Policy:
        POLICIES[name] = function
        return function

    return register


@policy("random")
def _random(request: Request) -> str:
    """Knows nothing: any answer the schema allows; else one of those it was shown, or the prompt's words shuffled."""
    if request.schema is None and request.shown:
        return request.rng.choice(request.shown)
    if request.schema is None:
        words = request.prompt.split()
        request.rng.shuffle(words)
        return " ".join(words)
    return json.dumps(sample(request.schema, request.rng))


@policy("oracle")
def _oracle(request: Request) -> str:
    """Knows everything: gives back the expected answer."""
    if request.expected is None:
        raise UserError(
            "simulated:oracle was asked something whose answer nobody gave it (pass `expected=` to ask)"
        )
    answer = to_jsonable_python(request.expected)
    if request.schema is None:
        return str(answer)
    # pydantic-ai wraps what is no object of its own, such as a Literal, in one with the key "response".
    wrapped = set(request.schema.get("properties", {})) == {"response"}
    bare = not (isinstance(answer, dict) and set(answer) == {"response"})
    return json.dumps({"response": answer} if wrapped and bare else answer)


@policy("empty")
def _empty(request: Request) -> ModelResponse:
    """Answers with nothing."""
    return ModelResponse(parts=[TextPart(content="")], finish_reason="stop")


@policy("truncated")
def _truncated(request: Request) -> ModelResponse:
    """Runs into the token limit at once."""
    return ModelResponse(parts=[TextPart(content='{"resp')], finish_reason="length")


@policy("malformed")
def _malformed(request: Request) -> str:
    """Answers beside the question."""
    return "{'oops"


class SimulatedModel(Model):
    """A pydantic-ai model that answers by a policy. Tokens are counted as words."""

    def __init__(self, name: str) -> None:
        super().__init__(
            profile=ModelProfile(
                supports_json_schema_output=True,
                default_structured_output_mode="native",
                supports_tools=False,
            )
        )
        self._name = name

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return "simulated"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        settings, params = self.prepare_request(model_settings, model_request_parameters)
        parts = [part for message in messages for part in message.parts]
        prompts = [part.content for part in parts if isinstance(part, UserPromptPart)]
        prompt = prompts[-1] if prompts and isinstance(prompts[-1], str) else str(prompts[-1:])
        shown = [part.content for part in parts if isinstance(part, TextPart)]
        schema = params.output_object.json_schema if params.output_object else None
        # Not the messages as they are: their time stamps differ from call to call.
        said = [getattr(part, "content", None) for part in parts]
        told = [part.content for part in params.instruction_parts or []]
        whole = json.dumps([said, told, schema, (settings or {}).get("seed", 0), self._name], default=str)
        answer = POLICIES[self._name](
            Request(
                prompt=prompt,
                schema=schema,
                shown=tuple(shown),
                rng=random.Random(hashlib.sha256(whole.encode("utf-8", "replace")).digest()),
                expected=expected_answer.get(),
            )
        )
        if isinstance(answer, str):
            answer = ModelResponse(parts=[TextPart(content=answer)], finish_reason="stop")
        words = sum(len(part.content.split()) for part in answer.parts if isinstance(part, TextPart))
        answer.usage = RequestUsage(input_tokens=len(prompt.split()), output_tokens=words)
        answer.model_name = self.model_name
        return answer


def sample(
    schema: dict[str, Any], rng: random.Random, *, root: dict[str, Any] | None = None, depth: int = 0
) -> Any:
    """A value drawn at random from what `schema` allows (the subset that pydantic writes)."""

    root = schema if root is None else root

    def inner(part: dict[str, Any]) -> Any:
        return sample(part, rng, root=root, depth=depth + 1)

    if "$ref" in schema:
        target: Any = root
        for key in schema["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        return inner(target)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    for alternatives in ("anyOf", "oneOf"):
        if alternatives in schema:
            options = schema[alternatives]
            # Deep inside a type that contains itself, end it if it can end.
            ends = [option for option in options if option.get("type") == "null"] if depth > 8 else []
            return inner(rng.choice(ends or options))
    match schema.get("type"):
        case "object":
            return {key: inner(value) for key, value in schema.get("properties", {}).items()}
        case "array":
            if "prefixItems" in schema:
                return [inner(item) for item in schema["prefixItems"]]
            low = schema.get("minItems", 0)
            size = low if depth > 8 else rng.randint(low, max(low, schema.get("maxItems", low + 3)))
            return [inner(schema.get("items", {"type": "string"})) for _ in range(size)]
        case "boolean":
            return rng.random() < 0.5
        case "integer":
            return rng.randint(*_bounds(schema, step=1, width=999))
        case "number":
            return rng.uniform(*_bounds(schema, step=1e-9, width=1.0))
        case "null":
            return None
        case _:
            low = schema.get("minLength", 0)
            size = max(low, min(8, schema.get("maxLength", 8)))
            return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(size))


def _bounds(schema: dict[str, Any], *, step: float, width: float) -> tuple[Any, Any]:
    """The least and the greatest number allowed; an open side lies `width` away from the other, or from 0."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + step
    if "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - step
    if low is None:
        low = 0 if high is None else high - width
    return low, low + width if high is None else high
