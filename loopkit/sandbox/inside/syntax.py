"""Whether what was just written parses, told by the file's extension."""

import json
import os
import re
import tomllib
import warnings
from collections.abc import Iterator

from .paths import NEWLINE, cut

CHECKED = 1 << 20
"""Bytes; the syntax of a larger file is not checked."""


def problems(name: str, data: bytes) -> Iterator[dict]:
    """What does not parse, with its line and column (from 1) and that line; Python's warnings begin with "warning"."""
    check = _CHECKS.get(os.path.splitext(name)[1].lower())
    if check is None:
        return
    if len(data) > CHECKED:
        found = [(None, None, f"syntax not checked: larger than {CHECKED} bytes")]
    else:
        try:
            found = list(check(data))
        except (ValueError, RecursionError, MemoryError) as error:
            found = [(None, None, f"cannot be parsed: {type(error).__name__}: {error}")]
    lines = NEWLINE.split(data.decode())
    for line, column, message in found:
        text = cut(lines[line - 1]) if line and line <= len(lines) else ""
        yield {"line": line, "column": column, "message": message, "text": text}


def _python(data: bytes) -> Iterator[tuple]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            compile(data, "file", "exec", dont_inherit=True)
        except SyntaxError as error:
            yield error.lineno, error.offset, error.msg
    for warning in told:
        yield warning.lineno, None, f"warning: {warning.message}"


def _json(data: bytes) -> Iterator[tuple]:
    try:
        json.loads(data.decode())
    except json.JSONDecodeError as error:
        yield error.lineno, error.colno, error.msg


def _toml(data: bytes) -> Iterator[tuple]:
    try:
        tomllib.loads(data.decode())
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+), column (\d+)", str(error))
        yield *(map(int, place.groups()) if place else (None, None)), str(error)


def _yaml(data: bytes) -> Iterator[tuple]:
    try:
        import yaml
    except ImportError:  # the one check that is not in the standard library
        return
    try:
        for _ in yaml.compose_all(data, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            pass
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = (mark.line + 1, mark.column + 1) if mark else (None, None)
        yield *place, getattr(error, "problem", None) or str(error)


_CHECKS = {".py": _python, ".pyi": _python, ".json": _json, ".ipynb": _json, ".toml": _toml}
_CHECKS |= {".yaml": _yaml, ".yml": _yaml}
