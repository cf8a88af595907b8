"""Read, write, edit, find, search and shell: an agent's tools, run inside the sandbox.

They run where the programs run, so a symbolic link, a fifo, a huge file, a regular expression without end or a race
meets the limits of any program. Paths are relative to the working folder; that they stay in it is checked here for a
good message, and held by the sandbox. Each function returns what JSON can hold, or raises ToolProblem.
"""

import os
import re
import shlex
import stat
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress

from .editing import difference, line_at, places_of, why_absent
from .paths import ToolProblem, cut, find, inside, is_input, lines_of, shown, text_file, tool
from .syntax import problems

LINES, CHARS = 400, 40_000
"""Of a file, shown by one read."""
KEPT = 1 << 16
"""Characters of exported variables that a shell command may leave to the next."""
PASSING = re.compile(r"PWD|OLDPWD|SHLVL|_|ENV|IFS|SHELLOPTS|BASH.*|LD_.*")
"""Variables that it does not: the shell's own, and those that would put other code into the next."""


def _version(status: os.stat_result) -> str:
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


@tool
def read(path: str, start: int = 1, end: int | None = None) -> dict:
    """Lines `start` to `end` (from 1, both included), numbered; at most LINES of them and CHARS characters."""
    if start < 1 or (end is not None and end < start):
        raise ToolProblem("range", f"start must be 1 or more and end not before it, got {start} and {end}")
    text, used, total = [], 0, 0
    with text_file(path) as (file, name):
        version = _version(os.fstat(file.fileno()))
        stop = start + LINES - 1 if end is None else min(end, start + LINES - 1)
        for total, line in enumerate(lines_of(file), 1):
            if start <= total <= stop and used < CHARS:
                text.append(f"{total:>6}\t{cut(line)}")
                used += len(text[-1])
    if start > max(total, 1):
        raise ToolProblem("range", f"{name} has {total} lines: start={start} is past its end")
    last = start + len(text) - 1
    more = last < min(total, end or total)
    note = f"lines {start} to {last} of {total}" if len(text) < total else ""
    note += f"; read on with start={last + 1}" if more else ""
    made = {"path": name, "text": "\n".join(text), "start": start, "end": last, "lines": total}
    return made | {"note": note, "version": version}


@tool
def write(path: str, content: str, known: dict | None = None) -> dict:
    """Make or replace a file, and its folders. With `known`, path to version, only files known as they are now."""
    real, name = inside(path)
    if path.endswith("/"):
        raise ToolProblem("argument", f"{path} names a folder, not a file")
    exists = os.path.lexists(real)
    if exists and known is not None and os.path.isfile(real) and known.get(name) != _version(os.stat(real)):
        what = "has changed since it was read" if name in known else "exists and has not been read"
        raise ToolProblem("not read", f"{name} {what}")
    os.makedirs(os.path.dirname(real), exist_ok=True)
    return _put(real, name, content) | {"created": not exists}


def _put(real: str, name: str, content: str) -> dict:
    """Replace the file in one step: whoever reads it sees the old or the new."""
    before = os.stat(real) if os.path.lexists(real) else None
    if before and not stat.S_ISREG(before.st_mode):
        raise ToolProblem("not a file", f"{name} is a folder, a device or a pipe")
    if before and not os.access(real, os.W_OK):
        raise ToolProblem("denied", f"{name} is read-only")
    data = content.encode()
    part = os.path.join(os.path.dirname(real), f".{os.urandom(6).hex()}.part")
    mask = os.umask(0)  # the mode is given at once: a sandbox may refuse to change it later
    try:
        mode = stat.S_IMODE(before.st_mode) if before else 0o666 & ~mask
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    finally:
        os.umask(mask)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(part, real)
    except BaseException:
        os.unlink(part)
        raise
    lines = content.count("\n") + content.count("\r") - content.count("\r\n")
    lines += content[-1:] not in ("\n", "\r", "")
    made = {"path": name, "lines": lines, "bytes": len(data), "version": _version(os.stat(real))}
    return made | {"problems": list(problems(name, data))}


@tool
def edit(path: str, old: str, new: str, all: bool = False) -> dict:
    """Put `new` for `old`, which is in the file once, or any number of times with `all`. Line ends are kept."""
    if not old:
        raise ToolProblem("argument", "old is empty: a new file is made with write")
    with text_file(path) as (file, name):
        before = _version(os.fstat(file.fileno()))
        try:
            text = file.read().decode()
        except UnicodeDecodeError as error:
            raise ToolProblem("encoding", f"{name} is not UTF-8 (byte {error.start})") from None
    crlf = "\r\n" in text and text.count("\r\n") == text.count("\n")
    if crlf:
        text, old, new = (part.replace("\r\n", "\n") for part in (text, old, new))
    if old == new:
        raise ToolProblem("no change", "old and new are the same")
    places = list(places_of(old, text))
    if not places:
        raise ToolProblem("not found", why_absent(name, text, old))
    if len(places) > 1 and not all:
        lines = ", ".join(str(line_at(text, place)) for place in places[:10])
        lines += ", …" * (len(places) > 10)
        raise ToolProblem("not unique", f"old is {len(places)} times in {name} (lines {lines})")
    after = text.replace(old, new)
    made = _put(inside(path)[0], name, after.replace("\n", "\r\n") if crlf else after)
    return made | {"replaced": text.count(old), "before": before, "diff": difference(text, old, new)}


@tool
def glob(pattern: str, limit: int = 200) -> dict:
    """Files whose path matches, the last changed first: `*`, `?`, `[…]`, `{a,b}`, and `**` for any folders."""
    _within("limit", limit, 1, 10_000)
    root, unread = os.path.realpath("."), []
    changed = {}
    for path in {entry.path for one in _alternatives(pattern) for entry in find(root, one, unread)}:
        with suppress(FileNotFoundError):  # gone in the meantime
            changed[path] = os.lstat(path).st_mtime_ns
    paths = sorted(changed, key=lambda path: (-changed[path], path))
    names = [shown(os.path.relpath(path, root)) + "/" * pattern.endswith("/") for path in paths[:limit]]
    return {"paths": names, "total": len(paths), "unreadable": len(set(unread))}


def _alternatives(pattern: str) -> Iterator[str]:
    root = os.path.realpath(".") + "/"
    pattern = pattern.removeprefix(root)
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolProblem("outside", f"{pattern} leads outside the working folder")
    if not pattern.strip("/."):
        raise ToolProblem("argument", f"{pattern!r} matches nothing: try *, */ (folders) or **/*.py")
    choice = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if choice is None:
        yield pattern
        return
    for option in choice[1].split(","):
        yield from _alternatives(pattern[: choice.start()] + option + pattern[choice.end() :])


def _within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ToolProblem("argument", f"{name} must be from {least} to {most}, got {value}")


@tool
def grep(
    pattern: str,
    path: str = ".",
    glob: str | None = None,
    ignore_case: bool = False,
    context: int = 0,
    mode: str = "lines",
    limit: int = 100,
) -> dict:
    """Lines in which the regular expression (Python's `re`) is found, or the files that have some, or how many.

    `glob` picks files, or leaves files and folders out with a leading `!`; without a `/` it is about the name alone.
    """
    _within("context", context, 0, 20)
    _within("limit", limit, 1, 10_000)
    if mode not in ("lines", "files", "count"):
        raise ToolProblem("argument", f"mode must be lines, files or count, got {mode!r}")
    try:
        regex = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolProblem("pattern", f"{pattern!r} is no regular expression: {error}") from None
    real, _ = inside(path)
    unread: list[str] = []
    files = _chosen(real, glob, unread) if os.path.isdir(real) else [path]
    matches, total, hits, skipped = [], 0, 0, 0
    for each in files:
        count = 0
        try:
            with text_file(each) as (file, name):
                room = limit - total if mode == "lines" else 0
                for number, line, at in _matching(lines_of(file), regex, context, room):
                    count += at is not None
                    if mode == "lines" and (at is None or total + count <= limit):
                        text = cut(line, at or 0)
                        matches.append({"path": name, "line": number, "text": text, "match": at is not None})
        except (ToolProblem, OSError):  # binary, or not ours to read
            if each == path:
                raise
            skipped += 1
        total, hits = total + count, hits + (count > 0)
        if count and mode != "lines" and hits <= limit:
            matches.append({"path": name, "count": count})
    made = {"matches": matches, "total": total, "files": hits, "searched": len(files) - skipped}
    return made | {"skipped": skipped, "unreadable": len(set(unread))}


def _chosen(folder: str, glob: str | None, unread: list[str]) -> list[str]:
    """Paths of the files to search, in order; links are left out, since what they lead to is searched by itself."""

    def paths(*patterns: str) -> set[str]:
        ways = [way for pattern in patterns for way in _alternatives(pattern)]
        found = [entry for way in ways for entry in find(folder, way, unread)]
        return {entry.path for entry in found if is_input(entry) or not entry.is_symlink()}

    if glob is None:
        return sorted(paths("**"))
    wanted = glob.removeprefix("!")
    if not wanted.strip("/."):
        raise ToolProblem("argument", f"glob={glob!r} matches nothing: try *.py, src/** or !tests")
    wanted += "**" if wanted.endswith("/") else ""
    wanted = wanted if "/" in wanted else f"**/{wanted}"
    return sorted(paths("**") - paths(wanted, f"{wanted}/**") if glob.startswith("!") else paths(wanted))


def _matching(
    lines: Iterable[str], regex: re.Pattern, context: int, room: int
) -> Iterator[tuple[int, str, int | None]]:
    """Number, line, and where in it the match begins: None for a line of context, had for the first `room` matches."""
    before: deque = deque(maxlen=context)
    after = 0
    for number, line in enumerate(lines, 1):
        if found := regex.search(line):
            if room > 0:
                yield from before
            before.clear()
            room, after = room - 1, context if room > 0 else max(0, after - 1)
            yield number, line, found.start()
        elif after:
            after -= 1
            yield number, line, None
        else:
            before.append((number, line, None))


@tool
def check(code: str) -> dict:
    """Whether this is a program: something, and free of errors that a compiler finds."""
    if not code.strip():
        raise ToolProblem("empty", "there is no code")
    for problem in problems("code.py", code.encode()):
        if problem["message"].startswith("warning"):
            continue
        where = f"line {problem['line']}: {problem['text'].strip()}" if problem["line"] else "code"
        raise ToolProblem("syntax", f"{problem['message']} ({where})")
    return {}


@tool
def shell(command: str, folder: str = ".", environment: dict | None = None) -> dict:
    """Run a command in bash, or sh; its output goes where this process's goes.

    `folder` and `environment` (changed variables; None: unset) are what the last command left, and what this one
    leaves is returned, so that `cd` and `export` last although each command has a process of its own.
    """
    if not command.strip():
        raise ToolProblem("empty", "there is no command")
    if "\0" in command:
        raise ToolProblem("argument", "the command holds a NUL character")
    if not os.path.isdir(folder):
        raise ToolProblem("missing", f"the folder {folder}, where the last command left off, is gone")
    variables = {**os.environ, **(environment or {})}
    variables = {name: value for name, value in variables.items() if value is not None}
    program = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    with tempfile.NamedTemporaryFile() as state:
        keep = f"{{ pwd -P || echo; command -p env -0; }} 2>/dev/null >|{shlex.quote(state.name)}"
        argv = [program, "-c", f'trap {shlex.quote(keep)} EXIT; eval "$1"', "bash", command]
        code = subprocess.run(argv, stdin=subprocess.DEVNULL, cwd=folder, env=variables).returncode
        left = state.read().decode("utf-8", "replace")
    made = {"exit_code": code if code >= 0 else 128 - code}  # as a shell tells of a signal
    if left:
        return made | _left(left)
    # A shell that was killed, or that became another program, leaves things as they were.
    return made | {"folder": folder, "environment": environment or {}, "note": ""}


def _left(text: str) -> dict:
    """The folder and the variables at the end of a command, as the next one is to find them."""
    folder, _, listing = text.partition("\n")
    root, notes = os.path.realpath("."), []
    if not folder or os.path.commonpath([root, folder]) != root:
        where = folder or "a folder that is gone"
        notes.append(f"the next command starts in the working folder again, not in {where}")
        folder = root
    now = dict(item.split("=", 1) for item in listing.split("\0") if "=" in item)
    changed = {name: value for name, value in now.items() if os.environ.get(name) != value}
    changed |= {name: None for name in os.environ if name not in now}
    changed = {name: value for name, value in changed.items() if not PASSING.fullmatch(name)}
    if sum(len(f"{name}{value}") for name, value in changed.items()) > KEPT:
        notes.append(f"exported variables were not kept: they are more than {KEPT} characters")
        changed = {}
    folder = shown(os.path.relpath(folder, root))
    return {"folder": folder, "environment": changed, "note": "; ".join(notes)}


FUNCTIONS = {function.__name__: function for function in (read, write, edit, glob, grep, shell, check)}
