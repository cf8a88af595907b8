"""`loopkit sandbox …` as it is used: what it prints, and its exit codes."""

import io
import sys

import pytest

from loopkit.cli import main

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="walls are Linux's")


def test_show_names_every_protection(capsys):
    assert main(["sandbox", "show"]) == 0
    said = capsys.readouterr().out
    assert [line[:13].strip() for line in said.splitlines()] == [
        "network", "files", "processes", "system calls", "memory", "user",
    ]  # fmt: skip


@linux
def test_show_says_none_where_nothing_is(capsys):
    assert main(["sandbox", "show", "--walls"]) == 0
    assert "network      none" in capsys.readouterr().out


def test_run_prints_what_the_program_prints_and_its_value(tmp_path, capsys):
    (tmp_path / "program.py").write_text("print('out')\n6 * 7")
    assert main(["sandbox", "run", str(tmp_path / "program.py")]) == 0
    assert capsys.readouterr().out == "out\n42\n"


def test_run_takes_standard_input_and_tells_what_went_wrong(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("x = 1\nx / 0"))
    assert main(["sandbox", "run", "-"]) == 1
    assert "line 2: x / 0\nZeroDivisionError" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.StringIO("while True: pass"))
    assert main(["sandbox", "run", "-", "--seconds", "0.2"]) == 1
    assert "timeout: ended after 0." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["run", "nowhere.py"], "nowhere.py"),
        (["run", "-"], "empty code"),
        (["run", "-", "--seconds", "0"], "seconds must be"),
        (["show", "--walls", "bricks"], "'bricks'"),
        (["check", "no such program"], "no hostile program is named 'no such program'"),
    ],
)
def test_what_is_wrong_is_named(arguments, why, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(" "))
    assert main(["sandbox", *arguments]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("ls -la", 0, "allow\n"),
        ("pip install x", 3, "ask\n  `pip"),
        ("rm -rf /", 4, "refuse\n  `rm -rf /`: "),
    ],
)
def test_judge(command, code, said, capsys):
    assert main(["sandbox", "judge", command]) == code
    assert capsys.readouterr().out.startswith(said)


def test_check_lists_at_least_sixty_programs(capsys):
    assert main(["sandbox", "check", "--list"]) == 0
    *lines, blank, total = capsys.readouterr().out.splitlines()
    assert total == f"{len(lines)} programs" and len(lines) >= 60 and not blank


@linux
def test_check_runs_the_programs_that_are_named(capsys):
    from loopkit.sandbox.hostile import PROGRAMS

    names = [program.name for program in PROGRAMS if program.group == "network"][:2]
    assert main(["sandbox", "check", *names]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in names)
    assert "3 checks: 3 contained" in said  # and the clean-up
