"""The embedded model: a small language model inside this process, without a key and without a network.

llama.cpp does the work (through xllamacpp). One model is loaded per process and file, and shared; it answers
several requests at once over parallel slots, each of which keeps the prompt it saw last, so requests that start
alike pay for their common prefix once.
"""

import asyncio
import http.client
import json
import os
import threading
import urllib.error
import urllib.request
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic_ai.exceptions import ModelAPIError, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from loopkit.assets import model_path
from loopkit.models import serving

# Prompts put aside by llama.cpp for reuse; its own default of 8 GiB is more than many laptops have.
PROMPT_CACHE_MIB = 128
_loading = threading.Lock()
# Loopback is not for a proxy to reach.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@lru_cache(maxsize=2)
def _load(path: Path, threads: int, slots: int, context: int) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel = context * slots, slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.n_gpu_layers = 0  # the same arithmetic on every machine
    params.verbosity = -1
    return xllamacpp.Server(params)


class EmbeddedModel(Model):
    """A pydantic-ai model over llama.cpp in this process.

    Text comes back as text, a structured output as JSON that the grammar of its schema constrained, a tool call as
    JSON constrained to the tools there are. Temperature is 0 unless a request sets it.

    `threads` defaults to LOOPKIT_THREADS or the number of cores, `slots` (requests answered at once) to `threads`
    but at most 4, and `context` (tokens a slot holds) to 2048. The file is `loopkit.assets.model_path()`: SmolLM2-135M-Instruct,
    or any GGUF named by LOOPKIT_MODEL_PATH. Loading happens at the first request and takes about a second. In a batch
    that shares one server (`loopkit.models.serving`) nothing is loaded: a model made without arguments asks the server.
    """

    def __init__(self, *, threads: int | None = None, slots: int | None = None, context: int = 2048) -> None:
        super().__init__(
            profile=ModelProfile(
                supports_json_schema_output=True,
                supports_json_object_output=True,
                default_structured_output_mode="native",
            )
        )
        self.threads = threads or int(os.environ.get("LOOPKIT_THREADS") or os.cpu_count() or 1)
        # Each slot computes a prompt's prefix for itself, which more slots than cores never win back.
        self.slots, self.context = slots or min(4, self.threads), context
        for name, value in {"threads": self.threads, "slots": self.slots, "context": context}.items():
            if value < 1:
                raise ValueError(f"{name} must be >= 1, got {value}")
        self.path = model_path()
        plain = (threads, slots, context) == (None, None, 2048)
        self._shared = os.environ.get(serving.ADDRESS) if plain else None

    @property
    def model_name(self) -> str:
        return self.path.stem

    @property
    def system(self) -> str:
        return "embedded"

    def server(self) -> Any:
        """The loaded model. Two threads that ask at once get the same one."""
        with _loading:
            try:
                return _load(self.path, self.threads, self.slots, self.context)
            except RuntimeError as error:
                raise UserError(f"{self.path} cannot be loaded as a GGUF model: {error}") from error

    def _reply(self, payload: dict[str, Any]) -> dict[str, Any]:
        if not self._shared:
            return self.server().handle_chat_completions(payload)
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(
            f"{self._shared}/v1/chat/completions", json.dumps(payload).encode(), headers
        )
        try:
            with _opener.open(request) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:  # with the same JSON as in process
            return json.load(error)
        except (OSError, http.client.HTTPException) as error:
            raise ModelAPIError(self.model_name, f"the server at {self._shared} is gone: {error}") from error

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        settings, params = self.prepare_request(model_settings, model_request_parameters)
        messages = self.prepare_messages(messages, params)
        answer = _Answer(params)
        payload = {
            "messages": _chat(messages, answer.instructions(_instructions(messages, params))),
            "max_tokens": 512,
            "temperature": 0.0,
            "cache_prompt": True,
            **{key: value for key, value in _settings(settings or {}).items() if value is not None},
            **answer.constraint(),
        }
        # Off the event loop: llama.cpp lets go of the GIL, so other requests run beside this one.
        reply = await asyncio.to_thread(self._reply, payload)
        if "error" in reply:
            error = reply["error"]
            raise ModelAPIError(
                self.model_name, error.get("message", str(error)) if isinstance(error, dict) else error
            )
        choice, usage = reply["choices"][0], reply["usage"]
        message = choice["message"]
        parts: list[ModelResponsePart] = []
        if thought := message.get("reasoning_content"):
            parts.append(ThinkingPart(content=thought))
        parts.append(answer.part(message.get("content") or ""))
        return ModelResponse(
            parts=parts,
            model_name=self.model_name,
            provider_name=self.system,
            finish_reason="length" if choice["finish_reason"] == "length" else "stop",
            usage=RequestUsage(
                input_tokens=usage["prompt_tokens"],
                output_tokens=usage["completion_tokens"],
                cache_read_tokens=usage.get("prompt_tokens_details", {}).get("cached_tokens", 0),
            ),
        )


class _Answer:
    """The shape the answer must have: how to ask for it, how to constrain it, how to read it back."""

    def __init__(self, params: ModelRequestParameters) -> None:
        self.tools: list[ToolDefinition] = [*params.function_tools, *params.output_tools]
        self.text_allowed = params.allow_text_output
        self.schema = params.output_object.json_schema if params.output_object else None
        self.choice = None if self.tools else _single_choice(self.schema)

    def instructions(self, given: str | None) -> str | None:
        if not self.tools:
            return given
        # The model's chat template ignores tools, so they are described here and called as constrained JSON.
        listed = "\n".join(
            f"- {tool.name}: {tool.description or ''} arguments: {json.dumps(tool.parameters_json_schema)}"
            for tool in self.tools
        )
        how = 'Answer with JSON: {"tool": name, "arguments": {...}}' + (
            ' or {"answer": ...} when no tool is needed.' if self._may_answer else "."
        )
        return "\n\n".join(filter(None, [given, f"Tools:\n{listed}\n{how}"]))

    @property
    def _may_answer(self) -> bool:
        return self.schema is not None or self.text_allowed

    def constraint(self) -> dict[str, Any]:
        if self.choice:
            _, options = self.choice
            return {"grammar": "root ::= " + " | ".join(_quoted(option) for option in options)}
        if self.tools:
            return _schema_constraint({"anyOf": self._alternatives()})
        return _schema_constraint(self.schema) if self.schema else {}

    def _alternatives(self) -> list[dict[str, Any]]:
        calls = [
            _object(tool={"const": tool.name}, arguments=tool.parameters_json_schema) for tool in self.tools
        ]
        return calls + ([_object(answer=self.schema or {"type": "string"})] if self._may_answer else [])

    def part(self, text: str) -> ModelResponsePart:
        if self.choice:
            # Only the choice was generated: the JSON around it is the same every time and would cost tokens.
            return TextPart(content=json.dumps({self.choice[0]: text}) if text else "")
        if not self.tools:
            return TextPart(content=text)
        try:
            value = json.loads(text)
        except ValueError:  # cut at the token limit: the caller sees finish_reason and the text as it is
            return TextPart(content=text)
        if "tool" in value:
            return ToolCallPart(tool_name=value["tool"], args=value["arguments"])
        answer = value["answer"]
        return TextPart(content=answer if self.schema is None else json.dumps(answer))


def _single_choice(schema: dict[str, Any] | None) -> tuple[str, list[str]] | None:
    """(key, options) if the schema is an object with one property, an enumeration of strings; else None."""
    properties = (schema or {}).get("properties", {})
    if len(properties) != 1:
        return None
    ((key, inner),) = properties.items()
    options = inner.get("enum", [])
    return (key, options) if options and all(isinstance(option, str) for option in options) else None


def _schema_constraint(schema: dict[str, Any]) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _quoted(text: str) -> str:
    # GBNF strings use JSON's escapes for quotes, backslashes and control characters, but take the rest as it is.
    return json.dumps(text, ensure_ascii=False)


def _settings(settings: ModelSettings) -> dict[str, Any]:
    known = {"max_tokens", "temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty"}
    chosen = {key: value for key, value in settings.items() if key in known}
    return chosen | {"stop": settings.get("stop_sequences")}


def _instructions(messages: list[ModelMessage], params: ModelRequestParameters) -> str | None:
    if params.instruction_parts is not None:
        return "\n\n".join(part.content for part in params.instruction_parts)
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    return requests[-1].instructions if requests else None


def _chat(messages: list[ModelMessage], instructions: str | None) -> list[dict[str, str]]:
    system, turns = [instructions] if instructions else [], []
    for message in messages:
        for part in message.parts:
            match part:
                case SystemPromptPart():
                    system.append(part.content)
                case UserPromptPart():
                    turns.append({"role": "user", "content": _plain(part.content)})
                case ToolReturnPart():
                    turns.append(
                        {"role": "user", "content": f"{part.tool_name} returned: {part.model_response_str()}"}
                    )
                case TextPart():
                    turns.append({"role": "assistant", "content": part.content})
                case ToolCallPart():
                    call = {"tool": part.tool_name, "arguments": part.args_as_dict()}
                    turns.append({"role": "assistant", "content": json.dumps(call)})
                case ThinkingPart():
                    pass  # reasoning of earlier turns is not shown again, as the model's own template would have it
                case _ if isinstance(message, ModelRequest) and hasattr(part, "model_response"):
                    turns.append({"role": "user", "content": part.model_response()})
                case _:
                    raise UserError(f"the embedded model cannot be shown a {part.part_kind!r} part")
    return ([{"role": "system", "content": "\n\n".join(system)}] if system else []) + turns


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not all(isinstance(piece, str) for piece in content):
        raise UserError("the embedded model reads text only: no images, audio or documents")
    return "\n".join(content)
