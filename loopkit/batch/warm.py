"""Starting workers and kernels warm, as forks of a process that has loaded already what they need (`loopkit.batch.forge`).

A notebook spends seconds on importing before its first cell says anything; a fork of a process that has imported starts
at once. On Linux only: elsewhere forking a process that has so much loaded is not safe, and everything starts cold.
"""

import asyncio
import json
import os
import resource
import select
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

FORGE = "LOOPKIT_FORGE"
"""The environment variable with the path of a forge's socket."""


class Forked:
    """A process that a forge started for us: the part of `subprocess.Popen` that jupyter_client asks of one.

    `run` is `worker` or `kernel`, `stdio` are the descriptors of its standard input, output and error. It has our limit of
    memory, as a child of ours would. Raises ChildProcessError when there is no forge at `address`, or it cannot fork.
    """

    stdin = stdout = stderr = None

    def __init__(
        self,
        address: str,
        run: str,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdio: Sequence[int],
    ) -> None:
        request = {"run": run, "argv": [*argv], "cwd": cwd, "env": {**env}}
        request["data"] = resource.getrlimit(resource.RLIMIT_DATA)
        self._heard = b""
        self.returncode: int | None = None
        self._end = socket.socket(socket.AF_UNIX)
        try:
            self._end.connect(address)
            socket.send_fds(self._end, [b"+"], list(stdio))
            self._end.sendall(json.dumps(request).encode() + b"\n")
            while (answer := self._line()) is None:
                select.select([self._end], [], [])
        except OSError as error:
            answer = {"error": error.strerror or str(error)}
        if "pid" not in answer:
            self._end.close()
            raise ChildProcessError(
                f"no {run} from the forge at {address}: {answer.get('error', 'it has ended')}"
            )
        self.pid: int = answer["pid"]

    def fileno(self) -> int:
        """Readable when the process has ended."""
        return self._end.fileno()

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        if self.returncode is None and (told := self._line()) is not None:
            self.returncode = told["exit"]
        return self.returncode

    def wait(self) -> int:
        """The same, when it has ended."""
        while (code := self.poll()) is None:
            select.select([self._end], [], [])
        self.close()
        return code

    def close(self) -> None:
        """Let go of it: if it still runs it is killed, with its group."""
        self._end.close()

    def send_signal(self, number: int) -> None:
        """To the process alone."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _line(self) -> dict[str, int] | None:
        """What the forge has said, if it has; that it is gone means that the process was killed."""
        while b"\n" not in self._heard:
            if not select.select([self._end], [], [], 0)[0]:
                return None
            if not (data := self._end.recv(1 << 12)):
                return {"exit": -signal.SIGKILL}
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)


class Forge:
    """A forge of our own: `async with Forge("knights", notebook, env=…, log=file) as forge`, then `await forge.address()`.

    It loads the experiment beside the usual, in the environment `env`; what it says goes to `log`.
    """

    def __init__(self, experiment: str, notebook: Path, *, env: Mapping[str, str], log: BinaryIO) -> None:
        self._arguments, self._env, self._log = (experiment, str(notebook)), env, log
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> "Forge":
        self._folder = tempfile.TemporaryDirectory(prefix="loopkit-forge-")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.stdin.close()  # whereupon it ends, and all that it started
            try:
                await asyncio.wait_for(self._process.wait(), 2)
            except TimeoutError:  # it is loading still
                self._process.kill()
                await self._process.wait()
        self._folder.cleanup()

    @property
    def pid(self) -> int | None:
        """Of the process; None before the first `address`."""
        return self._process and self._process.pid

    async def address(self) -> str:
        """Where it listens; it is started if it does not run. Raises ChildProcessError when it cannot be."""
        async with self._starting:
            socket = Path(self._folder.name, "socket")
            if self._process is None or self._process.returncode is not None:
                socket.unlink(missing_ok=True)
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", "loopkit.batch.forge", str(socket), *self._arguments),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=self._log,
                    # Threads of numerical libraries do not survive a fork. The rest of the environment comes with each request.
                    env={**self._env, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                    start_new_session=True,  # Ctrl-C is for us
                )
                if not await self._process.stdout.readline():
                    code = await self._process.wait()
                    raise ChildProcessError(
                        f"the process that starts kernels warm ended with exit code {code}"
                    )
            return str(socket)


async def ended(process: Forked) -> int:
    """Wait for its end without blocking the event loop; return the exit code."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(process, readable.set)
    try:
        while (code := process.poll()) is None:
            await readable.wait()
            readable.clear()
    finally:
        loop.remove_reader(process)
    return code
