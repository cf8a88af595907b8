"""What a person sees of a batch while it runs: a live table in a terminal, a line for each notebook elsewhere."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from loopkit.batch.plan import Planned
from loopkit.batch.spec import Cell
from loopkit.store import Store

SHOWN = 12
"""Running notebooks listed at most."""


@dataclass(frozen=True, kw_only=True)
class _Running:
    cell: Cell
    attempt: int
    since: float


class Board:
    """A context: shown while it is open. It reads how far the running notebooks are from the records."""

    def __init__(self, planned: Sequence[Planned], store: Store, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._store, self._started = store, time.monotonic()
        self._todo = {one.cell.id: one.missing for one in planned}
        """How many trials each notebook that has to run will play."""
        self._before = {one.cell.id: len(one.cell.keys) - one.missing for one in planned}
        self._running: dict[str, _Running] = {}
        self._ended: dict[str, str] = {}
        self._live = Live(
            get_renderable=self.__rich__, console=self.console, refresh_per_second=2, transient=True
        )

    def __enter__(self) -> "Board":
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def begin(self, cell: Cell, attempt: int) -> None:
        """A notebook starts, for the first time or again."""
        self._running[cell.id] = _Running(cell=cell, attempt=attempt, since=time.monotonic())

    def end(self, cell: Cell, how: Mapping[str, Any], *, again: bool) -> None:
        """A notebook ended; `again` if it will be tried once more."""
        running = self._running.pop(cell.id)
        done = how["status"] == "done"
        if not again:
            self._ended[cell.id] = how["status"]
        if done and self.console.is_terminal:
            return
        mark = "[green]✓[/]" if done else "[red]✗[/]"
        words = f"{time.monotonic() - running.since:.1f} s" if done else f"{how['status']}: {how['detail']}"
        more = "; trying again" if again else ""
        count = f"{len(self._ended)}/{len(self._todo)}"
        self.console.print(f"{mark} {count} {cell.id}: {escape(words)}{more}", soft_wrap=True)

    def __rich__(self) -> Group:
        table = Table(box=None, pad_edge=False, show_header=False)
        now = time.monotonic()
        for one in list(self._running.values())[:SHOWN]:
            total, played = len(one.cell.keys), self._played(one.cell)
            table.add_row(
                Text(one.cell.id, overflow="ellipsis", no_wrap=True),
                ProgressBar(total=total, completed=played, width=24),
                f"{played}/{total} trials",
                _span(now - one.since),
                f"attempt {one.attempt}" if one.attempt > 1 else "",
            )
        return Group(table, Text(self._words(now), style="dim"))

    def _words(self, now: float) -> str:
        done = sum(status == "done" for status in self._ended.values())
        words = [f"{done} of {len(self._todo)} notebooks done"]
        if failed := len(self._ended) - done:
            words.append(f"{failed} failed")
        if waiting := len(self._todo) - len(self._ended) - len(self._running):
            words.append(f"{waiting} waiting")
        words.append(_span(now - self._started))
        if (left := self._left(now)) is not None:
            words.append(f"about {_span(left)} left")
        return " · ".join(words)

    def _left(self, now: float) -> float | None:
        """Seconds until the end, if all trials take as long as those so far did; None while none has ended."""
        played = sum(self._todo[name] for name in self._ended) + sum(
            max(0, self._played(one.cell) - self._before[name]) for name, one in list(self._running.items())
        )
        total = sum(self._todo.values())
        return (now - self._started) * (total - played) / played if played else None

    def _played(self, cell: Cell) -> int:
        return sum(self._store.path(key).exists() for key in cell.keys)


def _span(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"
