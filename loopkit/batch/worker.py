"""Executes one notebook in a process of its own: `python -m loopkit.batch.worker PARENT`, a job as JSON on standard input.

The last line on standard output is the status, from what papermill raised and never from what the executed
notebook says: papermill leaves cells "completed" when a kernel dies.
"""

import json
import os
import signal
import sys
import threading
import time
from typing import Any


def main() -> None:
    """Read the job, execute, print the status. The argument is the runner's process id."""
    _end_with(int(sys.argv[1]))
    job = json.loads(sys.stdin.read())
    print(json.dumps(execute(**job)), flush=True)


def execute(notebook: str, output: str, parameters: dict[str, Any], timeout: int, cwd: str) -> dict[str, str]:
    """Run the notebook through papermill; return its `status` and, when that is not `done`, a `detail`."""
    from loopkit.batch._papermill import papermill  # isort: skip - before anything that imports nbformat
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    try:
        papermill.execute_notebook(
            notebook,
            output,
            parameters=parameters,
            cwd=cwd,
            progress_bar=False,
            execution_timeout=timeout,
            store_widget_state=False,
        )
    except papermill.PapermillExecutionError as error:
        return {"status": "failed", "detail": f"{error.ename}: {error.evalue}"}
    except CellTimeoutError:
        return {"status": "timeout", "detail": f"a cell took longer than {timeout} s"}
    except DeadKernelError as error:
        return {"status": "dead_kernel", "detail": str(error)}
    except Exception as error:
        return {"status": "error", "detail": f"{type(error).__name__}: {error}"}
    return {"status": "done", "detail": ""}


def _end_with(parent: int) -> None:
    """A killed batch must not leave notebooks running: watch for the runner's end and stop, kernel included."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
