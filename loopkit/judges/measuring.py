"""From judgements to the numbers of a calibration."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import stdev, variance
from typing import Any

import numpy as np

from loopkit.judges.judging import PROBES, Judgement
from loopkit.judges.labelled import Labelled
from loopkit.metrics import Estimate, Proportion, accuracy, bootstrap, clustered, kappa, mean, spearman

LEAST_OF_EACH = 5
"""Accepted and rejected items that agreement takes: one of either would decide it alone."""
BANDS = 5
"""Into how many equal bands scores are put for the weighted kappa."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """An item, and all that was said of it."""

    item: Labelled
    plain: list[Judgement] = field(default_factory=list)
    """As it is, one per repeat."""
    probed: dict[str, Judgement] = field(default_factory=dict)
    """By probe."""

    @property
    def judgements(self) -> list[Judgement]:
        """All of them."""
        return [*self.plain, *self.probed.values()]

    @property
    def first(self) -> Judgement:
        """What a gate would have been told."""
        return self.plain[0]

    @property
    def decided(self) -> bool:
        """Whether the judge said something, be it nothing of use."""
        return self.first.settled

    def change(self, probe: str) -> float | None:
        """How the score changed under a probe; None without both scores."""
        after = self.probed.get(probe)
        if after is None or after.score is None or self.first.score is None:
            return None
        return after.score - self.first.score

    @property
    def scores(self) -> list[float]:
        """The scores of the item as it is."""
        return [one.score for one in self.plain if one.score is not None]

    def row(self, threshold: float) -> dict[str, Any]:
        """What is to be seen of one item."""
        verdict, scores = self.first.verdict, self.scores
        return {
            "item": self.item.id,
            "base": self.item.base,
            "defects": [defect.kind for defect in self.item.defects],
            "label": self.item.score,
            "label_accept": self.item.accept,
            "score": self.first.score,
            "accept": self.first.accepts(threshold) if self.decided else None,
            "barred": verdict.barred if verdict else None,
            "voids": dict(verdict.voids) if verdict else {},
            "sd": stdev(scores) if len(scores) > 1 else None,
            **{probe: self.change(probe) for probe in PROBES},
            "failure": self.first.failure,
        }


def cases(labelled: Sequence[Labelled], judgements: Iterable[Judgement]) -> list[Case]:
    """The judgements by item, in the order of the items."""
    found = {item.id: Case(item=item) for item in labelled}
    for one in judgements:
        case = found[one.item]
        if one.probe:
            case.probed[one.probe] = one
        else:
            case.plain.append(one)
    return list(found.values())


def measured(cases: Sequence[Case], threshold: float) -> dict[str, Estimate | Proportion | None]:
    """Every number of a calibration with its 95 % interval, by name; None for what there are no data for."""
    decided = [case for case in cases if case.decided]
    accepts = [case.first.accepts(threshold) for case in decided]
    wanted = [case.item.accept for case in decided]
    scored = [case for case in cases if case.first.score is not None]
    scores, labels = [case.first.score for case in scored], [case.item.score for case in scored]
    return {
        "kappa": kappa(accepts, wanted) if min(map(wanted.count, (True, False))) >= LEAST_OF_EACH else None,
        "weighted": kappa(_bands(scores), _bands(labels), weights="quadratic") if scored else None,
        "spearman": spearman(scores, labels) if scored else None,
        "inflation": _mean([score - label for score, label in zip(scores, labels, strict=True)]),
        **_by_dimension(scored),
        "false_accepts": _share([yes for yes, case in zip(accepts, decided, strict=True) if not case.item.accept]),
        "false_rejects": _share([not yes for yes, case in zip(accepts, decided, strict=True) if case.item.accept]),
        "repeat_sd": _pooled_sd([case.scores for case in cases]),
        **{
            probe: _mean([change for case in cases if (change := case.change(probe)) is not None])
            for probe in PROBES
        },
        "quote_validity": _per_item(
            (case.item.id, valid) for case in cases for one in case.judgements for valid in one.quotes.values()
        ),
        "failures": _per_item(
            (case.item.id, one.failure is not None) for case in cases for one in case.judgements
        ),
    }  # fmt: skip


def _bands(scores: Sequence[float]) -> list[int]:
    return [min(max(int(score * BANDS), 0), BANDS - 1) for score in scores]


def _mean(values: Sequence[float]) -> Estimate | None:
    return mean(values) if values else None


def _share(outcomes: Sequence[bool]) -> Proportion:
    return accuracy(sum(outcomes), len(outcomes))


def _by_dimension(scored: Sequence[Case]) -> dict[str, Estimate | None]:
    names = dict.fromkeys(name for case in scored for name in case.item.scores)
    return {
        f"inflation of {name}": _mean(
            [
                case.first.verdict.dimensions[name] - case.item.scores[name]
                for case in scored
                if name in case.item.scores and name in case.first.verdict.dimensions
            ]
        )
        for name in names
        if any(name in case.first.verdict.dimensions for case in scored)
    }


def _pooled_sd(repeated: Sequence[Sequence[float]]) -> Estimate | None:
    """The standard deviation within items: squared deviations from each item's mean over their degrees of freedom."""
    rows = [(variance(scores) * (len(scores) - 1), len(scores) - 1) for scores in repeated if len(scores) > 1]

    def statistic(drawn: np.ndarray) -> float:
        squares, freedom = drawn.sum(axis=0)
        return math.sqrt(squares / freedom)

    return bootstrap(rows, statistic) if rows else None


def _per_item(outcomes: Iterable[tuple[str, bool]]) -> Proportion | None:
    found = list(outcomes)
    return clustered([yes for _, yes in found], [item for item, _ in found]) if found else None
