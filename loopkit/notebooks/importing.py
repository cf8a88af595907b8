"""The pydantic `Params` that checks a notebook's parameters, had without executing the notebook.

A notebook imports it from its experiment (`from experiments.knights import Params`) or defines it (`class Params`).
Of its top-level statements only those that bind this name are executed, with those that bind what they need in turn.
"""

import ast
import linecache
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from loopkit.notebooks.reading import NotebookError, read

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from pydantic import BaseModel

IMPORTS = ast.Import | ast.ImportFrom
DEFINITIONS = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
ASSIGNMENTS = ast.Assign | ast.AnnAssign


def params_model(path: str | Path) -> "type[BaseModel] | None":
    """The class `Params` that the notebook imports or defines; None where it does neither.

    Raises NotebookError when the notebook cannot be read, or `Params` cannot be had or is no pydantic model.
    """
    from pydantic import BaseModel

    path = Path(path)
    lines = _needed("Params", _statements(read(path), path))
    if not lines:
        return None
    source = "\n".join(map(ast.unparse, lines)) + "\n"
    name = f"<{path.name}>"
    # pydantic reads the docstrings under fields from the source, which it looks for here.
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"__name__": path.stem}
    try:
        with _imports_of(path):
            exec(compile(source, name, "exec"), namespace)
    except Exception as error:  # whatever the notebook's own code raises
        raise NotebookError(f"cannot load the Params of {path}: {type(error).__name__}: {error}") from error
    model = namespace["Params"]
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise NotebookError(f"the Params of {path} is no pydantic model: {model!r:.100}")
    return model


def experiments_beside(notebook: Path) -> Path | None:
    """The nearest folder `experiments` above a notebook, whose experiments can be imported from now on, if any.

    They stand behind those that Python finds by itself, as they do in the notebook's kernel.
    """
    beside = (folder / "experiments" for folder in notebook.resolve().parents)
    found = next((folder for folder in beside if folder.is_dir()), None)
    package = import_module("experiments")  # comes with loopkit
    if found and found not in (Path(folder).resolve() for folder in package.__path__):
        package.__path__.append(str(found))
    return found


@contextmanager
def _imports_of(notebook: Path) -> Iterator[None]:
    """Modules are found as the notebook's kernel finds them: those beside the notebook first."""
    experiments_beside(notebook)
    folder = str(notebook.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _statements(notebook: "NotebookNode", path: Path) -> list[ast.stmt]:
    """The top-level statements of all code cells."""
    lines: list[ast.stmt] = []
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "code":
            try:
                lines += _parsed(cell.source)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                raise NotebookError(f"{path}, cell {number}, is not Python: {error}") from error
    return lines


def _parsed(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except SyntaxError:  # with `%magic` and `!shell` as the calls that they stand for
        from IPython.core.inputtransformer2 import TransformerManager

        return ast.parse(TransformerManager().transform_cell(source)).body


def _needed(name: str, lines: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Those of `lines` that bind `name`, and those that bind a name used by one of them, and so on; in order."""
    bound = [(line, _bound(line)) for line in lines if isinstance(line, IMPORTS | DEFINITIONS | ASSIGNMENTS)]
    wanted, todo, kept = set(), {name}, set()
    while todo:
        wanted |= todo
        new = {index for index, (_, names) in enumerate(bound) if names & todo} - kept
        kept |= new
        todo = {name for index in new for name in _names(bound[index][0], ast.Load)} - wanted
    return [bound[index][0] for index in sorted(kept)]


def _bound(line: ast.stmt) -> set[str]:
    """The names that a statement binds."""
    if isinstance(line, IMPORTS):
        return {alias.asname or alias.name.partition(".")[0] for alias in line.names}
    return {line.name} if isinstance(line, DEFINITIONS) else _names(line, ast.Store)


def _names(line: ast.stmt, context: type[ast.expr_context]) -> set[str]:
    """The names that stand in a statement to be read (`ast.Load`), or to be bound (`ast.Store`)."""
    names = (node for node in ast.walk(line) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, context)}
