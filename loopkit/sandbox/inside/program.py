"""The process that runs the code: one cell after another, like a notebook, and a typed answer after each."""

import ast
import atexit
import contextlib
import json
import linecache
import os
import resource
import signal
import socket
import sys
import threading
import traceback
import types
import warnings
from typing import Any

from . import files, walls

NAME = "<program>"
_MAX_FRAMES = 8


class Program:
    """The variables, and the end of the channel that answers go to."""

    def __init__(self, channel: socket.socket, shown: int) -> None:
        self._channel, self._shown = channel, shown
        self._cells = 0
        self.module = types.ModuleType("__main__")
        sys.modules["__main__"] = self.module

    def serve(self, *, once: bool) -> int:
        """Answer requests until there are no more; return the exit code."""
        code = 0
        for line in self._channel.makefile("rb"):
            reply = self._answer(json.loads(line))
            code = reply["exit_code"] or 0
            if once:
                _finish()
            _flush()
            self._channel.sendall(json.dumps(reply).encode() + b"\n")
            if once or reply["exit_code"] is not None:
                break
        return code

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        reply: dict[str, Any] = {"value": None, "error": None, "result": None, "exit_code": None}
        name = NAME
        try:
            if "call" in request:
                reply["result"] = files.FUNCTIONS[request["call"]](**request["arguments"])
            else:
                self._cells += 1
                name = NAME if self._cells == 1 else f"<cell {self._cells}>"
                value = self._run(request["code"], name)
                if value is not None:
                    reply["value"] = _clip(repr(value), self._shown)
        except files.ToolProblem as problem:
            reply["result"] = {"kind": problem.kind, "message": problem.message}
            reply["error"] = {
                "type": "ToolProblem",
                "message": problem.message,
                "line": None,
                "traceback": "",
            }
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
            reply["exit_code"] = status & 0xFF
            if not isinstance(error.code, int | None):
                print(error.code, file=sys.stderr)
        except BaseException as error:
            reply["error"] = _describe(error, name, self._shown)
        return reply

    def _run(self, code: str, name: str) -> Any:
        tree = ast.parse(code, name)
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, name, "exec"), self.module.__dict__)
        return eval(compile(last, name, "eval"), self.module.__dict__) if last else None


def prepare(built: walls.Walls, channel: socket.socket) -> None:
    """Take over this process, wait to be told what for, go behind the walls, and serve. Never returns."""
    code = 1
    try:
        os.dup2(channel.detach(), 3, inheritable=False)
        channel = socket.socket(fileno=3)
        try:
            folder, once, limits = _go_behind(built, channel)
        except Exception as error:
            channel.sendall(json.dumps({"broken": f"{type(error).__name__}: {error}"}).encode() + b"\n")
            raise
        channel.sendall(b'{"ready": true}\n')
        _dress(folder)
        code = Program(channel, limits["shown"]).serve(once=once)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)  # not sys.exit: what the zygote registered is not the program's


def _go_behind(built: walls.Walls, channel: socket.socket) -> tuple[str, bool, dict[str, Any]]:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setpgid(0, 0)
    message, out, _, _ = socket.recv_fds(channel, 1 << 16, 2)
    if not message:
        os._exit(0)  # the warden is gone, and nothing is to be run
    setup = json.loads(message)
    folder, limits = setup["folder"], setup["limits"]
    null = os.open(os.devnull, os.O_RDONLY)
    for fd, target in ((null, 0), (out[0], 1), (out[1], 2)):
        os.dup2(fd, target)
    os.closerange(4, 4096)
    os.chdir(folder)
    os.environ["HOME"] = folder
    os.environ["TMPDIR"] = "/tmp" if built.namespaces else folder
    _limit(limits, once=setup["once"])
    built.confine(folder)
    return folder, setup["once"], limits


def _limit(limits: dict[str, Any], *, once: bool) -> None:
    _rlimit(resource.RLIMIT_CORE, 0)
    _rlimit(resource.RLIMIT_FSIZE, limits["file_size"])
    _rlimit(resource.RLIMIT_NOFILE, limits["open_files"])
    if once:  # counts from the process's start, so for a session the warden alone keeps it
        _rlimit(resource.RLIMIT_CPU, int(limits["cpu"]) + 1)
    if sys.platform.startswith("linux"):
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        _rlimit(resource.RLIMIT_AS, size + limits["memory"])
        _rlimit(resource.RLIMIT_NPROC, limits["processes"])


def _rlimit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _dress(folder: str) -> None:
    """Make the interpreter look like one that was started for a program."""
    sys.argv = [NAME]
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    sys.stdin, sys.stdout, sys.stderr = (
        open(fd, mode, encoding="utf-8", errors="backslashreplace", closefd=False, buffering=buffering)  # noqa: SIM115
        for fd, mode, buffering in ((0, "r", -1), (1, "w", -1), (2, "w", 1))
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    warnings.resetwarnings()
    warnings.simplefilter("default")
    warnings.simplefilter("ignore", ResourceWarning)
    warnings.showwarning = _show_warning
    if "numpy" in sys.modules:  # seeded when the zygote loaded it: all programs would draw the same numbers
        sys.modules["numpy"].random.seed()


def _finish() -> None:
    """End as a program does: threads first, then what it registered."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):  # closed, replaced or full: the answer matters more
            stream.flush()


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    where = f"line {lineno}" if filename.startswith("<") else _short(filename)
    print(f"{category.__name__} ({where}): {_clip(str(message), 300)}", file=sys.stderr)


def _describe(error: BaseException, name: str, shown: int) -> dict[str, Any]:
    """Type, message, line, and a traceback with the program's own frames and the one it failed in."""
    try:
        message = _clip(str(error.msg if isinstance(error, SyntaxError) else error), min(shown, 2000))
    except BaseException as second:
        message = f"(its message cannot be shown: {type(second).__name__})"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if os.path.dirname(__file__) not in frame.filename
    ]
    own = [frame for frame in frames if frame.filename.startswith("<")]
    line = own[-1].lineno if own else None
    if isinstance(error, SyntaxError) and error.filename == name:
        line = error.lineno
        own_line = (error.text or "").rstrip()
        text = [f"line {line}: {own_line}"]
    else:
        kept = [frame for frame in frames if frame.filename.startswith("<") or frame is frames[-1]]
        if len(kept) > _MAX_FRAMES:
            half = _MAX_FRAMES // 2
            text = [
                *map(_frame, kept[:half]),
                f"… {len(kept) - _MAX_FRAMES} more …",
                *map(_frame, kept[-half:]),
            ]
        else:
            text = list(map(_frame, kept))
    kind = type(error).__name__
    text.append(f"{kind}: {message}" if message else kind)
    return {
        "type": kind,
        "memory": isinstance(error, MemoryError),
        "message": message,
        "line": line,
        "traceback": _clip("\n".join(text), shown),
    }


def _frame(frame: traceback.FrameSummary) -> str:
    where = (
        ""
        if frame.filename == NAME
        else (frame.filename if frame.filename[0] == "<" else _short(frame.filename))
    )
    within = "" if frame.name == "<module>" else f" in {frame.name}"
    return _clip(f"{where + ' ' if where else ''}line {frame.lineno}{within}: {frame.line or ''}", 300)


def _short(path: str) -> str:
    """`…/site-packages/sympy/core/expr.py` → `sympy/core/expr.py`."""
    for mark in ("/site-packages/", f"/python{sys.version_info[0]}.{sys.version_info[1]}/"):
        if mark in path:
            return path.rpartition(mark)[2]
    return os.path.relpath(path) if path.startswith(os.getcwd() + "/") else path


def _clip(text: str, size: int) -> str:
    if len(text) <= size:
        return text
    half = max(1, (size - 30) // 2)
    return f"{text[:half]} […{len(text) - 2 * half} characters…] {text[-half:]}"
