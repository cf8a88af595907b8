"""What people say of each other, as logic, and the solver that finds who can be what.

An assignment maps every person to True (always tells the truth) or False (always lies). What the two roles
are called is a matter of wording and lives with the puzzles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from constraint import Problem

Form = Literal["atom", "not", "and", "or", "if", "iff"]
FORMS: tuple[Form, ...] = get_args(Form)


@dataclass(frozen=True)
class Atom:
    """'`person` has the truth-telling role' if `truthful`, else '`person` has the lying role'."""

    person: str
    truthful: bool

    def __post_init__(self) -> None:
        if not isinstance(self.person, str) or not self.person.strip():
            raise ValueError(f"person must be a name, got {self.person!r}")
        # A model's "false" or 0 must not slip through as a truth value.
        if not isinstance(self.truthful, bool):
            raise ValueError(f"truthful must be a bool, got {self.truthful!r}")

    def holds(self, assignment: Mapping[str, bool]) -> bool:
        """Whether the atom is true under `assignment`; KeyError for a person it leaves out."""
        return assignment[self.person] is self.truthful


@dataclass(frozen=True)
class Formula:
    """One connective over atoms: `if` reads (antecedent, consequent), `or` is inclusive."""

    form: Form
    atoms: tuple[Atom, ...]

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form must be one of {', '.join(FORMS)}, got {self.form!r}")
        for atom in self.atoms:
            if not isinstance(atom, Atom):
                raise ValueError(f"atoms must be Atoms, got {atom!r}")
        count = len(self.atoms)
        if self.form in ("atom", "not"):
            wanted, fits = "1 atom", count == 1
        elif self.form in ("if", "iff"):
            wanted, fits = "2 atoms", count == 2
        else:
            wanted, fits = "at least 2 atoms", count >= 2
        if not fits:
            raise ValueError(f"form {self.form!r} takes {wanted}, got {count}")

    def holds(self, assignment: Mapping[str, bool]) -> bool:
        """Whether the formula is true under `assignment`; KeyError for a person it leaves out."""
        values = [atom.holds(assignment) for atom in self.atoms]
        match self.form:
            case "atom":
                return values[0]
            case "not":
                return not values[0]
            case "and":
                return all(values)
            case "or":
                return any(values)
            case "if":
                return values[1] or not values[0]
            case "iff":
                return values[0] is values[1]


@dataclass(frozen=True)
class Statement:
    """`speaker` says `formula`: it is true exactly when the speaker tells the truth."""

    speaker: str
    formula: Formula

    def holds(self, assignment: Mapping[str, bool]) -> bool:
        """Whether the speaker's role fits what was said."""
        return assignment[self.speaker] is self.formula.holds(assignment)


def solve(people: Sequence[str], statements: Sequence[Statement]) -> list[dict[str, bool]]:
    """Every assignment under which all statements fit their speakers' roles.

    The order depends on `people` alone (truth-tellers first), and each assignment lists them in that order.
    Nobody is required to speak, so no statements means all 2^n assignments.

    Raises ValueError for no people, a repeated one, or a statement about somebody else.
    """
    if not people or len(set(people)) != len(people):
        raise ValueError(f"people must be one or more distinct names, got {list(people)!r}")
    problem = Problem()
    problem.addVariables(people, [True, False])
    for statement in statements:
        scope = list(dict.fromkeys([statement.speaker, *(atom.person for atom in statement.formula.atoms)]))
        if strangers := [person for person in scope if person not in people]:
            raise ValueError(f"statement by {statement.speaker!r} names strangers: {strangers!r}")
        problem.addConstraint(_fits(statement, scope), scope)
    found = ({person: solution[person] for person in people} for solution in problem.getSolutions())
    return sorted(found, key=lambda assignment: [not truthful for truthful in assignment.values()])


def _fits(statement: Statement, scope: Sequence[str]) -> Callable[..., bool]:
    """The constraint of one statement, over the values of the people in its `scope`."""
    return lambda *values: statement.holds(dict(zip(scope, values, strict=True)))
