"""All claims of a batch together: Holm's correction, and when each was declared."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from loopkit.batch.claims import Claim, adjudicate

NOON = "2026-11-30T12:00:00.000+00:00"


def over(first, second, **changes):
    return Claim(**{"id": f"{first}-{second}", "says": "More.", "arm": first, "over": second} | changes)


def rows(arm, results, ended=NOON):
    """One row per letter of `results` (c, w, e), on items 0, 1, 2, …"""
    words = {"c": "correct", "w": "wrong", "e": "error"}
    return [
        {
            "arm": arm,
            "item": f"item-{number}",
            "seed": 1,
            "model": "m",
            "result": words[letter],
            "ended": ended,
        }
        for number, letter in enumerate(results)
    ]


LETTERS = st.lists(st.sampled_from(["c", "c", "c", "w"]), min_size=12, max_size=12)


@given(st.lists(LETTERS, min_size=1, max_size=5), st.sampled_from([0.05, 0.3]))
@settings(deadline=None, max_examples=15)
def test_a_verdict_takes_the_p_that_statsmodels_corrects(arms, p_below):
    trials = rows("floor", "w" * 12)
    for number, letters in enumerate(arms):
        trials += rows(f"arm{number}", letters)
    claims = [over(f"arm{number}", "floor", p_below=p_below) for number in range(len(arms))]
    found = adjudicate([*claims, Claim(id="bound", says="s", arm="floor", at_most=0.5)], trials)
    assert (found[-1]["p"], found[-1]["p_holm"]) == (None, None), "and it counts as no test"
    corrected = multipletests([one["p"] for one in found[:-1]], method="holm")[1]
    for one, expected in zip(found[:-1], corrected, strict=True):
        assert one["p_holm"] == pytest.approx(expected)
        assert one["verdict"] == ("supported" if expected < p_below else "not supported")


def test_each_further_test_takes_its_part_and_the_sentence_has_both():
    trials = rows("ours", "c" * 7) + rows("theirs", "w" * 7)  # p = 2 / 2**7, about 0.016
    [alone] = adjudicate([over("ours", "theirs")], trials)
    assert (alone["verdict"], alone["p"], alone["p_holm"]) == ("supported", 2**-6, 2**-6)
    assert "p = 0.016 (the claim asks p < 0.05)" in alone["explained"] and "Holm" not in alone["explained"]
    same = [over("ours", "theirs", id=str(number)) for number in range(4)]
    for one in adjudicate(same, trials):
        assert (one["verdict"], one["p"], one["p_holm"]) == ("not supported", 2**-6, 4 * 2**-6)
        assert (
            "p = 0.016, 0.062 after Holm's correction over 4 claims (the claim asks p < 0.05)"
            in one["explained"]
        )


def test_what_could_not_be_tested_is_no_test():
    trials = rows("ours", "c" * 7) + rows("theirs", "w" * 7)
    first, *others = adjudicate(
        [over("ours", "theirs"), over("ours", "nobody"), over("nobody", "ours")], trials
    )
    assert first["p_holm"] == first["p"]
    assert [(one["p"], one["p_holm"]) for one in others] == [(None, None)] * 2


def test_no_claims():
    assert adjudicate([], rows("ours", "c")) == []


# --- declared before, or after ---------------------------------------------------------------------------------

BEFORE, AFTER = "2026-11-30T11:59:59.999+00:00", "2026-11-30T12:00:00.001+00:00"


def test_trials_that_had_ended_when_it_was_declared_make_it_post_hoc():
    claim = Claim(id="half", says="s", arm="ours", at_least=0.1)
    trials = rows("ours", "cce", BEFORE) + rows("ours", "ccccc", AFTER) + rows("theirs", "ccc", BEFORE)
    [found] = adjudicate([claim], trials, {claim.digest: NOON})
    assert (found["declared"], found["seen"], found["post_hoc"]) == (NOON, 2, True)
    assert found["explained"].endswith("; declared after 2 of its 7 trials were on record")
    assert found["verdict"] == adjudicate([claim], trials)[0]["verdict"], "the verdict is the same"
    [found] = adjudicate([claim], rows("ours", "cc", AFTER), {claim.digest: NOON})
    assert (found["seen"], found["post_hoc"]) == (0, False) and "declared" not in found["explained"]


def test_a_comparison_is_about_the_trials_of_both_sides_each_once():
    trials = rows("ours", "cc", AFTER) + rows("theirs", "cww", BEFORE)
    claim = over("ours", "theirs")
    [found] = adjudicate([claim], trials, {claim.digest: NOON})
    assert found["seen"] == 3 and "declared after 3 of its 5 trials" in found["explained"]
    itself = over("theirs", "theirs")
    assert adjudicate([itself], trials, {itself.digest: NOON})[0]["seen"] == 3


def test_a_claim_that_no_log_declares_is_neither():
    claim, other = over("ours", "theirs"), over("theirs", "ours")
    for declared in (None, {}, {other.digest: NOON}):
        [found] = adjudicate([claim], rows("ours", "cc"), declared)
        assert (found["declared"], found["seen"], found["post_hoc"]) == (None, None, None)
        assert found["digest"] == claim.digest


# --- what else is told of a verdict ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "terms",
    [{"at_least": 0.1}, {"equals": 1}, {"over": "theirs"}, {"same_as": "theirs", "margin": 0.1}, {"at_least": 2, "measure": "depth"}],
)  # fmt: skip
def test_trials_that_could_not_run_are_told_whatever_is_claimed(terms):
    trials = rows("ours", "ccc" + "e" * 99) + rows("theirs", "ccc")
    [found] = adjudicate([Claim(id="x", says="s", arm="ours", **terms)], trials)
    assert found["explained"].endswith("; 99 could not run")
    [found] = adjudicate([Claim(id="x", says="s", arm="ours", **terms)], [one for one in trials if one["result"] != "error"])  # fmt: skip
    assert "could not run" not in found["explained"]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [("simulated:a", "simulated:b", "all"), ("m", "simulated:b", "some"), ("simulated:a", "m", "some"), ("m", "n", "none")],
)  # fmt: skip
def test_simulated_is_about_both_sides(ours, theirs, expected):
    trials = [row | {"model": ours} for row in rows("ours", "cw")]
    trials += [row | {"model": theirs} for row in rows("theirs", "cw")]
    assert adjudicate([over("ours", "theirs")], trials)[0]["simulated"] == expected


def test_random_swaps_are_enough_for_holms_correction():
    def depth(arm, add):
        return [row | {"measures": {"depth": n % 5 + add}} for n, row in enumerate(rows(arm, "c" * 40))]

    trials = depth("ours", 3.5) + depth("theirs", 0)
    claims = [over("ours", "theirs", id=str(n), measure="depth", p_below=0.01) for n in range(10)]
    for one in adjudicate(claims, trials):
        assert one["verdict"] == "supported"
        assert one["p"] == pytest.approx(1 / 20_001) and "from 20,000 random swaps" in one["explained"]
    [alone] = adjudicate(claims[:1], trials)
    assert alone["p"] == pytest.approx(1 / 10_000) and "from 9,999 random swaps" in alone["explained"]
