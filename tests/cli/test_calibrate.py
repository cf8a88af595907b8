"""`loopkit judge calibrate` as it is used: what it prints, what it keeps, and its exit codes."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from loopkit.cli import main
from loopkit.judges import SKILL_RUBRIC, load_labelled
from loopkit.store import Store
from tests.judges.biased import items

SHIPPED = Path(__file__).parents[2] / "data" / "judging" / "labelled.jsonl"


@pytest.fixture
def labelled(tmp_path):
    path = tmp_path / "mine.jsonl"
    lines = []
    for item in items(36):
        scores = {dimension.name: item.score for dimension in SKILL_RUBRIC}
        lines.append(json.dumps({"id": item.id, "main": item.main, "scores": scores}))
    path.write_text("\n".join(lines))
    return path


def calibrate(path, tmp_path, *more, policy="fair"):
    return main(
        ["judge", "calibrate", str(path), "--model", f"simulated:{policy}-judge", "--out", str(tmp_path / "runs"), *more]
    )  # fmt: skip


@pytest.mark.slow
def test_a_fair_judge_is_fit_and_a_kind_one_is_not(labelled, tmp_path, capsys):
    assert calibrate(labelled, tmp_path, "--repeats", "2") == 0
    said = capsys.readouterr().out
    assert "fair-judge (simulated): 36 items" in said and said.splitlines()[-1] == "FIT TO STOP A LOOP"
    assert calibrate(labelled, tmp_path, "--repeats", "1", "--limit", "9", policy="kind") == 1
    said = capsys.readouterr().out
    assert "NOT FIT TO STOP A LOOP" in said and "(inflation) is 0.15" in said


def test_json_has_everything_and_a_second_time_asks_nothing(labelled, tmp_path, capsys):
    told = []
    for _ in range(2):
        assert calibrate(labelled, tmp_path, "--limit", "4", "--json") == 1
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1] and told[0]["fit"] is False and len(told[0]["items"]) == 4
    assert {"kappa", "injection"} <= {one["name"] for one in told[0]["measures"]}
    store = Store(tmp_path / "runs")
    (run,) = store.runs()
    assert Counter(event["event"] for event in run.events)["judgement"] == 4 * 6


def test_a_limit_takes_from_all_over_the_file(labelled, tmp_path, capsys):
    calibrate(labelled, tmp_path, "--limit", "3", "--repeats", "1", "--json")
    assert [one["item"] for one in json.loads(capsys.readouterr().out)["items"]] == [
        "item-0",
        "item-12",
        "item-24",
    ]


def test_a_hybrid_bars_what_the_checks_find(labelled, tmp_path, capsys):
    calibrate(labelled, tmp_path, "--limit", "2", "--repeats", "1", "--hybrid", "--json")
    found = json.loads(capsys.readouterr().out)["items"]
    assert all("front" in one["barred"] for one in found)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--limit", "0"], "--limit must be >= 1, got 0"),
        (["--repeats", "0"], "repeats must be >= 1, got 0"),
        (["--threshold", "nan"], "threshold must be a finite number, got nan"),
        (["--temperature", "-1"], "temperature must be a finite number >= 0, got -1.0"),
        (["--model", "simulated:nobody"], "simulated:nobody"),
    ],
)
def test_a_wrong_argument_is_named(labelled, tmp_path, capsys, more, said):
    assert calibrate(labelled, tmp_path, *more) == 2
    assert said in capsys.readouterr().err


def test_a_bad_file_is_told_line_by_line(tmp_path, capsys):
    (tmp_path / "bad.jsonl").write_text('{"id": "a"}\n\nnonsense')
    assert calibrate(tmp_path / "bad.jsonl", tmp_path) == 2
    said = capsys.readouterr().err
    assert "line 1: main" in said and "line 3" in said
    assert calibrate(tmp_path / "none.jsonl", tmp_path) == 2
    assert "none.jsonl" in capsys.readouterr().err


def test_the_labelled_set_that_ships_runs_out_of_the_box(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(SHIPPED.parents[2])
    arguments = ["judge", "calibrate", "--model", "simulated:fair-judge", "--limit", "3", "--repeats", "1"]
    assert main([*arguments, "--out", str(tmp_path)]) == 1
    assert "too few" in capsys.readouterr().out
    assert os.listdir(tmp_path)
    shipped = load_labelled(SHIPPED)
    names = {dimension.name for dimension in SKILL_RUBRIC}
    assert all(item.scores.keys() == names and item.accept == (not item.defects) for item in shipped)
