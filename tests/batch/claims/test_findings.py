"""One claim: every verdict of every kind, with numbers that scipy computes once more from plain counts."""

import random
import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, sem, t

from loopkit.batch.claims import Claim, adjudicate


def claim(**changes):
    return Claim(**{"id": "first", "says": "It works.", "arm": "ours"} | changes)


def rows(arm, results, **params):
    """One row per letter of `results` (c, w, f, e), on items 0, 1, 2, …"""
    words = {"c": "correct", "w": "wrong", "f": "failed", "e": "error"}
    return [
        {"arm": arm, "item": f"item-{number}", "seed": 1, "model": "m", "result": words[letter]} | params
        for number, letter in enumerate(results)
    ]


def alone(claim, trials):
    """What is found of a claim that is the only one of its batch."""
    [found] = adjudicate([claim], trials)
    return found


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
    assert alone(claim(over="theirs", p_below=0.01), trials)["verdict"] == "supported"
    assert alone(claim(over="theirs", p_below=0.001), trials)["verdict"] == "not supported"
    assert "p < 0.001" in alone(claim(over="theirs", p_below=0.001), trials)["explained"]


def test_a_failed_trial_is_not_right():
    failed = alone(claim(at_least=0.5), rows("ours", "cccff"))
    assert failed == alone(claim(at_least=0.5), rows("ours", "cccww"))
    assert "3/5" in failed["explained"]
    ours = rows("ours", "c" * 8)
    assert alone(claim(over="theirs"), ours + rows("theirs", "f" * 8))["verdict"] == "supported"


def test_what_could_not_run_is_left_out_and_so_is_its_partner():
    assert "3/4" in alone(claim(at_least=0.5), rows("ours", "eccewc"))["explained"]
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
    assert "same 3 items" in alone(claim(over="theirs"), trials)["explained"]


def test_where_takes_a_value_or_one_of_a_list():
    trials = rows("ours", "ww", people=2) + rows("ours", "ccc", people=3) + rows("ours", "cccw", people=4)

    def counted(**where):
        return re.search(r"\d+/\d+", alone(claim(at_least=0.5, where=where), trials)["explained"])[0]

    assert counted() == "6/9"
    assert counted(people=3) == "3/3"
    assert counted(people=[3, 4]) == "6/7"
    assert counted(people=[2, 4], model="m") == "3/6"
    assert "has 0 trials" in alone(claim(at_least=0.5, where={"people": 5}), trials)["explained"]
    assert "has 0 trials" in alone(claim(at_least=0.5, where={"peple": 3}), trials)["explained"]


def test_where_holds_for_both_arms():
    trials = rows("ours", "c" * 6, model="a") + rows("theirs", "w" * 6, model="a")
    trials += rows("ours", "w" * 6, model="b") + rows("theirs", "c" * 6, model="b")
    assert alone(claim(over="theirs", where={"model": "a"}), trials)["verdict"] == "supported"
    assert alone(claim(over="theirs", where={"model": "b"}), trials)["verdict"] == "contradicted"


def test_an_item_tried_twice_at_one_seed_leaves_a_comparison_open():
    once = rows("ours", "c" * 8) + rows("theirs", "w" * 8)
    assert alone(claim(over="theirs"), once)["verdict"] == "supported"
    for again in (rows("ours", "w", model="b"), rows("theirs", "c", model="b"), rows("ours", "c")):
        found = alone(claim(over="theirs"), once + again)
        assert (found["verdict"], found["p"], found["effect"]) == ("not supported", None, None)
        assert "ambiguous" in found["explained"]
        assert alone(claim(over="theirs"), (once + again)[::-1]) == found
    other = rows("ours", "w", model="b")
    assert alone(claim(over="theirs", where={"model": "m"}), once + other)["verdict"] == "supported"


def test_over_where_sets_the_other_side_apart():
    trials = rows("ours", "c" * 7, model="real") + rows("ours", "w" * 7, model="floor")
    trials += rows("ours", "w" * 7, model="third")
    asked = claim(over="ours", where={"model": "real"}, over_where={"model": "floor"})
    found = alone(asked, trials)
    assert (found["verdict"], found["effect"]) == ("supported", 1.0)
    assert "ours real alone was right 7 times and ours floor alone 0 times" in found["explained"]
    turned = claim(over="ours", where={"model": "floor"}, over_where={"model": "real"})
    assert alone(turned, trials)["verdict"] == "contradicted"


def test_other_arms_do_not_count():
    noise = rows("others", "c" * 50) + rows("our", "c" * 50)
    trials = rows("ours", "cw" * 4)
    assert alone(claim(at_most=0.9), trials + noise) == alone(claim(at_most=0.9), trials)


def test_what_the_claim_says_is_passed_on():
    found = alone(claim(at_least=0.5), [])
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
    one = alone(claim(over="theirs", p_below=p_below), trials)
    other = alone(claim(arm="theirs", over="ours", p_below=p_below), trials)
    assert other["verdict"] == MIRROR[one["verdict"]]
    assert alone(claim(under="theirs", p_below=p_below), trials)["verdict"] == other["verdict"]
    assert alone(claim(arm="theirs", under="ours", p_below=p_below), trials)["verdict"] == one["verdict"]
    assert other["p"] == one["p"]
    if one["effect"] is not None:
        assert other["effect"] == pytest.approx(-one["effect"])


def test_less_is_the_mirror_of_more():
    trials = rows("ours", "w" * 8) + rows("theirs", "c" * 8)
    less, more = alone(claim(under="theirs"), trials), alone(claim(over="theirs"), trials)
    assert (less["verdict"], more["verdict"]) == ("supported", "contradicted")
    assert (less["p"], less["effect"]) == (more["p"], more["effect"])
    assert "the claim asks for less, with p < 0.05" in less["explained"]


def test_n_counts_what_the_verdict_rests_on():
    ours, theirs = rows("ours", "ccwfe"), rows("theirs", "cwe", model="other")
    assert alone(claim(at_least=0.5), ours + theirs)["n"] == 4
    assert alone(claim(over="theirs"), ours + theirs)["n"] == 2, "pairs both of which ran"
    assert alone(claim(at_least=0.5, where={"model": "none"}), ours)["n"] == 0
    assert alone(claim(over="nobody"), ours)["n"] == 0


def test_models_are_those_of_the_arm_that_the_claim_is_about():
    random = {"model": "simulated:random"}
    trials = rows("ours", "cw") + rows("ours", "cw", **random) + rows("theirs", "c", model="x")
    assert alone(claim(at_least=0.5), trials)["models"] == ["m", "simulated:random"]
    assert alone(claim(at_least=0.5, where=random), trials)["models"] == ["simulated:random"]
    over = {"over": "theirs", "over_where": {"model": "x"}}
    assert alone(claim(where=random, **over), trials)["models"] == ["simulated:random"]
    assert alone(claim(at_least=0.5), [])["models"] == []


# --- no difference beyond a margin, and equality ----------------------------------------------------------------


def same(margin, **changes):
    return claim(same_as="theirs", margin=margin, **changes)


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ("cw" * 100, "cw" * 100, "supported"),
        ("cw" * 5, "cw" * 5, "not supported"),  # too few to say
        ("c" * 100, "w" * 100, "contradicted"),
        ("w" * 100, "c" * 100, "contradicted"),
        ("c", "c", "not supported"),
    ],
)
def test_no_difference_beyond_a_margin(ours, theirs, verdict):
    found = alone(same(0.1), rows("ours", ours) + rows("theirs", theirs))
    assert (found["verdict"], found["p"], found["p_holm"]) == (verdict, None, None)
    assert ("within ± 10%" in found["explained"]) == (len(ours) > 1)


@given(RESULTS, st.sampled_from([0.02, 0.1, 0.3]), st.sampled_from([0.05, 0.4]))
@settings(deadline=None)
def test_a_wider_margin_never_takes_support_away(pairs, margin, more):
    pairs = [*pairs, *[("c", "c")] * 80]
    trials = rows("ours", [a for a, _ in pairs]) + rows("theirs", [b for _, b in pairs])
    narrow, wide = alone(same(margin), trials), alone(same(margin + more), trials)
    order = ["contradicted", "not supported", "supported"]
    assert order.index(wide["verdict"]) >= order.index(narrow["verdict"])
    turned = alone(claim(arm="theirs", same_as="ours", margin=margin), trials)
    assert turned["verdict"] == narrow["verdict"]


@pytest.mark.parametrize(
    ("right", "verdict"), [(500, "supported"), (460, "not supported"), (300, "contradicted"), (700, "contradicted")]
)  # fmt: skip
def test_equality_within_a_tolerance_is_about_the_whole_interval(right, verdict):
    found = alone(claim(equals=0.5, within=0.05), rows("ours", "c" * right + "w" * (1000 - right)))
    assert (found["verdict"], found["p"]) == (verdict, None)
    assert found["effect"] == pytest.approx(right / 1000 - 0.5)
    assert "lie within 50% ± 5%" in found["explained"]


def test_equality_is_of_every_trial_and_the_first_that_differs_is_named():
    found = alone(claim(equals=1), rows("ours", "ccc"))
    assert (found["verdict"], found["n"], found["explained"]) == ("supported", 3, "accuracy 1 in each of 3 trials")  # fmt: skip
    assert alone(claim(equals=1), rows("ours", "c"))["verdict"] == "supported"
    assert alone(claim(equals=1), rows("ours", "e"))["verdict"] == "not supported"
    trials = rows("ours", "cwfc")
    for order in (trials, trials[::-1]):
        found = alone(claim(equals=1), order)
        assert (found["verdict"], found["effect"]) == ("contradicted", -0.5)
        assert "asks for accuracy 1 in every trial, and 2 of 4 have another value" in found["explained"]
        assert "the first is item-1 at seed 1: 0" in found["explained"]


def test_equality_in_every_trial_is_not_shown_by_those_that_have_the_measure():
    found = alone(claim(measure="depth", equals=2), measured("ours", [2, None, 2]))
    assert (found["verdict"], found["n"]) == ("not supported", 2)
    assert found["explained"] == (
        "not tested: depth 2 in 2 trials (1 of 3 trials of ours have no depth), and the claim asks for it in every trial"
    )
    assert (
        alone(claim(measure="depth", equals=2), measured("ours", [2, None, 3]))["verdict"] == "contradicted"
    )


def test_equality_is_exact():
    nearly = measured("ours", [0.3, 0.1 + 0.2])
    found = alone(claim(measure="depth", equals=0.3), nearly)
    assert found["verdict"] == "contradicted" and "0.30000000000000004" in found["explained"]


# --- other measures ----------------------------------------------------------------------------------------------


def measured(arm, values, name="depth", **params):
    """One correct trial per value; None for one that did not record it."""
    return [
        row | {"measures": {} if value is None else {name: value}}
        for row, value in zip(rows(arm, "c" * len(values), **params), values, strict=True)
    ]


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=30), st.floats(-20, 20))
@settings(deadline=None)
def test_bounds_on_a_mean_against_the_t_interval_of_scipy(values, bound):
    found = alone(claim(measure="depth", at_least=bound), measured("ours", values))
    if len(set(values)) == 1:
        assert found["verdict"] == "not supported" and "not differ" in found["explained"]
        return
    low, high = t.interval(0.95, len(values) - 1, np.mean(values), sem(values))
    expected = "supported" if low >= bound else "contradicted" if high < bound else "not supported"
    assert (found["verdict"], found["n"]) == (expected, len(values))
    assert found["effect"] == pytest.approx(np.mean(values) - bound)
    mirrored = measured("ours", [-value for value in values])
    assert alone(claim(measure="depth", at_most=-bound), mirrored)["verdict"] == expected


def test_what_every_trial_has_can_be_compared():
    trials = [row | {"tokens": 100 + n, "iterations": 2, "seconds": 0.5} for n, row in enumerate(rows("ours", "c" * 12))]  # fmt: skip
    trials += [row | {"tokens": 900 + n, "iterations": 2, "seconds": 0.5} for n, row in enumerate(rows("theirs", "w" * 12))]  # fmt: skip
    fewer = alone(claim(measure="tokens", under="theirs"), trials)
    assert (fewer["verdict"], fewer["n"], fewer["effect"]) == ("supported", 12, -800)
    assert fewer["p"] == pytest.approx(2 / 2**12)  # exact: of 2^12 ways of swapping two are as extreme
    for shown in (
        "mean tokens 106 for ours and 906 for theirs",
        "difference -800",
        "exact paired permutation test",
    ):
        assert shown in fewer["explained"]
    alike = alone(claim(measure="iterations", over="theirs"), trials)
    assert (alike["verdict"], alike["p"], alike["effect"]) == ("not supported", 1.0, 0)
    assert alone(claim(measure="iterations", equals=2), trials)["verdict"] == "supported"
    assert alone(claim(measure="seconds", at_most=1), trials)["verdict"] == "not supported", "no interval"


def test_a_yes_or_no_measure_is_a_share():
    yes, no = measured("ours", [True] * 20, "clean"), measured("theirs", [False] * 20, "clean")
    found = alone(claim(measure="clean", at_least=0.5), yes)
    assert found["verdict"] == "supported" and "clean in 20/20 = 100.0%" in found["explained"]
    found = alone(claim(measure="clean", over="theirs"), yes + no)
    assert found["p"] == pytest.approx(binomtest(20, 20).pvalue)
    assert "ours alone had clean 20 times" in found["explained"]


def test_a_measure_that_nobody_recorded_is_named_beside_those_there_are():
    found = alone(claim(measure="dept", at_least=3), measured("ours", [4, 5]))
    assert (found["verdict"], found["n"], found["effect"]) == ("not supported", 0, None)
    assert found["explained"] == (
        "not tested: no trial of ours has the measure dept; there are accuracy, iterations, tokens, seconds, depth"
    )
    other = alone(claim(measure="depth", over="theirs"), measured("ours", [1, 2]) + rows("theirs", "cc"))
    assert "no trial of theirs has the measure depth" in other["explained"]


def test_trials_without_the_measure_are_left_out_and_counted():
    trials = measured("ours", [1, 2, None, 3]) + measured("theirs", [1, None, 1, 1])
    found = alone(claim(measure="depth", at_least=0), trials)
    assert found["n"] == 3 and "(1 of 4 trials of ours have no depth)" in found["explained"]
    found = alone(claim(measure="depth", over="theirs"), trials)
    assert found["n"] == 2 and "(1 of 4 trials of theirs have no depth)" in found["explained"]


# --- several trials on one item ----------------------------------------------------------------------------------


def seeded(arm, results, seeds=3, **params):
    """`results` has a letter per trial, the seeds of each item side by side."""
    return [
        row
        for seed in range(seeds)
        for row in rows(arm, results[seed::seeds], **params)
        for row in [row | {"seed": seed}]
    ]


def test_repeating_every_trial_adds_nothing_to_a_comparison():
    ours, theirs = "cccccwcccc", "wwwcwwwwww"
    once = rows("ours", ours) + rows("theirs", theirs)
    thrice = [row | {"seed": seed} for row in once for seed in range(3)]
    for kind in ({"over": "theirs"}, {"under": "theirs"}, {"same_as": "theirs", "margin": 0.3}):
        one, more = alone(claim(**kind), once), alone(claim(**kind), thrice)
        assert [one[key] for key in ("verdict", "n", "p", "effect")] == [
            more[key] for key in ("verdict", "n", "p", "effect")
        ]
    assert "on the same 10 items (30 trials on each side), ours alone was right" in more["explained"]


def test_repeating_every_trial_makes_no_bound_surer():
    once = rows("ours", "c" * 34 + "w" * 6)
    often = [row | {"seed": seed} for row in once for seed in range(20)]
    for bound in (0.70, 0.72, 0.75):
        asked = claim(at_least=bound)
        assert alone(asked, often)["verdict"] == alone(asked, once)["verdict"]
    found = alone(claim(at_least=0.75), often)
    assert found["n"] == 800 and "680/800" in found["explained"] and "over 40 items" in found["explained"]
    assert alone(claim(at_least=0.1), rows("ours", "c") * 5)["explained"].startswith("not tested: ours has 5 trials on a single item")  # fmt: skip


def test_an_item_that_was_tried_a_thousand_times_carries_no_bound():
    easy, others = rows("ours", "c"), rows("ours", "w" * 11)[1:]
    trials = [row | {"seed": seed} for row in easy for seed in range(1000)] + others
    found = alone(claim(at_least=0.9), trials)
    assert (found["verdict"], found["n"]) == ("contradicted", 1010)
    assert found["effect"] == pytest.approx(1 / 11 - 0.9)
    assert "9.1% " in found["explained"] and "1000/1010 in all over 11 items" in found["explained"]
    deep = [
        row | {"measures": {"depth": 5.0 if row["result"] == "correct" else n % 2}}
        for n, row in enumerate(trials)
    ]
    found = alone(claim(measure="depth", at_least=4), deep)
    low, high = t.interval(0.95, 10, np.mean([5] + [0, 1] * 5), sem([5] + [0, 1] * 5))
    assert (found["verdict"], found["n"]) == ("contradicted", 1010)
    assert f"[{low:.3g}, {high:.3g}], n = 1010 over 11 items" in found["explained"]


def test_shares_of_items_are_compared_by_swapping_items():
    # Of three seeds ours is right at two more on five items, at one more on three, and at one less on the last.
    ours, theirs = "ccw" * 5 + "ccc" * 3 + "www", "www" * 5 + "ccw" * 3 + "cww"
    found = alone(claim(over="theirs"), seeded("ours", ours) + seeded("theirs", theirs))
    differences = [2 / 3] * 5 + [1 / 3] * 3 + [-1 / 3]
    signs = [
        sum(s * d for s, d in zip(sign, differences, strict=True)) for sign in product((1, -1), repeat=9)
    ]
    extreme = sum(abs(total) >= sum(differences) - 1e-9 for total in signs)
    assert found["p"] == pytest.approx(extreme / 2**9)
    assert (found["verdict"], found["n"]) == ("supported", 9)
    assert found["effect"] == pytest.approx(sum(differences) / 9)
    for shown in ("9 items (27 trials on each side)", "exact paired permutation test on the items' means", "mean accuracy 70.4% for ours and 25.9% for theirs"):  # fmt: skip
        assert shown in found["explained"]


def test_a_seed_that_could_not_run_takes_its_partner_with_it_and_leaves_the_item():
    ours = [row | {"seed": seed} for seed, letter in enumerate("cce") for row in rows("ours", letter * 8)]
    theirs = [row | {"seed": seed} for seed, letter in enumerate("wcw") for row in rows("theirs", letter * 8)]
    found = alone(claim(over="theirs"), ours + theirs)
    assert (found["n"], found["effect"]) == (8, 0.5)
    assert "(16 trials on each side)" in found["explained"]


@given(RESULTS, st.sampled_from([{"over": "theirs"}, {"same_as": "theirs", "margin": 0.2}, {"at_least": 0.5}, {"equals": 1}]))  # fmt: skip
@settings(deadline=None, max_examples=50)
def test_trials_of_other_arms_change_nothing(pairs, kind):
    trials = rows("ours", [a for a, _ in pairs]) + rows("theirs", [b for _, b in pairs])
    noise = rows("others", "cwcwe") + measured("our", [1.0])
    assert alone(claim(**kind), noise + trials) == alone(claim(**kind), trials)


# --- words that do not contradict the verdict --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["at_least", "at_most"])
@pytest.mark.parametrize("off", [-1e-5, 1e-5])
def test_an_end_of_an_interval_does_not_read_like_a_bound_that_it_misses(kind, off):
    interval = wilson(60, 100)
    bound = (interval.low if kind == "at_least" else interval.high) + off
    found = alone(claim(**{kind: bound}), rows("ours", "c" * 60 + "w" * 40))
    low, high, asked = (
        float(one) for one in re.findall(r"[\d.]+(?=%)", found["explained"].replace("95 %", ""))[1:]
    )
    held = low >= asked if kind == "at_least" else high <= asked
    assert held == (found["verdict"] == "supported")


def test_small_large_and_negative_zero_numbers():
    large = alone(claim(measure="depth", at_most=999.7), measured("ours", [999.5, 999.7, 999.6]))
    assert "mean depth 999.6 [999.4, 999.8]" in large["explained"] and "at most 999.7" in large["explained"]
    nothing = alone(
        claim(measure="depth", over="theirs"), measured("ours", [-0.0, 1.0]) + measured("theirs", [0.0, 1.0])
    )
    assert "difference +0, " in nothing["explained"]
    small = alone(claim(measure="depth", at_least=0), measured("ours", [1e-6, 2e-6, 3e-6]))
    assert "mean depth 2e-06 [-4.84e-07, 4.48e-06]" in small["explained"]
