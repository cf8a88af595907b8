"""From an id to a model: what there is, what is missing, and the meter around it."""

import asyncio

import pytest
from pydantic_ai.models.test import TestModel

from loopkit import ask, resolve
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
