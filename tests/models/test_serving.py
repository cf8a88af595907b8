"""The embedded model in a process of its own, asked by others."""

import asyncio
import os
import signal
import sys

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelAPIError

from loopkit.models import resolve, serving
from loopkit.models.embedded import EmbeddedModel

SHORT = {"max_tokens": 16}
QUESTIONS = ["Say hello.", "What is the capital of France?", "Count to five."]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with (
        (tmp_path_factory.mktemp("served") / "log").open("wb") as log,
        serving.ModelServer(slots=2, log=log) as one,
    ):
        yield one


@pytest.fixture
def shared(server, monkeypatch):
    """Models that are made from now on ask the server."""
    monkeypatch.setenv(serving.ADDRESS, server.address())


async def answers(model):
    return [(await Agent(model).run(question, model_settings=SHORT)).output for question in QUESTIONS]


@pytest.mark.embedded
async def test_a_shared_model_says_what_one_of_our_own_says(shared, monkeypatch):
    theirs = await answers(resolve("embedded"))
    monkeypatch.delenv(serving.ADDRESS)
    # Of a size of its own, so that it is loaded anew: what another test has asked is in its prefix cache, rounded otherwise.
    assert theirs == await answers(EmbeddedModel(slots=2, context=2040))


@pytest.mark.embedded
async def test_several_can_ask_at_once(shared):
    model = resolve("embedded")
    alone = await answers(model)
    together = await asyncio.gather(
        *(Agent(model).run(question, model_settings=SHORT) for question in QUESTIONS * 2)
    )
    assert [one.output for one in together] == alone * 2


@pytest.mark.embedded
async def test_what_the_server_refuses_is_told_as_by_a_model_of_our_own(shared):
    with pytest.raises(ModelAPIError, match="context|exceed"):
        await Agent(resolve("embedded")).run("word " * 6000)


@pytest.mark.embedded
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
async def test_a_server_that_was_killed_is_missed_and_started_anew(tmp_path, monkeypatch):
    with (tmp_path / "log").open("wb") as log, serving.ModelServer(slots=1, log=log) as server:
        monkeypatch.setenv(serving.ADDRESS, server.address())
        model = EmbeddedModel()
        os.kill(server.pid, signal.SIGKILL)
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)  # a busy machine takes its time to end it
        with pytest.raises(ModelAPIError, match="the server at http.* is gone"):
            await Agent(model).run(QUESTIONS[0])
        monkeypatch.setenv(serving.ADDRESS, server.address())
        assert await answers(EmbeddedModel())
        last = server.pid
    with pytest.raises(ProcessLookupError):
        os.kill(last, 0)


def test_a_model_that_cannot_be_served_says_where_to_look(tmp_path, monkeypatch):
    broken = tmp_path / "broken.gguf"
    broken.write_text("no model")
    monkeypatch.setenv("LOOPKIT_MODEL_PATH", str(broken))
    with (
        (tmp_path / "log").open("wb") as log,
        serving.ModelServer(slots=1, log=log) as server,
        pytest.raises(RuntimeError, match="exit code 1.*log"),
    ):
        server.address()
    assert "broken.gguf" in (tmp_path / "log").read_text()


@pytest.mark.embedded
async def test_a_model_with_settings_of_its_own_is_not_shared(monkeypatch):
    monkeypatch.setenv(serving.ADDRESS, "http://127.0.0.1:9")
    assert await answers(EmbeddedModel(context=1024))
