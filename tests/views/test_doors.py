"""Doors: what gates say of how near they are, in the order in which they are asked."""

from loopkit import Cancel, History, MaxIterations, Threshold, Verdict
from loopkit.history import Decision, Iteration, StopReason
from loopkit.views.doors import Door, doors_info, most_turns

HISTORY = History([Iteration(number=1, decision=Decision.KEEP, candidate="a", verdict=Verdict(score=0.4))])


def test_each_gate_is_a_door_and_one_of_the_users_own_is_open_or_closed_only():
    def odd(history):
        return StopReason(gate="odd", reason="1 is odd") if len(history) % 2 else None

    gates = [Threshold(0.8), MaxIterations(1), odd, Cancel()]
    assert doors_info(gates, HISTORY) == [
        Door(gate="Threshold(score=0.8)", nearness=0.5, reason=None),
        Door(gate="MaxIterations(n=1)", nearness=1.0, reason="1 of 1 iterations used"),
        Door(gate="odd", nearness=1.0, reason="1 is odd"),
        Door(gate="Cancel()", nearness=None, reason=None),
    ]
    assert doors_info([odd], HISTORY[:0]) == [Door(gate="odd", nearness=None, reason=None)]


def test_the_most_turns_there_are_is_the_least_that_a_gate_allows():
    assert most_turns([MaxIterations(9), Threshold(1), MaxIterations(4)]) == 4
    assert most_turns([Threshold(1)]) is None
