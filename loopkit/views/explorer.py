"""Explore a run: a slider over its iterations, and buttons that go on with it. Follows the log of one that still runs.

Callbacks of widgets may come in another thread than the cells' (JupyterLab has a subshell for them), so drawing takes
a lock, and what makes tasks is handed to the loop of the cells.
"""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import ipywidgets
import plotly.graph_objects as go

from loopkit.flow import Flow
from loopkit.gates import Cancel
from loopkit.log import RunLog, StoreError, Tail
from loopkit.loop import Loop
from loopkit.store import Run, Store
from loopkit.views.answering import answer_form
from loopkit.views.figures import DASHED, convergence_figure
from loopkit.views.flow_graph import flow_figure, flow_info, is_flow
from loopkit.views.fragments import facts_html, log_html, page, text, turn_html, warning
from loopkit.views.showing import Picture, View, close_all, event_loop
from loopkit.views.trace import Source, Trace, as_run, log_place

LOOK_EVERY = 0.5
"""Seconds between two looks at a log that may grow."""
LABEL = {"description_width": "initial"}
TORN = "The last line of the log is not finished: it is being written, or its writer died. It is left out."


class TraceView(ipywidgets.VBox):
    """A slider over the iterations of a run, and below it all that is known of the one it stands at.

    `show` gives it a run. `moved` is called after every drawing, with the lock `drawing` held.
    """

    def __init__(self, *, label: str = "iteration", moved: Callable[[], None] = lambda: None) -> None:
        wide = {"width": "98%"}
        self.slider = ipywidgets.IntSlider(min=0, max=0, description=label, style=LABEL, layout=wide)
        self._page, self._moved, self.drawing = ipywidgets.HTML(), moved, threading.RLock()
        self._trace, self._showing = Trace(Run("none", [])), False
        super().__init__([self.slider, self._page])
        self.slider.observe(self._slid, names="value")

    @property
    def at(self) -> int:
        """The iteration that is looked at; 0 where there is none."""
        return self.slider.value

    def show(self, run: Run, *, anew: bool = False) -> None:
        """Look at the end of `run`; at the same iteration as before if that was not the end, unless it begins `anew`."""
        with self.drawing:
            newest = anew or self.at == self.slider.max
            self._trace = Trace(run)
            last = len(self._trace)
            self._showing = True
            if last:  # in this order: min may never be above max
                self.slider.max, self.slider.min = last, 1
            else:
                self.slider.min, self.slider.max = 0, 0
            self.slider.value = last if newest else min(self.at, last)
            self._showing = False
            self.slider.disabled = last < 2
            self._draw()

    def _slid(self, _: object) -> None:
        with self.drawing:
            if not self._showing:
                self._draw()

    def _draw(self) -> None:
        said = turn_html(self._trace.turn(self.at)) if self.at else "<p>No iteration has begun.</p>"
        self._page.value = page(said)
        self._moved()

    def close(self) -> None:
        """Take the widget away, with all that is inside."""
        close_all(self.children)
        super().close()


def explore_figure(run: Run, at: int) -> go.Figure:
    """How a run converges, or the ways that a run of a flow took up to there; iteration `at` is marked, unless it is 0."""
    if is_flow(run):
        return flow_figure(flow_info(run, at))
    figure = convergence_figure(run)
    if at:
        figure.add_vline(x=at, line=DASHED | {"dash": "solid", "width": 1}, name="shown")
    return figure


class Explorer(View):
    """A run to look at, and to go on with: what `loopkit.explore` returns."""

    def __init__(self, source: Source, *, loop: Loop | Flow | None = None) -> None:
        self._cancel, self._following = Cancel(), None  # before anything can fail: `close` looks at them
        self._loop, self._kernel = loop, event_loop()
        self.run = _begun(source)
        """The run, as far as it is known."""
        self.running: asyncio.Task[None] | None = None
        """What goes on with the run in the background, once *resume* or *fork* was pressed."""
        self.forked: Explorer | None = None
        """The run that was forked last."""
        self._tail = Tail(self.run.path) if self.run.path else None
        self._problem, self._asked, self._shown = "", None, None

        self._facts, self._said, self._lines = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self._figure = Picture(explore_figure(self.run, 0))
        self.trace = TraceView(moved=self._mark)
        self.name = ipywidgets.Text(description="new run", style=LABEL)
        self.fork = ipywidgets.Button(description="fork from here")
        self.resume = ipywidgets.Button(description="resume", icon="play")
        self.stop = ipywidgets.Button(description="stop", icon="stop")
        self.open_log = ipywidgets.ToggleButton(description="open log")
        self._form, self._below = ipywidgets.VBox(), ipywidgets.VBox()
        buttons = [self.name, self.fork, self.resume, self.stop, self.open_log]
        row = ipywidgets.HBox(buttons, layout={"flex_flow": "row wrap"})
        parts = [self._facts, self._figure, self.trace, row, self._said, self._form, self._lines, self._below]
        super().__init__(parts)
        self.fork.on_click(lambda _: self._hand_over(self._fork))
        self.resume.on_click(lambda _: self._hand_over(self._resume))
        self.stop.on_click(lambda _: self._cancel.request("by the stop button"))
        self.open_log.observe(lambda _: self._list(), names="value")
        self.look()
        if self._shown is None:
            self._draw()
        if self._tail and self._kernel:
            self._following = self._kernel.create_task(self._follow())

    def still(self) -> go.Figure:
        """The run's figure, with the iteration that is looked at."""
        return explore_figure(self.run, self.trace.at)

    def close(self) -> None:
        """Take the widget away; what it runs stops after its turn, and can be resumed."""
        if self._following:
            self._following.cancel()
        self._cancel.request("its explorer was closed")
        super().close()

    # --- the record ------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Look at the log now, not at the next tick. What is wrong with it is told in the widget."""
        if self._tail is None:
            return
        try:
            changed, problem = self._tail.look(), TORN if self._tail.torn else ""
        except StoreError as error:
            changed, problem = False, str(error)
        with self.trace.drawing:
            if changed:
                self.run = Run(self.run.id, self._tail.events, self.run.path)
            if changed or problem != self._problem:
                self._problem = problem
                self._draw()

    async def _follow(self) -> None:
        while self.run.status != "finished":
            await asyncio.sleep(LOOK_EVERY)
            self.look()

    # --- drawing ---------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        with self.trace.drawing:
            self._facts.value = page(facts_html(self.run), warning(self._problem))
            self.trace.show(self.run)
            self._ask()

    def _mark(self) -> None:
        """What depends on where the slider stands."""
        at = self.trace.at
        if self._shown is self.run and at and not is_flow(self.run):
            self._figure.move("shown", at)
        else:
            self._figure.show(explore_figure(self.run, at))
        self._shown = self.run
        going_on = self.running is not None and not self.running.done()
        no_fork, no_resume = self._why_no_fork(), self._why_no_resume()
        self.fork.disabled, self.resume.disabled = bool(no_fork), bool(no_resume)
        self.fork.tooltip = no_fork or f"a new run that has the first {at} iterations of this one"
        self.resume.tooltip = no_resume or "go on where the record ends"
        self.stop.disabled = not going_on
        self.stop.tooltip = (
            "after this turn; the run can be resumed" if going_on else "nothing runs from here"
        )
        self.open_log.disabled = not self.run.events
        self.open_log.tooltip = "the events, as they are recorded, from this iteration on"
        self.name.disabled = bool(no_fork)
        if self.run.path and not self.name.value:
            self.name.value = _free_name(self.run)
        self._list()

    def _list(self) -> None:
        self._lines.value = page(log_html(self.run, self.trace.at)) if self.open_log.value else ""

    def _ask(self) -> None:
        """The form for what a waiting run asks, made once for each question."""
        waits = self.run.path and self.run.status == "waiting"
        asked = self.run.all("question")[-1]["iteration"] if waits else None
        if asked != self._asked:
            self._asked = asked
            self._form.children = [self._question()] if waits else []

    def _question(self) -> ipywidgets.Widget:
        store = Store(self.run.path.parent)
        return answer_form(store, self.run.id, then=lambda: self._hand_over(self._answered))

    def _tell(self, said: str) -> None:
        """`said` is HTML."""
        self._said.value = page(f"<p role='status'>{said}</p>")

    # --- going on --------------------------------------------------------------------------------------------

    def _why_no_fork(self) -> str:
        if self.run.path is None:
            return "this run has no log to fork: explore(store.run(…)) has"
        if self.trace.at not in {event["iteration"] for event in self.run.all("iteration")}:
            return "no iteration is finished here"
        return ""

    def _why_no_resume(self) -> str:
        if self.run.path is None:
            return "this run has no log to go on with: explore(store.run(…)) has"
        if self.running is not None and not self.running.done():
            return "it is running"
        if self.run.status == "finished":
            return "a gate has opened: the run is finished. Fork it to go on otherwise"
        if self.run.status == "waiting":
            return "it waits for a person: answer it below"
        if self._loop is None:
            return "say with which loop: explore(run, loop=…)"
        if self._kernel is None:
            return "no event loop runs here, as it does in a notebook: await loop.run(log=store.resume(…))"
        return ""

    def _hand_over(self, act: Callable[[], None]) -> None:
        """Do it in the thread of the cells."""
        if self._kernel is None:
            act()
        else:
            self._kernel.call_soon_threadsafe(act)

    def _resume(self) -> None:
        try:
            log = Store(self.run.path.parent).resume(self.run.id)
        except StoreError as error:
            self._tell(text(error))
            return
        self._tell("goes on …")
        self.go_on(log)

    def _fork(self) -> None:
        store, new, at = Store(self.run.path.parent), self.name.value, self.trace.at
        try:
            log = store.fork(self.run.id, new, at=at)
        except (StoreError, ValueError) as error:
            self._tell(text(error))
            return
        if self.forked:
            self.forked.close()
        with_loop = self._loop is not None and self._kernel is not None
        if not with_loop:
            log.close()
        self.forked = Explorer(store.path(new), loop=self._loop)
        self._below.children = [self.forked]
        said = f"Forked: <code>{text(new)}</code>, below, has the first {at} iterations of <code>{text(self.run.id)}</code>"
        if with_loop:
            self._tell(f"{said}, and goes on.")
            self.forked.go_on(log)
        else:
            self._tell(f"{said}. To go on with it, with another loop or the same: {_how(self.forked.run)}")
        self.name.value = _free_name(self.run)

    def _answered(self) -> None:
        self.look()
        if self._loop is not None and self._kernel is not None:
            self._resume()
        else:
            self._tell(f"Answered. To go on: {_how(self.run)}")

    def go_on(self, log: RunLog) -> None:
        """Run the loop over `log`, which is this run's, in the background; the log is closed when it has ended."""
        self._cancel = Cancel()
        self.running = self._kernel.create_task(self._run_on(log, self._cancel))
        self.running.add_done_callback(lambda _: self._draw())
        self._draw()

    async def _run_on(self, log: RunLog, cancel: Cancel) -> None:
        said = ""
        try:
            with log:
                await self._loop.run(log=log, gates=[cancel])
        except Exception as error:  # nobody awaits this: it is told where people look
            said = warning(f"{type(error).__name__}: {error}")
        self.look()
        self._tell(said or f"It is {self.run.status} now.")


def _begun(source: Source) -> Run:
    """The run to begin with; of a log that is there, whatever its state, its name and place."""
    if not isinstance(source, str | Path):
        return as_run(source)
    folder, name = log_place(source)
    path = Store(folder).path(name)
    return Run(name, [], path) if path.exists() else as_run(source)


def _free_name(run: Run) -> str:
    store, count = Store(run.path.parent), 1
    while store.path(f"{run.id[:120]}-fork{count}").exists():
        count += 1
    return f"{run.id[:120]}-fork{count}"


def _how(run: Run) -> str:
    """In words, how to go on with a run: HTML."""
    called = "flow" if is_flow(run) else "loop"
    lines = f"with Store({str(run.path.parent)!r}).resume({run.id!r}) as log:\n    outcome = await {called}.run(log=log)"
    return f"<pre>{text(lines)}</pre>"
