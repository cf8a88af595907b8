"""Putting what the warden reports into words: a typed result, short enough for a model to read."""

import os
import signal
from pathlib import Path
from typing import Any

from .results import ErrorInfo, Execution, Limits, MadeFile, readable_text

_READ = 4
"""Bytes of the file that are read for one character to show."""


def execution(
    answer: dict[str, Any],
    limits: Limits,
    *,
    files: tuple[MadeFile, ...],
    folder: Path,
    outputs: tuple[tuple[int, int], ...],
    records: Path,
) -> Execution:
    """The result that `answer` stands for. `outputs`: of stdout and stderr, the file and where this run's part begins."""
    stdout, stdout_file = _shown(*outputs[0], limits.shown, records / "stdout.txt")
    stderr, stderr_file = _shown(*outputs[1], limits.shown, records / "stderr.txt")
    reply = _checked(answer.get("reply"))
    code, error = reply["exit_code"], reply["error"]
    ended, message = _ending(answer, reply, limits, _last_line(stdout) or _last_line(stderr))
    return Execution(
        ended=ended,
        message=message,
        stdout=stdout,
        stderr=stderr,
        value=reply["value"],
        result=reply["result"],
        error=error,
        files=files,
        folder=folder,
        stdout_file=stdout_file,
        stderr_file=stderr_file,
        exit_code=answer["code"] if answer.get("ended") == "dead" and answer["code"] >= 0 else code,
        seconds=answer["seconds"],
        cpu=answer["cpu"],
        memory=answer["memory"],
    )


def _ending(answer: dict[str, Any], reply: dict[str, Any], limits: Limits, last: str) -> tuple[Any, str]:
    ended, error, code = answer.get("ended"), reply["error"], reply["exit_code"]
    output = f"; last output: {last}" if last else "; it printed nothing"
    match ended:
        case "dead":
            code = answer["code"]
            if code < 0:
                return "killed", f"killed by {_signal(-code)}{output}"
            if code == 70 and last.startswith("the sandbox could not be built"):
                return "killed", last
            return _exited(code)
        case "timeout":
            limit = (
                f"seconds={limits.seconds:g}"
                if answer["limit"] == "seconds"
                else f"cpu={limits.spelled()['cpu']:g}"
            )
            spent = answer["seconds"] if answer["limit"] == "seconds" else answer["cpu"]
            kind = "" if answer["limit"] == "seconds" else " of CPU time"
            return ended, f"ended after {spent:.1f} s{kind} (limit: {limit}){output}"
        case "memory" | "output" | "disk" | "processes":
            return (
                ended,
                f"ended after {answer['seconds']:.1f} s: more than {ended}={_limit(limits, ended)}{output}",
            )
    if error is None:
        return _exited(code or 0)
    if reply["out_of_memory"]:
        return "memory", f"out of memory (limit: memory={limits.memory}){output}"
    where = f" (line {error.line})" if error.line else ""
    return "error", f"{error.type}: {error.message}{where}" if error.message else f"{error.type}{where}"


def _exited(code: int) -> tuple[str, str]:
    return ("ok", "") if code == 0 else ("error", f"exited with code {code}")


def _limit(limits: Limits, name: str) -> str:
    value = getattr(limits, name)
    return str(value) if name == "processes" else f"{value / (1 << 20):g} MiB"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _checked(reply: Any) -> dict[str, Any]:
    """A reply in its types, whatever the program wrote in its place: it can only deceive us about itself."""
    given = reply if isinstance(reply, dict) else {}
    error = given.get("error")
    info = None
    if isinstance(error, dict):
        line = error.get("line")
        info = ErrorInfo(
            type=_text(error.get("type")) or "Exception",
            message=_text(error.get("message")),
            line=line if isinstance(line, int) else None,
            traceback=_text(error.get("traceback")),
        )
    value, result, code = given.get("value"), given.get("result"), given.get("exit_code")
    return {
        "value": None if value is None else _text(value),
        "result": result if isinstance(result, dict) else None,
        "error": info,
        "out_of_memory": isinstance(error, dict) and bool(error.get("memory")),
        "exit_code": code & 0xFF if isinstance(code, int) else None,
    }


def _text(value: Any) -> str:
    return readable_text(str(value if value is not None else "").encode("utf-8", "backslashreplace"))


def _last_line(text: str) -> str:
    last = text.rstrip().rpartition("\n")[2].strip()
    return last if len(last) <= 200 else f"{last[:100]} … {last[-90:]}"


def _shown(fd: int, start: int, shown: int, path: Path) -> tuple[str, Path | None]:
    """Head and tail of what was written since `start`; the file, if that is not all."""
    size = os.fstat(fd).st_size
    start = min(start, size)  # the program may have cut its own output off
    length = size - start
    if length <= shown * _READ:
        text = readable_text(os.pread(fd, length, start))
        if len(text) <= shown:
            return text, None
        half = shown // 2
        return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}", path
    half = shown // 2
    head = readable_text(os.pread(fd, half, start))
    tail = readable_text(os.pread(fd, half, size - half))
    return f"{head}\n[… {length - 2 * half} bytes left out …]\n{tail}", path
