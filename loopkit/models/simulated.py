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
    ModelRequest,
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
    """Knows nothing: any answer the schema allows, or the words of the prompt shuffled."""
    if request.schema is None:
        words = request.prompt.split()
        request.rng.shuffle(words)
        return " ".join(words)
    return json.dumps(_sample(request.schema, request.schema, request.rng))


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
    # pydantic-ai wraps a bare value, such as a Literal, in an object with the one key "response".
    return json.dumps(answer if isinstance(answer, dict) else {"response": answer})


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
        users = [
            part.content
            for message in messages
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, UserPromptPart)
        ]
        prompt = users[-1] if users and isinstance(users[-1], str) else str(users[-1:])
        # Time stamps differ from call to call, so only what was said goes into the seed.
        said = json.dumps([users, (settings or {}).get("seed", 0), self._name], default=str)
        answer = POLICIES[self._name](
            Request(
                prompt=prompt,
                schema=params.output_object.json_schema if params.output_object else None,
                rng=random.Random(hashlib.sha256(said.encode()).digest()),
                expected=expected_answer.get(),
            )
        )
        if isinstance(answer, str):
            answer = ModelResponse(parts=[TextPart(content=answer)], finish_reason="stop")
        words = sum(len(part.content.split()) for part in answer.parts if isinstance(part, TextPart))
        answer.usage = RequestUsage(input_tokens=len(prompt.split()), output_tokens=words)
        answer.model_name = self.model_name
        return answer


def _sample(schema: dict[str, Any], root: dict[str, Any], rng: random.Random) -> Any:
    """A value drawn at random from what `schema` allows (the subset that pydantic writes)."""
    if "$ref" in schema:
        target: Any = root
        for key in schema["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        return _sample(target, root, rng)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    for alternatives in ("anyOf", "oneOf"):
        if alternatives in schema:
            return _sample(rng.choice(schema[alternatives]), root, rng)
    match schema.get("type"):
        case "object":
            return {key: _sample(value, root, rng) for key, value in schema.get("properties", {}).items()}
        case "array":
            low = schema.get("minItems", 0)
            size = rng.randint(low, max(low, schema.get("maxItems", low + 3)))
            return [_sample(schema.get("items", {"type": "string"}), root, rng) for _ in range(size)]
        case "boolean":
            return rng.random() < 0.5
        case "integer":
            low = schema.get("minimum", 0)
            return rng.randint(low, schema.get("maximum", low + 999))
        case "number":
            low = schema.get("minimum", 0.0)
            return rng.uniform(low, schema.get("maximum", low + 1.0))
        case "null":
            return None
        case _:
            return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(8))
