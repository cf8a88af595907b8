"""Mangled files: each is refused with a place, or is a flow; nothing else happens, and nothing takes long."""

import asyncio
import random
import re
import time
from pathlib import Path

import pytest

from loopkit.flow import Flow, FlowError, Simulation
from loopkit.flow.source import Source

FACTORY = Path(__file__).parents[2] / "experiments" / "flows"
SMALL = [
    """\
flow: writes
params: {n: 3, word: x}
budget: {calls: 9}
steps:
  - id: a
    prompt: "Write {{ params.word }}. {{ correction }}"
    output_schema: {properties: {verdict: {type: string, enum: [good, bad]}, n: {type: integer, minimum: 0}}}
    transitions:
      - {when: output.verdict == 'good' and visits < params.n, goto: done}
      - {goto: a, send: again, loop: {name: back, max_iterations: 2, on_exhausted: failed}}
""",
    """\
flow: asks
supervisor: {per_step: 1, on_refused: b}
steps:
  - id: a
    code: my.module:fix
    output_schema: {properties: {tags: {type: array, items: {type: string}, maxItems: 3}}, required: []}
    goal: {until: len(output.tags) > 1, max_iterations: 2}
    goto: b
    recover: [a]
  - {id: b, human: 'Well?', goto: done}
""",
    """\
flow: waits
steps:
  - id: push
    command: [git, push, "{{ params }}"]
    wait: {probe: {command: [ci, "{{ output.exit_code }}"], pending: [7]}, interval: 1m, max_duration: 2h, grace: 5m}
    transitions:
      - {when: output.poll == 'done', goto: done}
      - {when: output.exit_code < 3, goto: push, max_visits: 2}
      - goto: failed
""",
]
ODD = [
    "null", "true", "[]", "{}", "[[]]", "-1", "0", "1e308", "-1e400", "99999999999999999999999", "0.1", ".nan", "''", "'x'",
    "\"\\ud800\"", "\"\\0\"", "\u2028", "é" * 50, "😀", "a" * 5000, "[" * 60, "{a: " * 50, "- " * 50, "*a", "&a b", "!!python/object x",
    "<<: x", "done", "failed", "a", "output", "'{{'", "'{{ }}'", "'{{ output.x }}'", "1" * 30, "{type: string}", "{type: array}",
    "not not not not x", "'" + "(" * 60 + "'", "x == 1 and " * 20, "2026-01-01", "0x1F", "1h", "-5s", "1e9d", "steps", "__class__", "a.__class__",
    "lambda: 0", "{ ? a : b }", "|", ">", "# x", "%", "@", "`", "\t", "\x00", "\x85", "\ufeff", "{properties: {}}", "[done, done]",
]  # fmt: skip


def mangled(text, rng, others):
    """The text after a few changes of the kinds that people, editors and models make."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        lines = text.split("\n")
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(12):
            case 0:
                del lines[at]
            case 1:
                lines.insert(other, lines[at])
            case 2:
                lines[at] = " " * rng.randrange(1, 5) + lines[at]
            case 3:
                lines[at] = lines[at][rng.randrange(1, 4) :]
            case 4:
                lines[at], lines[other] = lines[other], lines[at]
            case 5:  # a value
                lines[at] = re.sub(r"(:\s*).*", lambda found: found[1] + rng.choice(ODD), lines[at], count=1)
            case 6:  # a word
                words = list(re.finditer(r"[\w.']+", lines[at]))
                if words:
                    word = rng.choice(words)
                    lines[at] = lines[at][: word.start()] + rng.choice(ODD) + lines[at][word.end() :]
            case 7:
                lines = lines[:at]
            case 8:
                lines[at:at] = rng.choice(others).split("\n")[: rng.randrange(9)]
            case 9:
                lines[at] = re.sub(
                    r"\d+", lambda _: str(rng.choice([0, 1, 10_000, 10_001, 2**64, -3])), lines[at]
                )
            case _:  # a byte
                data = bytearray("\n".join(lines).encode("utf-8", "surrogatepass"))
                for _ in range(rng.choice([1, 1, 4])):
                    if data:
                        data[rng.randrange(len(data))] = rng.choice(b" :-,{}[]'\"\n#&*!|>%@`\x00\xff\xc3aZ09")
                lines = data.decode("utf-8", "replace").split("\n")
        text = "\n".join(lines)
    return text


def fuzzed(count, texts, use):
    """Do it `count` times, and return how many texts were no problem. A case over 2 s is a failure."""
    good, slowest = 0, 0.0
    for number in range(count):
        rng = random.Random(number)
        text = mangled(rng.choice(texts), rng, texts)
        started = time.process_time()
        try:
            good += use(text, number)
        except FlowError as error:
            assert error.problems
            for problem in error.problems:
                assert re.match(r"[^\n]+:\d+:\d+: .", problem), problem
        except Exception as error:
            raise AssertionError(f"case {number}: {error!r}\n{text}") from error
        slowest = max(slowest, time.process_time() - started)
    assert slowest < 2, f"the slowest case took {slowest:.1f} s"
    return good


def use_flow(text, number):
    flow = Flow.parse(text)
    assert flow.draw().startswith("flowchart TD\n")
    assert flow.outcomes()
    return True


def test_mangled_small_flows_are_refused_with_a_place_or_are_flows():
    assert fuzzed(3000, SMALL, use_flow) > 60


def test_mangled_factories_are_refused_with_a_place_or_are_flows():
    text = (FACTORY / "factory.yaml").read_text(encoding="utf-8")
    assert fuzzed(150, [text], use_flow) > 5


def test_mangled_files_are_refused_with_a_place_or_are_flows(tmp_path):
    path = tmp_path / "f.yaml"

    def use(text, number):
        rng, data = random.Random(number), bytearray(text.encode("utf-8", "replace"))
        for _ in range(3):
            data.insert(rng.randrange(len(data) + 1), rng.randrange(256))
        path.write_bytes(data)
        Flow.load(path)
        return True

    fuzzed(300, SMALL, use)


def test_mangled_scripts_are_refused_or_walked(quick_ask):
    flow = Flow.load(FACTORY / "factory.yaml")
    texts = [path.read_text(encoding="utf-8") for path in sorted((FACTORY / "scenarios").glob("*.yaml"))]

    def use(text, number):
        simulation = Simulation(script=Source.parse(text).data, seed=number)
        try:
            simulation.check(flow.file)
        except ValueError as error:
            assert str(error)
            return False
        outcome = asyncio.run(flow.run(simulation=simulation))
        assert outcome.status in ("done", "failed", "stopped")
        return True

    assert fuzzed(150, texts, use) > 20


@pytest.mark.parametrize("count", [100, 400])
def test_large_flows_are_checked_in_a_time_that_grows_with_their_size(count):
    steps = [
        f"  - {{id: s{n}, code: f, transitions: [{{when: 'steps.s{max(n - 1, 0)}.output.x == {n}', goto: s{n + 1}}}, {{goto: s{n + 2}}}, {{goto: s0, max_visits: 2}}]}}"
        for n in range(count)
    ]
    ends = [f"  - {{id: s{n}, code: f, goto: done}}" for n in (count, count + 1)]
    started = time.process_time()
    Flow.parse("\n".join(["flow: large", "steps:", *steps, *ends]))
    assert time.process_time() - started < count / 40


@pytest.mark.parametrize(
    "conditions",
    [
        [" and ".join(f"output.{name} == '{value}'" for name in "abcdefgh") for value in "xyz"],
        ["output.a == 'x'"] * 600,
        [f"output.a == '{'x' * n}'" for n in range(300)],
        [" or ".join(f"params.a.b{n}.c == {n}" for n in range(40))] * 20,
    ],
    ids=["many fields", "many ways", "many values", "many names"],
)
def test_many_conditions_are_checked_in_a_moment(conditions):
    fields = ", ".join(f"{name}: {{type: string, enum: [x, y, z]}}" for name in "bcdefgh")
    ways = "\n".join(f'      - {{when: "{when}", goto: done}}' for when in conditions)
    text = f"flow: f\nparams: {{a: {{}}}}\nsteps:\n  - id: a\n    code: f\n    output_schema: {{properties: {{a: {{type: string}}, {fields}}}}}\n    transitions:\n{ways}\n"
    started = time.process_time()
    with pytest.raises(FlowError, match="leads nowhere when"):
        Flow.parse(text)
    Flow.parse(text + "      - goto: failed\n").outcomes()
    assert time.process_time() - started < 6
