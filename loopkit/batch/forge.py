"""The process that starts others warm: it loads what notebooks import, once, and forks workers and kernels from itself.

`python -P -m loopkit.batch.forge SOCKET EXPERIMENT NOTEBOOK` listens at a Unix socket until its standard input ends. Who asks sends
a line of JSON, and with it the descriptors for standard input, output and error (`loopkit.batch.warm` is who asks):

    {"run": "worker" or "kernel", "argv": […], "cwd": path, "env": {…}, "data": [soft, hard]}

`data` are the limits of the new process's data segment, in bytes, -1 for none. The answer is `{"pid": …}` or `{"error": …}`,
and `{"exit": code}` when the process has ended. When who asked goes away, the process is killed, with its group; when
the starter goes away, all of them are.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import random
import resource
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from loopkit.batch.spec import find_experiment
from loopkit.sandbox.inside.kernel import die_with_parent

MODULES = (
    "loopkit.batch._papermill",  # before anything that imports nbformat
    "loopkit.batch.worker", "loopkit.batch.provisioner", "nbclient.client", "jupyter_client.asynchronous",
    "ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell", "ipykernel.debugger", "ipykernel.kernelspec",
    "IPython.core.completer", "IPython.core.completerlib", "IPython.core.oinspect", "IPython.extensions.storemagic",
    "psutil", "portalocker", "tornado.platform.asyncio", "anyio._backends._asyncio", "genai_prices.data",
    "numpy", "pandas", "plotly.graph_objects", "plotly.io", "ipywidgets", "pydantic_ai",
    "loopkit.models", "loopkit.views",
)  # fmt: skip
"""Loaded beside the experiment: what `sys.modules` of workers and kernels has, and would take time in each of them."""


def main() -> None:
    """Load, print a line, serve."""
    die_with_parent()
    path, experiment, notebook = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the starter's to deal with
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    gc.disable()  # importing makes a great many objects, and hardly any garbage
    for name in MODULES:
        importlib.import_module(name)
    find_experiment(experiment, Path(notebook))
    nbformat = sys.modules["nbformat"]
    nbformat.validate(nbformat.v4.new_notebook())  # it compiles the schema, and keeps that
    gc.collect()
    gc.freeze()  # collections would write to every page that is shared with the forks
    gc.enable()
    print("ready", flush=True)
    _Forge(listener).serve()


class _Forge:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._pids: dict[int, int] = {}
        """By the descriptor of the connection over which it was asked for; 0 once it has ended."""
        self._askers: dict[int, socket.socket] = {}

    def serve(self) -> NoReturn:
        ended, notice = socket.socketpair()
        for end in (ended, notice):
            end.setblocking(False)
        signal.set_wakeup_fd(notice.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        for fd in (self._listener.fileno(), ended.fileno(), 0):
            poll.register(fd, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == 0:
                    self._end()
                elif fd == ended.fileno():
                    ended.recv(1 << 12)
                    self._reap()
                elif fd == self._listener.fileno():
                    if (asker := self._take()) is not None:
                        poll.register(asker, select.POLLIN)
                else:
                    poll.unregister(fd)
                    self._leave(fd)

    def _take(self) -> int | None:
        asker, _ = self._listener.accept()
        try:
            _, descriptors, _, _ = socket.recv_fds(asker, 1, 3)
            with asker.makefile("rb") as lines:
                request = json.loads(lines.readline())
        except (OSError, ValueError):  # it went away in the middle of a sentence
            asker.close()
            return None
        try:
            pid = os.fork()
        except OSError as error:
            _tell(asker, {"error": f"cannot fork: {error.strerror}"})
            pid = 0
        else:
            if pid == 0:
                self._become(request, descriptors)
            _tell(asker, {"pid": pid})
        for fd in descriptors:
            os.close(fd)
        self._askers[asker.fileno()], self._pids[asker.fileno()] = asker, pid
        return asker.fileno()

    def _become(self, request: dict[str, Any], descriptors: list[int]) -> NoReturn:
        """In the fork: turn into what was asked for. Nothing above this frame ever runs again."""
        code = 1
        try:
            os.setsid()
            die_with_parent()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number, fd in enumerate(descriptors):
                os.dup2(fd, number)
            # The objects that these belong to stay referenced by the frames above, and so never close a number again.
            for name in os.listdir("/dev/fd"):
                with contextlib.suppress(OSError):
                    if int(name) > 2:
                        os.close(int(name))
            os.environ.clear()
            os.environ.update(request["env"])
            os.chdir(request["cwd"])
            resource.setrlimit(resource.RLIMIT_DATA, tuple(request["data"]))
            sys.argv = list(request["argv"])
            random.seed()
            sys.modules["numpy"].random.seed()
            code = _RUN[request["run"]]()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                atexit._run_exitfuncs()
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(code)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                _kill(ended.si_pid)  # what it started and left behind; before its number is free for others
                pid, status = os.waitpid(ended.si_pid, 0)
                for fd, known in self._pids.items():
                    if known == pid:
                        self._pids[fd] = 0
                        _tell(self._askers[fd], {"exit": os.waitstatus_to_exitcode(status)})

    def _leave(self, fd: int) -> None:
        if pid := self._pids.pop(fd):
            _kill(pid)
        self._askers.pop(fd).close()

    def _end(self) -> NoReturn:
        for pid in filter(None, self._pids.values()):
            _kill(pid)
        os._exit(0)


def _worker() -> int:
    from loopkit.batch import worker

    worker.main()
    return 0


def _kernel() -> int:
    from ipykernel.kernelapp import IPKernelApp

    # 1: there is a parent, and nothing to be watched; the forge ends the kernel.
    app = IPKernelApp.instance(parent_handle=1)
    app.initialize(sys.argv[1:])
    app.start()
    # ipykernel's way out stops the thread that prints while the one that was told to shut down still flushes through it,
    # sometimes, and then waits for both in vain; let the latter end first.
    app.control_thread.join(1)
    return 0


_RUN = {"worker": _worker, "kernel": _kernel}


def _kill(pid: int) -> None:
    """A process and its group; it may not have made one yet, or be gone but for its group."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _tell(asker: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # it is gone, which the next poll finds out
        asker.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
