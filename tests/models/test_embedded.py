"""The embedded model: what can be told without weights, then the real thing."""

import asyncio
from typing import Literal

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelAPIError, UserError
from pydantic_ai.messages import ImageUrl, ModelRequest, ToolCallPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from loopkit import Failure, ask, resolve
from loopkit.assets import AssetError, model_path
from loopkit.models.embedded import EmbeddedModel
from loopkit.usage import metered

# One thread: two that wait for each other on a busy machine are far slower than one.
SMALL = {"threads": 1, "slots": 2, "context": 256}


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """An EmbeddedModel whose llama.cpp is a function of ours: it takes payloads and gives back `reply`."""
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    monkeypatch.setenv("LOOPKIT_MODEL_PATH", str(tmp_path / "tiny.gguf"))

    class Fake(EmbeddedModel):
        payloads, content, finish = [], "", "stop"

        def server(self):
            return self

        def handle_chat_completions(self, payload):
            self.payloads.append(payload)
            message = {"role": "assistant", "content": self.content}
            usage = {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 7},
            }
            return {"choices": [{"message": message, "finish_reason": self.finish}], "usage": usage}

    model = Fake(**SMALL)
    model.payloads = []
    return model


# --- without weights ----------------------------------------------------------------------------------------


async def test_what_llama_is_sent_and_what_is_billed(fake):
    fake.content = "an answer"
    with metered() as usage:
        found = await ask(
            resolve(fake), "now", instructions="be brief", examples=[("q", "a")], seed=3, max_tokens=9
        )
    assert found == "an answer"
    (payload,) = fake.payloads
    assert [(turn["role"], turn["content"]) for turn in payload["messages"]] == [
        ("system", "be brief"),
        ("user", "q"),
        ("assistant", "a"),
        ("user", "now"),
    ]
    assert (payload["temperature"], payload["seed"], payload["max_tokens"]) == (0.0, 3, 9)
    assert payload["cache_prompt"] is True
    assert not {"grammar", "response_format"} & payload.keys()
    assert (usage.calls, usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (1, 9, 4, 7)


async def test_a_choice_is_answered_in_the_choices_own_words(fake):
    fake.content = 'say "no"'
    assert await ask(resolve(fake), "?", output=Literal["yes", 'say "no"']) == 'say "no"'
    assert fake.payloads[0]["grammar"] == r'root ::= "yes" | "say \"no\""'
    with pytest.raises(Failure, match="malformed"):
        await ask(resolve(fake), "?", output=Literal["yes", "no"])


@pytest.mark.parametrize(
    ("content", "finish", "kind"), [("", "stop", "empty"), ("y", "length", "truncated"), ("", "length", "truncated")]
)  # fmt: skip
@pytest.mark.parametrize("output", [str, Literal["yes", "no"]])
async def test_an_answer_that_is_no_use_is_a_failure(fake, content, finish, kind, output):
    fake.content, fake.finish = content, finish
    with pytest.raises(Failure) as caught:
        await ask(resolve(fake), "?", output=output)
    assert caught.value.kind == kind


async def test_an_error_of_llama_is_the_models_error(fake, monkeypatch):
    monkeypatch.setattr(
        fake, "handle_chat_completions", lambda payload: {"error": {"message": "out of room"}}
    )
    with pytest.raises(ModelAPIError, match="out of room"):
        await ask(resolve(fake), "?")


async def test_pictures_are_refused(fake):
    request = ModelRequest(
        parts=[UserPromptPart(content=["look", ImageUrl(url="https://example.org/a.png")])]
    )
    with pytest.raises(UserError, match="reads text only"):
        await fake.request([request], None, ModelRequestParameters())


async def test_a_tool_call_is_shown_back_as_the_model_wrote_it(fake):
    fake.content = '{"tool": "look_up", "arguments": {"word": "tea"}}'
    agent = Agent(resolve(fake))

    @agent.tool_plain
    def look_up(word: str) -> str:
        fake.content = '{"answer": "a drink"}'
        return f"{word} is a drink"

    assert (await agent.run("what is tea?")).output == "a drink"
    first, second = fake.payloads
    assert "look_up" in first["messages"][0]["content"]
    assert [turn["content"] for turn in second["messages"][1:]] == [
        "what is tea?",
        '{"tool": "look_up", "arguments": {"word": "tea"}}',
        "look_up returned: tea is a drink",
    ]


@pytest.mark.parametrize("name", ["threads", "slots", "context"])
def test_sizes_below_one_are_refused_and_named(name):
    with pytest.raises(ValueError, match=f"{name} must be >= 1, got -1"):
        EmbeddedModel(**{name: -1})


def test_threads_come_from_the_environment_and_slots_follow(fake, monkeypatch):
    monkeypatch.setenv("LOOPKIT_THREADS", "3")
    assert (EmbeddedModel().threads, EmbeddedModel().slots) == (3, 3)
    assert EmbeddedModel(threads=9).slots == 4
    assert resolve("embedded", threads=2).wrapped.threads == 2
    assert (EmbeddedModel().system, EmbeddedModel().model_name) == ("embedded", "tiny")


def test_a_file_that_is_no_model_is_refused_at_once(monkeypatch, tmp_path):
    (tmp_path / "notes.txt").write_text("no weights")
    monkeypatch.setenv("LOOPKIT_MODEL_PATH", str(tmp_path / "notes.txt"))
    with pytest.raises(AssetError, match=r"notes\.txt.*is not a GGUF file"):
        resolve("embedded")


# --- with weights -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weights():
    try:
        model_path()
    except AssetError as error:
        pytest.skip(f"no weights: {error}")


@pytest.fixture
def model(weights):
    return resolve("embedded", **SMALL)


class Person(BaseModel):
    name: str
    age: int


@pytest.mark.embedded
async def test_a_broken_model_file_is_named(monkeypatch, tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + b"junk" * 100)
    monkeypatch.setenv("LOOPKIT_MODEL_PATH", str(tmp_path / "broken.gguf"))
    with pytest.raises(UserError, match=r"broken\.gguf cannot be loaded"):
        await ask(resolve("embedded", **SMALL), "?")


@pytest.mark.embedded
async def test_text_is_repeatable_and_the_prompt_is_paid_for_once(model):
    with metered() as first, pytest.raises(Failure) as cut:
        await ask(model, "Tell me a long story about a whale.", max_tokens=5)
    with metered() as second, pytest.raises(Failure) as again:
        await ask(model, "Tell me a long story about a whale.", max_tokens=5)
    assert cut.value.kind == "truncated" and cut.value.answer.strip()
    assert again.value.answer == cut.value.answer
    assert (first.calls, first.output_tokens) == (1, 5)
    assert second.input_tokens == first.input_tokens > 10
    assert 0 < second.cached_tokens < second.input_tokens


@pytest.mark.embedded
async def test_an_answer_in_words(model):
    found = await ask(model, "Answer with one word: yes or no. Is water wet?", max_tokens=60)
    assert isinstance(found, str) and found.strip()


@pytest.mark.embedded
async def test_a_structured_answer(model):
    found = await ask(model, "Tom is 5 years old.", output=Person, max_tokens=60)
    assert isinstance(found, Person)


@pytest.mark.embedded
@pytest.mark.parametrize(
    "options",
    [
        ('say "yes"', "say 'no'"),
        ("não", "日本 🎉", "ab"),
        ("back\\slash", "line\nbreak\ttab"),
        ("Ann", "Anna", "Anna-Marie"),
        ("root ::= x | y", "[a-z]+"),
    ],
)
async def test_a_choice_is_one_of_its_options_whatever_they_contain(model, options):
    # With the first options as the examples' answers, so that the model writes what stands there.
    found = await ask(
        model, "third", output=Literal[options], examples=[("first", options[0]), ("second", options[0])],
        max_tokens=40,
    )  # fmt: skip
    assert found in options


@pytest.mark.embedded
async def test_a_tool_call_fits_the_tools_there_are(model):
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
    tool = ToolDefinition(name="weather", description="Weather in a city.", parameters_json_schema=schema)
    request = ModelRequest(parts=[UserPromptPart(content="Weather in Rome?")])
    params = ModelRequestParameters(function_tools=[tool], allow_text_output=False)
    response = await model.request([request], {"max_tokens": 60}, params)
    (call,) = response.parts
    assert isinstance(call, ToolCallPart) and call.tool_name == "weather"
    assert call.args_as_dict()["city"] in ("Paris", "Rome")


@pytest.mark.embedded
async def test_a_prompt_longer_than_the_context_is_refused(model):
    with pytest.raises(ModelAPIError, match="exceeds the available context"):
        await ask(model, "word " * 600)


@pytest.mark.embedded
async def test_several_at_once_over_one_loaded_model(model):
    other = resolve("embedded", **SMALL)
    assert other.wrapped.server() is model.wrapped.server()
    options = Literal["red", "green"]
    with metered() as usage:
        found = await asyncio.gather(
            *(
                ask(one, f"Pick a colour, number {n}.", output=options)
                for n in range(2)
                for one in (model, other)
            )
        )
    assert set(found) <= {"red", "green"}
    assert found[0] == found[1] and found[2] == found[3]
    assert usage.calls == 4
