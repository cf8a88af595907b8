"""Executing notebooks on a Dask cluster: `loopkit batch FILE --dask tcp://host:8786` (extra `loopkit[dask]`).

A task carries what it needs: the notebook, its parameters, and what is on record of its trials. The worker of the cluster
has the same loopkit and the same experiments installed; it executes the notebook in a process and a folder of its own, and
answers with the records, the executed notebook and the log. They are written here, whole or not at all, by the one process
that holds the batch's folder. When a worker is lost, the scheduler gives its task to another; that one begins anew.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from loopkit.batch.spec import BatchSpec, Cell, SpecError, trial_keys
from loopkit.batch.trials import recorded_result
from loopkit.batch.worker import read_report
from loopkit.store import StoreError, read_events

CONNECTING = 10
"""Seconds to wait for a scheduler."""


@contextlib.asynccontextmanager
async def cluster_hands(spec: BatchSpec, out: Path, address: str) -> AsyncIterator["ClusterHands"]:
    """Hands for as many notebooks at once as the cluster has threads. Raises SpecError when there is no cluster."""
    try:
        from distributed import Client
    except ImportError as error:
        raise SpecError("--dask needs the package distributed: pip install 'loopkit[dask]'") from error
    try:
        client = await Client(address, asynchronous=True, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SpecError(f"no Dask scheduler answers at {address!r}: {error}") from error
    try:
        threads = sum((await client.nthreads()).values())
        if not threads:
            raise SpecError(
                f"the Dask scheduler at {address} has no worker; start one with `dask worker {address}`"
            )
        yield ClusterHands(spec=spec, out=out, at_once=threads, client=client, address=address)
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            await client.close()


@dataclass(frozen=True, kw_only=True)
class ClusterHands:
    """The workers of a cluster."""

    spec: BatchSpec
    out: Path
    at_once: int
    client: Any
    address: str

    async def execute(self, cell: Cell) -> dict[str, str]:
        """Its `status`, and a `detail` if that is not `done`."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        job = {
            "experiment": self.spec.experiment,
            "cell": cell,
            "notebook": self.spec.notebook.read_bytes(),
            "records": self._known(cell),
            "timeout": self.spec.timeout,
            "notebook_timeout": self.spec.notebook_timeout,
            "memory": self.spec.memory,
        }
        name = f"{cell.id}-{uuid4().hex[:8]}"
        future = self.client.submit(execute_there, job, name, key=name, pure=False)
        try:
            answer = await future
        except KilledWorker as error:
            return {"status": "dead_worker", "detail": f"workers of the cluster were lost over it: {error}"}
        except FutureCancelledError as error:
            return {"status": "dead_worker", "detail": f"the cluster at {self.address} let go of it: {error}"}
        except asyncio.CancelledError:
            await future.cancel()
            raise
        for path, data in answer.pop("files").items():
            self._keep(self.out / path, data)
        return answer

    def _known(self, cell: Cell) -> dict[str, bytes]:
        """The logs of the cell's trials, of every attempt, by file name."""
        folder = self.out / "records"
        paths = (
            path for key in cell.keys for path in (folder / f"{key}.jsonl", *folder.glob(f"{key}.*.jsonl"))
        )
        return {path.name: path.read_bytes() for path in paths if path.exists()}

    def _keep(self, path: Path, data: bytes) -> None:
        """Write a file that came back; a log of ours that settles a trial, or has more in it, is left as it is."""
        log = path.parent.name == "records"
        if log and path.exists():
            mine = path.read_bytes()
            if recorded_result(read_events(path)) or not data.startswith(mine):
                return
        part = path.with_name(path.name + ".part")
        try:
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from error


def execute_there(job: dict[str, Any], name: str) -> dict[str, Any]:
    """On a worker of the cluster: execute the notebook of a job; return `status`, `detail` and the `files` made.

    `name` is the task's; when nobody wants its result any more, the notebook is ended.
    """
    from distributed import get_worker

    worker, cell = get_worker(), job["cell"]
    with tempfile.TemporaryDirectory(prefix="loopkit-cell-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        for part in ("records", "notebooks", "logs"):
            (place / part).mkdir()
        notebook = place / "notebook.ipynb"
        notebook.write_bytes(job["notebook"])
        if trial_keys(job["experiment"], notebook, cell.params) != cell.keys:
            detail = f"the code or the data at {worker.address} differ from ours: install the same there"
            return {"status": "error", "detail": detail, "files": {}}
        for file, data in job["records"].items():
            (place / "records" / file).write_bytes(data)

        def wanted() -> bool:
            task = worker.state.tasks.get(name)
            return task is not None and task.state == "executing"

        how = _in_process(job, place, wanted)
        paths = (path for part in ("records", "notebooks", "logs") for path in (place / part).iterdir())
        files = {
            str(path.relative_to(place)): path.read_bytes() for path in paths if path.suffix != ".sqlite"
        }
    return how | {"files": files}


def _in_process(job: dict[str, Any], place: Path, wanted: Callable[[], bool]) -> dict[str, str]:
    cell, limit = job["cell"], job["notebook_timeout"]
    order = {
        "notebook": str(place / "notebook.ipynb"),
        "output": str(place / "notebooks" / f"{cell.id}.ipynb"),
        "parameters": cell.params | {"out": str(place)},
        "timeout": job["timeout"],
        "memory": job["memory"],
        "cwd": str(place),
    }
    with (
        (place / "logs" / f"{cell.id}.log").open("ab") as log,
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as said,
    ):
        given.write(json.dumps(order).encode())
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "loopkit.batch.worker", str(os.getpid())],
            stdin=given,
            stdout=said,
            stderr=log,
            env=os.environ | {"TMPDIR": str(place), "JUPYTER_RUNTIME_DIR": str(place)},
            start_new_session=True,
        )
        started, late = time.monotonic(), False
        while process.poll() is None and wanted() and not late:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
            late = limit is not None and time.monotonic() - started > limit
        if process.poll() is None:
            process.terminate()  # it takes its kernel along
            process.wait()
        if late:
            return {"status": "timeout", "detail": f"the notebook took longer than {limit} s"}
        said.seek(0)
        return read_report(said.read(), process.returncode)
