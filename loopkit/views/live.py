"""Watch a loop run: its curve grows, its doors come nearer, and a button stops it after the turn that is running."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

import ipywidgets
import plotly.graph_objects as go
from IPython.display import DisplayHandle, display

from loopkit.gates import Cancel
from loopkit.history import History, Iteration
from loopkit.journal import Log
from loopkit.loop import Loop, Outcome
from loopkit.views.doors import doors_info, most_turns
from loopkit.views.figures import convergence_figure
from loopkit.views.fragments import doors_html, page, progress_html, spent, text, warning
from loopkit.views.showing import Picture, View, bundle, event_loop, listening

DRAW_EVERY, TICK = 0.2, 1.0
"""Seconds: between two drawings at least, and at most."""


class Onlooker:
    """A gate that never opens. A gate is asked after every turn, about all of them: more a view does not need."""

    def __init__(self, seen: Callable[[History], None]) -> None:
        self._seen = seen

    def __call__(self, history: Sequence[Iteration]) -> None:
        self._seen(History.of(history))

    def __repr__(self) -> str:
        return "Onlooker()"  # recorded among the run's gates


class Live(View):
    """A loop that runs in the background, seen while it does: what `loopkit.watch` returns. `await` gives the outcome."""

    def __init__(self, loop: Loop, goal: Any = None, *, log: Log | None = None) -> None:
        self.gate, self._watching = Cancel(), None  # before anything can fail: `close` looks at them
        """What the stop button opens. It is asked after the loop's own gates."""
        if (kernel := event_loop()) is None:
            raise RuntimeError("no event loop runs here, as it does in a notebook: asyncio.run(loop.run(…))")
        self._loop, self._began, self._took = loop, time.monotonic(), 0.0
        self.history = History(direction=loop.direction)
        """The turns so far."""
        self._drawing, self._news = threading.RLock(), asyncio.Event()
        self._handle: DisplayHandle | None = None
        self._running = kernel.create_task(self._run(goal, log))
        self._running.add_done_callback(lambda _: self._news.set())
        self._page, self._figure = ipywidgets.HTML(), Picture(self.still())
        self.stop = ipywidgets.Button(
            description="stop after this turn", icon="stop", layout={"width": "max-content"}
        )
        self.stop.tooltip = "the stop button is a gate: what is done is kept, and the run can be resumed"
        super().__init__([self._page, self.stop, self._figure])
        self.stop.on_click(lambda _: self._stop())
        self.draw()
        self._watching = kernel.create_task(self._watch())

    def __await__(self) -> Generator[Any, None, Outcome]:
        try:
            return (yield from self._running.__await__())
        finally:
            self.draw()
            if self._handle:  # what was displayed as a picture shows the end now
                self._handle.update(bundle(self.still()), raw=True)

    def still(self) -> go.Figure:
        """The curve so far."""
        ended = self._ended()
        return convergence_figure(
            ended if isinstance(ended, Outcome) else self.history, gates=self._loop.gates
        )

    def _ipython_display_(self) -> None:
        if listening():
            display(self._repr_mimebundle_(), raw=True)
        else:
            self._handle = display(bundle(self.still()), raw=True, display_id=True)

    def close(self) -> None:
        """Take the widget away; the loop stops after its turn."""
        self.gate.request("its view was closed")
        if self._watching:
            self._watching.cancel()
        super().close()

    async def _run(self, goal: Any, log: Log | None) -> Outcome:
        try:
            outcome = await self._loop.run(goal, log=log, gates=[Onlooker(self._see), self.gate])
            self.history = outcome.history
            return outcome
        finally:
            self._took = time.monotonic() - self._began
            if log is not None:
                log.close()

    def _see(self, history: History) -> None:
        self.history = history
        self._news.set()

    def _stop(self) -> None:
        """May come from any thread."""
        self.gate.request("by the stop button")
        self.draw()

    async def _watch(self) -> None:
        """Draw when there is something new, and once a second for the clock."""
        while not self._running.done():
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), TICK)
            self.draw()
            await asyncio.sleep(DRAW_EVERY)
        self.draw()

    def _ended(self) -> Outcome | str | None:
        """The outcome, or in words what went wrong; None while it runs."""
        if not self._running.done():
            return None
        if self._running.cancelled():
            return "it was cancelled in the middle of a turn"
        error = self._running.exception()
        return f"{type(error).__name__}: {error}" if error else self._running.result()

    def draw(self) -> None:
        """Show how things stand now."""
        with self._drawing:
            ended, done = self._ended(), len(self.history)
            if isinstance(ended, Outcome):
                status = f"<b>{text(ended.stopped_by.gate)}</b> opened: {text(ended.stopped_by.reason)}"
            elif ended is not None:
                status = warning(ended)
            else:
                after = ", then it stops" if self.gate.reason else ""
                status = f"turn {done + 1} is running{after}"
            best, took = self.history.best, self._took or time.monotonic() - self._began
            found = f"best score {best.score:g}, of turn {best.number}; " if best else ""
            self._page.value = page(
                progress_html(done, most_turns(self._loop.gates)),
                f"<p role='status'>{status}</p>",
                f"<p><small>{found}{text(spent(self.history.usage, self.history.seconds))}, "
                f"{took:,.0f} s by the clock</small></p>",
                doors_html(doors_info([*self._loop.gates, self.gate], self.history)),
            )
            self.stop.disabled = ended is not None or self.gate.reason is not None
            self._figure.show(self.still())
