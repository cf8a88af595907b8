"""Several trials on each item: is one of k right, are all k?

Both are means over items, with a `bootstrap` interval over items: trials of one item are not independent.
"""

from collections.abc import Callable, Sequence
from math import comb

from loopkit.metrics.intervals import Estimate, bootstrap


def pass_at_k(counts: Sequence[tuple[int, int]], k: int) -> Estimate:
    """pass@k: the probability that at least one of `k` trials on an item is right.

    `counts` has one (n, c) per item: n trials, c of them right. Unbiased: 1 - C(n - c, k) / C(n, k), the share of the
    ways of picking k of the n trials (M. Chen et al., 2021, arXiv 2107.03374).
    Raises ValueError for no items, k < 1, an impossible count, or an item with fewer than k trials.
    """
    return _mean_over_items(counts, k, lambda n, c: 1 - comb(n - c, k) / comb(n, k))


def pass_hat_k(counts: Sequence[tuple[int, int]], k: int) -> Estimate:
    """pass^k: the probability that all of `k` trials on an item are right.

    `counts` as in `pass_at_k`. Unbiased: C(c, k) / C(n, k) (S. Yao et al., τ-bench, 2024, arXiv 2406.12045).
    """
    return _mean_over_items(counts, k, lambda n, c: comb(c, k) / comb(n, k))


def _mean_over_items(
    counts: Sequence[tuple[int, int]], k: int, estimate: Callable[[int, int], float]
) -> Estimate:
    if k < 1:
        raise ValueError(f"k must be >= 1, got {k}")
    if len(counts) == 0:
        raise ValueError("counts must not be empty: give one (n, c) per item")
    for place, (n, c) in enumerate(counts):
        if not 0 <= c <= n:
            raise ValueError(f"counts[{place}]: {c} right of {n} trials is impossible")
        if k > n:
            raise ValueError(
                f"counts[{place}] has {n} trials, too few for k={k}: try more or take a smaller k"
            )
    return bootstrap([estimate(n, c) for n, c in counts])
