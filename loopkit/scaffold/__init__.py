"""A new experiment, written from templates: it runs at once, and is there to be made one's own.

`templates/` mirrors a project. In the names of its files and in their text, NAME stands for the experiment and NN for
the number of its notebook.
"""

import keyword
import re
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".template"
LONGEST = 32


class ScaffoldError(ValueError):
    """An experiment that cannot be written; nothing was. The message names the value at fault and the remedy."""


def new_experiment(name: str, into: str | Path | None = None) -> list[Path]:
    """Write the experiment `name` into a folder, made if need be; return the files. All are new.

    Without `into` it is the current folder, which must have a folder `experiments`. Raises ScaffoldError.
    """
    _check_name(name)
    if into is None and not Path("experiments").is_dir():
        raise ScaffoldError(
            f"{Path.cwd()} has no folder `experiments`: go to the project's folder, or name one with --into"
        )
    root = Path(into or ".").expanduser().resolve()
    _check_room(name, root)
    last = max((number for _, number, _ in _notebooks(root)), default=0)
    files = {}
    for template in sorted(TEMPLATES.rglob(f"*{SUFFIX}")):
        place, text = str(template.relative_to(TEMPLATES)).removesuffix(SUFFIX), template.read_text("utf-8")
        place, text = (one.replace("NAME", name).replace("NN", f"{last + 1:02}") for one in (place, text))
        files[root / place] = text
    try:
        _write(files)
    except OSError as error:
        raise ScaffoldError(f"cannot write {error.filename or root}: {error.strerror}") from error
    return list(files)


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ScaffoldError(
            f"{name!r} will not do as a name: take lower-case letters, digits and _, beginning with a letter"
        )
    if keyword.iskeyword(name):
        raise ScaffoldError(
            f"{name!r} is a word of Python's own: take another name, such as {name}_experiment"
        )
    if len(name) > LONGEST:
        raise ScaffoldError(f"{name!r} has {len(name)} characters: take a name of at most {LONGEST}")


def _check_room(name: str, root: Path) -> None:
    """Nothing of that name may be there: neither files, nor an experiment elsewhere that Python would find instead."""
    taken = [root / "experiments" / name, root / "tests" / "experiments" / f"test_{name}.py"]
    taken += [path for path, _, said in _notebooks(root) if said == name]
    taken = [path for path in taken if path.exists()]
    import_module("experiments")
    if not taken and (spec := find_spec(f"experiments.{name}")):
        taken.append(Path(spec.origin or name))
    if taken:
        raise ScaffoldError(f"there is an experiment {name!r} already ({taken[0]}): take another name")


def _notebooks(root: Path) -> list[tuple[Path, int, str]]:
    """Those of a project that are numbered, with number and name."""
    found = [(path, re.fullmatch(r"(\d+)_(.+)", path.stem)) for path in (root / "notebooks").glob("*.ipynb")]
    return [(path, int(parts[1]), parts[2]) for path, parts in found if parts]


def _write(files: dict[Path, str]) -> None:
    """Write all files, or none: what was made is taken away again if something goes wrong."""
    with ExitStack() as undo:
        for path, text in files.items():
            missing = [folder for folder in path.parents if not folder.exists()]
            for folder in reversed(missing):
                folder.mkdir()
                undo.callback(folder.rmdir)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                undo.callback(path.unlink)
                file.write(text)
        undo.pop_all()
