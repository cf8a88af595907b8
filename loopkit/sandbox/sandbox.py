"""Running code that nobody has read.

async with Sandbox() as box:
    result = await box.run("import sympy; sympy.factorint(2**67 - 1)")
result.value  # '{193707721: 1, 761838257287: 1}'
"""

import asyncio
import contextlib
import functools
import os
import select
import socket
import stat
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

from .home import Home
from .inside import NOBODY
from .results import Execution, Limits, Protection, SandboxError
from .session import Session, some
from .zygote import Zygote

PRELOAD = ("numpy", "scipy.optimize", "scipy.special", "sympy", "constraint")
PROTECTIONS = ("network", "files", "processes", "system calls")
WALLS = ("namespaces", "landlock", "seccomp")

_ENDING = 10.0
"""Seconds that `close` waits for the processes of the runs to be gone."""


class Sandbox:
    """A place to run code in: each program in a process of its own, under limits, walled off from the machine.

    `folder`: where all runs work and leave files; None gives each run an empty one. `inputs`: files and folders that
    programs read as `inputs/<name>`. `require`: protections without which nothing is to run (of PROTECTIONS), else
    `SandboxError`; `protection` says what is in force. `start`: "zygote" forks from a process that has `preload`
    loaded, "fresh" starts an interpreter for each run, "auto" is the first on Linux, the second elsewhere. `walls`:
    which to build, where the machine has them.

    Where the host is root, programs run as the user `nobody`, who must be able to write to `folder`.

    It starts with `async with` or with the first run, and may be used by several threads and event loops at once.
    Without `async with`, close it, or leave that to the end of the process.
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
        _check_names("require", require, PROTECTIONS)
        _check_names("walls", walls, WALLS)
        if start not in ("auto", "zygote", "fresh"):
            raise ValueError(f'start must be "auto", "zygote" or "fresh", got {start!r}')
        if isinstance(preload, str):
            raise TypeError(f"preload takes a collection of names, got {preload!r}")
        if not hasattr(os, "fork"):
            raise SandboxError("the sandbox needs a system with fork, such as Linux (on Windows: in WSL)")
        self.limits = limits or Limits()
        self.folder = _existing_folder(folder)
        """The folder of all runs; None if each has its own."""
        self._fresh = start == "fresh" or (start == "auto" and not sys.platform.startswith("linux"))
        self._inputs = {name: _existing(name, path, self.folder) for name, path in (inputs or {}).items()}
        self._require, self._preload, self._walls = list(require), list(preload), list(walls)
        self._lock = threading.Lock()
        self._started: _Started | None = None
        self._closed = False
        _LIVE.add(self)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "not started"
        if self._started and self._started.protection:
            in_force = self._started.protection.in_force()
            state = f"protection of {', '.join(in_force)}" if in_force else "no protection"
        return f"<Sandbox: {state}; {self.folder or 'a new folder for each run'}>"

    async def __aenter__(self) -> Self:
        self._closed = False
        await self._ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End the zygote and all that still runs; remove the folders of the runs."""
        with self._lock:
            self._closed = True
            started, self._started = self._started, None
        if started:
            started.close()

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def protection(self) -> Protection:
        """What keeps programs in on this machine. Known once the sandbox has started."""
        return self._running().protection

    @property
    def home(self) -> Path:
        """The folder of the runs' folders."""
        return self._running().home.path

    def _running(self) -> "_Started":
        if self._started is None:
            raise SandboxError("the sandbox has not started: use it as `async with Sandbox() as box:`")
        return self._started

    async def run(self, code: str, *, limits: Limits | None = None) -> Execution:
        """Run a program to its end, and end whatever it started. Raises ValueError for empty code."""
        return await self._once({"code": some(code)}, limits)

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, limits: Limits | None = None
    ) -> Execution:
        """Run one of the functions of `inside.files` in the sandbox; what it returns is `Execution.result`."""
        return await self._once({"call": name, "arguments": dict(arguments)}, limits)

    def session(self, *, limits: Limits | None = None) -> Session:
        """A program that is given cell by cell, and keeps its variables: `async with box.session() as session:`."""
        return Session(self, limits or self.limits)

    async def _once(self, request: dict[str, Any], limits: Limits | None) -> Execution:
        async with Session(self, limits or self.limits, once=True) as session:
            return await session._ask(request, None)

    # --- for sessions ------------------------------------------------------------------------------------------

    async def _new_run(self) -> tuple[Home, Path, Path]:
        """Where the files of a run go, as `Home.new_run` says, and the folder it works in."""
        started = await self._ready()
        home, path = started.home, started.home.new_run()
        as_nobody = started.protection.user == "nobody"
        if self.folder is None:
            path.mkdir(mode=0o700)
            if as_nobody:
                os.chown(path, NOBODY, NOBODY)
            return home, path, path
        info = self.folder.stat()
        if as_nobody and not (info.st_uid == NOBODY or info.st_mode & 0o002):
            raise SandboxError(
                f"programs run as user {NOBODY} (nobody), who cannot write to {self.folder}: hand it over with "
                f"`chown -R {NOBODY} {self.folder}`, or do not run as root"
            )
        ours = info.st_uid == (NOBODY if as_nobody else os.geteuid())
        if ours and info.st_mode & stat.S_IRWXU != stat.S_IRWXU:  # a program has closed it
            self.folder.chmod(stat.S_IMODE(info.st_mode) | stat.S_IRWXU)
        return home, path, self.folder

    async def _fork(self, out: list[int]) -> tuple[socket.socket, Zygote | None]:
        """A channel to a new warden; its zygote, if that serves nobody else and is to be closed with the run."""
        try:
            return await self._try_fork(out)
        except OSError:  # the zygote has just been killed: another one starts
            return await self._try_fork(out)

    async def _try_fork(self, out: list[int]) -> tuple[socket.socket, Zygote | None]:
        started = await self._ready()
        own = (
            await self._in_thread(lambda: self._new_zygote(started.home, once=True)) if self._fresh else None
        )
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with theirs:
                await (own or started.zygote).begin(theirs, out)
            started.add(ours)
        except BaseException:
            ours.close()
            if own:
                own.close()
            raise
        return ours, own

    async def _in_thread(self, make: Callable[[], Zygote]) -> Zygote:
        """What `make` makes; if nobody waits for it any more it is closed."""
        making = asyncio.ensure_future(asyncio.to_thread(make))
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(
                lambda made: made.cancelled() or made.exception() or made.result().close()
            )
            raise

    async def _ready(self) -> "_Started":
        started = self._started
        if started and started.usable:
            return started
        return await asyncio.to_thread(self._start)

    def _start(self) -> "_Started":
        with self._lock:
            if self._closed:
                raise SandboxError(
                    "the sandbox is closed: make another one, or enter it again with `async with`"
                )
            started = self._started
            if started and not started.home.path.exists():  # somebody tidied up
                started.close()
                started = None
            if started and started.usable:
                return started
            try:
                started = started or _Started(self._fresh)
                started.take(self._new_zygote(started.home))
            except BaseException as error:
                if started and started is not self._started:
                    started.close()
                if isinstance(error, OSError):
                    raise SandboxError(f"the sandbox cannot start: {error}") from error
                raise
            if started is not self._started:
                self._started = started
                weakref.finalize(self, started.close)
            return started

    def _new_zygote(self, home: Home, *, once: bool = False) -> Zygote:
        walls = {
            "home": os.fspath(home.path),
            "folder": self.folder and os.fspath(self.folder),
            "inputs": {name: os.fspath(path) for name, path in self._inputs.items()},
            "readable": _installation(),
        }
        preload = [] if self._fresh else self._preload
        settings = {
            "walls": walls,
            "wanted": self._walls,
            "require": self._require,
            "preload": preload,
            "once": once,
        }
        zygote = Zygote(settings, home.path / "zygote.txt")
        if missing := [name for name in zygote.missing if name not in PRELOAD]:
            zygote.close()
            raise SandboxError(
                f"the sandbox cannot start: not installed, but to be loaded: {', '.join(missing)}"
            )
        return zygote

    def _forget(self) -> None:
        """In a fork of this process: all that runs is the other one's. This one starts anew."""
        self._lock = threading.Lock()
        if self._started:
            self._started.forget()
        self._started = None


class _Started:
    """What a sandbox holds while it runs, and has to give back."""

    def __init__(self, fresh: bool) -> None:
        self._fresh = fresh
        self.home = Home()
        self.zygote: Zygote | None = None
        self.protection: Protection | None = None
        self._channels: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._owner = os.getpid()

    @property
    def usable(self) -> bool:
        return self.protection is not None and (self._fresh or self.zygote.alive) and self.home.path.exists()

    def take(self, zygote: Zygote) -> None:
        """Fork from this one from now on. Where each run has its own, it has told what is in force, and can go."""
        if self.zygote:
            self.zygote.close()
        self.protection, self.zygote = zygote.protection, zygote
        if self._fresh:
            zygote.close()

    def add(self, channel: socket.socket) -> None:
        """Remember to end this run."""
        with self._lock:
            self._channels.add(channel)

    def close(self) -> None:
        if os.getpid() != self._owner:
            return
        with self._lock:
            left = [channel.dup() for channel in self._channels if channel.fileno() >= 0]
            self._channels.clear()
        for channel in left:  # the warden ends its run when it hears that, and then goes itself
            with contextlib.suppress(OSError):
                channel.shutdown(socket.SHUT_WR)
        if self.zygote:
            self.zygote.close()
        until = time.monotonic() + _ENDING
        while left and time.monotonic() < until:
            poll = select.poll()
            for channel in left:
                poll.register(channel, 0)
            gone = {fd for fd, _ in poll.poll(1000)}
            for channel in [channel for channel in left if channel.fileno() in gone]:
                channel.close()
                left.remove(channel)
        for channel in left:
            channel.close()
        self.home.delete()

    def forget(self) -> None:
        for channel in list(self._channels):
            channel.close()
        if self.zygote:
            self.zygote.forget()
        self.home.forget()


_LIVE: "weakref.WeakSet[Sandbox]" = weakref.WeakSet()


def _forget_all() -> None:
    for sandbox in list(_LIVE):
        sandbox._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


async def run_python(
    code: str, *, timeout: float = 10.0, memory: int = 1 << 30, limits: Limits | None = None
) -> Execution:
    """Run `code` once, in a sandbox that all of this process shares and that starts with the first call.

    `timeout` in seconds, `memory` in bytes; `limits` for the rest. Raises ValueError for empty code.
    """
    limits = replace(limits or Limits(), seconds=timeout, memory=memory)
    return await _shared().run(code, limits=limits)


@functools.cache
def _shared() -> Sandbox:
    return Sandbox()


def _check_names(what: str, given: Collection[str], known: Collection[str]) -> None:
    unknown = [given] if isinstance(given, str) else [name for name in given if name not in known]
    if unknown:
        raise ValueError(f"{what} takes some of {', '.join(known)}, got {', '.join(map(repr, unknown))}")


def _existing(name: str, path: str | Path, folder: Path | None) -> Path:
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise ValueError(f"an input is named like a file, without folders: got {name!r}")
    found = Path(path).expanduser().resolve()
    if not found.exists():
        raise FileNotFoundError(f"input {name!r}: no such file or folder: {found}")
    if folder and found.is_relative_to(folder):
        raise ValueError(f"input {name!r} lies in {folder}, where programs write: it is there already")
    return found


def _existing_folder(path: str | Path | None) -> Path | None:
    if path is None:
        return None
    found = Path(path).expanduser().resolve()
    if not found.is_dir():
        raise NotADirectoryError(f"no such folder to work in: {found}")
    taken = (
        Path.home(),
        Path(tempfile.gettempdir()).resolve(),
        Path("/dev/shm"),
        *map(Path, _installation()),
    )
    for other in taken:
        if other.is_relative_to(found):
            raise ValueError(
                f"programs would own all of {found}, and {other} with it: give them a folder of their own"
            )
    return found


def _installation() -> list[str]:
    """The folders of this Python: what programs import lies there."""
    named = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    named += [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    named.append(os.path.dirname(os.path.realpath(sys.executable)))
    return list(dict.fromkeys(path for path in map(os.path.realpath, named) if os.path.isdir(path)))
