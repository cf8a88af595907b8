"""The doors to what people look at in a notebook. Widgets load when one is opened."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopkit.journal import Log
from loopkit.loop import Loop, Outcome
from loopkit.store import Run

if TYPE_CHECKING:
    from loopkit.flow import Flow
    from loopkit.views.comparer import Comparison
    from loopkit.views.explorer import Explorer
    from loopkit.views.live import Live
    from loopkit.views.playing import Playground


def explore(run: Outcome | Run | str | Path, *, loop: "Loop | Flow | None" = None) -> "Explorer":
    """Look at a run, iteration by iteration: an outcome, a `store.run(…)`, or the path of a log.

    A run that has a log can be forked; with the `loop` (or flow) that made it, it is also resumed, in the background. While
    it is not finished its log is followed, whoever writes it: what is wrong with the log is told in the widget. Raises
    StoreError when there is no such log, TypeError for anything else.
    """
    from loopkit.views.explorer import Explorer

    return Explorer(run, loop=loop)


def watch(loop: Loop, goal: Any = None, *, log: Log | None = None) -> "Live":
    """Start a loop in the background, and see it run: `live = watch(loop, goal)`, then `outcome = await live`.

    The stop button is a gate: the run ends after its turn, and with a `log` can be resumed. The log is closed when the
    run has ended. Raises RuntimeError outside of a running event loop, TypeError for what is no Loop.
    """
    if not isinstance(loop, Loop):
        raise TypeError(
            f"expected a Loop, got {loop!r:.200}: a flow is followed by its log, explore(path, loop=flow)"
        )
    from loopkit.views.live import Live

    return Live(loop, goal, log=log)


def compare(
    runs: Sequence[Outcome | Run | str | Path] | Mapping[str, Outcome | Run | str | Path] | str | Path,
    *,
    by: Sequence[str] = ("item", "seed"),
) -> "Comparison":
    """Compare runs, side by side: some of them, by name if you like, or all trials in the folder of a batch.

    Trials are compared by arm: accuracy with intervals, then pairwise on the same items; two trials have the same item
    where they agree in the parameters `by`. Raises ValueError when there is nothing to compare, StoreError for a folder that
    is no batch's, TypeError for anything else.
    """
    from loopkit.views.comparer import Comparison

    return Comparison(runs, by=by)


def playground(*, seed: int = 0) -> "Playground":
    """A simulated loop with sliders for its threshold, its patience, and its judge's noise and bias; `seed` throws the dice."""
    from loopkit.views.playing import Playground

    return Playground(seed=seed)
