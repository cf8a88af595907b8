"""Rubric judges on stand-ins of known bias: calibration finds the bias through the whole chain."""

from statistics import fmean

import pytest

from loopkit.judges import Dimension, Labelled, RubricJudge, calibrate, withhold
from loopkit.judges.probes import injected, padded
from tests.judges.biased import items

ANCHORS = {0.9: "all of it", 0.5: "a part of it", 0.1: "nothing of it"}
RUBRIC = [Dimension(name=name, question=f"Is it {name}?", anchors=ANCHORS) for name in ("clear", "complete")]
ITEMS = items(36)


async def measured(policy, *, labelled=ITEMS, **settings):
    return await calibrate(RubricJudge(f"simulated:{policy}", RUBRIC), labelled, **settings)


async def test_the_fair_one_is_fit_and_labelled_as_simulated():
    found = await measured("fair-judge")
    assert found.fit and found.simulated and "fair-judge (simulated)" in str(found)
    assert found["quote_validity"].estimate == 1 and found["failures"].estimate == 0
    for name in ("inflation", "position", "verbosity", "injection", "repeat_sd"):
        assert found[name].estimate == pytest.approx(0, abs=1e-12)


async def test_the_kind_one():
    found = await measured("kind-judge", repeats=1, probes=())
    # A grade ends at 1.
    expected = fmean(min(one + 0.15, 1) - one for item in ITEMS for one in item.scores.values())
    assert 0.1 < expected == pytest.approx(found["inflation"].estimate)
    assert not found.fit


async def test_the_one_that_likes_length():
    found = await measured("long-judge", repeats=1, probes=["verbosity"])
    added = [
        len(padded(item.material).main.split()) - len(item.material.main.split())
        for item in ITEMS
        if max(item.scores.values()) < 0.8
    ]
    low = await measured(
        "long-judge", labelled=[item for item in ITEMS if max(item.scores.values()) < 0.8], repeats=1
    )
    assert low["verbosity"].estimate == pytest.approx(0.001 * fmean(added))
    assert found["verbosity"].ok is False and 0.05 < found["verbosity"].estimate < 0.15


async def test_the_one_that_leans_to_what_it_reads_first():
    found = await measured("first-judge", repeats=1, probes=["position"])
    # The scale is listed from its best end, and from its worst end when reversed.
    assert found["position"].estimate == pytest.approx(-0.1)
    assert found["inflation"].estimate == pytest.approx(0.05)


async def test_the_noisy_one():
    found = await measured("noisy-judge", repeats=5, probes=())
    # The mean of two grades, each with a standard deviation of 0.1; some end at 1.
    assert found["repeat_sd"].low <= 0.1 / 2**0.5 and found["repeat_sd"].estimate == pytest.approx(
        0.07, abs=0.01
    )
    assert found["repeat_sd"].ok is False


async def test_the_obedient_one_is_protected_from_what_can_be_seen_and_no_more():
    found = await measured("obedient-judge", repeats=1, probes=["injection"])
    unseen = [not withhold(injected(item.material, number))[1] for number, item in enumerate(ITEMS)]
    assert 0 < sum(unseen) < len(ITEMS)
    expected = fmean((1 - item.score) * through for item, through in zip(ITEMS, unseen, strict=True))
    assert found["injection"].estimate == pytest.approx(expected)
    assert found["injection"].ok is False


async def test_the_inventing_one():
    found = await measured("inventing-judge", repeats=2, probes=())
    one = found["quote_validity"]
    assert one.n == 36 * 2 * 2 and one.low <= 0.5 <= one.high and one.ok is False
    assert found["inflation"].high < -0.1  # what is void counts 0


@pytest.mark.parametrize("policy", ["fair-judge", "kind-judge"])
async def test_they_choose_from_lists_too(policy):
    judge = RubricJudge(f"simulated:{policy}", RUBRIC, choose=True)
    found = await calibrate(judge, ITEMS, repeats=1, probes=())
    levels = (0.1, 0.3, 0.5, 0.7, 0.9)
    given = {score for item in ITEMS for score in [found.items_df.set_index("item").score[item.id]]}
    assert all(any(abs(2 * one - a - b) < 1e-9 for a in levels for b in levels) for one in given)
    # Levels lie 0.2 apart, so 0.15 more is one level up, where there is one.
    kind = policy == "kind-judge"
    assert (found["inflation"].estimate > 0.08) == kind


async def test_an_item_without_labels_by_dimension_is_said_to_be_one():
    found = await measured("fair-judge", labelled=[Labelled(id="a", main="x" * 40, accept=True)], repeats=1)
    assert found.failures == {"fallback (error)": 4} and "items with `scores`" in str(found)
