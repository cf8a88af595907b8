"""The package as a whole: quick to import, and its arrows point one way."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import loopkit

ROOT = Path(loopkit.__file__).parent
LOWEST = {
    f"loopkit.{name}"
    for name in (
        "usage",
        "verdict",
        "history",
        "log",
        "journal",
        "loop",
        "gates",
        "metrics",
        "metrics.checks",
        "metrics.intervals",
        "metrics.proportions",
        "metrics.paired",
        "metrics.repeated",
        "metrics.agreement",
        "metrics.multiple",
        "metrics.power",
        "index",
        "store",
        "listing",
        "export",
        "assets",
    )
}
HEAVY = {
    "pydantic_ai",
    "plotly",
    "IPython",
    "pandas",
    "scipy",
    "ipywidgets",
    "papermill",
    "statsmodels",
    "xllamacpp",
}


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in ROOT.rglob("*.py")}


def imported(name, *, at_import=False):
    """Every module that the file of `name` imports; with `at_import` only those its import would load."""
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()

    def visit(node):
        if at_import and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            return  # for type checkers, never run
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            target = ".".join([*base, *filter(None, [node.module])])
            found.add(target)
            found.update(
                f"{target}.{alias.name}" for alias in node.names if f"{target}.{alias.name}" in MODULES
            )
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found - {name}


def below(names, room):
    return {name for name in names if name == room or name.startswith(f"{room}.")}


def loaded_by(code):
    script = f"import sys; {code}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "code",
    ["import loopkit", "from loopkit import *", "from loopkit import Loop, Threshold, Store, accuracy, metered"],
)  # fmt: skip
def test_importing_what_is_light_loads_nothing_heavy(code):
    heavy = HEAVY if "*" not in code else {"IPython", "papermill", "xllamacpp", "scipy"}
    loaded = loaded_by(code)
    assert "loopkit" in loaded
    assert not loaded & heavy


@pytest.mark.parametrize("name", sorted(LOWEST))
def test_each_module_of_the_lowest_row_is_light(name):
    assert not loaded_by(f"import {name}") & HEAVY


@pytest.mark.parametrize("module", [loopkit, import_module("loopkit.metrics"), import_module("loopkit.models"), import_module("loopkit.views"), import_module("loopkit.batch"), import_module("loopkit.notebooks")], ids=lambda module: module.__name__)  # fmt: skip
def test_every_exported_name_resolves(module):
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="nonsense"):
        module.nonsense  # noqa: B018


@pytest.mark.parametrize("name", sorted(LOWEST & set(MODULES)))
def test_the_lowest_row_imports_nothing_above_it(name):
    assert below(imported(name), "loopkit") <= LOWEST | {"loopkit"}
    assert not {other.partition(".")[0] for other in imported(name, at_import=True)} & HEAVY


@pytest.mark.parametrize("room", ["models", "sandbox", "judges", "flow", "trajectory", "notebooks"])
def test_the_middle_row_imports_neither_batches_nor_views(room):
    if not below(MODULES, f"loopkit.{room}"):
        pytest.skip(f"there is no loopkit.{room}")
    for name in below(MODULES, f"loopkit.{room}"):
        for above in ("loopkit.batch", "loopkit.views", "loopkit.cli"):
            assert not below(imported(name), above), name


def test_the_library_knows_no_experiment():
    for name in MODULES:
        assert not below(imported(name), "experiments"), name


def test_there_are_no_cycles():
    arrows = {name: {other for other in imported(name) if other in MODULES} for name in MODULES}
    # A package's front imports its rooms; importing a room runs the front, which is no arrow anyone drew.
    left = {
        name: {other for other in others if not name.startswith(f"{other}.")}
        for name, others in arrows.items()
    }
    while leaves := [name for name, others in left.items() if not others & left.keys()]:
        for name in leaves:
            del left[name]
    assert not left


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import loopkit.store as s", {"loopkit.store"}),
        ("from loopkit import store", {"loopkit", "loopkit.store"}),
        ("from . import figures", {"loopkit.views", "loopkit.views.figures"}),
        ("from ..store import Run", {"loopkit.store"}),
        ("if TYPE_CHECKING:\n import pandas", set()),
        ("def f():\n import scipy", set()),
    ],
)
def test_the_reader_of_imports_sees_all_kinds(tmp_path, monkeypatch, source, expected):
    path = tmp_path / "made_up.py"
    path.write_text(source)
    monkeypatch.setitem(MODULES, "loopkit.views.made_up", path)
    assert imported("loopkit.views.made_up", at_import=True) == expected
