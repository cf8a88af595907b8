"""From an id to a model, with a meter around it."""

import hashlib
import json
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings

from loopkit.journal import Irreproducible, current_calls
from loopkit.log import encode
from loopkit.models.simulated import POLICIES, SimulatedModel
from loopkit.usage import Usage, spend


class ModelUnavailable(ValueError):
    """No such model id, or what it needs (a package, a key) is missing. The message says which, and what there is."""


class MeteredModel(WrapperModel):
    """Bills each answered request to `loopkit.usage`, whichever provider answers it, and records its answer.

    Inside a step that is recorded, a request that was answered before a kill is answered from the record, and
    billed as it was then. Streamed requests pass through unrecorded.
    """

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        if (calls := current_calls()) is None:
            response = await self.wrapped.request(messages, model_settings, model_request_parameters)
        else:
            key = _key(self.model_id, messages, model_settings, model_request_parameters)
            if (answer := calls.recall(key)) is not None:
                response = _recalled(answer)
            else:
                response = await self.wrapped.request(messages, model_settings, model_request_parameters)
                said = _RESPONSE.dump_python(response, mode="json", exclude_none=True, fallback=repr)
                calls.record(key, said, model=self.model_id)
        spend(_usage(response, free=self.system in FREE))
        return response


_RESPONSE = TypeAdapter(ModelResponse)
_MESSAGES = TypeAdapter(list[ModelMessage])
FREE = ("embedded", "simulated")
# What differs from one run to the next though the request is the same.
CHANGING = {"timestamp", "run_id", "conversation_id"}


def _key(
    model: str,
    messages: list[ModelMessage],
    settings: ModelSettings | None,
    parameters: ModelRequestParameters,
) -> str:
    """32 hex digits that name a request: the same for the same model, messages, settings and tools."""
    calls: dict[str, int] = {}  # whose ids are drawn at random: their order says as much

    def lasting(value: Any) -> Any:
        if isinstance(value, dict):
            ids = {key: one for key, one in value.items() if key == "tool_call_id" and isinstance(one, str)}
            numbers = {key: calls.setdefault(one, len(calls)) for key, one in ids.items()}
            return {key: lasting(one) for key, one in value.items() if key not in CHANGING} | numbers
        return [lasting(one) for one in value] if isinstance(value, list) else value

    said = lasting(_MESSAGES.dump_python(messages, mode="json", fallback=repr))
    whole = json.dumps([model, said, json.loads(encode([settings, parameters]))], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def _recalled(answer: Any) -> ModelResponse:
    try:
        return _RESPONSE.validate_python(answer)
    except ValueError as error:
        raise Irreproducible(
            f"a recorded answer is no model response (another version's?): {error}"
        ) from error


def _usage(response: ModelResponse, *, free: bool) -> Usage:
    used, cost, unpriced = response.usage, 0.0, 0
    if not free:
        try:
            cost = float(response.cost().total_price)
        except Exception:  # not on the price list, or the list went wrong: an answer is one all the same
            unpriced = 1
    return Usage(
        calls=1,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cache_read_tokens,
        cost=cost,
        unpriced_calls=unpriced,
    )


def check_id(model: str) -> str:
    """Return `model` if it can be resolved, without loading weights or sending anything.

    Raises ModelUnavailable for an unknown id (listing what there is), a missing package or a missing key.
    """
    kind, _, name = model.partition(":")
    if model != "embedded" and not (kind == "simulated" and name in POLICIES):
        _known_to_pydantic_ai(model)
    return model


def _known_to_pydantic_ai(model: str) -> Model:
    kind, _, name = model.partition(":")
    try:
        infer_provider_class(kind)
    except ImportError as error:
        raise ModelUnavailable(f"model {model!r} needs a package that is not installed: {error}") from error
    except ValueError:
        name = ""
    if not name:
        simulated = ", ".join(f"simulated:{policy}" for policy in sorted(POLICIES))
        raise ModelUnavailable(
            f"unknown model {model!r}. There are: embedded; {simulated}; and any pydantic-ai id such as "
            "openai:gpt-5-mini, anthropic:claude-haiku-4-5, ollama:qwen3 (provider:name)"
        )
    try:
        return infer_model(model)
    except (UserError, ImportError) as error:
        raise ModelUnavailable(f"model {model!r} cannot be used: {error}") from error


def resolve(model: str | Model, **options: Any) -> Model:
    """The model that `model` names, metered. A pydantic-ai `Model` is taken as it is.

    `options` go to the embedded model (`threads=`, `slots=`, `context=`) and are refused for any other.
    Raises ModelUnavailable for an unknown id, a missing package or a missing key.
    """
    if isinstance(model, MeteredModel):
        return model
    if model == "embedded":
        from loopkit.models.embedded import EmbeddedModel

        return MeteredModel(EmbeddedModel(**options))
    if options:
        raise TypeError(f"model {model!r} takes no options, got {sorted(options)}: only 'embedded' has any")
    if isinstance(model, Model):
        return MeteredModel(model)
    kind, _, name = model.partition(":")
    if kind == "simulated" and name in POLICIES:
        return MeteredModel(SimulatedModel(name))
    return MeteredModel(_known_to_pydantic_ai(model))


def fingerprint(model: str) -> str | None:
    """What tells one set of weights from another under the same id; None where only the provider knows.

    For the embedded model this fetches the weights if they are not there yet, so call it before work starts.
    """
    if model != "embedded":
        return None
    from loopkit.assets import model_path

    path = model_path()
    return f"{path.name}:{path.stat().st_size}"
