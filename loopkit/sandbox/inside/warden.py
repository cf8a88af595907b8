"""The process above the program: it starts it, watches it, and ends it with all its descendants.

With namespaces it is process 1 of the run's own process table: when it goes, all go. It holds the only channel to the
host, and takes the host's going away for a reason to end.
"""

import contextlib
import json
import os
import resource
import select
import signal
import socket
import stat
import time
from typing import Any

from . import program
from .walls import Walls

_TICK = 0.02
_IDLE_TICK = 0.2
_DISK_TICK = 0.25
_MAX_FILES = 20_000
_MAX_REPLY = 4 << 20
_GRACE = 1.0
"""Seconds that a session has to answer an interrupt before it is ended."""
_HERTZ = os.sysconf("SC_CLK_TCK")


class Warden:
    """One run: a one-shot program or a session."""

    def __init__(self, built: Walls) -> None:
        """Fork the process for a program, which waits; so does this one, until `main` tells them what for."""
        self.walls = built
        built.separate()
        self._program, theirs = socket.socketpair()
        self._child = os.fork()
        if self._child == 0:
            self._program.close()
            program.prepare(built, theirs)
        theirs.close()
        self._status: int | None = None
        self._ready = False
        self._started: float | None = None
        self._interrupted: float | None = None
        self._base_cpu = self._base_output = self._base_memory = self._peak = 0
        self._next_disk = 0.0
        self._from_host = self._from_program = b""

    def main(
        self, channel: socket.socket, out: list[int], *, folder: str, once: bool, limits: dict[str, Any]
    ) -> None:
        """Serve one run; never returns.

        `channel`: to the host, a request a line, an answer a line. `out`: the files for stdout and stderr.
        `limits`: the fields of `Limits`.
        """
        self.channel, self.out, self.folder, self.once, self.limits = channel, out, folder, once, limits
        with contextlib.suppress(BaseException):
            self._serve()
        self._end_all()
        os._exit(0)

    def _serve(self) -> None:
        try:
            self.walls.enclose(self.folder, self.limits["scratch"])
        except Exception as error:
            self._tell({"ended": "broken", "message": f"{type(error).__name__}: {error}"})
            return
        setup = {"folder": self.folder, "once": self.once, "limits": self.limits}
        socket.send_fds(self._program, [json.dumps(setup).encode()], self.out)
        self._base_memory = _anonymous(os.getpid())
        poll = select.poll()
        poll.register(self.channel, select.POLLIN)
        poll.register(self._program, select.POLLIN)
        while True:
            tick = _TICK if self._started is not None else _IDLE_TICK
            for fd, _ in poll.poll(tick * 1000):
                if fd == self.channel.fileno():
                    if not self._hear_host():
                        return
                elif not self._hear_program():
                    poll.unregister(self._program)
            self._reap()
            if self._status is not None and b"\n" not in self._from_program:
                self._say_dead()
                return
            if ended := self._breach():
                self._end_all()
                self._tell({"ended": ended[0], "limit": ended[1], **self._spent()})
                return

    # --- talking ---------------------------------------------------------------------------------------------

    def _hear_host(self) -> bool:
        data = self.channel.recv(1 << 20)
        if not data:
            return False
        self._from_host += data
        while b"\n" in self._from_host:
            line, self._from_host = self._from_host.split(b"\n", 1)
            request = json.loads(line)
            self.limits |= request.pop("limits", {})
            self._started, self._interrupted = time.monotonic(), None
            self._base_cpu, self._base_output = self._cpu(), self._output()
            with contextlib.suppress(OSError):  # it is dead: the next look at it says so
                self._program.sendall(json.dumps(request).encode() + b"\n")
        return True

    def _hear_program(self) -> bool:
        try:
            data = self._program.recv(1 << 20)
        except OSError:
            data = b""
        if not data:
            return False
        self._from_program += data
        while b"\n" in self._from_program and (self._started is not None or not self._ready):
            line, self._from_program = self._from_program.split(b"\n", 1)
            self._take(_reply(line))
        return len(self._from_program) <= _MAX_REPLY

    def _take(self, reply: dict[str, Any] | None) -> None:
        """One line of the program's process. Before it is ready, that is our own code; after that, anything may come."""
        if not self._ready:
            self._ready = True
            if reply and "broken" in reply:
                self._tell({"ended": "broken", "message": reply["broken"]})
                os._exit(0)
        elif reply is not None:  # somebody scribbled on the channel; silence ends at the time limit
            if self.once:
                self._end_all(only_stop=True)
            timeout = {"ended": "timeout", "limit": "seconds"} if self._interrupted else {}
            self._tell({"reply": reply, **timeout, **self._spent()})
            self._started = None
            if self.once:
                self._end_all()
                os._exit(0)

    def _say_dead(self) -> None:
        code = os.waitstatus_to_exitcode(self._status)
        spent = self._spent()
        self._end_all()
        if code == -signal.SIGXCPU or (code == -signal.SIGKILL and spent["cpu"] >= self.limits["cpu"]):
            self._tell({"ended": "timeout", "limit": "cpu", **spent})
        else:
            self._tell({"ended": "dead", "code": code, **spent})

    def _tell(self, answer: dict[str, Any]) -> None:
        self.channel.sendall(json.dumps(answer).encode() + b"\n")

    def _spent(self) -> dict[str, Any]:
        now = time.monotonic()
        return {
            "seconds": now - (self._started or now),
            "cpu": max(0.0, self._cpu() - self._base_cpu),
            "memory": self._peak,
        }

    # --- watching --------------------------------------------------------------------------------------------

    def _breach(self) -> tuple[str, str] | None:
        """The limit that is broken now: how the run ended, and the limit's name."""
        limits, now = self.limits, time.monotonic()
        if self._started is not None:
            over = now - self._started - limits["seconds"]
            if over > 0 and self.once:
                return "timeout", "seconds"
            if over > 0 and self._interrupted is None:
                self._interrupted = now
                os.kill(self._child, signal.SIGINT)
            elif self._interrupted is not None and now - self._interrupted > _GRACE:
                return "timeout", "seconds"
        if self._output() - self._base_output > limits["output"]:
            return "output", "output"
        group = self._group()
        memory = sum(max(0, _anonymous(pid) - self._base_memory) for pid in group)
        self._peak = max(self._peak, memory)
        if memory > limits["memory"]:
            return "memory", "memory"
        if sum(_threads(pid) for pid in group) > limits["processes"]:
            return "processes", "processes"
        if self._started is not None and self._cpu() - self._base_cpu > limits["cpu"]:
            return "timeout", "cpu"
        if now >= self._next_disk:
            self._next_disk = now + _DISK_TICK
            if _stored(self.folder, group) > limits["disk"]:
                return "disk", "disk"
        return None

    def _group(self) -> list[int]:
        """All processes of the run but this one."""
        me = os.getpid()
        if self.walls.namespaces:
            return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != me]
        return _descendants(me)

    def _cpu(self) -> float:
        """CPU seconds of all processes so far, ended ones included."""
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        return own.ru_utime + own.ru_stime + sum(_cpu(pid) for pid in self._group())

    def _output(self) -> int:
        return sum(os.fstat(fd).st_size for fd in self.out)

    # --- ending ----------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._child:
                    self._status = status

    def _end_all(self, *, only_stop: bool = False) -> None:
        """Kill every process of the run, again and again until none is left.

        `only_stop`: until none can run another instruction. Taking down their memory may go on while the host reads.
        """
        while True:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if self.walls.namespaces:
                    os.kill(-1, signal.SIGKILL)  # all of this process table, except this one
                else:
                    os.killpg(self._child, signal.SIGKILL)
            group = self._group() if only_stop or not self.walls.namespaces else []
            for pid in [] if self.walls.namespaces else group:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if only_stop and all(map(_exiting, group)):
                return
            try:
                pid, status = os.waitpid(-1, os.WNOHANG if only_stop else 0)
            except ChildProcessError:
                return
            if pid == self._child:
                self._status = status


# --- what /proc tells; nothing where there is no /proc -----------------------------------------------------------


def _fields(pid: int) -> list[str]:
    """Of /proc/<pid>/stat, from the state on; empty when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []


def _cpu(pid: int) -> float:
    fields = _fields(pid)
    return sum(map(int, fields[11:15])) / _HERTZ if fields else 0.0


def _threads(pid: int) -> int:
    fields = _fields(pid)
    return int(fields[17]) if fields else 0


def _exiting(pid: int) -> bool:
    """Whether it is past its last instruction (PF_EXITING, or gone)."""
    fields = _fields(pid)
    return not fields or bool(int(fields[6]) & 4)


def _anonymous(pid: int) -> int:
    """Bytes of memory that are not a file's: private and shared."""
    total = 0
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith((b"RssAnon:", b"RssShmem:")):
                total += int(line.split()[1]) << 10
    return total


def _descendants(pid: int) -> list[int]:
    """All processes below `pid`, found by their parents."""
    if not os.path.isdir("/proc/self"):
        return []
    below: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _fields(int(name))):
            below.setdefault(int(fields[1]), []).append(int(name))
    found, todo = [], [pid]
    while todo:
        children = below.get(todo.pop(), [])
        found += children
        todo += children
    return found


def _stored(folder: str, group: list[int]) -> float:
    """Bytes on disk: the folder, and deleted files that are still open. Too many files, or too deep, is infinite."""
    total, count, todo = 0, 0, [folder]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    count += 1
                    if count > _MAX_FILES:
                        return float("inf")
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError as error:
            if error.errno == 36:  # ENAMETOOLONG: folders within folders without end
                return float("inf")
    for pid in group:
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    info = os.stat(f"/proc/{pid}/fd/{fd}")
                    if stat.S_ISREG(info.st_mode) and info.st_nlink == 0:
                        total += info.st_blocks * 512
    return total


def _reply(line: bytes) -> dict[str, Any] | None:
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) else None
