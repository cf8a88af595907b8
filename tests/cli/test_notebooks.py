"""`loopkit params` and `loopkit notebooks …`: what they print, and their exit codes."""

import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from loopkit.cli import main

ROOT = Path(__file__).parents[2]
KNIGHTS = ROOT / "notebooks" / "02_constraint_solving.ipynb"


def run(capsys, *arguments):
    """The exit code, and what was printed on standard output and on standard error."""
    return main(list(map(str, arguments))), *capsys.readouterr()


@pytest.fixture
def folder(tmp_path):
    """Two notebooks: one clean, one that was run."""
    for name, outputs in (("clean", []), ("run", [new_output("stream", text="hi")])):
        cell = new_code_cell("print('hi')", id="hello", outputs=outputs)
        nbformat.write(new_notebook(cells=[cell]), tmp_path / f"{name}.ipynb")
    return tmp_path


@pytest.mark.parametrize("command", ["params", "notebooks", "new"])
def test_help_has_examples_and_every_exit_code(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"examples:\n  loopkit {command} " in out
    assert "Exit codes: 0 " in out and "2 " in out.partition("Exit codes")[2]
    for word in out.split():
        if word.startswith("notebooks/") and word.endswith(".ipynb"):
            assert (ROOT / word).is_file(), word


def test_params_prints_types_defaults_and_help(capsys):
    code, out, err = run(capsys, "params", KNIGHTS)
    assert (code, err) == (0, "")
    lines = {line.split()[0]: " ".join(line.split()) for line in out.splitlines() if line.strip()}
    assert lines["name"] == "name type default help"
    assert lines["count"].startswith("count int 1 to 10000 3 (in a batch 5) Generated puzzles")
    assert lines["seed"] == "seed int >= 0 1 Of the generated puzzles."
    assert lines["arm"].startswith("arm reasoning | program | sentence | clauses 'clauses'")
    assert lines["checked"] == "checked by experiments.knights.Params"


def test_params_for_machines(capsys):
    code, out, _ = run(capsys, "params", KNIGHTS, "--json")
    assert code == 0
    told = {one["name"]: one for one in json.loads(out)["parameters"]}
    assert told["people"]["schema"]["pattern"] == "^[2-8](-[2-8])?$"
    assert (told["people"]["default"], told["data"]["default"], told["count"]["default"]) == ("2-5", None, 3)
    assert told["out"]["schema"] is None


def test_params_of_no_notebook(capsys, tmp_path):
    code, out, err = run(capsys, "params", tmp_path / "none.ipynb")
    assert (code, out) == (2, "")
    assert err == f"loopkit: cannot read the notebook {tmp_path / 'none.ipynb'}: No such file or directory\n"


def test_check_lists_and_clean_mends(capsys, folder):
    code, out, err = run(capsys, "notebooks", "check", folder)
    assert (code, err) == (1, "")
    assert out.splitlines()[:2] == [f"{folder / 'run.ipynb'}", "  cell 1 (hello): 1 output"]
    assert f"not clean: 1 of 2. Clean with: loopkit notebooks clean {folder / 'run.ipynb'}" in out
    untouched = (folder / "clean.ipynb").stat()

    assert run(capsys, "notebooks", "clean", folder) == (
        0,
        f"cleaned {folder / 'run.ipynb'}\n2 notebooks, all clean\n",
        "",
    )
    assert run(capsys, "notebooks", "check", folder) == (0, "2 notebooks, all clean\n", "")
    assert (folder / "clean.ipynb").stat().st_mtime_ns == untouched.st_mtime_ns


@pytest.mark.parametrize(("action", "mended"), [("check", False), ("clean", True)])
def test_a_broken_notebook_is_named_and_the_others_are_seen_to(capsys, folder, action, mended):
    (folder / "broken.ipynb").write_text("{}")
    code, out, err = run(capsys, "notebooks", action, folder)
    assert code == 2
    assert err.startswith(f"loopkit: cannot read the notebook {folder / 'broken.ipynb'}: ")
    assert err.count("\n") == 1
    assert str(folder / "run.ipynb") in out
    assert (run(capsys, "notebooks", "check", folder / "run.ipynb")[0] == 0) == mended


def test_hidden_folders_are_left_out_and_an_empty_one_is_wrong(capsys, folder):
    hidden = folder / ".ipynb_checkpoints"
    hidden.mkdir()
    (folder / "run.ipynb").rename(hidden / "run-checkpoint.ipynb")
    assert run(capsys, "notebooks", "check", folder)[:2] == (0, "1 notebook, all clean\n")
    (folder / "clean.ipynb").unlink()
    assert run(capsys, "notebooks", "check", folder) == (2, "", f"loopkit: no notebook in {folder}\n")


def test_the_default_is_the_folder_of_notebooks(capsys, folder, monkeypatch):
    monkeypatch.chdir(folder)
    code, _, err = run(capsys, "notebooks", "check")
    assert (code, err) == (2, "loopkit: cannot read the notebook notebooks: No such file or directory\n")
    (folder / "notebooks").mkdir()
    (folder / "run.ipynb").rename(folder / "notebooks" / "run.ipynb")
    assert run(capsys, "notebooks", "check")[0] == 1
