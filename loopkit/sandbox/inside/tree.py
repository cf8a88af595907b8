"""Walking through a folder that somebody may be changing under our feet."""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress

DEEPEST = 100


class TooDeep(Exception):
    """Folders within folders, more than DEEPEST of them."""


def walk(folder: str | os.PathLike[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Every entry below `folder`: its relative path, and what lstat says of it. A folder comes before what it holds.

    Each folder is opened from the one above and never by way of a link, so nothing outside is seen. What cannot be
    opened, or is gone by then, is left out. Raises TooDeep at the end, if something was left out for that.
    """
    too_deep = False
    with ExitStack() as stack:
        levels = []

        def enter(name: str | os.PathLike[str], prefix: str) -> None:
            with suppress(OSError), ExitStack() as opening:
                above = levels[-1][1] if levels else None
                fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
                opening.callback(os.close, fd)
                entries = opening.enter_context(os.scandir(fd))
                levels.append((prefix, fd, entries, opening.pop_all()))

        stack.callback(lambda: [level[3].close() for level in levels])
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
                if len(levels) < DEEPEST:
                    enter(entry.name, f"{prefix}{entry.name}/")
                else:
                    too_deep = True
    if too_deep:
        raise TooDeep
