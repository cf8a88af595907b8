"""The folders of runs: what was made in them, and taking them away however they were left."""

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .results import MadeFile

_MAX_LISTED = 1000

Snapshot = dict[str, tuple[int, int, int]]
"""Of each regular file: size, time of change (ns), inode."""


def snapshot(folder: Path) -> Snapshot:
    """The regular files below `folder`, at most some thousands. Links are not followed."""
    found: Snapshot = {}
    todo = [os.fspath(folder)]
    while todo and len(found) < _MAX_LISTED:
        # Gone, closed by chmod, or too deep for a path: what cannot be listed is not listed.
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                info = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(info.st_mode):
                    todo.append(entry.path)
                elif stat.S_ISREG(info.st_mode):
                    found[os.path.relpath(entry.path, folder)] = (info.st_size, info.st_mtime_ns, info.st_ino)
    return found


def made_since(before: Snapshot, folder: Path) -> tuple[MadeFile, ...]:
    """The files made or changed since, by name. Names that are no text have their bytes spelled out."""
    after = snapshot(folder)
    return tuple(
        MadeFile(name=os.fsencode(name).decode("utf-8", "backslashreplace"), size=info[0])
        for name, info in sorted(after.items())
        if before.get(name) != info
    )


def delete_tree(folder: Path) -> None:
    """Remove a folder that a program may have left closed, or thousands of levels deep."""

    def open_up(function: Callable[..., Any], path: str, _: Any) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700, follow_symlinks=os.chmod not in os.supports_follow_symlinks)
            function(path)

    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder, onerror=open_up)
    if os.path.lexists(folder):  # deeper than Python's recursion goes
        subprocess.run(["rm", "-rf", "--", os.fspath(folder)], stderr=subprocess.DEVNULL, check=False)
