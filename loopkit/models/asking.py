"""One typed question to a model."""

from collections.abc import Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from pydantic_ai import Agent, capture_run_messages
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from loopkit.verdict import Failure

expected_answer: ContextVar[Any] = ContextVar("loopkit_expected_answer", default=None)
"""What a model that knew would answer. Only `simulated:oracle` reads it; no request carries it."""


async def ask(
    model: Model,
    prompt: str,
    *,
    output: Any = str,
    instructions: str | None = None,
    examples: Sequence[tuple[str, str]] = (),
    temperature: float = 0.0,
    seed: int = 0,
    max_tokens: int = 512,
    expected: Any = None,
) -> Any:
    """Ask once and return the answer as `output` (a type, a `Literal`, a pydantic model; `str` for free text).

    `examples` are earlier turns, (user, assistant), shown before the prompt: kept the same from call to call
    they are computed once by models with a prefix cache. `expected` is for `simulated:oracle` alone.

    Raises `Failure` when the answer is no use: `truncated` (the token limit was hit), `empty`, or `malformed`
    (not what `output` asks for). Errors of the model itself (no connection, no key) pass through untouched.
    """
    try:
        agent = _agent(output, str(output), instructions)
    except TypeError:  # an output that cannot be a cache's key, such as a list of types
        agent = _agent.__wrapped__(output, "", instructions)
    settings = ModelSettings(temperature=temperature, seed=seed, max_tokens=max_tokens)
    history = list(_turns(tuple(examples)))
    token = expected_answer.set(expected)
    try:
        with capture_run_messages() as messages:
            try:
                result = await agent.run(
                    prompt, model=model, message_history=history, model_settings=settings
                )
            except UnexpectedModelBehavior as error:
                raise _failure(_last_response(messages), error) from error
    finally:
        expected_answer.reset(token)
    if result.response.finish_reason == "length":
        raise _failure(result.response, None)
    if isinstance(result.output, str) and not result.output.strip():
        raise Failure("empty", "the model answered with nothing")
    return result.output


@lru_cache(maxsize=256)
def _agent(output: Any, spelled: str, instructions: str | None) -> Agent[None, Any]:
    # Building an agent compiles its output schema, which takes longer than the rest of a request's overhead.
    # `spelled` is there for the cache: Literal["a", "b"] equals Literal["b", "a"], but is another schema.
    return Agent(output_type=output, instructions=instructions, retries=0)


@lru_cache(maxsize=64)
def _turns(examples: tuple[tuple[str, str], ...]) -> tuple[ModelMessage, ...]:
    turns: list[ModelMessage] = []
    for user, assistant in examples:
        turns.append(ModelRequest(parts=[UserPromptPart(content=user)]))
        turns.append(ModelResponse(parts=[TextPart(content=assistant)]))
    return tuple(turns)


def _last_response(messages: list[ModelMessage]) -> ModelResponse | None:
    return next((message for message in reversed(messages) if isinstance(message, ModelResponse)), None)


def _failure(response: ModelResponse | None, error: Exception | None) -> Failure:
    text = _said(response) if response else ""
    if response is not None and response.finish_reason == "length":
        return Failure("truncated", f"cut at the token limit after …{text[-80:]!r}", answer=text)
    if not text.strip():
        return Failure("empty", "the model answered with nothing")
    return Failure("malformed", f"{text[:80]!r}: {error}", answer=text)


def _said(response: ModelResponse) -> str:
    """The text of a response, and the arguments of its tool calls: providers differ in where an answer stands."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    return text + "".join(call.args_as_json_str() for call in response.tool_calls)
