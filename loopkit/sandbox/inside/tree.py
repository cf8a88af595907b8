"""Walking through a folder that somebody may be changing under our feet."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress

DEEPEST = 100


class Unseen(Exception):
    """There are folders within folders, more than DEEPEST of them, or folders of ours that are closed to us."""


def open_folder(name: str | os.PathLike[str], above: int | None) -> int:
    """A descriptor of a folder in the folder `above`, if it is one and no link."""
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)


def walk(folder: str | os.PathLike[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Every entry below `folder`: its relative path, and what lstat says of it. A folder comes before what it holds.

    Each folder is opened from the one above and never by way of a link, so nothing outside is seen. What cannot be
    opened, or is gone by then, is left out. Raises Unseen at the end, if somebody may hide something.
    """
    unseen = False
    with ExitStack() as stack:
        levels = []

        def enter(name: str | os.PathLike[str], prefix: str) -> bool:
            """False if it is there and cannot be looked into."""
            if len(levels) == DEEPEST:
                return False
            with suppress(FileNotFoundError, NotADirectoryError), ExitStack() as opening:
                above = levels[-1][1] if levels else None
                fd = open_folder(name, above)
                opening.callback(os.close, fd)
                entries = opening.enter_context(os.scandir(fd))
                levels.append((prefix, fd, entries, opening.pop_all()))
            return True

        stack.callback(lambda: [level[3].close() for level in levels])
        with suppress(OSError):
            enter(folder, "")
        while levels:
            prefix, _, entries, opened = levels[-1]
            try:
                entry = next(entries)
                info = entry.stat(follow_symlinks=False)
            except StopIteration:
                levels.pop()
                opened.close()
                continue
            except OSError:
                continue
            yield prefix + entry.name, info
            if stat.S_ISDIR(info.st_mode):
                try:
                    entered = enter(entry.name, f"{prefix}{entry.name}/")
                except OSError as error:  # ELOOP: a link has taken its place
                    entered = error.errno == errno.ELOOP
                unseen |= not entered and info.st_uid == os.geteuid()
    if unseen:
        raise Unseen
