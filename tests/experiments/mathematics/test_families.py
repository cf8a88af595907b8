"""Every family answers its own problems: the program and an independent check agree on seeded draws."""

import ast
import builtins
import contextlib
import io
import random
import re
from dataclasses import replace
from string import Template
from typing import get_args

import pytest

from experiments.mathematics.arms import numbers_unused
from experiments.mathematics.families import FAMILIES, Topic

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def draws(family, count):
    rng = random.Random(f"test/{family.name}")
    return [family.draw(rng) for _ in range(count)]


def printed(program):
    """What the program prints. In this process, because the program is ours."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, {"__name__": "__main__"})
    return out.getvalue()


@each_family
def test_program_and_check_agree(family):
    answers = []
    for parameters in draws(family, 60):
        answer = family.check(**parameters)
        if 0 <= answer <= 999:
            assert printed(family.solution(0, parameters)) == f"{answer}\n", parameters
            answers.append(answer)
        if len(answers) == 6:
            break
    assert len(answers) == 6 and len(set(answers)) > 1


@each_family
def test_each_wording_states_every_number_that_the_program_needs(family):
    # What the program takes for given is what it reads and nothing in it has set before.
    (parameters,) = draws(family, 1)
    known, tree = set(dir(builtins)), ast.parse(family.program)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)} - known
    needed = read & set(parameters)
    assert needed
    for number, wording in enumerate(family.wordings):
        assert needed <= set(Template(wording).get_identifiers()), wording
        # Each is read off under the words before it, of which it is the last: alone, or with its neighbours.
        read_off = re.findall(r"^# (.*)\n(.*) = (.*)$", family.solution(number, parameters), re.MULTILINE)
        assert needed == {name for _, names, _ in read_off for name in names.split(", ")} & needed
        for words, names, values in read_off:
            taken = [str(parameters[name]) for name in names.split(", ")]
            assert values == ", ".join(taken)
            stated = re.findall(r"\d+", words)
            assert stated[-1] == taken[-1].lstrip("-"), (words, values)
            rest = iter(stated)  # in this order, others in between
            assert all(value.lstrip("-") in rest for value in taken), (words, values)


@each_family
def test_the_judge_has_nothing_to_say_against_its_program(family):
    for parameters in draws(family, 20):
        for number in range(len(family.wordings)):
            text, program = family.problem(number, parameters), family.solution(number, parameters)
            assert numbers_unused(text, program) == [], text


@each_family
def test_nothing_is_left_to_fill_in(family):
    for parameters in draws(family, 5):
        texts = [family.problem(wording, parameters) for wording in range(len(family.wordings))]
        assert len(set(texts)) == len(texts)
        assert not any("$" in text for text in [*texts, family.solution(0, parameters)])
        for text in texts:
            assert text == text.strip() and text[-1] in ".?" and "\n" not in text
            assert len(text.split()) <= 65


@each_family
def test_problems_seldom_come_twice(family):
    assert len({tuple(parameters.items()) for parameters in draws(family, 60)}) >= 40


@each_family
def test_the_same_seed_draws_the_same_problem(family):
    assert draws(family, 3) == draws(family, 3)


def test_the_collection_covers_topics_and_levels_in_both_halves():
    assert len(FAMILIES) >= 40
    names = [family.name for family in FAMILIES]
    assert len(set(names)) == len(names)
    for seen in (True, False):
        half = [family for family in FAMILIES if family.seen is seen]
        assert {family.topic for family in half} == set(get_args(Topic))
        assert {family.level for family in half} >= {2, 3, 4}
    assert {family.level for family in FAMILIES} == {1, 2, 3, 4, 5}


def test_most_programs_use_a_mathematical_library():
    libraries = ("sympy", "numpy", "scipy", "constraint")
    using = [
        family
        for family in FAMILIES
        if any(
            line.split()[1].partition(".")[0] in libraries
            for line in family.program.splitlines()
            if line.startswith(("from ", "import "))
        )
    ]
    assert 3 * len(using) >= 2 * len(FAMILIES)


def test_bad_families_wordings_and_parameters_are_refused():
    family = FAMILIES[0]
    with pytest.raises(ValueError, match="level must be 1 to 5, got 6"):
        replace(family, level=6)
    with pytest.raises(ValueError, match="wordings must be 3 or more, got 2"):
        replace(family, wordings=family.wordings[:2])
    (parameters,) = draws(family, 1)
    for wording in (-1, len(family.wordings)):
        with pytest.raises(ValueError, match=f"wording must be 0 to .*, got {wording}"):
            family.problem(wording, parameters)
    name, *_ = parameters
    del parameters[name]
    for fill in (lambda: family.problem(0, parameters), lambda: family.solution(0, parameters)):
        with pytest.raises(ValueError, match=f"{family.name}: parameter '{name}' is missing"):
            fill()
