import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.knights.logic import FORMS, Atom, Formula, Statement, solve

# Written apart from the code under test: each form as a truth table over the values of its atoms.
ORACLE = {
    "atom": lambda a: a,
    "not": lambda a: not a,
    "and": lambda *values: False not in values,
    "or": lambda *values: True in values,
    "if": lambda a, b: (a, b) != (True, False),
    "iff": lambda a, b: a == b,
}


def brute_force(people, statements):
    found = []
    for values in itertools.product([True, False], repeat=len(people)):
        world = dict(zip(people, values, strict=True))
        said = [
            ORACLE[s.formula.form](*[world[atom.person] == atom.truthful for atom in s.formula.atoms])
            for s in statements
        ]
        if all(world[s.speaker] == true for s, true in zip(statements, said, strict=True)):
            found.append(world)
    return found


@st.composite
def villages(draw):
    people = [f"p{i}" for i in range(draw(st.integers(2, 8)))]
    atom = st.builds(Atom, st.sampled_from(people), st.booleans())

    def formula(form):
        least, most = (1, 1) if form in ("atom", "not") else (2, 2 if form in ("if", "iff") else 4)
        return st.builds(Formula, st.just(form), st.lists(atom, min_size=least, max_size=most).map(tuple))

    statement = st.builds(Statement, st.sampled_from(people), st.sampled_from(FORMS).flatmap(formula))
    return people, draw(st.lists(statement, max_size=len(people)))


@given(villages())
def test_solve_agrees_with_brute_force_in_all_solutions_and_their_order(village):
    people, statements = village
    solutions = solve(people, statements)
    assert solutions == brute_force(people, statements)
    assert all(list(solution) == people for solution in solutions)


def test_the_textbook_puzzle():
    # Ava: "At least one of us is a knave." Nobody else speaks.
    statement = Statement("Ava", Formula("or", (Atom("Ava", False), Atom("Bob", False))))
    assert solve(["Ava", "Bob"], [statement]) == [{"Ava": True, "Bob": False}]


def test_nobody_can_say_i_am_a_knave():
    assert solve(["Ava"], [Statement("Ava", Formula("atom", (Atom("Ava", False),)))]) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Atom("", True), "person must be a name, got ''"),
        (lambda: Atom("Ava", "false"), "truthful must be a bool, got 'false'"),
        (lambda: Formula("xor", (Atom("Ava", True),)), "got 'xor'"),
        (lambda: Formula("not", (Atom("Ava", True),) * 2), "'not' takes 1 atom, got 2"),
        (lambda: Formula("if", (Atom("Ava", True),) * 3), "'if' takes 2 atoms, got 3"),
        (lambda: Formula("and", (Atom("Ava", True),)), "'and' takes at least 2 atoms, got 1"),
        (lambda: Formula("atom", ("Ava",)), "atoms must be Atoms, got 'Ava'"),
        (lambda: solve([], []), r"got \[\]"),
        (lambda: solve(["Ava", "Ava"], []), "distinct"),
        (lambda: solve(["Ava"], [Statement("Ava", Formula("atom", (Atom("Bob", True),)))]), r"\['Bob'\]"),
    ],
)
def test_errors_name_the_bad_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()
