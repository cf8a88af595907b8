"""The explorer: what it shows follows the slider and the log, and what its buttons do is on record."""

import asyncio
import threading

import pytest

from loopkit import MaxIterations, Stagnation, Store, StoreError, Threshold, explore
from loopkit.views.explorer import LOOK_EVERY, TORN


def said(explorer):
    return explorer._facts.value + explorer._said.value


def turn(explorer):
    return explorer.trace._page.value


async def pressed(button):
    """Press it, and let the loop do what was handed to it."""
    button.click()
    await asyncio.sleep(0)


def test_the_slider_goes_through_the_turns(drafts, recorded):
    explorer = explore(recorded(drafts(0.2, None, 0.5, 0.9)))
    assert (explorer.trace.slider.min, explorer.trace.slider.max, explorer.trace.at) == (1, 4, 4)
    for number, decision in enumerate(["keep", "crash", "keep", "keep"], 1):
        explorer.trace.slider.value = number
        assert f"iteration {number}: {decision}" in turn(explorer)
        shown = next(shape for shape in explorer.still().layout.shapes if shape.name == "shown")
        assert (shown.x0, shown.x1) == (number, number)
    assert "finished" in said(explorer) and "Threshold: score 0.9" in said(explorer)
    for control in (explorer.trace.slider, explorer.name, explorer.fork, explorer.resume, explorer.open_log):
        assert control.description, "a label for everybody"


def test_its_figure_follows_the_slider(drafts, recorded, front_end):
    explorer = explore(recorded(drafts(0.2, 0.5, 0.9)))
    live = front_end(explorer._figure)
    explorer.trace.slider.value = 2
    assert next(shape for shape in live.layout.shapes if shape.name == "shown").x0 == 2
    assert {trace.name for trace in live.data} == {trace.name for trace in explorer.still().data}


def test_a_log_is_opened_at_the_turn_that_is_looked_at(drafts, recorded, store):
    explorer = explore(recorded(drafts(0.2, 0.9)))
    assert explorer._lines.value == ""
    explorer.open_log.value = True
    assert str(store.path("r")) in explorer._lines.value and "from line 7" in explorer._lines.value
    explorer.trace.slider.value = 1
    assert "from line 3" in explorer._lines.value
    explorer.open_log.value = False
    assert explorer._lines.value == ""


def test_an_outcome_can_be_looked_at_and_says_why_it_cannot_go_on(drafts):
    explorer = explore(asyncio.run(drafts(0.2, 0.9).run("goal")))
    assert "iteration 2: keep" in turn(explorer)
    assert explorer.fork.disabled and explorer.resume.disabled
    assert "no log" in explorer.fork.tooltip and "no log" in explorer.resume.tooltip


@pytest.mark.parametrize("by", ["store", "path"])
async def test_a_run_that_another_process_writes_is_followed(drafts, store, by):
    going_on = asyncio.Event()
    with store.create("r") as log:
        task = asyncio.create_task(drafts(0.2, 0.5, 0.9, wait=going_on.wait).run("goal", log=log))
        await asyncio.sleep(0)
        explorer = explore(store.run("r") if by == "store" else store.folder / "r")
        assert explorer.trace.at == 1 and "iteration 1: goes on" in turn(explorer)
        going_on.set()
        await task
        explorer.look()
        assert explorer.run == store.run("r") and explorer.trace.at == 3, (
            "it stood at the end and stays there"
        )
        explorer.trace.slider.value = 2
        log.append("trial", result="correct", kind=None, detail=None)
        explorer.look()
        assert explorer.trace.at == 2, "it stays where it was put"
    await explorer._following  # ends by itself, since a gate has opened


async def test_following_ends_when_the_widget_is_closed(drafts, recorded, cut):
    recorded(drafts(0.2, 0.9))
    explorer = explore(cut("r", 6))
    following = explorer._following
    assert explorer.run.status == "unfinished" and not following.done()
    explorer.close()
    with pytest.raises(asyncio.CancelledError):
        await following
    assert LOOK_EVERY < 2


async def test_what_is_wrong_with_a_log_is_told_and_not_raised(drafts, recorded, store):
    recorded(drafts(0.2, 0.5, 0.9))
    path = store.path("r")
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]))
    explorer = explore(path)
    assert len(explorer.run.events) == 6
    path.write_bytes(b"".join(lines[:7]) + lines[7][:20])
    explorer.look()
    assert TORN in said(explorer) and len(explorer.run.events) == 7
    path.write_bytes(whole.replace(b'"score":0.5', b'"score":0.6'))
    explorer.look()
    assert "was changed" in said(explorer) and len(explorer.run.events) == 7
    path.write_bytes(whole)
    explorer.look()
    assert explorer.run == store.run("r") and "changed" not in said(explorer)
    explorer.close()


def test_a_log_that_is_damaged_from_the_start_can_be_opened_and_one_that_is_not_there_cannot(store):
    store.folder.mkdir(exist_ok=True)
    store.path("r").write_bytes(b"nonsense\n")
    explorer = explore(store.path("r"))
    assert "is not an event" in said(explorer) and "No iteration has begun" in turn(explorer)
    assert explorer.fork.disabled and explorer.trace.slider.disabled
    with pytest.raises(StoreError, match="no run 'other'"):
        explore(store.folder / "other")
    with pytest.raises(TypeError, match="got 3"):
        explore(3)


async def test_without_a_loop_a_fork_is_made_and_how_to_go_on_is_told(drafts, recorded, store):
    explorer = explore(recorded(drafts(0.2, 0.5, 0.9)))
    assert "explore(run, loop=" not in explorer.resume.tooltip and "Fork it" in explorer.resume.tooltip
    explorer.trace.slider.value = 2
    explorer.name.value = "other"
    await pressed(explorer.fork)
    assert store.run("other").first("start")["parent"]["at"] == 2
    assert not store.is_held("other")
    assert ".resume(&#x27;other&#x27;)" in explorer._said.value and explorer.forked.run.id == "other"
    assert explorer.name.value == "r-fork1", "the next one has a name too"
    with store.resume("other") as log:
        assert (await drafts(0.2, 0.5, 0.9).run(log=log)).best.score == 0.9
    explorer.close()


async def test_a_fork_goes_on_with_the_loop_in_the_background_and_is_explored(drafts, recorded, store):
    recorded(drafts(0.2, 0.5, 0.9))
    other = drafts(0.2, 0.5, 0.6, 0.7, gates=[Threshold(0.8), MaxIterations(4)])
    explorer = explore(store.run("r"), loop=other)
    explorer.trace.slider.value = 2
    await pressed(explorer.fork)
    forked = explorer.forked
    assert forked.resume.disabled and not forked.stop.disabled
    await forked.running
    assert forked.run == store.run("r-fork1") and forked.run.stop["gate"] == "MaxIterations"
    assert forked.trace.at == 4 and "finished" in said(forked)
    assert store.run("r").iterations == 3, "nothing changes in the run it came from"
    explorer.trace.slider.value = 1
    await pressed(explorer.fork)
    assert explorer.forked is not forked and forked.comm is None
    await explorer.forked.running
    explorer.close()


@pytest.mark.parametrize(("name", "problem"), [("r", "exists already"), ("a b", "run id"), ("", "run id")])
async def test_a_fork_that_cannot_be_is_told(drafts, recorded, name, problem):
    explorer = explore(recorded(drafts(0.2, 0.9)))
    explorer.name.value = name
    await pressed(explorer.fork)
    assert problem in explorer._said.value and explorer.forked is None


async def test_a_run_is_resumed_where_it_was_cut(drafts, recorded, cut, store):
    recorded(drafts(0.2, 0.5, 0.9))
    explorer = explore(cut("r", 8), loop=drafts(0.2, 0.5, 0.9))
    assert not explorer.resume.disabled
    await pressed(explorer.resume)
    assert explorer.resume.disabled and explorer.resume.tooltip == "it is running"
    await explorer.running
    assert explorer.run == store.run("r") and explorer.run.status == "finished"
    assert len(explorer.run.all("resume")) == 1 and explorer.trace.at == 3
    await asyncio.sleep(0)
    assert explorer.resume.disabled and "finished" in explorer.resume.tooltip and explorer.stop.disabled


async def test_what_goes_wrong_in_the_background_is_told(drafts, recorded, cut, store):
    recorded(drafts(0.2, 0.5, 0.9))
    explorer = explore(cut("r", 10), loop=drafts(0.2, 0.5, 0.9, direction="minimise"))
    with store.resume("r"):
        await pressed(explorer.resume)
        assert "is being written by" in explorer._said.value and explorer.running is None
    await pressed(explorer.resume)
    await explorer.running
    assert "Irreproducible" in explorer._said.value
    explorer.close()


async def test_the_stop_button_works_from_another_thread_and_the_run_can_be_resumed(
    drafts, recorded, cut, store
):
    going_on = asyncio.Event()
    recorded(drafts(0.2, 0.3, 0.4, 0.9))
    explorer = explore(cut("r", 6), loop=drafts(0.2, 0.3, 0.4, 0.9, wait=going_on.wait))
    await pressed(explorer.resume)
    thread = threading.Thread(target=explorer.stop.click)
    thread.start()
    thread.join()
    going_on.set()
    await explorer.running
    assert explorer.run.status == "stopped" and explorer.run.stop["reason"] == "by the stop button"
    await asyncio.sleep(0)
    assert not explorer.resume.disabled
    await pressed(explorer.resume)
    await explorer.running
    assert explorer.run.status == "finished" and explorer.run.iterations == 4
    explorer.close()


async def test_a_slider_may_be_moved_by_another_thread_while_the_log_grows(
    drafts, recorded, store, front_end
):
    run = recorded(drafts(*[0.01 * n for n in range(30)], gates=[Stagnation(99), MaxIterations(30)]))
    whole = store.path("r").read_bytes().splitlines(keepends=True)
    store.path("r").write_bytes(b"".join(whole[:40]))
    explorer, failed = explore(run.path), []
    front_end(explorer._figure)

    def move():
        try:
            for number in (1, 5, 3, 8, 2, 9):
                explorer.trace.slider.value = number
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=move)
    thread.start()
    for end in range(41, len(whole) + 1, 9):
        store.path("r").write_bytes(b"".join(whole[:end]))
        explorer.look()
    thread.join()
    store.path("r").write_bytes(b"".join(whole))
    explorer.look()
    assert not failed and explorer.run == store.run("r")
    assert f"iteration {explorer.trace.at}:" in turn(explorer)
    explorer.close()


async def test_a_flow_is_explored_answered_and_goes_on(waiting, approval, store):
    explorer = explore(waiting, loop=approval)
    assert {trace.name for trace in explorer.still().data} >= {"write", "check → write"}
    assert "visit 5: ask" in turn(explorer) and "waits for a person" in explorer.resume.tooltip
    (form,) = explorer._form.children
    decision, answer = form.children[1], form.children[2]
    decision.value = "yes"
    await pressed(answer)
    await explorer.running
    assert explorer.run.status == "finished" and explorer.run.stop["gate"] == "done"
    assert explorer._form.children == () and store.run("flow").first("answer")["answer"] == {
        "decision": "yes"
    }
    explorer.close()


def test_without_its_flow_an_answer_is_recorded_and_how_to_go_on_is_told(waiting, store):
    explorer = explore(store.path("flow"))
    (form,) = explorer._form.children
    form.children[1].value = "no"
    form.children[2].click()
    assert "flow.run(log=log)" in explorer._said.value and explorer._form.children == ()
    assert store.run("flow").status == "unfinished"


def test_names_of_forks_are_free_and_short_enough(drafts, recorded, store):
    run = recorded(drafts(0.9), name="x" * 128)
    explorer = explore(run)
    assert explorer.name.value == f"{'x' * 120}-fork1"
    Store(store.folder).fork(run.id, explorer.name.value, at=1).close()
    assert explore(run).name.value == f"{'x' * 120}-fork2"
