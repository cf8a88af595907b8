"""Adjudication: what the records say of each claim."""

from collections.abc import Mapping, Sequence
from typing import Any

from loopkit.batch.spec import Claim
from loopkit.metrics import accuracy, mcnemar

Rows = Sequence[Mapping[str, Any]]


def adjudicate(claim: Claim, trials: Rows) -> dict[str, Any]:
    """`supported`, `contradicted` or `not supported`, with n, p, effect and one plain sentence that says why.

    `n` counts the trials it rests on, or the pairs of a comparison; `models` are those whose trials it is about.
    `trials` are rows with the trial's parameters and its `result`. A failed trial is not right; one that could
    not run (`error`) is left out, and in a paired comparison so is its partner.
    """
    ran = [row for row in trials if row["result"] != "error"]
    verdict, n, p, effect, explained = _compare(claim, ran) if claim.over is not None else _bound(claim, ran)
    return {
        "id": claim.id,
        "says": claim.says,
        "verdict": verdict,
        "n": n,
        "p": p,
        "effect": effect,
        "explained": explained,
        "models": sorted({str(row.get("model")) for row in _chosen(ran, claim.arm, claim.where)}),
    }


def _chosen(trials: Rows, arm: str, where: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The trials of an arm whose parameters are as `where` says: a value, or one of a list."""

    def fits(row: Mapping[str, Any]) -> bool:
        return all(
            row.get(key) in (want if isinstance(want, list) else [want]) for key, want in where.items()
        )

    return [row for row in trials if row["arm"] == arm and fits(row)]


# verdict, n, p, effect, explained
Finding = tuple[str, int, float | None, float | None, str]


def _bound(claim: Claim, trials: Rows) -> Finding:
    right = [row["result"] == "correct" for row in _chosen(trials, claim.arm, claim.where)]
    got = accuracy(sum(right), len(right))
    floor = claim.at_least is not None
    bound = claim.at_least if floor else claim.at_most
    if got.low is None:
        few = (
            f"not tested: {_named(claim.arm, claim.where)} has {got.n} trial{'' if got.n == 1 else 's'} here"
        )
        return "not supported", got.n, None, None, few
    above, below = got.low >= bound, got.high <= bound
    verdict = "supported" if (above if floor else below) else "not supported"
    if got.high < bound if floor else got.low > bound:
        verdict = "contradicted"
    sense = "at least" if floor else "at most"
    said = f"{got}; the claim asks that the whole 95 % interval be {sense} {bound:.0%}"
    return verdict, got.n, None, got.estimate - bound, said


def _named(arm: str, where: Mapping[str, Any]) -> str:
    return f"{arm} ({', '.join(f'{key} {value}' for key, value in where.items())})" if where else arm


def _compare(claim: Claim, trials: Rows) -> Finding:
    other = claim.where | claim.over_where
    names = [" ".join([claim.arm, *map(str, (claim.where[key] for key in claim.over_where if key in claim.where))]),
             " ".join([claim.over, *map(str, claim.over_where.values())])]  # fmt: skip
    sides = _chosen(trials, claim.arm, claim.where), _chosen(trials, claim.over, other)
    first, second = map(_by_item, sides)
    if (len(first), len(second)) != tuple(map(len, sides)):
        ambiguous = "ambiguous: an item was tried more than once on one side; add to `where`"
        return "not supported", 0, None, None, ambiguous
    shared = sorted(first.keys() & second.keys())
    if not shared:
        both = f"{_named(claim.arm, claim.where)} and {_named(claim.over, other)}"
        return "not supported", 0, None, None, f"not tested: no item was tried here by both {both}"
    pair = mcnemar([first[item] for item in shared], [second[item] for item in shared])
    verdict = "not supported"
    if pair.p < claim.p_below:
        verdict = "supported" if pair.effect > 0 else "contradicted"
    said = (
        f"on the same {pair.n} items, {names[0]} alone was right {pair.only_first} times and {names[1]} alone "
        f"{pair.only_second} times: difference {pair.effect:+.1%}, exact McNemar p = {pair.p:.2g} "
        f"(the claim asks p < {claim.p_below:g})"
    )
    return verdict, pair.n, pair.p, pair.effect, said


def _by_item(trials: Rows) -> dict[tuple[str, str], bool]:
    """Right or not, by item and seed."""
    return {(str(row["item"]), str(row.get("seed"))): row["result"] == "correct" for row in trials}
