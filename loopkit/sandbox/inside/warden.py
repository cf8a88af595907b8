"""The process above the program: it starts it, watches it, and ends it with all its descendants.

With namespaces it is process 1 of the run's own process table: when it goes, all go. It holds the only channel to the
host, and takes the host's going away for a reason to end.
"""

import json
import math
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NoReturn

from . import forge, program, watch
from .lines import Lines
from .walls import SCRATCH, Walls

_TICK = 0.02
_IDLE_TICK = 0.2
_DISK_TICK = 0.25
_SHARE = 4
"""Looking around takes at most one part in so many of the time."""
_MAX_REPLY = 4 << 20
_GRACE = 2.0
"""Seconds that a session has to answer an interrupt before it is ended."""
_SET_UP = 60.0
"""Seconds that a process has to get ready."""
_STOPPING = 1.0
"""Seconds after which a process that cannot be stopped, since it hangs in the kernel, is not waited for."""
_LOOKS = 20
"""Times that new processes are looked for before the old ones are killed."""

Answer = dict[str, Any]


class Warden:
    """One run: a one-shot program or a session."""

    def __init__(self, built: Walls, forger: socket.socket | None) -> None:
        """Get a process for a program, from `forger` or by a fork. It waits, and so does this one, for `main`."""
        self._walls = built
        self._home = built.separate()
        self._setup: dict[str, Any] = {}
        ours, theirs = socket.socketpair()
        self._told: Lines | None = None
        if forger:
            self._child, self._told = forge.CHILD, Lines(forge.order(forger, theirs))
            forger.close()
        else:
            self._child = os.fork()
            if self._child == 0:
                ours.close()
                program.prepare(built, theirs)
        theirs.close()
        self._program = Lines(ours)
        self._status: int | None = None
        self._ready = self._stopped = False
        self._born = self._started = self._interrupted = None
        self._cpu_before = math.inf  # nothing is counted until there is something to do
        self._output_before = self._peak = self._cpu_told = 0
        self._stored_before: tuple[float, float] = (0, 0)
        self._next_look = self._next_disk = 0.0

    def rehearse(self) -> None:
        """Look at ourselves as if at a program, while nobody waits: see `warming`."""
        group = [one for one in (watch.process(str(os.getpid())),) if one]
        watch.exiting(group)
        watch.added(group, 0, 1 << 62)
        watch.stored(SCRATCH[0], 0)
        self._cpu(group)
        json.loads(json.dumps({"ended": "", "seconds": 0.5, "limits": {}}))

    def main(self, channel: socket.socket, out: list[int]) -> NoReturn:
        """Serve one run. `channel`: to the host; `out`: the files for stdout and stderr.

        The first line over the channel is `folder`, `once` (or a session) and `limits` (the fields of `Limits`); each
        after it a request, which is answered in a line: `{"ended": how, …}`.
        """
        self._host, self._out = Lines(channel), out
        try:
            last = self._serve()
        except Exception as error:
            last = _broken(f"{type(error).__name__}: {error}")
        self._stop()
        if last:
            self._host.send(last)
            self._host.finish()
        self._end_all()
        os._exit(0)

    def _serve(self) -> Answer | None:
        """The last answer; None when the host wants no more."""
        poll = select.poll()
        poll.register(self._host.end, select.POLLIN)
        if self._told:
            poll.register(self._told.end, select.POLLIN)
        pause = _IDLE_TICK
        while True:
            poll.poll(pause * 1000)
            for request in self._host.hear():
                self._take_request(request)
            if not self._host.open:
                return None
            if self._setup:
                if last := self._look():
                    return last
                for lines in (self._host, self._program):
                    lines.flush()
                    events = select.POLLIN * lines.open | select.POLLOUT * lines.waits
                    poll.register(lines.end, events) if events else _forget(poll, lines.end)
            pause = max(0.0, self._next_look - time.monotonic()) if self._setup else _IDLE_TICK

    def _look(self) -> Answer | None:
        """Hear what the program says, and see how it is; the last answer, if there is nothing more to come."""
        self._reap()
        if dead := self._status is not None:
            self._stop()
        while True:
            for reply in self._program.hear():
                if last := self._take_reply(reply):
                    return last
            # What it said before it died is read to the end: its answer may be there still.
            if not dead or not self._program.open or not _readable(self._program.end):
                break
        if dead:
            return self._dead()
        return self._breach() if time.monotonic() >= self._next_look else None

    # --- talking ---------------------------------------------------------------------------------------------

    def _take_request(self, request: dict[str, Any]) -> None:
        if not self._setup:
            self._set_up(request)
            return
        self._limits |= request.pop("limits")
        self._output_before, self._peak = self._output(), 0
        self._program.send(request)
        self._asked = True
        if self._ready:
            self._begin(time.monotonic(), self._cpu(self._group()))

    def _set_up(self, setup: dict[str, Any]) -> None:
        self._setup, self._limits, self._once = setup, setup["limits"], setup["once"]
        self._asked, self._born = False, time.monotonic()
        self._walls.enclose(self._home, setup["folder"], self._limits["scratch"])
        self._in_memory = {os.stat(path).st_dev for path in SCRATCH if self._walls.namespaces}
        self._stored_before = watch.stored(setup["folder"], float("inf"))
        # Three texts, whose characters are spelled with 12 bytes at worst.
        self._program.most = _MAX_REPLY + 40 * self._limits["shown"]
        with suppress(OSError):  # it has ended; what it said of that is heard next
            socket.send_fds(self._program.end, [b"+"], self._out)
        self._program.send(setup)

    def _begin(self, now: float, cpu: float) -> None:
        """Start the clocks, once there is something to do and somebody to do it. `cpu`: seconds used by now."""
        self._started, self._cpu_before, self._interrupted = now, cpu, None
        self._next_look = now + _TICK

    def _take_reply(self, reply: dict[str, Any]) -> Answer | None:
        """One line of the program's process. Until it is ready that is our own code; after that, anything may come."""
        if not self._ready:
            if "broken" in reply:
                return _broken(reply["broken"])
            self._ready = True
            self._loaded = reply["held"]
            if self._asked:  # it has begun since
                self._begin(reply["ready"], reply["cpu"])
            return None
        if self._started is None:
            return None  # nothing was asked
        group = self._group()
        spent = self._spent(group)
        if limit := self._overrun(group):  # since the last look
            return {"ended": limit, "limit": limit, **spent}
        if self._once:
            self._stop()
            if limit := self._disk_overrun():
                return {"ended": "disk", "limit": limit, **spent}
        answer = {"ended": "replied", "reply": reply, "late": self._interrupted is not None, **spent}
        self._started, self._asked = None, False
        if self._once:
            return answer
        self._host.send(answer)
        return None

    def _dead(self) -> Answer:
        code = os.waitstatus_to_exitcode(self._status)
        if not self._ready:
            return _broken(f"the program's process ended (code {code}) before it was ready")
        spent = self._spent(self._group())
        if code == -signal.SIGXCPU or (code == -signal.SIGKILL and spent["cpu"] >= self._limits["cpu"]):
            return {"ended": "timeout", "limit": "cpu", **spent}
        if limit := self._overrun([]):
            return {"ended": limit, "limit": limit, **spent}
        if limit := self._disk_overrun():
            return {"ended": "disk", "limit": limit, **spent}
        return {"ended": "dead", "code": code, **spent}

    def _spent(self, group: list[watch.Process]) -> dict[str, Any]:
        now = time.monotonic()
        return {
            "seconds": now - (self._started or now),
            "cpu": max(0.0, self._cpu(group) - self._cpu_before),
            "memory": self._peak,
        }

    # --- watching --------------------------------------------------------------------------------------------

    def _breach(self) -> Answer | None:
        """How the run ended by a limit that is broken now."""
        limits, now, cost = self._limits, time.monotonic(), time.process_time()
        self._next_look = now + (_TICK if self._started is not None else _IDLE_TICK)
        if not self._ready:
            return _broken(f"it was not ready after {_SET_UP:g} s") if now - self._born > _SET_UP else None
        group = self._group()
        ended = limit = ""
        if self._started is not None:
            over = now - self._started - limits["seconds"]
            if over > 0 and not self._once and self._interrupted is None:
                self._interrupted = now
                os.kill(self._child, signal.SIGINT)
            elif over > 0 and (self._once or now - self._interrupted > _GRACE):
                ended, limit = "timeout", "seconds"
        if not ended and self._cpu(group) - self._cpu_before > limits["cpu"]:  # between two cells, too
            ended, limit = "timeout", "cpu"
        memory = watch.added(group, self._loaded, limits["memory"])
        if memory > limits["memory"]:  # of who forks or ends meanwhile, something may be counted twice
            memory = min(memory, watch.added(self._group(), self._loaded, limits["memory"]))
        self._peak = max(self._peak, memory)
        if self._program.too_long:
            ended, limit = "output", "reply"
        elif memory > limits["memory"]:
            ended = limit = "memory"
        elif overrun := self._overrun(group):
            ended = limit = overrun
        elif not ended and now >= self._next_disk and (limit := self._disk_overrun(group, now)):
            ended = "disk"
        if ended:
            return {"ended": ended, "limit": limit, **self._spent(group)}
        # By what it costs, not by how long it takes: who starves must look more, not less.
        self._next_look = max(self._next_look, now + _SHARE * (time.process_time() - cost))
        return None

    def _overrun(self, group: list[watch.Process]) -> str:
        """Of the limits that are quickly looked at, one that is broken now; or nothing."""
        if self._output() - self._output_before > self._limits["output"]:
            return "output"
        return "processes" if sum(one.threads for one in group) > self._limits["processes"] else ""

    def _disk_overrun(self, group: list[watch.Process] | None = None, now: float = 0) -> str:
        """The same of those that take longest to look at. Without `group` for the last time."""
        cost = time.process_time()
        size, count = watch.stored(self._setup["folder"], self._stored_before[1] + watch.MAX_FILES)
        size, count = size - self._stored_before[0], count - self._stored_before[1]
        if group:
            size += watch.deleted(group, self._limits["file_size"], self._in_memory)
            self._next_disk = now + max(_DISK_TICK, 2 * _SHARE * (time.process_time() - cost))
        return "files" if count > watch.MAX_FILES else "disk" if size > self._limits["disk"] else ""

    def _group(self) -> list[watch.Process]:
        """All processes of the run but this one."""
        return watch.all_others() if self._walls.namespaces else watch.below(os.getpid())

    def _cpu(self, group: list[watch.Process]) -> float:
        """CPU seconds of all processes so far, ended ones included."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ended.ru_utime + ended.ru_stime + self._cpu_told + sum(one.cpu for one in group)

    def _output(self) -> int:
        return sum(os.fstat(fd).st_size for fd in self._out)

    # --- ending ----------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        for told in self._told.hear() if self._told else ():
            self._status, self._cpu_told = told["status"], told["cpu"]
        with suppress(ChildProcessError):
            while pid := self._wait(os.WNOHANG):
                if pid == self._child:
                    return

    def _wait(self, how: int) -> int:
        pid, status = os.waitpid(-1, how)
        if pid == self._child:
            self._status = status
        return pid

    def _kill(self) -> list[watch.Process]:
        """Kill every process of the run; return those that are still there."""
        if self._walls.namespaces:
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)  # all of this process table at once, except this one
            return self._group()
        # One after the other. Stopped ones start no new ones while the others are looked for.
        seen: set[int] = set()
        for _ in range(_LOOKS):
            new = [one.pid for one in self._group() if one.pid not in seen]
            if not new:
                break
            _signal(new, signal.SIGSTOP)
            seen |= set(new)
        _signal(seen, signal.SIGKILL)
        if self._status is None or not sys.platform.startswith("linux"):  # else the number may be another's
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child, signal.SIGKILL)
        return self._group()

    def _stop(self) -> None:
        """Kill them until none can run another instruction. Taking down their memory goes on while the host reads."""
        until, clean, enough = time.monotonic() + _STOPPING, 0, 1 if self._walls.namespaces else 2
        # A look takes a while: who was forked during the first one is seen by the second.
        while not self._stopped and clean < enough and time.monotonic() < until:
            clean = clean + 1 if watch.exiting(self._kill()) else 0
            time.sleep(0 if clean else 0.0005)
        self._stopped = True

    def _end_all(self) -> None:
        """Kill them again and again until none is left. Of a process table that happens when its first one ends."""
        if self._walls.namespaces:
            return
        with suppress(ChildProcessError):
            while True:
                self._kill()
                self._wait(0)


def _broken(message: str) -> Answer:
    return {"ended": "broken", "message": message}


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _readable(end: socket.socket) -> bool:
    return bool(select.select([end], [], [], 0)[0])


def _forget(poll: select.poll, end: socket.socket) -> None:
    with suppress(KeyError):
        poll.unregister(end)
