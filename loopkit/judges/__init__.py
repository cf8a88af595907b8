"""Judges: what says how good a candidate is, and so when a loop may stop.

    hybrid = Hybrid(checks=[front_matter(), …], judge=RubricJudge("openai:gpt-5-mini", SKILL_RUBRIC))
    loop = Loop(propose=write, execute=render, judge=hybrid, gates=[hybrid.gate, MaxIterations(6)])

A judge is any callable `judge(candidate, observation)` that returns a `Verdict` or a number, async or not.
"""

from loopkit.judges.calibration import Calibration, calibrate
from loopkit.judges.checks import (
    CHECKS,
    Check,
    CheckResult,
    Problem,
    check_named,
    checks_from,
    front_matter,
    length,
    markdown_well_formed,
    numbers_within,
    parses,
    references_exist,
    register,
    required_fields,
    run_checks,
    share,
    skill_checks,
    speaks_to_no_judge,
    usage_trigger,
)
from loopkit.judges.evidence import withhold
from loopkit.judges.fallback import verdict_of
from loopkit.judges.fitness import Fitness, Measure
from loopkit.judges.hybrid import Hybrid
from loopkit.judges.independence import check_independence, kinship
from loopkit.judges.labelled import Defect, LabelError, Labelled, load_labelled
from loopkit.judges.material import Material
from loopkit.judges.rubric import SKILL_RUBRIC, Dimension, RubricJudge
from loopkit.judges.scalar import Guard, Metric, Scalar

__all__ = [
    "CHECKS", "Check", "CheckResult", "Problem", "check_named", "checks_from", "register", "run_checks", "share",
    "front_matter", "length", "markdown_well_formed", "numbers_within", "parses", "references_exist",
    "required_fields", "skill_checks", "speaks_to_no_judge", "usage_trigger",
    "Dimension", "RubricJudge", "SKILL_RUBRIC", "Hybrid", "Material", "verdict_of", "withhold",
    "check_independence", "kinship",
    "Guard", "Metric", "Scalar",
    "calibrate", "Calibration", "Fitness", "Measure", "Labelled", "Defect", "LabelError", "load_labelled",
]  # fmt: skip
