"""What is shown where nobody listens, and one figure that is drawn again and again."""

import ipywidgets
import plotly.graph_objects as go
import pytest

from loopkit.views.figures import BLUE, GREEN, GREY, PALETTE, VERMILLION, convergence_figure
from loopkit.views.showing import Picture, View, bundle, listening, printed, redraw


class Plain(View):
    def still(self):
        return go.Figure(layout_title_text="still")


def drawn_alike(live, figure):
    """Whether the widget shows the figure: the same visible traces, and the same layout."""
    ours = {trace.name: trace.to_plotly_json() for trace in live.data if trace.visible is not False}
    theirs = {trace.name: trace.to_plotly_json() for trace in figure.data}
    for trace in (*ours.values(), *theirs.values()):
        trace.pop("uid", None), trace.pop("visible", None)
    layouts = [one.layout.to_plotly_json() for one in (live, figure)]
    layouts = [{key: look for key, look in one.items() if look and key != "template"} for one in layouts]
    return ours == theirs and layouts[0] == layouts[1]


def test_a_figure_that_is_drawn_again_shows_just_what_a_new_one_would(drafts, recorded):
    run = recorded(drafts(0.2, None, 0.5, 0.4, 0.9))
    whole = [convergence_figure(run)]
    history = [number for number, event in enumerate(run.events) if event["event"] == "iteration"]
    some = [convergence_figure(type(run)("r", run.events[: end + 1])) for end in history]
    live = go.FigureWidget(some[0])
    for figure in (*some, *whole, some[1], some[0], whole[0]):  # also one that has fewer traces again
        redraw(live, figure)
        assert drawn_alike(live, figure)
    assert live._widget_data == [trace.to_plotly_json() for trace in live.data], "told before it is displayed"


def test_nobody_listens_to_a_test():
    assert not listening()
    assert Plain()._repr_mimebundle_() == bundle(Plain().still())


@pytest.mark.parametrize(
    ("message", "listens"),
    [
        ({"header": {"msg_type": "execute_request"}, "metadata": {"cellId": "a"}}, True),  # JupyterLab
        ({"header": {"msg_type": "comm_msg"}, "metadata": {}}, True),  # a button was pressed
        ({"header": {"msg_type": "execute_request"}, "metadata": {}}, False),  # papermill
        ({}, False),
    ],
)
def test_whoever_names_the_cell_or_presses_a_button_listens(monkeypatch, message, listens):
    class Shell:
        class kernel:
            get_parent = staticmethod(lambda: message)

    monkeypatch.setattr("loopkit.views.showing.get_ipython", Shell)
    assert listening() == listens
    made = Plain()._repr_mimebundle_()
    assert ("application/vnd.jupyter.widget-view+json" in made) == listens


def test_a_picture_has_a_widget_that_shows_the_newest_once_the_front_end_has_drawn_it(front_end):
    picture = Picture(go.Figure(layout_title_text="one"))
    live = picture.live
    picture.show(go.Figure(layout_title_text="two").add_vline(x=1, name="shown"))
    picture.move("shown", 3)
    assert isinstance(live, go.FigureWidget) and live.layout.title.text == "one", "it is being drawn"
    front_end(picture)
    assert live.layout.title.text == "two" and live.layout.shapes[0].x0 == 3 and live.layout.autosize
    picture.move("shown", 4)
    assert live.layout.shapes[0].x0 == 4
    picture.show(go.Figure(layout_title_text="three"))
    assert live.layout.title.text == "three" and not live.layout.shapes and live.layout.autosize
    picture.close()
    picture.show(go.Figure(layout_title_text="four"))
    assert live.layout.title.text == "three", "nothing is drawn once it is closed"


def test_without_anybody_a_picture_is_nothing_at_all():
    picture = Picture(go.Figure())
    assert picture.live is None and picture.children == ()
    picture.show(go.Figure())
    picture.move("shown", 1)


def test_a_printed_figure_is_an_output_like_that_of_a_cell():
    figure = go.Figure(layout_title_text="one")
    (output,) = printed(figure).outputs
    assert output["output_type"] == "display_data" and output["data"] == bundle(figure)


def test_closing_takes_all_inside_along():
    inner = ipywidgets.HTML()
    view = Plain([ipywidgets.HBox([inner])])
    view.close()
    assert inner.comm is None and view.comm is None


@pytest.mark.parametrize("color", [*PALETTE, GREEN, VERMILLION, BLUE, GREY])
@pytest.mark.parametrize("ground", ["#ffffff", "#111111"])  # JupyterLab's light and dark
def test_colours_stand_out_from_a_light_and_from_a_dark_page(color, ground):
    def luminance(hexadecimal):  # https://www.w3.org/TR/WCAG22/#dfn-relative-luminance
        parts = [int(hexadecimal[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(color), luminance(ground)))
    assert (high + 0.05) / (low + 0.05) >= 3
