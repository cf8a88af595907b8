"""Judges: what says how good a candidate is, and so when a loop may stop."""

from loopkit.judges.material import Material

__all__ = ["Material"]
