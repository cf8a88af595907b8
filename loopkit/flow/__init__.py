"""Flows: graphs declared in YAML, checked before anything runs, walked by an engine that owns every way.

flow = Flow.load("factory.yaml")
with Store("runs/factory").create("monday") as log:
    outcome = await flow.run(log=log, simulation=Simulation(seed=1))
"""

from loopkit.flow.flow import Flow
from loopkit.flow.outcome import Counters, FlowOutcome
from loopkit.flow.simulation import Simulation
from loopkit.flow.source import FlowError
from loopkit.flow.world import Context, Question, World

__all__ = ["Context", "Counters", "Flow", "FlowError", "FlowOutcome", "Question", "Simulation", "World"]
