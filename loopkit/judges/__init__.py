"""Judges: what says how good a candidate is, and so when a loop may stop."""

from loopkit.judges.labelled import Defect, LabelError, Labelled, load_labelled, truth
from loopkit.judges.material import Material

__all__ = ["Defect", "LabelError", "Labelled", "Material", "load_labelled", "truth"]
