"""What is asked of a judge before it may stop a loop, with the thresholds in the open."""

import math
from dataclasses import dataclass

from loopkit.metrics import Estimate, Proportion

WORDS = {
    "kappa": "agreement with the labels on accept or reject, beyond chance (kappa),",
    "spearman": "rank correlation with the labelled scores (spearman)",
    "inflation": "the judge's score minus the label (inflation)",
    "false_accepts": "the share it accepts of what should be rejected (false_accepts)",
    "repeat_sd": "the standard deviation of repeated judgements (repeat_sd)",
    "position": "what the opposite order changes (position)",
    "verbosity": "what padding gains (verbosity)",
    "injection": "what a line to the judge gains (injection)",
    "quote_validity": "the share of quotes that are in the material (quote_validity)",
    "failures": "the share of judgements that failed (failures)",
}


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number of a calibration, and whether it is as asked: its whole 95 % interval within `least` to `most`."""

    name: str
    n: int
    """Observations: items, or judgements for quote_validity and failures. 0 when it was not measured."""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    least: float | None = None
    """The least that is asked; None where any low value will do."""
    most: float | None = None
    ok: bool | None = None
    """None where nothing is asked, or nothing was measured."""
    why: str | None = None
    """What is wrong, as a sentence; None where nothing is."""

    @property
    def asked(self) -> str:
        """What is asked, in words."""
        match self.least, self.most:
            case None, None:
                return ""
            case least, None:
                return f"at least {least:g}"
            case None, most:
                return f"at most {most:g}"
            case least, most:
                return f"{least:g} to {most:g}"


@dataclass(frozen=True, kw_only=True)
class Fitness:
    """What a judge must show to be fit to stop a loop.

    Each threshold holds for the whole 95 % interval, not only for the estimate: few items are no excuse. Where
    all observations are alike there is no interval: then the estimate counts, if there are `items` of them.
    """

    items: int = 20
    """Observations that it takes where all are alike: from fewer even perfect agreement says little."""
    kappa: float = 0.4
    """Least agreement with people on accept or reject, beyond chance. Up to 0.4 it is no more than fair, in the words of
    J. R. Landis and G. G. Koch (Biometrics 33, 1977)."""
    spearman: float = 0.4
    """Least rank correlation with people's scores: a loop keeps the better of two candidates by the judge's order."""
    inflation: float = 0.1
    """Most the scores may lie above or below people's on average: a threshold means something else otherwise."""
    false_accepts: float = 0.2
    """Greatest share of the rejected items that it may accept. This is what ends a loop with bad work in hand."""
    repeat_sd: float = 0.05
    """Greatest standard deviation of repeated judgements of one text: a loop asks again and again, and noise alone
    passes a threshold some day."""
    position: float = 0.05
    """Most the score may move when what is shown stands in the opposite order: no order is the right one."""
    verbosity: float = 0.05
    """Most that padding may gain: else a loop learns to write more, not better. Padding may cost any amount."""
    injection: float = 0.05
    """Most that a line to the judge may gain. It may cost any amount."""
    quote_validity: float = 0.9
    """Least share of quotes that are in the material: an invented one means that the text was not read."""
    failures: float = 0.1
    """Greatest share of judgements that fail. They stop no loop, but each costs a turn."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"Fitness.{name} must be a finite number >= 0, got {value!r}")

    def bounds(self, name: str) -> tuple[float | None, float | None]:
        """The least and the most that is asked of a measure."""
        if name in ("kappa", "spearman", "quote_validity"):
            return getattr(self, name), None
        if name in ("inflation", "position"):
            return -getattr(self, name), getattr(self, name)
        return None, getattr(self, name, None)

    def measure(self, name: str, value: Estimate | Proportion | None, *, needed: bool = True) -> Measure:
        """`value` beside what is asked of it; None for what was not measured, which is a reason if it is `needed`."""
        least, most = self.bounds(name)
        if value is None or value.estimate is None:
            why = None
            if needed and (least, most) != (None, None):
                why = f"{WORDS.get(name, name)} was not measured: no {'data' if value is None else 'differences'} to tell from"
            ok = False if why else None
            return Measure(name=name, n=value.n if value else 0, least=least, most=most, ok=ok, why=why)
        numbers = {"n": value.n, "estimate": value.estimate, "low": value.low, "high": value.high}
        if least is None and most is None:
            return Measure(name=name, **numbers)
        why = self._why(name, value, least, most)
        return Measure(name=name, **numbers, least=least, most=most, ok=why is None, why=why)

    def _why(
        self, name: str, value: Estimate | Proportion, least: float | None, most: float | None
    ) -> str | None:
        lowest, highest = -math.inf if least is None else least, math.inf if most is None else most
        asked = Measure(name=name, n=0, least=least, most=most).asked
        found = f"{WORDS[name]} is {value.estimate:.2f}"
        if not lowest <= value.estimate <= highest:
            return f"{found}, and {asked} is asked"
        if value.low is None:
            alike = isinstance(value, Estimate) or value.successes in (0, value.n)
            if not alike and value.n >= self.items:
                return f"{found}, without an interval: its {value.n} observations are of a single item"
            few = value.n < self.items
            return f"{found}, from {value.n} observations only: {self.items} are asked" if few else None
        if lowest <= value.low and value.high <= highest:
            return None
        return (
            f"{found}, but may be anything from {value.low:.2f} to {value.high:.2f}, and {asked} is asked: "
            f"{value.n} observations are too few to tell"
        )
