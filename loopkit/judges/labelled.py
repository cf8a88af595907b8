"""Labelled material: what people said of a text, to compare a judge with."""

import math
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from loopkit.judges.material import Material

ACCEPTED = 0.8
"""The score from which an item counts as accepted whose label does not say."""

Unit = Annotated[float, Field(ge=0, le=1)]


class LabelError(ValueError):
    """A file of labelled items that cannot be used; the message lists every bad line."""


class Defect(BaseModel):
    """What is wrong with a text."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: str
    """A short word to count by."""
    deterministic: bool = False
    """Whether code alone can find it."""
    place: str = ""
    """Where it stands, such as `SKILL.md:3`."""


class Labelled(BaseModel):
    """A text, and what people say of it: at least one of `accept`, `score` and `scores`; the others follow from it."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    id: str
    """Names the item."""
    main: str
    """The text that is judged."""
    name: str = "main.md"
    """The name of the main file."""
    files: dict[str, str] = {}
    """Text of the files beside it, by path."""
    goal: str = ""
    """What was asked for."""
    plan: str = ""
    """What the writer had been told to write."""
    notes: str = ""
    """What the writer says of it."""
    base: str = ""
    """The text that this is a variant of."""
    defects: tuple[Defect, ...] = ()
    """What is wrong with it, where that is known."""
    scores: dict[str, Unit] = {}
    """How good it is, by dimension."""
    score: Unit = Field(default=math.nan)
    """How good it is; where absent, the mean of `scores`, else 1 if it is accepted and 0 if not."""
    accept: bool = Field(default=False)
    """Whether it is good enough; where absent, whether `score` reaches 0.8."""

    @model_validator(mode="after")
    def _complete(self) -> "Labelled":
        given = self.model_fields_set
        if not given & {"accept", "score"} and not self.scores:
            raise ValueError("no label: give at least one of accept, score, scores")
        if "score" not in given:
            mean = math.fsum(self.scores.values()) / len(self.scores) if self.scores else float(self.accept)
            self.__dict__["score"] = mean  # the model is frozen, for everybody else
        if "accept" not in given:
            self.__dict__["accept"] = self.score >= ACCEPTED
        return self

    @property
    def material(self) -> Material:
        """What a judge is shown: all but the label."""
        return Material(
            main=self.main,
            name=self.name,
            files=self.files,
            goal=self.goal,
            plan=self.plan,
            notes=self.notes,
        )


def load_labelled(path: str | Path) -> list[Labelled]:
    """The items in a file of JSON lines, one object a line with the fields of `Labelled`; empty lines are passed over.

    Raises LabelError, listing every bad line by its number, also for an id that comes twice and for a file without
    items; OSError when the file cannot be read.
    """
    items: list[Labelled] = []
    lines: dict[str, int] = {}
    problems: list[str] = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            item = Labelled.model_validate_json(line)
        except ValidationError as error:
            problems.append(f"line {number}: {in_words(error)}")
            continue
        if (before := lines.setdefault(item.id, number)) != number:
            problems.append(f"line {number}: the id {item.id!r} is that of line {before} too")
        items.append(item)
    if problems:
        raise LabelError(f"{path} cannot be used:\n" + "\n".join(f"  {problem}" for problem in problems))
    if not items:
        raise LabelError(f"{path} has no items: give one JSON object a line, with id, main and accept")
    return items


def in_words(error: ValidationError) -> str:
    """What pydantic found, on one line."""
    found = []
    for one in error.errors(include_url=False, include_context=False):
        place = ".".join(map(str, one["loc"]))
        found.append(f"{place}: {one['msg']}" if place else one["msg"].removeprefix("Value error, "))
    return "; ".join(found)
