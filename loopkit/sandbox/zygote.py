"""The host's side of the process that programs are forked from."""

import asyncio
import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from .results import Protection, SandboxError

# The package is found by its place, so that it need not be installed for the zygote's interpreter.
_BOOT = """
import json, socket, sys
sys.path.insert(0, {package!r})
from loopkit.sandbox.inside import zygote
sys.path.remove({package!r})
zygote.main(socket.socket(fileno={fd}), json.load(sys.stdin))
"""
# Threads of numerical libraries would count as processes, and fork badly; each arena reserves 64 MiB of the limit.
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MALLOC_ARENA_MAX": "2",
} | {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")}
_STARTING = 120.0
"""Seconds that it may take to load everything."""


class Zygote:
    """Starts it, and waits until it is ready. Raises SandboxError if it does not get there.

    `settings`: those of `inside.zygote.main`. `log`: the file for what it prints, which is nothing if all is well.
    """

    def __init__(self, settings: dict[str, Any], log: Path) -> None:
        self._control, theirs = socket.socketpair()
        boot = _BOOT.format(package=os.fspath(Path(__file__).parents[2]), fd=theirs.fileno())
        with theirs, open(log, "ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", boot],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=_ENVIRONMENT,
                cwd="/",
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        try:
            answer = self._start(settings, log)
        except BaseException:
            self._process.kill()
            self.close()
            raise
        report = answer["protection"]
        self.protection = Protection(**{name.replace(" ", "_"): text for name, text in report.items()})
        self.missing: list[str] = answer["missing"]
        """Modules that it was to load and that are not installed."""

    def _start(self, settings: dict[str, Any], log: Path) -> dict[str, Any]:
        try:
            with self._process.stdin as pipe:
                pipe.write(json.dumps(settings).encode())
        except BrokenPipeError:
            pass  # it died; what it said is told below
        self._control.settimeout(_STARTING)
        heard = b""
        try:
            while not heard.endswith(b"\n"):
                part = self._control.recv(1 << 16)
                if not part:
                    said = log.read_text("utf-8", "replace").strip().rpartition("\n")[2]
                    raise SandboxError(
                        f"the sandbox cannot start: its process died at once ({said or 'silently'})"
                    )
                heard += part
        except TimeoutError:
            raise SandboxError(f"the sandbox cannot start: not ready after {_STARTING:g} s") from None
        answer = json.loads(heard)
        if "error" in answer:
            raise SandboxError(f"the sandbox cannot start: {answer['error']}")
        self._control.setblocking(False)
        return answer

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    async def begin(self, channel: socket.socket, out: list[int]) -> None:
        """Have a warden serve the other end of `channel`, with `out` for stdout and stderr. OSError if it is gone."""
        while True:
            try:
                socket.send_fds(self._control, [b"+"], [channel.fileno(), *out])
                return
            except BlockingIOError:
                pass  # it has as much to do as a socket holds
            except OSError as error:
                if (
                    error.errno != errno.ETOOMANYREFS
                ):  # as many descriptors are on their way as a user may have there
                    raise
            await asyncio.sleep(0.01)

    def close(self) -> None:
        """End it, and with it the wardens that wait. Those at work end with their own channels."""
        self._control.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """In a fork of the host: leave it to the host."""
        self._control.close()
