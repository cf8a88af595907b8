"""The folders of runs: what was made in them, and taking them away however they were left."""

import contextlib
import os
import stat
from itertools import islice
from pathlib import Path

from .inside.tree import TooDeep, walk
from .results import MadeFile, readable_text

_MAX_LISTED = 20_000

Snapshot = dict[str, tuple[int, ...]]
"""Of each regular file: size, times of change (ns), inode."""


def snapshot(folder: Path) -> Snapshot:
    """The regular files below `folder`, of the first 20,000 entries. Links are not followed."""
    found: Snapshot = {}
    with contextlib.suppress(TooDeep):
        for name, info in islice(walk(folder), _MAX_LISTED):
            if stat.S_ISREG(info.st_mode):
                found[name] = (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
    return found


def made_since(before: Snapshot, folder: Path) -> tuple[MadeFile, ...]:
    """The files made or changed since, by name. Names that are no plain text have their bytes spelled out."""
    after = snapshot(folder)
    return tuple(
        MadeFile(name=_plain(name), size=info[0])
        for name, info in sorted(after.items())
        if before.get(name) != info
    )


def _plain(name: str) -> str:
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return readable_text(text.encode()).replace("\n", "\\n").replace("\t", "\\t")


def delete_tree(folder: Path) -> None:
    """Remove a folder that a program may have left closed, or thousands of levels deep. Nobody may be using it still.

    What is in the way stays: another user's files, or a disk that fails.
    """
    # A folder is moved to the top before it is emptied, so that no path gets long.
    top, mark = os.fspath(folder), os.urandom(4).hex()
    todo, emptied = [top], []
    while todo:
        path = todo.pop()
        emptied.append(path)
        entries = []
        with contextlib.suppress(OSError), os.scandir(path) as found:
            entries = list(found)
        for number, entry in enumerate(entries):
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                os.chmod(entry.path, 0o700)
                moved = f"{top}/{mark}-{len(emptied)}-{number}"
                os.rename(entry.path, moved)
                todo.append(moved)
    for path in reversed(emptied):
        with contextlib.suppress(OSError):
            os.rmdir(path)
