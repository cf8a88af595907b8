"""Judges: what says how good a candidate is, and so when a loop may stop.

    hybrid = Hybrid(checks=[front_matter(), …], judge=RubricJudge("openai:gpt-5-mini", SKILL_RUBRIC))
    loop = Loop(propose=write, execute=render, judge=hybrid, gates=[hybrid.gate, MaxIterations(6)])

A judge is any callable `judge(candidate, observation)` that returns a `Verdict` or a number, async or not.
"""

from loopkit.judges.checks import Check, CheckResult, Problem, run_checks
from loopkit.judges.evidence import speaks_to_no_judge, withhold
from loopkit.judges.fallback import verdict_of
from loopkit.judges.hybrid import Hybrid
from loopkit.judges.independence import check_independence, kinship
from loopkit.judges.material import Material
from loopkit.judges.rubric import SKILL_RUBRIC, Dimension, RubricJudge
from loopkit.judges.scalar import Guard, Metric, Scalar

__all__ = [
    "Check", "CheckResult", "Problem", "run_checks", "speaks_to_no_judge",
    "Dimension", "RubricJudge", "SKILL_RUBRIC", "Hybrid", "Material", "verdict_of", "withhold",
    "check_independence", "kinship",
    "Guard", "Metric", "Scalar",
]  # fmt: skip
