"""The process that stands between the host and the runs: it has the libraries loaded once, and then only forks.

It has one thread and never runs a program's code itself. Requests come over a socket, each with the descriptors of the
run: the channel to the host, and the files for its output. With namespaces it forks wardens, and leaves the libraries,
and forking the programs, to another process (see `forge`).
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import traceback
from collections import deque
from contextlib import suppress
from typing import Any, NoReturn

from . import NONE, forge, kernel, walls, warden, warming

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
        forger = None
        if built.namespaces and not settings["once"]:
            forger, missing = _start_forge(control, settings["preload"], built, own_pids)
        else:
            missing = _load(settings["preload"])
    except Exception as error:
        _tell(control, {"error": f"{type(error).__name__}: {error}"})
    else:
        _freeze()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
        _tell(control, {"protection": report, "missing": missing})
        Nursery(control, built, own_pids, forger).serve(once=settings["once"])
    os._exit(0)


def _freeze() -> None:
    # Collections would write to every page that is shared with the programs.
    gc.collect()
    gc.freeze()
    kernel.collapse()


def _start_forge(
    control: socket.socket, preload: list[str], built: walls.Walls, own_pids: int
) -> tuple[socket.socket, list[str]]:
    """Fork the process that loads the libraries; return the socket for its orders, and what is not installed."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        control.close()
        ours.close()
        try:
            kernel.die_with_parent()
            _tell(theirs, {"missing": _load(preload)})
            _freeze()
            forge.serve(theirs, built, own_pids)
        except Exception as error:
            _tell(theirs, {"error": f"{type(error).__name__}: {error}"})
        finally:
            os._exit(1)
    theirs.close()
    with ours.dup() as copy, copy.makefile("rb") as lines:
        answer = json.loads(lines.readline() or b'{"error": "it died at once"}')
    if "error" in answer:
        raise ImportError(f"the libraries cannot be loaded: {answer['error']}")
    return ours, answer["missing"]


class Nursery:
    """Wardens that wait for a run. `forger`: who forks the processes for programs, if the wardens do not themselves."""

    def __init__(
        self, control: socket.socket, built: walls.Walls, own_pids: int | None, forger: socket.socket | None
    ) -> None:
        self._control, self._built, self._own_pids, self._forger = control, built, own_pids, forger
        self._spares: deque[socket.socket] = deque()

    def serve(self, *, once: bool) -> None:
        """Give each run a warden, until the host or the forger is gone."""
        poll = select.poll()
        for end in filter(None, (self._control, self._forger)):
            poll.register(end, select.POLLIN)
        while True:
            with suppress(OSError):  # it is tried again when it is needed, and told then
                while len(self._spares) < (1 if once else _SPARES):
                    self._spares.append(self._new())
            if any(fd != self._control.fileno() for fd, _ in poll.poll()):
                return  # without the forger no run can start: the host starts another zygote
            byte, descriptors, _, _ = socket.recv_fds(self._control, 1, 3)
            if not byte:
                return
            self._hand_over(descriptors)
            for fd in descriptors:
                os.close(fd)
            if once:
                with suppress(ChildProcessError):
                    os.waitpid(-1, 0)  # they end when their host wants it, and their process table with us
                return

    def _hand_over(self, descriptors: list[int]) -> None:
        """Give a run's descriptors to a warden that is alive; tell the host if there is none to be had."""
        try:
            while True:
                with (
                    self._spares.popleft() if self._spares else self._new() as warden_,
                    suppress(BrokenPipeError),
                ):
                    socket.send_fds(warden_, [b"+"], descriptors)
                    return
        except OSError as error:
            with socket.socket(fileno=os.dup(descriptors[0])) as channel:
                _tell(channel, {"ended": "broken", "message": f"cannot start a process: {error}"})

    def _new(self) -> socket.socket:
        """Fork a warden, which waits for its descriptors on the other end of the socket returned."""
        ours, theirs = socket.socketpair()
        with theirs:
            if self._fork() == 0:
                try:
                    for end in (self._control, ours, *self._spares):
                        end.close()
                    self._become_warden(theirs)
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(1)
        return ours

    def _fork(self) -> int:
        """Fork, into a new process table where there are namespaces."""
        if self._own_pids is None:
            return os.fork()
        kernel.unshare(kernel.NEW_PID)
        pid = None
        try:
            pid = os.fork()
        finally:
            if pid != 0:
                kernel.set_namespace(self._own_pids, kernel.NEW_PID)
        return pid

    def _become_warden(self, orders: socket.socket) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        failure = None
        try:
            ready = warden.Warden(self._built, self._forger)
            # Elsewhere a look would be at every process of the machine.
            if self._built.namespaces and not select.select([orders], [], [], 0)[0]:
                ready.rehearse()
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
    warming.libraries()
    return missing


def _tell(end: socket.socket, message: dict[str, Any]) -> None:
    with suppress(OSError):  # the host is gone, which the next read finds out
        end.sendall(json.dumps(message).encode() + b"\n")
