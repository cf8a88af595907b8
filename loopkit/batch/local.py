"""Executing notebooks on this machine: each in a worker process, warm where that can be."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from loopkit.batch.plan import Planned
from loopkit.batch.spec import BatchSpec, Cell
from loopkit.batch.warm import FORGE, Forge, Forked, ended
from loopkit.batch.worker import read_report
from loopkit.models import serving
from loopkit.store import StoreError

# Figures in an executed notebook: for JupyterLab, and for a page made of it, where plotly.js comes from the web.
RENDERER = "plotly_mimetype+notebook_connected"
Stdio = tuple[int, int, int]


def can_fork() -> bool:
    """Whether workers and kernels can start warm here."""
    return sys.platform.startswith("linux")


@contextlib.asynccontextmanager
async def local_hands(
    spec: BatchSpec, out: Path, planned: Sequence[Planned], *, workers: int, warm: bool
) -> AsyncIterator["LocalHands"]:
    """Hands for what is planned, `workers` at once. What they need is started first, and ended with the block.

    Raises StoreError when the batch's folder cannot be written.
    """
    # Several workers share the cores: one thread each beats all threads for all, which would wait for each other.
    threads = os.environ.get("LOOPKIT_THREADS") or str(max(1, (os.cpu_count() or 1) // workers))
    env = os.environ | {"LOOPKIT_THREADS": threads}
    env.setdefault("PLOTLY_RENDERER", RENDERER)
    async with contextlib.AsyncExitStack() as opened:
        log = opened.enter_context(_open_log(out / "logs" / "batch.log"))
        # So that nothing is left of what ended in the middle of something.
        folder = tempfile.TemporaryDirectory(prefix="loopkit-batch-", ignore_cleanup_errors=True)
        env["TMPDIR"] = env["JUPYTER_RUNTIME_DIR"] = opened.enter_context(folder)
        forge = server = None
        if warm and can_fork():
            forge = Forge(spec.experiment, spec.notebook, env=env, log=log)
            await opened.enter_async_context(forge)
        if sum(one.cell.params.get("model") == "embedded" for one in planned) > 1:
            server = opened.enter_context(serving.ModelServer(slots=workers, log=log))
        yield LocalHands(spec=spec, out=out, at_once=workers, env=env, forge=forge, server=server)


@dataclass(frozen=True, kw_only=True)
class LocalHands:
    """Worker processes on this machine."""

    spec: BatchSpec
    out: Path
    at_once: int
    env: Mapping[str, str]
    forge: Forge | None
    server: serving.ModelServer | None

    async def execute(self, cell: Cell) -> dict[str, str]:
        """Its `status`, and a `detail` if that is not `done`."""
        job = {
            "notebook": str(self.spec.notebook.resolve()),
            "output": str(self.out / "notebooks" / f"{cell.id}.ipynb"),
            "parameters": cell.params | {"out": str(self.out)},
            "timeout": self.spec.timeout,
            "memory": self.spec.memory,
            "cwd": str(self.spec.notebook.resolve().parent),
        }
        limit = self.spec.notebook_timeout
        with (
            _open_log(self.out / "logs" / f"{cell.id}.log") as log,
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as said,
        ):
            given.write(json.dumps(job).encode())
            given.seek(0)
            try:
                env = await self._environment()
                async with asyncio.timeout(limit):
                    code = await self._worker(env, (given.fileno(), said.fileno(), log.fileno()))
            except TimeoutError:
                return {"status": "timeout", "detail": f"the notebook took longer than {limit} s"}
            except (ChildProcessError, RuntimeError) as error:
                return {"status": "dead_worker", "detail": str(error)}
            said.seek(0)
            return read_report(said.read(), code)

    async def _environment(self) -> dict[str, str]:
        """Of a worker. What it will need of us is running by then."""
        env = dict(self.env)
        if self.server:
            env[serving.ADDRESS] = await asyncio.to_thread(self.server.address)
        if self.forge:
            env[FORGE] = await self.forge.address()
        return env

    async def _worker(self, env: Mapping[str, str], stdio: Stdio) -> int:
        if not self.forge:
            return await _cold(env, stdio)
        process = Forked(env[FORGE], "worker", ["worker", "0"], cwd=os.getcwd(), env=env, stdio=stdio)
        try:
            return await ended(process)
        finally:
            process.close()  # and its kernel with it


async def _cold(env: Mapping[str, str], stdio: Stdio) -> int:
    stdin, stdout, stderr = stdio
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "loopkit.batch.worker", str(os.getpid())),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=env,
        start_new_session=True,  # Ctrl-C reaches the runner, which ends its workers in order
    )
    try:
        return await worker.wait()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            worker.terminate()  # it takes its kernel along
        try:
            await asyncio.wait_for(worker.wait(), 5)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            await worker.wait()
        raise


def _open_log(path: Path) -> BinaryIO:
    try:
        return path.open("ab")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
