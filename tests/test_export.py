"""Frames as files: what is read back is what was exported."""

import csv
import importlib.util
import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit.export import check_export, export, plain_rows, to_frame

ROWS = [
    {"run": "a", "size": 3, "score": 0.25, "ok": True, "solution": {"Ann": True}, "mixed": 5, "text": "é, \"x\"\n"},
    {"run": "b", "size": None, "score": None, "ok": False, "solution": None, "mixed": "2-5", "text": "\ud800"},
]  # fmt: skip


def test_json_is_the_rows_one_a_line(tmp_path):
    path = export(to_frame(ROWS), tmp_path / "new" / "folder" / "rows.json")
    assert json.loads(path.read_text("utf-8")) == ROWS
    assert len(path.read_text("utf-8").splitlines()) == len(ROWS) + 2


def test_csv_has_nested_values_as_json_and_nothing_for_what_is_missing(tmp_path):
    path = export(to_frame(ROWS), tmp_path / "rows.csv")
    with path.open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert json.loads(first["solution"]) == {"Ann": True}
    assert (first["text"], first["ok"], first["mixed"], float(first["size"])) == ('é, "x"\n', "True", "5", 3)
    assert (second["solution"], second["size"], second["mixed"], second["text"]) == ("", "", "2-5", "\\ud800")


def test_parquet_comes_back_with_its_types(tmp_path):
    pytest.importorskip("pyarrow", reason="the extra loopkit[parquet] is not installed")
    frame = pd.read_parquet(export(to_frame(ROWS), tmp_path / "rows.parquet"))
    assert list(frame.columns) == list(ROWS[0])
    assert (frame["run"].tolist(), frame["ok"].tolist()) == (["a", "b"], [True, False])
    assert frame["score"].tolist()[0] == 0.25 and pd.isna(frame["score"][1])
    assert json.loads(frame["solution"][0]) == {"Ann": True}
    assert frame["mixed"].tolist() == ["5", "2-5"]
    huge = export(pd.DataFrame({"n": [2**70, 1], "none": [None, None]}), tmp_path / "huge.parquet")
    assert pd.read_parquet(huge)["n"].tolist() == [str(2**70), "1"]


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), scalars | st.lists(scalars, max_size=2)), max_size=4))
def test_json_gives_back_whatever_the_frame_holds(tmp_path_factory, rows):
    frame = pd.DataFrame(rows, columns=list("abc"), dtype=object)
    path = export(frame, tmp_path_factory.mktemp("export") / "rows.json")
    assert json.loads(path.read_text("utf-8")) == [{name: row.get(name) for name in "abc"} for row in rows]


def test_plain_rows_have_none_for_what_is_missing():
    assert plain_rows(to_frame(ROWS)) == ROWS
    assert plain_rows(pd.DataFrame()) == []


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_an_empty_frame_is_a_file_too(tmp_path, suffix):
    path = export(pd.DataFrame(), tmp_path / f"rows.{suffix}")
    assert path.read_text().strip() in ("", "[\n\n]", "[]")
    if suffix == "json":
        assert json.loads(path.read_text()) == []


@pytest.mark.parametrize("name", ["rows", "rows.txt", "rows.xlsx", ".csv"])
def test_another_suffix_is_refused_by_name(tmp_path, name):
    with pytest.raises(
        ValueError, match=r"cannot export to .*: name a file that ends in .csv, .json, .parquet"
    ):
        export(to_frame(ROWS), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_parquet_without_pyarrow_names_the_extra(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr("loopkit.export.find_spec", lambda name: None if name == "pyarrow" else found(name))
    with pytest.raises(ValueError, match=r"'x.parquet'.*pyarrow.*loopkit\[parquet\].*\.csv and \.json"):
        check_export("x.parquet")
    assert str(check_export("x.csv")) == "x.csv"


def test_it_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = export(to_frame(ROWS), tmp_path / "rows.json")
    before = path.read_bytes()

    def full(value):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("loopkit.export.encode", full)
    with pytest.raises(OSError, match="No space"):
        export(to_frame(ROWS[:1]), path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
