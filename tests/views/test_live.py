"""Watching a loop: the outcome is the loop's own, the view follows, and the stop button is a gate."""

import asyncio
import threading

import pytest
from IPython.display import DisplayHandle

from loopkit import Budget, MaxIterations, Stagnation, Threshold, watch
from loopkit.views.live import DRAW_EVERY


def page(live):
    return live._page.value


async def test_the_outcome_is_what_the_loop_alone_would_have_given(drafts, store):
    turns = 0.2, None, 0.5, 0.9
    alone = await drafts(*turns).run("goal")
    live = watch(drafts(*turns), "goal", log=store.create("r"))
    outcome = await live
    assert outcome.stopped_by == alone.stopped_by and outcome.best.candidate == alone.best.candidate
    assert [turn.score for turn in outcome.history] == [turn.score for turn in alone.history]
    assert not store.is_held("r"), "the log is closed"
    assert store.run("r").status == "finished"
    assert live.history == outcome.history and await live is outcome, "awaited as often as one likes"


async def test_the_curve_grows_and_the_doors_come_nearer(drafts, front_end):
    turns, let = asyncio.Queue(), asyncio.Event

    async def wait():
        await (await turns.get()).wait()

    gates = [Threshold(0.8), MaxIterations(4), Stagnation(3), Budget(tokens=60)]
    live = watch(drafts(0.2, 0.4, 0.3, 0.9, gates=gates, wait=wait), "goal")
    front_end(live._figure)
    assert "turn 1 is running" in page(live) and "turn 0 of at most 4" in page(live)
    seen = []
    for number in range(1, 4):
        going = let()
        turns.put_nowait(going)
        going.set()
        while len(live.history) < number:
            await asyncio.sleep(0)
        live.draw()
        (curve,) = [trace for trace in live._figure.live.data if trace.name == "best so far"]
        seen.append(
            (len(curve.x), page(live).count("25% of the way"), f"turn {number + 1} is running" in page(live))
        )
    assert [count for count, _, _ in seen] == [1, 2, 3] and all(running for _, _, running in seen)
    assert "value='0.750'" in page(live), "three of four turns"
    going = let()
    going.set()
    turns.put_nowait(going)
    outcome = await live
    assert outcome.stopped_by.gate == "Threshold"
    assert "<b>Threshold</b> opened" in page(live) and live.stop.disabled
    assert live.still().layout.annotations[0].text.startswith("Threshold")


async def test_the_stop_button_is_a_gate_and_the_run_can_be_resumed(drafts, store):
    going_on = asyncio.Event()
    loop = drafts(0.2, 0.4, 0.9, wait=going_on.wait)
    live = watch(loop, "goal", log=store.create("r"))
    await asyncio.sleep(0)
    thread = threading.Thread(target=live.stop.click)  # as JupyterLab's subshell does
    thread.start()
    thread.join()
    assert live.stop.disabled and "then it stops" in page(live)
    going_on.set()
    outcome = await live
    assert (outcome.stopped_by.gate, len(outcome.history)) == ("Cancel", 1)
    assert outcome.gates[-1] is live.gate and store.run("r").status == "stopped"
    outcome = await watch(loop, log=store.resume("r"))
    assert outcome.stopped_by.gate == "Threshold" and len(outcome.history) == 3


async def test_a_run_that_goes_wrong_raises_where_it_is_awaited_and_tells_it(drafts, store, recorded):
    recorded(drafts(0.2, 0.9))
    live = watch(drafts(0.2, 0.9), "another goal", log=store.resume("r"))
    with pytest.raises(ValueError, match="this run's goal is 'goal'"):
        await live
    assert "Irreproducible" in page(live) and not store.is_held("r")


async def test_cancelling_whoever_waits_cancels_the_run(drafts, store):
    live = watch(drafts(0.2, 0.9, wait=asyncio.Event().wait), "goal", log=store.create("r"))
    waiting = asyncio.ensure_future(live)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert "cancelled" in page(live) and store.run("r").status == "unfinished" and not store.is_held("r")


async def test_closing_the_view_stops_the_run_after_its_turn(drafts):
    going_on = asyncio.Event()
    live = watch(drafts(0.2, 0.4, 0.9, wait=going_on.wait), "goal")
    live.close()
    going_on.set()
    assert (await live).stopped_by.reason == "its view was closed"


async def test_where_nobody_listens_the_picture_that_was_displayed_shows_the_end(drafts, monkeypatch):
    shown = []

    def display(data, *, raw, display_id):
        shown.append(data)
        return DisplayHandle()

    monkeypatch.setattr("loopkit.views.live.display", display)
    monkeypatch.setattr(DisplayHandle, "update", lambda self, data, raw: shown.append(data))
    live = watch(drafts(0.2, 0.9), "goal")
    live._ipython_display_()
    await live
    assert len(shown) == 2 and "application/vnd.jupyter.widget-view+json" not in shown[1]


async def test_drawing_goes_on_by_itself(drafts):
    live = watch(drafts(0.2, 0.4, 0.9), "goal")
    await live._running
    await live._watching
    assert "<b>Threshold</b> opened" in page(live)
    assert DRAW_EVERY < 1


async def test_only_a_loop_can_be_watched(approval):
    with pytest.raises(TypeError, match="explore"):
        watch(approval)


def test_outside_of_an_event_loop_it_is_refused(drafts):
    with pytest.raises(RuntimeError, match=r"asyncio.run\(loop.run"):
        watch(drafts(0.9))
