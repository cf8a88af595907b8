"""A family of problems: one mathematical question asked of many numbers, in several wordings.

A family knows its answers twice. `program` is what a solver is expected to write; `check` gets the same
number in another way and shares no code with it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from string import Template
from typing import Literal

Topic = Literal["number theory", "sequences", "probability", "counting", "algebra", "geometry"]

_WORDS_BEFORE = 3
_OPERATORS = {"+", "-", "*", "/", "="}


@dataclass(frozen=True, kw_only=True)
class Family:
    """Problems that differ in their parameters and wording only; every answer is an integer, 0 to 999."""

    name: str
    """snake_case, unique among all families."""
    topic: Topic
    level: int
    """1 (one step) to 5 (a hard question of the AIME)."""
    seen: bool
    """Whether solved examples of this family may be shown to a solver."""
    draw: Callable[[random.Random], dict[str, int | str]]
    """The parameters of one problem. Its answer may be out of range: who generates problems draws again."""
    wordings: tuple[str, ...]
    """Three or more `string.Template` texts with `$name` for each parameter that they state."""
    program: str
    """A Python program that prints the answer and nothing else. The parameters are variables that it takes for given."""
    check: Callable[..., int]
    """The answer by an independent way; takes the parameters as keywords."""

    def __post_init__(self) -> None:
        if not 1 <= self.level <= 5:
            raise ValueError(f"{self.name}: level must be 1 to 5, got {self.level}")
        if len(self.wordings) < 3:
            raise ValueError(f"{self.name}: wordings must be 3 or more, got {len(self.wordings)}")

    def problem(self, wording: int, parameters: Mapping[str, int | str]) -> str:
        """The statement of the problem in the given wording, counted from 0."""
        return self._filled(self._wording(wording), parameters)

    def solution(self, wording: int, parameters: Mapping[str, int | str]) -> str:
        """The source of the program that solves the problem.

        After the imports it reads the numbers off the text, in the order of the text, each under the words that it
        stands behind; numbers that are written as one, such as 5^31, a point or a polynomial, go together. The rest,
        after an empty line, is the same for the whole family. A small model copies words better than it picks numbers,
        and picks the ones just copied.
        """
        words = self._wording(wording).split(" ")
        lines, known, end = [], set(), 0
        for start, end in _pieces(words):
            piece = " ".join(words[start:end])
            names = [name for name in dict.fromkeys(_names(piece)) if name not in known and self._uses(name)]
            if names:
                known.update(names)
                before = words[max(0, start - _WORDS_BEFORE) : start]
                lines.append(f"# {' '.join([*before, piece[: _end_of(names[-1], piece)]])}")
                lines.append(f"{', '.join(names)} = {', '.join(f'${name}' for name in names)}")
        lines += [f"{name} = ${name}" for name in parameters if name not in known and self._uses(name)]
        given = self._filled("\n".join(lines), parameters)
        imports, gap, rest = self.program.rstrip().rpartition("\n\n")
        return f"{imports}{gap}{given}\n\n{rest}"

    def _uses(self, name: str) -> bool:
        return re.search(rf"\b{name}\b", self.program) is not None

    def _wording(self, number: int) -> str:
        if not 0 <= number < len(self.wordings):
            raise ValueError(f"{self.name}: wording must be 0 to {len(self.wordings) - 1}, got {number}")
        return self.wordings[number]

    def _filled(self, text: str, parameters: Mapping[str, int | str]) -> str:
        try:
            return Template(text).substitute(parameters)
        except KeyError as error:
            raise ValueError(
                f"{self.name}: parameter {error} is missing, got {sorted(parameters)}"
            ) from error


def _pieces(words: list[str]) -> Iterator[tuple[int, int]]:
    """The text in pieces, as first word and word after the last: words, or what parentheses and operators make one."""
    start = depth = 0
    for number, word in enumerate(words, start=1):
        depth += word.count("(") - word.count(")")
        joined = word in _OPERATORS or (number < len(words) and words[number] in _OPERATORS)
        if depth <= 0 and not joined:
            yield start, number
            start, depth = number, 0


def _names(piece: str) -> list[str]:
    return [match["named"] or match["braced"] for match in Template.pattern.finditer(piece)]


def _end_of(name: str, piece: str) -> int:
    ends = [m.end() for m in Template.pattern.finditer(piece) if (m["named"] or m["braced"]) == name]
    return ends[0]
