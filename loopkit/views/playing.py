"""A loop to play with: nothing in it is real but the loop and its gates.

A draft has a worth between 0 and 1. `propose` changes the best draft so far a little, more often for the worse than for
the better. What the judge says is that worth with a bias, always the same, and a noise, never the same.
"""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import ipywidgets
import plotly.graph_objects as go

from loopkit.gates import MaxIterations, Stagnation, Threshold
from loopkit.history import History
from loopkit.loop import Loop, Outcome
from loopkit.usage import Usage, spend
from loopkit.views.figures import BLUE, VERMILLION, convergence_figure
from loopkit.views.fragments import page, table_html, text
from loopkit.views.showing import Picture, View

MOST = 40
"""Turns of one run at most."""
OTHERS = 40
"""Runs with other dice, to count doors."""
CALL = Usage(calls=1, input_tokens=800, output_tokens=200)
"""What each proposal is billed, invented."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """A run, and many others like it."""

    outcome: Outcome
    worth: tuple[float, ...]
    """After each turn, what the best draft so far is really worth."""
    doors: dict[str, int]
    """How many of the other runs each gate ended."""
    turns: float
    """Turns of the other runs, on average."""
    tokens: float
    """What they were billed, on average."""
    judged: float
    """What the judge said of the drafts they delivered, on average,"""
    real: float
    """and what those are worth."""


def playground_info(*, threshold: float, patience: int, noise: float, bias: float, seed: int = 0) -> Played:
    """Play the loop once with these dice, and forty times with others. The same arguments give the same again."""
    first, *others = _finished(
        _played(threshold, patience, noise, bias, [seed + 1000 * n for n in range(OTHERS + 1)])
    )
    best = [first.history[:number].best for number in range(1, len(first.history) + 1)]
    return Played(
        outcome=first,
        worth=tuple(turn.observation for turn in best),
        doors=dict(Counter(run.stopped_by.gate for run in others).most_common()),
        turns=sum(len(run.history) for run in others) / OTHERS,
        tokens=sum(run.usage.tokens for run in others) / OTHERS,
        judged=sum(run.best.score for run in others) / OTHERS,
        real=sum(run.best.observation for run in others) / OTHERS,
    )


async def _played(
    threshold: float, patience: int, noise: float, bias: float, seeds: list[int]
) -> list[Outcome]:
    gates = [Threshold(threshold), MaxIterations(MOST), Stagnation(patience)]
    return [
        await Loop(propose=_propose, execute=_worth, judge=_judge(seed, noise, bias), gates=gates).run(seed)
        for seed in seeds
    ]


def _propose(seed: int, history: History) -> dict[str, float]:
    spend(CALL)
    draft = {"number": len(history) + 1, "worth": 0.2}
    if history.best is not None:
        step = random.Random(f"propose {seed} {len(history)}").gauss(-0.02, 0.1)
        draft["worth"] = _within(history.best.observation + step)
    return draft


def _worth(draft: dict[str, float]) -> float:
    return draft["worth"]


def _judge(seed: int, noise: float, bias: float) -> Callable[[dict[str, float], float], float]:
    def judge(draft: dict[str, float], worth: float) -> float:
        return _within(worth + bias + random.Random(f"judge {seed} {draft['number']}").gauss(0, noise))

    return judge


def _within(score: float) -> float:
    return round(min(max(score, 0.0), 1.0), 4)


def _finished(coroutine: Coroutine[Any, Any, list[Outcome]]) -> list[Outcome]:
    """Its result, at once: in a thread with an event loop of its own, since the notebook's has a cell to run."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def playground_figure(played: Played) -> go.Figure:
    """The run as its judge saw it, and what the best draft so far was really worth."""
    figure = convergence_figure(played.outcome)
    figure.add_scatter(
        x=[turn.number for turn in played.outcome.history],
        y=list(played.worth),
        name="its real worth",
        mode="lines",
        line={"color": VERMILLION, "shape": "hv", "dash": "dash"},
        hoverinfo="skip",
    )
    figure.update_traces(line_color=BLUE, selector={"name": "best so far"})
    # The axis stays, whatever the sliders say: a run of 9 turns looks shorter than one of 30.
    return figure.update_layout(
        xaxis={"range": [0.5, MOST + 0.5], "dtick": 5}, yaxis={"range": [-0.03, 1.05]}
    )


class Playground(View):
    """Four sliders over a simulated loop, its curve, and what it costs: what `views.playground` makes."""

    def __init__(self, *, seed: int = 0) -> None:
        style, wide = {"description_width": "11em"}, {"width": "36em"}
        unit = {"min": 0.0, "step": 0.05, "style": style, "layout": wide, "continuous_update": False}
        self.threshold = ipywidgets.FloatSlider(value=0.8, max=1.0, description="threshold", **unit)
        self.patience = ipywidgets.IntSlider(
            value=8,
            min=1,
            max=MOST,
            description="patience",
            style=style,
            layout=wide,
            continuous_update=False,
        )
        self.noise = ipywidgets.FloatSlider(value=0.0, max=0.3, description="noise of the judge", **unit)
        self.bias = ipywidgets.FloatSlider(
            value=0.0, max=0.3, description="bias of the judge", **unit | {"min": -0.3}
        )
        self._seed, self._playing = seed, threading.RLock()
        self.played = self._play()
        """What the sliders say."""
        self._page, self._figure = ipywidgets.HTML(), Picture(playground_figure(self.played))
        sliders = [self.threshold, self.patience, self.noise, self.bias]
        super().__init__([*sliders, self._figure, self._page])
        for slider in sliders:
            slider.observe(lambda _: self._again(), names="value")
        self._draw()

    def still(self) -> go.Figure:
        """The run that the sliders give."""
        return playground_figure(self.played)

    def _play(self) -> Played:
        sliders = {"threshold": self.threshold.value, "patience": self.patience.value}
        return playground_info(**sliders, noise=self.noise.value, bias=self.bias.value, seed=self._seed)

    def _again(self) -> None:
        with self._playing:
            self.played = self._play()
            self._draw()
            self._figure.show(self.still())

    def _draw(self) -> None:
        one, many = self.played.outcome, self.played
        rows = [
            {
                "": "this run", "door": f"{one.stopped_by.gate}: {one.stopped_by.reason}",
                "turns": len(one.history), "tokens": one.usage.tokens, "judged": one.best.score,
                "really worth": one.best.observation,
            },
            {
                "": f"{OTHERS} with other dice", "door": ", ".join(f"{door} {n}×" for door, n in many.doors.items()),
                "turns": many.turns, "tokens": many.tokens, "judged": many.judged, "really worth": many.real,
            },
        ]  # fmt: skip
        label = text("Simulated: drafts, judge and tokens are invented; the loop and its gates are real.")
        self._page.value = page(f"<p><b>{label}</b></p>", table_html(tuple(rows[0]), rows))
