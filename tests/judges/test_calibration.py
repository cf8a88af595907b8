"""Calibration: biases that are known are found, with sign and size; nothing is dropped, and nothing is asked twice."""

import asyncio
import json
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from loopkit.judges import Calibration, Check, Fitness, Hybrid, Labelled, calibrate
from loopkit.judges.probes import INJECTIONS
from loopkit.metrics import Estimate, clustered
from loopkit.store import Store
from loopkit.verdict import Failure, Verdict
from tests.judges.biased import Biased, items

ITEMS = items()
BIASES = ("inflation", "position", "verbosity", "injection")


async def measured(judge, labelled=ITEMS, **settings):
    return await calibrate(judge, labelled, **settings)


async def test_a_judge_that_gives_the_label_is_fit():
    found = await measured(Biased())
    assert found.fit and found.reasons == ()
    assert [found[name].estimate for name in ("kappa", "weighted", "spearman")] == pytest.approx([1, 1, 1])
    assert {found[name].estimate for name in (*BIASES, "repeat_sd")} == {0}
    assert found["quote_validity"].estimate == 1
    assert (found["false_accepts"].n, found["false_rejects"].n) == (48, 24)
    assert all(one.ok for one in found.measures if one.asked)


@pytest.mark.parametrize("kind", [0.15, -0.15])
async def test_inflation_is_found(kind):
    found = await measured(Biased(kind=kind, noise=0.02))
    one = found["inflation"]
    assert one.low <= kind <= one.high and one.high - one.low < 0.02
    for dimension in ("clear", "complete"):
        assert found[f"inflation of {dimension}"].estimate == pytest.approx(one.estimate)
    assert not found.fit and any("inflation" in reason for reason in found.reasons)
    assert abs(found["verbosity"].estimate) < 0.02 and abs(found["position"].estimate) < 0.02


async def test_length_that_is_liked_is_found():
    found = await measured(Biased(per_word=0.001))
    # A text of 60 to 140 words gets as many again, up to the end of a sentence.
    words = fmean(len(item.main.split()) for item in ITEMS)
    assert words <= found["verbosity"].estimate / 0.001 <= words + 20
    assert found["verbosity"].ok is False and found["inflation"].ok


async def test_length_that_is_disliked_is_no_fault():
    assert (await measured(Biased(per_word=-0.001))).fit


@pytest.mark.parametrize("first", [0.05, -0.05])
async def test_the_order_that_counts_is_found(first):
    found = await measured(Biased(first=first, noise=0.01))
    assert found["position"].low <= -2 * first <= found["position"].high
    assert found["position"].ok is False
    assert found["inflation"].low <= first <= found["inflation"].high


async def test_noise_is_found():
    found = await measured(Biased(noise=0.1), repeats=5)
    assert found["repeat_sd"].low <= 0.1 <= found["repeat_sd"].high
    assert found["repeat_sd"].high - found["repeat_sd"].low < 0.03
    assert found["repeat_sd"].ok is False and found["inflation"].low <= 0 <= found["inflation"].high


async def test_obedience_is_found():
    found = await measured(Biased(obeys=True))
    assert found["injection"].estimate == pytest.approx(fmean(1 - item.score for item in ITEMS))
    assert found["injection"].ok is False and found["verbosity"].estimate == 0


async def test_every_wording_of_an_injection_is_used():
    seen = []

    def judge(candidate, observation=None):
        seen.extend(line for line in INJECTIONS if line in candidate.main)
        return 0.5

    await measured(judge, ITEMS[: len(INJECTIONS)])
    assert sorted(seen) == sorted(INJECTIONS)


async def test_invented_quotes_are_found():
    found = await measured(Biased(invents=True))
    one = found["quote_validity"]
    assert one.estimate == 0.5 and one.n == 72 * 6 * 2 and one.ok is False
    assert set(found.items_df.voids.iloc[0]) == {"clear"}


async def test_agreement_is_that_of_other_libraries():
    found = await measured(Biased(noise=0.2), repeats=1, probes=())
    frame = found.items_df
    assert found["kappa"].estimate == pytest.approx(cohen_kappa_score(frame.label_accept, frame.accept))
    assert found["spearman"].estimate == pytest.approx(spearmanr(frame.label, frame.score).statistic)
    bands = [(frame[name] * 5).astype(int).clip(0, 4) for name in ("label", "score")]
    assert found["weighted"].estimate == pytest.approx(cohen_kappa_score(*bands, weights="quadratic"))
    wrong = frame[~frame.label_accept]
    assert found["false_accepts"].estimate == pytest.approx((wrong.score >= 0.8).mean())
    right = frame[frame.label_accept]
    assert found["false_rejects"].estimate == pytest.approx((right.score < 0.8).mean())


async def test_what_is_barred_is_not_accepted():
    found = await measured(
        lambda candidate, observation=None: Verdict(score=1, barred="no licence"), probes=()
    )
    assert not found.items_df.accept.any()
    assert (found["false_accepts"].estimate, found["false_rejects"].estimate) == (0, 1)
    assert found["inflation"].estimate == pytest.approx(fmean(1 - item.score for item in ITEMS))


async def test_what_failed_is_a_rejection_that_says_nothing_about_scores():
    def judge(candidate, observation=None):
        if len(candidate.main) % 2:
            raise Failure("malformed", "no grade")
        return Verdict(score=0, barred="the model was silent", fallback="failure")

    found = await measured(judge, repeats=2)
    assert found["failures"].estimate == 1 and set(found.failures) == {"malformed", "fallback (failure)"}
    assert sum(found.failures.values()) == 72 * 4
    assert (found["false_accepts"].n, found["false_rejects"].estimate) == (48, 1)
    assert {found[name].n for name in ("inflation", "spearman", "verbosity", "repeat_sd")} == {0}
    assert not found.fit and any("(inflation) was not measured" in reason for reason in found.reasons)
    assert "fallback (failure)" in str(found)


async def test_a_broken_network_is_counted_and_scored_as_nothing():
    calls = []

    async def judge(candidate, observation=None):
        calls.append(candidate)
        if candidate.main == ITEMS[0].main:
            raise ConnectionError("no route")
        return 0.9

    found = await measured(judge, repeats=1, probes=())
    assert found.failures == {"ConnectionError": 1} and found["failures"].n == len(calls) == 72
    assert found["false_rejects"].n == 23 and found["inflation"].n == 71
    assert found.items_df.accept.iloc[0] is None or found.items_df.accept.isna().iloc[0]


async def test_few_items_are_too_few_however_well_the_judge_does():
    found = await measured(Biased(), ITEMS[:18])
    assert not found.fit
    assert any("too few" in reason for reason in found.reasons)
    assert any("kappa" in reason and "20 are asked" in reason for reason in found.reasons)


async def test_a_set_without_rejected_items_cannot_show_a_judge_fit():
    found = await measured(Biased(), [item for item in ITEMS if item.accept])
    assert {"kappa", "false_accepts"} <= {one.name for one in found.measures if one.ok is False}
    assert any("(false_accepts) was not measured" in reason for reason in found.reasons)


async def test_what_a_judge_cannot_do_is_not_measured():
    found = await measured(lambda candidate, observation=None: 0.5)
    assert found["position"].estimate is None and found["position"].ok is None
    assert found["quote_validity"].n == 0
    assert "not measured" in str(found)


async def test_checks_around_a_judge_that_has_no_other_order_do_not_give_it_one():
    check = Check(name="any", test=lambda material: True)
    for judge, measured_on in ((Biased(first=0.05), 6), (lambda candidate, observation=None: 0.5, 0)):
        found = await measured(Hybrid(checks=[check], judge=judge), ITEMS[:6], repeats=1, probes=["position"])
        assert found["position"].n == measured_on


async def test_probes_that_are_not_asked_for_are_not_made():
    calls = []
    judge = lambda candidate, observation=None: calls.append(candidate) or 0.5  # noqa: E731
    found = await measured(judge, ITEMS[:4], repeats=2, probes=["injection"])
    assert len(calls) == 4 * 3 and found["verbosity"].n == 0 and found["injection"].n == 4


async def test_so_many_items_at_a_time_each_with_its_own_truth():
    running, most = 0, 0

    async def judge(candidate, observation=None):
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        before = Biased()(candidate)
        await asyncio.sleep(0)
        assert Biased()(candidate) == before
        running -= 1
        return before

    told = []
    found = await measured(
        judge, ITEMS[:8], parallel=3, on_done=lambda done, total: told.append((done, total))
    )
    assert most == 3 and found["inflation"].estimate == 0
    assert told == [(n, 8 * 5) for n in range(1, 41)]


async def test_nothing_is_asked_twice(tmp_path):
    store, calls = Store(tmp_path), []

    def judge(candidate, observation=None):
        calls.append(candidate)
        return Biased(noise=0.1)(candidate)

    def interrupt(done, total):
        if done == 17:
            raise RuntimeError("interrupted")

    said = {"name": "j", "params": {"model": "m"}, "repeats": 2, "store": store}
    with pytest.raises(RuntimeError, match="interrupted"):
        await measured(judge, ITEMS[:10], **said, on_done=interrupt)
    assert 17 <= len(calls) < 22
    found = await measured(judge, ITEMS[:10], **said)
    assert len(calls) == 10 * 4
    assert await measured(judge, ITEMS[:10], **said) == found and len(calls) == 40
    (row,) = store.rows()
    assert row["status"] == "finished" and row["params"]["judge"] == "j"
    assert Calibration.from_dict(_last(store, row["run"])) == found
    more = await measured(judge, ITEMS[:11], **said | {"repeats": 3})
    assert len(calls) == 40 + 10 + 5 and len(more.items) == 11


def _last(store, run):
    event = store.run(run).all("calibration")[-1]
    return {name: event[name] for name in Calibration.__dataclass_fields__}


async def test_another_judge_another_label_or_another_seed_is_asked_anew(tmp_path):
    calls = []
    judge = lambda candidate, observation=None: calls.append(candidate) or 0.5  # noqa: E731
    said = {"name": "j", "repeats": 1, "probes": (), "store": Store(tmp_path)}
    changed = ITEMS[0].model_copy(update={"main": "other"})
    for labelled, other in (
        (ITEMS[:2], {}), (ITEMS[:2], {"name": "k"}), (ITEMS[:2], {"params": {"rubric": "b"}}),
        (ITEMS[:2], {"seed": 9}), ([changed, ITEMS[1]], {}), (ITEMS[:2], {}),
    ):  # fmt: skip
        await measured(judge, labelled, **said | other)
    assert len(calls) == 2 + 2 + 2 + 2 + 1 + 0


async def test_what_may_have_been_the_network_is_asked_again_and_a_failure_is_not(tmp_path):
    calls = []

    def judge(candidate, observation=None):
        calls.append(candidate)
        if candidate.main == ITEMS[0].main:
            raise ConnectionError("no route")
        if candidate.main == ITEMS[1].main:
            return Verdict(score=0, barred="no route either", fallback="error")
        raise Failure("empty", "no word")

    for _ in range(2):
        found = await measured(judge, ITEMS[:4], repeats=1, probes=(), store=Store(tmp_path))
    assert len(calls) == 4 + 2 and found.failures == {"ConnectionError": 1, "fallback (error)": 1, "empty": 2}
    assert found.first_failure == "no route"


@pytest.mark.parametrize(
    ("labelled", "settings", "said"),
    [
        ([], {}, "nothing to judge"),
        ([ITEMS[0], ITEMS[0]], {}, "item-0"),
        (ITEMS, {"probes": ["colour"]}, "colour"),
        (ITEMS, {"threshold": float("nan")}, "nan"),
        (ITEMS, {"repeats": 0}, "repeats must be >= 1, got 0"),
        (ITEMS, {"parallel": 0}, "parallel must be >= 1, got 0"),
    ],
)
async def test_what_makes_no_sense_is_refused(labelled, settings, said):
    with pytest.raises(ValueError, match=said):
        await measured(Biased(), labelled, **settings)


async def test_it_can_be_written_down_and_shown():
    found = await measured(Biased(kind=0.15), name="simulated:<kind>", repeats=2)
    assert Calibration.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert list(found.df.columns) == ["name", "n", "estimate", "low", "high", "asked", "ok"]
    assert set(found.df.name) == {one.name for one in found.measures} and len(found.items_df) == 72
    text, page = str(found), found._repr_html_()
    assert "<kind> (simulated)" in text and "NOT FIT TO STOP A LOOP" in text
    assert "&lt;kind&gt; (simulated)" in page and "<kind>" not in page
    for reason in found.reasons:
        assert reason in text
    with pytest.raises(KeyError, match=r"no measure 'colour'; there are kappa"):
        found["colour"]


NAMES = ("kappa", "spearman", "inflation", "false_accepts", "position", "verbosity", "quote_validity")


@given(
    st.sampled_from(NAMES),
    st.tuples(*[st.floats(-1, 1)] * 3).map(sorted),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_measure_is_as_asked_when_its_whole_interval_is(name, numbers, one, other):
    low, estimate, high = numbers
    value = Estimate(n=50, estimate=estimate, low=low, high=high)
    least = name in ("kappa", "spearman", "quote_validity")
    strict, lax = sorted([one, other], reverse=least)
    measure = Fitness(**{name: strict}).measure(name, value)
    inside = low >= strict if least else high <= strict
    if name in ("inflation", "position"):
        inside = inside and low >= -strict
    assert measure.ok == inside and (measure.why is None) == inside
    assert not inside or Fitness(**{name: lax}).measure(name, value).ok


@settings(max_examples=10)
@given(st.sampled_from(list(Fitness.__dataclass_fields__)), st.sampled_from([-1, float("nan"), float("inf")]))
def test_a_threshold_that_makes_no_sense_is_refused(name, value):
    with pytest.raises(ValueError, match=f"Fitness.{name} .* got {value}"):
        Fitness(**{name: value})


def test_an_item_labelled_only_by_accept_can_be_calibrated_on():
    labelled = [Labelled(id=str(n), main="x" * n, accept=n % 2 == 0) for n in range(60)]
    judge = lambda candidate, observation=None: 1.0 - len(candidate.main) % 2  # noqa: E731
    found = asyncio.run(calibrate(judge, labelled, probes=()))
    assert found["kappa"].estimate == 1 and "inflation of clear" not in set(found.df.name)
    assert not found.fit and all("was not measured" in reason for reason in found.reasons), (
        "no probe was asked for"
    )


def test_many_observations_of_a_single_item_are_not_taken_for_alike():
    several = clustered([True] * 39 + [False], ["one"] * 40)
    assert "its 40 observations are of a single item" in Fitness().measure("quote_validity", several).why
    assert Fitness().measure("quote_validity", clustered([True] * 40, ["one"] * 40)).ok
