"""Judging a shell command by what it does: `judge(command, folder=...)` allows it, asks, or refuses.

The judge is the second line: what it allows still runs within the sandbox. It reads, and never runs anything.

    parsing                 the syntax tree, and text that is not what it seems
    words                   what a word stands for: quotes, variables, braces, substitutions
    walking, state, statements, assigning, redirecting
                            a shell that runs nothing, but keeps variables, folders and files
    printing                what programs print, as far as it can be known
    programs, table         from words to programs, and what each does with its arguments, as data
    builtins, wrappers, environment, files, building, versions, editing, languages, python
                            programs that need more than a row of the table
    places, decisions       where a path leads and what may be done there; what the judge says
"""

from importlib import import_module
from typing import Any

_HOME = {"judge": "judging", "Decision": "decisions", "Effect": "decisions", "Policy": "decisions"}
__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'loopkit.sandbox.shell' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
