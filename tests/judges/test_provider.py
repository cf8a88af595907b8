"""The rubric judge over HTTP: a local server in the place of a provider, misbehaving on demand."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from loopkit.judges import SKILL_RUBRIC, Hybrid, Material, RubricJudge, skill_checks
from loopkit.usage import metered

GRADE = {"quote": "Boil the water first.", "score": 0.8, "blocking": "say how hot", "suggestion": ""}
TEA = Material(main="Boil the water first. Then pour it.", name="TEA.md", goal="tea")


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(body)
        if self.server.status == 200:
            said = json.dumps(self.server.grade)
            if tools := body.get("tools"):
                call = {"name": tools[0]["function"]["name"], "arguments": said}
                message = {
                    "role": "assistant",
                    "tool_calls": [{"id": "1", "type": "function", "function": call}],
                }
            else:
                message = {"role": "assistant", "content": said}
            answer = {
                "id": "1", "object": "chat.completion", "created": 1, "model": body["model"],
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
            }  # fmt: skip
        else:
            answer = {"error": {"message": "the provider is unwell", "type": "server_error"}}
        data = json.dumps(answer).encode()
        self.send_response(self.server.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("x-should-retry", "false")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def provider(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.status, server.grade = [], 200, GRADE
    server.handle_error = lambda *_: None  # a client that gave up after another's error
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


async def test_a_provider_is_asked_once_per_dimension_and_billed(provider):
    with metered() as usage:
        verdict = await RubricJudge("openai-chat:some-model", SKILL_RUBRIC)(TEA)
    assert verdict.score == pytest.approx(0.8) and verdict.voids == {}
    assert verdict.feedback.blocking[0] == "purpose: say how hot"
    assert (len(provider.asked), usage.calls) == (5, 5)
    assert {body["temperature"] for body in provider.asked} == {0.0}
    questions = {one.question for one in SKILL_RUBRIC}
    for body in provider.asked:
        prompt = body["messages"][-1]["content"]
        questions -= {question for question in questions if question in prompt}
        assert TEA.main in prompt and "tea" in prompt
    assert questions == set()


@pytest.mark.parametrize("status", [500, 401, 429])
async def test_a_provider_that_is_unwell_leaves_a_fallback(provider, status):
    provider.status = status
    verdict = await Hybrid(checks=skill_checks(), judge=RubricJudge("openai-chat:some-model", SKILL_RUBRIC))(
        "---\nname: tea\ndescription: Makes tea. Use when somebody is thirsty.\n---\n\nBoil the water first.\n"
    )
    assert verdict.fallback and "the provider is unwell" in verdict.barred
    assert verdict.score == pytest.approx(0.3), "what the checks say is known"


async def test_a_provider_that_quotes_from_nowhere_is_void(provider):
    provider.grade = GRADE | {"quote": "Use freshly drawn spring water.", "score": 1.0}
    verdict = await RubricJudge("openai-chat:some-model", SKILL_RUBRIC)(TEA)
    assert verdict.fallback and len(verdict.voids) == 5
