"""What /proc and the file system tell about the processes of a run; nothing where there is no /proc."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .tree import Unseen, walk

MAX_FILES = 20_000
_HERTZ = os.sysconf("SC_CLK_TCK")
# Flags of a process: past its last instruction; forked, and no new program since.
_EXITING, _NOT_EXECUTED = 0x4, 0x40
_HIDDEN = 1 << 62
"""Bytes of files that cannot be looked at."""
_OF_MEMORY = (b"RssAnon:", b"RssShmem:", b"VmSwap:")
_SHARES = (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:")


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    flags: int
    cpu: float
    """Seconds, with those of the children that it has waited for."""
    threads: int


def process(pid: str) -> Process | None:
    """What /proc/<pid>/stat says, or of a thread /proc/<pid>/task/<id>/stat; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    ticks = sum(map(int, fields[11:15]))
    return Process(
        int(pid.rpartition("/")[2]), int(fields[1]), int(fields[6]), ticks / _HERTZ, int(fields[17])
    )


def all_others() -> list[Process]:
    """Every process of this process table but this one."""
    me = str(os.getpid())
    found = (process(name) for name in os.listdir("/proc") if name.isdigit() and name != me)
    return [one for one in found if one]


def below(pid: int) -> list[Process]:
    """The processes that come from `pid`, found by their parents."""
    children: dict[int, list[Process]] = {}
    for name in _listed("/proc"):
        if name.isdigit() and (one := process(name)):
            children.setdefault(one.parent, []).append(one)
    found, todo = [], [pid]
    while todo:
        new = children.get(todo.pop(), [])
        found += new
        todo += [one.pid for one in new]
    return found


def threads_of(user: int) -> int:
    """How many threads a user has on this machine."""
    total = 0
    for name in _listed("/proc"):
        with suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user and (one := process(name)):
                total += one.threads
    return total


def exiting(group: Iterable[Process]) -> bool:
    """Whether no thread of these can run another instruction."""
    for one in group:
        if not one.flags & _EXITING:
            return False
        with suppress(OSError):
            threads = (process(f"{one.pid}/task/{name}") for name in _listed(f"/proc/{one.pid}/task"))
            if any(thread and not thread.flags & _EXITING for thread in threads):
                return False
    return True


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


# --- memory ------------------------------------------------------------------------------------------------


def held(pid: int) -> int:
    """Bytes of memory that are not a file's. What is shared with the process it was forked from counts, too."""
    return _sum(f"/proc/{pid}/status", _OF_MEMORY)


def share(pid: int, otherwise: int) -> int:
    """The same, each page divided by the number of processes that have it; slower. `otherwise`: where that is not told."""
    try:
        return _sum(f"/proc/{pid}/smaps_rollup", _SHARES)
    except PermissionError:
        return otherwise


def added(group: Iterable[Process], loaded: int, enough: int) -> int:
    """Bytes that the processes hold together, without the `loaded` bytes that each was forked with.

    Up to a `loaded` too few at times, but never more than there are.
    """
    each = [(one, held(one.pid)) for one in group]
    if sum(size for _, size in each) - loaded > enough:
        # It matters: which of the pages do they share with each other?
        shares = [(one, share(one.pid, size)) for one, size in each]
        if any(size for _, size in shares):  # kernels before 5.4 do not tell
            each, loaded = shares, loaded // (len(each) + 1)  # shared with who forked them, at least
    return sum(max(0, size - loaded * bool(one.flags & _NOT_EXECUTED)) for one, size in each)


def _sum(path: str, names: tuple[bytes, ...]) -> int:
    total = 0
    with suppress(FileNotFoundError, ProcessLookupError), open(path, "rb") as file:
        for line in file:
            if line.startswith(names):
                total += int(line.split()[1]) << 10
    return total


# --- disk --------------------------------------------------------------------------------------------------


def stored(folder: str, most: float) -> tuple[int, int]:
    """Bytes on disk, and number of entries, below `folder`. Counted up to `most` entries; hidden ones are too many."""
    size = count = 0
    try:
        for count, (_, info) in enumerate(walk(folder), 1):
            size += 0 if stat.S_ISDIR(info.st_mode) else info.st_blocks * 512
            if count > most:
                break
    except Unseen:
        count += MAX_FILES
    return size, count


def deleted(group: Iterable[Process], file_size: int, memory: set[int]) -> int:
    """Bytes of the files without a name that are still open, or mapped: of those no size is known but the limit's.

    `memory`: devices that do not count here, since they lie in memory.
    """
    opened: dict[Any, int] = {}
    mapped = set()
    for one in group:
        try:
            descriptors = os.listdir(f"/proc/{one.pid}/fd")
        except PermissionError:  # it has hidden itself, unless it is ending
            now = process(str(one.pid))
            if now and not now.flags & _EXITING:
                return _HIDDEN
            continue
        except OSError:
            continue
        for fd in descriptors:
            with suppress(OSError):
                info = os.stat(f"/proc/{one.pid}/fd/{fd}")
                if stat.S_ISREG(info.st_mode) and not info.st_nlink and info.st_dev not in memory:
                    opened[info.st_ino] = info.st_blocks * 512
        with suppress(OSError), open(f"/proc/{one.pid}/maps", "rb") as file:
            for line in file:
                if line.endswith(b" (deleted)\n"):
                    _, _, _, device, inode, name = line.split(None, 5)
                    major, _, minor = device.partition(b":")
                    if (
                        name != b"/dev/zero (deleted)\n"
                        and os.makedev(int(major, 16), int(minor, 16)) not in memory
                    ):
                        mapped.add(int(inode))
    return sum(opened.values()) + file_size * len(mapped - opened.keys())
