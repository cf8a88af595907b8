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
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
    The program is killed with all its children at the limit. It reads nothing on standard input.
    """
    if not code.strip():
        raise ValueError("refusing to run empty code: an empty answer is the model's failure, not a program")
    with tempfile.TemporaryDirectory(prefix="loopkit-") as folder:
        Path(folder, "main.py").write_bytes(code.encode("utf-8", "replace"))
        started = time.perf_counter()
        # -I: no PYTHON* variables, no user packages, nothing imported from the working folder.
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", _BOOT, str(int(timeout) + 1), str(memory)),
            cwd=folder,
            env={"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": folder, "OPENBLAS_NUM_THREADS": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        streams = asyncio.gather(_read(child.stdout, max_output), _read(child.stderr, max_output))
        timed_out = False
        try:
            await asyncio.wait_for(asyncio.shield(child.wait()), timeout)
        except TimeoutError:
            timed_out = True
        finally:
            _kill_group(child.pid)  # what the program started may outlive it
        await child.wait()
        stdout, stderr = await streams
        seconds = time.perf_counter() - started
    ended = "timeout" if timed_out else "ok" if child.returncode == 0 else "error"
    return Execution(ended=ended, stdout=stdout, stderr=stderr, seconds=seconds)


async def _read(stream: asyncio.StreamReader, limit: int) -> str:
    kept = bytearray()
    # Read to the end even past the limit: a full pipe would block the program instead of ending it.
    while chunk := await stream.read(65536):
        kept += chunk[: max(0, limit - len(kept))]
    return kept.decode("utf-8", "replace")


def _kill_group(pid: int) -> None:
    # Already gone; macOS says PermissionError for a group of zombies.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
