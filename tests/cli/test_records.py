"""`loopkit runs`, `report` and `ledger` as they are used: what they print and write, and their exit codes."""

import json
import re
import sys

import pytest

from loopkit import Store
from loopkit.cli import main
from loopkit.cli.records import fits, ordered
from loopkit.store import RunLog

HALF = {"id": "half", "says": "Half are right.", "arm": "a", "at_least": 0.5}


@pytest.fixture
def here(tmp_path, make_batch, monkeypatch):
    """A folder with runs/demo, a batch of two arms, and runs/hello with one run."""
    make_batch(
        tmp_path / "runs" / "demo",
        {"a": "cwf-", "b": "c" * 20},
        claims=[HALF, HALF | {"id": "b", "arm": "b"}],
    )
    Store(tmp_path / "runs" / "hello").create("first", size=3).close()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """The exit code, what was printed, and what was complained about."""

    def call(*arguments):
        try:
            code = main(list(map(str, arguments)))
        except SystemExit as ended:
            code = ended.code
        return code, *capsys.readouterr()

    return call


def cells(out):
    """The lines of the first table, each by its headings."""
    heading, *lines = out.split("\n\n")[0].splitlines()
    starts = [match.start() for match in re.finditer(r"\S+( \S+)*", heading)]
    names = re.findall(r"\S+(?: \S+)*", heading)
    assert len(names) == len(starts)
    return [dict(zip(names, re.split(r"\s{2,}", line.strip()), strict=False)) for line in lines]


def damage(path):
    path.write_bytes(path.read_bytes().replace(b'"time":"2', b'"time":"3', 1))


@pytest.mark.parametrize("command", ["runs", "report", "ledger"])
def test_help_has_examples_and_exit_codes(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"\n  loopkit {command} " in out and "Exit codes: 0 " in " ".join(out.split())
    assert "--export FILE" in out and "_df(" in out
    assert command in run("--help")[1]


# --- runs ------------------------------------------------------------------------------------------------------


def test_runs_lists_every_run_the_newest_first(run, here):
    code, out, err = run("runs")
    assert (code, err) == (0, "")
    rows = cells(out)
    assert len(rows) == 25 and rows[0]["run"] == "first" and rows[0]["store"] == "runs/hello"
    by_item = [row for row in rows if row["store"] == "runs/demo/records"]
    assert len(by_item) == 24
    for words in (
        "experiment",
        "arm",
        "model",
        "status",
        "iterations",
        "stopped by",
        "best",
        "tokens",
        "seconds",
        "started",
    ):
        assert words in out.splitlines()[0]
    assert "cost" not in out.splitlines()[0], "nothing was paid for"
    assert "unfinished" in out and "MaxIterations" in out
    assert "\x1b" not in out


def test_runs_filters_sorts_and_limits(run, here):
    def listed(*arguments):
        code, out, err = run("runs", *arguments)
        assert (code, err) == (0, "")
        return cells(out)

    assert len(listed("--where", "arm=a")) == 4
    assert len(listed("--where", "arm=a", "--where", "size=1")) == 2
    assert len(listed("runs/demo", "--status", "unfinished")) == 1
    assert len(listed("--status", "unfinished", "--status", "finished", "--where", "size=3")) == 1
    assert len(listed("--where", "result=correct")) == 21
    tokens = [
        int(row["tokens"])
        for row in listed("runs/demo", "--where", "arm=b", "--sort", "tokens", "--limit", "5")
    ]
    assert tokens == [29, 28, 27, 26, 25]
    tokens = [
        int(row["tokens"]) for row in listed("runs/demo", "--where", "arm=b", "--sort", "tokens", "--reverse")
    ]
    assert tokens == list(range(10, 30))


def test_many_runs_are_cut_and_it_is_said(run, here, make_batch):
    make_batch(here / "runs" / "demo", {"a": "c" * 60})
    _, out, _ = run("runs", "--where", "arm=a")
    assert len(cells(out)) == 50 and "50 of 60 runs; --limit 0 lists all" in out
    assert len(cells(run("runs", "--where", "arm=a", "--limit", "0")[1])) == 60


def test_a_narrow_terminal_does_without_some_columns_and_says_so(run, here, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "50")
    code, out, _ = run("runs")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()
    assert code == 0 and len(lines) == 1 + 25 + 1 and max(map(len, lines)) <= 100
    assert lines[-1].startswith("no room for best, seconds") and "started" in lines[0]


def test_an_export_has_all_rows_and_columns(run, here, make_batch):
    make_batch(here / "runs" / "demo", {"a": "c" * 60})
    code, out, _ = run("runs", "--where", "arm=a", "--export", "out/a.json")
    rows = json.loads((here / "out" / "a.json").read_text())
    assert code == 0 and len(rows) == 60 and "60 rows: out/a.json" in out
    assert {row["detail"] for row in rows} >= {"detail of 0", "detail of 59"} and rows[0]["code"] == "c0de"
    run("runs", "--where", "arm=a", "--limit", "3", "--export", "out/b.csv")
    assert len((here / "out" / "b.csv").read_text().splitlines()) == 4


def test_a_damaged_log_is_listed_named_and_hides_no_other(run, here):
    damage(here / "runs" / "hello" / "first.jsonl")
    code, out, _ = run("runs")
    assert code == 1 and len(cells(out)) == 25
    assert "damaged: runs/hello/first.jsonl, line 1" in out
    assert [row["run"] for row in cells(run("runs", "--status", "damaged")[1])] == ["first"]
    assert run("runs", "runs/hello")[0] == 1, "nothing else is there"
    assert run("runs", "runs/demo")[0] == 0


def test_of_many_damaged_logs_some_are_named_and_the_rest_counted(run, here):
    for path in (here / "runs" / "demo" / "records").glob("*.jsonl"):
        damage(path)
    code, out, _ = run("runs", "--limit", "1", "--status", "unfinished")
    assert code == 1 and out.count("damaged: runs/demo/records/") == 10 and "damaged: 14 more" in out


def test_no_runs(run, here):
    (here / "empty").mkdir()
    assert run("runs", "empty") == (0, "no such runs\n", "")
    assert run("runs", "--where", "arm=nobody") == (0, "no such runs\n", "")
    assert run("runs", "empty", "--where", "arm=a", "--sort", "tokens")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["runs", "nowhere"], "no folder nowhere"),
        (["runs", "--where", "amr=a"], "no column 'amr'; there are store, run, "),
        (["runs", "--where", "arm"], "reads NAME=VALUE, got 'arm'"),
        (["runs", "--sort", "speed"], "no column 'speed'"),
        (["runs", "--limit", "-1"], "must be a whole number >= 0, got '-1'"),
        (["runs", "--status", "dead"], "'dead'"),
        (
            ["runs", "--export", "x.xls"],
            "cannot export to 'x.xls': name a file that ends in .csv, .json, .parquet",
        ),
        (["runs", "--export", "runs/demo/status.jsonl/x.csv"], "runs/demo/status.jsonl"),
        (["report", "runs/hello"], "no batch in runs/hello"),
        (["report"], "folder"),
        (["report", "runs/demo", "--export", "x"], "cannot export to 'x'"),
        (["ledger", "nowhere"], "no folder nowhere"),
    ],
)
def test_what_is_wrong_is_named(run, here, arguments, said):
    code, _, err = run(*arguments)
    assert code == 2 and said in err and "Traceback" not in err


# --- report ----------------------------------------------------------------------------------------------------


def test_report_writes_the_page_and_prints_its_path(run, here):
    code, out, err = run("report", "runs/demo", "--export", "trials.csv")
    assert (code, err) == (0, "")
    assert out.startswith("small: finished, 23 of 24 trials have ended\n") and out.endswith(
        "report: runs/demo/report.html\n"
    )
    assert "Half are right." in (here / "runs" / "demo" / "report.html").read_text()
    assert len((here / "trials.csv").read_text().splitlines()) == 24


def test_report_of_a_batch_that_has_not_ended(run, here, make_batch):
    make_batch(here / "runs" / "new", {"a": "c..."}, ends=False)
    with RunLog(here / "runs" / "new" / "status.jsonl"):
        assert run("report", "runs/new")[1].startswith("small: running, 1 of 4 trials have ended")
    code, out, _ = run("report", "runs/new")
    assert code == 0 and out.startswith("small: interrupted, 1 of 4 trials have ended")


def test_report_names_damaged_records(run, here):
    path = sorted((here / "runs" / "demo" / "records").glob("*.jsonl"))[0]
    damage(path)
    code, out, _ = run("report", "runs/demo")
    assert code == 1 and f"damaged: {path.relative_to(here)}, line 1" in out
    damage(here / "runs" / "demo" / "status.jsonl")
    code, _, err = run("report", "runs/demo")
    assert code == 2 and "status.jsonl, line 1" in err


# --- ledger ----------------------------------------------------------------------------------------------------


def test_ledger_prints_a_line_per_claim_and_batch(run, here, make_batch):
    make_batch(here / "runs" / "sim", {"a": "c" * 20}, claims=[HALF], model="simulated:oracle", name="sim")
    make_batch(
        here / "runs" / "demo",
        {"a": "cwf" + "c" * 20, "b": "c" * 20},
        claims=[HALF, HALF | {"id": "b", "arm": "b"}],
    )
    make_batch(
        here / "runs" / "partial", {"a": "c" * 20 + "."}, claims=[HALF], name="partial", problems=["?"]
    )
    make_batch(here / "runs" / "begun", {"a": "."}, claims=[HALF], ends=False, name="begun")
    code, out, err = run("ledger")
    assert (code, err) == (0, "")
    lines = {
        (row["batch"], row["claim"]): line for row, line in zip(cells(out), out.splitlines()[1:], strict=True)
    }
    assert set(lines) == {
        ("small", "half"),
        ("small", "b"),
        ("sim", "half"),
        ("partial", "half"),
        ("begun", "half"),
    }
    assert "supported (incomplete)" in lines["partial", "half"] and "incomplete" not in lines["small", "half"]
    assert "not supported → supported" in lines["small", "half"]
    assert "supported (simulated)" in lines["sim", "half"]
    assert "runs/begun (interrupted)" in lines["begun", "half"]
    history = cells(run("ledger", "--history", "runs/demo")[1])
    assert [row["claim"] for row in history] == ["half", "b", "half", "b"]


def test_ledger_exports(run, here):
    assert run("ledger", "--export", "ledger.json")[0] == 0
    rows = json.loads((here / "ledger.json").read_text())
    assert [row["says"] for row in rows] == ["Half are right."] * 2 and rows[1]["n"] == 20
    assert run("ledger", "--history", "--export", "ledger.csv")[0] == 0
    assert len((here / "ledger.csv").read_text().splitlines()) == 3


def test_ledger_names_what_is_damaged_and_lists_the_rest(run, here, make_batch):
    make_batch(here / "runs" / "other", {"a": "cc"}, claims=[HALF], name="other")
    damage(here / "runs" / "demo" / "status.jsonl")
    code, out, _ = run("ledger")
    assert code == 1 and "damaged: runs/demo/status.jsonl, line 1" in out
    assert [row["batch"] for row in cells(out) if row["batch"] == "other"] == ["other"]


def test_an_empty_ledger(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("ledger") == (0, "no claims in runs, experiments\n", "")


# --- what was typed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a", "a", True), ("a", "b", False), ("5", 5, True), ("5", 5.0, True), ("5", "5", True), ("0.50", 0.5, True),
        ("true", True, True), ("2-5", "2-5", True), ("[1, 2]", [1, 2], True), (": {", "x", False), ("", "", True),
        ("007", "007", True), ("5", None, False),
    ],
)  # fmt: skip
def test_a_value_fits_what_was_typed_as_text_or_as_yaml(text, value, expected):
    assert fits(text, value) is expected


def test_values_of_all_kinds_have_an_order_and_what_is_missing_comes_last():
    values = [3, "b", None, 0.5, "a", None, True, {"x": 1}]
    up = ordered(values, lambda value: value, descending=False)
    assert up == [0.5, True, 3, "a", "b", {"x": 1}, None, None]
    assert ordered(values, lambda value: value, descending=True) == [*up[5::-1], None, None]
