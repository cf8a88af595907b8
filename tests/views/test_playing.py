"""The playground: a simulated loop that shows what its sliders do, the same each time."""

import pytest

from loopkit.views import playground
from loopkit.views.playing import MOST, OTHERS, playground_figure, playground_info

BASE = {"threshold": 0.8, "patience": 8, "noise": 0.0, "bias": 0.0, "seed": 3}


@pytest.fixture(scope="module")
def plays():
    """Plays each setting once."""
    known = {}

    def play(**changed):
        key = tuple(sorted(changed.items()))
        if key not in known:
            known[key] = playground_info(**BASE | changed)
        return known[key]

    return play


def told(played):
    """What is shown of it: all but the time it took."""
    return vars(played) | {"outcome": [turn.score for turn in played.outcome.history]}


def test_the_same_sliders_give_the_same_again(plays):
    assert told(playground_info(**BASE)) == told(plays())


@pytest.mark.parametrize(
    "changed", [{}, {"noise": 0.2}, {"bias": 0.2}, {"bias": -0.3, "threshold": 1.0, "patience": 1}]
)
def test_what_is_shown_adds_up(plays, changed):
    played = plays(**changed)
    history = played.outcome.history
    assert sum(played.doors.values()) == OTHERS and 1 <= played.turns <= MOST
    assert played.tokens == 1000 * played.turns and played.outcome.usage.calls == len(history)
    assert len(played.worth) == len(history) and played.worth[-1] == played.outcome.best.observation
    assert all(0 <= turn.score <= 1 for turn in history)


def test_each_slider_teaches_what_the_page_says(plays):
    honest = plays()
    assert honest.judged == honest.real, "without bias or noise the judge is right"
    flattering = plays(bias=0.2)
    assert flattering.turns < honest.turns and flattering.real < honest.real - 0.1 < flattering.judged
    noisy = plays(noise=0.2)
    assert noisy.judged > noisy.real + 0.1, "what is kept is luck as well"
    assert set(plays(patience=1).doors) >= {"Stagnation"} and plays(patience=1).turns < honest.turns
    assert plays(threshold=1.0).doors.get("Threshold", 0) < honest.doors["Threshold"]
    assert plays(threshold=1.0).tokens > honest.tokens


def test_the_figure_keeps_its_axes_and_shows_what_nobody_in_the_loop_sees(plays):
    for played in (plays(), plays(bias=0.2)):
        figure = playground_figure(played)
        assert figure.layout.xaxis.range == (0.5, MOST + 0.5) and figure.layout.yaxis.range == (-0.03, 1.05)
        (worth,) = [trace for trace in figure.data if "worth" in trace.name]
        assert worth.y == played.worth and worth.line.dash == "dash"


def test_moving_a_slider_plays_again():
    view = playground(seed=3)
    before = view._page.value
    assert "Simulated" in before and view.still() == playground_figure(playground_info(**BASE))
    view.bias.value = 0.2
    assert told(view.played) == told(playground_info(**BASE | {"bias": 0.2})) and view._page.value != before
    assert all(slider.description for slider in view.children[:4])
