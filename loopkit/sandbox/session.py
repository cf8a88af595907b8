"""One run as the host sees it: a program given at once, or cell by cell."""

import asyncio
import contextlib
import json
import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from .folders import Snapshot, made_since, snapshot
from .home import private
from .results import Execution, Limits, SandboxError
from .telling import execution, head_and_tail

if TYPE_CHECKING:
    from .sandbox import Sandbox

_PATIENCE = 60.0
"""Seconds past the time limit after which a warden is given up. It keeps the limit itself, if it can run at all."""
_ENDING = 10.0
"""Seconds that the processes of a run have to be gone."""


class Session:
    """A program that is given cell by cell, and keeps its variables. Made by `Sandbox.session`.

        async with box.session() as session:
            await session.run("x = 41")
            (await session.run("x + 1")).value  # '42'

    It belongs to the event loop it was started in. Cells given at once run one after the other.
    """

    def __init__(self, sandbox: "Sandbox", limits: Limits, *, once: bool = False) -> None:
        self._sandbox, self.limits, self._once = sandbox, limits, once
        self._channel: socket.socket | None = None
        self._streams: tuple[BinaryIO, ...] = ()
        self._heard = b""
        self._ended = "not started: use it as `async with box.session() as session:`"
        self._busy = asyncio.Lock()
        self._keep = False
        self._over = True
        self._cells = 0

    def __repr__(self) -> str:
        return f"<Session: {'alive' if self.alive else self._ended}, {self._cells} cells>"

    @property
    def alive(self) -> bool:
        """Whether its variables are still there."""
        return not self._ended and self._channel is not None and self._channel.fileno() >= 0

    @property
    def folder(self) -> Path:
        """Where it works."""
        return self._folder

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except OSError as error:
            raise SandboxError(f"cannot start a run: {error}") from error
        return self

    async def _start(self) -> None:
        with contextlib.ExitStack() as undo:
            self._home, self._path, self._folder = await self._sandbox._new_run()
            undo.callback(self._home.remove_run, self._path)
            streams = []
            for name in ("stdout", "stderr"):
                path = f"{self._path}.{name}.txt"
                streams.append(undo.enter_context(open(path, "a+b", buffering=0, opener=private)))
            self._channel, self._zygote = await self._sandbox._fork([stream.fileno() for stream in streams])
            undo.callback(self._channel.close)
            self._streams = tuple(streams)
            self._over, self._ended = False, ""
            setup = {"folder": os.fspath(self._folder), "once": self._once, "limits": self.limits.spelled()}
            self._first = json.dumps(setup).encode() + b"\n"
            undo.pop_all()

    async def __aexit__(self, *_: object) -> None:
        self._ended = self._ended or "closed"
        try:
            await self._wind_up()
        finally:
            self._channel.close()
            for stream in self._streams:
                stream.close()
            if not self._keep:
                self._home.remove_run(self._path)
        if self._zygote is not None:
            await asyncio.to_thread(self._zygote.close)

    async def _wind_up(self) -> None:
        """Wait until nothing of it runs. The warden hears that the channel closes, and closes its own end at last."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)
        if not self._over:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_ENDING):
                    while await asyncio.get_running_loop().sock_recv(self._channel, 1 << 16):
                        pass

    async def run(self, code: str, *, limits: Limits | None = None) -> Execution:
        """Run one cell. Raises SandboxError once the session has ended, ValueError for an empty cell.

        A cell that runs out of time is interrupted, and the session goes on if it answers within two seconds. `limits`
        holds for this cell, but memory, processes, file size and open files are never more than the session's.
        """
        return await self._ask({"code": some(code)}, limits)

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, limits: Limits | None = None
    ) -> Execution:
        """`Sandbox.call`, within this session's process."""
        return await self._ask({"call": name, "arguments": dict(arguments)}, limits)

    async def _ask(self, request: dict[str, Any], limits: Limits | None) -> Execution:
        limits = limits or self.limits
        async with self._busy:
            if not self.alive:
                raise SandboxError(f"the session has ended ({self._ended}): start another one")
            line = json.dumps(request | {"limits": limits.spelled()}).encode() + b"\n"
            self._cells += 1
            # A new folder holds nothing yet.
            new = self._once and self._sandbox.folder is None
            before: Snapshot = {} if new else await asyncio.to_thread(snapshot, self._folder)
            for stream in self._streams:
                os.ftruncate(stream.fileno(), 0)
            answer = await self._exchange(line, limits)
            outputs = [self._output(stream, limits.shown) for stream in self._streams]
            files = await asyncio.to_thread(made_since, before, self._folder)
        done = execution(answer, limits, once=self._once, files=files, folder=self._folder, outputs=outputs)
        if answer["ended"] != "replied" or (done.exit_code is not None and not self._once):
            self._ended = done.message or f"exited with code {done.exit_code}"
        self._keep = self._keep or bool(done.files or done.stdout_file or done.stderr_file)
        return done

    def _output(self, stream: BinaryIO, shown: int) -> tuple[str, Path | None]:
        """What it printed, and the file with all of it if that is more."""
        text, whole = head_and_tail(stream.fileno(), shown)
        path = Path(stream.name)
        if whole:
            return text, None
        if not self._once:  # the next cell writes to the same file
            kept = path.with_stem(f"{path.stem}-{self._cells}")
            shutil.copyfile(path, kept)
            path = kept
        return text, path

    async def _exchange(self, line: bytes, limits: Limits) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        try:
            # Who has ended between two cells takes no more requests, but has said how.
            with contextlib.suppress(ConnectionError):
                first, self._first = self._first, b""
                await loop.sock_sendall(self._channel, first + line)
            async with asyncio.timeout(limits.seconds + _PATIENCE):
                while b"\n" not in self._heard:
                    data = await loop.sock_recv(self._channel, 1 << 20)
                    if not data:
                        raise ConnectionResetError("its process is gone")
                    self._heard += data
        except (OSError, TimeoutError) as error:
            closed = self._channel.fileno() < 0 or self._sandbox.closed
            self._ended = "it was closed" if closed else "it was lost"
            why = "was closed" if closed else f"was lost ({error or 'it does not answer'})"
            raise SandboxError(f"the sandbox {why} while the program ran") from error
        except asyncio.CancelledError:
            self._ended = "it was cancelled"
            with contextlib.suppress(OSError):
                self._channel.shutdown(socket.SHUT_WR)
            raise
        line, _, self._heard = self._heard.partition(b"\n")
        answer = json.loads(line)
        # When it says so, nothing of the run can go on any more. That its processes are gone need not be waited for.
        self._over = self._once or answer["ended"] != "replied"
        if answer["ended"] == "broken":
            self._ended = answer["message"]
            raise SandboxError(f"a run cannot be started here: {answer['message']}")
        return answer


def some(code: str) -> str:
    if not code.strip():
        raise ValueError("refusing to run empty code: an empty answer is the model's failure, not a program")
    return code
