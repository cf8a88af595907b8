"""The numbers on the pages are those of the recorded summaries, not typed by hand."""

import json
from pathlib import Path

import pytest

from loopkit.metrics import accuracy

ROOT = Path(__file__).parents[2]
RECORDED = [(path.parents[1].name, path.stem) for path in sorted(ROOT.glob("experiments/*/results/*.json"))]
FORMAL = {
    ("knights", "batch"),
    ("knights", "robustness"),
    ("mathematics", "batch"),
    ("judging", "batch"),
    ("judging", "floor"),
}
assert set(RECORDED) >= FORMAL, "or nothing would be compared"
recorded = pytest.mark.parametrize(("experiment", "name"), RECORDED)


def summary(experiment: str, name: str) -> dict:
    path = ROOT / "experiments" / experiment / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def page(experiment: str) -> str:
    return (ROOT / "experiments" / experiment / "README.md").read_text(encoding="utf-8")


def percent(value: float) -> str:
    return f"{value:.1%}".replace("%", " %")


def numbers(row: dict) -> str:
    interval = f"{percent(row['wilson_low'])} to {percent(row['wilson_high'])}"
    return f"| {row['n']} | {row['correct']} | {row['wrong']} | {percent(row['accuracy'])} | {interval} |"


def table_rows(experiment: str) -> list[dict]:
    """The rows of an experiment's table: one per arm and model, and per split where its batch has several."""
    found = summary(experiment, "batch")
    return found["groups"] if "split" in found["groups"][0] else found["rows"]


@pytest.mark.parametrize("experiment", sorted({experiment for experiment, _ in RECORDED}))
def test_every_arm_stands_on_the_pages_as_it_was_recorded(experiment):
    front = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    shown = 0
    for row in table_rows(experiment):
        split = f"| {row['split']} " if "split" in row else ""
        told = [line for line in page(experiment).splitlines() if line.startswith(f"| {row['arm']} | ")]
        assert [line for line in told if split + numbers(row) in line], row
        shown += any(line.startswith(f"| {row['arm']} | ") and numbers(row) in line for line in front)
    assert shown >= 3, "the first page shows the main arms"


@recorded
def test_every_claim_stands_on_the_page_with_its_verdict(experiment, name):
    for claim in summary(experiment, name)["claims"]:
        told = f"- **{claim['verdict']}**: {claim['says'].rstrip('.')} ({claim['explained']})."
        assert told in page(experiment)


@recorded
def test_recorded_intervals_follow_from_the_counts(experiment, name):
    for row in summary(experiment, name)["rows"]:
        again = accuracy(row["correct"], row["n"])
        assert (again.estimate, again.low, again.high) == pytest.approx(
            (row["accuracy"], row["wilson_low"], row["wilson_high"])
        )
        assert row["correct"] + row["wrong"] + sum(row["failures"].values()) == row["n"]
        assert row["errors"] == 0
