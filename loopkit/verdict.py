"""What is said of a candidate: a judge's verdict and feedback, or the typed failure that kept it from being judged."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Literal


class Failure(Exception):
    """A typed failure: a step ended without something usable, and we know how.

    Raise it from a phase to say "the model's answer was empty", never to say "our network is down": the
    first is a finding about the model, the second is not. `kind` is a short word to count by (`empty`,
    `truncated`, `malformed`, …), `detail` is for people, `answer` is what the model said, for the record.
    """

    def __init__(self, kind: str, detail: str = "", *, answer: str | None = None) -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind, self.detail, self.answer = kind, detail, answer


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """What a judge asks for, as two lists, so that nobody has to parse prose."""

    blocking: tuple[str, ...] = ()
    """What must be fixed."""
    suggestions: tuple[str, ...] = ()
    """May be improved."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocking", tuple(self.blocking))
        object.__setattr__(self, "suggestions", tuple(self.suggestions))

    def checklist(self) -> str:
        """Both lists as a Markdown checklist, for the next proposal and for people; empty when nothing is asked."""
        lines = [f"- [ ] {text}" for text in self.blocking]
        return "\n".join(lines + [f"- [ ] (optional) {text}" for text in self.suggestions])


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a judge says of a candidate. A score that is not finite is refused with a ValueError."""

    score: float
    """Higher is better, unless the loop minimises."""
    feedback: Feedback = Feedback()
    dimensions: Mapping[str, float] = field(default_factory=dict)
    """Score per dimension, where the judge has several."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """What each dimension's score rests on: a quote, a measurement."""
    voids: Mapping[str, str] = field(default_factory=dict)
    """Dimensions whose score was not accepted, and why: its evidence is not in the material, it was no number, ….
    They count 0 in `score` and are not among `dimensions`."""
    barred: str | None = None
    """Why this candidate may not stop the loop, whatever its score: a veto, a broken guard, a judge that failed. It never
    opens `Threshold`, and any candidate that is not barred is better."""
    fallback: Literal["failure", "error"] | None = None
    """Set when the judge itself failed and this verdict stands in for its own: `failure` when it answered nothing of use
    (a finding about the judge), `error` when it could not be asked, or broke (none). A fallback is always barred."""

    def __post_init__(self) -> None:
        for name, value in {"score": self.score, **self.dimensions}.items():
            # numbers.Real takes numpy's scalars in.
            if not isinstance(value, Real) or not math.isfinite(value):
                raise ValueError(f"a verdict's {name} must be a finite number, got {value!r}")
        if self.fallback and not self.barred:
            raise ValueError("a fallback verdict must be barred: say in `barred` what went wrong")
        if self.fallback not in (None, "failure", "error"):
            raise ValueError(f"fallback must be 'failure', 'error' or None, got {self.fallback!r}")
        object.__setattr__(self, "score", float(self.score))
        object.__setattr__(
            self, "dimensions", {name: float(value) for name, value in self.dimensions.items()}
        )

    def passes(self, threshold: float) -> bool:
        """Whether the score reaches `threshold` and nothing bars the candidate."""
        return self.score >= threshold and not self.barred
