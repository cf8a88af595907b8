"""Putting what went wrong in a program into few words: the error, its line, the frames that matter."""

import errno
import os
import sys
import traceback
from collections.abc import Collection
from typing import Any

_MAX_FRAMES = 8
_LONGEST_LINE = 300
_OURS = os.path.dirname(__file__)


def describe(error: BaseException, cells: Collection[str], shown: int) -> dict[str, Any]:
    """Type, message, line, and a traceback with the program's own frames and the one it failed in.

    `cells`: the names of the program's sources. The error is the program's, and may do anything when it is looked at.
    """
    try:
        return _described(error, cells, shown)
    except BaseException as second:
        message = f"(it cannot be shown: {type(second).__name__})"
        return {"type": "Exception", "memory": False, "message": message, "line": None, "traceback": message}


def _described(error: BaseException, cells: Collection[str], shown: int) -> dict[str, Any]:
    syntax = isinstance(error, SyntaxError) and error.filename in cells
    message = clip(str(error.msg if syntax else error), min(shown, 2000))
    # Frames of this package are neither the program's nor a library's it called.
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _OURS not in frame.filename]
    own = [frame for frame in frames if frame.filename in cells]
    if syntax:
        line = error.lineno
        text = [f"line {line}: {(error.text or '').strip()}"]
    else:
        line = own[-1].lineno if own else None
        kept = [frame for frame in frames if _is_own(frame.filename, cells) or frame is frames[-1]]
        text = [_frame(frame, cells) for frame in kept]
        if len(text) > _MAX_FRAMES:
            half = _MAX_FRAMES // 2
            text[half:-half] = [f"… {len(text) - 2 * half} more …"]
    kind = str(type(error).__name__)
    text.append(f"{kind}: {message}" if message else kind)
    return {
        "type": kind,
        "memory": isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM),
        "message": message,
        "line": line,
        "traceback": clip("\n".join(text), shown),
    }


def _is_own(filename: str, cells: Collection[str]) -> bool:
    return filename in cells or filename == "<string>" or filename.startswith(_folder())


def _frame(frame: traceback.FrameSummary, cells: Collection[str]) -> str:
    where = "" if frame.filename == next(iter(cells), "") else f"{short(frame.filename)} "
    within = "" if frame.name == "<module>" else f" in {frame.name}"
    return clip(f"{where}line {frame.lineno}{within}: {frame.line or ''}", _LONGEST_LINE)


def show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    """For `warnings.showwarning`: a line for each."""
    where = f"line {lineno}" if filename.startswith("<") else short(filename)
    print(f"{category.__name__} ({where}): {clip(str(message), _LONGEST_LINE)}", file=sys.stderr)


def short(path: str) -> str:
    """`…/site-packages/sympy/core/expr.py` → `sympy/core/expr.py`; in the program's folder, from there."""
    for mark in ("/site-packages/", f"/python{sys.version_info[0]}.{sys.version_info[1]}/"):
        if mark in path:
            return path.rpartition(mark)[2]
    return path.removeprefix(_folder())


def _folder() -> str:
    return os.environ.get("HOME", "") + "/"


def clip(text: str, size: int) -> str:
    if len(text) <= size:
        return text
    half = max(1, (size - 30) // 2)
    return f"{text[:half]} […{len(text) - 2 * half} characters…] {text[-half:]}"
