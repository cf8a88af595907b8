"""The judges that are compared, and the loop of one turn in which each says yes or no."""

import re
from typing import Any, Literal, get_args

import loopkit.judges.simulated  # noqa: F401, so that judges of known bias can be named
from loopkit.gates import MaxIterations, Threshold
from loopkit.judges import SKILL_RUBRIC, Hybrid, Labelled, Material, RubricJudge
from loopkit.judges.fallback import Judge, verdict_of
from loopkit.judges.rubric import truth
from loopkit.loop import Loop
from loopkit.verdict import Verdict

from . import planting

Arm = Literal["never", "words", "checks", "judge", "hybrid", "hybrid-veto"]
ARMS: tuple[str, ...] = get_args(Arm)
MODEL_FREE = ("never", "words", "checks")


def never(candidate: Any, observation: Material) -> Verdict:
    """Accepts nothing. It makes no bad loop stop, and no good one either: the floor."""
    return Verdict(score=0.0)


def words(candidate: Any, observation: Material) -> Verdict:
    """The bad metric: the share of the goal's words that occur in the text. It looks reasonable, and measures nothing."""
    wanted = set(re.findall(r"[a-z]{4,}", observation.goal.lower()))
    found = wanted & set(re.findall(r"[a-z]{4,}", observation.main.lower()))
    return Verdict(score=len(found) / len(wanted) if wanted else 0.0)


def make_judge(arm: Arm, model: str) -> Judge:
    """The judge of an arm. Raises ModelUnavailable for a model that is not there."""
    checks = planting.checks()
    if arm == "never":
        return never
    if arm == "words":
        return words
    if arm == "checks":
        return Hybrid(checks=checks, judge=never, weights=(1.0, 0.0))
    # Who knows nothing answers in the same form as the embedded model, or it would be no floor for it.
    choose = True if model == "simulated:random" else None
    rubric = RubricJudge(model, SKILL_RUBRIC, choose=choose)
    if arm == "judge":
        return rubric
    vetoes = [check.vetoing() for check in checks]
    return Hybrid(checks=vetoes if arm == "hybrid-veto" else checks, judge=rubric)


def make(item: Labelled, judge: Judge, threshold: float) -> Loop:
    """One turn: the text is proposed as it is, and the judge opens the threshold or does not."""

    def propose(goal: Any, history: Any) -> str:
        return item.main

    def execute(candidate: str) -> Material:
        return item.material

    async def judged(candidate: str, observation: Material) -> Verdict:
        token = truth.set(item.scores or None)  # for `simulated:` models alone
        try:
            return await verdict_of(judge, candidate, observation)
        finally:
            truth.reset(token)

    return Loop(
        propose=propose, execute=execute, judge=judged, gates=[Threshold(threshold), MaxIterations(1)]
    )
