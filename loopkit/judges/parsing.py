"""JSON, YAML and Python read without running anything, with the line of the first fault."""

import warnings
from collections.abc import Callable
from textwrap import dedent
from typing import Any

MOST = 50_000
"""Characters of YAML, Python or Markdown that are read: their parsers are slow, and what an agent shall read is shorter."""

DEEPEST = 100
"""Brackets of YAML that may be open at once."""


class Unreadable(ValueError):
    """What cannot be read, and where: `line` counts from 1."""

    def __init__(self, line: int, fault: str) -> None:
        super().__init__(fault)
        self.line = line


def yaml_node(text: str, first: int) -> Any:
    """The last document of `text` as a YAML node, None where there is none; `first` is the line it begins on.

    Raises Unreadable.
    """
    import yaml

    _short(text, first, "YAML")
    _flat(text, first)
    node = None
    try:
        for node in yaml.compose_all(text, Loader=yaml.SafeLoader):  # noqa: B007
            pass
    except yaml.reader.ReaderError as error:  # a character that YAML does not allow
        line = first + text.count("\n", 0, error.position)
        raise Unreadable(line, f"not YAML: the character {chr(error.character)!r}") from error
    except yaml.MarkedYAMLError as error:
        line = first + (error.problem_mark.line if error.problem_mark else 0)
        raise Unreadable(line, f"not YAML: {error.problem}") from error
    except RecursionError as error:
        raise Unreadable(first, "YAML nested too deeply") from error
    return node


def read_json(text: str, first: int) -> None:
    """Raises Unreadable unless `text` is one JSON value; NaN and Infinity are none."""
    import json

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise Unreadable(first + error.lineno - 1, f"not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(first, f"not JSON: {error}") from error


def read_python(text: str, first: int) -> None:
    """Raises Unreadable unless `text` is Python, of the version that runs this; it may be indented as a whole."""
    import ast

    _short(text, first, "Python")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            ast.parse(dedent(text))
    except SyntaxError as error:
        raise Unreadable(first + (error.lineno or 1) - 1, f"not Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:  # a null character; nested too deeply
        raise Unreadable(first, f"not Python: {error or 'nested too deeply'}") from error


def _short(text: str, first: int, language: str) -> None:
    if len(text) > MOST:
        raise Unreadable(first, f"{len(text):,} characters of {language}: at most {MOST:,} are read")


def _flat(text: str, first: int) -> None:
    """Brackets in brackets, hundreds deep, take the YAML parser seconds. Those within quotes are counted too."""
    depth = 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if depth > DEEPEST:
            raise Unreadable(first, f"YAML with more than {DEEPEST} brackets open at once")


READERS: dict[str, Callable[[str, int], object]] = {
    "json": read_json,
    "yaml": yaml_node,
    "yml": yaml_node,
    "python": read_python,
    "python3": read_python,
    "py": read_python,
}
"""By the tag of a fenced block or the suffix of a file. Each is given a text and the line that it begins on."""
