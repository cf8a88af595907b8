"""The calls of Linux that Python has no names for: namespaces, mounts, Landlock, capabilities, prctl.

Each raises OSError with the call's name. Numbers and structures are from the kernel's uapi headers.
"""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterable

_libc = ctypes.CDLL(None, use_errno=True)

NEW_USER, NEW_MOUNT, NEW_NET, NEW_PID = 0x10000000, 0x00020000, 0x40000000, 0x20000000
NEW_IPC, NEW_UTS = 0x08000000, 0x04000000

_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20, 0x1000, 0x4000, 0x40000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_SYS_MOUNT_SETATTR = 442
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_SYS_LANDLOCK = 444  # create_ruleset, add_rule 445, restrict_self 446


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def set_namespace(fd: int, kind: int) -> None:
    _check(_libc.setns(fd, kind), "setns")


def map_self(inside_uid: int, inside_gid: int, uid: int, gid: int) -> None:
    """Map one user and one group of a new user namespace to those this process has outside."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{inside_uid} {uid} 1"),
        ("gid_map", f"{inside_gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


# --- mounts ------------------------------------------------------------------------------------------------


def mount(kind: str, target: str, options: str = "") -> None:
    """A new tmpfs or proc, without programs that raise privileges and without devices."""
    flags = _MS_NOSUID | _MS_NODEV | (_MS_NOEXEC if kind == "proc" else 0)
    _check(
        _libc.mount(kind.encode(), os.fsencode(target), kind.encode(), flags, options.encode()),
        f"mount {kind} on {target}",
    )


def resize(target: str, size: int) -> None:
    """Give a tmpfs another size, in bytes."""
    flags = _MS_REMOUNT | _MS_NOSUID | _MS_NODEV
    _check(_libc.mount(None, os.fsencode(target), None, flags, f"size={size}".encode()), f"remount {target}")


def bind(source: str, target: str, *, writable: bool = False, devices: bool = False) -> None:
    """Show `source`, and what is mounted below it, at `target`."""
    _check(
        _libc.mount(os.fsencode(source), os.fsencode(target), None, _MS_BIND | _MS_REC, None),
        f"bind {source} on {target}",
    )
    seal(target, writable=writable, devices=devices)


def seal(target: str, *, writable: bool = False, devices: bool = False, below: bool = True) -> None:
    """Make a mount, and with `below` all mounts below it, read-only."""
    attributes = _ATTR_NOSUID | (0 if devices else _ATTR_NODEV) | (0 if writable else _ATTR_RDONLY)
    block = ctypes.create_string_buffer(struct.pack("QQQQ", attributes, 0, 0, 0), 32)
    _check(
        _libc.syscall(
            _SYS_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), _AT_RECURSIVE if below else 0, block, 32
        ),
        f"mount_setattr {target}",
    )


def make_private() -> None:
    """Let no mount made here be seen outside, nor the other way round."""
    _check(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "mount / private")


def enter_root(new_root: str) -> None:
    """Make `new_root`, a mount point, the root, and take the old one away."""
    os.chdir(new_root)
    _check(_libc.syscall(_SYS_PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
    # The old root now lies over the new one, at the same place.
    _check(_libc.umount2(b".", _MNT_DETACH), "umount the old root")
    os.chdir("/")


READ_ANYTHING = 1 << 2
"""The capability to read files and folders whatever their mode (CAP_DAC_READ_SEARCH)."""

# --- privileges --------------------------------------------------------------------------------------------


def prctl(option: int, value: int) -> None:
    _check(_libc.prctl(option, value, 0, 0, 0), f"prctl {option}")


def set_dumpable(on: bool) -> None:
    """Off: no process of the same user may look into this one. It also takes away its own /proc/self files."""
    prctl(4, int(on))


def become_subreaper() -> None:
    """Orphans below this process become its children, not init's."""
    prctl(36, 1)


def die_with_parent() -> None:
    prctl(1, 9)


def no_new_privileges() -> None:
    prctl(38, 1)


def keep_capabilities() -> None:
    """Let the next change of user leave them permitted."""
    prctl(8, 1)


def drop_capabilities(keep: int = 0) -> None:
    """Give up all privileges of root but those whose bit is set in `keep`."""
    header, kept = struct.pack("Ii", 0x20080522, 0), struct.pack("6I", keep, keep, 0, 0, 0, 0)
    _check(_libc.syscall(_SYS_CAPSET[os.uname().machine], header, kept), "capset")


# --- memory ------------------------------------------------------------------------------------------------


def collapse() -> None:
    """Put this process's private memory into huge pages: forking copies a page table entry for each, so fewer.

    Needs Linux 6.1, and does nothing elsewhere.
    """
    huge, advice = 2 << 20, 25
    _libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with contextlib.suppress(OSError), open("/proc/self/maps") as file:
        for line in file.readlines():
            places, access, _, _, inode, *name = line.split()
            if access == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
                start, end = (int(place, 16) for place in places.split("-"))
                start, end = -(-start // huge) * huge, end // huge * huge
                if end > start:
                    _libc.madvise(start, end - start, advice)


# --- Landlock ----------------------------------------------------------------------------------------------

_EXECUTE, _READ_FILE, _READ_DIR, _REFER, _TRUNCATE, _IOCTL_DEV = 1, 4, 8, 1 << 13, 1 << 14, 1 << 15
_ALL_FILE_RIGHTS_V1 = (1 << 13) - 1
_FILE_ONLY = _EXECUTE | 2 | _READ_FILE | _TRUNCATE | _IOCTL_DEV


def landlock_version() -> int:
    """The version of Landlock that this kernel offers; 0 for none."""
    return max(0, _libc.syscall(_SYS_LANDLOCK, None, 0, 1))


def landlock(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Leave this process and its children only these paths, and only their own processes to send signals to.

    What the kernel's version does not know (truncation before 3, TCP before 4, signals before 6) stays open.
    """
    version = landlock_version()
    rights = _ALL_FILE_RIGHTS_V1
    rights |= _REFER if version >= 2 else 0
    rights |= _TRUNCATE if version >= 3 else 0
    rights |= _IOCTL_DEV if version >= 5 else 0
    network = 3 if version >= 4 else 0  # bind and connect by TCP
    scoped = 3 if version >= 6 else 0  # abstract sockets, signals
    attributes = struct.pack("QQQ", rights, network, scoped)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _check(_libc.syscall(_SYS_LANDLOCK, attributes, size, 0), "landlock_create_ruleset")
    read = rights & (_EXECUTE | _READ_FILE | _READ_DIR)
    for paths, allowed in ((readable, read), (writable, rights)):
        for path in paths:
            # A path that is not there needs no rule.
            with contextlib.suppress(FileNotFoundError):
                _allow(ruleset, path, allowed)
    _check(_libc.syscall(_SYS_LANDLOCK + 2, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not os.path.isdir(path):
            rights &= _FILE_ONLY
        rule = struct.pack("=Qi", rights, fd)
        _check(_libc.syscall(_SYS_LANDLOCK + 1, ruleset, 1, rule, 0), f"landlock_add_rule {path}")
    finally:
        os.close(fd)
