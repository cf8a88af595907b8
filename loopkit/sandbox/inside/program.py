"""The process that runs the code: one cell after another, like a notebook, and a typed answer after each."""

import ast
import atexit
import json
import linecache
import os
import resource
import select
import signal
import socket
import sys
import threading
import time
import traceback
import types
import warnings
from contextlib import suppress
from typing import Any, NoReturn

from . import explain, files, warming, watch
from .walls import Walls

NAME = "<program>"
_CHANNEL = 3
_SPARE = 16 << 20
"""Bytes beyond the limit that are left for telling that it was reached."""


class Program:
    """The variables, and the end of the channel that answers go to."""

    def __init__(self, channel: socket.socket, *, once: bool, limits: dict[str, Any], alone: bool) -> None:
        """`alone`: whether this user's processes are counted apart from all others of the machine."""
        self._channel, self._once, self._shown = channel, once, limits["shown"]
        self._memory = _image() + limits["memory"]
        self.held = watch.held(os.getpid())  # by now, and before a wall hides it
        self._cells: dict[str, None] = {}  # the names of what was run so far, in order
        self._running = False
        self._pid = os.getpid()
        self._streams = (sys.stdout, sys.stderr)
        self.module = types.ModuleType("__main__")
        sys.modules["__main__"] = self.module
        _limit(limits, once=once, others=0 if alone else watch.threads_of(os.getuid()))
        signal.signal(signal.SIGINT, self._interrupt)

    def serve(self, requests: Any) -> int:
        """Answer requests until there are no more; return the exit code."""
        code = 0
        for line in requests:
            reply = self._answer(json.loads(line))
            self._flush()
            code = reply["exit_code"] or int(reply["error"] is not None)
            if os.getpid() != self._pid:  # it forked, and its child came to the end of the code as well
                break
            try:
                self._channel.sendall(_spelled(reply) + b"\n")
            except OSError:  # it closed all descriptors: its exit code is its answer
                break
            if self._once or reply["exit_code"] is not None:
                break
        return code

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        reply: dict[str, Any] = {"value": None, "error": None, "result": None, "exit_code": None}
        signal.signal(signal.SIGINT, self._interrupt)  # the cell before may have set its own
        try:
            self._room(tight=True)
            self._running = True
            if "call" in request:
                reply["result"] = files.FUNCTIONS[request["call"]](**request["arguments"])
            else:
                value = self._run(request["code"])
                if value is not None:
                    reply["value"] = explain.clip(repr(value), self._shown)
        except files.ToolProblem as problem:
            reply["result"] = {"kind": problem.kind, "message": problem.message}
            reply["error"] = {
                "type": "ToolProblem",
                "message": problem.message,
                "line": None,
                "traceback": "",
            }
        except SystemExit as error:
            self._running = False
            reply["exit_code"] = self._exit_code(error.code)
        except BaseException as error:
            self._running = False
            self._room(tight=False)
            reply["error"] = explain.describe(error, self._cells, self._shown)
            if os.getpid() != self._pid:
                with suppress(BaseException):
                    print(reply["error"]["traceback"], file=sys.stderr)
        if self._once:
            _finish()
        self._running = False
        self._room(tight=False)
        return reply

    def _run(self, code: str) -> Any:
        name = f"<cell {len(self._cells) + 1}>" if self._cells else NAME
        self._cells[name] = None
        try:
            tree = ast.parse(code, name)
        except MemoryError:
            raise SyntaxError("too deeply nested") from None
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, name, "exec"), self.module.__dict__)
        return eval(compile(last, name, "eval"), self.module.__dict__) if last else None

    def _exit_code(self, given: Any) -> int:
        if given is None or isinstance(given, int):
            return (given or 0) & 0xFF
        with suppress(BaseException):  # of the program's own making, and so is the stream
            print(given, file=sys.stderr)
        return 1

    def _interrupt(self, *_: Any) -> None:
        """Of a cell that takes too long; never of what we do around it."""
        if self._running:
            raise KeyboardInterrupt

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr, *self._streams):
            with suppress(BaseException):  # closed, replaced or full: the answer matters more
                stream.flush()

    def _room(self, *, tight: bool) -> None:
        if sys.platform.startswith("linux"):
            with suppress(OSError, ValueError):  # it has set a lower limit for itself
                resource.setrlimit(
                    resource.RLIMIT_AS, (self._memory + _SPARE * (not tight), self._memory + _SPARE)
                )


def prepare(built: Walls, channel: socket.socket) -> NoReturn:
    """Take over this process: go behind the walls, wait to be told what for, and serve."""
    leave = os._exit  # not sys.exit: what the zygote registered is not the program's
    code = 1
    try:
        os.dup2(channel.detach(), _CHANNEL, inheritable=False)
        channel = socket.socket(fileno=_CHANNEL)
        try:
            program, requests = _set_up(built, channel)
        except Exception as error:
            channel.sendall(json.dumps({"broken": f"{type(error).__name__}: {error}"}).encode() + b"\n")
            leave(code)
        # What was used so far is ours. Who is told may hear it when the program runs already.
        used = {"ready": time.monotonic(), "cpu": time.process_time(), "held": program.held}
        channel.sendall(json.dumps(used).encode() + b"\n")
        code = program.serve(requests)
    except BaseException:
        traceback.print_exc()
    finally:
        leave(code)


def _set_up(built: Walls, channel: socket.socket) -> tuple[Program, Any]:
    # A session of its own: schedulers deal out time by session, so many busy processes do not starve the warden.
    os.setsid()
    built.confine()
    _dress()
    warming.rehearse(lambda: bool(select.select([channel], [], [], 0)[0]))
    go, out, _, _ = socket.recv_fds(channel, 1, 2)
    if not go:
        os._exit(0)  # the warden is gone, and nothing is to be run
    null = os.open(os.devnull, os.O_RDONLY)
    for fd, target in ((null, 0), (out[0], 1), (out[1], 2)):
        os.dup2(fd, target)
    keep_only(_CHANNEL)
    requests = channel.makefile("rb")
    setup = json.loads(requests.readline())
    folder = setup["folder"]
    os.chdir(folder)
    os.environ |= {"HOME": folder, "TMPDIR": "/tmp" if built.namespaces else folder}
    sys.path.insert(0, folder)
    _link_inputs(built)
    program = Program(channel, once=setup["once"], limits=setup["limits"], alone=built.namespaces)
    built.keep_to(folder)
    return program, requests


def keep_only(descriptor: int) -> None:
    """Close all others but the standard ones."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) != descriptor:
            with suppress(OSError):  # the listing's own is closed already
                os.close(int(name))


def _link_inputs(built: Walls) -> None:
    """Make each input seen as `inputs/<name>`. Here and not on the host, for a program may have put links there."""
    if not built.inputs:
        return
    # Other runs may do the same in this folder at this moment.
    with suppress(FileExistsError):
        os.mkdir("inputs")
    if os.path.islink("inputs") or not os.path.isdir("inputs") or not os.access("inputs", os.W_OK | os.X_OK):
        _move_aside("inputs")
        with suppress(FileExistsError):
            os.mkdir("inputs")
    for name in built.inputs:
        path, target = f"inputs/{name}", built.target(name)
        if not os.path.islink(path) or os.readlink(path) != target:
            if not os.path.islink(path):
                _move_aside(path)
            fresh = f"inputs/.{os.urandom(4).hex()}"
            os.symlink(target, fresh)
            os.replace(fresh, path)


def _move_aside(path: str) -> None:
    with suppress(FileNotFoundError):
        os.rename(path, f"{path}.{os.urandom(4).hex()}")


def _limit(limits: dict[str, Any], *, once: bool, others: int) -> None:
    _rlimit(resource.RLIMIT_CORE, 0)
    _rlimit(resource.RLIMIT_FSIZE, limits["file_size"])
    _rlimit(resource.RLIMIT_NOFILE, limits["open_files"])
    if once:  # counts from the process's start, so for a session the warden alone keeps it
        _rlimit(resource.RLIMIT_CPU, int(limits["cpu"] + time.process_time()) + 2)
    # A brake for who forks without end. The warden keeps the limit itself, and says so.
    _rlimit(resource.RLIMIT_NPROC, others + limits["processes"] + 4)


def _rlimit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _image() -> int:
    """Bytes of address space that this process has now."""
    if not sys.platform.startswith("linux"):
        return 0
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _dress() -> None:
    """Make the interpreter look like one that was started for a program."""
    sys.argv = [NAME]
    sys.dont_write_bytecode = True
    sys.stdin, sys.stdout, sys.stderr = (
        open(fd, mode, encoding="utf-8", errors="backslashreplace", closefd=False, buffering=buffering)  # noqa: SIM115
        for fd, mode, buffering in ((0, "r", -1), (1, "w", -1), (2, "w", 1))
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    warnings.showwarning = explain.show_warning
    if "numpy" in sys.modules:  # seeded when the zygote loaded it: all programs would draw the same numbers
        sys.modules["numpy"].random.seed()
    if "sympy.core.random" in sys.modules:
        sys.modules["sympy.core.random"].seed()


def _finish() -> None:
    """End as a program does: threads first, then what it registered."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    with suppress(Exception):
        atexit._run_exitfuncs()


def _spelled(reply: dict[str, Any]) -> bytes:
    try:
        return json.dumps(reply).encode()
    except BaseException as error:  # no memory left, or too deep
        text = f"its result cannot be told: {type(error).__name__}"
        told = {"type": type(error).__name__, "message": text, "line": None, "traceback": text}
        return json.dumps({"value": None, "error": told, "result": None, "exit_code": None}).encode()
