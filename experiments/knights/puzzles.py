"""Puzzles: generated from a seed, perturbed, and exchanged as JSON lines.

A puzzle is first a sketch (who says which formula, in which wording), then a text. A perturbation changes
one aspect of the sketch and leaves the rest alone: a puzzle and its perturbed sister differ in that only.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from .logic import FORMS, Atom, Form, Formula, Statement, solve
from .wording import (
    COMMON_NAMES,
    CONNECTED,
    INTROS,
    MEETING,
    OTHER_ROLES,
    QUESTIONS,
    ROLES,
    UNCOMMON_NAMES,
    WORDINGS,
    Roles,
    plural,
)

Perturb = Literal["none", "literal", "statement", "names", "roles", "flipped", "reordered"]
PERTURBATIONS: tuple[Perturb, ...] = get_args(Perturb)
_DENIED = 0.25  # how often an atom within a compound is worded as the denial of the other role


class PuzzleError(ValueError):
    """A puzzle file cannot be read; the message lists its bad lines."""


@dataclass(frozen=True)
class Puzzle:
    """A text and its one solution, `solution[i]` telling whether `names[i]` tells the truth."""

    quiz: str
    names: tuple[str, ...]
    solution: tuple[bool, ...]
    roles: Roles = ROLES
    statements: tuple[Statement, ...] | None = None
    """The gold reading, in the order of the text; None where the source of the puzzle gives none."""
    meta: dict[str, Any] = field(default_factory=dict, compare=False)

    @cached_property
    def id(self) -> str:
        """12 hex digits of the quiz's SHA-256: the same text has the same id anywhere."""
        return hashlib.sha256(self.quiz.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class _Line:
    """One statement with its wording; `denied[i]`: atom i is worded '… is not a <other role>'."""

    speaker: str
    form: Form
    atoms: tuple[Atom, ...]
    denied: tuple[bool, ...]
    wording: str

    @property
    def statement(self) -> Statement:
        return Statement(self.speaker, Formula(self.form, self.atoms))

    def render(self, roles: Roles) -> str:
        clauses = []
        for atom, denied in zip(self.atoms, self.denied, strict=True):
            negation = "not " if denied or self.form == "not" else ""
            clauses.append(f"{atom.person} is {negation}{roles.a(atom.truthful is not denied)}")
        said = CONNECTED.get(self.form, "{}").format(*clauses)
        return self.wording.format(name=self.speaker, said=said, Said=said[0].upper() + said[1:])

    def with_atom(self, place: int, atom: Atom) -> _Line:
        return replace(self, atoms=(*self.atoms[:place], atom, *self.atoms[place + 1 :]))

    def renamed(self, new: Mapping[str, str]) -> _Line:
        atoms = tuple(replace(atom, person=new[atom.person]) for atom in self.atoms)
        return replace(self, speaker=new[self.speaker], atoms=atoms)


@dataclass(frozen=True)
class _Sketch:
    """A puzzle before it is put into words. `lines` stand in the order of the text."""

    names: tuple[str, ...]
    lines: tuple[_Line, ...]
    intro: str
    question: str
    roles: Roles = ROLES

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(line.statement for line in self.lines)

    @cached_property
    def solution(self) -> tuple[bool, ...] | None:
        """The one solution; None when there are none or several."""
        found = solve(self.names, self.statements)
        return tuple(found[0].values()) if len(found) == 1 else None

    @cached_property
    def quiz(self) -> str:
        a, b = self.roles.a(True), self.roles.a(False)
        as_, bs = self.roles.plural(True), self.roles.plural(False)
        words = {"a": a, "b": b, "as_": as_, "bs": bs, "As_": as_.capitalize(), "Bs": bs.capitalize()}
        *others, last = self.names
        names = f"{', '.join(others)}{',' if len(others) > 1 else ''} and {last}"
        meeting = MEETING.format(count=len(self.names), names=names)
        said = [line.render(self.roles) for line in self.lines]
        return " ".join([self.intro.format(**words), meeting, *said, self.question.format(**words)])

    def puzzle(self, meta: dict[str, Any]) -> Puzzle:
        if self.solution is None:
            raise ValueError(f"no unique solution: {self.quiz}")
        return Puzzle(self.quiz, self.names, self.solution, self.roles, self.statements, meta)

    def with_line(self, index: int, line: _Line) -> _Sketch:
        return replace(self, lines=(*self.lines[:index], line, *self.lines[index + 1 :]))

    def literal_changes(self) -> Iterator[_Sketch]:
        """Every sketch with one atom replaced that has a unique and another solution."""
        for index, line in enumerate(self.lines):
            for place in range(len(line.atoms)):
                for atom in _atoms(self.names):
                    if atom not in line.atoms:
                        changed = self.with_line(index, line.with_atom(place, atom))
                        if changed.solution not in (None, self.solution):
                            yield changed


def _atoms(names: Sequence[str]) -> list[Atom]:
    return [Atom(name, truthful) for name in names for truthful in (True, False)]


def generate(people: int, seed: int, count: int, perturb: Perturb = "none") -> list[Puzzle]:
    """`count` distinct puzzles of `people` persons (2 to 8), each with exactly one solution.

    Everybody makes one statement: a form drawn uniformly from the six, over one atom or two different ones.
    Puzzle i of any perturbation derives from puzzle i of "none" under the same `people` and `seed` (its id is
    `meta["base"]`), and a larger `count` only appends. "I am a <lying role>" never occurs: nobody can say it,
    so no puzzle with it has a solution.
    """
    if not 2 <= people <= 8:
        raise ValueError(f"people must be 2 to 8, got {people}")
    if perturb not in PERTURBATIONS:
        raise ValueError(f"perturb must be one of {', '.join(PERTURBATIONS)}, got {perturb!r}")
    bases: set[str] = set()
    puzzles: dict[str, Puzzle] = {}
    for index in range(count):
        # Seeding by a text is stable over processes and versions, unlike hash().
        rng = random.Random(f"{people}/{seed}/{index}")
        while (base := _draw_sketch(people, rng)).quiz in bases:
            pass
        bases.add(base.quiz)
        rng = random.Random(f"{people}/{seed}/{index}/{perturb}")
        while (sketch := _perturbed(base, perturb, rng)).quiz in puzzles:
            pass
        puzzles[sketch.quiz] = sketch.puzzle(
            {"people": people, "seed": seed, "index": index, "perturb": perturb, "base": base.puzzle({}).id}
        )
    return list(puzzles.values())


def _draw_sketch(people: int, rng: random.Random) -> _Sketch:
    """A base sketch: one solution, and at least one literal whose change leads to another."""
    while True:
        names = tuple(rng.sample(COMMON_NAMES, people))
        lines = tuple(_draw_line(name, names, rng) for name in names)
        sketch = _Sketch(names, lines, rng.choice(INTROS), rng.choice(QUESTIONS))
        if sketch.solution and any(sketch.literal_changes()):
            return sketch


def _draw_line(speaker: str, names: Sequence[str], rng: random.Random) -> _Line:
    form = rng.choice(FORMS)
    atoms = tuple(rng.sample(_atoms(names), 1 if form in ("atom", "not") else 2))
    denied = tuple(len(atoms) > 1 and rng.random() < _DENIED for _ in atoms)
    return _Line(speaker, form, atoms, denied, rng.choice(WORDINGS))


def _perturbed(base: _Sketch, perturb: Perturb, rng: random.Random) -> _Sketch:
    match perturb:
        case "none":
            return base
        case "literal":
            return _until_solved_otherwise(base, lambda: _with_new_literal(base, rng))
        case "statement":
            return _until_solved_otherwise(base, lambda: _with_new_statement(base, rng))
        case "names":
            new = dict(zip(base.names, rng.sample(UNCOMMON_NAMES, len(base.names)), strict=True))
            lines = tuple(line.renamed(new) for line in base.lines)
            return replace(base, names=tuple(new.values()), lines=lines)
        case "roles":
            return replace(base, roles=rng.choice(OTHER_ROLES))
        case "flipped":
            return replace(base, roles=base.roles.flipped())
        case "reordered":
            lines = base.lines
            while lines == base.lines:
                lines = tuple(rng.sample(base.lines, len(base.lines)))
            return replace(base, lines=lines)


def _until_solved_otherwise(base: _Sketch, draw: Callable[[], _Sketch]) -> _Sketch:
    # Ends: every base has a literal whose change will do, and a new statement may differ in just that.
    while (sketch := draw()).solution in (None, base.solution):
        pass
    return sketch


def _with_new_literal(base: _Sketch, rng: random.Random) -> _Sketch:
    index = rng.randrange(len(base.lines))
    line = base.lines[index]
    place = rng.randrange(len(line.atoms))
    atom = rng.choice([atom for atom in _atoms(base.names) if atom not in line.atoms])
    return base.with_line(index, line.with_atom(place, atom))


def _with_new_statement(base: _Sketch, rng: random.Random) -> _Sketch:
    index = rng.randrange(len(base.lines))
    return base.with_line(index, _draw_line(base.lines[index].speaker, base.names, rng))


def load(path: str | Path) -> list[Puzzle]:
    """Read puzzles from JSON lines, one object a line.

    `quiz` (text), `names` (list of texts) and `solution` (list of booleans) are required. `knight_knave` may
    name the roles: a mapping in which "knight" holds the truth-teller's word and "knave" the liar's, or a
    list of these two; without it they are read from the quiz. `gold_statements` is what `save` writes. All
    else is kept in `meta`.

    Raises PuzzleError listing the bad lines (the first 10), or when there is no puzzle at all.
    """
    puzzles: list[Puzzle] = []
    bad: list[str] = []
    # Bytes, so that only \n ends a line (JSON may hold U+2028) and wrong encoding spoils one line alone.
    content = Path(path).read_bytes().removeprefix(codecs.BOM_UTF8)
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            try:
                puzzles.append(_from_row(json.loads(line.decode())))
            except ValueError as error:
                bad.append(f"line {number}: {error}")
    if bad:
        more = [f"and {len(bad) - 10} more"] if len(bad) > 10 else []
        raise PuzzleError("\n".join([f"{path}: {len(bad)} bad line(s)", *bad[:10], *more]))
    if not puzzles:
        raise PuzzleError(f"{path}: no puzzles")
    return puzzles


def save(puzzles: Iterable[Puzzle], path: str | Path) -> None:
    """Write puzzles as JSON lines that `load` reads back equal."""
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for puzzle in puzzles:
            file.write(json.dumps(_to_row(puzzle), ensure_ascii=False) + "\n")


def _to_row(puzzle: Puzzle) -> dict[str, Any]:
    row = puzzle.meta | {
        "quiz": puzzle.quiz,
        "names": puzzle.names,
        "solution": puzzle.solution,
        "knight_knave": {"knight": puzzle.roles.truthful, "knave": puzzle.roles.lying},
    }
    if puzzle.statements is not None:
        row["gold_statements"] = [
            [said.speaker, said.formula.form, [[atom.person, atom.truthful] for atom in said.formula.atoms]]
            for said in puzzle.statements
        ]
    return row


def _from_row(row: Any) -> Puzzle:
    if not isinstance(row, dict):
        raise ValueError(f"expected an object, got {type(row).__name__}")
    meta = dict(row)
    if missing := [key for key in ("quiz", "names", "solution") if key not in meta]:
        raise ValueError(f"missing {', '.join(missing)}")
    quiz, names, solution = meta.pop("quiz"), meta.pop("names"), meta.pop("solution")
    if not isinstance(quiz, str) or not quiz.strip():
        raise ValueError(f"quiz must be a text, got {quiz!r}")
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise ValueError(f"names must be a list of texts, got {names!r}")
    if not isinstance(solution, list) or not all(isinstance(value, bool) for value in solution):
        raise ValueError(f"solution must be a list of booleans, got {solution!r}")
    if not names or len(set(names)) != len(names):
        raise ValueError(f"names must be one or more distinct, got {names!r}")
    if len(names) != len(solution):
        raise ValueError(f"{len(names)} names but {len(solution)} values in solution")
    given = meta.pop("knight_knave", None)
    roles = _roles_in(quiz) if given is None else _roles_of(given)
    gold = meta.pop("gold_statements", None)
    statements = None if gold is None else _statements_of(gold)
    return Puzzle(quiz, tuple(names), tuple(solution), roles, statements, meta)


def _roles_of(given: Any) -> Roles:
    try:
        truthful, lying = (given["knight"], given["knave"]) if isinstance(given, dict) else given
        return Roles(*(re.sub(r"^an? ", "", word.strip().lower()) for word in (truthful, lying)))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"knight_knave must name two roles, got {given!r}") from error


def _roles_in(quiz: str) -> Roles:
    """The roles as the intro defines them, which also tells flipped knights from the usual ones."""
    truthful = re.search(r"(\w+) always tells? the truth", quiz)
    lying = re.search(r"(\w+) always lies?\b", quiz)
    if truthful and lying:
        return Roles(_singular(truthful[1], quiz), _singular(lying[1], quiz))
    if re.search(r"\b(knight|knave)s?\b", quiz, re.IGNORECASE):
        return ROLES
    raise ValueError("no knight_knave, and the quiz does not tell what the roles are called")


def _singular(word: str, quiz: str) -> str:
    """The word of the quiz whose plural is `word`; 'heroes' alone might come from 'hero' or 'heroe'."""
    word = word.lower()
    used = re.findall(r"\w+", quiz.lower())
    return next((other for other in used if plural(other) == word), word.removesuffix("s"))


def _statements_of(gold: Any) -> tuple[Statement, ...]:
    try:
        return tuple(
            Statement(speaker, Formula(form, tuple(Atom(*atom) for atom in atoms)))
            for speaker, form, atoms in gold
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"gold_statements: {error}") from error
