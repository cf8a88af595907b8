"""The process that has the libraries loaded, and forks the processes for programs into the wardens' namespaces.

So a warden need not carry the libraries: forking and taking down that much memory is what a short run costs most.
Without namespaces it cannot be: there a warden has to be the parent of its program to find all that comes from it.
"""

import json
import os
import select
import signal
import socket
import traceback
from contextlib import suppress
from typing import NoReturn

from . import kernel, program
from .walls import Walls

CHILD = 2
"""The number that the program's process has in the warden's process table."""


def order(forge: socket.socket, channel: socket.socket) -> socket.socket:
    """For a warden: have a process forked into our namespaces, with `channel` to take orders from.

    When it has ended, `{"status": …, "cpu": seconds}` comes over the socket returned.
    """
    ours, theirs = socket.socketpair()
    spaces = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in ("pid", "mnt")]
    with theirs:
        socket.send_fds(forge, [b"+"], [*spaces, channel.fileno(), theirs.fileno()])
    for fd in spaces:
        os.close(fd)
    return ours


def serve(orders: socket.socket, built: Walls, own_pids: int) -> NoReturn:
    """Fork as ordered, until nobody is left to order."""
    ended, notice = socket.socketpair()
    for end in (ended, notice):
        end.setblocking(False)
    signal.set_wakeup_fd(notice.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting: dict[int, socket.socket] = {}
    poll = select.poll()
    poll.register(orders, select.POLLIN)
    poll.register(ended, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == ended.fileno():
                ended.recv(1 << 12)
                _report(waiting)
                continue
            byte, descriptors, _, _ = socket.recv_fds(orders, 1, 4)
            if not byte:
                os._exit(0)
            pids, mounts, channel, told = descriptors
            told = socket.socket(fileno=told)
            try:
                pid = _fork(pids, own_pids)
            except OSError:
                _tell(told, 1 << 8, 0.0)
            else:
                if pid == 0:
                    _become_program(mounts, channel, built)
                waiting[pid] = told
            for fd in (pids, mounts, channel):
                os.close(fd)


def _fork(pids: int, own_pids: int) -> int:
    pid = None
    kernel.set_namespace(pids, kernel.NEW_PID)
    try:
        pid = os.fork()
    finally:
        if pid != 0:
            kernel.set_namespace(own_pids, kernel.NEW_PID)
    return pid


def _become_program(mounts: int, channel: int, built: Walls) -> NoReturn:
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        kernel.set_namespace(mounts, kernel.NEW_MOUNT)
        program.keep_only(channel)
        program.prepare(built, socket.socket(fileno=channel))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _report(waiting: dict[int, socket.socket]) -> None:
    with suppress(ChildProcessError):
        while True:
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            if told := waiting.pop(
                pid, None
            ):  # where there is no filter, a program can leave us a child of its own
                _tell(told, status, used.ru_utime + used.ru_stime)


def _tell(told: socket.socket, status: int, cpu: float) -> None:
    with told, suppress(OSError):  # the warden is gone already
        told.sendall(json.dumps({"status": status, "cpu": cpu}).encode() + b"\n")
