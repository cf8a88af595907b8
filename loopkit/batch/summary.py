"""Counting: from the records of a batch to the rows, groups and verdicts of its summary."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol

from loopkit.batch.claims import Claim, adjudicate, average
from loopkit.metrics import accuracy
from loopkit.store import DAMAGED, Run, Store

Row = dict[str, Any]
ROW = ("experiment", "arm", "model")


def trial_rows(store: Store, keys: Iterable[str] | None = None) -> list[Row]:
    """One row per trial among `keys` (default: all on record) that has ended: parameters, result, iterations, tokens,
    seconds, when it `ended`, and its `measures` by name.

    A trial that was attempted several times counts once, by the attempt that settled it, else by the last that
    could not run. One that was only interrupted has no row: it will run again. Reads through the index, and raises
    StoreError for a damaged log, as `Store.rows` does.
    """
    return settle(store.rows(attempts(store, keys)))


def rows_of(runs: Iterable[Run]) -> list[Row]:
    """The rows of `trial_rows` for the trials among `runs`."""
    return settle(run.row for run in runs if run.first("trial"))


def attempts(store: Store, keys: Iterable[str] | None = None) -> list[str]:
    """The runs that are attempts at the trials `keys` (default: all runs): `<key>`, `<key>.2`, `<key>.3`, …"""
    if keys is None:
        return store.ids()
    wanted = set(keys)
    return [run for run in store.ids() if run.partition(".")[0] in wanted]


def settle(runs: Iterable[Row]) -> list[Row]:
    """One row per trial among `runs`, rows of `Store.rows`: see `trial_rows`. Damaged runs are no attempts."""
    found: dict[str, Row] = {}
    for run in sorted((run for run in runs if run["status"] != DAMAGED), key=lambda run: run["started"]):
        key = run["params"].get("trial")
        if key and run["result"] and (key not in found or found[key]["result"] == "error"):
            found[key] = _row(run)
    return list(found.values())


def _row(run: Row) -> Row:
    return {
        "run": run["run"],
        **run["params"],
        **{name: run[name] for name in ("result", "kind", "detail", "iterations", "stopped_by", "tokens")},
        "seconds": round(run["seconds"], 3),
        **{name: run[name] for name in ("ended", "measures")},
    }


def longest(store: Store, trials: Sequence[Row]) -> list[Run]:
    """The runs that say most about how the loop converges: those that took the most turns, up to three."""
    most = sorted(trials, key=lambda row: (-row["iterations"], row["run"]))[:3]
    return [store.run(row["run"]) for row in most if row["iterations"] > 1]


def count_trials(trials: Sequence[Row], *keys: str) -> list[Row]:
    """One row per combination of `keys`: n, correct, wrong, accuracy with its interval, failures by kind, cost, measures.

    `n` counts correct, wrong and failed trials; those that could not run are `errors` and count nowhere else. The
    interval of the accuracy is Wilson's; where items are repeated under several seeds it is that of `balanced`, by item. Each of
    `measures` has the `n` trials that recorded it, their `mean`, and its interval from `low` to `high`.
    """

    def label(trial: Row) -> tuple[str, ...]:
        return tuple(str(trial.get(key)) for key in keys)

    rows = []
    for _, members in groupby(sorted(trials, key=label), key=label):
        group = list(members)
        results = Counter(trial["result"] for trial in group)
        ran = [trial for trial in group if trial["result"] != "error"]
        # Trials of no item are each an item of their own.
        items = [str(trial.get("item", number)) for number, trial in enumerate(ran)]
        right = [trial["result"] == "correct" for trial in ran]
        got = average(right, items) if ran else accuracy(0, 0)
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
                "measures": _measures(ran, items),
                "tokens": sum(trial["tokens"] for trial in ran),
                "seconds": round(sum(trial["seconds"] for trial in ran), 3),
            }
        )
    return rows


def _measures(trials: Sequence[Row], items: Sequence[str]) -> dict[str, Row]:
    counted = {}
    for name in sorted({name for trial in trials for name in trial.get("measures", {})}):
        there = [
            (trial["measures"][name], item)
            for trial, item in zip(trials, items, strict=True)
            if name in trial.get("measures", {})
        ]
        got = average(*zip(*there, strict=True))
        counted[name] = {"n": got.n, "mean": got.estimate, "low": got.low, "high": got.high}
    return counted


class Asked(Protocol):
    """What a batch asks: a `BatchSpec`, or what is on record of it."""

    question: str
    claims: list[Claim]
    group_by: list[str]


def summarise(
    spec: Asked,
    trials: Sequence[Row],
    *,
    name: str,
    provenance: Mapping[str, str],
    declared: Mapping[str, str] | None = None,
) -> Row:
    """The summary that is printed, written as summary.json and shown in the report. For `declared` see `adjudicate`."""
    return {
        "batch": name,
        "question": spec.question,
        "rows": count_trials(trials, *ROW),
        "groups": count_trials(trials, *ROW, *spec.group_by),
        "claims": adjudicate(spec.claims, trials, declared),
        "provenance": dict(provenance),
    }
