"""From an id to a model, with a meter around it."""

from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings

from loopkit.models.simulated import POLICIES, SimulatedModel
from loopkit.usage import Usage, spend


class ModelUnavailable(ValueError):
    """No such model id, or what it needs (a package, a key) is missing. The message says which, and what there is."""


class MeteredModel(WrapperModel):
    """Bills each answered request to `loopkit.usage`, whichever provider answers it."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        response = await self.wrapped.request(messages, model_settings, model_request_parameters)
        used = response.usage
        spend(
            Usage(
                calls=1,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cached_tokens=used.cache_read_tokens,
            )
        )
        return response


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
