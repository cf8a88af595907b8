"""The solved examples nearest to a problem, by the words they share.

Cosine similarity of tf-idf vectors (Salton and Buckley 1988), over words and pairs of neighbouring words; every number
counts as the same word, so that the numbers of a problem do not draw it to examples that happen to have them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from .problems import Problem

_WORD = re.compile(r"\d+|[^\W\d_]+|[^\w\s]")


class Nearest:
    """An index over solved examples."""

    def __init__(self, examples: Sequence[Problem]) -> None:
        self.examples = tuple(examples)
        counts = [_terms(one.problem) for one in self.examples]
        found_in = Counter(term for terms in counts for term in terms)
        self._weight = {term: math.log(1 + len(counts) / n) for term, n in found_in.items()}
        self._vectors = [self._vector(terms) for terms in counts]

    def __call__(self, text: str, count: int) -> list[Problem]:
        """The `count` nearest examples, nearest first."""
        ranked = self.similarities(text)
        order = sorted(range(len(ranked)), key=lambda i: (-ranked[i], i))
        return [self.examples[i] for i in order[:count]]

    def similarities(self, text: str) -> list[float]:
        """Of `text` with each example, from 0 to 1."""
        vector = self._vector(_terms(text))
        return [
            sum(weight * other.get(term, 0.0) for term, weight in vector.items()) for other in self._vectors
        ]

    def _vector(self, terms: Counter[str]) -> dict[str, float]:
        # Words that no example has could match none, and would only make all similarities smaller.
        vector = {term: n * self._weight[term] for term, n in terms.items() if term in self._weight}
        length = math.sqrt(sum(value**2 for value in vector.values())) or 1.0
        return {term: value / length for term, value in vector.items()}


def _terms(text: str) -> Counter[str]:
    words = ["#" if word[0].isdigit() else word.lower() for word in _WORD.findall(text)]
    return Counter(words) + Counter(f"{a} {b}" for a, b in pairwise(words))
