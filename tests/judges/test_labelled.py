"""Labelled items: what follows from a label, and what a bad file is told."""

import json
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from loopkit.judges import LabelError, Labelled, Material, load_labelled

units = st.floats(0, 1)


def write(tmp_path, *lines):
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
    return path


@given(st.dictionaries(st.text(), units, min_size=1))
def test_the_score_is_the_mean_of_the_scores(scores):
    item = Labelled(id="a", main="x", scores=scores)
    assert item.score == pytest.approx(fmean(scores.values()))
    assert item.accept == (item.score >= 0.8)


@given(st.booleans())
def test_accept_alone_is_a_score_of_one_or_zero(accept):
    item = Labelled(id="a", main="x", accept=accept)
    assert (item.score, item.accept) == (float(accept), accept)


@given(units, st.booleans(), st.dictionaries(st.text(), units))
def test_what_is_given_stays_as_it_is(score, accept, scores):
    item = Labelled(id="a", main="x", score=score, accept=accept, scores=scores)
    assert (item.score, item.accept, item.scores) == (score, accept, scores)
    assert Labelled.model_validate_json(item.model_dump_json()) == item


def test_an_item_without_any_label_is_refused():
    with pytest.raises(ValidationError, match="at least one of accept, score, scores"):
        Labelled(id="a", main="x", scores={})


def test_the_material_is_all_but_the_label():
    fields = {"main": "x", "name": "S.md", "files": {"a": "b"}, "goal": "g", "plan": "p", "notes": "n"}
    item = Labelled(id="a", accept=True, defects=[{"kind": "dead", "place": "S.md:1"}], **fields)
    assert item.material == Material(**fields)


def test_a_file_is_read_line_by_line(tmp_path):
    path = write(
        tmp_path, {"id": "a", "main": "x\u2028y", "accept": True}, "", {"id": "b", "main": "", "score": 0.5}
    )
    assert [(one.id, one.accept, one.score) for one in load_labelled(path)] == [
        ("a", True, 1),
        ("b", False, 0.5),
    ]


def test_every_bad_line_is_named(tmp_path):
    path = write(
        tmp_path,
        {"id": "a", "main": "x", "accept": True},
        "{nonsense",
        {"id": "b", "main": "x"},
        {"id": "a", "main": "x", "accept": False},
        {"id": "c", "main": "x", "scores": {"clear": 7}},
        {"id": "d", "main": "x", "accept": True, "colour": "red"},
    )
    with pytest.raises(LabelError) as raised:
        load_labelled(path)
    said = str(raised.value).splitlines()
    assert str(path) in said[0]
    assert [line.split(":")[0].strip() for line in said[1:]] == [f"line {n}" for n in (2, 3, 4, 5, 6)]
    for line, word in zip(said[1:], ("JSON", "no label", "line 1", "scores.clear", "colour"), strict=True):
        assert word in line


def test_a_file_without_items_is_refused(tmp_path):
    with pytest.raises(LabelError, match="no items"):
        load_labelled(write(tmp_path, "", ""))
