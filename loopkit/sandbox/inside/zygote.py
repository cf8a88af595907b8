"""The warm process that programs are forked from: it loads the libraries once, then only forks.

It has one thread and never runs a program's code itself. Requests come over a socket, each with the descriptors of the
run: the channel to the host, and the files for its output.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
from typing import Any

from . import kernel, walls, warden


def main(control: socket.socket, settings: dict[str, Any]) -> None:
    """Serve until the host closes `control`, or once with `settings["once"]`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the host's terminal is the host's affair
    built = walls.Walls(**settings["walls"])
    try:
        built.survey()
        report = built.report()
        missing = [name for name in settings["require"] if report.get(name, walls.NONE) == walls.NONE]
        if missing:
            raise PermissionError(f"not to be had on this machine: {', '.join(missing)} (in force: {report})")
        built.build()
        missing = _load(settings["preload"])
    except Exception as error:
        _send(control, {"error": f"{type(error).__name__}: {error}"})
        return
    # Collections would write to every page that is shared with the programs.
    gc.collect()
    gc.freeze()
    kernel.collapse()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
    _send(control, {"protection": report, "missing": missing})
    # One warden always waits already: half of the forking is done before a run is asked for.
    spare = _prepare(built, control)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 3)
        if not message:
            return
        with spare:
            socket.send_fds(spare, [message], descriptors)
        for fd in descriptors:
            os.close(fd)
        spare = _prepare(built, control)


def _prepare(built: walls.Walls, control: socket.socket) -> socket.socket:
    """Fork a warden that waits for its request on the socket returned."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if _fork(built):
        theirs.close()
        return ours
    control.close()
    ours.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ready = warden.Warden(built)
    message, descriptors, _, _ = socket.recv_fds(theirs, 1 << 16, 3)
    if message:
        theirs.close()
        channel, *out = descriptors
        ready.main(socket.socket(fileno=channel), out, **json.loads(message))
    os._exit(0)  # the zygote is gone


def _fork(built: walls.Walls) -> int:
    """Fork, into a new process table where there are namespaces."""
    if not built.namespaces:
        return os.fork()
    kernel.unshare(kernel.NEW_PID)
    pid = os.fork()
    if pid:
        kernel.set_namespace(built.own_pids, kernel.NEW_PID)
    return pid


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


def _send(control: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the host is gone, which the next read finds out
        control.sendall(json.dumps(message).encode())
