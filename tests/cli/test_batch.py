"""The command line: it parses, calls, prints, and says how it went by its exit code."""

import os
import re
from pathlib import Path

import pytest
import yaml

from loopkit import cli
from loopkit.batch import runner
from loopkit.batch.claims import Claim
from loopkit.store import StoreError

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "02_constraint_solving.ipynb"


def run(capsys, *arguments):
    """The exit code, and what was printed on standard output and on standard error."""
    try:
        code = cli.main(list(map(str, arguments)))
    except SystemExit as ended:
        code = ended.code
    return code, *capsys.readouterr()


@pytest.fixture
def batch_file(tmp_path):
    path = tmp_path / "small.yaml"
    data = {
        "experiment": "knights",
        "notebook": os.path.relpath(NOTEBOOK, tmp_path),
        "question": "Who [really] is what?",
        "grid": [{"arm": "clauses", "model": "simulated:random", "people": 2, "count": 1}],
    }
    path.write_text(yaml.safe_dump(data))
    return path


def row(**changes):
    return {
        "experiment": "knights", "arm": "clauses", "model": "simulated:random", "n": 40, "correct": 30,
        "wrong": 3, "accuracy": 0.75, "wilson_low": 0.598, "wilson_high": 0.858, "errors": 0,
        "failures": {"no solution": 5, "[odd]": 2}, "tokens": 12345, "seconds": 67.8, "measures": {},
    } | changes  # fmt: skip


@pytest.fixture
def stub(monkeypatch):
    """Takes the place of running notebooks; keeps what it was called with."""
    calls = []

    def prepare(*problems, rows=None, claims=(), raises=None):
        async def run_batch(spec, out, **how):
            calls.append((spec, out, how))
            if raises:
                raise raises
            summary = {"question": spec.question, "rows": rows or [row()], "claims": list(claims)}
            return runner.BatchOutcome(summary=summary, problems=problems, out=Path(out))

        monkeypatch.setattr("loopkit.batch.run_batch", run_batch)
        return calls

    return prepare


def test_help_names_the_commands(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "batch" in out
    assert "run a grid of notebooks" in out


def test_help_of_batch_has_examples_and_every_exit_code(capsys):
    code, out, _ = run(capsys, "batch", "--help")
    flat = " ".join(out.split())
    assert code == 0
    for words in ("loopkit batch experiments/knights/batch.yaml", "--set count=5", "--out", "--workers"):
        assert words in flat
    assert "Exit codes: 0 everything ran; 1 a notebook" in flat
    assert "2 the batch file" in flat
    assert "130 interrupted" in flat


def test_files_named_in_the_examples_exist(capsys):
    _, out, _ = run(capsys, "batch", "--help")
    named = {word for word in out.split() if word.endswith(".yaml") and "/" in word}
    assert named
    for name in named:
        assert (NOTEBOOK.parents[1] / name).is_file(), name


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: command"),
        (["bacth"], "'bacth'.*batch"),
        (["batch"], "the following arguments are required: spec"),
        (["batch", "x.yaml", "--wrokers", "2"], "--wrokers"),
        (["batch", "x.yaml", "--workers", "0"], "--workers: must be a number >= 1, got"),
        (["batch", "x.yaml", "--workers", "two"], "--workers.*'two'"),
    ],
)
def test_a_command_that_is_wrong(capsys, arguments, said):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "usage: loopkit" in err
    assert re.search(said, err)


def test_a_batch_file_that_is_missing(capsys, tmp_path):
    code, out, err = run(capsys, "batch", tmp_path / "none.yaml")
    assert (code, out) == (2, "")
    assert err == f"loopkit: cannot read {tmp_path / 'none.yaml'}: No such file or directory\n"


def test_a_value_that_is_wrong(capsys, batch_file, tmp_path):
    code, out, err = run(capsys, "batch", batch_file, "--set", "count=many", "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.startswith("loopkit: count: ")
    assert "'many'" in err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written(capsys, batch_file, tmp_path):
    (tmp_path / "file").touch()
    code, out, err = run(capsys, "batch", batch_file, "--out", tmp_path / "file")
    assert (code, out) == (2, "")
    assert "loopkit: cannot create " in err
    assert "Not a directory" in err


def test_arguments_reach_the_batch(capsys, stub, batch_file, tmp_path):
    calls = stub()
    arguments = ["--set", "count=4", "--set", "arm=[clauses, program]", "--workers", "3"]
    assert run(capsys, "batch", batch_file, *arguments, "--out", tmp_path / "out")[0] == 0
    ((spec, out, how),) = calls
    assert spec.grid == [
        {"arm": ["clauses", "program"], "model": "simulated:random", "people": 2, "count": 4}
    ]
    assert (out, how["workers"], how["name"]) == (tmp_path / "out", 3, "small")


def test_the_folder_is_named_after_experiment_and_file(capsys, stub, batch_file):
    calls = stub()
    run(capsys, "batch", batch_file)
    assert calls[0][1] == Path("runs/knights-small")


def test_piped_output_has_the_table_and_the_verdicts(capsys, stub, batch_file):
    claims = [
        {
            "verdict": verdict,
            "says": f"Claim {n} [sic].",
            "explained": f"explained {n}",
            "simulated": ("none", "some", "all")[n],
            "post_hoc": n == 2,
        }
        for n, verdict in enumerate(("supported", "not supported", "contradicted"))
    ]
    stub(rows=[row(), row(arm="reasoning", n=1, correct=0, accuracy=0.0, wilson_low=None, wilson_high=None,
                          failures={})], claims=claims)  # fmt: skip
    code, out, _ = run(capsys, "batch", batch_file)
    assert code == 0
    assert "\x1b" not in out
    assert "Who [really] is what?" in out, "brackets are no markup"
    heading, ours, reasoning = (
        next(line for line in out.splitlines() if line.startswith(start))
        for start in ("arm ", "clauses ", "reasoning ")
    )
    for words in ("model", "n", "right", "accuracy", "95 % interval", "failures", "tokens", "seconds"):
        assert words in heading
    for words in (
        "random (simulated)",
        "40",
        "30",
        "75.0%",
        "59.8% to 85.8%",
        "no solution 5",
        "12,345",
        "68",
    ):
        assert words in ours
    assert "[odd] 2" in " ".join(out.split())
    assert "0.0%" in reasoning
    assert "–" in reasoning, "one trial has no interval"
    assert "\nSUPPORTED  Claim 0 [sic].\n  explained 0\n" in out
    assert "\nNOT SUPPORTED, partly simulated  Claim 1 [sic].\n  explained 1\n" in out
    assert "\nCONTRADICTED, simulated, post hoc  Claim 2 [sic].\n  explained 2\n" in out
    assert "measure" not in out
    assert out.endswith("report: runs/knights-small/report.html\n")


def test_measures_have_a_table_of_their_own(capsys, stub, batch_file):
    depth = {"n": 40, "mean": 12.345, "low": 11.5, "high": 13.19}
    once = {"n": 1, "mean": 2000.0, "low": None, "high": None}
    stub(rows=[row(measures={"depth": depth}), row(arm="reasoning", measures={"depth": once})])
    _, out, _ = run(capsys, "batch", batch_file)
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "arm model measure n mean 95 % interval" in lines
    assert "clauses random (simulated) depth 40 12.3 11.5 to 13.2" in lines
    assert "reasoning random (simulated) depth 1 2,000 –" in lines


def test_help_has_the_vocabulary_of_claims(capsys):
    _, out, _ = run(capsys, "batch", "--help")
    for field in Claim.model_fields:
        assert re.search(rf"\b{field}\b", out), field


def test_a_model_without_a_single_counted_trial(capsys, stub, batch_file):
    stub(rows=[row(n=0, correct=0, accuracy=None, wilson_low=None, wilson_high=None, failures={}, errors=4)])
    code, out, _ = run(capsys, "batch", batch_file)
    assert code == 0
    assert "None" not in out


def test_what_could_not_run_makes_exit_code_1(capsys, stub, batch_file):
    stub("cell-1: notebook failed: ValueError: [no]", "cell-2: 3 of 4 trials have no result")
    code, out, _ = run(capsys, "batch", batch_file)
    assert code == 1
    assert "COULD NOT RUN  cell-1: notebook failed: ValueError: [no]" in out
    assert "COULD NOT RUN  cell-2: 3 of 4 trials have no result" in out


def test_a_store_that_fails_is_exit_code_2(capsys, stub, batch_file):
    stub(raises=StoreError("cannot write status.jsonl: No space left on device"))
    code, _, err = run(capsys, "batch", batch_file)
    assert code == 2
    assert err == "loopkit: cannot write status.jsonl: No space left on device\n"


def test_an_interruption_is_exit_code_130(capsys, stub, batch_file):
    stub(raises=KeyboardInterrupt())
    code, _, err = run(capsys, "batch", batch_file)
    assert code == 130
    assert "the same command goes on from here" in err
    assert "Traceback" not in err
