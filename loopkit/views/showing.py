"""What all widgets share: how they are shown where nobody listens, and one figure that is drawn again and again."""

import asyncio
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import ipywidgets
import plotly.graph_objects as go
from IPython import get_ipython


class View(ipywidgets.VBox):
    """A widget that is a plain figure wherever nobody listens: in papermill, in an export, without a kernel."""

    def still(self) -> go.Figure:
        """What it shows now, as a pure figure."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The figure; and where a front end listens the live widget, which it prefers."""
        return bundle(self.still()) | (super()._repr_mimebundle_(**kwargs) if listening() else {})

    def close(self) -> None:
        """Take the widget away, with all that is inside."""
        close_all(self.children)
        super().close()


def listening() -> bool:
    """Whether somebody looks at what is displayed here, and can answer.

    A front end names the cell that it has executed, or sends what a widget was told. papermill, nbconvert and scripts
    do neither.
    """
    kernel = getattr(get_ipython(), "kernel", None)
    asked = kernel.get_parent() if kernel else {}
    return "cellId" in asked.get("metadata", {}) or asked.get("header", {}).get("msg_type") == "comm_msg"


def bundle(figure: go.Figure) -> dict[str, Any]:
    """The figure as the outputs of notebooks hold it, by plotly's own settings."""
    return {"text/plain": "a figure"} | figure._repr_mimebundle_()


def printed(figure: go.Figure) -> ipywidgets.Output:
    """The figure as a widget that never changes; without the five megabytes of a live one."""
    shown = {"output_type": "display_data", "data": bundle(figure), "metadata": {}}
    return ipywidgets.Output(outputs=(shown,))


def event_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs this cell; None in a plain script, where nothing can go on in the background."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Picture(ipywidgets.VBox):
    """A figure that is drawn again and again.

    Its widget is made once, since each brings five megabytes along, and only where somebody listens. Until the front
    end tells that it has drawn it, nothing else is sent: changes that come in between make it lose all of them.
    """

    def __init__(self, figure: go.Figure) -> None:
        self.live, self._figure, self._ready = None, figure, False
        self._drawing = threading.RLock()
        if listening():
            self.live = go.FigureWidget(figure)
            self.live.observe(self._begin, names="_js2py_traceDeltas")
        super().__init__([self.live] if self.live is not None else [])

    def show(self, figure: go.Figure) -> None:
        """Show another figure."""
        with self._drawing:
            self._figure = figure
            if self.live is not None and self._ready:
                redraw(self.live, figure)

    def move(self, shape: str, x: float) -> None:
        """Move the upright line of that name."""
        with self._drawing:
            for figure in (self._figure, self.live if self._ready else None):
                if figure is not None:
                    figure.update_shapes({"x0": x, "x1": x}, selector={"name": shape})

    def _begin(self, _: object) -> None:
        with self._drawing:
            if not self._ready and self.live is not None:
                self._ready = True
                self.live.layout.autosize = True  # it was drawn before it had its place on the page
                redraw(self.live, self._figure)

    def close(self) -> None:
        """Take the widget away, with all that is inside; what is shown later is not drawn."""
        self.live = None
        close_all(self.children)
        super().close()


def close_all(widgets: Iterable[ipywidgets.Widget]) -> None:
    """Close each, and what is inside of it."""
    for widget in widgets:
        close_all(getattr(widget, "children", ()))
        widget.close()


def redraw(live: go.FigureWidget, figure: go.Figure) -> None:
    """Make `live` show what `figure` shows; a trace is the one before if its name is."""
    before, wanted = live.to_plotly_json(), figure.to_plotly_json()
    known = {shown.name: (trace, shown) for trace, shown in zip(before["data"], live.data, strict=True)}
    named = {trace["name"]: trace for trace in wanted["data"]}
    with live.batch_update():
        _assign(live.layout, before["layout"], wanted["layout"], but=("template", "autosize"))
        for name, (trace, shown) in known.items():
            look = {"visible": True} | named[name] if name in named else trace | {"visible": False}
            _assign(shown, trace, look, but=("uid", "type"))
    if fresh := [trace for name, trace in named.items() if name not in known]:
        live.add_traces(fresh)
    live._repr_mimebundle_()  # for a second view of it: plotly puts the whole figure in its state only when asked


def _assign(part: Any, before: Mapping[str, Any], wanted: Mapping[str, Any], *, but: tuple[str, ...]) -> None:
    """Set what has another value than before, or none any more."""
    for key in before.keys() | wanted.keys():
        if key not in but and before.get(key) != wanted.get(key):
            part[key] = wanted.get(key)
