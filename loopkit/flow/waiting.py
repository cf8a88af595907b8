"""Waiting, which is the engine's work: it looks at a probe, again and again, and calls nobody while nothing is new."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from loopkit.flow.moves import StepFailed
from loopkit.flow.schema import StepPart
from loopkit.flow.world import Context
from loopkit.history import PhaseError
from loopkit.verdict import Failure

if TYPE_CHECKING:
    from loopkit.flow.engine import Walk


class Waited(NamedTuple):
    """What a wait came to."""

    output: dict[str, Any]
    """The step's output, with what the wait adds: `poll`, then the `news`, or the declared `output` when all is `done`."""
    news: dict[str, Any] | None
    over: bool
    """Whether `max_duration` passed."""


async def wait(walk: "Walk", step: StepPart, output: dict[str, Any]) -> Waited:
    """Look until there is something new. Every look is recorded with its moment, so a wait outlives its process.

    Raises StepFailed when the probe keeps failing for longer than `grace`.
    """
    part = step.wait
    began = await walk.step("wait", walk.count(f"{step.id}.wait"), _now, walk)
    started = good = last = due = began.value
    end = started + part.max_duration
    walk.world.seen(started)
    while True:
        poll = walk.count(f"{step.id}.poll")
        new = not walk.journal.done(walk.number, "poll", poll)
        while new and (left := due - walk.world.now()) > 0:
            walk.may_go_on()
            await walk.world.sleep(min(left, walk.world.look_every))
        found = (await walk.step("poll", poll, _look, walk, step, output, poll)).value
        now, state = found["at"], found["state"]
        walk.world.seen(now)
        walk.seconds += max(0.0, now - last)
        walk.counters.polls[step.id, state] += 1
        if new:
            walk.journal.sync()
            walk.watch({"event": "poll", "step": step.id, "poll": poll, "state": state})
        if state == "done":
            return Waited(output | part.output | {"poll": "done"}, None, False)
        if state == "news":
            news = {key: value for key, value in found.items() if key not in ("state", "at")}
            return Waited(output | {"poll": "news", "news": news}, news, False)
        if state == "pending":
            good = now
        elif part.grace is None or now - good > part.grace:
            raise StepFailed(PhaseError(**found["error"]))
        if now >= end:
            return Waited(output | {"poll": "pending"}, None, True)
        last, due = now, min(now + part.interval, end)


async def _now(walk: "Walk") -> float:
    return walk.world.now()


async def _look(walk: "Walk", step: StepPart, output: dict[str, Any], poll: int) -> dict[str, Any]:
    """One look, with the moment of it. A probe that fails is an answer too: it may be waited out."""
    context: Context = walk.context(step, output=output)
    try:
        argv = [] if isinstance(step.wait.probe, str) else walk.rendered(step.wait.probe.command, context)
        found = await walk.world.probe(step, context, argv, poll=poll)
    except Exception as raised:
        kind = raised.kind if isinstance(raised, Failure) else type(raised).__name__
        typed = isinstance(raised, Failure)
        error = PhaseError(phase="poll", kind=kind, message=str(raised), typed=typed)
        found = {"state": "failing", "error": asdict(error)}
    return found | {"at": walk.world.now()}
