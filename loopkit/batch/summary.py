"""Counting: from the records of a batch to the rows, groups and verdicts of its summary."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from loopkit.batch.claims import adjudicate
from loopkit.batch.spec import BatchSpec
from loopkit.metrics import accuracy
from loopkit.store import Run, Store

Row = dict[str, Any]
ROW = ("experiment", "arm", "model")


def trial_rows(store: Store, keys: Iterable[str]) -> list[Row]:
    """One row per trial among `keys` that has ended: parameters, result, iterations, tokens, seconds.

    A trial that was attempted several times counts once, by the attempt that settled it, else by the last that
    could not run. One that was only interrupted has no row: it will run again.
    """
    wanted, rows = set(keys), {}
    for run in sorted(store.runs(), key=lambda run: run.events[0]["time"]):
        trial, key = run.first("trial"), run.params.get("trial")
        if trial and key in wanted and (key not in rows or rows[key]["result"] == "error"):
            rows[key] = _row(run, trial)
    return list(rows.values())


def _row(run: Run, trial: Mapping[str, Any]) -> Row:
    turns, stop = run.all("iteration"), run.stop
    return {
        "run": run.id,
        **run.params,
        "result": trial["result"],
        "kind": trial["kind"],
        "detail": trial["detail"],
        "iterations": len(turns),
        "stopped_by": stop["gate"] if stop else None,
        "tokens": run.usage.tokens,
        "seconds": round(sum(turn["seconds"] for turn in turns), 3),
    }


def count_trials(trials: Sequence[Row], *keys: str) -> list[Row]:
    """One row per combination of `keys`: n, correct, wrong, accuracy with its Wilson interval, failures by kind, cost.

    `n` counts correct, wrong and failed trials; those that could not run are `errors` and count nowhere else.
    """

    def label(trial: Row) -> tuple[str, ...]:
        return tuple(str(trial.get(key)) for key in keys)

    rows = []
    for _, members in groupby(sorted(trials, key=label), key=label):
        group = list(members)
        results = Counter(trial["result"] for trial in group)
        ran = [trial for trial in group if trial["result"] != "error"]
        got = accuracy(results["correct"], len(ran))
        rows.append(
            {key: group[0].get(key) for key in keys}
            | {
                "n": got.n,
                "correct": results["correct"],
                "wrong": results["wrong"],
                "accuracy": got.estimate,
                "wilson_low": got.low,
                "wilson_high": got.high,
                "failures": dict(Counter(trial["kind"] for trial in ran if trial["result"] == "failed")),
                "errors": results["error"],
                "tokens": sum(trial["tokens"] for trial in ran),
                "seconds": round(sum(trial["seconds"] for trial in ran), 3),
            }
        )
    return rows


def summarise(spec: BatchSpec, trials: Sequence[Row], *, name: str, provenance: Mapping[str, str]) -> Row:
    """The summary that is printed, written as summary.json and shown in the report."""
    return {
        "batch": name,
        "question": spec.question,
        "rows": count_trials(trials, *ROW),
        "groups": count_trials(trials, *ROW, *spec.group_by),
        "claims": [adjudicate(claim, trials) for claim in spec.claims],
        "provenance": dict(provenance),
    }
