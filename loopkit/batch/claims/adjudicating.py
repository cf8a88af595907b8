"""Adjudication: what the records say of a batch's claims, all together."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, Literal

from loopkit.batch.claims.claim import Claim
from loopkit.batch.claims.findings import Finding, Verdict, weigh
from loopkit.batch.claims.sides import Row, sides_of
from loopkit.metrics import holm
from loopkit.metrics.intervals import more_digits

Simulated = Literal["none", "some", "all"]


def adjudicate(
    claims: Sequence[Claim], trials: Sequence[Row], declared: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """`supported`, `contradicted` or `not supported` for each claim, and one plain sentence that says why (`explained`).

    `trials` are rows with the trial's parameters, its `result` and its measures. A failed trial is not right; one that
    could not run (`error`) is left out, and in a comparison so is its partner. `n` counts the trials that a claim rests
    on, or the items of a comparison; `effect` is how far the value lies above the bound or above the other arm's. `p`
    belongs to `over` and `under`; `p_holm` is the same after Holm's correction over all claims that have one, and it is
    what decides. The other kinds are decided by where an interval, or each value, lies. `models` are those whose trials
    `arm` has; `simulated` says whether `none`, `some` or `all` of those on both sides are simulated.

    `declared` says when each claim first stood in the batch's log: an ISO 8601 time by the claim's `digest`. How many of
    the trials that it is about, those of the present code and sample, had ended by then is `seen`; with any, the verdict is `post_hoc`: the claim may have been
    made to fit them. For a claim without such a time the three are None.
    """
    ran = [row for row in trials if row["result"] != "error"]
    tests = sum(claim.over is not None or claim.under is not None for claim in claims)
    findings = [weigh(claim, ran, _swaps(claim, tests)) for claim in claims]
    corrected = holm([finding.p for finding in findings])
    tested = sum(p is not None for p in corrected)
    return [
        _adjudicated(claim, finding, p_holm, tested, trials, (declared or {}).get(claim.digest))
        for claim, finding, p_holm in zip(claims, findings, corrected, strict=True)
    ]


def _adjudicated(
    claim: Claim,
    finding: Finding,
    p_holm: float | None,
    tested: int,
    trials: Sequence[Row],
    declared: str | None,
) -> dict[str, Any]:
    sides = [side.rows for side in sides_of(claim, trials)]
    both = {id(row): row for row in chain(*sides)}.values()  # the sides may overlap
    concerned = [row for row in both if row["result"] != "error"]
    seen = None if declared is None else _ended_before(declared, concerned)
    said = finding.said if p_holm is None else f"{finding.said} {_p(claim, finding.p, p_holm, tested)}"
    if absent := len(both) - len(concerned):
        said += f"; {absent:,} could not run"
    if seen:
        said += f"; declared after {seen:,} of its {len(concerned):,} trials were on record"
    return {
        "id": claim.id,
        "says": claim.says,
        "verdict": finding.verdict or _tested(claim, finding, p_holm),
        "n": finding.n,
        "p": finding.p,
        "p_holm": p_holm,
        "effect": finding.effect,
        "explained": said,
        "models": _models(row for row in sides[0] if row["result"] != "error"),
        "simulated": simulated(_models(concerned)),
        "digest": claim.digest,
        "declared": declared,
        "seen": seen,
        "post_hoc": None if seen is None else seen > 0,
    }


def _swaps(claim: Claim, tests: int) -> int:
    """How many random swaps can give a p that Holm's correction over `tests` leaves well below what the claim asks."""
    return min(200_000, max(9_999, math.ceil(20 * tests / claim.p_below)))


def _models(trials: Iterable[Row]) -> list[str]:
    return sorted({str(row.get("model")) for row in trials})


def simulated(models: Sequence[str]) -> Simulated:
    """Whether these models are simulated ones: none of them, some or all."""
    found = [model.startswith("simulated:") for model in models]
    return "none" if not any(found) else "all" if all(found) else "some"


def _tested(claim: Claim, finding: Finding, p_holm: float) -> Verdict:
    if p_holm >= claim.p_below:
        return "not supported"
    more = finding.effect > 0
    return "supported" if more == (claim.over is not None) else "contradicted"


def _p(claim: Claim, p: float, p_holm: float, tested: int) -> str:
    more = more_digits(lambda value, more: f"{value:.{2 + more}g}", p_holm, claim.p_below)
    corrected = "" if p_holm == p else f", {p_holm:.{2 + more}g} after Holm's correction over {tested} claims"
    asked = "" if claim.over else "for less, with "
    return f"p = {p:.{2 + more}g}{corrected} (the claim asks {asked}p < {claim.p_below:g})"


def _ended_before(moment: str, trials: Sequence[Row]) -> int:
    then = datetime.fromisoformat(moment)
    return sum(datetime.fromisoformat(row["ended"]) < then for row in trials)
