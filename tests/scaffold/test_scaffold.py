"""A new experiment: scaffolded for real, in a folder of one's own, where its test, its batch and lint are run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopkit.notebooks import check, parameters
from loopkit.scaffold import LONGEST, TEMPLATES, ScaffoldError, new_experiment

ROOT = Path(__file__).parents[2]
NAME = "tides"


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A folder that is on nobody's path, with a new experiment in it."""
    folder = tmp_path_factory.mktemp("own")
    new_experiment(NAME, folder)
    return folder


def run(*command, cwd):
    """Runs a command outside the project, which Python finds nevertheless."""
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300)


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_its_test_is_green(own):
    test = own / "tests" / "experiments" / f"test_{NAME}.py"
    done = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test), cwd=own.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_its_batch_is_green(own, tmp_path):
    batch = own / "experiments" / NAME / "batch.yaml"
    given = ["--set", "model=simulated:oracle", "--set", "count=3", "--out", str(tmp_path / "out")]
    done = run(sys.executable, "-m", "loopkit", "batch", str(batch), *given, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    rows = {row["arm"]: row for row in summary["rows"]}
    assert {arm: (row["n"], row["correct"]) for arm, row in rows.items()} == {
        "alone": (3, 3),
        "formula": (3, 3),
    }
    assert [claim["id"] for claim in summary["claims"]] == ["formula-beats-alone"]
    assert len(list((tmp_path / "out" / "notebooks").glob("*.ipynb"))) == 2


@pytest.mark.parametrize("name", ["shore", "n" * LONGEST])
def test_it_is_formatted_and_lint_finds_nothing(tmp_path, name):
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    (tmp_path / "loopkit").symlink_to(ROOT / "loopkit")  # so that ruff knows it from other people's packages
    files = list(map(str, new_experiment(name, tmp_path)))
    for command in (["check"], ["format", "--check"]):
        python = [file for file in files if file.endswith((".py", ".ipynb"))]
        done = run(sys.executable, "-m", "ruff", *command, "--no-cache", *python, cwd=tmp_path)
        assert done.returncode == 0, done.stdout


def test_its_notebook_is_clean_and_its_parameters_are_told(own):
    (notebook,) = (own / "notebooks").glob("*.ipynb")
    assert notebook.name == f"01_{NAME}.ipynb"
    assert check(notebook) == []
    found = {one.name: one for one in parameters(notebook)}
    assert found["arm"].type == "alone | formula"
    for name, one in found.items():
        assert one.help
        assert (one.model == f"experiments.{NAME}.Params") == (name != "out")


def test_no_placeholder_is_left(own):
    for path, content in contents(own).items():
        if path.suffix != ".pyc":
            assert b"NAME" not in content and b"NN" not in content, path
    assert {path.suffix for path in TEMPLATES.rglob("*") if path.is_file()} == {".template"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "'' will not do as a name"),
        ("two words", "'two words' will not do"),
        ("2fast", "'2fast' will not do"),
        ("Tides", "'Tides' will not do.*lower-case"),
        ("_tides", "'_tides' will not do"),
        ("tidés", "'tidés' will not do"),
        ("../tides", "'../tides' will not do"),
        ("tides\n", r"'tides\\n' will not do"),
        ("class", "'class' is a word of Python's own: .*class_experiment"),
        ("n" * (LONGEST + 1), "'n+' has 33 characters: .*at most 32"),
    ],
)
def test_names_that_will_not_do(tmp_path, name, said):
    with pytest.raises(ScaffoldError, match=f"^{said}"):
        new_experiment(name, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "there",
    ["experiments/ebb", "notebooks/07_ebb.ipynb", "tests/experiments/test_ebb.py"],
)
def test_what_is_there_is_never_written_over(tmp_path, there):
    path = tmp_path / there
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(
        ScaffoldError, match=f"there is an experiment 'ebb' already .*{path.name}.*another name"
    ):
        new_experiment("ebb", tmp_path)
    assert contents(tmp_path) == {path: b"mine"}


def test_an_experiment_that_python_finds_elsewhere_is_there_already(tmp_path):
    with pytest.raises(ScaffoldError, match="there is an experiment 'knights' already"):
        new_experiment("knights", tmp_path)


def test_a_longer_name_is_another_name(tmp_path):
    new_experiment("low_ebb", tmp_path)
    assert f"{tmp_path}/notebooks/02_ebb.ipynb" in map(str, new_experiment("ebb", tmp_path))


def test_notebooks_are_numbered_on(tmp_path):
    (tmp_path / "notebooks").mkdir()
    for name in ("00_a", "04_b", "99", "x_200"):
        (tmp_path / "notebooks" / f"{name}.ipynb").touch()
    assert tmp_path / "notebooks" / "05_flood.ipynb" in new_experiment("flood", tmp_path)


@pytest.mark.parametrize("blocked", ["experiments", "notebooks", "tests"])
def test_what_cannot_be_finished_leaves_nothing(tmp_path, blocked):
    (tmp_path / blocked).write_text("a file, where a folder should be")
    with pytest.raises(ScaffoldError, match=f"cannot write .*{blocked}"):
        new_experiment("flood", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [blocked]


def test_without_a_folder_it_goes_where_experiments_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScaffoldError, match="no folder `experiments`.*--into"):
        new_experiment("flood")
    (tmp_path / "experiments").mkdir()
    files = new_experiment("flood")
    assert files and all(path.is_relative_to(tmp_path) for path in files)
