"""The warm process that programs are forked from: it loads the libraries once, then only forks.

It has one thread and never runs a program's code itself. Requests come over a socket, each with the descriptors of the
run: the channel to the host, and the files for its output.
"""

import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NoReturn

from . import NONE, kernel, walls, warden

_SPARES = 2
"""Wardens that wait already, each with a process for its program: most of the work is done before a run is asked for.
With one alone, runs that follow each other at once would wait for it."""


def main(control: socket.socket, settings: dict[str, Any]) -> NoReturn:
    """Serve until the host closes `control`; only one run with `settings["once"]`.

    Over `control` goes one line, `{"protection": …, "missing": …}` or `{"error": …}`; then comes a byte for each run.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the host's terminal is the host's affair
    try:
        asked = walls.Walls(**settings["walls"])
        built = walls.survey(asked, settings["wanted"])
        report = built.report()
        if absent := [name for name in settings["require"] if report[name] == NONE]:
            raise PermissionError(f"not to be had on this machine: {', '.join(absent)} (in force: {report})")
        own_pids = built.build()
        missing = _load(settings["preload"])
    except Exception as error:
        _tell(control, {"error": f"{type(error).__name__}: {error}"})
    else:
        # Collections would write to every page that is shared with the programs.
        gc.collect()
        gc.freeze()
        kernel.collapse()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
        _tell(control, {"protection": report, "missing": missing})
        _serve(control, built, own_pids, once=settings["once"])
    os._exit(0)


def _serve(control: socket.socket, built: walls.Walls, own_pids: int | None, *, once: bool) -> None:
    spares: deque[socket.socket] = deque()
    while True:
        with suppress(OSError):  # it is tried again when it is needed, and told then
            while len(spares) < (1 if once else _SPARES):
                spares.append(_prepare(control, built, own_pids, spares))
        byte, descriptors, _, _ = socket.recv_fds(control, 1, 3)
        if not byte:
            return
        try:
            while not _hand_over(
                spares.popleft() if spares else _prepare(control, built, own_pids), descriptors
            ):
                pass  # this one was killed
        except OSError as error:  # no more processes to be had
            with socket.socket(fileno=os.dup(descriptors[0])) as channel:
                _tell(channel, {"ended": "broken", "message": f"cannot start a process: {error}"})
        for fd in descriptors:
            os.close(fd)
        if once:
            with suppress(ChildProcessError):
                os.waitpid(-1, 0)  # they end when their host wants it, and their process table with us
            return


def _prepare(
    control: socket.socket, built: walls.Walls, own_pids: int | None, others: Iterable[socket.socket] = ()
) -> socket.socket:
    """Fork a warden that waits for its descriptors on the socket returned."""
    ours, theirs = socket.socketpair()
    with theirs:
        pid = _fork(own_pids)
        if pid == 0:
            try:
                for end in (control, ours, *others):
                    end.close()
                _become_warden(theirs, built)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
    return ours


def _hand_over(spare: socket.socket, descriptors: list[int]) -> bool:
    with spare, suppress(OSError):
        return socket.send_fds(spare, [b"+"], descriptors) == 1
    return False


def _fork(own_pids: int | None) -> int:
    """Fork, into a new process table where there are namespaces."""
    if own_pids is None:
        return os.fork()
    kernel.unshare(kernel.NEW_PID)
    pid = None
    try:
        pid = os.fork()
    finally:
        if pid != 0:
            kernel.set_namespace(own_pids, kernel.NEW_PID)
    return pid


def _become_warden(orders: socket.socket, built: walls.Walls) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    failure = None
    try:
        ready = warden.Warden(built)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    byte, descriptors, _, _ = socket.recv_fds(orders, 1, 3)
    orders.close()
    if not byte:  # the zygote is gone
        return
    channel, *out = descriptors
    channel = socket.socket(fileno=channel)
    if failure:
        _tell(channel, {"ended": "broken", "message": failure})
    else:
        ready.main(channel, out)


def _load(names: list[str]) -> list[str]:
    """Import what programs often use; return what is not installed."""
    missing = []
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    if "sympy" in sys.modules:
        _warm_sympy()
    return missing


def _warm_sympy() -> None:
    """Load what sympy loads at first use, and let it build its tables: half of what a short program waits for."""
    import sympy

    x, y = sympy.symbols("x y")
    sympy.solve([x + y - 3, x - y - 1], [x, y])
    sympy.solve(x**2 - 5 * x + 6, x)
    sympy.simplify(sympy.sin(x) ** 2 + sympy.cos(x) ** 2)
    sympy.summation(x**2, (x, 1, y))
    sympy.factorint(2**31 - 2)


def _tell(end: socket.socket, message: dict[str, Any]) -> None:
    with suppress(OSError):  # the host is gone, which the next read finds out
        end.sendall(json.dumps(message).encode() + b"\n")
