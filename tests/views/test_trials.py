"""The trials in a report's page: compact, and nothing of them is lost or moved to another row."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from loopkit.views.trials import trials_info


def rows(info):
    """The rows as the page's script reads them, by title."""
    columns = {
        c["title"]: [c["texts"][at] for at in c["at"]] if "at" in c else c["texts"] for c in info["columns"]
    }
    assert {len(texts) for texts in columns.values()} <= {info["rows"]}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


RESULTS = {"wrong": "✗ wrong", "failed": "! failed", "error": "⊘ could not run", "correct": "✓ correct"}
TRIALS = st.lists(
    st.fixed_dictionaries(
        {"result": st.sampled_from(list(RESULTS)), "item": st.text(max_size=3)},
        optional={
            "arm": st.sampled_from("ab"), "kind": st.none() | st.just("empty"), "tokens": st.integers(0, 9999),
            "people": st.integers(2, 4), "solution": st.dictionaries(st.just("Ann"), st.booleans()),
        },
    )
)  # fmt: skip


@given(TRIALS)
def test_every_trial_is_there_once_with_what_it_holds(trials):
    info = trials_info(trials)
    assert info["rows"] == len(trials)
    shown = {"result": "Result", "item": "Item", "arm": "Arm", "kind": "Kind", "tokens": "Tokens"}
    expected = Counter(
        tuple(
            RESULTS[value]
            if name == "result"
            else f"{value:,}"
            if isinstance(value, int)
            else value or "–" * (value is None)
            for name in shown
            for value in [trial.get(name)]
        )
        for trial in trials
    )
    assert Counter(tuple(row.get(title, "–") for title in shown.values()) for row in rows(info)) == expected
    if trials:
        order = [list(RESULTS.values()).index(row["Result"]) for row in rows(info)]
        assert order == sorted(order), "wrong and failed ones first"


def test_parameters_are_columns_where_they_tell_trials_apart_by_few_values():
    trials = [
        {"result": "correct", "item": f"i{n}", "people": n % 3, "seed": 1, "split": "seen" if n % 2 else "unseen",
         "problem": f"text {n}", "solution": {"Ann": True}, "code": "c0de", "trial": f"k{n}"}
        for n in range(200)
    ]  # fmt: skip
    titles = [column["title"] for column in trials_info(trials)["columns"]]
    assert titles == ["Result", "Item", "People", "Split"]


def test_what_is_chosen_by_has_several_values():
    trials = [{"result": "correct", "arm": arm, "model": "m", "item": "i"} for arm in ("a", "b")]
    choose = {column["title"] for column in trials_info(trials)["columns"] if column["choose"]}
    assert choose == {"Arm"}


def test_numbers_are_formatted_and_long_texts_cut():
    trials = [{"result": "wrong", "detail": "x" * 1000, "tokens": 12345, "seconds": 6.25, "stopped_by": None}]
    [row] = rows(trials_info(trials))
    assert row["Tokens"] == "12,345" and row["Seconds"] == "6.2" and "Stopped by" not in row
    assert row["Detail"] == "x" * 299 + "…"
    looks = {column["title"]: column["look"] for column in trials_info(trials)["columns"]}
    assert looks == {"Result": "", "Detail": "", "Tokens": "num", "Seconds": "num"}


def test_what_repeats_is_written_once():
    trials = [{"result": "correct", "detail": "the same long words", "item": f"i{n}"} for n in range(1000)]
    detail = next(column for column in trials_info(trials)["columns"] if column["title"] == "Detail")
    assert detail["texts"] == ["the same long words"] and detail["at"] == [0] * 1000


def test_no_trials_are_no_columns():
    assert trials_info([]) == {"rows": 0, "columns": []}
