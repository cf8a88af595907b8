"""What trials say of one claim by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from loopkit.batch.claims.claim import Claim
from loopkit.batch.claims.sides import Row, Side, average, by_item, measures, sides_of, yes_or_no
from loopkit.batch.claims.wording import Words, count, exactly, number, several
from loopkit.metrics import Paired, PairedMeans, mcnemar, permutation

Verdict = Literal["supported", "not supported", "contradicted"]


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


def weigh(claim: Claim, trials: Sequence[Row], swaps: int) -> Finding:
    """Hold `trials`, rows all of which ran, against a claim. `swaps` is the most that a permutation test looks at."""
    sides = sides_of(claim, trials)
    for side in sides:
        if side.rows and not side.tried:
            known = ", ".join(measures(trials))
            return _open(f"no trial of {side.name} has the measure {claim.measure}; there are {known}")
    if claim.other is not None:
        return _compare(claim, *sides, swaps)
    [side] = sides
    if not side.rows:
        return _open(f"{side.name} has 0 trials here")
    return _each(claim, side) if claim.equals is not None and claim.within is None else _interval(claim, side)


def _open(why: str, n: int = 0) -> Finding:
    return Finding(said=f"not tested: {why}", n=n, verdict="not supported")


def _interval(claim: Claim, side: Side) -> Finding:
    """`at_least`, `at_most`, and `equals` with `within`: where the whole interval lies."""
    got = average(side.values, side.items)
    if got.low is None:
        return _open(_no_interval(side), n=got.n)
    words = Words(measure=claim.measure, share=yes_or_no(side.values))
    if claim.at_least is not None:
        bound, limits = claim.at_least, (claim.at_least, None)
        asked = f"be at least {words.bound(bound)}"
    elif claim.at_most is not None:
        bound, limits = claim.at_most, (None, claim.at_most)
        asked = f"be at most {words.bound(bound)}"
    else:
        bound, limits = claim.equals, (claim.equals - claim.within, claim.equals + claim.within)
        asked = f"lie within {words.bound(bound)} ± {words.bound(claim.within)}"
    told = words.average(got, *(limit for limit in limits if limit is not None))
    return Finding(
        said=f"{told}{several(side.items)}{side.lacking}; the claim asks that the whole 95 % interval {asked}",
        n=got.n,
        effect=got.estimate - bound,
        verdict=_placed(got.low, got.high, *limits),
    )


def _no_interval(side: Side) -> str:
    if len(set(side.items)) == 1:
        on = "" if len(side.tried) == 1 else " on a single item"
        return f"{side.name} has {count(len(side.tried), 'trial')}{on} here"
    same = "items" if len(set(side.values)) > 1 else "trials"
    return (
        f"all {same} of {side.name} have a mean {side.measure} of {number(fmean(side.values))}, and what does not differ "
        "gives no interval; `equals` is for that"
    )


def _placed(low: float, high: float, floor: float | None, ceiling: float | None) -> Verdict:
    """Whether an interval lies wholly between the limits, wholly outside them, or neither."""
    if (floor is None or low >= floor) and (ceiling is None or high <= ceiling):
        return "supported"
    if (floor is not None and high < floor) or (ceiling is not None and low > ceiling):
        return "contradicted"
    return "not supported"


def _each(claim: Claim, side: Side) -> Finding:
    """`equals` by itself: every trial."""
    n, asked = len(side.tried), f"{claim.measure} {exactly(claim.equals)}"
    effect = fmean(side.values) - claim.equals
    others = [(key, one) for key, one in side.tried if one != claim.equals]
    if not others and side.lacking:
        return _open(
            f"{asked} in {count(n, 'trial')}{side.lacking}, and the claim asks for it in every trial", n=n
        )
    if not others:
        where = "the only trial" if n == 1 else f"each of {n} trials"
        return Finding(said=f"{asked} in {where}", n=n, effect=effect, verdict="supported")
    (item, seed), value = others[0]
    named = item if seed == "None" else f"{item} at seed {seed}"
    said = (
        f"the claim asks for {asked} in every trial, and {len(others)} of {n}{side.lacking} have another value; the first is "
        f"{named}: {exactly(value)}"
    )
    return Finding(said=said, n=n, effect=effect, verdict="contradicted")


def _compare(claim: Claim, ours: Side, theirs: Side, swaps: int) -> Finding:
    first, second = dict(ours.tried), dict(theirs.tried)
    if (len(first), len(second)) != (len(ours.tried), len(theirs.tried)):
        again = "ambiguous: an item was tried more than once on one side at the same seed; add to `where`"
        return Finding(said=again, n=0, verdict="not supported")
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return _open(f"no item was tried here by both {ours.name} and {theirs.name}")
    words = Words(
        measure=claim.measure, share=yes_or_no([side[key] for side in (first, second) for key in shared])
    )
    left, right = by_item(first, shared), by_item(second, shared)
    # Where the trials of each item agree with one another, the item has one outcome on either side.
    agreed = words.share and {*left, *right} <= {0, 1}
    pair = mcnemar(left, right) if agreed else permutation(left, right, resamples=swaps)
    found = f"{_same_items(len(left), len(shared))}{ours.lacking}{theirs.lacking}, {_told(claim, pair, left, right, words)}"
    if claim.same_as is not None:
        return _near(claim, pair, found, words)
    if agreed:
        test = "exact McNemar"
    elif pair.exact:
        test = "exact paired permutation test on the items' means,"
    else:
        test = f"paired permutation test on the items' means from {swaps:,} random swaps,"
    return Finding(said=f"{found}, {test}", n=pair.n, effect=pair.effect, p=pair.p)


def _same_items(items: int, trials: int) -> str:
    repeated = "" if items == trials else f" ({trials} trials on each side)"
    return f"on the same {count(items, 'item')}{repeated}"


def _told(
    claim: Claim, pair: Paired | PairedMeans, left: Sequence[float], right: Sequence[float], words: Words
) -> str:
    differing = [claim.where[key] for key in claim.over_where if key in claim.where]
    ours, theirs = (
        " ".join(map(str, name))
        for name in ([claim.arm, *differing], [claim.other, *claim.over_where.values()])
    )
    if isinstance(pair, Paired):
        told = (
            f"{ours} alone {words.verb} {pair.only_first} times and {theirs} alone {pair.only_second} times"
        )
    else:
        means = words.level(fmean(left)), words.level(fmean(right))
        told = f"mean {claim.measure} {means[0]} for {ours} and {means[1]} for {theirs}"
    return f"{told}: difference {words.change(pair.effect)}"


def _near(claim: Claim, pair: Paired | PairedMeans, found: str, words: Words) -> Finding:
    """`same_as`: where the interval of the difference lies."""
    if pair.low is None:
        why = "a single item gives" if pair.n == 1 else "differences that are all equal give"
        return _open(f"{found}, and {why} no interval", n=pair.n)
    more = words.digits((pair.low, pair.high), (-claim.margin, claim.margin))
    return Finding(
        said=f"{found} [{words.change(pair.low, more)}, {words.change(pair.high, more)}]; the claim asks that the whole 95 % interval "
        f"lie within ± {words.bound(claim.margin)}",
        n=pair.n,
        effect=pair.effect,
        verdict=_placed(pair.low, pair.high, -claim.margin, claim.margin),
    )
