"""What became of each hostile program, and of all."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["contained", "not enforced here", "ESCAPED", "error"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One program."""

    name: str
    group: str
    threatens: str
    outcome: Outcome
    """`error`: it was not shown to be contained, as the sandbox failed, or the program did not do what it is for."""
    ended: str = ""
    """How its execution ended; empty where it was not run."""
    detail: str = ""
    """What it managed, what went wrong, or which protection is missing."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Report:
    """One row for each program, in the order in which they ran, and a last one for the clean-up."""

    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        """Whether every program was contained, as far as this machine has protections."""
        return bool(self.rows) and all(row.outcome in ("contained", "not enforced here") for row in self.rows)

    @property
    def summary(self) -> str:
        """The counts, in one line."""
        counts = Counter(row.outcome for row in self.rows)
        parts = [f"{counts['contained']} contained"]
        if counts["not enforced here"]:
            missing = sorted({row.detail for row in self.rows if row.outcome == "not enforced here"})
            parts.append(f"{counts['not enforced here']} not enforced here ({'; '.join(missing)})")
        parts += [f"{counts[bad]} {bad}" for bad in ("ESCAPED", "error") if counts[bad]]
        return f"{len(self.rows)} checks: {', '.join(parts)}"

    def table(self) -> str:
        """A line for each program, then the summary; plain text for a terminal."""
        width = max((len(row.name) for row in self.rows), default=0)
        lines = [
            f"{row.group:<12} {row.name:<{width}}  {row.outcome:<17} {row.ended:<9} {row.seconds:5.2f} s  {row.detail}".rstrip()
            for row in self.rows
        ]
        return "\n".join([*lines, "", self.summary])

    def __str__(self) -> str:
        return self.table()
