"""What a tool answers: text for a model to read, data for code, and a typed error with its remedy."""

import functools
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from .results import Execution

SHOWN = 48_000
"""Characters of a result that a model is shown; the middle is left out of a longer one."""
KEPT = 4 << 20
"""Bytes of an output that are kept in a file when it is too long to show."""
REMEDIES = {
    "argument": "call the tool again with the argument put right",
    "outside": "use a path relative to the working folder",
    "missing": "look for the file with glob",
    "not a file": "give a file's path; glob lists what is in a folder",
    "binary": "look into it with python",
    "encoding": "change it with python, in its own encoding",
    "range": "ask for lines that are there",
    "not read": "read it before you overwrite it, or change a part of it with edit",
    "not found": "read the file, and give old exactly as it stands there",
    "not unique": "give more of the lines around it in old, or all=true to replace every one",
    "no change": "give in new what old is to become",
    "pattern": "put a backslash before each character that stands for itself",
    "denied": "leave this file as it is and write to another one",
    "system": "check the path, and try another way",
    "empty": "send something to run",
    "syntax": "nothing was run: correct the code and send it again",
    "refused": "reach the goal in another way; the same command will be refused again",
    "needs approval": "nobody can be asked: use a command that needs no approval",
    "not approved": "the user said no: ask what to do instead, or reach the goal in another way",
    "exception": "find the cause in the traceback, correct the code and run it again",
    "exit code": "read the output for the cause",
    "timeout": "do less at once: a smaller input, a simpler pattern, fewer files",
    "memory": "hold less in memory at once",
    "output": "print less, or write to a file",
    "disk": "write less, or delete files first",
    "processes": "start fewer processes and threads",
    "killed": "avoid what makes the process crash",
}
"""What to do about each kind of error."""


class ToolError(BaseModel):
    """Why a tool did not do what it was asked."""

    model_config = ConfigDict(frozen=True)

    kind: str
    """One of REMEDIES."""
    message: str
    remedy: str


class ToolResult(BaseModel):
    """What a tool did: `text` for a model to read, `data` for code."""

    model_config = ConfigDict(frozen=True)

    ok: bool
    text: str
    data: dict[str, Any]
    error: ToolError | None = None


def failed(kind: str, message: str) -> ToolResult:
    return result(problem(kind, message))


def problem(kind: str, message: str) -> ToolError:
    return ToolError(kind=kind, message=message, remedy=REMEDIES[kind])


def result(
    error: ToolError | None,
    body: Iterable[str] = (),
    notes: Iterable[str] = (),
    data: dict[str, Any] | None = None,
) -> ToolResult:
    """Put together the text: the error first, then what there is to show, then notes in brackets."""
    parts = [f"error ({error.kind}): {error.message}\n{error.remedy}"] if error else []
    text = "\n".join(part.rstrip("\n") for part in body if part)
    if len(text) > SHOWN:
        half = SHOWN // 2
        text = f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
    parts += [text] * bool(text) + [f"[{note}]" for note in notes if note]
    text = "\n".join(parts) or "[done; there is nothing to show]"
    return ToolResult(ok=error is None, text=text, data=data or {}, error=error)


def error_of(done: Execution) -> ToolError | None:
    """What went wrong inside: a problem that a tool told, a program's failure, or a limit that it broke."""
    if done.ended == "ok":
        return None
    if done.ended != "error":
        return problem(done.ended, done.message)
    if done.error is None:
        return problem("exit code", done.message)
    told = done.result or {}
    if done.error.type == "ToolProblem" and told.get("kind") in REMEDIES:
        return problem(told["kind"], told["message"])
    return problem("exception", done.message)


def output(done: Execution) -> list[str]:
    return [done.stdout, f"stderr:\n{done.stderr}" if done.stderr else ""]


def more_of(path: Path) -> str:
    """Output that was too long to show, as text to keep: up to KEPT bytes of it, head and tail."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(KEPT if size <= KEPT else KEPT // 2)
        if size > KEPT:
            file.seek(size - KEPT // 2)
            data += f"\n[… {size - KEPT // 2 * 2} bytes left out …]\n".encode() + file.read(KEPT // 2)
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")  # with NUL it would not pass as text


def syntax(problems: list[dict[str, Any]]) -> list[str]:
    """What is wrong with a file that was just written."""
    told = []
    for one in problems[:10]:
        column = f", column {one['column']}" if one["column"] else ""
        where = f"line {one['line']}{column}: " if one["line"] else ""
        told.append(
            f"  {where}{one['message']}" + (f"\n    {one['text'].strip()}" if one["text"].strip() else "")
        )
    return ["the syntax check says:", *told] if told else []


def found(matches: list[dict[str, Any]], mode: str) -> list[str]:
    """Search results as grep prints them: `path:line: text`, `path-line- text` around it, `--` where lines are missing."""
    if mode != "lines":
        return [one["path"] + (f": {one['count']}" if mode == "count" else "") for one in matches]
    around = any(not one["match"] for one in matches)
    lines, last = [], None
    for one in matches:
        if around and last and (one["path"], one["line"]) != (last["path"], last["line"] + 1):
            lines.append("--")
        mark = ":" if one["match"] else "-"
        lines.append(f"{one['path']}{mark}{one['line']}{mark} {one['text']}")
        last = one
    return lines


def counted(number: int, what: str) -> str:
    return f"{number} {what}" + "s" * (number != 1)


def for_agents(method: Callable[..., Awaitable[ToolResult]]) -> Callable[..., Awaitable[Any]]:
    """The method as pydantic-ai calls it: text for the model, the rest as metadata; an error is a failed call."""
    from pydantic_ai import ToolFailed, ToolReturn

    @functools.wraps(method)
    async def call(**arguments: Any) -> ToolReturn:
        done = await method(**arguments)
        if done.error:
            raise ToolFailed(done.text)
        return ToolReturn(done.text, metadata=done.model_dump(mode="json"))

    call.__annotations__ = {**method.__annotations__, "return": ToolReturn}
    return call
