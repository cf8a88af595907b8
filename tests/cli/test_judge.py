"""`loopkit judge …` as it is used: what it prints, and its exit codes."""

import json

import pytest

from loopkit.cli import main

GOOD = """---
name: boil-water
description: Boils water. Use when tea is wanted.
---
# Boil water

Fill the kettle, see [the kettles](references/kettles.md).
"""


@pytest.fixture
def skill(tmp_path, monkeypatch):
    """A good skill in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "references").mkdir()
    (tmp_path / "references" / "kettles.md").write_text("# Kettles\n")
    (tmp_path / "SKILL.md").write_text(GOOD)
    return tmp_path


@pytest.fixture
def run(capsys):
    """The exit code, what was printed, and what was complained about."""

    def call(*arguments):
        return main(["judge", "check", *arguments]), *capsys.readouterr()

    return call


def test_a_good_file_passes_every_check(skill, run):
    code, out, _ = run("SKILL.md")
    assert code == 0
    assert [line[0] for line in out.splitlines()[:-2]] == ["✓"] * 8
    assert out.endswith("\n\n8 of 8 passed\n")


def test_what_fails_is_named_with_its_places(skill, run):
    (skill / "references" / "kettles.md").unlink()
    (skill / "SKILL.md").write_text(GOOD + "\n### Deep\n\n```\n")
    code, out, _ = run("SKILL.md")
    assert code == 1
    assert (
        "✗ references_exist (veto)\n"
        "    SKILL.md:7: there is no file 'references/kettles.md' beside it: add it, or mend the path\n"
        "✗ markdown_well_formed\n"
        "    SKILL.md:9: a heading of level 3 under one of level 1\n"
        "    SKILL.md:11: a fence ``` without its end\n"
    ) in out
    assert out.endswith("6 of 8 passed\n")


def test_only_some_checks(skill, run):
    (skill / "SKILL.md").write_text("# Boil water\n")
    assert run("SKILL.md")[0] == 1
    code, out, _ = run("SKILL.md", "--only", "parses", "length")
    assert (code, out) == (0, "✓ length\n✓ parses\n\n2 of 2 passed\n")


def test_checks_from_a_file(skill, run):
    (skill / "checks.yaml").write_text("[{length: {max_words: 3, veto: true}}, front_matter]")
    code, out, _ = run("SKILL.md", "--checks", "checks.yaml")
    assert code == 1
    assert (
        out
        == "✗ length (veto)\n    SKILL.md: 21 words: at most 3 are allowed\n✓ front_matter\n\n1 of 2 passed\n"
    )


def test_as_json(skill, run):
    (skill / "SKILL.md").write_text("# Boil water\n")
    code, out, _ = run("SKILL.md", "--only", "front_matter", "length", "--json")
    assert code == 1
    problem = {"place": "SKILL.md:1", "text": "no front matter: the first line must be ---"}
    assert json.loads(out) == {
        "file": "SKILL.md",
        "share": 0.5,
        "checks": [
            {"name": "front_matter", "passed": False, "problems": [problem], "veto": True},
            {"name": "length", "passed": True, "problems": [], "veto": False},
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nowhere.md"], "nowhere.md"),
        (["picture.md"], "utf-8"),
        (["SKILL.md", "--only", "lenght"], "no check 'lenght'; there are front_matter, "),
        (["SKILL.md", "--checks", "nowhere.yaml"], "nowhere.yaml"),
        (["SKILL.md", "--checks", "broken.yaml"], "broken.yaml: "),
        (["SKILL.md", "--checks", "SKILL.txt"], "SKILL.txt: a list of checks is wanted"),
        (["SKILL.md", "--checks", "empty.yaml"], "empty.yaml: a list of checks is wanted"),
        (["SKILL.md", "--checks", "wrong.yaml"], "no check 'lenght'"),
    ],
)
def test_what_cannot_be_done_is_said(skill, run, arguments, why):
    (skill / "picture.md").write_bytes(b"\xff\xfe\x00")
    (skill / "broken.yaml").write_text("[")
    (skill / "SKILL.txt").write_text("front_matter")
    (skill / "empty.yaml").write_text("[]")
    (skill / "wrong.yaml").write_text("[lenght]")
    code, out, error = run(*arguments)
    assert (code, out) == (2, "")
    assert error.startswith("loopkit: ") and why in error
