"""The labelled set: made as it says, every deterministic defect caught, and nothing else."""

import json
from collections import Counter
from pathlib import Path

import pytest

from experiments.judging.planting import BUDGET, DIMENSIONS, KINDS, LABELLED, checks, labelled
from loopkit.judges import Material, run_checks, withhold

ITEMS = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
SHOWN = ("main", "name", "files", "goal", "plan", "notes")


def material(item):
    return Material(**{field: item[field] for field in SHOWN})


def kinds(item):
    return [defect["kind"] for defect in item["defects"]]


def caught_by(item):
    """The checks that must catch what was planted."""
    return {KINDS[kind].check for kind in kinds(item)} - {None}


CLEAN = [item for item in ITEMS if not item["defects"]]
DETERMINISTIC = [item for item in ITEMS if caught_by(item)]
SEMANTIC = [item for item in ITEMS if item["defects"] and not caught_by(item)]


def each(items):
    return pytest.mark.parametrize("item", items, ids=[item["id"] for item in items])


def test_the_data_file_can_be_made_again():
    assert labelled() == ITEMS


def test_the_set_is_balanced_and_holds_every_kind():
    assert (len(CLEAN), len(DETERMINISTIC), len(SEMANTIC)) == (20, 28, 28)
    assert (
        len({item["id"] for item in ITEMS})
        == len({item["main"] + str(item["files"]) for item in ITEMS})
        == 76
    )
    assert len({item["base"] for item in ITEMS}) == 14
    count = Counter(kind for item in ITEMS for kind in kinds(item))
    assert set(count) == set(KINDS)
    assert count["injection"] == 8


@each(DETERMINISTIC)
def test_every_deterministic_defect_is_caught_where_it_is(item):
    failed = {result.name: result for result in run_checks(checks(), material(item)) if not result.passed}
    assert caught_by(item) <= set(failed)
    [defect] = item["defects"]
    name, _, line = defect["place"].partition(":")
    found = [problem.place.partition(":") for problem in failed[KINDS[defect["kind"]].check].problems]
    # What is too long is so as a whole; else it is the line that was changed, or one near it in the same block.
    assert [(file, bool(number)) for file, _, number in found] == [(name, defect["kind"] != "over_length")]
    assert defect["kind"] == "over_length" or abs(int(found[0][2]) - int(line)) <= 3
    # Without readable front matter the checks that look into it fail too; nothing else does.
    in_front = {"front_matter", "required_fields", "usage_trigger", "numbers_within"}
    assert set(failed) == caught_by(item) or set(failed) <= in_front


@each(CLEAN + SEMANTIC)
def test_no_check_fails_on_what_only_a_reader_can_fault(item):
    assert [result.lines() for result in run_checks(checks(), material(item)) if not result.passed] == []
    assert 80 <= len(item["main"].split()) <= BUDGET


@each(ITEMS)
def test_labels_follow_from_what_was_planted(item):
    assert item["accept"] == (not item["defects"]) == (item["score"] >= 0.8)
    assert tuple(item["scores"]) == DIMENSIONS
    assert item["score"] == pytest.approx(sum(item["scores"].values()) / len(DIMENSIONS), abs=1e-4)
    for kind in kinds(item):
        assert all(item["scores"][dimension] <= most for dimension, most in KINDS[kind].most.items())
    touched = {dimension for kind in kinds(item) for dimension in KINDS[kind].most}
    assert all(0.9 <= item["scores"][dimension] <= 1 for dimension in DIMENSIONS if dimension not in touched)
    assert [defect["deterministic"] for defect in item["defects"]] == [
        bool(KINDS[kind].check) for kind in kinds(item)
    ]


@each([item for item in ITEMS if item["defects"]])
def test_a_defect_stands_at_its_place(item):
    texts = material(item).texts()
    clean = next(other for other in CLEAN if other["base"] == item["base"])
    for defect in item["defects"]:
        name, _, line = defect["place"].partition(":")
        if defect["kind"] == "injection":
            assert texts[name].split("\n")[int(line) - 1] not in clean["main"]
        elif line and texts[name] != clean["main"]:
            before, after = clean["main"].split("\n"), texts[name].split("\n")
            assert before[: int(line) - 1] == after[: int(line) - 1]
            assert before[int(line) - 1 :] != after[int(line) - 1 :]


def test_some_of_what_speaks_to_the_judge_is_withheld_and_some_is_not():
    speaking = [item for item in ITEMS if "injection" in kinds(item)]
    assert {bool(withhold(material(item))[1]) for item in speaking} == {True, False}
    assert not any(withhold(material(item))[1] for item in ITEMS if item not in speaking)


def test_the_page_has_the_caps_of_every_kind():
    page = (Path(LABELLED).parents[1] / "README.md").read_text(encoding="utf-8")
    for name, kind in KINDS.items():
        caught = f" (caught by `{kind.check}`)" if kind.check else ""
        caps = ", ".join(f"{dimension} {most:g}" for dimension, most in kind.most.items())
        assert f"| `{name}`{caught} | {caps} |\n" in page
