"""Problems: generated, shipped, read from files; and the nearest examples."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.mathematics.families import FAMILIES
from experiments.mathematics.nearest import Nearest
from experiments.mathematics.problems import (
    SHIPPED_COUNTS,
    SHIPPED_SEED,
    ProblemError,
    generate,
    in_range,
    load,
    save,
    shipped,
    shown,
)

FAMILY = {family.name: family for family in FAMILIES}


def test_what_ships_is_what_the_families_generate():
    for split, count in SHIPPED_COUNTS.items():
        assert shipped(split) == generate(split, count, SHIPPED_SEED)
    assert len(shipped()) == sum(SHIPPED_COUNTS.values()) == 300


def test_splits_keep_to_their_families_and_wordings():
    for split, seen in (("seen", True), ("reworded", True), ("unseen", False)):
        problems = generate(split, 80, 7)
        assert {one.family for one in problems} == {family.name for family in FAMILIES if family.seen == seen}
        for one in problems:
            last = len(FAMILY[one.family].wordings) - 1
            assert (one.wording == last) if split == "reworded" else split == "unseen" or one.wording < last
            assert in_range(one.answer) and one.split == split


def test_examples_are_of_seen_families_in_wordings_but_the_last_and_none_is_posed():
    numbers = {(one.family, *one.parameters.values()) for one in shown()}
    assert {one.family for one in shown()} == {family.name for family in FAMILIES if family.seen}
    assert all(one.wording < len(FAMILY[one.family].wordings) - 1 for one in shown())
    posed = [*shipped(), *generate("seen", 120, 3), *generate("reworded", 40, 3)]
    assert not numbers & {(one.family, *one.parameters.values()) for one in posed}
    assert len({one.id for one in posed}) == len(posed)
    assert len({(one.family, *one.parameters.values()) for one in shipped()}) == len(shipped())


def test_another_seed_other_problems_and_the_same_seed_the_same():
    first = generate("seen", 40, 1)
    assert generate("seen", 40, 1) == first
    assert generate("seen", 20, 1) == first[:20]
    assert not {one.problem for one in generate("seen", 40, 2)} & {one.problem for one in first}


def test_save_and_load_are_inverse(tmp_path):
    path = tmp_path / "problems.jsonl"
    save(shipped("unseen"), path)
    assert load(path) == shipped("unseen")


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ({"problem": "1+1?", "answer": 2}, "2"),
        ({"ID": "2024-I-1", "problem": "p", "answer": "204"}, "204"),
        ({"question": "q", "answer": "5 + 6 = 11 <<5+6=11>>\n#### 11"}, "11"),
        (
            {"problem": "p", "answer": "\\frac{3}{4}", "unique_id": "test/algebra/1.json", "level": 5},
            "\\frac{3}{4}",
        ),
    ],
)
def test_files_of_other_origins(tmp_path, row, answer):
    path = tmp_path / "data.jsonl"
    path.write_text("\ufeff" + json.dumps(row) + "\n\n", encoding="utf-8")
    (problem,) = load(path)
    assert (problem.answer, problem.split, problem.program) == (answer, "data", None)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 2"),
        ("[1]", "expected an object, got list"),
        ('{"answer": 1}', "problem must be a text, got None"),
        ('{"problem": " ", "answer": 1}', "problem must be a text"),
        ('{"problem": "p"}', "answer must be a number or a text, got None"),
        ('{"problem": "p", "answer": true}', "answer must be a number or a text, got True"),
        ('{"problem": "p", "answer": "####"}', "answer is empty"),
        ('{"problem": "p", "answer": 1, "parameters": {}}', "a family of ours, got None"),
        ('{"problem": "p", "answer": 1, "id": "first"}', "found twice: first"),
    ],
)
def test_bad_lines_are_named(tmp_path, line, why):
    path = tmp_path / "data.jsonl"
    path.write_text('{"problem": "p", "answer": 1, "id": "first"}\n' + line)
    with pytest.raises(ProblemError, match=re.escape(why)):
        load(path)


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("\n")
    with pytest.raises(ProblemError, match="no problems"):
        load(path)


def test_the_nearest_example_has_the_family_and_wording_of_a_seen_problem():
    nearest = Nearest(shown())
    for one in shipped("seen")[:80]:
        (example,) = nearest(one.problem, 1)
        assert (example.family, example.wording) == (one.family, one.wording)


@given(st.text())
def test_similarities_lie_between_0_and_1(text):
    assert all(0 <= value <= 1 + 1e-9 for value in NEAREST.similarities(text))


NEAREST = Nearest(shown()[::10])


def test_an_example_is_nearest_to_itself_whatever_its_numbers():
    for example in NEAREST.examples:
        assert max(NEAREST.similarities(re.sub(r"\d+", "77", example.problem))) == pytest.approx(1.0)
        assert (
            NEAREST(example.problem, 1) == [example]
            or NEAREST.similarities(example.problem).count(max(NEAREST.similarities(example.problem))) > 1
        )
