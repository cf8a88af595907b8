"""Running code that nobody has read.

async with Sandbox() as box:
    result = await box.run("import sympy; sympy.factorint(2**67 - 1)")
result.value  # '{193707721: 1, 761838257287: 1}'
"""

import asyncio
import atexit
import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

from .folders import delete_tree, made_since, snapshot
from .inside import walls
from .results import Execution, Limits, Protection, SandboxError
from .telling import execution

PRELOAD = ("numpy", "scipy.optimize", "scipy.special", "sympy", "constraint")
PROTECTIONS = ("network", "files", "processes", "system calls")
WALLS = ("namespaces", "landlock", "seccomp")

# The package is found by its place, so that it need not be installed for the zygote's interpreter.
_BOOT = """
import json, socket, sys
sys.path.insert(0, {package!r})
from loopkit.sandbox.inside import zygote
sys.path.remove({package!r})
control = socket.socket(fileno={fd})
zygote.main(control, json.loads(control.recv(1 << 17)))
"""
# Threads of numerical libraries would count as processes, and fork badly.
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"} | {
    f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
}


class Sandbox:
    """A place to run code in: each program in a process of its own, under limits, walled off from the machine.

    `folder`: where all runs work and leave files; None gives each run an empty one. `inputs`: files and folders that
    programs read as `inputs/<name>`. `require`: protections without which nothing is to run (of PROTECTIONS), else
    `SandboxError`; `protection` says what is in force. `start`: "zygote" forks from a process that has `preload`
    loaded, "fresh" starts an interpreter for each run, "auto" is the first where the machine has fork. `walls`: which
    to build, where the machine has them.

    Where the host is root, programs run as the user `nobody`, who must be able to write to `folder`.
    """

    def __init__(
        self,
        *,
        folder: str | Path | None = None,
        limits: Limits | None = None,
        inputs: Mapping[str, str | Path] | None = None,
        require: Collection[str] = (),
        start: Literal["auto", "zygote", "fresh"] = "auto",
        preload: Collection[str] = PRELOAD,
        walls: Collection[str] = WALLS,
    ) -> None:
        for given, known, what in ((require, PROTECTIONS, "require"), (walls, WALLS, "walls")):
            unknown = [given] if isinstance(given, str) else [name for name in given if name not in known]
            if unknown:
                raise ValueError(
                    f"{what} takes some of {', '.join(known)}, got {', '.join(map(repr, unknown))}"
                )
        if start not in ("auto", "zygote", "fresh"):
            raise ValueError(f'start must be "auto", "zygote" or "fresh", got {start!r}')
        if start == "zygote" and not hasattr(os, "fork"):
            raise SandboxError(
                "there is no fork on this machine: start='fresh' starts an interpreter for each run"
            )
        self.limits = limits or Limits()
        self._fresh = start == "fresh" or (start == "auto" and sys.platform == "darwin")
        self._folder = _existing_folder(folder)
        self._inputs = {name: _existing(name, path) for name, path in (inputs or {}).items()}
        self._settings = {"require": list(require), "preload": [] if self._fresh else list(preload)}
        self._wanted = list(walls)
        self._numbers = itertools.count(1)
        self._home: Path | None = None
        self._zygote: Zygote | None = None
        self._starting = threading.Lock()

    async def __aenter__(self) -> Self:
        await self._ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the zygote, and with it all that still runs; remove the folders of the runs."""
        if self._zygote:
            self._zygote.close()
        if self._home:
            delete_tree(self._home)
        self._zygote = self._home = None

    @property
    def protection(self) -> Protection:
        """What keeps programs in on this machine. Known once the sandbox has started."""
        if not self._zygote:
            raise SandboxError("the sandbox has not started: use it as `async with Sandbox() as box:`")
        return self._zygote.protection

    @property
    def home(self) -> Path:
        """The folder of the runs' folders."""
        if not self._home:
            raise SandboxError("the sandbox has not started: use it as `async with Sandbox() as box:`")
        return self._home

    async def run(self, code: str, *, limits: Limits | None = None) -> Execution:
        """Run a program to its end, and end whatever it started. Raises ValueError for empty code."""
        return await self._once({"code": _some(code)}, limits)

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, limits: Limits | None = None
    ) -> Execution:
        """Run one of the functions of `inside.files` in the sandbox; what it returns is `Execution.result`."""
        return await self._once({"call": name, "arguments": dict(arguments)}, limits)

    def session(self, *, limits: Limits | None = None) -> "Session":
        """A program that is given cell by cell, and keeps its variables: `async with box.session() as session:`."""
        return Session(self, limits or self.limits)

    async def _once(self, request: dict[str, Any], limits: Limits | None) -> Execution:
        async with Session(self, limits or self.limits, once=True) as session:
            return await session._ask(request, None)

    async def _ready(self) -> "Zygote":
        """The zygote to fork from; in fresh mode a new one, which the caller closes."""
        if self._zygote and self._zygote.alive and not self._fresh:
            return self._zygote
        return await asyncio.to_thread(self._start)

    def _start(self) -> "Zygote":
        with self._starting:
            if self._zygote and self._zygote.alive and not self._fresh:
                return self._zygote
            if not self._home:
                self._home = Path(tempfile.mkdtemp(prefix="loopkit-")).resolve()
                self._home.chmod(0o711)  # a run's user finds its own folder by name, and no other
            zygote = Zygote(
                walls={
                    "home": os.fspath(self._home),
                    "folder": self._folder and os.fspath(self._folder),
                    "inputs": {name: os.fspath(path) for name, path in self._inputs.items()},
                    "readable": _installation(),
                    "wanted": self._wanted,
                },
                **self._settings,
            )
            if self._zygote is None or not self._fresh:
                self._zygote = zygote
            return zygote

    def _new_folder(self, zygote: "Zygote") -> tuple[Path, Path]:
        """A folder for the records of a run, and the one it works in."""
        records = self.home / f"{next(self._numbers)}"
        records.mkdir(mode=0o711)
        folder = self._folder or records / "work"
        folder.mkdir(mode=0o700, exist_ok=True)
        if self._inputs:
            seen = folder / "inputs"
            seen.mkdir(exist_ok=True)
            for name, path in self._inputs.items():
                target = f"/inputs/{name}" if zygote.namespaces else path
                with contextlib.suppress(FileExistsError):
                    (seen / name).symlink_to(target)
        if zygote.drops_user:
            if self._folder is None:
                os.chown(folder, walls.NOBODY, walls.NOBODY)
            elif not _writable_by_nobody(folder):
                raise SandboxError(
                    f"programs run as user {walls.NOBODY} (nobody), who cannot write to {folder}: hand it over with "
                    f"`chown -R {walls.NOBODY} {folder}`, or do not run as root"
                )
        return records, folder


class Session:
    """One program, given cell by cell. Made by `Sandbox.session`."""

    def __init__(self, sandbox: Sandbox, limits: Limits, *, once: bool = False) -> None:
        self._sandbox, self.limits, self._one_shot = sandbox, limits, once
        self._channel: socket.socket | None = None
        self._heard = b""
        self._ended = ""
        self._busy = asyncio.Lock()
        self._keep = False
        self._over = False

    @property
    def alive(self) -> bool:
        """Whether its variables are still there."""
        return self._channel is not None and not self._ended

    async def __aenter__(self) -> Self:
        self._zygote = zygote = await self._sandbox._ready()
        self._records, self.folder = self._sandbox._new_folder(zygote)
        self._out = tuple(_output_file(self._records / name) for name in ("stdout.txt", "stderr.txt"))
        self._channel = zygote.begin(self._out, self.folder, self.limits, once=self._one_shot)
        return self

    async def __aexit__(self, *_: object) -> None:
        # The warden hears that the channel closes, ends the program, and closes its own end when all is gone.
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)
        if not self._over:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(10):
                    while await asyncio.get_running_loop().sock_recv(self._channel, 1 << 16):
                        pass
        self._channel.close()
        self._channel = None
        for fd in self._out:
            os.close(fd)
        if self._zygote is not self._sandbox._zygote:
            await asyncio.to_thread(self._zygote.close)
        if not self._keep:
            delete_tree(self._records)

    async def run(self, code: str, *, limits: Limits | None = None) -> Execution:
        """Run one cell. Raises SandboxError once the session has ended, ValueError for an empty cell.

        A cell that runs out of time is interrupted, and the session goes on if it answers within a second.
        """
        return await self._ask({"code": _some(code)}, limits)

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, limits: Limits | None = None
    ) -> Execution:
        """`Sandbox.call`, within this session's process."""
        return await self._ask({"call": name, "arguments": dict(arguments)}, limits)

    async def _ask(self, request: dict[str, Any], limits: Limits | None) -> Execution:
        limits = limits or self.limits
        async with self._busy:
            if not self.alive:
                raise SandboxError(f"the session has ended ({self._ended or 'closed'}): start another one")
            before = snapshot(self.folder) if self._sandbox._folder or not self._one_shot else {}
            offsets = tuple(os.fstat(fd).st_size for fd in self._out)
            answer = await self._exchange(request | {"limits": limits.spelled()}, limits)
            done = execution(
                answer,
                limits,
                files=made_since(before, self.folder),
                folder=self.folder,
                outputs=tuple(zip(self._out, offsets, strict=True)),
                records=self._records,
            )
        self._keep = self._keep or bool(done.files or done.stdout_file or done.stderr_file)
        if "reply" not in answer or done.exit_code is not None:
            self._ended = done.message or f"it exited with code {done.exit_code}"
        return done

    async def _exchange(self, request: dict[str, Any], limits: Limits) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(self._channel, json.dumps(request).encode() + b"\n")
            # The warden keeps the time. This is for a warden that is stopped or gone astray itself.
            async with asyncio.timeout(limits.seconds + 15):
                while b"\n" not in self._heard:
                    data = await loop.sock_recv(self._channel, 1 << 20)
                    if not data:
                        raise ConnectionResetError
                    self._heard += data
        except (ConnectionError, TimeoutError) as error:
            self._ended = "its warden is gone"
            raise SandboxError(
                f"the sandbox was lost while the program ran ({type(error).__name__}): run it again"
            ) from error
        except asyncio.CancelledError:
            self._ended = "it was cancelled"
            raise
        line, self._heard = self._heard.split(b"\n", 1)
        answer = json.loads(line)
        # The warden says so when all processes of the run are gone; its own end need not be waited for.
        self._over = self._one_shot or "reply" not in answer
        if answer.get("ended") == "broken":
            raise SandboxError(f"the sandbox could not be built: {answer['message']}")
        return answer


class Zygote:
    """The host's side of the process that programs are forked from."""

    def __init__(self, **settings: Any) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        package = os.fspath(Path(__file__).parents[2])
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _BOOT.format(package=package, fd=theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=_ENVIRONMENT,
                cwd="/",
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._control, self._sending = ours, threading.Lock()
        ours.sendall(json.dumps(settings).encode())
        answer = json.loads(ours.recv(1 << 16) or b'{"error": "it died at once"}')
        if "error" in answer:
            self.close()
            raise SandboxError(f"the sandbox cannot start: {answer['error']}")
        report = answer["protection"]
        self.protection = Protection(**{name.replace(" ", "_"): text for name, text in report.items()})
        self.namespaces = "namespace" in self.protection.files
        self.drops_user = self.protection.user == "nobody"

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def begin(self, out: tuple[int, ...], folder: Path, limits: Limits, *, once: bool) -> socket.socket:
        """Fork a warden; return the channel to it."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        request = {"folder": os.fspath(folder), "once": once, "limits": limits.spelled()}
        with theirs, self._sending:
            try:
                socket.send_fds(self._control, [json.dumps(request).encode()], [theirs.fileno(), *out])
            except OSError as error:
                ours.close()
                raise SandboxError(f"the sandbox's process is gone ({error}): run it again") from error
        return ours

    def close(self) -> None:
        self._control.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


async def run_python(
    code: str, *, timeout: float = 10.0, memory: int = 1 << 30, limits: Limits | None = None
) -> Execution:
    """Run `code` once, in a sandbox that all of this process shares and that starts with the first call.

    `timeout` in seconds, `memory` in bytes; `limits` for the rest. Raises ValueError for empty code.
    """
    limits = replace(limits or Limits(), seconds=timeout, memory=memory)
    return await _shared().run(code, limits=limits)


_SHARED: list[Sandbox] = []
_SHARING = threading.Lock()


def _shared() -> Sandbox:
    with _SHARING:
        if not _SHARED:
            _SHARED.append(Sandbox())
            atexit.register(_close_shared, os.getpid())
        return _SHARED[0]


def _close_shared(owner: int) -> None:
    if (
        os.getpid() == owner
    ):  # a fork of this process has neither the zygote's ear nor the right to its folders
        _SHARED.pop().close()


def _some(code: str) -> str:
    if not code.strip():
        raise ValueError("refusing to run empty code: an empty answer is the model's failure, not a program")
    return code


def _existing(name: str, path: str | Path) -> Path:
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(f"an input is named like a file, without folders: got {name!r}")
    found = Path(path).expanduser().resolve()
    if not found.exists():
        raise FileNotFoundError(f"input {name!r}: no such file or folder: {found}")
    return found


def _existing_folder(path: str | Path | None) -> Path | None:
    if path is None:
        return None
    found = Path(path).expanduser().resolve()
    if not found.is_dir():
        raise NotADirectoryError(f"no such folder to work in: {found}")
    if found == Path(found.anchor) or found == Path.home():
        raise ValueError(f"programs would own all of {found}: give them a folder of their own")
    return found


def _installation() -> list[str]:
    """The folders of this Python: what programs import lies there."""
    named = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    named += [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    named.append(os.path.dirname(os.path.realpath(sys.executable)))
    return list(dict.fromkeys(path for path in map(os.path.realpath, named) if os.path.isdir(path)))


def _writable_by_nobody(folder: Path) -> bool:
    info = folder.stat()
    return info.st_uid == walls.NOBODY or bool(info.st_mode & 0o002)


def _output_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
