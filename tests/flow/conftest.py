"""Models with scripts; random flows that are valid by construction; a quick way to ask a model."""

import json
import random

import pytest
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition

from loopkit import Failure, Store
from loopkit.models.asking import expected_answer
from loopkit.models.simulated import POLICIES, SimulatedModel
from loopkit.usage import Usage, spend

ENDS = ["done", "failed"]
CHOICES = ["a", "b", "c"]
OUTPUT = {"properties": {"choice": {"type": "string", "enum": CHOICES}, "ok": {"type": "boolean"}}}
FAULTS = ["malformed", "empty", "truncated", "refused", "timeout", "crash"]
CONDITIONS = {
    "command": ["output.exit_code == 0", "output.exit_code == 1", "output.exit_code > 3"],
    "wait": ["output.poll == 'done'", "output.poll == 'news'", "visits == 2"],
    "other": ["output.choice == 'a'", "output.choice == 'b' and output.ok", "visits > 1"],
}


def some_flow(count, seed, once):
    """A flow as plain data. Ways back are bounded, all others lead on, and every step is led to by one before it."""
    rng = random.Random(seed)
    names = [f"s{index}" for index in range(count)]
    supervised, limits = rng.random() < 0.5, {"one": rng.randint(1, 4), "two": rng.randint(1, 4)}
    counts = {}
    parents = [None, *(rng.randrange(child) for child in range(1, count))]

    def on(index):
        return rng.choice([*names[index + 1 :] * 4, *ENDS])

    def way(index, target):
        made, back = {"goto": target}, target in names[: index + 1]
        if rng.random() < 0.4:
            made["send"] = "after {{ output }}"
        most = counts.setdefault((index, target), rng.randint(1, 4))
        if rng.random() < (0.5 if back else 0.1):
            made |= {"max_visits": most, "on_exhausted": on(index)}
        if (back and "max_visits" not in made) or rng.random() < 0.1:
            name = rng.choice(["one", "two", None])
            made["loop"] = {
                "max_iterations": limits[name] if name else most,
                "on_exhausted": on(index),
            }
            made["loop"] |= {"name": name} if name else {}
        return made

    steps = []
    for index, name in enumerate(names):
        kind = rng.choice(["prompt", "prompt", "code", "command", "human", "wait"])
        step = {"id": name}
        if kind in ("prompt", "human"):
            step |= {kind: f"{name} {{{{ goal }}}} {{{{ visits }}}}", "output_schema": OUTPUT}
        elif kind == "code":
            step |= {"code": "work", "output_schema": OUTPUT}
        elif kind == "command":
            step["command"] = ["true", "{{ steps.s0.output }}"]
        if once and kind in ("code", "command") and rng.random() < 0.3:
            step["once"] = True
        if kind == "wait" or (kind != "human" and rng.random() < 0.3):
            step["wait"] = {
                "probe": "look", "interval": rng.randint(1, 9), "max_duration": rng.randint(1, 30),
                "on_exhausted": on(index), "output": {"status": "good"},
            }  # fmt: skip
            step["wait"] |= {"grace": rng.randint(1, 20)} if rng.random() < 0.5 else {}
        if kind in ("prompt", "code", "command") and rng.random() < 0.3:
            step["goal"] = {
                "until": "output.exit_code == 0" if kind == "command" else "output.ok",
                "max_iterations": rng.randint(1, 3), "on_exhausted": on(index),
            }  # fmt: skip
        if kind != "human":
            step["on_failure"] = on(index)
            if supervised:
                step["recover"] = rng.sample(names, min(count, rng.randint(0, 2)))
        targets = [names[child] for child in range(count) if parents[child] == index]
        targets += rng.choices([*names * 3, *ENDS], k=rng.randint(0 if targets else 1, 3))
        rng.shuffle(targets)
        step["transitions"] = [way(index, target) for target in targets]
        conditions = CONDITIONS.get(kind, CONDITIONS["other"]) * 3
        for transition, condition in zip(step["transitions"][:-1], conditions, strict=False):
            transition["when"] = condition
        steps.append(step)
    made = {"flow": "random", "goal": "go on", "steps": steps}
    if supervised:
        made["supervisor"] = {"per_step": rng.randint(1, 3), "per_run": rng.randint(1, 4)}
        if rng.random() < 0.5:
            made["supervisor"]["on_refused"] = rng.choice([*names, *ENDS])
    if rng.random() < 0.15:
        made["budget"] = {rng.choice(["calls", "tokens"]): rng.randint(0, 40)}
    return made


def some_simulation(flow, seed):
    """Settings of a Simulation of `flow`: some answers, faults and advice, then whatever comes."""
    rng = random.Random(seed)
    script, names = {}, [step["id"] for step in flow["steps"]]

    def fault():
        return {"fault": rng.choice(FAULTS)}

    def good():
        return {"choice": rng.choice(CHOICES), "ok": rng.random() < 0.5}

    def several(*makers):
        return [rng.choice(makers)() for _ in range(rng.randrange(8))]

    def said():
        return rng.choice(["pending", "pending", "done", "news"])

    def advice():
        made = {"action": rng.choice(["fix", "retry", "goto", "person"])}
        made |= {"goto": rng.choice([*names, *ENDS, "nowhere"])} if rng.random() < 0.8 else {}
        made |= {"instruction": "do better"} if rng.random() < 0.5 else {}
        return made | ({"fixed": rng.choice([good(), {"choice": "z"}])} if rng.random() < 0.5 else {})

    for step in flow["steps"]:
        if "human" in step:
            script[step["id"]] = several(good)
        elif "command" in step:
            script[step["id"]] = several(lambda: {"exit_code": rng.randint(0, 5)}, fault)
        elif "prompt" in step or "code" in step:
            script[step["id"]] = several(good, good, good, lambda: None, fault, lambda: {"choice": "z"})
        if "wait" in step:
            script[f"{step['id']}.wait"] = several(said, lambda: {"state": said(), "log": "red"}, fault)
    if "supervisor" in flow:
        script["supervisor"] = several(advice, advice, fault)
    return {"seed": seed % 100, "script": script}


@pytest.fixture
def policy(monkeypatch):
    """Registers answers, one per question, as a policy of simulated models; returns what was asked."""

    def register(name, *answers):
        asked = []

        def answering(request):
            asked.append(request.prompt)
            answer = answers[min(len(asked), len(answers)) - 1]
            if isinstance(answer, Exception):
                raise answer
            return answer if isinstance(answer, str | ModelResponse) else json.dumps(answer)

        monkeypatch.setitem(POLICIES, name, answering)
        return asked

    return register


@pytest.fixture
def log(tmp_path):
    with Store(tmp_path / "runs").create("r") as opened:
        yield opened


@pytest.fixture
def priced(monkeypatch):
    """Makes each answer of a simulated model cost something."""

    def price(cost, unpriced=0):
        request = SimulatedModel.request

        async def billed(self, *args):
            spend(Usage(cost=cost, unpriced_calls=unpriced))
            return await request(self, *args)

        monkeypatch.setattr(SimulatedModel, "request", billed)

    return price


@pytest.fixture(scope="session")
def cases():
    """A strategy: a flow as YAML (JSON is YAML), the same as data, and the settings of a simulation of it."""

    def case(count, seed, once):
        flow = some_flow(count, seed, once)
        return json.dumps(flow), flow, some_simulation(flow, seed + 1)

    def made(once=True):
        return st.builds(case, st.integers(1, 6), st.integers(0, 2**32), st.just(once))

    return made


@pytest.fixture(scope="module")
def quick_ask():
    """Asks models without pydantic-ai's agent, which takes most of the time of a simulated step."""

    async def ask(model, prompt, *, output, seed=0, expected=None, **_):
        token = expected_answer.set(expected)
        try:
            response = await model.request(
                [ModelRequest(parts=[UserPromptPart(content=prompt)])],
                {"seed": seed},
                ModelRequestParameters(
                    output_mode="native",
                    output_object=OutputObjectDefinition(json_schema=output.model_json_schema()),
                ),
            )
        finally:
            expected_answer.reset(token)
        said = response.parts[0].content
        if response.finish_reason == "length" or not said:
            raise Failure("truncated" if said else "empty", answer=said)
        try:
            return output.model_validate(json.loads(said))
        except (ValidationError, ValueError) as error:
            raise Failure("malformed", str(error), answer=said) from error

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("loopkit.models.ask", ask)
        yield
