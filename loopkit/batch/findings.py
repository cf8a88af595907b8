"""What trials say of one claim by itself: `weigh` it, and see `loopkit.batch.claims` for the verdict on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from loopkit.batch.claim import ACCURACY, Claim
from loopkit.metrics import (
    Estimate,
    Paired,
    PairedMeans,
    Proportion,
    accuracy,
    clustered,
    mcnemar,
    mean,
    permutation,
)

Row = Mapping[str, Any]
Verdict = Literal["supported", "not supported", "contradicted"]
MEASURED = ("iterations", "tokens", "seconds")
"""Measures that every trial has, beside its accuracy."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a claim rests on, and the verdict that follows where no test is needed."""

    said: str
    """In words, without p."""
    n: int
    """Trials, or the items of a comparison."""
    effect: float | None = None
    """How far the value lies above the bound, or above that of the other arm; negative when below."""
    p: float | None = None
    verdict: Verdict | None = None
    """None where p decides, together with the other claims of the batch."""


def weigh(claim: Claim, trials: Sequence[Row]) -> Finding:
    """Hold `trials`, rows all of which ran, against a claim."""
    if claim.other is not None:
        return _comparison(claim, trials)
    sides = [_Side(claim.arm, claim.where, claim.measure, trials)]
    if problem := _untested(claim, sides, trials):
        return problem
    if claim.equals is not None and claim.within is None:
        return _exact(claim, sides[0])
    return _interval(claim, sides[0])


def about(claim: Claim, trials: Sequence[Row]) -> list[Row]:
    """Those of the trials that the claim is about, on either side of it."""
    found = chosen(trials, claim.arm, claim.where)
    if claim.other is not None:
        found += chosen(trials, claim.other, claim.where | claim.over_where)
    return list({id(row): row for row in found}.values())


def value(row: Row, measure: str) -> float | None:
    """The measure of one trial; None where it has none of this name. A failed trial is not right."""
    if measure == ACCURACY:
        return row["result"] == "correct"
    return row[measure] if measure in MEASURED else row.get("measures", {}).get(measure)


def average(values: Sequence[float], items: Sequence[str]) -> Proportion | Estimate:
    """The share of yes, or the mean of numbers, with a 95 % interval whose unit is the item."""
    repeated = len(set(items)) < len(items)
    if _yes_or_no(values):
        return clustered(values, items) if repeated else accuracy(sum(values), len(values))
    return mean(values, items if repeated else None)


class _Side:
    """The trials of an arm whose parameters are as `where` says, with what each measures."""

    def __init__(self, arm: str, where: Mapping[str, Any], measure: str, trials: Sequence[Row]) -> None:
        self.arm, self.where = arm, where
        self.rows = chosen(trials, arm, where)
        tried = sorted(((str(row["item"]), str(row.get("seed")), value(row, measure)) for row in self.rows), key=lambda one: one[:2])  # fmt: skip
        self.tried = [one for one in tried if one[2] is not None]
        """Item, seed and value of each trial that has the measure."""

    @property
    def name(self) -> str:
        where = ", ".join(f"{key} {one}" for key, one in self.where.items())
        return f"{self.arm} ({where})" if where else self.arm

    @property
    def without(self) -> int:
        """How many of its trials lack the measure."""
        return len(self.rows) - len(self.tried)


def chosen(trials: Sequence[Row], arm: str, where: Mapping[str, Any]) -> list[Row]:
    """The trials of an arm whose parameters are as `where` says: a value, or one of a list."""

    def fits(row: Row) -> bool:
        return all(
            row.get(key) in (want if isinstance(want, list) else [want]) for key, want in where.items()
        )

    return [row for row in trials if row["arm"] == arm and fits(row)]


def _untested(claim: Claim, sides: Sequence[_Side], trials: Sequence[Row]) -> Finding | None:
    """Why the trials of some side say nothing; None if all do."""
    for side in sides:
        if not side.rows:
            return _open(f"{side.name} has 0 trials here")
        if not side.tried:
            recorded = sorted({name for row in trials for name in row.get("measures", {})})
            known = ", ".join([ACCURACY, *MEASURED, *recorded])
            return _open(f"no trial of {side.name} has the measure {claim.measure}; there are {known}")
    return None


def _open(why: str, n: int = 0) -> Finding:
    return Finding(said=f"not tested: {why}", n=n, verdict="not supported")


def _interval(claim: Claim, side: _Side) -> Finding:
    """`at_least`, `at_most`, and `equals` with `within`: where the whole interval lies."""
    items, _, values = zip(*side.tried, strict=True)
    got = average(values, items)
    if got.low is None:
        return _open(_no_interval(side, claim.measure, values, items), n=got.n)
    shown = _Shown(claim.measure, values)
    if claim.equals is None:
        bound = claim.at_least if claim.at_most is None else claim.at_most
        floor, ceiling = (bound, None) if claim.at_most is None else (None, bound)
        asked = f"be at {'least' if claim.at_most is None else 'most'} {shown.level(bound)}"
    else:
        bound, floor, ceiling = claim.equals, claim.equals - claim.within, claim.equals + claim.within
        asked = f"lie within {shown.level(bound)} ± {shown.level(claim.within)}"
    said = f"{shown.average(got)}{_over_items(items)}{_lacking(side, claim)}; the claim asks that the whole 95 % interval {asked}"
    return Finding(
        said=said, n=got.n, effect=got.estimate - bound, verdict=_placed(got.low, got.high, floor, ceiling)
    )


def _no_interval(side: _Side, measure: str, values: Sequence[float], items: Sequence[str]) -> str:
    if len(set(items)) > 1:
        several = "items" if len(set(values)) > 1 else "trials"
        return (
            f"the {several} of {side.name} all have a mean {measure} of {_number(fmean(values))}, and what does not differ "
            "gives no interval; ask for `equals`"
        )
    trials = f"{len(values)} trial{'' if len(values) == 1 else 's'}"
    return f"{side.name} has {trials}{'' if len(values) == 1 else ' on a single item'} here"


def _placed(low: float, high: float, floor: float | None, ceiling: float | None) -> Verdict:
    """Whether an interval lies wholly between the limits, wholly outside them, or neither."""
    if (floor is None or low >= floor) and (ceiling is None or high <= ceiling):
        return "supported"
    if (floor is not None and high < floor) or (ceiling is not None and low > ceiling):
        return "contradicted"
    return "not supported"


def _exact(claim: Claim, side: _Side) -> Finding:
    """`equals` by itself: each trial."""
    values = [one for *_, one in side.tried]
    others = [one for one in side.tried if one[2] != claim.equals]
    asked, n = f"{claim.measure} {_exactly(claim.equals)}", len(values)
    if not others:
        said = f"{asked} in {'the only trial' if n == 1 else f'each of {n} trials'}{_lacking(side, claim)}"
    else:
        item, seed, first = others[0]
        named = item if seed == "None" else f"{item} at seed {seed}"
        said = (
            f"the claim asks for {asked} in every trial; {len(others)} of {n} differ{_lacking(side, claim)}, the first "
            f"on {named}: {_exactly(first)}"
        )
    effect = fmean(values) - claim.equals
    return Finding(said=said, n=n, effect=effect, verdict="contradicted" if others else "supported")


def _comparison(claim: Claim, trials: Sequence[Row]) -> Finding:
    other = claim.where | claim.over_where
    sides = [_Side(claim.arm, claim.where, claim.measure, trials), _Side(claim.other, other, claim.measure, trials)]  # fmt: skip
    both = f"{sides[0].name} and {sides[1].name}"
    first, second = ({(item, seed): one for item, seed, one in side.tried} for side in sides)
    if (len(first), len(second)) != tuple(len(side.tried) for side in sides):
        return _ambiguous()
    shared = sorted(first.keys() & second.keys())
    if all(side.rows for side in sides) and (problem := _untested(claim, sides, trials)):
        return problem
    if not shared:
        return _open(f"no item was tried here by both {both}")
    values = [*(first[key] for key in shared), *(second[key] for key in shared)]
    ours, theirs = (_by_item(side, shared) for side in (first, second))
    once = _yes_or_no(values) and {*ours, *theirs} <= {0, 1}
    pair = mcnemar(ours, theirs) if once else permutation(ours, theirs)
    shown, same = _Shown(claim.measure, values), f"on the same {_counted(len(ours), len(shared))}"
    names = _short_names(claim)
    if once:
        told = f"{names[0]} alone {shown.verb} {pair.only_first} times and {names[1]} alone {pair.only_second} times"
    else:
        told = f"{names[0]} has a mean {claim.measure} of {shown.level(fmean(ours))} and {names[1]} of {shown.level(fmean(theirs))}"
    lacking = "".join(_lacking(side, claim) for side in sides)
    said = f"{same}{lacking}, {told}: difference {shown.change(pair.effect)}"
    if claim.same_as is None:
        test = (
            "exact McNemar"
            if once
            else f"{'exact ' * pair.exact}paired permutation test of the items' means,"
        )
        return Finding(said=f"{said}, {test}", n=pair.n, effect=pair.effect, p=pair.p)
    return _same(claim, pair, said, shown)


def _ambiguous() -> Finding:
    return Finding(
        said="ambiguous: an item was tried more than once at one seed on one side; add to `where`",
        n=0,
        verdict="not supported",
    )


def _same(claim: Claim, pair: Paired | PairedMeans, said: str, shown: "_Shown") -> Finding:
    if pair.low is None:
        why = "a single item gives" if pair.n == 1 else "differences that are all equal give"
        return _open(f"{said}, and {why} no interval", n=pair.n)
    return Finding(
        said=f"{said} [{shown.change(pair.low)}, {shown.change(pair.high)}]; the claim asks that the whole 95 % interval "
        f"lie within ± {shown.level(claim.margin)}",
        n=pair.n,
        effect=pair.effect,
        verdict=_placed(pair.low, pair.high, -claim.margin, claim.margin),
    )


def _by_item(values: Mapping[tuple[str, str], float], shared: Sequence[tuple[str, str]]) -> list[float]:
    """The mean over its seeds of each item, in order."""
    items: dict[str, list[float]] = {}
    for item, seed in shared:
        items.setdefault(item, []).append(values[item, seed])
    return [fmean(several) for several in items.values()]


def _short_names(claim: Claim) -> tuple[str, str]:
    """The two sides by their arms, and by the parameters in which they differ."""
    ours = [claim.where[key] for key in claim.over_where if key in claim.where]
    return " ".join(map(str, [claim.arm, *ours])), " ".join(
        map(str, [claim.other, *claim.over_where.values()])
    )


def _counted(items: int, trials: int) -> str:
    return f"{items} items" if items == trials else f"{items} items ({trials} trials on each side)"


def _over_items(items: Sequence[str]) -> str:
    return "" if (count := len(set(items))) == len(items) else f" over {count} items"


def _lacking(side: _Side, claim: Claim) -> str:
    """How many trials had to be left out, for leaving out can be what makes a difference."""
    return (
        f" ({side.without} of {len(side.rows)} trials of {side.arm} have no {claim.measure})"
        if side.without
        else ""
    )


def _yes_or_no(values: Sequence[float]) -> bool:
    return all(isinstance(one, bool) for one in values)


class _Shown:
    """How values of a measure are told: shares as percentages, other numbers as they are."""

    def __init__(self, measure: str, values: Sequence[float]) -> None:
        self.share = _yes_or_no(values)
        self.measure = measure
        self.verb = "was right" if measure == ACCURACY else f"had {measure}"

    def average(self, got: Proportion | Estimate) -> str:
        if self.share:
            return str(got) if self.measure == ACCURACY else f"{self.measure} in {got}"
        return f"mean {self.measure} {_number(got.estimate)} [{_number(got.low)}, {_number(got.high)}], n = {got.n}"

    def level(self, one: float) -> str:
        return f"{100 * one:.3g}%" if self.share else _number(one)

    def change(self, one: float) -> str:
        return f"{one:+.1%}" if self.share else f"{'+' * (one >= 0)}{_number(one)}"


def _number(one: float) -> str:
    """Three digits of a small number, all that stand before the point of a large one."""
    return f"{one:,.0f}" if abs(one) >= 1000 else f"{one:.3g}"


def _exactly(one: float) -> str:
    return repr(float(one)).removesuffix(".0")
