"""The problems: generated from families, shipped as a file, or read from a file of one's own."""

from __future__ import annotations

import codecs
import contextlib
import io
import itertools
import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from .families import FAMILIES, Family

Split = Literal["seen", "reworded", "unseen"]
"""Of a family whose solved examples may be shown, in a wording that they have; in one that they never have; of a family
of which none is shown."""

SHIPPED = Path(__file__).parents[2] / "data" / "mathematics" / "problems.jsonl"
SHIPPED_SEED, SHIPPED_COUNTS = 2026, {"seen": 200, "unseen": 100}
_SHOWN_SEED = "shown"
_SHOWN_PER_WORDING = 3


class ProblemError(ValueError):
    """A file of problems that cannot be used. The message lists the bad lines."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem with its answer."""

    id: str
    problem: str
    answer: str
    """An integer from 0 to 999 in ours; any expression or LaTeX in a file of one's own."""
    split: Split | Literal["data"] = "data"
    family: str | None = None
    topic: str | None = None
    level: int | None = None
    wording: int | None = None
    parameters: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def program(self) -> str | None:
        """A program that solves it, where its family is known."""
        return _FAMILIES[self.family].solution(self.wording, self.parameters) if self.family else None


_FAMILIES = {family.name: family for family in FAMILIES}


def in_range(answer: str) -> bool:
    """Whether it is an integer from 0 to 999, as the answers of the AIME are."""
    return answer.isascii() and answer.isdigit() and int(answer) <= 999


def generate(split: Split, count: int, seed: int | str) -> list[Problem]:
    """`count` problems of the families of one split, in turn, each with numbers that its family has in no other of them
    and in none of `shown`, whatever the wording.

    Every answer is found twice, by the family's program and by its check. Raises AssertionError if they differ, which
    is a defect of the family.
    """
    if split not in get_args(Split):
        raise ValueError(f"split must be one of {', '.join(get_args(Split))}, got {split!r}")
    families = [family for family in FAMILIES if family.seen == (split != "unseen")]
    taken = {_numbers(one) for one in shown()} if seed != _SHOWN_SEED else set()
    problems: list[Problem] = []
    for number in range(count):
        family, turn = families[number % len(families)], number // len(families)
        drawn = _drawn(family, split, turn, seed)
        problem = next(one for one in drawn if _numbers(one) not in taken)
        taken.add(_numbers(problem))
        problems.append(problem)
    return problems


def _numbers(problem: Problem) -> tuple[str | None, str]:
    return problem.family, json.dumps(problem.parameters, sort_keys=True)


def _wordings(family: Family, split: Split) -> range:
    """The last wording of a seen family is kept back."""
    count = len(family.wordings)
    return {"seen": range(count - 1), "reworded": range(count - 1, count), "unseen": range(count)}[split]


def _drawn(family: Family, split: Split, turn: int, seed: int | str) -> Iterator[Problem]:
    rng = random.Random(f"{seed} {split} {family.name} {turn}")
    wordings = _wordings(family, split)
    wording = wordings[turn % len(wordings)]
    while True:
        parameters = family.draw(rng)
        answer = family.check(**parameters)
        if not 0 <= answer <= 999:
            continue
        printed = _printed(family.solution(wording, parameters))
        if printed != str(answer):
            raise AssertionError(
                f"{family.name}: the program prints {printed!r}, the check says {answer}, for {parameters}"
            )
        yield Problem(
            id=f"{family.name}-{split}-{seed}-{turn + 1}",
            problem=family.problem(wording, parameters),
            answer=str(answer),
            split=split,
            family=family.name,
            topic=family.topic,
            level=family.level,
            wording=wording,
            parameters=parameters,
        )


def _printed(program: str) -> str:
    """What a family's own program prints. A model's never runs here."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(program, {"__name__": "__main__"})
    return output.getvalue().strip()


@lru_cache
def shown() -> tuple[Problem, ...]:
    """The solved examples that may be shown: of each seen family some in each of its wordings but the last."""
    seen = [family for family in FAMILIES if family.seen]
    most = _SHOWN_PER_WORDING * max(len(family.wordings) - 1 for family in seen)
    found = generate("seen", most * len(seen), _SHOWN_SEED)

    def turn(one: Problem) -> int:
        return int(one.id.rpartition("-")[2])

    return tuple(
        one for one in found if turn(one) <= _SHOWN_PER_WORDING * (len(_FAMILIES[one.family].wordings) - 1)
    )


def shipped(split: Split | Literal["both"] = "both") -> list[Problem]:
    """The problems of data/mathematics: 200 of seen families, 100 of unseen ones."""
    return [one for one in load(SHIPPED) if split in ("both", one.split)]


def load(path: str | Path) -> list[Problem]:
    """Read problems from JSON lines with `problem` and `answer`; AIME, MATH-500 and GSM8K copies have these.

    `question` stands for `problem`, too. An answer may be a number or a text; of GSM8K's the part after `####` counts.
    `id` (or `unique_id`) names the problem, else its line does. Raises ProblemError listing the bad lines (the first
    10), or when there is no problem at all.
    """
    problems: list[Problem] = []
    bad: list[str] = []
    content = Path(path).read_bytes().removeprefix(codecs.BOM_UTF8)
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            try:
                problems.append(_from_row(json.loads(line.decode()), number))
            except ValueError as error:
                bad.append(f"line {number}: {error}")
    twice = [
        name for name, same in itertools.groupby(sorted(one.id for one in problems)) if len(list(same)) > 1
    ]
    if twice:
        bad.append(f"ids must differ, found twice: {', '.join(twice[:10])}")
    if bad:
        more = [f"and {len(bad) - 10} more"] if len(bad) > 10 else []
        raise ProblemError("\n".join([f"{path}: {len(bad)} bad line(s)", *bad[:10], *more]))
    if not problems:
        raise ProblemError(f"{path}: no problems")
    return problems


def save(problems: Iterable[Problem], path: str | Path) -> None:
    """Write problems as JSON lines that `load` reads back equal."""
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for one in problems:
            file.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")


def _from_row(row: Any, number: int) -> Problem:
    if not isinstance(row, dict):
        raise ValueError(f"expected an object, got {type(row).__name__}")
    problem = row.get("problem", row.get("question"))
    if not isinstance(problem, str) or not problem.strip():
        raise ValueError(f"problem must be a text, got {problem!r}")
    answer = row.get("answer")
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        raise ValueError(f"answer must be a number or a text, got {answer!r}")
    answer = str(answer).rpartition("####")[2].strip()
    if not answer:
        raise ValueError("answer is empty")
    name = str(row.get("id", row.get("unique_id", f"line-{number}")))
    if "parameters" not in row:
        return Problem(id=name, problem=problem, answer=answer)
    family = _FAMILIES.get(row.get("family"))
    if family is None or not isinstance(row["parameters"], dict):
        raise ValueError(f"parameters belong to a family of ours, got {row.get('family')!r}")
    known = ("split", "family", "topic", "level", "wording", "parameters")
    return Problem(id=name, problem=problem, answer=answer, **{key: row[key] for key in known if key in row})
