"""How far two raters, or two orders, agree."""

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
    are numbers, and a disagreement weighs by their distance, or by its square (J. Cohen, Psychol. Bull. 70, 1968): the
    distance of the numbers themselves, so that a grade nobody gave does not bring its neighbours nearer.
    The estimate is None where both raters gave one same label throughout: chance alone explains that. The 95 % interval is a `bootstrap` one over items. Raises ValueError for no labels, unequal lengths, a label that is
    NaN, or unknown weights.
    """
    same_length(first, second, "labels")
    if weights not in (None, "linear", "quadratic"):
        raise ValueError(f"weights must be None, 'linear' or 'quadratic', got {weights!r}")
    labels = [*first, *second]
    for place, label in enumerate(labels):
        if label != label:
            raise ValueError(f"label {place % len(first)} is NaN: leave the item out")
    distances = None
    if weights:
        distances = np.unique(column(labels, "labels"))
        labels = column(labels, "labels").tolist()
        numbered = {label: number for number, label in enumerate(distances.tolist())}
    else:
        numbered = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    codes = np.array([numbered[label] for label in labels]).reshape(2, -1).T
    from statsmodels.stats.inter_rater import cohens_kappa

    def statistic(rows: np.ndarray) -> float:
        table = np.zeros((len(numbered), len(numbered)))
        np.add.at(table, tuple(rows.astype(int).T), 1)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 where chance explains all: NaN
            return float(cohens_kappa(table, weights=distances, wt=weights, return_results=False))

    return bootstrap(codes, statistic)


def spearman(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Spearman's rank correlation of paired numbers (C. Spearman, Am. J. Psychol. 15, 1904), ties at their mean rank.

    The estimate is None where one side does not vary. The 95 % interval is a `bootstrap` one over the pairs. Raises
    ValueError for no pairs, unequal lengths, or a value that is not finite.
    """
    same_length(first, second, "paired values")
    from scipy.stats import rankdata

    def statistic(rows: np.ndarray) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 where one side does not vary: NaN
            return float(np.corrcoef(rankdata(rows, axis=0), rowvar=False)[0, 1])

    return bootstrap(np.column_stack([column(first, "first"), column(second, "second")]), statistic)
