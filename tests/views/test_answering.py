"""The form in which a person answers a run: what it shows, and what it records."""

import asyncio

import ipywidgets
import pytest

from loopkit import Store
from loopkit.flow import Flow
from loopkit.views import answer_form

FLOW = """
flow: approval
steps:
  - id: ask
    human: Ship <b>it</b>?
    output_schema:
      properties:
        decision: { type: string, enum: [yes, no] }
        urgent: { type: boolean }
        stars: { type: integer, minimum: 1, maximum: 5 }
        tags: { type: array, items: { type: string } }
        why: { type: string, minLength: 2 }
        rank: { type: integer }
        tone: { type: string, enum: [warm, cool] }
        note: { type: string }
      required: [decision, urgent, stars, tags, why]
    transitions:
      - when: output.decision == 'yes'
        goto: done
      - goto: failed
"""


def waiting(folder):
    store = Store(folder)
    with store.create("r") as log:
        assert asyncio.run(Flow.parse(FLOW).run(log=log)).status == "waiting"
    return store


def parts(form):
    question, *fields, button, said = form.children
    return question, {field.description: field for field in fields}, button, said


def test_the_form_asks_what_the_run_asks_and_records_the_answer(tmp_path):
    store, called = waiting(tmp_path), []
    question, fields, button, said = parts(answer_form(store, "r", then=lambda: called.append(1)))
    assert "Ship &lt;b&gt;it&lt;/b&gt;?" in question.value
    assert fields["decision"].options == (("yes", "yes"), ("no", "no"))
    fields["why"].value, fields["tags"].value, fields["urgent"].value = "it is good", '["a"]', True
    button.click()
    assert called == [1] and button.disabled and "Recorded" in said.value
    expected = {"decision": "yes", "urgent": True, "stars": 1, "tags": ["a"], "why": "it is good"}
    expected |= {"rank": None, "tone": None, "note": None}
    assert store.run("r").first("answer")["answer"] == expected
    with store.resume("r") as log:
        outcome = asyncio.run(Flow.of(log).run(log=log))
    assert (outcome.status, outcome.outputs["ask"]) == ("done", expected)


def test_what_may_be_left_out_may_also_be_given(tmp_path):
    store = waiting(tmp_path)
    _, fields, button, _ = parts(answer_form(store, "r"))
    fields["why"].value, fields["tags"].value, fields["urgent"].value = "it is good", "[]", False
    fields["rank"].value, fields["tone"].value, fields["note"].value = "3", "cool", "3"
    button.click()
    answer = store.run("r").first("answer")["answer"]
    assert (answer["rank"], answer["tone"], answer["note"], answer["urgent"]) == (3, "cool", "3", False)


@pytest.mark.parametrize(("field", "value"), [("why", ""), ("stars", 9), ("tags", "[1"), ("tags", "[1]")])
def test_an_answer_that_does_not_fit_is_told_and_not_recorded(tmp_path, field, value):
    store = waiting(tmp_path)
    _, fields, button, said = parts(answer_form(store, "r"))
    fields["why"].value, fields["tags"].value = "it is good", "[]"
    fields[field].value = value
    button.click()
    assert "Not recorded" in said.value and not button.disabled
    assert store.run("r").status == "waiting"


def test_a_run_that_somebody_else_writes_is_told(tmp_path):
    store = waiting(tmp_path)
    _, fields, button, said = parts(answer_form(store, "r"))
    fields["why"].value, fields["tags"].value = "it is good", "[]"
    with store.resume("r"):
        button.click()
    assert "Not recorded" in said.value and "is being written by" in said.value


def test_a_run_that_asks_nothing_has_no_form(tmp_path):
    store = Store(tmp_path)
    store.create("r").close()
    with pytest.raises(ValueError, match="'r' asks nobody anything"):
        answer_form(store, "r")


def test_a_form_is_a_widget(tmp_path):
    assert isinstance(answer_form(waiting(tmp_path), "r"), ipywidgets.Widget)
