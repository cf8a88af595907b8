"""The folders of runs: what was made in them, and taking them away however they were left."""

import contextlib
import os
import stat
from itertools import islice
from pathlib import Path

from .inside.tree import Unseen, open_folder, walk
from .inside.watch import MAX_FILES
from .results import MadeFile, readable_text

Snapshot = dict[str, tuple[int, ...]]
"""Of each regular file: size, times of change (ns), inode."""


def snapshot(folder: Path) -> Snapshot:
    """The regular files below `folder`, of the first 20,000 entries. Links are not followed."""
    found: Snapshot = {}
    with contextlib.suppress(Unseen):
        for name, info in islice(walk(folder), MAX_FILES):
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
    """Remove a folder that a program may have left closed, or thousands of levels deep.

    What cannot be removed stays: another user's files, or what lies on a disk that fails.
    """
    with contextlib.suppress(OSError):
        _empty(folder)
        os.rmdir(folder)


def _empty(folder: Path) -> None:
    # One folder is open at a time, and its way back is "..": neither paths nor descriptors run out.
    os.chmod(folder, 0o700)
    here = open_folder(folder, None)
    try:
        levels = [("", _identity(here), _empty_of_files(here))]  # name, identity, and folders still in it
        while True:
            name, _, left = levels[-1]
            if left:
                with contextlib.suppress(OSError):
                    name = left.pop()
                    os.chmod(name, 0o700, dir_fd=here)
                    here = _moved(here, name)
                    levels.append((name, _identity(here), _empty_of_files(here)))
                continue
            levels.pop()
            if not levels:
                return
            here = _moved(here, "..")
            if _identity(here) != levels[-1][1]:
                raise OSError(f"somebody moves folders while they are deleted: {folder}")
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=here)
    finally:
        os.close(here)


def _moved(here: int, name: str) -> int:
    there = open_folder(name, here)
    os.close(here)
    return there


def _identity(fd: int) -> tuple[int, int]:
    info = os.fstat(fd)
    return info.st_dev, info.st_ino


def _empty_of_files(fd: int) -> list[str]:
    """Delete what is no folder; return the folders."""
    folders = []
    with os.scandir(fd) as found:
        entries = list(found)
    for entry in entries:
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=fd)
    return folders
