"""What every statistic asks of its data before it computes anything."""

from collections.abc import Collection, Sequence

import numpy as np


def numbers(values: Sequence[float], name: str = "values") -> np.ndarray:
    """`values` as an array of floats; ValueError unless there are some and all are finite."""
    found = np.asarray(values, dtype=float)
    if found.size == 0:
        raise ValueError(f"{name} must not be empty, got {values!r}")
    if not np.isfinite(found).all():
        place = np.argwhere(~np.isfinite(found))[0].tolist()
        raise ValueError(f"{name}{place} must be a finite number, got {found[tuple(place)]}: leave it out")
    return found


def column(values: Sequence[float], name: str = "values") -> np.ndarray:
    """The same for one number per observation."""
    found = numbers(values, name)
    if found.ndim != 1:
        raise ValueError(f"{name} must be one number per observation, got the shape {found.shape}")
    return found


def yes_or_no(values: Sequence[bool], name: str = "outcomes") -> np.ndarray:
    """Yes/no outcomes as an array of booleans; ValueError unless there are some and each is 0 or 1."""
    found = column(values, name)
    other = np.flatnonzero((found != 0) & (found != 1))
    if other.size:
        raise ValueError(f"{name}[{other[0]}] must be True or False, got {found[other[0]]}")
    return found.astype(bool)


def same_length(first: Collection, second: Collection, what: str) -> None:
    """ValueError unless both have the same number of elements, and some."""
    if len(first) != len(second) or len(first) == 0:
        raise ValueError(f"{what} must be equally long and not empty, got {len(first)} and {len(second)}")


def fraction(value: float, name: str) -> None:
    """ValueError unless `value` lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}")
