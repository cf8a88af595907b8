"""From an id to a model: what there is, what is missing, and the meter around it."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import genai_prices
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    BinaryImage,
    FilePart,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from loopkit import Budget, Irreproducible, Loop, MaxIterations, Store, ask, resolve
from loopkit.models import ModelUnavailable, check_id, fingerprint
from loopkit.models.simulated import POLICIES, policy
from loopkit.usage import Usage, metered

KNOWN = [
    "embedded",
    *(f"simulated:{name}" for name in ("random", "oracle", "empty", "truncated", "malformed")),
]


@pytest.mark.parametrize("model", KNOWN)
def test_what_needs_no_key_is_known(model):
    assert check_id(model) == model


@pytest.mark.parametrize(
    "model", ["", "nonsense", "simulated", "simulated:", "simulated:nobody", "embedded:x", "openai", "openai:", "nobody:x"]
)  # fmt: skip
def test_an_unknown_id_is_refused_with_what_there_is(model):
    for use in (check_id, resolve):
        with pytest.raises(ModelUnavailable) as caught:
            use(model)
        message = str(caught.value)
        assert f"unknown model {model!r}" in message
        assert all(known in message for known in [*KNOWN, "provider:name"])


def test_a_missing_key_is_named(monkeypatch):
    model, variable = "openai:gpt-x", "OPENAI_API_KEY"
    for name in (variable, "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for use in (check_id, resolve):
        with pytest.raises(ModelUnavailable, match=variable) as caught:
            use(model)
        assert repr(model) in str(caught.value)
    monkeypatch.setenv(variable, "sk-test")
    assert check_id(model) == model
    assert resolve(model).model_name == model.partition(":")[2]


def test_it_is_a_value_error_so_that_a_form_can_show_it():
    with pytest.raises(ValueError, match="unknown model"):
        resolve("nonsense")


def test_options_are_for_the_embedded_model_only():
    for model in ("simulated:random", TestModel()):
        with pytest.raises(TypeError, match="threads"):
            resolve(model, threads=1)


def test_a_policy_of_ones_own_is_found_under_its_name():
    try:

        @policy("always-yes")
        def always_yes(request):
            return f"yes to {request.prompt}"

        assert check_id("simulated:always-yes") == "simulated:always-yes"
        assert asyncio.run(ask(resolve("simulated:always-yes"), "tea")) == "yes to tea"
        with pytest.raises(ModelUnavailable, match="simulated:always-yes"):
            check_id("simulated:always-no")
    finally:
        POLICIES.pop("always-yes", None)


async def test_every_request_is_billed_once_however_often_the_model_is_resolved():
    once = resolve("simulated:random")
    twice = resolve(resolve(once))
    for model in (once, twice):
        with metered() as usage:
            await asyncio.gather(*(ask(model, "three words here") for _ in range(4)))
        assert usage == Usage(calls=4, input_tokens=12, output_tokens=12)


async def test_a_model_object_is_taken_as_it_is_and_metered():
    model = resolve(TestModel(custom_output_text="fixed"))
    with metered() as usage:
        assert await ask(model, "?") == "fixed"
    assert usage.calls == 1 and usage.tokens > 0


def test_only_weights_that_are_here_have_a_fingerprint(monkeypatch, tmp_path):
    monkeypatch.setenv("LOOPKIT_MODEL_PATH", str(tmp_path / "a.gguf"))
    (tmp_path / "a.gguf").write_bytes(b"GGUF1234")
    first = fingerprint("embedded")
    (tmp_path / "a.gguf").write_bytes(b"GGUF12345")
    assert first and fingerprint("embedded") not in (None, first)
    assert fingerprint("simulated:random") is None
    assert fingerprint("openai:gpt-x") is None


# --- money -------------------------------------------------------------------------------------------------


class Answering(Model):
    """Gives the same response to everything, or the next one each time."""

    def __init__(self, *responses, system="openai"):
        super().__init__()
        self.responses, self.given, self._system = responses, 0, system

    model_name = "fake"

    @property
    def system(self):
        return self._system

    async def request(self, messages, model_settings, model_request_parameters):
        response = self.responses[self.given % len(self.responses)]
        self.given += 1
        await asyncio.sleep(0)
        return response


def request(model, *prompts, **settings):
    messages = [ModelRequest(parts=[UserPromptPart(prompt) for prompt in prompts or ["?"]])]
    return model.request(messages, settings or None, ModelRequestParameters())


USAGE = {"input_tokens": 1000, "output_tokens": 200, "cache_read_tokens": 400}
WHEN = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("provider", "name"), [("openai", "gpt-4o-mini"), ("anthropic", "claude-haiku-4-5"), ("openai", "gpt-5")]
)
async def test_a_call_costs_what_the_price_list_says(provider, name):
    response = ModelResponse(
        parts=[TextPart("x")],
        usage=RequestUsage(**USAGE),
        model_name=name,
        provider_name=provider,
        timestamp=WHEN,
    )
    expected = genai_prices.calc_price(
        genai_prices.Usage(**USAGE), name, provider_id=provider, genai_request_timestamp=WHEN
    ).total_price
    with metered() as usage:
        for _ in range(2):
            await request(resolve(Answering(response, system=provider)))
    assert expected > 0
    assert usage.cost == pytest.approx(2 * float(expected), rel=1e-12)
    assert (usage.calls, usage.unpriced_calls) == (2, 0)
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (2000, 400, 800)


class Priceless(ModelResponse):
    def cost(self):
        raise TypeError("a price list gone wrong")


@pytest.mark.parametrize(
    "response",
    [
        ModelResponse(parts=[], model_name="nobody-knows-me", provider_name="openai"),
        ModelResponse(parts=[], model_name="gpt-5", provider_name="nobody"),
        ModelResponse(parts=[], provider_name="openai"),
        ModelResponse(parts=[]),
        Priceless(parts=[], model_name="gpt-5", provider_name="openai"),
    ],
)
async def test_a_call_without_a_known_price_is_counted_as_such(response):
    response.usage = RequestUsage(**USAGE)
    with metered() as usage:
        assert await request(resolve(Answering(response))) == response
    assert (usage.calls, usage.unpriced_calls, usage.cost, usage.tokens) == (1, 1, 0.0, 1200)


@pytest.mark.parametrize("system", ["embedded", "simulated"])
async def test_what_runs_here_costs_nothing(system):
    response = ModelResponse(
        parts=[], model_name="gpt-5", provider_name="openai", usage=RequestUsage(**USAGE)
    )
    with metered() as usage:
        await request(resolve(Answering(response, system=system)))
        await ask(resolve("simulated:random"), "two words")
    assert (usage.calls, usage.cost, usage.unpriced_calls) == (2, 0.0, 0)


def asking(model, *, turns=1, gates=(), each=request):
    """A loop that asks once a turn, what it was answered, and how that came to be a run's record."""
    answers = []

    async def propose(goal, history):
        answers.append(await each(model))

    loop = Loop(
        propose=propose, execute=lambda _: 1, judge=lambda *_: 1, gates=[*gates, MaxIterations(turns)]
    )
    return loop, answers


async def test_money_is_a_budget_and_a_call_that_nobody_can_price_ends_it():
    priced = ModelResponse(
        parts=[], model_name="gpt-5", provider_name="openai", usage=RequestUsage(**USAGE), timestamp=WHEN
    )
    unpriced = replace(priced, model_name="nobody-knows-me")
    cost = float(priced.cost().total_price)
    loop, _ = asking(resolve(Answering(priced)), turns=9, gates=[Budget(cost=2.5 * cost)])
    outcome = await loop.run()
    assert (outcome.stopped_by.gate, len(outcome.history)) == ("Budget", 3)
    assert outcome.usage.cost == pytest.approx(3 * cost)
    loop, _ = asking(resolve(Answering(priced, unpriced)), turns=9, gates=[Budget(cost=99)])
    outcome = await loop.run()
    assert len(outcome.history) == 2 and "1 calls have no known price" in outcome.stopped_by.reason


# --- recorded answers --------------------------------------------------------------------------------------


def cut_after_calls(store, run="r"):
    """Leave of a run what was there when its first step had not come back yet."""
    lines = store.path(run).read_bytes().splitlines(keepends=True)
    first = next(place for place, line in enumerate(lines) if b'"event":"step"' in line)
    store.path(run).write_bytes(b"".join(lines[:first]))


async def there_and_back(folder, model, each=request):
    """What a loop was answered, and what it is answered again from the record alone."""
    store = Store(folder)
    loop, answers = asking(resolve(model), each=each)
    with store.create("r") as log:
        outcome = await loop.run(log=log)
    assert not outcome.history[0].error
    cut_after_calls(store)
    asked = model.given
    with store.resume("r") as log:
        again = await loop.run(log=log)
    assert model.given == asked
    assert again.usage == outcome.usage
    return answers


@pytest.mark.parametrize("reason", [None, "stop", "length", "content_filter", "tool_call", "error"])
@pytest.mark.parametrize(
    "parts",
    [
        [],
        [TextPart("é\ud800\n"), TextPart("", id="7", provider_name="openai")],
        [ToolCallPart("look", {"a": None, "b": [1, None, {"c": "\ud800"}], "timestamp": 3})],
        [ToolCallPart("look", '{"a": null}', tool_call_id="call_1"), ToolCallPart("look", None)],
        [ThinkingPart("hm", signature="s==", provider_name="anthropic"), TextPart("so")],
        [FilePart(BinaryImage(b"\xff\0", media_type="image/png"))],
        [FilePart(BinaryContent(b"\xff\0", media_type="audio/wav"))],
        [
            NativeToolCallPart("search", {"q": "x"}, tool_call_id="1", provider_name="openai"),
            NativeToolReturnPart("search", [{"title": None}], tool_call_id="1", provider_name="openai"),
        ],
    ],
    ids=lambda parts: "+".join(type(part).__name__ for part in parts) or "nothing",
)
async def test_an_answer_on_record_comes_back_as_it_was(tmp_path, parts, reason):
    response = ModelResponse(
        parts=parts, finish_reason=reason, model_name="gpt-5", provider_name="openai", timestamp=WHEN,
        usage=RequestUsage(**USAGE, details={"reasoning_tokens": 7}), provider_response_id="resp_1",
        provider_details={"finish_reason": "stop", "logprobs": None},
    )  # fmt: skip
    first, again = await there_and_back(tmp_path, Answering(response))
    assert first == again == response
    assert [type(part) for part in again.parts] == [type(part) for part in parts]


async def test_what_no_record_can_hold_does_not_cost_the_answer(tmp_path):
    response = ModelResponse(parts=[TextPart("x")], provider_details={"raw": object()})
    first, again = await there_and_back(tmp_path, Answering(response))
    assert first.parts == again.parts and "object" in again.provider_details["raw"]


async def test_the_same_question_asked_several_times_at_once_is_answered_as_often(tmp_path):
    responses = [ModelResponse(parts=[TextPart(str(n))], timestamp=WHEN) for n in range(5)]

    async def each(model):
        same = await asyncio.gather(*(request(model, "same") for _ in range(4)))
        return sorted(response.parts[0].content for response in same), await request(model, "other")

    first, again = await there_and_back(tmp_path, Answering(*responses), each=each)
    assert first == again == (["0", "1", "2", "3"], responses[4])


async def test_an_answer_is_for_its_question_only(tmp_path):
    store, model = Store(tmp_path), Answering(ModelResponse(parts=[TextPart("x")]))
    ways = [
        lambda model: request(model, "a"),
        lambda model: request(model, "b"),
        lambda model: request(model, "a", "a"),
        lambda model: request(model, "a", temperature=0.5),
        lambda model: request(model, "a", seed=1),
        lambda model: model.request([ModelRequest(parts=[UserPromptPart("a")], instructions="i")], None, ModelRequestParameters()),
        lambda model: model.request([ModelRequest(parts=[UserPromptPart("a")])], None, ModelRequestParameters(allow_text_output=False)),
    ]  # fmt: skip
    for number, way in enumerate(ways):
        for other in ways:
            model.given = 0
            run = f"r{number}.{ways.index(other)}"
            with store.create(run) as log:
                await asking(resolve(model), each=way)[0].run(log=log)
            cut_after_calls(store, run)
            with store.resume(run) as log:
                await asking(resolve(model), each=other)[0].run(log=log)
            assert model.given == (1 if way is other else 2), run


class Place(BaseModel):
    name: str
    tags: set[str] = {"a", "b", "c"}


def agent():
    """An agent that makes use of all there is: instructions, a tool, typed output, and another try."""
    made = Agent(output_type=Place, instructions="Be brief.", retries=2)

    @made.tool_plain
    def look(where: str, timestamp: int) -> dict:
        """Look around."""
        return {"where": where, "seen": [None, 1.5]}

    return made


CONVERSATION = [
    ModelResponse(parts=[ThinkingPart("hm"), ToolCallPart("look", {"where": "there", "timestamp": 3})]),
    ModelResponse(parts=[TextPart("no call at all")]),
    ModelResponse(parts=[ToolCallPart("final_result", {"nom": "x"})]),
    ModelResponse(parts=[ToolCallPart("final_result", {"name": "x", "tags": ["a"]})]),
]


async def test_a_whole_conversation_of_an_agent_is_answered_from_the_record(tmp_path):
    def history():  # with calls whose ids are drawn anew each time
        call = ToolCallPart("look", {"where": "here", "timestamp": 1})
        return [
            ModelRequest(parts=[UserPromptPart("before")]),
            ModelResponse(parts=[call]),
            ModelRequest(parts=[ToolReturnPart("look", {"seen": 1}, tool_call_id=call.tool_call_id)]),
        ]

    async def each(model):
        return (await agent().run("go", model=model, message_history=history())).output

    first, again = await there_and_back(tmp_path, Answering(*CONVERSATION), each=each)
    assert first == again == Place(name="x", tags={"a"})


def converse(folder, run):
    loop, _ = asking(resolve(Answering(*CONVERSATION)), each=lambda model: agent().run("go", model=model))
    with Store(folder).create(run) as log:
        asyncio.run(loop.run(log=log))


def test_another_process_names_a_request_alike(tmp_path):
    converse(tmp_path, "here")
    code = "import sys; sys.path.insert(0, sys.argv[1]); from test_resolving import *; converse(sys.argv[2], 'there')"
    # Any two of these differ in their hash seed; this process has one of its own.
    env = os.environ | {"PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"}
    subprocess.run([sys.executable, "-c", code, Path(__file__).parent, tmp_path], env=env, check=True)
    here, there = (
        [call["request"] for call in Store(tmp_path).run(run).all("call")] for run in ("here", "there")
    )
    assert len(here) == 4 and here == there


async def test_a_recorded_answer_that_is_none_is_refused(tmp_path, monkeypatch):
    model = Answering(ModelResponse(parts=[TextPart("x")]))
    store = Store(tmp_path)
    loop, _ = asking(resolve(model))
    with store.create("r") as log:
        await loop.run(log=log)
    with store.create("other") as log:  # as another version might have written it
        for event in store.run("r").events[1:3]:
            named = {key: one for key, one in event.items() if key not in ("seq", "time", "hash", "event")}
            log.append(event["event"], **named | ({"answer": {"parts": 7}} if "answer" in named else {}))
    with store.resume("other") as log, pytest.raises(Irreproducible, match="no model response"):
        await loop.run(log=log)


async def test_outside_of_a_recorded_loop_nothing_is_recorded_and_every_question_is_asked():
    model = Answering(ModelResponse(parts=[TextPart("x")]))
    loop, answers = asking(resolve(model), turns=3)
    await loop.run()
    await request(resolve(model))
    assert (model.given, len(answers)) == (4, 3)


async def test_a_question_that_went_wrong_is_no_answer(tmp_path):
    class Failing(Answering):
        async def request(self, *args):
            response = await super().request(*args)
            if self.given == 1:
                raise ConnectionError("lost")
            return response

    async def each(model):
        try:
            return await request(model)
        except ConnectionError:
            return await request(model)

    model, store = Failing(ModelResponse(parts=[TextPart("x")])), Store(tmp_path)
    loop, _ = asking(resolve(model), each=each)
    with store.create("r") as log:
        outcome = await loop.run(log=log)
    assert (model.given, len(store.run("r").all("call")), outcome.usage.calls) == (2, 1, 1)
