"""Which trials a claim is about, and what they measure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from loopkit.batch.claims.claim import ACCURACY, Claim
from loopkit.metrics import Estimate, Proportion, accuracy, balanced, mean

Row = Mapping[str, Any]
Key = tuple[str, str]
"""An item and a seed."""
MEASURED = ("iterations", "tokens", "seconds")
"""Measures that every trial has, beside its accuracy."""


class Side:
    """The trials of an arm whose parameters are as `where` says, with what each measures."""

    def __init__(self, arm: str, where: Mapping[str, Any], measure: str, trials: Sequence[Row]) -> None:
        self.arm, self.measure = arm, measure
        self.name = f"{arm} ({', '.join(f'{key} {one}' for key, one in where.items())})" if where else arm
        self.rows = chosen(trials, arm, where)
        tried = [(key_of(row), one) for row in self.rows if (one := value(row, measure)) is not None]
        self.tried = sorted(tried, key=lambda one: one[0])
        """Item and seed, and the value, of each trial that has the measure."""

    @property
    def items(self) -> list[str]:
        return [item for (item, _), _ in self.tried]

    @property
    def values(self) -> list[float]:
        return [one for _, one in self.tried]

    @property
    def lacking(self) -> str:
        """How many trials had to be left out, for that can be what makes the difference; empty if none."""
        without = len(self.rows) - len(self.tried)
        return (
            f" ({without} of {len(self.rows)} trials of {self.arm} have no {self.measure})" if without else ""
        )


def sides_of(claim: Claim, trials: Sequence[Row]) -> list[Side]:
    """The side of `arm`, and in a comparison that of the other arm."""
    sides = [Side(claim.arm, claim.where, claim.measure, trials)]
    if claim.other is not None:
        sides.append(Side(claim.other, claim.where | claim.over_where, claim.measure, trials))
    return sides


def chosen(trials: Sequence[Row], arm: str, where: Mapping[str, Any]) -> list[Row]:
    """The trials of an arm whose parameters are as `where` says: a value, or one of a list."""

    def fits(row: Row) -> bool:
        return all(
            row.get(key) in (want if isinstance(want, list) else [want]) for key, want in where.items()
        )

    return [row for row in trials if row["arm"] == arm and fits(row)]


def key_of(row: Row) -> Key:
    """By what trials of two sides are matched."""
    return str(row["item"]), str(row.get("seed"))


def value(row: Row, measure: str) -> float | None:
    """The measure of one trial; None where it has none of this name. A failed trial is not right."""
    if measure == ACCURACY:
        return row["result"] == "correct"
    return row[measure] if measure in MEASURED else row.get("measures", {}).get(measure)


def measures(trials: Sequence[Row]) -> list[str]:
    """The names of all measures there are."""
    return [ACCURACY, *MEASURED, *sorted({name for row in trials for name in row.get("measures", {})})]


def yes_or_no(values: Sequence[float]) -> bool:
    """Whether the values are True and False, not numbers."""
    return all(isinstance(one, bool) for one in values)


def average(values: Sequence[float], items: Sequence[str]) -> Proportion | Estimate:
    """The share of yes, or the mean of numbers, with a 95 % interval.

    The item is the unit: where `items` repeat, each weighs the same, by the mean of its values, however often it was
    tried. `n` counts the values.
    """
    if len(set(items)) == len(items):
        return accuracy(sum(values), len(values)) if yes_or_no(values) else mean(values)
    if yes_or_no(values):
        return balanced(values, items)
    return replace(mean(_means(zip(items, values, strict=True))), n=len(values))


def by_item(values: Mapping[Key, float], shared: Sequence[Key]) -> list[float]:
    """The mean over its seeds of each item, in order."""
    return _means((key[0], values[key]) for key in shared)


def _means(values: Iterable[tuple[str, float]]) -> list[float]:
    items: dict[str, list[float]] = {}
    for item, one in values:
        items.setdefault(item, []).append(one)
    return [fmean(several) for several in items.values()]
