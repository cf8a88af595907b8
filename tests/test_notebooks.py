"""Notebooks as they are committed: clean, parameterised, their parameters checked."""

import ast
from importlib import import_module
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


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


def test_there_are_notebooks():
    assert NOTEBOOKS


def test_is_valid(notebook):
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"


def test_is_committed_as_if_never_run(notebook):
    for cell in code_cells(notebook):
        assert cell.outputs == []
        assert cell.execution_count is None
        assert "execution" not in cell.metadata
    assert "widgets" not in notebook.metadata
    assert "papermill" not in notebook.metadata


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
    imports = [
        node
        for node in ast.walk(ast.parse(code_cells(notebook)[1].source))
        if isinstance(node, ast.ImportFrom) and any(alias.name == "Params" for alias in node.names)
    ]
    params = import_module(imports[0].module).Params
    given = {name: value for name, value in parameters(notebook).items() if name != "out"}
    assert set(given) == set(params.model_fields)
    assert params(**given)


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
