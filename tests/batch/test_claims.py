"""Claims: every verdict of every kind, with numbers that scipy computes once more from plain counts."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from loopkit.batch.claims import adjudicate
from loopkit.batch.claim import Claim


def claim(**changes):
    return Claim(**{"id": "first", "says": "It works.", "arm": "ours"} | changes)


def rows(arm, results, **params):
    """One row per letter of `results` (c, w, f, e), on items 0, 1, 2, …"""
    words = {"c": "correct", "w": "wrong", "f": "failed", "e": "error"}
    return [
        {"arm": arm, "item": f"item-{number}", "seed": 1, "model": "m", "result": words[letter]} | params
        for number, letter in enumerate(results)
    ]


def wilson(right, n):
    return binomtest(right, n).proportion_ci(0.95, method="wilson")


@pytest.mark.parametrize(
    ("right", "n", "kind", "bound", "verdict"),
    [
        (98, 100, "at_least", 0.9, "supported"),
        (92, 100, "at_least", 0.9, "not supported"),
        (88, 100, "at_least", 0.9, "not supported"),
        (60, 100, "at_least", 0.9, "contradicted"),
        (1, 100, "at_most", 0.1, "supported"),
        (8, 100, "at_most", 0.1, "not supported"),
        (12, 100, "at_most", 0.1, "not supported"),
        (40, 100, "at_most", 0.1, "contradicted"),
        (2, 2, "at_least", 0.9, "not supported"),
        (0, 2, "at_most", 0.05, "not supported"),
        (50, 50, "at_least", 0.0, "supported"),
        (50, 50, "at_most", 1.0, "supported"),
    ],
)
def test_a_bound_is_about_the_whole_interval(right, n, kind, bound, verdict):
    found = alone(claim(**{kind: bound}), rows("ours", "c" * right + "w" * (n - right)))
    assert found["verdict"] == verdict
    assert found["p"] is None
    assert found["effect"] == pytest.approx(right / n - bound)
    interval = wilson(right, n)
    for shown in (f"{right}/{n}", f"{interval.low:.1%}", f"{interval.high:.1%}", f"{bound:.0%}"):
        assert shown in found["explained"]


@given(st.integers(2, 60), st.data(), st.floats(0, 1), st.sampled_from(["at_least", "at_most"]))
@settings(deadline=None)
def test_a_bound_against_the_interval_of_scipy(n, data, bound, kind):
    right = data.draw(st.integers(0, n))
    interval = wilson(right, n)
    low, high = interval.low, interval.high
    if kind == "at_least":
        expected = "supported" if low >= bound else "contradicted" if high < bound else "not supported"
    else:
        expected = "supported" if high <= bound else "contradicted" if low > bound else "not supported"
    found = alone(claim(**{kind: bound}), rows("ours", "c" * right + "f" * (n - right)))
    assert found["verdict"] == expected


@pytest.mark.parametrize("results", ["", "c", "e", "eeec"])
def test_a_bound_without_an_interval_is_not_supported(results):
    found = alone(claim(at_least=0.0), rows("ours", results) + rows("theirs", "ccc"))
    assert (found["verdict"], found["p"], found["effect"]) == ("not supported", None, None)
    n = results.count("c")
    assert f"not tested: ours has {n} trial{'' if n == 1 else 's'} here" in found["explained"]


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ("c" * 20, "w" * 20, "supported"),
        ("w" * 20, "c" * 20, "contradicted"),
        ("c" * 5 + "w" * 5, "w" * 5 + "c" * 5, "not supported"),
        ("c" * 10, "c" * 10, "not supported"),
        ("c" * 5, "w" * 5, "not supported"),  # p = 0.0625
        ("c" * 6, "w" * 6, "supported"),  # p = 0.03125
        ("w" * 6, "c" * 6, "contradicted"),
    ],
)
def test_a_comparison(ours, theirs, verdict):
    found = alone(claim(over="theirs"), rows("ours", ours) + rows("theirs", theirs))
    only_ours = sum(a == "c" != b for a, b in zip(ours, theirs, strict=True))
    only_theirs = sum(b == "c" != a for a, b in zip(ours, theirs, strict=True))
    discordant = only_ours + only_theirs
    tail = binom.cdf(min(only_ours, only_theirs), discordant, 0.5) if discordant else 1
    assert found["verdict"] == verdict
    assert found["p"] == pytest.approx(min(1.0, 2 * tail))
    assert found["effect"] == pytest.approx((ours.count("c") - theirs.count("c")) / len(ours))
    for shown in (f"{len(ours)} items", f"ours alone was right {only_ours}", f"theirs alone {only_theirs}"):
        assert shown in found["explained"]


def test_how_small_p_must_be_is_the_claims_to_say():
    trials = rows("ours", "c" * 8) + rows("theirs", "w" * 8)  # p = 2 / 2**8, about 0.0078
    assert adjudicate(claim(over="theirs", p_below=0.01), trials)["verdict"] == "supported"
    assert adjudicate(claim(over="theirs", p_below=0.001), trials)["verdict"] == "not supported"
    assert "p < 0.001" in adjudicate(claim(over="theirs", p_below=0.001), trials)["explained"]


def test_a_failed_trial_is_not_right():
    failed = adjudicate(claim(at_least=0.5), rows("ours", "cccff"))
    assert failed == adjudicate(claim(at_least=0.5), rows("ours", "cccww"))
    assert "3/5" in failed["explained"]
    ours = rows("ours", "c" * 8)
    assert adjudicate(claim(over="theirs"), ours + rows("theirs", "f" * 8))["verdict"] == "supported"


def test_what_could_not_run_is_left_out_and_so_is_its_partner():
    assert "3/4" in adjudicate(claim(at_least=0.5), rows("ours", "eccewc"))["explained"]
    ours, theirs = "ccccccccee", "wwwwwwwecc"
    found = alone(claim(over="theirs"), rows("ours", ours) + rows("theirs", theirs))
    assert found["p"] == pytest.approx(binomtest(7, 7).pvalue)
    assert found["effect"] == 1.0
    assert "same 7 items" in found["explained"]


def test_a_comparison_is_of_shared_items_at_the_same_seed():
    trials = rows("ours", "c" * 8, seed=1) + rows("theirs", "w" * 8, seed=2)
    found = alone(claim(over="theirs"), trials)
    assert (found["verdict"], found["p"], found["effect"]) == ("not supported", None, None)
    assert "not tested: no item was tried here by both ours and theirs" in found["explained"]
    trials += rows("ours", "ccc", seed=2)
    assert "same 3 items" in adjudicate(claim(over="theirs"), trials)["explained"]


def test_where_takes_a_value_or_one_of_a_list():
    trials = rows("ours", "ww", people=2) + rows("ours", "ccc", people=3) + rows("ours", "cccw", people=4)

    def counted(**where):
        return adjudicate(claim(at_least=0.5, where=where), trials)["explained"].partition(" ")[0]

    assert counted() == "6/9"
    assert counted(people=3) == "3/3"
    assert counted(people=[3, 4]) == "6/7"
    assert counted(people=[2, 4], model="m") == "3/6"
    assert "has 0 trials" in adjudicate(claim(at_least=0.5, where={"people": 5}), trials)["explained"]
    assert "has 0 trials" in adjudicate(claim(at_least=0.5, where={"peple": 3}), trials)["explained"]


def test_where_holds_for_both_arms():
    trials = rows("ours", "c" * 6, model="a") + rows("theirs", "w" * 6, model="a")
    trials += rows("ours", "w" * 6, model="b") + rows("theirs", "c" * 6, model="b")
    assert adjudicate(claim(over="theirs", where={"model": "a"}), trials)["verdict"] == "supported"
    assert adjudicate(claim(over="theirs", where={"model": "b"}), trials)["verdict"] == "contradicted"


def test_an_item_tried_twice_on_one_side_leaves_a_comparison_open():
    once = rows("ours", "c" * 8) + rows("theirs", "w" * 8)
    assert adjudicate(claim(over="theirs"), once)["verdict"] == "supported"
    for again in (rows("ours", "w", model="b"), rows("theirs", "c", model="b"), rows("ours", "c")):
        found = alone(claim(over="theirs"), once + again)
        assert (found["verdict"], found["p"], found["effect"]) == ("not supported", None, None)
        assert "ambiguous" in found["explained"]
        assert adjudicate(claim(over="theirs"), (once + again)[::-1]) == found
    other = rows("ours", "w", model="b")
    assert adjudicate(claim(over="theirs", where={"model": "m"}), once + other)["verdict"] == "supported"


def test_over_where_sets_the_other_side_apart():
    trials = rows("ours", "c" * 7, model="real") + rows("ours", "w" * 7, model="floor")
    trials += rows("ours", "w" * 7, model="third")
    asked = claim(over="ours", where={"model": "real"}, over_where={"model": "floor"})
    found = adjudicate(asked, trials)
    assert (found["verdict"], found["effect"]) == ("supported", 1.0)
    assert "ours real alone was right 7 times and ours floor alone 0 times" in found["explained"]
    turned = claim(over="ours", where={"model": "floor"}, over_where={"model": "real"})
    assert adjudicate(turned, trials)["verdict"] == "contradicted"


def test_other_arms_do_not_count():
    noise = rows("others", "c" * 50) + rows("our", "c" * 50)
    trials = rows("ours", "cw" * 4)
    assert adjudicate(claim(at_most=0.9), trials + noise) == adjudicate(claim(at_most=0.9), trials)


def test_what_the_claim_says_is_passed_on():
    found = alone(claim(at_least=0.5), [])
    assert set(found) == {"id", "says", "verdict", "n", "p", "effect", "explained", "models"}
    assert (found["id"], found["says"]) == ("first", "It works.")


MIRROR = {"supported": "contradicted", "contradicted": "supported", "not supported": "not supported"}
RESULTS = st.lists(st.sampled_from([("c", "w"), ("w", "c"), ("c", "c"), ("f", "w"), ("e", "c")]), max_size=30)


@given(RESULTS, st.sampled_from([0.5, 0.05, 0.001]), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_swapping_the_arms_mirrors_the_finding(pairs, p_below, rng: random.Random):
    # Lopsided on purpose, so that all three verdicts come up.
    pairs = [*pairs, *[("c", "w")] * rng.choice([0, 0, 4, 12])]
    trials = rows("ours", [a for a, _ in pairs]) + rows("theirs", [b for _, b in pairs])
    rng.shuffle(trials)
    one = adjudicate(claim(over="theirs", p_below=p_below), trials)
    other = adjudicate(claim(arm="theirs", over="ours", p_below=p_below), trials)
    assert other["verdict"] == MIRROR[one["verdict"]]
    assert other["p"] == one["p"]
    if one["effect"] is not None:
        assert other["effect"] == pytest.approx(-one["effect"])


def test_n_counts_what_the_verdict_rests_on():
    ours, theirs = rows("ours", "ccwfe"), rows("theirs", "cwe", model="other")
    assert adjudicate(claim(at_least=0.5), ours + theirs)["n"] == 4
    assert adjudicate(claim(over="theirs"), ours + theirs)["n"] == 2, "pairs both of which ran"
    assert adjudicate(claim(at_least=0.5, where={"model": "none"}), ours)["n"] == 0
    assert adjudicate(claim(over="nobody"), ours)["n"] == 0


def test_models_are_those_of_the_arm_that_the_claim_is_about():
    random = {"model": "simulated:random"}
    trials = rows("ours", "cw") + rows("ours", "cw", **random) + rows("theirs", "c", model="x")
    assert adjudicate(claim(at_least=0.5), trials)["models"] == ["m", "simulated:random"]
    assert adjudicate(claim(at_least=0.5, where=random), trials)["models"] == ["simulated:random"]
    over = {"over": "theirs", "over_where": {"model": "x"}}
    assert adjudicate(claim(where=random, **over), trials)["models"] == ["simulated:random"]
    assert adjudicate(claim(at_least=0.5), [])["models"] == []
