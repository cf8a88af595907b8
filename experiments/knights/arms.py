"""The four arms: how much of the puzzle the model carries, and how much the harness.

reasoning: the model does everything. program: it writes the solver's input. sentence: it puts each sentence into
logic. clauses: it reads one clause at a time, and code does the rest. Every arm is a `Loop`; only `clauses` turns
more than once. No arm sees the solution: the judge asks whether there is exactly one, not whether it is right.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

from pydantic_ai.models import Model

from loopkit.gates import MaxIterations, Threshold
from loopkit.history import History
from loopkit.loop import Loop
from loopkit.models import ask, program_in
from loopkit.sandbox import run_python
from loopkit.verdict import Failure, Feedback, Verdict

from . import prompts
from .answers import AnswerError, parse
from .cutting import Cut, CutError, cut, sentences
from .logic import Atom, Formula, Statement, solve
from .puzzles import Puzzle
from .wording import Mentions

Arm = Literal["reasoning", "program", "sentence", "clauses"]
ARMS: tuple[Arm, ...] = get_args(Arm)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One statement as the model read it. A candidate of `sentence` and `clauses` is a tuple of these."""

    text: str
    """The sentence of the puzzle."""
    speaker: str
    form: str
    clauses: tuple[str, ...]
    """What there was to read, a part for each line."""
    lines: tuple[str, ...]
    """What the model read: members of `prompts.literals`."""


@dataclass(frozen=True, kw_only=True)
class Solved:
    """What code made of a candidate."""

    solutions: tuple[Mapping[str, bool], ...]
    statements: int = 1
    astray: tuple[str, ...] = ()
    """Sentences of which a part was read as being about somebody whom that part does not mention."""


def make(arm: Arm, puzzle: Puzzle, model: Model, *, max_iterations: int, max_tokens: int) -> Loop:
    """The loop of one arm on one puzzle."""

    def loop(propose: Callable[..., Any], execute: Callable[..., Any], turns: int = 1) -> Loop:
        return Loop(
            propose=propose, execute=execute, judge=judge, gates=[Threshold(1.0), MaxIterations(turns)]
        )

    match arm:
        case "reasoning":
            return loop(_reason(puzzle, model, max_tokens), partial(_answer_in, puzzle=puzzle))
        case "program":
            return loop(_write_program(puzzle, model, max_tokens), run_program)
        case "sentence":
            return loop(_read_sentences(puzzle, model), partial(solve_readings, puzzle=puzzle))
        case "clauses":
            read = _read_clauses(puzzle, model)
            return loop(read, partial(solve_readings, puzzle=puzzle), max_iterations)
    raise ValueError(f"arm must be one of {', '.join(ARMS)}, got {arm!r}")


def judge(_: Any, solved: Solved) -> Verdict:
    """Full marks for exactly one solution with every statement accounted for."""
    found = len(solved.solutions)
    unique = 1 / found if found else 0.0
    accounted = 1 - len(solved.astray) / solved.statements
    blocking = [f"it is not about the person named: {text}" for text in solved.astray]
    if found != 1:
        blocking.append(
            "no assignment of roles fits" if not found else f"{found} assignments of roles fit, not one"
        )
    return Verdict(
        score=unique * accounted,
        dimensions={"unique": unique, "accounted": accounted},
        feedback=Feedback(blocking=tuple(blocking)),
    )


# --- reasoning ---------------------------------------------------------------------------------------------


def _reason(puzzle: Puzzle, model: Model, max_tokens: int) -> Callable[..., Any]:
    told = [
        f"{name} is {puzzle.roles.a(truth)}."
        for name, truth in zip(puzzle.names, puzzle.solution, strict=True)
    ]

    async def propose(goal: Any, history: History) -> str:
        return await ask(
            model,
            puzzle.quiz,
            instructions=prompts.REASONING_INSTRUCTIONS,
            examples=prompts.REASONING_EXAMPLES,
            max_tokens=max_tokens,
            expected="Answer: " + " ".join(told),
        )

    return propose


def _answer_in(text: str, puzzle: Puzzle) -> Solved:
    try:
        return Solved(solutions=(parse(text, puzzle.names, puzzle.roles),))
    except AnswerError as error:
        raise Failure(error.kind, error.detail) from error


# --- program -----------------------------------------------------------------------------------------------


def _write_program(puzzle: Puzzle, model: Model, max_tokens: int) -> Callable[..., Any]:
    async def propose(goal: Any, history: History) -> str:
        answer = await ask(
            model,
            puzzle.quiz,
            instructions=prompts.PROGRAM_INSTRUCTIONS,
            examples=prompts.PROGRAM_EXAMPLES,
            max_tokens=max_tokens,
            expected=prompts.program(puzzle.names, puzzle.statements) if puzzle.statements else None,
        )
        return program_in(answer)

    return propose


async def run_program(code: str) -> Solved:
    """Run it and read the solutions it printed. Failure: `timeout`, `crashed`, or `no answer` when it printed none."""
    run = await run_python(code, timeout=10)
    if run.ended != "ok":
        raise Failure("timeout" if run.ended == "timeout" else "crashed", run.message)
    printed = run.stdout.strip().rpartition("\n")[2]
    try:
        found = ast.literal_eval(printed)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise Failure("no answer", f"printed {printed[:80]!r}") from error
    if not isinstance(found, list) or not all(_is_assignment(solution) for solution in found):
        raise Failure("no answer", f"printed {printed[:80]!r}, not a list of assignments")
    return Solved(solutions=tuple(found))


def _is_assignment(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(k, str) and isinstance(v, bool) for k, v in value.items()
    )


# --- sentence and clauses ----------------------------------------------------------------------------------


def _read_sentences(puzzle: Puzzle, model: Model) -> Callable[..., Any]:
    async def read(text: str, known: Statement | None) -> Reading:
        answer = await ask(
            model,
            text,
            output=prompts.sentence_model(puzzle.names, puzzle.roles),
            instructions=prompts.SENTENCE_INSTRUCTIONS,
            examples=prompts.SENTENCE_EXAMPLES,
            max_tokens=120,
            expected=known and prompts.sentence_answer(known, puzzle.roles),
        )
        lines = (
            (answer.first,)
            if answer.second is None or answer.form == "one"
            else (answer.first, answer.second)
        )
        return Reading(
            text=text, speaker=answer.speaker, form=answer.form, clauses=(text,) * len(lines), lines=lines
        )

    async def propose(goal: Any, history: History) -> tuple[Reading, ...]:
        said = _cut_or_fail(lambda: sentences(puzzle.quiz, puzzle.names, puzzle.roles))
        known = _known(puzzle, len(said))
        return tuple(
            await asyncio.gather(*(read(one.text, gold) for one, gold in zip(said, known, strict=True)))
        )

    return propose


def _read_clauses(puzzle: Puzzle, model: Model) -> Callable[..., Any]:
    lines = Literal[tuple(prompts.literals(puzzle.names, puzzle.roles))]

    async def propose(goal: Any, history: History) -> tuple[Reading, ...]:
        cuts = _cut_or_fail(lambda: cut(puzzle.quiz, puzzle.names, puzzle.roles))
        known = _known(puzzle, len(cuts))
        verdict = history[-1].verdict if history else None
        blocking = verdict.feedback.blocking if verdict else ()
        instructions, examples = prompts.clause_prompt(len(history), blocking)

        async def read(clause: str, atom: Atom | None) -> str:
            return await ask(
                model,
                clause,
                output=lines,
                instructions=instructions,
                examples=examples,
                seed=len(history),
                max_tokens=60,
                expected=atom and prompts.line(atom, puzzle.roles),
            )

        async def reading(statement: Cut, gold: Statement | None) -> Reading:
            atoms = _atoms_said(gold) if gold else ()
            if len(atoms) != len(statement.clauses):  # no gold reading, or not of this sentence
                atoms = (None,) * len(statement.clauses)
            said = await asyncio.gather(*map(read, statement.clauses, atoms))
            return Reading(
                text=statement.text,
                speaker=statement.speaker,
                form=statement.form,
                clauses=statement.clauses,
                lines=tuple(said),
            )

        # Everything is read again, not only what the judge found: keeping the rest would let a model that guesses
        # get there piece by piece, and the harness would be doing its work.
        return tuple(await asyncio.gather(*map(reading, cuts, known)))

    return propose


def solve_readings(readings: Sequence[Reading], puzzle: Puzzle) -> Solved:
    """Assemble the statements and find every assignment under which all of them fit."""
    meaning = prompts.literals(puzzle.names, puzzle.roles)
    mentions = Mentions(tuple(puzzle.names), puzzle.roles)
    statements, astray = [], []
    for reading in readings:
        atoms = tuple(meaning[line] for line in reading.lines)
        # Who is meant must stand in the text; that is all the harness knows of it.
        if any(
            atom.person not in mentions.people(clause)
            for atom, clause in zip(atoms, reading.clauses, strict=True)
        ):
            astray.append(reading.text)
        form = reading.form if len(atoms) > 1 else "atom"
        statements.append(Statement(reading.speaker, Formula(form, atoms)))
    found = solve(puzzle.names, statements)
    return Solved(
        solutions=tuple(found), statements=max(1, len(readings)), astray=tuple(dict.fromkeys(astray))
    )


def _cut_or_fail(cutting: Callable[[], list[Any]]) -> list[Any]:
    try:
        found = cutting()
    except CutError as error:
        raise Failure("uncut", str(error)) from error
    if not found:
        raise Failure("uncut", "no statement found in the puzzle")
    return found


def _atoms_said(statement: Statement) -> tuple[Atom, ...]:
    """What the clauses of a statement say: a negation is part of its clause."""
    atoms = statement.formula.atoms
    if statement.formula.form == "not":
        return (Atom(atoms[0].person, not atoms[0].truthful),)
    return atoms


def _known(puzzle: Puzzle, count: int) -> Sequence[Statement | None]:
    """The gold readings, where the puzzle came with them: for `simulated:oracle` alone."""
    gold = puzzle.statements or ()
    return gold if len(gold) == count else [None] * count
