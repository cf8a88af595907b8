"""What a person sees of a batch while it runs."""

import io

import pytest
from rich.console import Console

from loopkit.batch import board as module
from loopkit.batch.board import Board
from loopkit.batch.plan import Planned
from loopkit.batch.spec import Cell
from loopkit.store import Store

CELLS = [Cell(id=f"clauses-{n}", params={}, keys=tuple(f"{n}x{key}" for key in range(10))) for n in range(4)]


class Shown:
    """A board over four notebooks of ten trials, a clock that is set by hand, and what was printed."""

    def __init__(self, tmp_path, monkeypatch, *, terminal=False, done=0):
        self.now = 1000.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)
        self.store, self.printed = Store(tmp_path), io.StringIO()
        console = Console(file=self.printed, force_terminal=terminal, width=100, color_system=None)
        planned = [Planned(cell=cell, missing=10 - done, reason="never run", failed=False) for cell in CELLS]
        for cell in CELLS:
            self.play(cell, range(done))
        self.board = Board(planned, self.store, console)

    def play(self, cell, numbers):
        for number in numbers:
            self.store.create(cell.keys[number]).close()

    def table(self):
        with (console := Console(file=io.StringIO(), width=100)).capture() as capture:
            console.print(self.board)
        return capture.get()


@pytest.fixture
def shown(tmp_path, monkeypatch):
    return lambda **how: Shown(tmp_path, monkeypatch, **how)


def test_the_table_tells_what_runs_and_how_long_it_will_take(shown):
    it = shown()
    first, second = CELLS[:2]
    assert "0 of 4 notebooks done · 4 waiting · 0 s" in it.table()
    it.board.begin(first, 1)
    it.board.begin(second, 2)
    it.play(first, range(3))
    it.play(second, range(1))
    it.now += 60
    table = it.table()
    assert "clauses-0" in table and "3/10 trials" in table and "1 min 00 s" in table
    assert "attempt 2" in table and "attempt 1" not in table
    # 4 of 40 trials in a minute
    assert "0 of 4 notebooks done · 2 waiting · 1 min 00 s · about 9 min 00 s left" in table
    it.board.end(first, {"status": "done", "detail": ""}, again=False)
    it.board.end(second, {"status": "timeout", "detail": "too long"}, again=False)
    table = it.table()
    assert "1 of 4 notebooks done · 1 failed · 2 waiting" in table
    assert "clauses-0" not in table


def test_trials_that_were_there_before_do_not_count_as_progress(shown):
    it = shown(done=5)
    it.board.begin(CELLS[0], 1)
    it.now += 3600
    assert "left" not in it.table()
    it.play(CELLS[0], [5])
    assert "about 19 h 00 min left" in it.table()


def test_each_notebook_is_a_line_where_there_is_no_terminal(shown):
    it = shown()
    with it.board as board:
        for cell, how, again in (
            (CELLS[0], {"status": "done", "detail": ""}, False),
            (CELLS[1], {"status": "dead_kernel", "detail": "Kernel died [signal 9]"}, True),
            (CELLS[1], {"status": "failed", "detail": "ValueError: [b]no[/b]"}, False),
        ):
            board.begin(cell, 1)
            it.now += 2.5
            board.end(cell, how, again=again)
    assert it.printed.getvalue().splitlines() == [
        "✓ 1/4 clauses-0: 2.5 s",
        "✗ 1/4 clauses-1: dead_kernel: Kernel died [signal 9]; trying again",
        "✗ 2/4 clauses-1: failed: ValueError: [b]no[/b]",
    ]


def test_a_terminal_has_lines_for_failures_only(shown):
    it = shown(terminal=True)
    it.board.begin(CELLS[0], 1)
    it.board.end(CELLS[0], {"status": "done", "detail": ""}, again=False)
    assert it.printed.getvalue() == ""
    it.board.begin(CELLS[1], 1)
    it.board.end(CELLS[1], {"status": "failed", "detail": "no"}, again=False)
    assert "✗ 2/4 clauses-1: failed: no" in it.printed.getvalue()
