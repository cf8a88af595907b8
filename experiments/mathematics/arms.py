"""The arms: a model alone, with code, with a loop around the code, and with solved examples before its eyes.

Every arm is a `Loop`. No judge sees the answer: it asks whether there is one, and whether it came out again.

    reasoning                        the model thinks, and answers
    code          code-loop          it writes a program; and again, until an answer comes twice
    examples      examples-loop      the same with the nearest solved examples in the prompt
    copying                          no model: the nearest example's program with this problem's numbers, in order
"""

from __future__ import annotations

import ast
import asyncio
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal, get_args

from pydantic_ai.models import Model

from loopkit.gates import MaxIterations, Threshold
from loopkit.history import History
from loopkit.loop import Loop
from loopkit.models import ask, program_in
from loopkit.sandbox import Limits, Sandbox
from loopkit.verdict import Failure, Feedback, Verdict

from . import prompts
from .nearest import Nearest
from .problems import Problem, in_range, shown

Arm = Literal["reasoning", "code", "code-loop", "examples", "examples-loop", "copying"]
ARMS: tuple[Arm, ...] = get_args(Arm)
LOOPS = ("code-loop", "examples-loop")
TEMPERATURE = 0.3
"""Of all answers but the first and only one: hotter, and the embedded model forgets what it was doing."""
LIMITS = Limits(seconds=10, memory=512 << 20)


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What the model wrote in one turn: texts to read an answer from, or programs."""

    texts: tuple[str, ...]
    """One for each sample that was of use."""
    lost: tuple[str, ...] = ()
    """Of each sample that was not: why (`empty`, `truncated`, `malformed`)."""
    earlier: tuple[str, ...] = ()
    """The answers of earlier turns in which nothing was wrong."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What came of an attempt."""

    given: tuple[str, ...]
    """The answers, as printed or written; at least one."""
    failed: tuple[str, ...] = ()
    """Of each text that led to none: the kind and why."""

    @property
    def answer(self) -> str:
        """The most common one; of several, the first."""
        return Counter(self.given).most_common(1)[0][0]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all trials of a batch cell share."""

    model: Model
    sandbox: Sandbox
    samples: int = 1
    """For the arms without a loop: how many answers to draw; the most common one counts."""
    max_iterations: int = 4
    max_tokens: int = 200
    shown: int = 3
    """How many solved examples the arms `examples` show."""
    integer: bool = True
    """Whether answers are integers from 0 to 999: of all problems here, so that it gives none of them away."""


def make(arm: Arm, problem: Problem, setting: Setting) -> Loop:
    """The loop of one arm on one problem."""
    turns = setting.max_iterations if arm in LOOPS else 1
    gates = [Threshold(1.0), MaxIterations(turns)]
    execute: Callable[..., Any] = partial(run_programs, sandbox=setting.sandbox)
    judge: Callable[..., Verdict] = judge_votes
    if arm in LOOPS:
        judge = partial(judge_agreement, problem=problem.problem, integer=setting.integer)
    match arm:
        case "reasoning":
            propose, execute = _reason(problem, setting), read_answers
        case "copying":
            propose = _copy(problem)
        case "code" | "code-loop" | "examples" | "examples-loop":
            propose = _write(problem, setting, nearest=arm.startswith("examples"))
        case _:
            raise ValueError(f"arm must be one of {', '.join(ARMS)}, got {arm!r}")
    return Loop(propose=propose, execute=execute, judge=judge, gates=gates)


# --- propose -----------------------------------------------------------------------------------------------


def _reason(problem: Problem, setting: Setting) -> Callable[..., Any]:
    async def propose(goal: Any, history: History) -> Attempt:
        async def sample(seed: int, temperature: float) -> str:
            return await ask(
                setting.model,
                problem.problem,
                instructions=prompts.REASONING_INSTRUCTIONS,
                examples=prompts.REASONING_EXAMPLES,
                max_tokens=setting.max_tokens,
                temperature=temperature,
                seed=seed,
                expected=f"Answer: {problem.answer}",
            )

        return await _sampled(sample, setting.samples, seed=0)

    return propose


def _write(problem: Problem, setting: Setting, *, nearest: bool) -> Callable[..., Any]:
    async def propose(goal: Any, history: History) -> Attempt:
        turn = len(history)
        examples = prompts.CODE_EXAMPLES
        if nearest:
            # The nearest comes last, right before the problem: a small model copies best from there.
            examples = prompts.solved(index()(problem.problem, setting.shown)[::-1])
        wrong = blocking(history)
        if wrong:  # a fresh look: the examples in another order
            examples = tuple(random.Random(turn).sample(examples, len(examples)))

        async def sample(seed: int, temperature: float) -> str:
            answer = await ask(
                setting.model,
                problem.problem,
                instructions=prompts.code_instructions(wrong),
                examples=examples,
                max_tokens=setting.max_tokens,
                temperature=temperature,
                seed=seed,
                expected=problem.program,
            )
            return program_in(answer)

        attempt = await _sampled(sample, setting.samples, seed=turn)
        sound = (one for one in history if one.verdict and not one.verdict.feedback.blocking)
        earlier = tuple(one.observation.answer for one in sound)
        return Attempt(texts=attempt.texts, lost=attempt.lost, earlier=earlier)

    return propose


def _copy(problem: Problem) -> Callable[..., Any]:
    def propose(goal: Any, history: History) -> Attempt:
        (example,) = index()(problem.problem, 1)
        return Attempt(texts=(program_in(copied(example, problem.problem)),))

    return propose


async def _sampled(sample: Callable[[int, float], Awaitable[str]], count: int, *, seed: int) -> Attempt:
    """`count` samples: one as it is likeliest, several at a temperature. The first Failure, if none is of use."""

    async def one(number: int) -> str | Failure:
        try:
            return await sample(seed + 1000 * number, 0.0 if count == 1 and seed == 0 else TEMPERATURE)
        except Failure as failure:
            return failure

    got = await asyncio.gather(*map(one, range(count)))
    texts = tuple(text for text in got if isinstance(text, str))
    failures = [text for text in got if isinstance(text, Failure)]
    if not texts:
        raise failures[0]
    return Attempt(texts=texts, lost=tuple(failure.kind for failure in failures))


def blocking(history: History) -> tuple[str, ...]:
    """What kept the turn before from being good: the error it ended with, or the judge's words."""
    if not history:
        return ()
    last = history[-1]
    if last.error:
        return (last.error.message,)
    return last.verdict.feedback.blocking


@lru_cache(maxsize=1)
def index() -> Nearest:
    """Over the solved examples that may be shown."""
    return Nearest(shown())


_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# The 46 of x_46 and P(46), but not the 3 of x_3 and P(3).
_STATED = re.compile(r"(?<![A-Za-z\d._])(?<![A-Za-z]\()\d+(?:\.\d+)?|(?<=_)\d{2,}|(?<=[A-Za-z]\()\d{2,}")
_SIGNED = re.compile(r"(?:(?<![\w)])-)?\d+(?:\.\d+)?")  # not the minus of 5-3
_GIVEN = re.compile(r"^(?:\w+, )*\w+ = (?:-?\d+, )*-?\d+$", re.MULTILINE)


def copied(example: Problem, text: str) -> str:
    """The example's program, given the numbers of `text` that stand where the example's own stood, counted from the left.

    A rule, without a model: what the arms `examples` must beat to be more than this. Of equal numbers in the example the
    one that follows the last one taken is meant.
    """
    theirs, ours = _SIGNED.findall(example.problem), _SIGNED.findall(text)
    last = -1

    def new(match: re.Match[str]) -> str:
        nonlocal last
        places = [place for place, number in enumerate(theirs) if number == match[0]]
        later = [place for place in places if place > last]
        if not places:
            return match[0]
        last = (later or places)[0]
        return ours[last] if last < len(ours) else match[0]

    return _GIVEN.sub(lambda line: re.sub(r"-?\b\d+", new, line[0]), example.program)


# --- execute -----------------------------------------------------------------------------------------------


async def run_programs(attempt: Attempt, *, sandbox: Sandbox) -> Answers:
    """Run each program; what the last line says is its answer. Failure if none has one: `crashed`, `timeout`, …"""
    runs = await asyncio.gather(*(sandbox.run(code, limits=LIMITS) for code in attempt.texts))
    given, failed = [], []
    for run in runs:
        printed = run.stdout.strip()
        if run.ended != "ok":
            failed.append(("timeout" if run.ended == "timeout" else "crashed", run.message))
        elif not printed:
            failed.append(("no answer", "the program printed nothing"))
        elif len(printed) > 200:
            failed.append(("no answer", f"the program printed {len(printed)} characters"))
        else:
            given.append(printed.rpartition("\n")[2].strip())
    return _answers(given, failed)


def read_answers(attempt: Attempt) -> Answers:
    """What the texts give as their answer. Failure(`no answer`) if none does."""
    given, failed = [], []
    for text in attempt.texts:
        answer = answer_in(text)
        if answer:
            given.append(answer)
        else:
            failed.append(("no answer", f"no line `Answer: …` in …{text[-80:]!r}"))
    return _answers(given, failed)


def _answers(given: list[str], failed: list[tuple[str, str]]) -> Answers:
    if not given:
        raise Failure(*failed[0])
    return Answers(given=tuple(given), failed=tuple(f"{kind}: {why}" for kind, why in failed))


def answer_in(text: str) -> str | None:
    """The answer a text ends with: after the last `Answer:`, else in the last `\\boxed{…}`."""
    said = re.findall(r"answer\s*(?:is)?\s*:\s*\**\s*(.+)", text, re.IGNORECASE)
    boxed = re.findall(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}", text)
    last = said[-1] if said else boxed[-1] if boxed else ""
    if "\\boxed{" in last and boxed:
        last = boxed[-1]
    return last.strip().rstrip(".").strip("$*` ") or None


# --- judge -------------------------------------------------------------------------------------------------


def judge_votes(attempt: Attempt, answers: Answers) -> Verdict:
    """The share of all samples that gave the most common answer."""
    asked = len(attempt.texts) + len(attempt.lost)
    return Verdict(score=answers.given.count(answers.answer) / asked)


def judge_agreement(attempt: Attempt, answers: Answers, *, problem: str, integer: bool) -> Verdict:
    """Full marks for one value in range, from a program that uses the problem's numbers, that came out so before.

    Before means: in a turn in which nothing was wrong. The program may be the same one, drawn again.

    `integer`: the answer is to be an integer from 0 to 999.
    """
    answer = answers.answer
    valid = in_range(answer) if integer else len(answer.split()) == 1
    unused = numbers_unused(problem, attempt.texts[0])
    agrees = valid and not unused and answer in attempt.earlier
    wrong = []
    if not valid:
        wanted = "one integer from 0 to 999" if integer else "one value"
        wrong.append(f"it printed {answer[:80]!r}, not {wanted}")
    if unused:
        wrong.append(f"it does not use {', '.join(unused)}, which the problem states")
    dimensions = {"valid": float(valid), "accounted": float(not unused), "agrees": float(agrees)}
    return Verdict(
        score=sum(dimensions.values()) / 3,
        dimensions=dimensions,
        feedback=Feedback(
            blocking=tuple(wrong), suggestions=() if agrees else ("no other turn came to this answer yet",)
        ),
    )


def numbers_unused(problem: str, program: str) -> list[str]:
    """Numbers that the problem states and the program has not. 0, 1 and 2 may go without saying."""
    constants = [node.value for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Constant)]
    used = {*_NUMBER.findall(" ".join(map(str, constants))), "0", "1", "2"}  # so that a comment is no use
    return [number for number in dict.fromkeys(_STATED.findall(problem)) if number not in used]
