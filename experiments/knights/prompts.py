"""What the model is shown and what it may answer.

Where it puts English into logic the target is English too, but in one wording only: "Ava is a knight" or "Ava is
not a knight". A small model copies and rephrases far better than it writes formulas, and such a line has exactly
one meaning. All examples use names and roles that no puzzle has: only the pattern can be copied from them.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, create_model

from .logic import Atom, Form, Formula, Statement
from .wording import Roles

# --- clauses: every kind of wording about equally often, so that no answer is likelier before the clause is read ---

CLAUSE_INSTRUCTIONS = "Restate the sentence in the form: NAME is a ROLE, or: NAME is not a ROLE."
CLAUSE_EXAMPLES = (
    ("Tom is a doctor", "Tom is a doctor"),
    ("Rosa is not a nurse", "Rosa is not a nurse"),
    ("Kim is not an artist", "Kim is not an artist"),
    ("Ben is a baker", "Ben is a baker"),
    ("Ivy isn't a poet", "Ivy is not a poet"),
    ("Bao is an uncle", "Bao is an uncle"),
    ("Zed is a sailor", "Zed is a sailor"),
    ("Leo is not a farmer", "Leo is not a farmer"),
    ("Uma is an artist", "Uma is an artist"),
    ("Rosa is a poet", "Rosa is a poet"),
    ("Tom is not an uncle", "Tom is not an uncle"),
    ("Kim is not a baker", "Kim is not a baker"),
)


def clause_prompt(turn: int, blocking: Sequence[str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Instructions and examples for turn 0, 1, … of the loop.

    A second look is an independent one: the same examples in another order, and the judge's words in the
    instructions. Repeating the question at a higher temperature, or showing the rejected reading, made the
    embedded model read worse than before.
    """
    if turn == 0:
        return CLAUSE_INSTRUCTIONS, CLAUSE_EXAMPLES
    shuffled = random.Random(turn).sample(CLAUSE_EXAMPLES, len(CLAUSE_EXAMPLES))
    told = f" An earlier reading did not fit: {'; '.join(blocking)}." if blocking else ""
    return CLAUSE_INSTRUCTIONS + told, tuple(shuffled)


def literals(names: Sequence[str], roles: Roles) -> dict[str, Atom]:
    """Every line the model may answer with, and what it means."""
    return {
        f"{name} is {negation}{roles.a(truthful)}": Atom(name, truthful is not bool(negation))
        for name in names
        for truthful in (True, False)
        for negation in ("", "not ")
    }


def line(atom: Atom, roles: Roles) -> str:
    """The plain line that means `atom`."""
    return f"{atom.person} is {roles.a(atom.truthful)}"


# --- sentence ----------------------------------------------------------------------------------------------

SENTENCE_INSTRUCTIONS = (
    "Put what is said into JSON: who says it (speaker), how its parts are joined (form: one, and, or, if, iff), "
    "and the parts (first, second)."
)


def _sentence_json(speaker: str, form: str, first: str, second: str | None = None) -> dict[str, Any]:
    return {"speaker": speaker, "form": form, "first": first, "second": second}


SENTENCE_EXAMPLES = tuple(
    (text, json.dumps(_sentence_json(*meaning)))
    for text, *meaning in (
        ('Tom said, "Rosa is a doctor"', "Tom", "one", "Rosa is a doctor"),
        ("Kim told me that if Ben is not a nurse then Kim is a doctor.",
         "Kim", "if", "Ben is not a nurse", "Kim is a doctor"),
        ('"Ivy is a poet or Bao is a baker," Leo insisted.', "Leo", "or", "Ivy is a poet", "Bao is a baker"),
        ('In the words of Uma: "Tom is not a sailor and Uma is a farmer."',
         "Uma", "and", "Tom is not a sailor", "Uma is a farmer"),
        ('According to Zed, "Rosa is an artist if and only if Kim is an uncle."',
         "Zed", "iff", "Rosa is an artist", "Kim is an uncle"),
        ('"Leo is not a baker." - Ben.', "Ben", "one", "Leo is not a baker"),
    )
)  # fmt: skip


@lru_cache(maxsize=256)
def sentence_model(names: tuple[str, ...], roles: Roles) -> type[BaseModel]:
    """The shape of a whole sentence put into logic, for one puzzle's people and roles."""
    part = Literal[tuple(literals(names, roles))]
    return create_model(
        "Sentence",
        speaker=(Literal[tuple(names)], ...),
        form=(Literal["one", "and", "or", "if", "iff"], ...),
        first=(part, ...),
        second=(part | None, ...),
    )


def sentence_answer(statement: Statement, roles: Roles) -> dict[str, Any]:
    """The right answer for a statement whose meaning is known."""
    form, atoms = statement.formula.form, statement.formula.atoms
    if form == "not":
        atoms = (Atom(atoms[0].person, not atoms[0].truthful),)
    lines = [line(atom, roles) for atom in atoms]
    return _sentence_json(statement.speaker, form if len(lines) > 1 else "one", *lines)


# --- program -----------------------------------------------------------------------------------------------

PROGRAM_INSTRUCTIONS = (
    "Write a Python program with the library python-constraint that solves the puzzle. "
    "A variable is True when its person always tells the truth. The last line prints all solutions."
)
_OPERATORS = {"and": "{} and {}", "or": "{} or {}", "if": "not {} or {}", "iff": "{} == {}"}


def program(names: Sequence[str], statements: Sequence[Statement]) -> str:
    """A right program, in the style of the examples."""
    # Not every name is a Python name: 'Anne-Marie' becomes the variable Anne_Marie.
    variables = {name: re.sub(r"\W", "_", name) for name in names}
    rows = [
        "from constraint import Problem",
        "p = Problem()",
        f"p.addVariables({list(names)!r}, [True, False])",
    ]
    for statement in statements:
        formula = statement.formula
        people = list(dict.fromkeys([statement.speaker, *(atom.person for atom in formula.atoms)]))
        values = [
            variables[a.person] if a.truthful else f"(not {variables[a.person]})" for a in formula.atoms
        ]
        if formula.form == "not":
            values = [f"(not {values[0]})"]
        said = _OPERATORS.get(formula.form, "{}").format(*values)
        arguments = ", ".join(variables[person] for person in people)
        rows.append(
            f"p.addConstraint(lambda {arguments}: {variables[statement.speaker]} == ({said}), {people!r})"
        )
    return "\n".join([*rows, "print(p.getSolutions())"])


def _said(speaker: str, form: Form, *atoms: tuple[str, bool]) -> Statement:
    return Statement(speaker, Formula(form, tuple(Atom(*atom) for atom in atoms)))


# Each puzzle: its text, its people, what they say, and how one may get to the answer in words.
_SOLVED = (
    (
        "On an island live doctors, who always tell the truth, and nurses, who always lie. You meet Tom and Rosa. "
        'Tom said, "Rosa is a doctor and Tom is a doctor." Rosa claimed that Tom is not a doctor. Who is what?',
        ("Tom", "Rosa"),
        (_said("Tom", "and", ("Rosa", True), ("Tom", True)), _said("Rosa", "not", ("Tom", True))),
        "If Tom told the truth, Rosa would be a doctor, but she denies that Tom is one. So Tom lies, and Rosa is right."
        "\nAnswer: Tom is a nurse. Rosa is a doctor.",
    ),
    (
        "All inhabitants are poets or bakers. Poets always tell the truth, bakers always lie. You meet Kim, Ben and "
        'Ivy. According to Kim, "Ben is a baker if and only if Ivy is a poet". "If Kim is a poet then Ivy is a poet," '
        'Ben declared. Ivy said, "Kim is a baker or Ben is a poet." Who is what?',
        ("Kim", "Ben", "Ivy"),
        (
            _said("Kim", "iff", ("Ben", False), ("Ivy", True)),
            _said("Ben", "if", ("Kim", True), ("Ivy", True)),
            _said("Ivy", "or", ("Kim", False), ("Ben", True)),
        ),
        "If Kim told the truth, Ben and Ivy would be alike, but Kim says they differ. So Kim lies. Then what Ben says is "
        "true, and so is what Ivy says.\nAnswer: Kim is a baker. Ben is a poet. Ivy is a poet.",
    ),
    (
        "Everybody here is a sailor or a farmer. Sailors always tell the truth, and farmers always lie. You meet 4 of "
        'them: Uma, Zed, Bao, and Leo. "Zed is not a sailor" - Uma. Zed told you that Bao is a sailor and Uma is a '
        'sailor. Bao said, "Leo is a farmer or Zed is a sailor." Leo said, "If Bao is a sailor then Zed is a sailor." '
        "Who is a sailor, and who is a farmer?",
        ("Uma", "Zed", "Bao", "Leo"),
        (
            _said("Uma", "not", ("Zed", True)),
            _said("Zed", "and", ("Bao", True), ("Uma", True)),
            _said("Bao", "or", ("Leo", False), ("Zed", True)),
            _said("Leo", "if", ("Bao", True), ("Zed", True)),
        ),
        "If Zed told the truth, Uma would too, but she denies that he does. So Zed lies, Uma is right, and Bao lies. Then "
        "what Bao says is false, so Leo is a sailor.\n"
        "Answer: Uma is a sailor. Zed is a farmer. Bao is a farmer. Leo is a sailor.",
    ),
)
PROGRAM_EXAMPLES = tuple((quiz, program(names, statements)) for quiz, names, statements, _ in _SOLVED[:2])

# --- reasoning: the same puzzles, solved in words -----------------------------------------------------------

REASONING_INSTRUCTIONS = (
    "Solve the puzzle. Think step by step, in a few sentences. End with a line that begins with 'Answer:' and gives "
    "everybody's role."
)
REASONING_EXAMPLES = tuple((quiz, words) for quiz, *_, words in _SOLVED)
