"""The walls around a program, from the outermost: what the zygote builds once, the warden per run, the program for itself.

With namespaces (a user namespace where the host is no root): a root directory that holds only the Python installation,
system libraries and the run's folder; no network; a process table of its own, which dies as a whole. Without them:
Landlock for files and signals, a filter of system calls for the network. What is in force is reported, never assumed.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from . import NOBODY, NONE, kernel, seccomp
from .watch import MAX_FILES

INSIDE = 1000
"""The user that programs run as within a user namespace."""

# What a Python program may need of the system. Never /etc as a whole, never anything of a user.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/etc/ld.so.cache",
           "/etc/alternatives", "/etc/localtime", "/etc/mime.types")  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SCRATCH = ("/tmp", "/dev/shm")
"""Folders that each run has for itself, in memory. With namespaces only."""


@dataclass(frozen=True)
class Walls:
    """What programs may see, and what keeps them in. Only `survey` sets the latter."""

    home: str
    """The folder that holds the folders of the runs."""
    folder: str | None
    """One folder that all runs share, or None."""
    inputs: dict[str, str] = field(default_factory=dict)
    readable: list[str] = field(default_factory=list)
    """Folders of the Python installation."""

    namespaces: bool = False
    landlock: int = 0
    """Its version; 0 for none."""
    seccomp: bool = False
    drop_user: bool = False
    """Whether programs run as NOBODY, in the place of root."""

    def report(self) -> dict[str, str]:
        """What is in force, for a person to read; NONE where nothing is."""
        network = ["namespace"] * self.namespaces + ["seccomp"] * self.seccomp
        if self.namespaces:
            files, processes = "mount namespace", "process namespace"
        else:
            files = f"Landlock {self.landlock}" if self.landlock else NONE
            processes = "Landlock, watched" if self.landlock >= 6 else NONE
        return {
            "network": ", ".join(network) or NONE,
            "files": files,
            "processes": processes,
            "system calls": "seccomp" if self.seccomp else NONE,
            "memory": "rlimit, watched" if sys.platform.startswith("linux") else NONE,
            "user": "nobody" if self.drop_user else "without privileges" if os.geteuid() else NONE,
        }

    # --- in the zygote, once -----------------------------------------------------------------------------------

    def build(self) -> int | None:
        """Leave the host's namespaces and its files. Forks: the process that called waits and ends with the other.

        Returns a descriptor of the process table, which is to be the current one again after each fork into another.
        """
        if self.seccomp:
            seccomp.compiled(attributes=self._attributes)
        if not self.namespaces:
            return None
        uid, gid = os.geteuid(), os.getegid()
        spaces = kernel.NEW_MOUNT | kernel.NEW_NET | kernel.NEW_IPC | kernel.NEW_UTS | kernel.NEW_PID
        kernel.unshare(spaces | (kernel.NEW_USER if uid else 0))
        if uid:
            kernel.map_self(INSIDE, INSIDE, uid, gid)
        # A process table of our own: an ordinary user could not come back to the host's. And when we end, all end.
        _go_on_as_child()
        kernel.make_private()
        own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        root = os.path.join(self.home, ".root")
        os.makedirs(root, exist_ok=True)
        kernel.mount("tmpfs", root, "size=1m,mode=755")
        self._furnish(root)
        kernel.enter_root(root)
        for name in ("/proc", *SCRATCH, self.home):
            os.makedirs(name, exist_ok=True)
        # The folders of the runs and the devices lie on mounts of their own, and stay as they are.
        kernel.seal("/", devices=True, below=False)
        return own_pids

    def _furnish(self, root: str) -> None:
        for path in dict.fromkeys([*_SYSTEM, *self.readable]):
            if os.path.islink(path):  # /bin -> usr/bin
                _link(os.readlink(path), root + path)
            if os.path.exists(path):
                _show(os.path.realpath(path), root)
        for device in _DEVICES:
            _show(device, root, writable=True, devices=True)
        _link("/proc/self/fd", root + "/dev/fd")
        if not self.drop_user:
            # Who is no root may mount a /proc only where one is in sight. Each run's own goes on top of it.
            _show("/proc", root)
        for name, path in self.inputs.items():
            _show(path, root, at=f"/inputs/{name}")
        _show(self.home, root, writable=True)
        if self.folder:
            _show(self.folder, root, writable=True)
        user = NOBODY if self.drop_user else INSIDE
        with open(_parents(root + "/etc/passwd"), "w") as file:
            file.write(f"sandbox:x:{user}:{user}::/tmp:/bin/sh\n")

    # --- in the warden, for each run ---------------------------------------------------------------------------

    def separate(self) -> int | None:
        """Before it is known for which run: a process table and mounts of its own, and no other run in sight.

        Returns what `enclose` needs.
        """
        os.setsid()
        if not self.namespaces:
            if sys.platform.startswith("linux"):
                kernel.become_subreaper()
            return None
        kernel.unshare(kernel.NEW_MOUNT)
        kernel.mount("proc", "/proc")
        home = os.open(self.home, os.O_PATH | os.O_CLOEXEC)
        shown = [*self.readable, *([self.folder] if self.folder else [])]
        if not self.home.startswith(tuple(f"{path}/" for path in SCRATCH)):
            _cover(self.home, "size=64k,mode=755", keep=shown)
        for path in SCRATCH:
            _cover(path, "size=1m,mode=1777", keep=shown)
        return home

    def enclose(self, home: int | None, folder: str, scratch: int) -> None:
        """Let this run see its folder, give it SCRATCH of so many bytes each, and give up what the warden needs not."""
        if self.namespaces:
            for path in SCRATCH:
                kernel.resize(path, scratch)
            if folder != self.folder:
                fd = os.open(os.path.relpath(folder, self.home), os.O_PATH | os.O_CLOEXEC, dir_fd=home)
                _show_again(fd, folder)
            os.close(home)
            if self.drop_user:
                kernel.keep_capabilities()
                become_nobody()
            # A folder that its owner closed is full of files all the same.
            kernel.drop_capabilities(keep=kernel.READ_ANYTHING)
        if sys.platform.startswith("linux"):
            kernel.set_dumpable(False)

    # --- in the program's own process --------------------------------------------------------------------------

    def confine(self) -> None:
        """Give up every privilege, for good. Before it is known for which run."""
        if not sys.platform.startswith("linux"):
            return
        if self.drop_user:
            become_nobody()
        kernel.set_dumpable(True)
        if self.namespaces:
            # One user namespace a run: processes are counted within it, and root's are never counted at all.
            user = NOBODY if self.drop_user else INSIDE
            kernel.unshare(kernel.NEW_USER)
            kernel.map_self(user, user, user, user)
        else:
            kernel.die_with_parent()
        kernel.drop_capabilities()
        kernel.no_new_privileges()
        if self.seccomp:
            seccomp.install(attributes=self._attributes)

    @property
    def _attributes(self) -> bool:
        """Whether a change of modes and owners is to be refused.

        As nobody a program owns nothing outside its folder, and in a mount namespace it sees nothing else to change.
        """
        return not self.namespaces and not self.drop_user

    def keep_to(self, folder: str) -> None:
        """See no files but those of this run, where no namespace sees to that."""
        if self.landlock:
            readable = [*_SYSTEM, *self.readable, *self.inputs.values()]
            kernel.landlock(readable, [folder, *_DEVICES])

    def target(self, name: str) -> str:
        """Where a program finds an input."""
        return f"/inputs/{name}" if self.namespaces else self.inputs[name]

    def look(self) -> None:
        """Raise OSError unless what programs need can be read: an installation below /root is closed to others."""
        for path in self.readable:
            os.listdir(path)

    def look_at_inputs(self) -> None:
        for name in self.inputs:
            path = self.target(name)
            os.listdir(path) if os.path.isdir(path) else os.close(os.open(path, os.O_RDONLY))


def survey(asked: Walls, wanted: Collection[str]) -> Walls:
    """The strongest of the `wanted` walls that work here, found out by trying each in a child."""
    if not sys.platform.startswith("linux"):
        return asked
    root = os.geteuid() == 0
    filtered = "seccomp" in wanted and seccomp.available() and _succeeds(_try_filter)
    built = replace(asked, seccomp=filtered, namespaces=True, drop_user=root)
    if "namespaces" not in wanted or not _succeeds(lambda: _try(built, Walls.look)):
        version = kernel.landlock_version() if "landlock" in wanted else 0
        built = replace(built, namespaces=False, landlock=version)
        if root and not _succeeds(lambda: _try(built, Walls.look)):
            built = replace(built, drop_user=False)
    if built.inputs and not _succeeds(lambda: _try(built, Walls.look_at_inputs)):
        who = "nobody" if built.drop_user else "a program"
        raise PermissionError(
            f"{who} cannot read the inputs: make {', '.join(built.inputs.values())} readable for others"
        )
    return built


def become_nobody() -> None:
    """Become an ordinary user, from root; for good."""
    if os.geteuid() == NOBODY:
        return
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


# --- trials, each in a child that ends afterwards --------------------------------------------------------------


def _try_filter() -> None:
    kernel.no_new_privileges()
    seccomp.install(attributes=True)


def _try(built: Walls, look: Callable[[Walls], None]) -> None:
    """Go behind these walls the way a program does, and look around."""
    folder = built.folder or os.path.join(built.home, ".trial")
    os.makedirs(folder, exist_ok=True)

    def warden() -> None:
        home = built.separate()
        built.enclose(home, folder, 1 << 20)
        _must_succeed(program)

    def program() -> None:
        built.confine()
        built.keep_to(folder)
        look(built)

    built.build()
    if built.namespaces:
        kernel.unshare(kernel.NEW_PID)
    _must_succeed(warden)


def _must_succeed(trial: Callable[[], None]) -> None:
    if not _succeeds(trial):
        raise OSError("this cannot be built here")


def _succeeds(trial: Callable[[], None]) -> bool:
    child = os.fork()
    if child == 0:
        status = 1
        # Whatever goes wrong, the answer is no; what is then missing stands in the report.
        with contextlib.suppress(BaseException):
            trial()
            status = 0
        os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _go_on_as_child() -> None:
    child = os.fork()
    if child == 0:
        kernel.die_with_parent()
        return
    os.closerange(3, 1 << 10)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


# --- mounts ----------------------------------------------------------------------------------------------------


def _show(
    path: str, root: str, *, at: str | None = None, writable: bool = False, devices: bool = False
) -> None:
    target = root + (at or path)
    if os.path.ismount(target):
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        with open(_parents(target), "w"):
            pass
    kernel.bind(path, target, writable=writable, devices=devices)


def _cover(target: str, options: str, keep: list[str]) -> None:
    """Lay an empty folder over `target`; what is to stay visible of it is shown again."""
    kept = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in keep
            if path.startswith(target + "/") and os.path.exists(path)}  # fmt: skip
    kernel.mount(
        "tmpfs", target, f"{options},nr_inodes={MAX_FILES}"
    )  # an empty file takes no part of the size
    for path, fd in kept.items():
        _show_again(fd, path)


def _show_again(fd: int, path: str) -> None:
    """Put what `fd` stands for at `path`, and close it. What was read-only stays so."""
    os.makedirs(path, exist_ok=True)
    kernel.bind(f"/proc/self/fd/{fd}", path, writable=True)
    os.close(fd)


def _link(target: str, path: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.symlink(target, _parents(path))


def _parents(path: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path
