"""How far two raters agree: on labels, on an order."""

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np

from loopkit.metrics.checks import column, same_length
from loopkit.metrics.intervals import Estimate, bootstrap


def kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    weights: Literal["linear", "quadratic"] | None = None,
) -> Estimate:
    """Cohen's kappa of two raters' labels, item by item: agreement beyond chance, 1 when they always agree.

    Without `weights` any two labels are equally far apart (J. Cohen, Educ. Psychol. Meas. 20, 1960). With them labels
    are numbers, and a disagreement weighs by their distance or its square (J. Cohen, Psychol. Bull. 70, 1968): that of
    the numbers themselves, so that a grade nobody gave does not bring its neighbours closer.

    The estimate is None where both raters gave the same label throughout: chance alone would agree as well. The 95 %
    interval is that of `bootstrap` over items, so labels that always agree have none; with 10 items it is somewhat wide
    (98 % coverage). Raises ValueError for no labels, unequal lengths, a label that is NaN, unknown weights, or labels
    that are no numbers where weights are asked for.
    """
    same_length(first, second, "labels")
    if weights not in (None, "linear", "quadratic"):
        raise ValueError(f"weights must be None, 'linear' or 'quadratic', got {weights!r}")
    labels = [*first, *second]
    if any(label != label for label in labels):
        raise ValueError("a label is NaN: leave its item out")
    if weights:
        labels = column(labels, "labels").tolist()
    distinct = sorted(set(labels)) if weights else list(dict.fromkeys(labels))
    codes = {label: code for code, label in enumerate(distinct)}
    from statsmodels.stats.inter_rater import cohens_kappa

    def statistic(rows: np.ndarray) -> float:
        table = np.zeros((len(distinct), len(distinct)))
        np.add.at(table, tuple(rows.astype(int).T), 1)
        with np.errstate(invalid="ignore"):  # 0 / 0, where chance explains all, is NaN
            return cohens_kappa(
                table, weights=distinct if weights else None, wt=weights, return_results=False
            )

    return bootstrap(np.reshape([codes[label] for label in labels], (2, -1)).T, statistic)


def spearman(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Spearman's rank correlation of paired numbers (C. Spearman, Am. J. Psychol. 15, 1904), ties at their mean rank.

    The estimate is None where one side does not vary. The 95 % interval is that of `bootstrap` over the pairs, so a
    perfect correlation has none; with 10 pairs it is somewhat wide (99 % coverage). Raises ValueError for no pairs,
    unequal lengths, or a value that is not finite.
    """
    same_length(first, second, "paired values")
    from scipy.stats import rankdata

    def statistic(rows: np.ndarray) -> float:
        ranks = rankdata(rows, axis=0)
        a, b = (ranks - ranks.mean(axis=0)).T
        with np.errstate(invalid="ignore"):  # 0 / 0, where one side does not vary, is NaN
            return a @ b / np.sqrt((a @ a) * (b @ b))

    return bootstrap(np.column_stack([column(first, "first"), column(second, "second")]), statistic)
