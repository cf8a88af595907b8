"""Stand-ins: the same question gets the same answer anywhere, and any answer fits what was asked."""

import asyncio
import json
import os
import subprocess
import sys
from enum import Enum
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from loopkit import ask, resolve
from loopkit.models.simulated import POLICIES

RANDOM = resolve("simulated:random")
Options = Literal["a", "b", "c", "d", "e", "f", "g", "h"]


async def draw(prompts, **more):
    return [await ask(RANDOM, prompt, output=Options, **more) for prompt in prompts]


async def test_the_same_question_gets_the_same_answer_and_the_seed_and_the_prompt_change_it():
    prompts = [f"question {number}" for number in range(12)]
    first = await draw(prompts)
    assert await draw(prompts) == first
    assert await draw(prompts[::-1]) == first[::-1]  # whatever was asked before
    assert await draw(prompts, seed=1) != first
    assert len(set(first)) > 2
    text = await ask(RANDOM, "one two three four five six")
    assert await ask(RANDOM, "one two three four five six") == text


def test_hash_randomisation_plays_no_part():
    code = (
        "import asyncio; from typing import Literal; from loopkit import ask, resolve\n"
        "async def main():\n"
        "    m = resolve('simulated:random')\n"
        "    print([await ask(m, f'q{n}', output=Literal[tuple('abcdefgh')]) for n in range(8)])\n"
        "    print(await ask(m, 'one two three four five'))\n"
        "asyncio.run(main())"
    )
    # Any two of these differ in their hash seed; this process has one of its own.
    env = os.environ | {"PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    here = asyncio.run(draw([f"q{n}" for n in range(8)]))
    assert run.stdout == f"{here}\n{asyncio.run(ask(RANDOM, 'one two three four five'))}\n"


def test_what_was_asked_before_plays_no_part():
    code = (
        "import asyncio; from typing import Literal; from loopkit import ask, resolve\n"
        "async def main(*outputs):\n"
        "    m = resolve('simulated:random')\n"
        "    for output in outputs: print([await ask(m, f'q{n}', output=output) for n in range(12)])\n"
        "asyncio.run(main(Literal['right', 'left'], Literal['left', 'right']))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    async def answers(output):
        return [await ask(RANDOM, f"q{number}", output=output) for number in range(12)]

    left, right = (
        asyncio.run(answers(output)) for output in (Literal["left", "right"], Literal["right", "left"])
    )
    assert run.stdout == f"{right}\n{left}\n"


async def test_the_instructions_and_the_type_change_the_answer():
    prompts = [f"question {number}" for number in range(12)]
    plain = await draw(prompts)
    assert await draw(prompts, instructions="Be brief.") != plain
    assert await draw(prompts, instructions="Be brief.") != await draw(prompts, instructions="Be kind.")

    class Titled(BaseModel):
        response: Options

    titled = [(await ask(RANDOM, prompt, output=Titled)).response for prompt in prompts]
    assert titled != plain


def test_every_option_comes_up_about_equally_often():
    found = asyncio.run(draw([f"q{number}" for number in range(160)]))
    counts = [found.count(option) for option in "abcdefgh"]
    assert sum((count - 20) ** 2 / 20 for count in counts) < 24.3  # chi-square, 7 degrees, p = 0.001


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Leaf(BaseModel):
    kind: Literal["leaf"]
    colour: Colour
    ok: bool


class Branch(BaseModel):
    kind: Literal["branch"]
    leaves: list[Leaf] = Field(min_length=1, max_length=2)


class Tree(BaseModel):
    root: Leaf | Branch = Field(discriminator="kind")
    note: str | None
    ratio: float = Field(ge=-2.0, le=2.0)


def fields():
    bounds = st.tuples(st.integers(-50, 50), st.integers(0, 20))
    integer = bounds.map(lambda b: (int, Field(ge=b[0], le=b[0] + b[1])))
    number = bounds.map(lambda b: (float, Field(ge=b[0], le=b[0] + b[1])))
    size = st.tuples(st.integers(0, 3), st.integers(0, 3))
    plain = st.sampled_from(
        [int, str, bool, float, Colour, Options, Leaf, Tree, None, int | None, Leaf | str]
    )
    lists = st.tuples(plain, size).map(
        lambda p: (list[p[0]], Field(min_length=p[1][0], max_length=sum(p[1])))
    )
    return st.one_of(integer, number, lists, plain.map(lambda kind: (kind, ...)))


@settings(max_examples=30, deadline=None)
@given(st.lists(fields(), min_size=1, max_size=4), st.integers(0, 3))
def test_a_random_answer_always_fits_the_model_that_was_asked_for(chosen, seed):
    model = create_model("Made", **{f"field{index}": field for index, field in enumerate(chosen)})
    answer = asyncio.run(ask(RANDOM, "?", output=model, seed=seed))  # a Failure where it does not fit
    assert isinstance(answer, model)


class Family(BaseModel):
    name: str
    first: "Family | None"
    second: "Family | None"
    third: "Family | None"
    others: list["Family"]


@pytest.mark.parametrize(
    "field",
    [
        (int, Field(le=-5)), (int, Field(lt=-5)), (int, Field(gt=3, lt=5)), (int, Field(gt=2000)),
        (float, Field(le=-5)), (float, Field(gt=0, lt=0.001)), (float, Field(gt=7)),
        (str, Field(min_length=20)), (str, Field(max_length=2)), (str, Field(min_length=3, max_length=3)),
        (tuple[int, str], ...), (tuple[bool, tuple[str, int]], ...), (Family, ...),
    ],
)  # fmt: skip
async def test_a_random_answer_keeps_to_what_a_field_allows(field):
    model = create_model("Made", field=field)
    for seed in range(8):
        assert isinstance(await ask(RANDOM, "?", output=model, seed=seed), model)


@pytest.mark.parametrize("output", [int, bool, list[int], set[int], dict[str, int], Colour, int | None])
async def test_a_random_answer_need_not_be_an_object(output):
    for seed in range(5):
        answer = await ask(RANDOM, "?", output=output, seed=seed)
        assert answer is None or isinstance(answer, getattr(output, "__origin__", output))


async def test_a_policy_is_shown_the_prompt_the_schema_and_what_is_expected(monkeypatch):
    seen = []
    monkeypatch.setitem(
        POLICIES, "spy", lambda request: seen.append(request) or json.dumps({"response": "b"})
    )
    await ask(resolve("simulated:spy"), "the prompt", output=Options, examples=[("q", "a")], expected="c")
    (request,) = seen
    assert (request.prompt, request.expected) == ("the prompt", "c")
    assert request.schema["properties"]["response"]["enum"] == list("abcdefgh")


def test_stand_ins_say_what_they_are():
    model = resolve("simulated:oracle")
    assert (model.system, model.model_name) == ("simulated", "oracle")
