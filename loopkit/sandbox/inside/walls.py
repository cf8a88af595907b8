"""The walls around a program, from the outermost: what the zygote builds once, the warden per run, the program for itself.

With namespaces (a user namespace where the host is no root): a root directory that holds only the Python installation,
system libraries and the run's folder; no network; a process table of its own, which dies as a whole. Without them:
Landlock for files and signals, a filter of system calls for the network. What is in force is reported, never assumed.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from . import kernel, seccomp

NOBODY = 65534
"""The user that programs run as when the host is root."""
INSIDE = 1000
"""The same within a user namespace."""
NONE = "none"

# What a Python program may need of the system. Never /etc as a whole, never anything of a user.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/etc/ld.so.cache",
           "/etc/alternatives", "/etc/localtime", "/etc/mime.types")  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass
class Walls:
    """What to build. Filled in by `survey` with what the machine allows."""

    home: str
    """The folder that holds the folders of the runs."""
    folder: str | None
    """One folder that all runs share, or None."""
    inputs: dict[str, str] = field(default_factory=dict)
    readable: list[str] = field(default_factory=list)
    """Folders of the Python installation."""
    wanted: list[str] = field(default_factory=lambda: ["namespaces", "landlock", "seccomp"])

    namespaces: bool = False
    landlock: int = 0
    seccomp: bool = False
    drop_user: bool = False
    own_pids: int | None = None
    """A descriptor of the zygote's own process namespace."""

    def survey(self) -> None:
        """Find out what works here, by trying it in a child."""
        if not sys.platform.startswith("linux"):
            return
        root = os.geteuid() == 0
        self.seccomp = "seccomp" in self.wanted and seccomp.available() and _succeeds(self._try_filter)
        self.drop_user = root
        self.namespaces = "namespaces" in self.wanted and _succeeds(self._try_namespaces)
        if not self.namespaces:
            self.drop_user = root and _succeeds(self._try_user)
            self.landlock = kernel.landlock_version() if "landlock" in self.wanted else 0

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

    def build(self) -> None:
        """Leave the host's namespaces and its files."""
        if not self.namespaces:
            return
        self.own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        uid, gid = os.geteuid(), os.getegid()
        spaces = kernel.NEW_MOUNT | kernel.NEW_NET | kernel.NEW_IPC | kernel.NEW_UTS
        kernel.unshare(spaces | (kernel.NEW_USER if uid else 0))
        if uid:
            kernel.map_self(INSIDE, INSIDE, uid, gid)
        kernel.make_private()
        root = os.path.join(self.home, ".root")
        os.makedirs(root, exist_ok=True)
        kernel.mount("tmpfs", root, "size=1m,mode=755")
        self._furnish(root)
        kernel.enter_root(root)
        for name in ("/proc", "/tmp", "/dev/shm", self.home):
            os.makedirs(name, exist_ok=True)
        # The folders of the runs and the devices lie on mounts of their own, and stay as they are.
        kernel.seal("/", devices=True, below=False)

    def _furnish(self, root: str) -> None:
        for path in dict.fromkeys([*_SYSTEM, *self.readable]):
            if os.path.islink(path):  # /bin -> usr/bin
                _link(os.readlink(path), root + path)
            if os.path.exists(path):
                _show(os.path.realpath(path), root)
        for device in _DEVICES:
            _show(device, root, writable=True, devices=True)
        _link("/proc/self/fd", root + "/dev/fd")
        for name, path in self.inputs.items():
            _show(path, root, at=f"/inputs/{name}")
        _show(self.home, root, writable=True)
        if self.folder:
            _show(self.folder, root, writable=True)
        user = NOBODY if self.drop_user else INSIDE
        with open(_parents(root + "/etc/passwd"), "w") as file:
            file.write(f"sandbox:x:{user}:{user}::/tmp:/bin/sh\n")

    # --- in the warden, for each run ---------------------------------------------------------------------------

    def separate(self) -> None:
        """Get a process table and mounts of its own; before it is known for which run."""
        os.setsid()
        if self.namespaces:
            kernel.unshare(kernel.NEW_MOUNT)
            kernel.mount("proc", "/proc")
        elif sys.platform.startswith("linux"):
            kernel.become_subreaper()

    def enclose(self, folder: str, scratch: int) -> None:
        """Hide the other runs, give this one a /tmp of `scratch` bytes, and give up what the warden need not have."""
        if not self.namespaces:
            return
        shown = [folder, *self.readable]
        _cover("/dev/shm", f"size={scratch},mode=1777", keep=[])
        if not self.home.startswith("/tmp/"):
            _cover(self.home, "size=64k,mode=755", keep=shown)
        _cover("/tmp", f"size={scratch},mode=1777", keep=shown)
        if self.drop_user:
            become_nobody()
        kernel.set_dumpable(False)

    # --- in the program's own process --------------------------------------------------------------------------

    def confine(self, folder: str) -> None:
        """Give up every privilege, for good."""
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
        if self.landlock:
            readable = [*_SYSTEM, *self.readable, *self.inputs.values()]
            kernel.landlock(readable, [folder, *_DEVICES])
        if self.seccomp:
            seccomp.install(attributes=not self.namespaces)

    # --- trials, each in a child that ends afterwards ----------------------------------------------------------

    def _try_user(self) -> None:
        become_nobody()
        self._look()

    def _look(self) -> None:
        for path in self.readable:  # an installation below /root is closed to everyone else
            os.listdir(path)

    def _try_filter(self) -> None:
        kernel.no_new_privileges()
        seccomp.install(attributes=True)

    def _try_namespaces(self) -> None:
        self.namespaces = True
        self.build()
        kernel.unshare(kernel.NEW_PID)
        folder = self.folder or os.path.join(self.home, ".trial")
        os.makedirs(folder, exist_ok=True)

        def run() -> None:
            self.separate()
            if not _succeeds(go_behind):
                raise OSError("a run cannot be enclosed here")

        def go_behind() -> None:
            self.enclose(folder, 1 << 20)
            self.confine(folder)
            self._look()

        if not _succeeds(run):
            raise OSError("a run cannot be enclosed here")


def become_nobody() -> None:
    """Become an ordinary user, from root; for good."""
    if os.geteuid() == NOBODY:
        return
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


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
    kernel.mount("tmpfs", target, options)
    for path, fd in kept.items():
        os.makedirs(path, exist_ok=True)
        kernel.bind(f"/proc/self/fd/{fd}", path, writable=True)  # what was read-only stays so
        os.close(fd)


def _link(target: str, path: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.symlink(target, _parents(path))


def _parents(path: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path
