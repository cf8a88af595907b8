"""Notebooks as they are committed: without outputs, execution counts, and metadata that running or saving leaves.

What the author wrote stays: sources, cell ids, tags, attachments, and metadata that no tool writes by itself.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopkit.notebooks.reading import NotebookError, content_of, parse

if TYPE_CHECKING:
    from nbformat import NotebookNode

# Written by kernels, JupyterLab, papermill, editors and extensions: when a cell ran, what was unfolded, who had it open.
OF_NOTEBOOKS = ("celltoolbar", "execution", "papermill", "varInspector", "vscode", "widgets")
OF_CELLS = ("ExecuteTime", "collapsed", "execution", "papermill", "pycharm", "scrolled", "vscode")
# What JupyterLab writes when a cell's properties are looked at says nothing.
NOTHING: dict[str, Any] = {
    "deletable": True,
    "editable": True,
    "slideshow": {"slide_type": ""},
    "tags": [],
}


def check(path: str | Path) -> list[str]:
    """What `clean` would take out or change, a line each; empty for a clean notebook. Raises NotebookError."""
    content = content_of(Path(path))
    fresh, found = _cleaned(content, Path(path))
    if fresh != content and not found:
        found = ["not as nbformat writes it (order of keys, indent, line ends, last newline, ids of cells)"]
    return found


def clean(path: str | Path) -> bool:
    """Rewrite the notebook clean, in one step; whether there was something to do. Raises NotebookError.

    Cleaning what is clean leaves the file untouched.
    """
    path = Path(path)
    content = content_of(path)
    fresh, _ = _cleaned(content, path)
    if fresh != content:
        _replace(path, fresh)
    return fresh != content


def _cleaned(content: bytes, path: Path) -> tuple[bytes, list[str]]:
    """The clean notebook's bytes, and what was taken out."""
    from loopkit.notebooks._nbformat import nbformat

    notebook = parse(content, path)
    found = [f"notebook: {what}" for what in _clean_metadata(notebook.metadata)]
    for number, cell in enumerate(notebook.cells, start=1):
        name = f" ({cell.id})" if "id" in cell else ""
        found += [f"cell {number}{name}: {what}" for what in _clean_cell(cell)]
    text = nbformat.v4.writes(notebook) + "\n"
    try:
        return text.encode("utf-8"), found
    except UnicodeEncodeError as error:  # JSON may spell half of a character
        raise NotebookError(f"{path} holds {error.object[error.start]!r}, which is no character") from error


def _clean_metadata(metadata: "NotebookNode") -> list[str]:
    found = _take(metadata, OF_NOTEBOOKS, "metadata")
    language = metadata.get("language_info", {})  # all but the name is the kernel's and its version's
    found += _take(language, [key for key in language if key != "name"], "metadata language_info")
    kernel = metadata.get("kernelspec", {})
    if kernel.get("name") == "python3" and kernel.get("display_name") != "Python 3":
        found.append(f"metadata kernelspec: display_name {kernel.get('display_name')!r}")
        kernel["display_name"] = "Python 3"  # each machine calls it as it likes
    return found


def _clean_cell(cell: "NotebookNode") -> list[str]:
    metadata = cell.metadata
    found = _take(metadata.get("jupyter", {}), ["outputs_hidden"], "metadata jupyter")
    if found and not metadata.jupyter:
        del metadata["jupyter"]
    empty = [key for key, value in NOTHING.items() if metadata.get(key) == value]
    found += _take(metadata, [*OF_CELLS, *empty], "metadata")
    if cell.cell_type == "code":
        if cell.outputs:
            found.append("1 output" if len(cell.outputs) == 1 else f"{len(cell.outputs)} outputs")
            cell.outputs = []
        if cell.execution_count is not None:
            found.append(f"execution count {cell.execution_count}")
            cell.execution_count = None
    return found


def _take(metadata: MutableMapping[str, Any], keys: Iterable[str], where: str) -> list[str]:
    """Take the keys out that are there; one line that says which, if any."""
    there = sorted(key for key in keys if key in metadata)
    for key in there:
        del metadata[key]
    return [f"{where} {', '.join(there)}"] if there else []


def _replace(path: Path, content: bytes) -> None:
    """Put `content` in the file's place, so that whoever reads it sees the old or the new, whatever happens."""
    real = path.resolve()  # a link stays a link
    try:
        handle, part = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            shutil.copymode(real, part)
            os.replace(part, real)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as error:
        raise NotebookError(f"cannot write {path}: {error.strerror}") from error
