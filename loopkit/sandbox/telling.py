"""Putting what the warden reports into words: a typed result, short enough for a model to read."""

import codecs
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .results import ErrorInfo, Execution, Limits, MadeFile, readable_text

_READ = 4
"""Bytes of the file that are read for one character to show."""
_LONGEST_NUMBER = 10**9


def execution(
    answer: dict[str, Any],
    limits: Limits,
    *,
    once: bool,
    files: tuple[MadeFile, ...],
    folder: Path,
    outputs: Sequence[tuple[str, Path | None]],
) -> Execution:
    """The result that `answer` stands for. `outputs`: of stdout and stderr, what is shown, and the file with all of it."""
    (stdout, stdout_file), (stderr, stderr_file) = outputs
    reply = _checked(answer.get("reply"), limits.shown)
    error, code = reply["error"], reply["exit_code"]
    if answer["ended"] == "dead":
        code = answer["code"] if answer["code"] >= 0 else None
    elif answer["ended"] != "replied" or answer["late"]:
        code = None
    elif once and code is None:
        code = int(error is not None)
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
        exit_code=code,
        seconds=answer["seconds"],
        cpu=answer["cpu"],
        memory=answer["memory"],
    )


def _ending(answer: dict[str, Any], reply: dict[str, Any], limits: Limits, last: str) -> tuple[Any, str]:
    output = f"; last output: {last}" if last else "; it printed nothing"
    after = f"ended after {answer['seconds']:.1f} s"
    match answer["ended"], answer.get("limit"):
        case "dead", _:
            if answer["code"] < 0:
                return "killed", f"killed by {_signal(-answer['code'])}{output}"
            return _exited(answer["code"], output)
        case "timeout", "cpu":
            return (
                "timeout",
                f"ended after {answer['cpu']:.1f} s of CPU time (limit: cpu={limits.spelled()['cpu']:g}){output}",
            )
        case "timeout", _:
            return "timeout", f"{after} (limit: seconds={limits.seconds:g}){output}"
        case "disk", "files":
            return "disk", f"{after}: too many files, or folders that are too deep or closed{output}"
        case "output", "reply":
            return "output", f"{after}: its result is too long{output}"
        case ("memory" | "output" | "disk" | "processes") as ended, _:
            return ended, f"{after}: more than {ended}={_limit(limits, ended)}{output}"
    error = reply["error"]
    if answer["late"]:
        return (
            "timeout",
            f"interrupted after {answer['seconds']:.1f} s (limit: seconds={limits.seconds:g}){output}",
        )
    if error is None:
        return _exited(reply["exit_code"] or 0, output)
    if reply["out_of_memory"]:
        return "memory", f"out of memory (limit: memory={_limit(limits, 'memory')}){output}"
    where = f" (line {error.line})" if error.line else ""
    return "error", f"{error.type}: {error.message}{where}" if error.message else f"{error.type}{where}"


def _exited(code: int, output: str) -> tuple[str, str]:
    return ("ok", "") if code == 0 else ("error", f"exited with code {code}{output}")


def _limit(limits: Limits, name: str) -> str:
    value = getattr(limits, name)
    return str(value) if name == "processes" else f"{value / (1 << 20):g} MiB"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _checked(reply: Any, shown: int) -> dict[str, Any]:
    """A reply in its types and sizes, whatever the program wrote in its place: it can only deceive us about itself."""
    given = reply if isinstance(reply, dict) else {}
    error = given.get("error")
    info = None
    if isinstance(error, dict):
        line = error.get("line")
        info = ErrorInfo(
            type=_text(error.get("type"), 200) or "Exception",
            message=_text(error.get("message"), shown),
            line=line if type(line) is int and 0 < line < _LONGEST_NUMBER else None,
            traceback=_text(error.get("traceback"), shown),
        )
    value, result, code = given.get("value"), given.get("result"), given.get("exit_code")
    return {
        "value": None if value is None else _text(value, shown),
        "result": _clean(result) if isinstance(result, dict) else None,
        "error": info,
        "out_of_memory": isinstance(error, dict) and bool(error.get("memory")),
        "exit_code": code & 0xFF if isinstance(code, int) else None,
    }


def _text(value: Any, shown: int) -> str:
    text = value if isinstance(value, str) else "" if value is None else type(value).__name__
    if len(text) > shown:
        half = shown // 2
        text = f"{text[:half]}…{text[len(text) - half :]}"
    return readable_text(text.encode("utf-8", "backslashreplace"))


def _clean(value: Any) -> Any:
    """The same with all text such that it can be written down as UTF-8. The warden has seen to its depth."""
    if isinstance(value, dict):
        return {_clean(name): _clean(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_clean(part) for part in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _last_line(text: str) -> str:
    last = text.rstrip().rpartition("\n")[2].strip()
    return last if len(last) <= 200 else f"{last[:100]} … {last[-90:]}"


def head_and_tail(fd: int, shown: int) -> tuple[str, bool]:
    """At most so many characters of a file, from both ends, and whether that is all."""
    size, half = os.fstat(fd).st_size, shown // 2
    if size <= shown * _READ:
        text = readable_text(os.pread(fd, size, 0))
        if len(text) <= shown:
            return text, True
        return (
            f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[len(text) - half :]}",
            False,
        )
    head, tail = os.pread(fd, half, 0), os.pread(fd, half, size - half)
    # Where a character is cut in two, it is left out.
    head = head[: len(head) - len(_unfinished(head))]
    tail = tail.lstrip(bytes(range(0x80, 0xC0)))
    left = f"[… {size - len(head) - len(tail)} bytes left out …]"
    shown_tail = readable_text(tail)
    return f"{readable_text(head)[:half]}\n{left}\n{shown_tail[len(shown_tail) - half :]}", False


def _unfinished(data: bytes) -> bytes:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return decoder.getstate()[0]
