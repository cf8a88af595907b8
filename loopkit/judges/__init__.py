"""Judges: what says how good a candidate is, and so when a loop may stop."""

from loopkit.judges.calibration import Calibration, calibrate
from loopkit.judges.fitness import Fitness, Measure
from loopkit.judges.labelled import Defect, LabelError, Labelled, load_labelled, truth
from loopkit.judges.material import Material

__all__ = [
    "Calibration",
    "Defect",
    "Fitness",
    "LabelError",
    "Labelled",
    "Material",
    "Measure",
    "calibrate",
    "load_labelled",
    "truth",
]
