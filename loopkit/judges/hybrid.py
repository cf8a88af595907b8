"""Checks and a judge, weighed: what is certain and free first, what needs understanding second."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from loopkit.gates import Threshold
from loopkit.judges.checking import Check, run_checks, share
from loopkit.judges.fallback import Judge, verdict_of
from loopkit.judges.material import Material
from loopkit.verdict import Feedback, Verdict


class Hybrid:
    """A judge: `weights[0]` × share of the checks that pass + `weights[1]` × the score of `judge`.

    The checks run first. Where one that is a veto fails, the candidate is barred and the judge is not asked: its part
    counts 0. Every problem that a check finds is blocking feedback. A judge that fails outright, or whose score is not from
    0 to 1, leaves a fallback with the checks' part alone, barred too (`verdict_of`).

    `weights` (default 0.30 and 0.70, as in the article) are not negative and sum to 1; `threshold` (0.8) lies above 0 and at
    most at 1, and `gate` is the Threshold for it. `material(candidate, observation)` says what is looked at; by default
    `observation` if it is a Material, else `candidate`.
    Raises ValueError for weights, a threshold or checks that cannot be meant.
    """

    def __init__(
        self,
        *,
        checks: Sequence[Check],
        judge: Judge,
        weights: tuple[float, float] = (0.30, 0.70),
        threshold: float = 0.8,
        material: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        if len(weights) != 2 or not all(math.isfinite(one) and one >= 0 for one in weights):
            raise ValueError(
                f"weights must be two finite numbers >= 0, for checks and judge, got {weights!r}"
            )
        if not math.isclose(sum(weights), 1.0, abs_tol=1e-9):
            raise ValueError(f"weights must sum to 1, got {weights!r}, which sum to {sum(weights):g}")
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold must lie above 0 and at most at 1, got {threshold!r}")
        if not checks:
            raise ValueError("a Hybrid needs checks; without any, use the judge alone")
        self.checks, self.judge, self.weights = tuple(checks), judge, weights
        self.threshold, self._material = threshold, material or _looked_at

    @property
    def gate(self) -> Threshold:
        """Opens when a candidate that is not barred reaches the threshold."""
        return Threshold(self.threshold)

    @property
    def variant(self) -> "Callable[..., Hybrid]":
        """`variant(**changes)` gives the same with a variant of its judge (see `RubricJudge.variant`).

        Raises AttributeError where the judge has none: then there is no other order to show things in.
        """
        vary = self.judge.variant

        def varied(**changes: Any) -> Hybrid:
            return Hybrid(
                checks=self.checks,
                judge=vary(**changes),
                weights=self.weights,
                threshold=self.threshold,
                material=self._material,
            )

        return varied

    async def __call__(self, candidate: Any, observation: Any = None) -> Verdict:
        return await verdict_of(self._judge, candidate, observation)

    async def _judge(self, candidate: Any, observation: Any) -> Verdict:
        # A Material by itself, as `calibrate` gives it, needs nobody to say what is looked at.
        alone = isinstance(candidate, Material) and observation is None
        material = candidate if alone else Material.of(self._material(candidate, observation))
        results = run_checks(self.checks, material)
        passed = share(results)
        vetoes = [result for result in results if result.veto and not result.passed]
        if vetoes:
            names = ", ".join(result.name for result in vetoes)
            said = Verdict(score=0.0, barred=f"veto: {names}; the judge was not asked")
        else:
            said = _in_range(await verdict_of(self.judge, material, material))
        scores = {"checks": passed} if vetoes or said.fallback else {"checks": passed, "judge": said.score}
        problems = [line for result in results for line in result.lines()]
        failed = [result.name for result in results if not result.passed]
        found = f"{len(results) - len(failed)} of {len(results)} passed"
        return Verdict(
            score=self.weights[0] * passed + self.weights[1] * said.score,
            feedback=Feedback(
                blocking=[*problems, *said.feedback.blocking], suggestions=said.feedback.suggestions
            ),
            dimensions={**said.dimensions, **scores},
            evidence={**said.evidence, "checks": f"{found}; failed: {', '.join(failed)}" if failed else found},
            voids=said.voids,
            barred=said.barred,
            fallback=said.fallback,
        )  # fmt: skip


def _looked_at(candidate: Any, observation: Any) -> Any:
    return observation if isinstance(observation, Material) else candidate


def _in_range(verdict: Verdict) -> Verdict:
    if 0 <= verdict.score <= 1:
        return verdict
    reason = f"the judge failed: its score {verdict.score:g} is not from 0 to 1"
    return Verdict(score=0.0, voids=verdict.voids, barred=reason, fallback="failure")
