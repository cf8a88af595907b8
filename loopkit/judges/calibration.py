"""Calibration: what a judge's word is worth, measured against labelled items before a loop is stopped by it."""

import hashlib
import html
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from loopkit.export import to_frame
from loopkit.judges.fallback import Judge
from loopkit.judges.fitness import Fitness, Measure
from loopkit.judges.judging import PROBES, judge_all
from loopkit.judges.labelled import Labelled
from loopkit.judges.measuring import cases, measured
from loopkit.log import RunLog, encode
from loopkit.store import Store

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What was found about a judge."""

    judge: str
    """What it is called."""
    threshold: float
    """The score from which it accepts."""
    repeats: int
    """How often each item was judged as it is."""
    measures: tuple[Measure, ...]
    """kappa, weighted (quadratically, on scores in five bands), spearman; inflation (judge minus label, also by
    dimension), false_accepts and false_rejects (shares of the rejected and of the accepted items); repeat_sd;
    position, verbosity, injection (change of the score); quote_validity and failures (shares)."""
    items: tuple[Mapping[str, Any], ...]
    """One row per item, as `items_df` has them."""
    failures: Mapping[str, int]
    """How many judgements failed, by the kind of failure."""
    first_failure: str | None
    """What is known of the first judgement that failed."""

    @property
    def fit(self) -> bool:
        """Whether the judge may stop a loop: every measure that something is asked of is as asked."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it may not, as sentences."""
        return tuple(measure.why for measure in self.measures if measure.why)

    @property
    def simulated(self) -> bool:
        """Whether a stand-in was measured, and no model."""
        return self.judge.startswith("simulated:")

    def __getitem__(self, name: str) -> Measure:
        """The measure of that name. Raises KeyError, naming those there are."""
        found = {measure.name: measure for measure in self.measures}
        if name not in found:
            raise KeyError(f"no measure {name!r}; there are {', '.join(found)}")
        return found[name]

    @property
    def df(self) -> "pd.DataFrame":
        """One row per measure: name, n, estimate, low, high (95 % interval), asked, ok."""
        columns = ("name", "n", "estimate", "low", "high", "asked", "ok")
        return to_frame([{name: getattr(one, name) for name in columns} for one in self.measures], columns)

    @property
    def items_df(self) -> "pd.DataFrame":
        """One row per item: item, base, defects, label, label_accept; of the first judgement score, accept, barred, voids,
        failure; sd over the repeats; under position, verbosity and injection how the score changed."""
        return to_frame(list(self.items))

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON; `from_dict` reads it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Calibration":
        """What `to_dict` gave. Raises a ValueError for anything else."""
        return TypeAdapter(cls).validate_python(data)

    @property
    def conclusion(self) -> str:
        """`fit to stop a loop`, or not."""
        return "fit to stop a loop" if self.fit else "not fit to stop a loop"

    def _title(self) -> str:
        label = f"{self.judge.removeprefix('simulated:')} (simulated)" if self.simulated else self.judge
        times = "once" if self.repeats == 1 else f"{self.repeats} times"
        return f"{label}: {len(self.items)} items, each judged {times}, accepted from {self.threshold:g}"

    def _rows(self) -> list[tuple[str, ...]]:
        rows = []
        for one in self.measures:
            estimate = "not measured" if one.estimate is None else _rounded(one.estimate)
            interval = "" if one.low is None else f"{_rounded(one.low)} to {_rounded(one.high)}"
            mark = {None: "", True: "✓", False: "✗"}[one.ok]
            rows.append((one.name, str(one.n), estimate, interval, one.asked, mark))
        return rows

    def _failed(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.failures.items()))
        return f"failed judgements: {kinds}. The first: {self.first_failure or '':.200}" if kinds else ""

    def __str__(self) -> str:
        table = [HEADINGS, *self._rows()]
        widths = [max(len(row[column]) for row in table) for column in range(len(HEADINGS))]
        lines = [self._title(), ""]
        for name, n, *rest in table:
            cells = [name.ljust(widths[0]), n.rjust(widths[1])]
            cells += [text.ljust(width) for text, width in zip(rest, widths[2:], strict=True)]
            lines.append("  ".join(cells).rstrip())
        lines += ["", *filter(None, [self._failed()]), self.conclusion.upper()]
        return "\n".join(lines + [f"- {reason}" for reason in self.reasons])

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str = "td") -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in self.reasons)
        return (
            f"<p>{html.escape(self._title())}</p><table>{row(HEADINGS, 'th')}{''.join(map(row, self._rows()))}</table>"
            f"<p>{html.escape(self._failed())}</p><p><b>{self.conclusion}</b></p><ul>{reasons}</ul>"
        )


def _rounded(number: float) -> str:
    return f"{round(number, 3) + 0.0:.3f}"  # no -0.000


HEADINGS = ("measure", "n", "estimate", "95 % interval", "asked", "")


async def calibrate(
    judge: Judge,
    labelled: Sequence[Labelled],
    *,
    name: str | None = None,
    threshold: float = 0.8,
    repeats: int = 3,
    probes: Sequence[str] = PROBES,
    fitness: Fitness | None = None,
    parallel: int = 2,
    seed: int = 0,
    store: Store | None = None,
    params: Mapping[str, Any] | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Let `judge` judge labelled items, and say what its word is worth. Its scores and the labels lie between 0 and 1.

    Each item is judged `repeats` times as it is, at the judge's own temperature: with the seeds `seed`, `seed` + 1, …
    where it has `variant(seed=)`. The first judgement is what is compared with the label, as a gate asks once. Then it is
    judged under each of `probes`, with the first seed: `position` (what is shown in the opposite order; needs
    `variant(reverse=)`), `verbosity` (the main text padded to about twice its words), `injection` (a line to the judge in
    the text). `parallel` items are judged at a time.

    A judgement that failed (a `Failure`, or a fallback verdict) is a rejection that says nothing about scores. An item on
    which another exception was raised (no connection, say) is left out of what needs it. Both are counted as failures.

    With `store`, judgements are recorded as they are made, and what was answered is not asked again: an interrupted
    calibration goes on. A judge is taken for the same by `name` and `params`, so say in `params` all that decides its
    verdicts (model, rubric, code). `on_done` is called with the number of judgements there are, and there will be.

    Raises ValueError for no items, ids that come twice, an unknown probe, or numbers that make no sense.
    """
    _check(labelled, threshold, repeats, probes, parallel)
    name, fitness = name or _name(judge), fitness or Fitness()
    log = _open(store, name, params or {}) if store else None
    try:
        judgements = await judge_all(
            judge, labelled, repeats=repeats, probes=probes, seed=seed, parallel=parallel, log=log, on_done=on_done
        )  # fmt: skip
        failed = [one for one in judgements if one.failure]
        told = cases(labelled, judgements)
        # A judge that quotes nothing, or has no order to turn round, cannot be asked about it.
        excused = {"quote_validity", *(() if hasattr(judge, "variant") else ("position",))}
        calibration = Calibration(
            judge=name,
            threshold=threshold,
            repeats=repeats,
            measures=tuple(
                fitness.measure(measure, value, needed=measure not in excused)
                for measure, value in measured(told, threshold).items()
            ),
            items=tuple(case.row(threshold) for case in told),
            failures=dict(Counter(one.failure for one in failed)),
            first_failure=failed[0].detail if failed else None,
        )
        if log:
            log.append("calibration", **calibration.to_dict())
            log.append("stop", gate="Calibration", reason=calibration.conclusion)
    finally:
        if log:
            log.close()
    return calibration


def _check(
    labelled: Sequence[Labelled], threshold: float, repeats: int, probes: Sequence[str], parallel: int
) -> None:
    if not labelled:
        raise ValueError("there is nothing to judge: give some labelled items")
    twice = [one for one, count in Counter(item.id for item in labelled).items() if count > 1]
    if twice:
        raise ValueError(f"ids must name one item each, and these come twice: {', '.join(twice)}")
    if unknown := set(probes) - set(PROBES):
        raise ValueError(f"unknown probes {sorted(unknown)}; there are {', '.join(PROBES)}")
    if not math.isfinite(threshold):
        raise ValueError(f"threshold must be a finite number, got {threshold!r}")
    for what, value in {"repeats": repeats, "parallel": parallel}.items():
        if value < 1:
            raise ValueError(f"{what} must be >= 1, got {value}")


def _name(judge: Judge) -> str:
    return getattr(judge, "model", None) or getattr(judge, "__name__", None) or type(judge).__name__


def _open(store: Store, name: str, params: Mapping[str, Any]) -> RunLog:
    run = hashlib.sha256(encode([name, dict(sorted(params.items()))])).hexdigest()[:20]
    if store.path(run).exists():
        return store.resume(run)
    return store.create(run, **{"judge": name} | dict(params))
