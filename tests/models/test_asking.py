"""One typed question: what comes back, and what kind of failure everything else is."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import pytest
from pydantic import BaseModel
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel

from loopkit import Failure, Usage, ask, resolve
from loopkit.models.asking import expected_answer
from loopkit.usage import metered


class Person(BaseModel):
    name: str
    age: int


Answer = Literal["yes", "no"]
PERSON = Person(name="Ava", age=3)


def answering(*parts, finish_reason="stop", seen=None):
    """A model that always answers with `parts`, and notes what it was asked."""

    def respond(messages, info):
        if seen is not None:
            seen.append((messages, info))
        return ModelResponse(parts=list(parts), finish_reason=finish_reason)

    return resolve(FunctionModel(respond))


@pytest.mark.parametrize(
    ("output", "expected", "answer"),
    [
        (str, "some words", "some words"),
        (Answer, "no", "no"),
        (Person, PERSON, PERSON),
        (Person, {"name": "Ava", "age": 3}, PERSON),
        (int, 7, 7),
        (bool, False, False),
        (list[int], [1, 2], [1, 2]),
        (dict[str, int], {"Ava": 3}, {"Ava": 3}),
        (dict[str, int], {}, {}),
    ],
)
async def test_the_oracle_gives_back_what_is_expected_in_the_type_that_was_asked_for(
    output, expected, answer
):
    found = await ask(resolve("simulated:oracle"), "?", output=output, expected=expected)
    assert found == answer and type(found) is type(answer)


class Place(BaseModel):
    town: str


async def test_one_of_several_types_may_be_asked_for():
    found = [await ask(resolve("simulated:random"), f"q{n}", output=[Person, Place]) for n in range(12)]
    assert {type(answer) for answer in found} == {Person, Place}


async def test_types_that_are_equal_but_not_the_same_do_not_share_an_answer_sheet(monkeypatch):
    from loopkit.models.simulated import POLICIES

    seen = []

    def spy(request):
        seen.append(request.schema["properties"]["response"]["enum"])
        return json.dumps({"response": seen[-1][0]})

    monkeypatch.setitem(POLICIES, "spy", spy)
    for output in (Literal["up", "down"], Literal["down", "up"]):
        await ask(resolve("simulated:spy"), "?", output=output)
    assert seen == [["up", "down"], ["down", "up"]]


@pytest.mark.parametrize("output", [str, Answer, Person])
async def test_the_random_one_answers_in_the_type_that_was_asked_for(output):
    found = await ask(resolve("simulated:random"), "these are four words", output=output)
    if output is str:
        assert sorted(found.split()) == ["are", "four", "these", "words"]
    elif output is Answer:
        assert found in ("yes", "no")
    else:
        assert isinstance(found, Person)


@pytest.mark.parametrize("output", [str, Answer, Person])
@pytest.mark.parametrize(
    ("policy", "answer"), [("empty", None), ("truncated", '{"resp'), ("malformed", "{'oops")]
)
async def test_a_useless_answer_is_a_failure_of_its_kind_that_keeps_the_answer(policy, answer, output):
    model = resolve(f"simulated:{policy}")
    if policy == "malformed" and output is str:
        assert await ask(model, "?") == answer  # any text will do as text
        return
    with pytest.raises(Failure) as caught, metered() as usage:
        await ask(model, "?", output=output)
    assert (caught.value.kind, caught.value.answer) == (policy, answer)
    assert usage.calls == 1  # not asked a second time, and paid for


@pytest.mark.parametrize("parts", [[], [TextPart(content=" \n\t")], [ThinkingPart(content="hm")]])
async def test_an_answer_without_words_is_empty(parts):
    with pytest.raises(Failure) as caught:
        await ask(answering(*parts), "?")
    assert caught.value.kind == "empty"


@pytest.mark.parametrize("text", ["{}", '{"name": "Ava"}', '{"name": "Ava", "age": "old"}', "[]", "no JSON"])
async def test_json_that_does_not_fit_is_malformed(text, monkeypatch):
    from loopkit.models.simulated import POLICIES

    monkeypatch.setitem(POLICIES, "says", lambda request: text)
    with pytest.raises(Failure) as caught:
        await ask(resolve("simulated:says"), "?", output=Person)
    assert (caught.value.kind, caught.value.answer) == ("malformed", text)


async def test_an_answer_given_as_a_tool_call_is_kept_when_it_is_no_use():
    def respond(messages, info):
        call = ToolCallPart(info.output_tools[0].name, '{"name": "Ava", "age": "old"}')
        return ModelResponse(parts=[call], finish_reason="tool_call")

    with pytest.raises(Failure) as caught:
        await ask(resolve(FunctionModel(respond)), "?", output=Person)
    assert caught.value.kind == "malformed"
    assert json.loads(caught.value.answer) == {"name": "Ava", "age": "old"}


async def test_an_answer_that_was_cut_is_truncated_even_if_it_could_be_read():
    with pytest.raises(Failure) as caught:
        await ask(answering(TextPart(content="half a sen"), finish_reason="length"), "?")
    assert (caught.value.kind, caught.value.answer) == ("truncated", "half a sen")


async def test_what_the_model_is_sent():
    seen = []
    await ask(
        answering(TextPart(content="ok"), seen=seen),
        "the question",
        instructions="be brief",
        examples=[("q1", "a1"), ("q2", "a2")],
        temperature=0.5,
        seed=9,
        max_tokens=77,
        expected="the truth",
    )
    ((messages, info),) = seen
    said = [part.content for message in messages for part in message.parts]
    assert said == ["q1", "a1", "q2", "a2", "the question"]
    assert isinstance(messages[0].parts[0], UserPromptPart) and isinstance(messages[1].parts[0], TextPart)
    assert messages[-1].instructions == "be brief"
    assert not any(isinstance(part, SystemPromptPart) for m in messages for part in m.parts)
    assert {**info.model_settings} == {"temperature": 0.5, "seed": 9, "max_tokens": 77}
    assert "the truth" not in repr(seen)


async def test_questions_do_not_hear_of_each_other():
    seen = []
    model = answering(TextPart(content="ok"), seen=seen)
    for number in range(3):
        await ask(model, f"question {number}", examples=[("q", "a")])
    for number, (messages, _) in enumerate(seen):
        requests = [m.parts[0].content for m in messages if isinstance(m, ModelRequest)]
        assert requests == ["q", f"question {number}"]


async def test_expected_answers_of_questions_at_once_stay_apart():
    oracle = resolve("simulated:oracle")
    answers = await asyncio.gather(*(ask(oracle, "?", expected=f"answer {n}") for n in range(20)))
    assert answers == [f"answer {n}" for n in range(20)]
    assert expected_answer.get() is None


async def test_an_oracle_that_was_told_nothing_is_our_mistake_and_no_failure():
    with pytest.raises(UserError, match="expected="):
        await ask(resolve("simulated:oracle"), "?")


# --- a provider ---------------------------------------------------------------------------------------------


class Provider(ThreadingHTTPServer):
    """Speaks as much of OpenAI's chat completions as `ask` needs."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked, self.status, self.finish = [], 200, "stop"

    def message(self, body):
        if tools := body.get("tools"):
            function = {"name": tools[0]["function"]["name"], "arguments": PERSON.model_dump_json()}
            call = {"id": "call_1", "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        wants_json = body.get("response_format", {}).get("type") == "json_schema"
        return {"role": "assistant", "content": PERSON.model_dump_json() if wants_json else "hello there"}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append((self.path, self.headers["authorization"], body))
        if self.server.status == 200:
            choice = {
                "index": 0, "finish_reason": self.server.finish, "message": self.server.message(body),
            }  # fmt: skip
            usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
            usage["prompt_tokens_details"] = {"cached_tokens": 4}
            answer = {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"]}
            answer |= {"choices": [choice], "usage": usage}
        else:
            answer = {"error": {"message": "the provider is unwell", "type": "server_error"}}
        data = json.dumps(answer).encode()
        self.send_response(self.server.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("x-should-retry", "false")  # else the client waits and asks again by itself
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def provider(monkeypatch):
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


async def test_a_provider_gives_text_and_structured_answers_and_is_billed(provider):
    model = resolve("openai-chat:some-model")
    with metered() as usage:
        assert await ask(model, "hi", instructions="be kind", max_tokens=33) == "hello there"
        assert await ask(model, "who?", output=Person) == PERSON
    spent = Usage(calls=2, input_tokens=22, output_tokens=10, cached_tokens=8, unpriced_calls=2)
    assert usage == spent
    (path, key, body), _ = provider.asked
    assert (path, key, body["model"]) == ("/v1/chat/completions", "Bearer sk-test", "some-model")
    assert [message["content"] for message in body["messages"]] == ["be kind", "hi"]
    assert 33 in (body.get("max_tokens"), body.get("max_completion_tokens"))


async def test_a_provider_that_cuts_the_answer_is_a_failure(provider):
    provider.finish = "length"
    with pytest.raises(Failure) as caught:
        await ask(resolve("openai-chat:some-model"), "hi")
    assert (caught.value.kind, caught.value.answer) == ("truncated", "hello there")


@pytest.mark.parametrize("status", [500, 401])
async def test_an_error_of_the_provider_is_not_a_failure_of_the_model(provider, status):
    provider.status = status
    with pytest.raises(ModelHTTPError, match="the provider is unwell") as caught, metered() as usage:
        await ask(resolve("openai-chat:some-model"), "hi")
    assert caught.value.status_code == status
    assert len(provider.asked) == 1
    assert usage.calls == 0
