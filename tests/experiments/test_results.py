"""The numbers on the pages are those of the recorded summaries, not typed by hand."""

import json
from pathlib import Path

import pytest

from loopkit.metrics import accuracy

ROOT = Path(__file__).parents[3]
KNIGHTS = ROOT / "experiments" / "knights"


def summary(name: str) -> dict:
    return json.loads((KNIGHTS / "results" / f"{name}.json").read_text(encoding="utf-8"))


def percent(value: float) -> str:
    return f"{value:.1%}".replace("%", " %")


@pytest.mark.parametrize("page", [ROOT / "README.md", KNIGHTS / "README.md"], ids=["project", "experiment"])
def test_every_arm_stands_on_the_page_as_it_was_recorded(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    for row in summary("batch")["rows"]:
        numbers = f"| {row['n']} | {row['correct']} | {row['wrong']} | {percent(row['accuracy'])} | "
        interval = f"{percent(row['wilson_low'])} to {percent(row['wilson_high'])}"
        assert [
            line for line in lines if line.startswith(f"| {row['arm']} | ") and numbers + interval in line
        ]


@pytest.mark.parametrize("name", ["batch", "robustness"])
def test_every_claim_stands_on_the_page_with_its_verdict(name):
    page = (KNIGHTS / "README.md").read_text(encoding="utf-8")
    for claim in summary(name)["claims"]:
        assert f"- **{claim['verdict']}**: {claim['says'].rstrip('.')} ({claim['explained']})." in page


@pytest.mark.parametrize("name", ["batch", "robustness"])
def test_recorded_intervals_follow_from_the_counts(name):
    for row in summary(name)["rows"]:
        again = accuracy(row["correct"], row["n"])
        assert (again.estimate, again.low, again.high) == pytest.approx(
            (row["accuracy"], row["wilson_low"], row["wilson_high"])
        )
        assert row["correct"] + row["wrong"] + sum(row["failures"].values()) == row["n"]
        assert row["errors"] == 0
