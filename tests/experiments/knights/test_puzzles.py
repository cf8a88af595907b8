import dataclasses
import hashlib
import json
from collections import Counter

import pytest

from experiments.knights.logic import FORMS
from experiments.knights.puzzles import PERTURBATIONS, Puzzle, PuzzleError, generate, load, save
from experiments.knights.wording import COMMON_NAMES, OTHER_ROLES, ROLES, UNCOMMON_NAMES, WORDINGS, Roles

from .test_logic import brute_force

PEOPLE, SEED, COUNT = 4, 11, 12


def by_speaker(puzzle):
    return {statement.speaker: statement.formula for statement in puzzle.statements}


@pytest.fixture(scope="module")
def families():
    return {perturb: generate(PEOPLE, SEED, COUNT, perturb) for perturb in PERTURBATIONS}


@pytest.mark.parametrize("people", range(2, 9))
def test_every_puzzle_has_its_one_solution(people):
    for perturb in PERTURBATIONS:
        for puzzle in generate(people, 5, 2, perturb):
            (only,) = brute_force(puzzle.names, puzzle.statements)
            assert tuple(only.values()) == puzzle.solution
            assert sorted(by_speaker(puzzle)) == sorted(puzzle.names)


def test_the_puzzles_of_a_seed_never_change_silently(families):
    # Every test process has its own hash seed, so this also shows that hashing plays no part.
    text = "\n".join(puzzle.quiz for perturb in PERTURBATIONS for puzzle in families[perturb])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "efa42f4001d9eaa6"


def test_a_larger_count_only_appends(families):
    for perturb in PERTURBATIONS:
        assert generate(PEOPLE, SEED, 3, perturb) == families[perturb][:3]


def test_puzzles_are_distinct_and_vary():
    puzzles = generate(2, 0, 150)
    statements = [statement for puzzle in puzzles for statement in puzzle.statements]
    assert len({puzzle.id for puzzle in puzzles}) == 150
    assert {statement.formula.form for statement in statements} == set(FORMS)
    # Of six equally likely forms the frequent ones stay well below a third, although solvable puzzles favour some.
    assert max(Counter(statement.formula.form for statement in statements).values()) < len(statements) / 3
    assert any(statement.speaker == statement.formula.atoms[0].person for statement in statements)
    assert any(len({atom.person for atom in s.formula.atoms}) < len(s.formula.atoms) for s in statements)
    assert all(len(set(s.formula.atoms)) == len(s.formula.atoms) <= 2 for s in statements)
    text = " ".join(puzzle.quiz for puzzle in puzzles)
    fixed_parts = [
        max(w.replace("{said}", "{Said}").replace("{name}", "{Said}").split("{Said}"), key=len)
        for w in WORDINGS
    ]
    assert [part for part in fixed_parts if part not in text] == []


def test_wording_lists_are_as_large_as_announced():
    assert len(WORDINGS) >= 18 and len(set(COMMON_NAMES)) >= 60 and len(set(UNCOMMON_NAMES)) >= 40
    assert not set(COMMON_NAMES) & set(UNCOMMON_NAMES)


@pytest.mark.parametrize("perturb", PERTURBATIONS)
def test_every_perturbation_names_its_base(families, perturb):
    for base, puzzle in zip(families["none"], families[perturb], strict=True):
        assert puzzle.meta["base"] == base.id
        assert (puzzle.id == base.id) is (perturb == "none")


def pairs(families, perturb):
    return zip(families["none"], families[perturb], strict=True)


def test_literal_replaces_one_atom_and_the_solution(families):
    for base, puzzle in pairs(families, "literal"):
        (changed,) = [name for name in base.names if by_speaker(base)[name] != by_speaker(puzzle)[name]]
        old, new = by_speaker(base)[changed], by_speaker(puzzle)[changed]
        assert old.form == new.form
        assert sum(a != b for a, b in zip(old.atoms, new.atoms, strict=True)) == 1
        assert puzzle.solution != base.solution


def test_statement_replaces_one_statement_and_the_solution(families):
    for base, puzzle in pairs(families, "statement"):
        assert sum(by_speaker(base)[name] != by_speaker(puzzle)[name] for name in base.names) == 1
        assert puzzle.solution != base.solution


def test_names_replaces_names_only(families):
    for base, puzzle in pairs(families, "names"):
        assert set(puzzle.names) <= set(UNCOMMON_NAMES)
        assert (puzzle.solution, puzzle.roles) == (base.solution, base.roles)
        assert [s.formula.form for s in puzzle.statements] == [s.formula.form for s in base.statements]


@pytest.mark.parametrize("perturb", ["roles", "flipped"])
def test_other_roles_leave_the_logic_alone(families, perturb):
    for base, puzzle in pairs(families, perturb):
        same = dataclasses.replace(puzzle, quiz=base.quiz, roles=base.roles)
        assert same == base and puzzle.roles != base.roles
        assert f"{puzzle.roles.plural(True)} always tell the truth" in puzzle.quiz.lower()
    assert all(puzzle.roles in OTHER_ROLES for puzzle in families["roles"])
    assert all(puzzle.roles == ROLES.flipped() for puzzle in families["flipped"])


def test_reordered_speaks_in_another_order(families):
    for base, puzzle in pairs(families, "reordered"):
        assert by_speaker(puzzle) == by_speaker(base)
        assert [s.speaker for s in base.statements] == list(base.names) == list(puzzle.names)
        assert [s.speaker for s in puzzle.statements] != list(puzzle.names)


@pytest.mark.parametrize(("people", "perturb"), [(1, "none"), (9, "none"), (3, "shuffled")])
def test_generate_refuses(people, perturb):
    with pytest.raises(ValueError, match=f"got '?{people if perturb == 'none' else perturb}"):
        generate(people, 0, 1, perturb)


def test_roles_in_every_number():
    assert Roles("hero", "villain").plural(True) == "heroes"
    assert Roles("scout", "spy").plural(False) == "spies"
    assert Roles("monkey", "witch").plural(True) == "monkeys"
    assert Roles("monkey", "witch").plural(False) == "witches"
    assert Roles("angel", "devil").a(True) == "an angel"
    assert Roles("angel", "devil").a(False) == "a devil"
    for word in ("Heroes", "hero"):
        assert Roles("hero", "villain").means_truthful(word) is True
    with pytest.raises(ValueError, match="'knight'"):
        Roles("hero", "villain").means_truthful("knight")
    with pytest.raises(ValueError, match="'liar' twice"):
        Roles("liar", "liar")


def test_saved_puzzles_load_equal(families, tmp_path):
    puzzles = [puzzle for perturb in PERTURBATIONS for puzzle in families[perturb]]
    save(puzzles, tmp_path / "puzzles.jsonl")
    loaded = load(tmp_path / "puzzles.jsonl")
    assert loaded == puzzles
    assert [puzzle.meta for puzzle in loaded] == [puzzle.meta for puzzle in puzzles]


INTRO = "Knights always tell the truth, and knaves always lie. "


def write(path, *rows, newline="\n"):
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_bytes(newline.join(lines).encode())
    return path


def row(**changes):
    return {"quiz": INTRO + "You meet Ava.", "names": ["Ava"], "solution": [True]} | changes


def test_load_is_tolerant_of_line_ends_and_keeps_what_it_does_not_know(tmp_path):
    path = write(
        tmp_path / "p.jsonl",
        "\ufeff" + json.dumps(row(index=7, level="easy")),
        "",
        "  ",
        row(),
        newline="\r\n",
    )
    first, second = load(path)
    assert first == Puzzle(INTRO + "You meet Ava.", ("Ava",), (True,), ROLES, None)
    assert first.meta == {"index": 7, "level": "easy"} and second.meta == {}


@pytest.mark.parametrize(
    ("changes", "roles"),
    [
        ({}, ROLES),
        ({"quiz": "A knight or a knave, who knows?"}, ROLES),
        ({"quiz": "Knaves always tell the truth, and knights always lie."}, ROLES.flipped()),
        (
            {"quiz": "Villains always lie, while heroes always tell the truth. Is Ava a hero?"},
            Roles("hero", "villain"),
        ),
        ({"quiz": "A saint always tells the truth; a sinner always lies."}, Roles("saint", "sinner")),
        ({"knight_knave": {"knight": "saint", "knave": "sinner"}}, Roles("saint", "sinner")),
        (
            {
                "knight_knave": {
                    "Knight": "Egoist",
                    "a_knight": "an egoist",
                    "knight": "an egoist",
                    "knave": "Altruist",
                }
            },
            Roles("egoist", "altruist"),
        ),
        ({"knight_knave": ["hero", "villain"]}, Roles("hero", "villain")),
    ],
)
def test_load_finds_the_roles(tmp_path, changes, roles):
    assert load(write(tmp_path / "p.jsonl", row(**changes)))[0].roles == roles


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{", "Expecting property name"),
        ([1], "expected an object, got list"),
        ({"quiz": "x"}, "missing names, solution"),
        (row(quiz=3), "quiz must be a text, got 3"),
        (row(quiz=" "), "quiz must be a text"),
        (row(names="Ava"), "names must be a list of texts, got 'Ava'"),
        (row(names=["Ava", 1]), "names must be a list of texts"),
        (row(names=[], solution=[]), "one or more distinct"),
        (row(names=["Ava", "Ava"], solution=[True, True]), "one or more distinct"),
        (row(solution=[1]), "solution must be a list of booleans"),
        (row(solution=[True, False]), "1 names but 2 values"),
        (row(knight_knave={"knight": "saint"}), "knight_knave must name two roles"),
        (row(knight_knave=["hero"]), "knight_knave must name two roles"),
        (row(knight_knave="hero"), "knight_knave must name two roles"),
        (row(knight_knave=["hero", "hero"]), "knight_knave must name two roles"),
        (row(quiz="Some are honest."), "does not tell what the roles are called"),
        (row(gold_statements=[["Ava", "xor", []]]), "gold_statements: form must be"),
        (row(gold_statements=[1]), "gold_statements: "),
    ],
)
def test_load_says_what_is_wrong_with_a_line(tmp_path, bad, reason):
    with pytest.raises(PuzzleError) as caught:
        load(write(tmp_path / "p.jsonl", row(), bad, row()))
    assert "1 bad line(s)\nline 2: " in str(caught.value)
    assert reason in str(caught.value)


def test_load_lists_all_bad_lines_up_to_ten(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"\xff\n" + b"\n".join([b"{", json.dumps(row()).encode()] * 12))
    with pytest.raises(PuzzleError) as caught:
        load(path)
    lines = str(caught.value).split("\n")
    assert lines[0].endswith("13 bad line(s)")
    assert "can't decode" in lines[1]
    assert [line.split(":")[0] for line in lines[1:11]] == ["line 1", *[f"line {n}" for n in range(2, 20, 2)]]
    assert lines[11:] == ["and 3 more"]


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_load_refuses_an_empty_file(tmp_path, content):
    with pytest.raises(PuzzleError, match="no puzzles"):
        load(write(tmp_path / "p.jsonl", content))


def test_the_id_is_of_the_text_alone():
    assert (
        Puzzle("x", ("Ava",), (True,)).id
        == Puzzle("x", ("Bob",), (False,)).id
        == hashlib.sha256(b"x").hexdigest()[:12]
    )
