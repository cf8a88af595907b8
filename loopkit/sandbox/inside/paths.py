"""What an agent's tools share: problems a model can put right, paths that stay inside, text read line by line."""

import difflib
import errno
import fnmatch
import functools
import inspect
import io
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice

WIDTH = 500
"""Characters of a line that are shown."""
NAMES = 5000
"""Names, or lines, looked through for what is similar."""
NOISE = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".ipynb_checkpoints", ".tox"}
NOISE |= {".mypy_cache", ".pytest_cache", ".ruff_cache"}
NEWLINE = re.compile(r"\r\n|\r|\n")

_KINDS = {  # of an OSError
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY), "denied"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "disk"),
    **dict.fromkeys((errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENXIO, errno.ELOOP), "not a file"),
    **dict.fromkeys((errno.ENAMETOOLONG, errno.EINVAL, errno.E2BIG), "argument"),
    errno.ENOENT: "missing",
}


class ToolProblem(Exception):
    """What the caller can put right: `kind` in a word or two, `message` in one for a model to read."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind, self.message = kind, message


def tool(function: Callable[..., dict]) -> Callable[..., dict]:
    """Check the arguments against the annotations; tell errors of the system as problems."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: object, **kwargs: object) -> dict:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ToolProblem("argument", f"{function.__name__}: {error}") from None
        for name, value in given.items():
            wanted = signature.parameters[name].annotation
            if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
                wanted = getattr(wanted, "__name__", wanted)
                raise ToolProblem("argument", f"{name} must be {wanted}, got {value!r:.100}")
            if isinstance(value, str) and re.search("[\ud800-\udfff]", value):
                raise ToolProblem("argument", f"{name} is not valid text: it holds lone surrogates")
        try:
            return function(**given)
        except OSError as error:
            where = f": {shown(os.path.relpath(error.filename))}" if error.filename else ""
            raise ToolProblem(_KINDS.get(error.errno, "system"), f"{error.strerror}{where}") from error

    return checked


def inside(path: str) -> tuple[str, str]:
    """The real path, links resolved, and the name to call it by: relative to the working folder."""
    if not path or "\0" in path:
        raise ToolProblem("argument", f"{path!r} is no path")
    real = os.path.realpath(path)
    name = _name(real)
    if name is None:
        raise ToolProblem("outside", f"{path} is outside the working folder")
    return real, shown(name)


def _name(real: str) -> str | None:
    """What a real path is called inside the working folder: None outside of it, `inputs/…` for an input."""
    root = os.path.realpath(".")
    places = [(".", root)]
    with suppress(OSError), os.scandir("inputs") as entries:  # links that the sandbox made: they may lead out
        places += [(f"inputs/{entry.name}", os.path.realpath(entry.path)) for entry in entries]
    for name, place in places:
        if os.path.commonpath([place, real]) == place:
            return os.path.normpath(os.path.join(name, os.path.relpath(real, place)))
    return None


def shown(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")  # a file name may be any bytes


@contextmanager
def text_file(path: str) -> Iterator[tuple[io.BufferedReader, str]]:
    """A regular text file, open, and its name. Never waits for the other end of a fifo."""
    real, name = inside(path)
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ToolProblem("missing", f"{name} does not exist{_similar(name)}") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise ToolProblem("not a file", f"{name} is {what}")
    with open(descriptor, "rb") as file:
        if b"\0" in os.pread(descriptor, 8192, 0):
            size = os.fstat(descriptor).st_size
            raise ToolProblem("binary", f"{name} is binary ({size} bytes)")
        yield file, name


def _similar(name: str) -> str:
    root = os.path.realpath(".")
    names = [os.path.relpath(entry.path, root) for entry in islice(find(root, "**", []), NAMES)]
    base = os.path.basename(name).lower()
    near = [found for found in names if os.path.basename(found).lower() == base]
    near += difflib.get_close_matches(name, names, 3)
    return f"; did you mean {' or '.join(map(shown, dict.fromkeys(near[:3])))}?" if near else ""


def lines_of(file: io.BufferedReader) -> Iterator[str]:
    """Lines without their ends, which are \\n, \\r\\n or \\r, as Python and editors count them."""
    for number, line in enumerate(io.TextIOWrapper(file, "utf-8", "replace")):
        yield line.removesuffix("\n") if number else line.removesuffix("\n").removeprefix("\ufeff")


def cut(line: str, around: int = 0) -> str:
    if len(line) <= WIDTH:
        return line
    begin = max(0, min(around - WIDTH // 4, len(line) - WIDTH))
    return f"{'…' * bool(begin)}{line[begin : begin + WIDTH]}… [{len(line)} characters]"


def find(root: str, pattern: str, unread: list[str]) -> Iterator[os.DirEntry]:
    """The files under `root` whose path from there matches; the folders instead, where the pattern ends with `/`.

    Links to folders are not followed, but for the inputs; links to files are found if they stay inside. Folders of NOISE
    are passed over unless the pattern names them; those that cannot be read are added to `unread`.
    """
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    names = [name for name, after in zip(names, [*names[1:], ""], strict=True) if not name == after == "**"]
    names += ["*"] * (names[-1:] == ["**"])
    parts = [None if name == "**" else re.compile(fnmatch.translate(name)).match for name in names]
    end, folders = len(parts), pattern.endswith("/")

    def reach(places: set[int]) -> set[int]:
        """How many parts may be used up: `**` may stand for no folder at all."""
        return places | {place + 1 for place in places if place < end and parts[place] is None}

    pending = [(root, reach({0}))]
    while pending:
        folder, places = pending.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            unread.append(folder)
            continue
        for entry in entries:
            if entry.name in NOISE and entry.name not in names:
                continue
            # A `**` takes this name too and stays, any other part takes it if it matches.
            after = {place for place in places if place < end and parts[place] is None}
            after |= {place + 1 for place in places - after - {end} if parts[place](entry.name)}
            after = reach(after)
            if entry.is_dir(follow_symlinks=False) or (is_input(entry) and entry.is_dir()):
                if folders and end in after:
                    yield entry
                if after - {end}:
                    pending.append((entry.path, after))
            elif not folders and end in after and _is_file(entry):
                yield entry


def is_input(entry: os.DirEntry) -> bool:
    """Whether it is one of the links that lead out by design."""
    return entry.is_symlink() and os.path.dirname(entry.path) == os.path.realpath("inputs")


def _is_file(entry: os.DirEntry) -> bool:
    if not entry.is_symlink():
        return entry.is_file(follow_symlinks=False)
    return _name(os.path.realpath(entry.path)) is not None and os.path.isfile(entry.path)
