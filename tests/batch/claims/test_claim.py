"""The vocabulary of claims, and what makes two claims the same one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from loopkit.batch.claims import Claim
from loopkit.batch.spec import BatchSpec


def claim(**changes):
    return Claim(**{"id": "first", "says": "It works.", "arm": "ours"} | changes)


KINDS = [
    {"over": "theirs"},
    {"under": "theirs", "measure": "tokens"},
    {"same_as": "theirs", "margin": 0.05},
    {"at_least": 0.5},
    {"at_most": 1234.5, "measure": "tokens"},
    {"equals": 1},
    {"equals": -3, "within": 0.5, "measure": "depth"},
]


@pytest.mark.parametrize("terms", KINDS, ids=str)
def test_every_kind_alone_and_no_two_together(terms):
    assert claim(**terms).other == ("theirs" if "theirs" in terms.values() else None)
    for other in KINDS:
        if other.keys() & {*terms} - {"measure"} == set():
            with pytest.raises(ValidationError, match="must have exactly one of over, under, same_as"):
                claim(**terms | other)


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({}, "exactly one of"),
        ({"same_as": "theirs"}, "must have same_as and margin together, or neither"),
        ({"over": "theirs", "margin": 0.1}, "must have same_as and margin together, or neither"),
        ({"same_as": "theirs", "margin": 0}, "margin"),
        ({"at_least": 0.5, "within": 0.1}, "has within but no equals"),
        ({"equals": 0.5, "within": -0.1}, "within"),
        ({"equals": 0.5, "over_where": {"model": "m"}}, "has over_where but none of over, under, same_as"),
        ({"at_least": 90}, "an accuracy lies between 0 and 1"),
        ({"equals": 2}, "an accuracy lies between 0 and 1"),
        ({"at_least": float("inf"), "measure": "depth"}, "finite"),
        ({"equals": float("nan"), "measure": "depth"}, "finite"),
    ],
)
def test_terms_that_do_not_go_together(terms, said):
    with pytest.raises(ValidationError, match=said):
        claim(**terms)


@pytest.mark.parametrize("terms", KINDS[:3], ids=str)
def test_the_other_side_of_every_comparison_may_differ_in_parameters(terms):
    assert claim(**terms, over_where={"model": "m"}).over_where == {"model": "m"}


def test_a_digest_is_of_the_terms_and_not_of_the_words():
    one = claim(at_least=0.5, where={"people": 3, "model": "m"})
    again = claim(id="other", says="Said better.", at_least=0.5, where={"model": "m", "people": 3})
    assert one.digest == again.digest and len(one.digest) == 64
    # Written down, so that no later version takes a claim on record for a new one.
    assert one.digest == "83e29ec01b78a982413ceb08b68525cb4f43966fb6e3acc617d54a5fae3b3a15"
    spelt_out = claim(
        at_least=0.5, where={"people": 3, "model": "m"}, measure="accuracy", p_below=0.05, over=None
    )
    assert spelt_out.digest == one.digest, "as the logs of all versions hold it"


CHANGES = {
    "arm": "yours", "where": {"people": 4}, "measure": "depth", "p_below": 0.01, "over": "others",
    "over_where": {"model": "m"},
}  # fmt: skip


@given(st.sets(st.sampled_from(sorted(CHANGES))), st.sets(st.sampled_from(sorted(CHANGES))))
def test_any_changed_term_makes_another_digest(some, others):
    one = claim(**{"over": "theirs"} | {name: CHANGES[name] for name in some})
    other = claim(**{"over": "theirs"} | {name: CHANGES[name] for name in others})
    assert (one.digest == other.digest) == (some == others)


def test_kinds_with_the_same_value_differ():
    digests = {claim(**{kind: 0.5}).digest for kind in ("at_least", "at_most", "equals")}
    digests |= {claim(**{kind: "theirs"}).digest for kind in ("over", "under")}
    assert len(digests) == 5


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (
            {"same_as": "theirs", "margin": 5},
            "a margin of 5, which no accuracy goes beyond: 0.05 are 5 points",
        ),
        ({"equals": 0.5, "within": 1}, "a within of 1, which no accuracy goes beyond"),
        ({"over": "ours"}, "compares ours with itself"),
        (
            {"over": "ours", "where": {"model": "m"}, "over_where": {"model": "m"}},
            "compares ours with itself",
        ),
        ({"at_least": 0.5, "p_below": 0.01}, "has p_below 0.01, but only over and under have a p"),
        ({"at_least": 0}, "a bound that every accuracy keeps to"),
        ({"at_most": 1.0}, "a bound that every accuracy keeps to"),
    ],
)
def test_terms_that_say_nothing_are_refused_in_a_batch_file_and_read_in_a_log(terms, said):
    assert said in claim(**terms).vacuous
    with pytest.raises(ValidationError, match=f"claim 'first' .*{said}"):
        BatchSpec(experiment="e", notebook="n.ipynb", question="Why?", grid=[{}], claims=[claim(**terms)])


@pytest.mark.parametrize(
    "terms",
    [
        *KINDS,
        {"over": "ours", "where": {"model": "m"}, "over_where": {"model": "n"}},
        {"over": "ours", "over_where": {"model": "n"}},
        {"over": "theirs", "p_below": 0.01},
        {"at_least": 0.5, "p_below": 0.05},
        {"at_least": 0, "measure": "depth"},
        {"same_as": "theirs", "margin": 5, "measure": "depth"},
    ],
    ids=str,
)
def test_terms_that_say_something(terms):
    assert claim(**terms).vacuous is None
