"""Notebooks as they are committed, or scaffolded: clean, parameterised, their parameters checked. Those that teach also run."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from pydantic import ValidationError

from loopkit.notebooks import check, experiments_beside
from loopkit.scaffold import new_experiment

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
NEW = Path("what `loopkit new` writes")


@pytest.fixture(scope="module")
def scaffolded(tmp_path_factory):
    """A notebook fresh from `loopkit new experiment`; its experiment can be imported."""
    written = new_experiment("brand_new", tmp_path_factory.mktemp("own"))
    (path,) = [path for path in written if path.suffix == ".ipynb"]
    experiments_beside(path)
    return path


@pytest.fixture(params=[*NOTEBOOKS, NEW], ids=lambda path: path.stem)
def path(request):
    return request.getfixturevalue("scaffolded") if request.param == NEW else request.param


@pytest.fixture
def notebook(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tagged(notebook):
    return [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]


def parameters(notebook):
    """The names and values that the parameters cell assigns."""
    return {
        line.targets[0].id: ast.literal_eval(line.value)
        for line in ast.parse(tagged(notebook)[0].source).body
    }


def params_of(notebook):
    """The class that validates a notebook's parameters: imported by its second cell, or defined there."""
    lines = ast.parse(code_cells(notebook)[1].source).body
    for line in lines:
        if isinstance(line, ast.ImportFrom) and any(alias.name == "Params" for alias in line.names):
            return import_module(line.module).Params
    own = [line for line in lines if isinstance(line, ast.Import | ast.ImportFrom | ast.ClassDef)]
    namespace = {"__name__": "notebook"}
    exec(compile(ast.Module(own, []), "notebook", "exec"), namespace)
    return namespace["Params"]


def test_there_are_notebooks():
    assert NOTEBOOKS


def test_is_committed_as_if_never_run(path, notebook):
    assert check(path) == []
    assert notebook.metadata.kernelspec.name == "python3"


def test_parameters_are_plain_assignments_of_literals(notebook):
    (cell,) = tagged(notebook)
    assert cell is code_cells(notebook)[0]
    lines = ast.parse(cell.source).body
    assert lines
    for line in lines:
        assert isinstance(line, ast.Assign), ast.unparse(line)
        assert [type(target) for target in line.targets] == [ast.Name], ast.unparse(line)
        ast.literal_eval(line.value)
    assert len(parameters(notebook)) == len(lines), "each name once"
    assert "out" in parameters(notebook)


def test_parameters_are_validated_before_anything_else(notebook):
    checking = code_cells(notebook)[1].source
    calls = [node for node in ast.walk(ast.parse(checking)) if isinstance(node, ast.Call)]
    (call,) = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "Params"]
    handed = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    names = set(parameters(notebook)) - {"out"}
    assert handed == {name: name for name in names}, "every parameter, under its own name"
    ran = "\n".join(ast.unparse(line) for line in ast.parse(checking).body)
    assert " run(" not in ran.partition("Params(")[0]


def test_default_parameters_are_good_and_there_are_no_others(notebook):
    params = params_of(notebook)
    given = {name: value for name, value in parameters(notebook).items() if name != "out"}
    assert set(given) == set(params.model_fields)
    assert params(**given)


def test_bad_parameters_are_refused(notebook):
    params = params_of(notebook)
    given = {name: value for name, value in parameters(notebook).items() if name != "out"}
    with pytest.raises(ValidationError, match="unknown model 'gpt'"):
        params(**given | {"model": "gpt"})
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        params(**given, temperature=1)
    for name in [name for name, value in given.items() if isinstance(value, int)]:
        for bad in (-1, True, "many"):
            with pytest.raises(ValidationError, match=name):
                params(**given | {name: bad})


def test_awaits_instead_of_running_an_event_loop_within_one(notebook):
    for cell in code_cells(notebook):
        assert "run_sync" not in cell.source
        assert "asyncio.run" not in cell.source
        compile(cell.source, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_begins_with_a_title_and_names_no_machine(notebook):
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    for cell in notebook.cells:
        assert not [place for place in ("/home/", "/Users/", "/tmp/", "C:\\") if place in cell.source]


# --- the notebooks that teach: run, and asked about what they teach -------------------------------------

SMALL = {
    "00_the_loop": {"model": "simulated:random", "turns": 4},
    "01_flows": {"model": "simulated:random", "walks": 3},
}
EXPERIMENTS = {
    "03_judges": {"model": "simulated:fair-judge", "count": 3, "calibrated": 2},
    "04_code_aided_math": {"model": "simulated:random", "count": 2, "max_iterations": 2},
}


def read(name):
    return nbformat.read(NOTEBOOKS[0].parent / f"{name}.ipynb", as_version=4)


async def play(name, out, **given):
    """Run every cell in this process, as a kernel would; return what the notebook's names stand for."""
    namespace = {"__name__": "notebook"}
    with pd.option_context("display.max_colwidth", None):
        for cell in code_cells(read(name)):
            code = compile(cell.source, f"{name}, {cell.id}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            if inspect.isawaitable(waiting := eval(code, namespace)):
                await waiting
            if "parameters" in cell.metadata.get("tags", []):
                namespace |= SMALL[name] | given | {"out": str(out)}
    return namespace


@pytest.mark.parametrize(
    ("name", "given"),
    [*SMALL.items(), *(pytest.param(*one, marks=pytest.mark.slow) for one in EXPERIMENTS.items())],
)
def test_runs_in_a_kernel_without_a_word_on_stderr(name, given, tmp_path):
    from loopkit.batch._papermill import papermill

    folder = NOTEBOOKS[0].parent
    ran = papermill.execute_notebook(
        folder / f"{name}.ipynb", tmp_path / "ran.ipynb", parameters=given | {"out": str(tmp_path)},
        cwd=folder, progress_bar=False, execution_timeout=120, store_widget_state=False,
    )  # fmt: skip
    outputs = [output for cell in code_cells(ran) for output in cell.outputs]
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    said = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
    assert "simulated" in "".join(said).lower(), "what is simulated says so"


@pytest.mark.parametrize("name", SMALL)
async def test_runs_again_over_the_same_folder_with_a_model_that_only_fails(name, tmp_path):
    for policy in ("empty", "malformed"):
        await play(name, tmp_path, model=f"simulated:{policy}")
    assert len(list(tmp_path.glob("*/*"))) == 2, "records of each time, none overwritten"


async def test_the_loop_shows_what_it_says(tmp_path, capsys):
    seen = await play("00_the_loop", tmp_path)
    said = capsys.readouterr().out

    doors = {
        name: (run.stopped_by.gate, len(run.history), run.best.score) for name, run in seen["runs"].items()
    }
    assert doors == {
        "section 1": ("Threshold", 38, 26),
        "at most 10 turns": ("MaxIterations", 10, 23),
        "patience 12": ("Stagnation", 24, 24),  # and 14 turns short of a perfect card
    }
    longest = [turn.candidate for turn in seen["runs"]["section 1"].history]
    for run in seen["runs"].values():
        assert [turn.candidate for turn in run.history] == longest[: len(run.history)]
    assert "no gate bounds this loop" in said

    astray = seen["astray"]
    assert astray.history[-1].score < astray.best.score
    assert {turn.error.kind: turn.error.typed for turn in astray.history if turn.error} == {
        "too long": True,
        "TypeError": False,
    }
    assert seen["decided"] == {
        "maximise": ["keep", *["discard"] * 5, "120 s"],
        "minimise": ["keep", "keep", "keep", "discard", "keep", "keep", "79 s"],
        "minimise, floor 5 s": ["keep", "keep", "discard", "discard", "keep", "discard", "80 s"],
    }

    assert seen["asked"].stopped_by.gate == "MaxIterations" and seen["asked"].usage.calls == 3
    assert seen["flatterer"].stopped_by.gate == "Stagnation"
    assert re.search(r"^ *\d+ +if stop:$", said, re.MULTILINE), "the lines of Loop.run are shown"


async def test_the_loop_repeats_nothing_when_it_is_resumed(tmp_path, capsys):
    seen = await play("00_the_loop", tmp_path)
    said = capsys.readouterr().out
    turns, store = len(seen["night"].history), seen["store"]
    assert seen["before"] == {"propose": 7, "execute": 7, "judge": 6}
    assert seen["calls"] == {"propose": turns, "execute": turns + 1, "judge": turns}
    steps = [(event["iteration"], event["phase"]) for event in store.run("night").all("step")]
    assert len(steps) == len(set(steps)) == 3 * turns
    assert seen["night"].history[-1].candidate == seen["runs"]["patience 12"].history[-1].candidate

    runs = store.runs_df().set_index("run")
    assert (runs["parent"].dropna() == "night").all()
    assert runs.loc["patient-1", ["iterations", "stopped_by", "best_score"]].tolist() == [38, "Threshold", 26]
    assert runs.loc["night", ["iterations", "stopped_by", "best_score"]].tolist() == [24, "Stagnation", 24]

    noticed = dict(
        re.findall(r"^(untouched, .*?|one byte, .*?|end torn off, .*?): (.*)$", said, re.MULTILINE)
    )
    quiet = {"untouched, listed", "end torn off, read"}
    assert {what for what, reply in noticed.items() if reply == "nothing noticed"} == quiet
    assert "was changed" in noticed["one byte, read"] and "was changed" in noticed["one byte, resumed"]
    assert "some are missing" in noticed["end torn off, listed"]
    night = store.path("night").read_bytes()
    forged = night.replace(seen["score"], b'"score":26.0', 1)
    assert sum(one != other for one, other in zip(night, forged, strict=True)) == 1, "a single byte"


async def test_flows_shows_what_it_says(tmp_path, capsys):
    seen = await play("01_flows", tmp_path)
    said = capsys.readouterr().out
    for problem in (
        "nothing bounds the cycle develop → review → develop",
        "goto: there is no step 'reviewer'",
        "output.verdict is never 'aproved'",
        "unknown field 'max_iteration'",
        "step 'review' leads nowhere when output.verdict is 'unsure'",
    ):
        assert re.search(rf"^ +flow:\d+:\d+: {re.escape(problem)}", said, re.MULTILINE), problem

    counters = seen["day"].counters
    assert seen["day"].status == "done" and not counters.limits
    assert (counters.polls_without_model, counters.polls.total()) == (8, 9)
    assert counters.advice == {"followed": 1, "refused": 1}
    assert "refused: 'merge' is not in the recover list of 'test'" in said

    stuck = seen["stuck"]
    assert stuck.counters.limits == {"review_cycle": 1} and stuck.counters.cancelled == 1
    assert stuck.path[-2:] == ["review", "ask_person"] and stuck.status == "failed"

    verdicts = re.findall(r"^(passed|FAILED)  (.*): test_(\w+)$", said, re.MULTILINE)
    failed = [rest for verdict, *rest in verdicts if verdict == "FAILED"]
    assert len(verdicts) == 4 and failed == [["an edited one", "nothing_is_merged_without_approval"]]
    assert sum(seen["ends"].values()) == 3


async def test_flows_waits_for_a_person_and_repeats_nothing_when_it_is_resumed(tmp_path, capsys):
    seen = await play("01_flows", tmp_path)
    said = capsys.readouterr().out
    waiting, printed = seen["waiting"], seen["printed"]
    assert (waiting.status, waiting.question.step, waiting.usage.calls) == ("waiting", "editor", 3)
    assert "refused: editor: decision: " in said
    assert printed.status == "done" and printed.path == [*waiting.path, "editor"]
    assert "checks done again: 0; model calls: 3, as before" in said

    assert seen["first"] == {"knead": 1, "look": 3}
    assert seen["calls"] == {"knead": 1, "look": 6, "taste": 1}
    looks = [event["phase"] for event in seen["store"].run(seen["loaf"]).all("step")]
    assert looks.count("poll") == 6 and looks.count("code") == 2
