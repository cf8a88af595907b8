"""What a program must neither read, change nor reach: set up on this machine, looked at after each program."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

VARIABLE = "LOOPKIT_CANARY_KEY"
_PLACES = (
    "/", "/etc", "/usr", "/usr/bin", "/usr/lib", "/usr/local/bin", "/usr/local/lib", "/bin", "/lib", "/opt", "/srv",
    "/var", "/var/tmp", "/var/spool/cron/crontabs", "/etc/cron.d", "/etc/profile.d", "/run", "/home", "/root", "/mnt",
    "/tmp", "/dev/shm",
)  # fmt: skip
_NOBODY = 65534
_PATIENCE = 2.0
"""Seconds that a killed process may need, on a busy machine."""
_BAIT = "read line; exit"  # waits on its input, which ends when this process does


class Canaries:
    """Secrets, files to spoil, listeners and a process as bait; all gone again when the `with` block ends."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(4)
        self.secret = f"loopkit-canary-{secrets.token_hex(16)}"
        self._open = contextlib.ExitStack()
        self._folders: list[Path] = []
        self._listeners: dict[str, socket.socket] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._before = os.environ.get(VARIABLE)
            os.environ[VARIABLE] = self.secret
            stack.callback(self._restore_variable)
            stack.callback(self._remove_folders)
            self._make_folders()
            self._listen(stack)
            self._start_bait()
            stack.callback(self._end_bait)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def any_mark(self) -> str:
        """What all marks begin with."""
        return f"lk{self.token}"

    def mark(self, number: int) -> str:
        """A name for the processes of one program, short enough for the kernel to keep."""
        return f"{self.any_mark}{number:03d}"

    def host(self, mark: str) -> dict[str, Any]:
        """Where everything is, for the program of this mark: its HOST."""
        return {
            "token": self.token,
            "mark": mark,
            "variable": VARIABLE,
            "pid": os.getpid(),
            "bait": self._bait.pid,
            "secrets": [os.fspath(path) for path in self._secrets],
            "open_file": os.fspath(self._open_file),
            "open_folder": os.fspath(self._open_folder),
            "places": _places(),
            "tcp": self._listeners["TCP"].getsockname()[1],
            "udp": self._listeners["UDP"].getsockname()[1],
            "unix_path": os.fspath(self._temporary / "stream"),
            "datagram_path": os.fspath(self._temporary / "datagram"),
            "unix_name": f"loopkit-check-{self.token}",
            "datagram_name": f"loopkit-check-{self.token}-datagram",
            "resolvers": _resolvers(),
            "interfaces": _interfaces(),
            "mounts": _namespace("mnt"),
            "pids": _namespace("pid"),
        }

    @property
    def bait(self) -> int:
        """The number of the process that is bait."""
        return self._bait.pid

    @property
    def input(self) -> Path:
        """A file that a sandbox may be given as an input."""
        return self._input

    def shared_folder(self) -> Path:
        """A new folder that any user may write to."""
        folder = Path(tempfile.mkdtemp(prefix=f"loopkit-shared-{self.token}-"))
        folder.chmod(0o777)
        self._folders.append(folder)
        return folder

    # --- looking after them --------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """How the files and the bait are now; to be compared with how they are later."""
        found = {"the bait": self._bait_state()}
        for folder in (*(path.parent for path in self._secrets), self._open_folder):
            if os.path.lexists(folder):
                inside = folder.iterdir() if folder.is_dir() else ()
                found |= {os.fspath(path): _state(path) for path in (folder, *inside)}
        return found

    def changed(self, before: dict[str, Any]) -> list[str]:
        """What is no longer as it was; it is put right again."""
        now = self.state()
        found = [
            f"{name} {'changed' if name in before and name in now else 'appeared' if name in now else 'is gone'}"
            for name in before | now
            if before.get(name) != now.get(name)
        ]
        if found:
            self._end_bait()
            self._start_bait()
            self._remove_folders()
            self._open_listeners_again()
        return found

    def planted(self, mark: str) -> list[str]:
        """Files that the program of this mark made where it had no business; they are removed."""
        found = []
        for place in _places():
            path = Path(place, f"loopkit-check-{mark}")
            if os.path.lexists(path):
                found.append(f"{path} was made")
                path.unlink()
        return found

    def rung(self) -> list[str]:
        """The listeners that somebody reached."""
        found = []
        for name, listener in self._listeners.items():
            with contextlib.suppress(BlockingIOError):
                while True:
                    if listener.type == socket.SOCK_DGRAM:
                        listener.recv(100)
                    else:
                        listener.accept()[0].close()
                    found.append(f"the host was reached by {name}")
        return sorted(set(found))

    # --- setting up --------------------------------------------------------------------------------------------

    def _make_folders(self) -> None:
        self._secrets = []
        for place, name in ((Path.home(), ".loopkit-check"), (tempfile.gettempdir(), "loopkit-check"),
                            ("/var/tmp", "loopkit-check"), ("/dev/shm", "loopkit-check")):  # fmt: skip
            folder = Path(place, f"{name}-{self.token}")
            if not os.access(place, os.W_OK) or folder.exists():
                continue
            folder.mkdir()
            folder.chmod(0o755)  # its mode is not to be what protects it
            self._folders.append(folder)
            secret = folder / f"secret-{self.token}"
            secret.write_text(self.secret)
            secret.chmod(0o644)
            self._secrets.append(secret)
        self._temporary = Path(tempfile.gettempdir(), f"loopkit-check-{self.token}")
        self._input = self._temporary / "input"
        self._open_folder = self._temporary / "open"
        self._open_folder.mkdir()
        self._open_folder.chmod(0o777)
        self._open_file = self._open_folder / "file"
        for path in (self._input, self._open_file):
            path.write_text("untouched")
            path.chmod(0o666)

    def _remove_folders(self) -> None:
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)
        self._folders.clear()

    def _listen(self, stack: contextlib.ExitStack) -> None:
        self._listeners = {
            "TCP": _listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "UDP": _listener(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        }
        if sys.platform == "linux":
            for kind, name in ((socket.SOCK_STREAM, ""), (socket.SOCK_DGRAM, "-datagram")):
                where = f"\0loopkit-check-{self.token}{name}"
                self._listeners[f"an abstract socket{name}"] = _listener(socket.AF_UNIX, kind, where)
        self._listen_by_path()
        stack.callback(lambda: [listener.close() for listener in self._listeners.values()])

    def _listen_by_path(self) -> None:
        for kind, name in ((socket.SOCK_STREAM, "stream"), (socket.SOCK_DGRAM, "datagram")):
            path = self._temporary / name
            self._listeners[f"a socket in a folder ({name})"] = _listener(
                socket.AF_UNIX, kind, os.fspath(path)
            )
            path.chmod(0o777)

    def _open_listeners_again(self) -> None:
        self._make_folders()
        for name, listener in self._listeners.items():
            if "folder" in name:
                listener.close()
        self._listen_by_path()

    def _start_bait(self) -> None:
        if os.geteuid() == 0:
            # Where programs run as nobody, so does the bait: it is not to be its user that protects it.
            with contextlib.suppress(OSError):  # a container whose one user is root
                self._bait = self._new_bait(user=_NOBODY, group=_NOBODY, extra_groups=[])
                return
        self._bait = self._new_bait()

    def _new_bait(self, **user: Any) -> subprocess.Popen:
        command = ["/bin/sh", "-c", _BAIT, self.token, self.secret]
        env = {VARIABLE: self.secret}
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, env=env, cwd="/", start_new_session=True, **user
        )

    def _end_bait(self) -> None:
        self._bait.kill()
        self._bait.stdin.close()
        self._bait.wait()

    def _bait_state(self) -> Any:
        if self._bait.poll() is not None:
            return "ended"
        stopped = sys.platform == "linux" and _stat(self._bait.pid)[0] in "Tt"
        return stopped, os.getpriority(os.PRIO_PROCESS, self._bait.pid)

    def _restore_variable(self) -> None:
        if self._before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = self._before


def left(mark: str) -> set[int]:
    """The living processes of the program of this mark. Linux only."""
    return set(_marked(mark.encode()))


def lasting(find: Callable[[], set[int]]) -> set[int]:
    """What `find` finds, and finds for some time: a process that is killed needs a moment to be gone."""
    deadline = time.monotonic() + _PATIENCE
    while (found := find()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def end(pids: set[int]) -> None:
    """Kill what was left."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> set[int]:
    """All living processes below `pid`. Linux only."""
    if not os.path.isdir("/proc/self"):
        return set()
    below: dict[int, list[int]] = {}
    for child in filter(str.isdigit, os.listdir("/proc")):
        state, parent = _stat(int(child))
        if state not in "ZX":
            below.setdefault(parent, []).append(int(child))
    found, todo = set(), [pid]
    while todo:
        children = below.get(todo.pop(), [])
        found.update(children)
        todo += children
    return found


def _marked(mark: bytes) -> Iterator[int]:
    if not os.path.isdir("/proc/self"):
        return
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid() or _stat(int(pid))[0] in "ZX":
            continue
        for name in ("comm", "cmdline", "environ"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
                text = file.read()
                if mark in text:
                    yield int(pid)
                if mark in text or not text:  # the kernel's own threads have no command line
                    break


def _stat(pid: int) -> tuple[str, int]:
    """State and parent of a process; X for one that is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        state, parent = file.read().rpartition(b")")[2].split()[:2]
        return state.decode(), int(parent)
    return "X", 0


def _state(path: Path) -> Any:
    info = path.lstat()
    if not stat.S_ISREG(info.st_mode):
        return stat.S_IFMT(info.st_mode), stat.S_IMODE(info.st_mode)
    return path.read_bytes(), info.st_mode, info.st_mtime_ns, info.st_nlink, info.st_ino


def _listener(family: int, kind: int, where: Any) -> socket.socket:
    made = socket.socket(family, kind)
    made.bind(where)
    made.setblocking(False)
    if kind == socket.SOCK_STREAM:
        made.listen(100)
    return made


def _places() -> list[str]:
    paths = sysconfig.get_paths()
    more = (
        os.fspath(Path.home()),
        sys.prefix,
        paths["stdlib"],
        paths["purelib"],
        os.getcwd(),
        os.path.dirname(__file__),
    )
    return [place for place in dict.fromkeys((*_PLACES, *more)) if os.path.isdir(place)]


def _namespace(name: str) -> int:
    return os.stat(f"/proc/self/ns/{name}").st_ino if sys.platform == "linux" else 0


def _resolvers() -> list[str]:
    with contextlib.suppress(OSError), open("/etc/resolv.conf") as file:
        return [line.split()[1] for line in file if line.startswith("nameserver ")]
    return []


def _interfaces() -> list[str]:
    """The host's, without those that any network namespace has."""
    found = []
    for _, name in socket.if_nameindex():
        with contextlib.suppress(OSError), open(f"/sys/class/net/{name}/flags") as flags:
            if name != "lo" and int(flags.read(), 16) & 1:  # up
                found.append(name)
    return found
