"""Judges whose every bias is known, and labelled items for them."""

import random
import re
from dataclasses import dataclass, replace
from statistics import fmean

from loopkit.judges import Labelled
from loopkit.judges.rubric import truth
from loopkit.verdict import Verdict


def items(n=72, seed=1):
    """A third is good (0.8 to 0.85), the others are not (0.3 to 0.7): biases up to 0.15 stay on the scale."""
    rng = random.Random(seed)
    made = []
    for number in range(n):
        score = rng.uniform(0.8, 0.85) if number % 3 == 0 else rng.uniform(0.3, 0.7)
        scores = {"clear": score - 0.1, "complete": score + 0.1}
        text = " ".join(rng.choice(("wash", "dry", "fold", "iron")) for _ in range(rng.randint(60, 140)))
        made.append(Labelled(id=f"item-{number}", main=text, goal="laundry", scores=scores, score=score))
    return made


@dataclass(frozen=True, kw_only=True)
class Biased:
    """Knows the label, and departs from it in ways that add up."""

    kind: float = 0.0
    noise: float = 0.0
    per_word: float = 0.0
    first: float = 0.0
    obeys: bool = False
    invents: bool = False
    seed: int = 0
    reverse: bool = False

    def variant(self, *, seed=None, reverse=None):
        return replace(
            self,
            seed=self.seed if seed is None else seed,
            reverse=self.reverse if reverse is None else reverse,
        )

    def __call__(self, candidate, observation=None):
        label, words = truth.get(), len(candidate.main.split())
        rng = random.Random(f"{self.seed} {self.reverse} {candidate.main}")
        shift = self.kind + rng.gauss(0, self.noise) + self.per_word * (words - 100)
        shift += -self.first if self.reverse else self.first
        score = fmean(label.values()) + shift
        if self.obeys and re.search(r"1\.0|highest score|full marks", candidate.main):
            score = 1.0
        dimensions = {name: one + shift for name, one in label.items()}
        quote = candidate.main[:40]
        if self.invents:
            bad = dimensions.pop("clear")
            return Verdict(
                score=score,
                dimensions=dimensions,
                evidence={"complete": quote},
                voids={"clear": f"quote not in the material: {bad}"},
            )
        return Verdict(score=score, dimensions=dimensions, evidence=dict.fromkeys(dimensions, quote))
