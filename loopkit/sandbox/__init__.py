"""Running code that nobody has read: a child process with limits and nothing of ours in its environment.

This first version keeps honest accidents in: endless loops, memory bombs, endless output, leaked keys. It is no
defence against an attacker, since the child may still read files and open sockets as the user who started it.
"""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

# Runs in the child before the program: limits first, then the program as __main__.
_BOOT = """
import runpy, sys
try:
    import resource
except ImportError:  # not on Windows: the timeout is all there is
    resource = None
if resource:
    cpu, memory = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    try:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except (ValueError, OSError):  # macOS refuses this one
        pass
sys.argv = ["main.py"]
runpy.run_path("main.py", run_name="__main__")
"""


@dataclass(frozen=True, kw_only=True)
class Execution:
    """What a program did. `ended` is `ok` (exit code 0), `error`, or `timeout`."""

    ended: Literal["ok", "error", "timeout"]
    stdout: str
    stderr: str
    seconds: float


async def run_python(
    code: str, *, timeout: float = 10.0, memory: int = 1 << 30, max_output: int = 100_000
) -> Execution:
    """Run `code` as a program of this Python and these packages, in an empty folder and an empty environment.

    `timeout` in seconds (wall), `memory` in bytes of address space, `max_output` in bytes kept of each stream.
    The program is killed with its process group at the limit; it may write 1 MiB to a file or stream, and reads
    nothing on standard input.
    """
    if not code.strip():
        raise ValueError("refusing to run empty code: an empty answer is the model's failure, not a program")
    with tempfile.TemporaryDirectory(prefix="loopkit-") as folder, _streams() as (out, err):
        Path(folder, "main.py").write_bytes(code.encode("utf-8", "replace"))
        started = time.perf_counter()
        # -I: no PYTHON* variables, no user packages, nothing imported from the working folder. Output goes to files
        # and not through pipes: a child that the program leaves behind would hold a pipe open, and us with it.
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", _BOOT, str(int(timeout) + 1), str(memory)),
            cwd=folder,
            env={"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": folder, "OPENBLAS_NUM_THREADS": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        timed_out = False
        try:
            await asyncio.wait_for(child.wait(), timeout)
        except TimeoutError:
            timed_out = True
        finally:
            _kill_group(child.pid)  # what the program started may outlive it
        await child.wait()
        seconds = time.perf_counter() - started
        stdout, stderr = _head(out, max_output), _head(err, max_output)
    ended = "timeout" if timed_out else "ok" if child.returncode == 0 else "error"
    return Execution(ended=ended, stdout=stdout, stderr=stderr, seconds=seconds)


@contextlib.contextmanager
def _streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        yield out, err


def _head(file: BinaryIO, size: int) -> str:
    file.seek(0)
    return file.read(size).decode("utf-8", "replace")


def _kill_group(pid: int) -> None:
    # Already gone; macOS says PermissionError for a group of zombies.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
