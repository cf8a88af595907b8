"""All families of problems, one module for each topic."""

from __future__ import annotations

from . import algebra, counting, geometry, number_theory, probability, sequences
from .family import Family, Topic

__all__ = ["FAMILIES", "Family", "Topic"]

FAMILIES: tuple[Family, ...] = (
    *number_theory.FAMILIES,
    *sequences.FAMILIES,
    *probability.FAMILIES,
    *counting.FAMILIES,
    *algebra.FAMILIES,
    *geometry.FAMILIES,
)
