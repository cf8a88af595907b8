"""An agent's seven tools over a sandbox's folder: python, read, write, edit, glob, grep and shell.

    async with Sandbox(folder="work") as box, Workbench(sandbox=box) as bench:
        agent = Agent(model, tools=bench.tools())

All of it happens inside the sandbox. What goes wrong is a typed error for the model; only a broken sandbox raises.
"""

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from . import shell
from .answers import (
    ToolError,
    ToolResult,
    counted,
    error_of,
    failed,
    for_agents,
    found,
    more_of,
    output,
    problem,
    result,
    syntax,
)
from .results import Execution
from .sandbox import Sandbox
from .session import Session

if TYPE_CHECKING:
    from pydantic_ai import Tool

__all__ = ["Decision", "ToolError", "ToolResult", "Workbench"]


class Decision(Protocol):
    """What is said of a shell command before it runs."""

    @property
    def verdict(self) -> Literal["allow", "ask", "refuse"]: ...

    @property
    def reasons(self) -> tuple[str, ...]: ...


class Workbench:
    """The tools, with what they remember: Python's variables, the shell's folder and variables, the files read.

    `sandbox` must have a folder. `judge` (`shell.judge`, for its folder) is asked about each shell command, with a `cd`
    before it where the shell is further down; what it says "ask" to is put to `approve(command, decision)`, else an error. Close it, or `async with`.
    """

    def __init__(
        self,
        *,
        sandbox: Sandbox,
        judge: Callable[[str], Decision] | None = None,
        approve: Callable[[str, Decision], Awaitable[bool]] | None = None,
    ) -> None:
        if sandbox.folder is None:
            raise ValueError("the tools need a folder to share: make the sandbox with Sandbox(folder=…)")
        self._box, self._approve = sandbox, approve
        self._judge = judge or partial(shell.judge, folder=sandbox.folder)
        self._session: Session | None = None
        self._sessions = AsyncExitStack()
        self._python_lock, self._shell_lock = asyncio.Lock(), asyncio.Lock()
        self._place: dict[str, Any] = {}  # where the last shell command left off: folder and environment
        self._known: dict[str, str] = {}  # versions of files, by path, that the model has seen
        self._numbers = count(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the Python session."""
        await self._sessions.aclose()
        self._session = None

    def tools(self) -> "list[Tool]":
        """The tools for a pydantic-ai agent. Those that change things run one at a time."""
        from pydantic_ai import Tool

        alone = (self.python, self.write, self.edit, self.shell)
        methods = (self.python, self.read, self.write, self.edit, self.glob, self.grep, self.shell)
        options = {"docstring_format": "google", "require_parameter_descriptions": True}
        return [Tool(for_agents(each), sequential=each in alone, **options) for each in methods]

    async def python(self, code: str) -> ToolResult:
        """Run Python code in a session: variables, functions and imports stay for the next call.

        Use it to calculate, to test code and to work with data. You see what it prints and the value of the last
        expression. It works in the working folder, without network and within limits of time and memory; numpy,
        scipy and sympy are there. When the session ends, you are told, and the next call starts a new one.

        Args:
            code: The code to run, whole and ready: it is not run if it does not parse.
        """
        async with self._python_lock:
            restarted = self._session is not None and not self._session.alive
            if restarted:
                await self.close()
            if self._session is None:
                self._session = await self._sessions.enter_async_context(self._box.session())
            done = await self._session.call("check", {"code": code})
            if done.ended == "ok":
                done = await self._session.run(code)
            alive = self._session.alive
            notes = ["this is a new session: what the one before held is gone"] * restarted
            notes += ["the session has ended: its variables are gone"] * (not alive)
            notes += await self._keep(done)
        if done.files:
            some = ", ".join(f"{made.name} ({counted(made.size, 'byte')})" for made in done.files[:10])
            notes.append(f"files made or changed: {some}{', …' * (len(done.files) > 10)}")
        value = [f"value: {done.value}"] * (done.value is not None)
        trace = [done.error.traceback] if done.error else []
        names = [made.name for made in done.files]
        data = {"value": done.value, "files": names, "session": alive, "restarted": restarted}
        return result(error_of(done), [*output(done), *value, *trace], notes, data)

    async def read(self, path: str, start: int = 1, end: int | None = None) -> ToolResult:
        """Read a text file, or some lines of it. Each line comes with its number and a tab before it.

        A long file comes in parts: at the end you are told how to read on. Read a file before you change it.

        Args:
            path: The file, relative to the working folder.
            start: The first line to read; lines count from 1.
            end: The last line to read; null for as many as can be shown.
        """
        data, error = await self._ask("read", path=path, start=start, end=end)
        if error:
            return result(error)
        self._known[data["path"]] = data["version"]
        return result(
            None, [data["text"]], [data["note"] or ("" if data["lines"] else "the file is empty")], data
        )

    async def write(self, path: str, content: str) -> ToolResult:
        """Make a file, or replace all of it. Folders are made as needed.

        To change a part of a file use edit. A file that is there already must have been read before it is replaced.
        What does not parse (Python, JSON, TOML, YAML) is written all the same, and you are told where it fails.

        Args:
            path: The file, relative to the working folder.
            content: All of the file's text.
        """
        data, error = await self._ask("write", path=path, content=content, known=self._known)
        if error:
            return result(error)
        self._known[data["path"]] = data["version"]
        size = f"{counted(data['lines'], 'line')}, {counted(data['bytes'], 'byte')}"
        what = f"{'made' if data['created'] else 'replaced'} {data['path']} ({size})"
        return result(None, [what, *syntax(data["problems"])], [], data)

    async def edit(self, path: str, old: str, new: str, all: bool = False) -> ToolResult:
        """Replace a piece of text in a file by another. You see the changes, and whether the file still parses.

        Args:
            path: The file, relative to the working folder.
            old: The text to replace, exactly as it stands in the file, without the line numbers that read shows. It
                must be there only once: add lines around it until it is.
            new: The text to put in its place; empty to delete it.
            all: Replace every occurrence instead of the only one.
        """
        data, error = await self._ask("edit", path=path, old=old, new=new, all=all)
        if error:
            return result(error)
        if self._known.get(data["path"]) == data["before"]:
            self._known[data["path"]] = data["version"]
        what = f"changed {data['path']} in {counted(data['replaced'], 'place')}"
        body = [what, data["diff"], *syntax(data["problems"])]
        return result(None, body, [], data)

    async def glob(self, pattern: str, limit: int = 200) -> ToolResult:
        """Find files by name, the last changed first. Folders of tools (.git, node_modules, …) are passed over.

        Args:
            pattern: Such as `*.py` (in the working folder), `**/*.py` (at any depth), `src/**/test_*.{js,ts}`. One
                that ends with `/` finds folders.
            limit: At most so many names.
        """
        data, error = await self._ask("glob", pattern=pattern, limit=limit)
        if error:
            return result(error)
        notes = [] if data["paths"] else [f"nothing matches {pattern}"]
        if data["total"] > len(data["paths"]):
            notes.append(f"{len(data['paths'])} of {data['total']}: narrow the pattern to see the others")
        if data["unreadable"]:
            notes.append(f"{data['unreadable']} folders could not be read")
        return result(None, ["\n".join(data["paths"])], notes, data)

    async def grep(
        self,
        pattern: str,
        path: str = ".",
        glob: str | None = None,
        ignore_case: bool = False,
        context: int = 0,
        mode: Literal["lines", "files", "count"] = "lines",
        limit: int = 100,
    ) -> ToolResult:
        """Search the text of files with a regular expression, line by line. Binary files are passed over.

        Args:
            pattern: A regular expression of Python's, such as `def \\w+_total` or `TODO|FIXME`.
            path: The file or folder to search, relative to the working folder.
            glob: Only in files whose name matches, such as `*.py` or `src/**/*.js`; with `!` before it, not in those.
            ignore_case: Whether upper and lower case are the same.
            context: So many lines before and after each one found.
            mode: `lines` shows the lines found, `files` only the names of the files, `count` how many lines in each.
            limit: At most so many lines, or files.
        """
        how = {"ignore_case": ignore_case, "context": context, "mode": mode, "limit": limit}
        data, error = await self._ask("grep", pattern=pattern, path=path, glob=glob, **how)
        if error:
            return result(error)
        notes = [] if data["total"] else [f"nothing found in {counted(data['searched'], 'file')}"]
        if (data["total"] if mode == "lines" else data["files"]) > limit:
            notes.append(
                f"{limit} shown of {data['total']} lines in {data['files']} files: narrow the search"
            )
        if left := data["skipped"] + data["unreadable"]:
            notes.append(f"{left} files and folders, binary or unreadable, passed over")
        return result(None, found(data["matches"], mode), notes, data)

    async def shell(self, command: str, timeout: float | None = None) -> ToolResult:
        """Run a command in bash in the working folder. The current folder and exported variables stay for the next one.

        For reading, changing and finding files use the other tools. There is no network. Nothing goes on in the
        background when the command ends. Dangerous commands are refused, and some need a person's approval.

        Args:
            command: The command, as one would type it.
            timeout: Seconds it may take; null for as many as are allowed.
        """
        most = self._box.limits.seconds
        if timeout is not None and not 0 < timeout <= most:
            return failed("argument", f"timeout must be more than 0 and at most {most:g}, got {timeout:g}")
        limits = replace(self._box.limits, seconds=timeout or most)
        async with self._shell_lock:
            if error := await self._forbidden(command):
                return result(error)
            done = await self._box.call("shell", {"command": command, **self._place}, limits=limits)
            error, left = error_of(done), done.result if done.ended == "ok" else {}
            if left:
                self._place = {"folder": left["folder"], "environment": left["environment"]}
            elif error and error.kind == "missing":  # the folder is gone
                self._place = {}
            notes = await self._keep(done)
        if left and left["exit_code"]:
            error = problem("exit code", f"it ended with exit code {left['exit_code']}")
        folder = self._place.get("folder", ".")
        notes += [left.get("note", ""), "" if folder == "." else f"now in {folder}"]
        return result(error, output(done), notes, left)

    async def _forbidden(self, command: str) -> ToolError | None:
        folder = self._place.get("folder", ".")  # a judge must know where the command will run
        decision = self._judge(command if folder == "." else f"cd {shlex.quote(folder)} || exit\n{command}")
        reasons = "; ".join(decision.reasons)
        match decision.verdict:
            case "allow":
                return None
            case "refuse":
                return problem("refused", reasons)
            case "ask" if self._approve is None:
                return problem("needs approval", reasons)
            case "ask":
                said = await self._approve(command, decision)
                return None if said is True else problem("not approved", reasons)
        raise ValueError(f"the judge's verdict must be allow, ask or refuse, got {decision.verdict!r}")

    async def _ask(self, name: str, **arguments: Any) -> tuple[dict[str, Any], ToolError | None]:
        """What a function says inside, each time in a process of its own."""
        done = await self._box.call(name, arguments)
        return done.result or {}, error_of(done)

    async def _keep(self, done: Execution) -> list[str]:
        """Put output that was cut where the model can read it; say where."""
        notes = []
        for stream, path in (("stdout", done.stdout_file), ("stderr", done.stderr_file)):
            if path is None:
                continue
            while True:
                name = f"outputs/{next(self._numbers)}-{stream}.txt"
                _, error = await self._ask("write", path=name, content=more_of(path), known={})
                if error is None or error.kind != "not read":  # that one is there already, from another time
                    break
            kept = f"could not be kept: {error.message}" if error else f"is in {name}"
            notes.append(f"more of {stream} {kept}")
        return notes
