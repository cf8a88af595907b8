"""Reading notebooks: a valid one, or an error that names the file."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode


class NotebookError(ValueError):
    """A notebook that cannot be read or written, or lacks what was asked for. The message names the file."""


def read(path: str | Path) -> "NotebookNode":
    """The notebook in format 4. Raises NotebookError when there is none, or it is not valid."""
    return parse(content_of(Path(path)), Path(path))


def content_of(path: Path) -> bytes:
    """The bytes of a notebook's file. Raises NotebookError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotebookError(f"cannot read the notebook {path}: {error.strerror}") from error


def parse(content: bytes, path: Path) -> "NotebookNode":
    """The notebook that `content` holds; `path` is for the error. Cells without an id of their own are given one."""
    from loopkit.notebooks._nbformat import nbformat

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nbformat's, about the ids
            notebook = nbformat.convert(nbformat.reader.reads(content.decode("utf-8")), 4)
            nbformat.validate(notebook)
    except (AttributeError, KeyError, TypeError) as error:  # nbformat looked for a notebook's parts
        raise NotebookError(f"cannot read the notebook {path}: it is JSON, but no notebook") from error
    except Exception as error:  # there are many ways not to be one, and nbformat lets all through
        said = (str(error).splitlines() or [""])[0][:200]
        raise NotebookError(f"cannot read the notebook {path}: {type(error).__name__}: {said}") from error
    return notebook


def notebooks_in(paths: Iterable[str | Path]) -> list[Path]:
    """The notebooks that `paths` stand for: a folder for all in it that are not hidden, anything else for itself.

    Raises NotebookError for a folder without a notebook.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [one for one in path.rglob("*.ipynb") if not _hidden(one.relative_to(path))]
            if not inside:
                raise NotebookError(f"no notebook in {path}")
            found += sorted(inside)
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def _hidden(path: Path) -> bool:
    """Such as the copies in `.ipynb_checkpoints`."""
    return any(part.startswith(".") for part in path.parts)
