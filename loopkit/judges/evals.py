"""To and from pydantic-evals: judges as its evaluators, its evaluators as judges, its data sets as items.

dataset.add_evaluator(as_evaluator(judge, name="rubric", threshold=0.8))
loop = Loop(propose=draft, execute=str, judge=from_evaluator(LLMJudge(rubric="…")), gates=[Threshold(1.0), MaxIterations(6)])
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from loopkit.judges.fallback import Judge, verdict_of
from loopkit.judges.labelled import LabelError, Labelled, in_words, load_labelled
from loopkit.judges.material import Material
from loopkit.verdict import Failure, Feedback, Verdict

if TYPE_CHECKING:
    from pydantic_evals.evaluators import Evaluator, EvaluatorContext


def as_evaluator(
    judge: Judge,
    *,
    name: str = "judge",
    threshold: float | None = None,
    candidate: "Callable[[EvaluatorContext], Any] | None" = None,
) -> "Evaluator":
    """`judge` as an evaluator for `Dataset.evaluate`.

    It gives the score under `name`, with the feedback as its reason, and the dimensions under `name.dimension`. With
    `threshold` also the assertion `name.accepted`: the score reaches it, and nothing bars the candidate.

    `candidate(context)` says what is judged, by default the task's output; a Material with a goal, for instance:
    `lambda context: Material(main=context.output, goal=context.inputs)`. A judge that fails outright is an evaluator
    failure in the report, no score. Raises ImportError when pydantic-evals is not installed.
    """
    _require()
    from pydantic_evals.evaluators import EvaluationReason, Evaluator

    @dataclass(repr=False)
    class LoopkitJudge(Evaluator):
        judge: str
        """Its name."""

        def get_default_evaluation_name(self) -> str:
            return name

        async def evaluate(self, ctx: "EvaluatorContext") -> dict[str, Any]:
            verdict = await verdict_of(judge, candidate(ctx) if candidate else ctx.output)
            if verdict.fallback:
                raise Failure("fallback", verdict.barred or "")
            said: dict[str, Any] = {name: EvaluationReason(value=verdict.score, reason=_reason(verdict))}
            said |= {f"{name}.{dimension}": score for dimension, score in verdict.dimensions.items()}
            if threshold is not None:
                said[f"{name}.accepted"] = verdict.passes(threshold)
            return said

    return LoopkitJudge(judge=name)


def _reason(verdict: Verdict) -> str | None:
    lines = [f"barred: {verdict.barred}"] if verdict.barred else []
    lines += [f"{name} is void: {why}" for name, why in verdict.voids.items()]
    return "\n".join(filter(None, [*lines, verdict.feedback.checklist()])) or None


def from_evaluator(
    evaluator: "Evaluator", *, inputs: Any = None, expected_output: Any = None, metadata: Any = None
) -> Judge:
    """`evaluator` as a judge of candidates that answer `inputs`; of a `Material` it sees the main text.

    A number is a score, an assertion 1 or 0, a label neither. What it gives names to are dimensions, and the score is
    their mean. The reason of an assertion that fails is blocking feedback, that of a score a suggestion. An evaluator that
    gives no score raises a `Failure` of kind `unscored`. Raises ImportError when pydantic-evals is not installed.
    """
    _require()
    from pydantic_evals.evaluators import EvaluationReason, EvaluatorContext
    from pydantic_evals.otel import SpanTreeRecordingError

    async def judge(candidate: Any, observation: Any = None) -> Verdict:
        given = await evaluator.evaluate_async(
            EvaluatorContext(
                name=None,
                inputs=inputs,
                metadata=metadata,
                expected_output=expected_output,
                output=candidate.main if isinstance(candidate, Material) else candidate,
                duration=0.0,
                _span_tree=SpanTreeRecordingError("no spans are recorded in a loop"),
                attributes={},
                metrics={},
            )
        )
        named = given if isinstance(given, Mapping) else {evaluator.get_default_evaluation_name(): given}
        scores, blocking, suggestions = {}, [], []
        for name, one in named.items():
            value, reason = (one.value, one.reason) if isinstance(one, EvaluationReason) else (one, None)
            if not isinstance(value, str):
                scores[name] = float(value)
            if value is False:
                blocking.append(f"{name}: {reason or 'it does not hold'}")
            elif reason and value is not True:
                suggestions.append(f"{name}: {reason}")
        if not scores:
            raise Failure("unscored", f"{evaluator!r} gave no score and no assertion, but {given!r}")
        return Verdict(
            score=sum(scores.values()) / len(scores),
            feedback=Feedback(blocking=blocking, suggestions=suggestions),
            dimensions=scores,
        )

    return judge


@dataclass(frozen=True, kw_only=True)
class EvalsItem:
    """A case of a pydantic-evals data set."""

    name: str
    """Its own, or `Case 1`, `Case 2`, … by its place."""
    inputs: Any
    expected_output: Any = None
    metadata: Any = None

    @property
    def params(self) -> dict[str, Any]:
        """All of it, for the `params` of a trial."""
        return asdict(self)

    @property
    def labelled(self) -> Labelled:
        """The case as labelled material: `inputs` are the text, or the fields of a Material; `metadata` holds the label.

        Of the metadata accept, score, scores, defects and base are read. Raises LabelError when they are no label.
        """
        material = {"main": self.inputs} if isinstance(self.inputs, str) else self.inputs
        if not isinstance(material, Mapping) or not isinstance(self.metadata, Mapping):
            raise LabelError(
                f"case {self.name!r} is no labelled material: inputs must be a text or the fields of a Material, and "
                "metadata must hold accept, score or scores"
            )
        label = {name: self.metadata[name] for name in LABEL if name in self.metadata}
        try:
            return Labelled.model_validate({"id": self.name, **material, **label})
        except ValidationError as error:
            raise LabelError(f"case {self.name!r} is no labelled material: {in_words(error)}") from error


LABEL = ("accept", "score", "scores", "defects", "base")


def load_items(path: str | Path) -> list[EvalsItem]:
    """The cases of a pydantic-evals data set, a .yaml, .yml or .json file. Its evaluators are not looked at.

    Raises LabelError for a file that is no such data set, OSError when it cannot be read, ImportError when
    pydantic-evals is not installed.
    """
    _require()
    from pydantic_evals import Dataset

    path = Path(path)
    text = path.read_text(encoding="utf-8")
    try:
        data = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
        dataset = Dataset[Any, Any, Any].from_dict(_without_evaluators(data), default_name=path.stem)
    except ValidationError as error:
        raise LabelError(f"{path} is no pydantic-evals data set: {in_words(error)}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise LabelError(f"{path} is no pydantic-evals data set: {error}") from error
    return [
        EvalsItem(
            name=case.name or f"Case {number}",
            inputs=case.inputs,
            expected_output=case.expected_output,
            metadata=case.metadata,
        )
        for number, case in enumerate(dataset.cases, 1)
    ]


def labelled_items(path: str | Path) -> list[Labelled]:
    """Labelled items from a file of JSON lines (`load_labelled`), or from a pydantic-evals data set (`load_items`).

    Raises LabelError, OSError and ImportError as those do.
    """
    if Path(path).suffix in (".yaml", ".yml", ".json"):
        return [item.labelled for item in load_items(path)]
    return load_labelled(path)


def _without_evaluators(data: Any) -> Any:
    """`data` without what only the classes of whoever wrote it could read."""
    if not isinstance(data, Mapping):
        return data
    kept = {name: value for name, value in data.items() if name not in ("evaluators", "report_evaluators")}
    if isinstance(kept.get("cases"), list):
        kept["cases"] = [_without_evaluators(case) for case in kept["cases"]]
    return kept


def _require() -> None:
    if find_spec("pydantic_evals") is None:
        raise ImportError("this takes pydantic-evals, an extra: pip install 'loopkit[evals]'")
