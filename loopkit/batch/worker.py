"""Executes one notebook in a process of its own: `python -m loopkit.batch.worker PARENT`, a job as JSON on standard input.

In a batch it is a fork of a process that is loaded already, where there can be one (`loopkit.batch.forge`); PARENT is 0
then. The last line on standard output is how it went, from what papermill raised and never from what the executed
notebook says: papermill leaves cells "completed" when a kernel dies.
"""

import errno
import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Literal

Failure = Literal["failed", "timeout", "dead_kernel", "out_of_memory", "disk_full", "error", "dead_worker"]
"""How a notebook ends that is not `done`: `failed` by an exception of its own, `timeout` over a limit of time,
`error` by anything that papermill raises beside, `dead_worker` without a word (which is the runner's to say)."""
FULL = os.strerror(errno.ENOSPC)


def main() -> None:
    """Read the job, execute, print how it went. The argument is the process id of who started this, or 0."""
    if parent := int(sys.argv[1]):
        _end_with(parent)
    job = json.loads(sys.stdin.read())
    print(json.dumps(execute(**job)), flush=True)


def execute(
    notebook: str, output: str, parameters: dict[str, Any], timeout: int, memory: int | None, cwd: str
) -> dict[str, str]:
    """Run the notebook through papermill; return its `status` and, when that is not `done`, a `detail`.

    A cell may take `timeout` seconds, the kernel `memory` MiB (None: as much as there is).
    """
    from loopkit.batch._papermill import papermill  # isort: skip - before anything that imports nbformat
    from jupyter_client.provisioning import KernelProvisionerFactory
    from nbclient.exceptions import CellTimeoutError

    from loopkit.batch import provisioner

    KernelProvisionerFactory.instance().default_provisioner_name = provisioner.NAME
    if memory:
        _limit(memory)
    killed = _killed_for_memory()
    try:
        papermill.execute_notebook(
            notebook,
            output,
            parameters=parameters,
            cwd=cwd,
            progress_bar=False,
            execution_timeout=timeout,
            autosave_cell_every=10,
            store_widget_state=False,
        )
    except papermill.PapermillExecutionError as error:
        said = f"{error.ename}: {error.evalue}"
        if error.ename == "MemoryError":
            return {"status": "out_of_memory", "detail": said}
        return {"status": "disk_full" if FULL in said else "failed", "detail": said}
    except CellTimeoutError:
        return {"status": "timeout", "detail": f"a cell took longer than {timeout} s"}
    except (
        RuntimeError,
        ChildProcessError,
    ) as error:  # nbclient's, and jupyter_client's of one that never answered
        if _killed_for_memory() != killed:
            return {"status": "out_of_memory", "detail": "the system ran out of memory and killed the kernel"}
        return {"status": "dead_kernel", "detail": f"{error}{_how(provisioner.Provisioner.exit_code)}"}
    except MemoryError:
        return {"status": "out_of_memory", "detail": "papermill ran out of memory"}
    except Exception as error:
        full = isinstance(error, OSError) and error.errno == errno.ENOSPC
        return {"status": "disk_full" if full else "error", "detail": f"{type(error).__name__}: {error}"}
    return {"status": "done", "detail": ""}


def read_report(said: bytes, code: int) -> dict[str, str]:
    """How a worker says that it went, from its standard output and its exit code (negative for a signal)."""
    last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
    try:
        return json.loads(last)
    except ValueError:
        return {"status": "dead_worker", "detail": f"the worker process ended with no report{_how(code)}"}


def _limit(mebibytes: int) -> None:
    """For this process and its children, so for the kernel. Of the data segment: address space says little of use."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (mebibytes << 20, hard))


def _killed_for_memory() -> str | None:
    """How many processes Linux has killed so far for want of memory, in this control group or at all."""
    for path in ("/sys/fs/cgroup/memory.events", "/proc/vmstat"):
        try:
            counted = re.search(r"^oom_kill (\d+)", Path(path).read_text(), re.MULTILINE)
        except OSError:
            continue
        if counted:
            return counted[1]
    return None


def _how(code: int | None) -> str:
    if code is None:
        return ""
    return f" (signal {-code})" if code < 0 else f" (exit code {code})"


def _end_with(parent: int) -> None:
    """A killed batch must not leave notebooks running: watch for the runner's end and stop, kernel included."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
