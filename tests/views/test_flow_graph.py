"""The graph of a flow's run: all that is declared, and counters that follow from the record."""

from collections import Counter

import pytest

from loopkit.flow import Flow
from loopkit.store import Run
from loopkit.views.flow_graph import flow_figure, flow_info, is_flow


def test_counters_are_those_of_the_record(waiting):
    info = flow_info(waiting)
    assert [(node.name, node.kind, node.visits, node.here) for node in info.nodes] == [
        ("write", "code", 2, False), ("check", "code", 2, False), ("ask", "human", 1, True),
        ("done", "end", 0, False), ("failed", "end", 0, False),
    ]  # fmt: skip
    ways = {(way.source, way.target): way for way in info.ways}
    assert {place: way.taken for place, way in ways.items() if way.taken} == {
        ("write", "check"): 2, ("check", "write"): 1, ("check", "ask"): 1,
    }  # fmt: skip
    assert ways["check", "write"].limit == 3 and ways["check", "write"].why == ("not output.ok",)
    assert ways["check", "failed"].why == ("a limit",) and ways["ask", "done"].why == (
        "output.decision == 'yes'",
    )


def test_they_are_those_of_each_moment(waiting):
    for at in range(1, 6):
        info = flow_info(waiting, at)
        begun = [event for event in waiting.all("visit") if event["iteration"] <= at]
        ended = [event for event in waiting.all("iteration") if event["iteration"] <= at]
        assert {node.name: node.visits for node in info.nodes if node.visits} == Counter(
            event["step"] for event in begun
        )
        assert sum(way.taken for way in info.ways) == len(ended)
        assert [node.name for node in info.nodes if node.here] == [begun[-1]["step"]]


async def test_a_run_that_ended_stands_at_its_end(waiting, approval, store):
    with store.resume("flow") as log:
        approval.answer(log, {"decision": "no"})
        await approval.run(log=log)
    info = flow_info(store.run("flow"))
    assert [(node.name, node.visits) for node in info.nodes if node.here] == [("failed", 1)]


async def test_failures_are_counted_and_where_they_led_is_drawn(store):
    text = """
flow: f
steps:
  - { id: a, code: broken, goto: done, on_failure: b }
  - { id: b, code: fine, goto: done }
"""

    def broken(context):
        raise RuntimeError("no")

    with store.create("f") as log:
        await Flow.parse(text, {"broken": broken, "fine": lambda context: {}}).run(log=log)
    info = flow_info(store.run("f"))
    assert [(node.name, node.failures) for node in info.nodes] == [("a", 1), ("b", 0), ("done", 0)]
    assert ("a", "b", 1, ("a failure",)) in [
        (way.source, way.target, way.taken, way.why) for way in info.ways
    ]
    assert ("b", "failed") not in [(way.source, way.target) for way in info.ways], "what any step can do"


def test_each_way_and_step_is_drawn_once_and_told_apart_by_more_than_colour(waiting):
    info = flow_info(waiting)
    figure = flow_figure(info)
    names = [trace.name for trace in figure.data]
    assert len(names) == len(set(names)) == len(info.nodes) + len(info.ways)
    traces = {trace.name: trace for trace in figure.data}
    assert traces["check → write"].line.dash == "solid" and "1 of 3" in "".join(traces["check → write"].text)
    assert traces["ask → done"].line.dash == "dot" and set(traces["ask → done"].text) == {""}
    assert min(traces["check → write"].x) < -1.5 and max(traces["check → failed"].x) > 1.5, (
        "back left, on right"
    )
    assert traces["write"].text == ("write &lt;it&gt; ×2",) and traces["ask"].text[0].startswith("▶ ")
    widths = {shape.name: shape.line.width for shape in figure.layout.shapes}
    assert widths["ask"] > widths["write"]
    low, high = figure.layout.xaxis.range
    assert all(low <= x <= high for trace in figure.data for x in trace.x)


def test_only_a_flows_run_is_one(waiting, drafts, recorded):
    assert is_flow(waiting) and not is_flow(recorded(drafts(0.9)))
    with pytest.raises(ValueError, match="not begun by a flow"):
        flow_info(Run("r", []))
