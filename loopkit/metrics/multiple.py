"""Several tests at once."""

from collections.abc import Sequence


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """The p-values of one family of tests, adjusted so that a true null is rejected anywhere with probability alpha at
    most (S. Holm, Scandinavian Journal of Statistics 6, 1979).

    None stands for a claim without a test: it stays None and does not count. Raises ValueError for a p outside [0, 1].
    """
    for place, p in enumerate(ps):
        if p is not None and not 0 <= p <= 1:
            raise ValueError(f"ps[{place}] must lie between 0 and 1, got {p}")
    # statsmodels knows it too, but takes a second to load, and half a second for a garbage collection in each call.
    order = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    adjusted, largest = list(ps), 0.0
    for rank, (p, place) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p))
        adjusted[place] = largest
    return adjusted
