"""`loopkit runs`, `loopkit report` and `loopkit ledger`: what is on record, listed, shown and exported."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

RUNS = """\
examples:
  loopkit runs
  loopkit runs runs/knights-batch --where arm=clauses --where people=5 --sort seconds --limit 10
  loopkit runs --status unfinished --status damaged
  loopkit runs runs/demo --export demo.csv

Every attempt is a run; `loopkit report FOLDER --export FILE` has a row per trial, its retries resolved. In Python:
`loopkit.runs_df("runs")`. Exit codes: 0 listed; 1 a log is damaged (it is listed too, and its fault named); 2 an
argument is wrong, or the file cannot be written.
"""
REPORT = """\
examples:
  loopkit report runs/demo
  loopkit report runs/knights-batch --export trials.parquet

Records are read through their index, so that only what is new takes time. A batch that is still running, or was
interrupted, has a report too, which says so. In Python: `loopkit.trials_df("runs/demo")`. Exit codes: 0 written;
1 written, but a record is damaged and counts nowhere (each is named); 2 there is no batch, its own log is damaged, or
a file cannot be written.
"""
LEDGER = """\
examples:
  loopkit ledger
  loopkit ledger runs/demo --history
  loopkit ledger runs experiments --export ledger.csv

One line per claim and batch: the verdict now, since when, and how it came to it. A result that is committed with the
project is `recorded`. A verdict on simulated models, or of a batch that could not run all of its trials, says so, and
so does one on a claim that was declared after trials that it is about were on record (`post hoc`). A claim whose words
or terms were changed is marked where it was (`restated`), one that was left out when the batch ran again stays in the
list (`withdrawn`). In Python: `loopkit.ledger_df()`. Exit codes: 0 listed; 1 a log or a result is damaged (it is
named); 2 an argument is wrong, or the file cannot be written.
"""
SHOWN = 50
"""Rows of a table, unless asked for otherwise."""
NAMED = 10
"""Damaged logs whose fault is printed."""
COLOURS = {
    "supported": "green", "not supported": "yellow", "contradicted": "red",
    "finished": "green", "damaged": "red", "unfinished": "yellow", "waiting": "yellow",
}  # fmt: skip


def add(commands: Any) -> None:
    """Add `runs`, `report` and `ledger` to the `loopkit` command."""

    def command(name: str, run: Callable[[argparse.Namespace], int], help: str, epilog: str) -> Any:
        parser = commands.add_parser(
            name,
            help=help,
            description=f"{help[0].upper()}{help[1:]}.",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.set_defaults(main=main, run=run)
        return parser

    def exported(parser: Any, what: str) -> None:
        parser.add_argument(
            "--export",
            type=_export_path,
            metavar="FILE",
            help=f"write {what} to FILE: .csv, .json or .parquet",
        )

    runs = command("runs", _runs, "list the runs on record", RUNS)
    runs.add_argument(
        "folder", type=Path, nargs="?", default=Path("runs"), help="look at and below it (default: runs)"
    )
    runs.add_argument(
        "--status", action="append", metavar="STATUS",
        choices=("finished", "stopped", "waiting", "unfinished", "damaged"),
        help="only finished, stopped, waiting, unfinished or damaged ones; may be repeated",
    )  # fmt: skip
    runs.add_argument(
        "--where", action="append", default=[], type=_setting, metavar="NAME=VALUE",
        help="only those with this value of a parameter or column; may be repeated, and all must hold",
    )  # fmt: skip
    runs.add_argument("--sort", metavar="NAME", help="a column; largest or latest first (default: started)")
    runs.add_argument("--reverse", action="store_true", help="smallest or earliest first")
    runs.add_argument(
        "--limit", type=_count, metavar="N",
        help=f"the first N (default: {SHOWN} in the table, all in an export; 0: all)",
    )  # fmt: skip
    exported(runs, "the rows, with all their columns,")

    report = command("report", _report, "write the report of a batch again, from its records", REPORT)
    report.add_argument(
        "folder", type=Path, help="the batch's folder: what --out named, or runs/<experiment>-<file>"
    )
    exported(report, "a row per trial")

    ledger = command("ledger", _ledger, "list every claim of every batch, and its verdict over time", LEDGER)
    ledger.add_argument(
        "folders", type=Path, nargs="*", metavar="FOLDER",
        help="look at and below them (default: runs and experiments, where there are any)",
    )  # fmt: skip
    ledger.add_argument("--history", action="store_true", help="every entry there ever was, oldest first")
    exported(ledger, "the rows, with all their columns,")


def _export_path(text: str) -> Path:
    from loopkit.export import check_export

    try:
        return check_export(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"reads NAME=VALUE, got {text!r}")
    return name, value


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number >= 0, got {text!r}")
    return int(text)


def main(args: argparse.Namespace) -> int:
    """Run the command that was parsed."""
    from loopkit.store import StoreError

    try:
        return args.run(args)
    except (StoreError, ValueError, OSError) as error:
        print(f"loopkit: {error}", file=sys.stderr)
        return 2


def _runs(args: argparse.Namespace) -> int:
    from loopkit.export import plain_rows
    from loopkit.listing import runs_df

    frame = runs_df(args.folder)
    rows = plain_rows(frame)
    damaged = [row["problem"] for row in rows if row["status"] == "damaged"]
    places = [place for place, row in enumerate(rows) if not args.status or row["status"] in args.status]
    for name, text in args.where:
        places = [place for place in places if fits(text, _value(rows[place], name))]
    # Where all logs are damaged, nobody knows when they were started.
    by = args.sort or ("started" if "started" in frame else "run")
    places = ordered(places, lambda place: _value(rows[place], by), descending=not args.reverse)
    chosen = places[: args.limit] if args.limit else places
    shown = chosen if args.limit is not None else chosen[:SHOWN]
    _print([_run(rows[place]) for place in shown])
    if not places:
        print("no such runs")
    elif len(shown) < len(places):
        print(f"\n{len(shown):,} of {len(places):,} runs; --limit 0 lists all")
    return _end(frame.iloc[chosen], args.export, damaged)


def _report(args: argparse.Namespace) -> int:
    from loopkit.batch.records import rewrite_report
    from loopkit.export import to_frame
    from loopkit.store import flat

    report = rewrite_report(args.folder)
    print(
        f"{report.batch.name}: {report.batch.state}, {len(report.trials):,} of {len(report.batch.keys):,} trials have ended"
    )
    code = _end(to_frame([flat(trial) for trial in report.trials]), args.export, report.damaged)
    print(f"report: {report.path}")
    return code


def _ledger(args: argparse.Namespace) -> int:
    from loopkit.batch.ledger import PLACES, ledger_df
    from loopkit.export import plain_rows

    frame = ledger_df(*args.folders, history=args.history)
    rows = plain_rows(frame)
    _print([_entry(row) if args.history else _claim(row) for row in rows])
    if not rows:
        print(f"no claims in {', '.join(map(str, args.folders or PLACES))}")
    return _end(frame, args.export, [row["problem"] for row in rows if row.get("problem")])


def _end(frame: "pd.DataFrame", path: Path | None, damaged: Sequence[str] = ()) -> int:
    """Name what is damaged, export, and return the exit code."""
    from loopkit.export import export

    for problem in damaged[:NAMED]:
        print(f"\ndamaged: {problem}")
    if len(damaged) > NAMED:
        print(f"\ndamaged: {len(damaged) - NAMED:,} more; an export of the listing has the fault of each")
    if path is not None:
        print(f"\n{len(frame):,} rows: {export(frame, path)}")
    return 1 if damaged else 0


def _value(row: Mapping[str, Any], name: str) -> Any:
    if name not in row:
        raise ValueError(f"no column {name!r}; there are {', '.join(row)}")
    return row[name]


def fits(text: str, value: Any) -> bool:
    """Whether `value` is what was typed: as text, or as the YAML that `--set` reads."""
    import yaml

    if str(value) == text:
        return True
    try:
        return bool(yaml.safe_load(text) == value)
    except (yaml.YAMLError, ValueError, RecursionError):
        return False


def ordered(things: Iterable[Any], value: Callable[[Any], Any], *, descending: bool) -> list[Any]:
    """`things` by their values: numbers, then text; those without one come last either way."""

    def rank(thing: Any) -> tuple[bool, Any]:
        one = value(thing)
        return (False, one) if isinstance(one, int | float) else (True, str(one))

    things = list(things)
    there = [thing for thing in things if value(thing) is not None]
    return sorted(there, key=rank, reverse=descending) + [thing for thing in things if value(thing) is None]


Cells = Mapping[str, str]
NOTHING = "–"
LEAST = (
    "best",
    "seconds",
    "effect",
    "iterations",
    "experiment",
    "cost",
    "stopped by",
    "tokens",
    "p",
    "model",
    "p by Holm",
    "store",
)
"""What a terminal without room for all columns does without, in this order."""
NUMBERS = {"iterations", "best", "tokens", "cost", "seconds", "n", "p", "p by Holm", "effect"}

SIMULATED = {"all": " (simulated)", "some": " (partly simulated)"}


def _run(row: Mapping[str, Any]) -> Cells:
    return {
        **{
            name: _text(row.get(name))
            for name in ("run", "store", "experiment", "arm", "model", "status", "result")
        },
        "iterations": _text(row.get("iterations"), ",.0f"),
        "stopped by": _text(row.get("stopped_by")),
        "best": _text(row.get("best_score"), "g"),
        "tokens": _text(row.get("tokens"), ",.0f"),
        "cost": _text(row.get("cost") or None, ",.4f"),
        "seconds": _text(row.get("seconds"), ",.1f"),
        "started": _time(row.get("started")),
    }


def _claim(row: Mapping[str, Any]) -> Cells:
    stands = "" if row["state"] == "finished" else f" ({row['state']})"
    return (
        _which(row)
        | {"since": _time(row["since"]), "changes": _text(row["changes"])}
        | _numbers(row)
        | {"source": row["source"] + stands}
    )


def _entry(row: Mapping[str, Any]) -> Cells:
    restated = {"changes": "restated" if row["restated"] else NOTHING}
    return {"time": _time(row["time"])} | _which(row) | restated | _numbers(row) | {"source": row["source"]}


def _which(row: Mapping[str, Any]) -> Cells:
    marks = SIMULATED.get(row["simulated"], "") + " (incomplete)" * (row["complete"] is False)
    marks += " (post hoc)" * (row["post_hoc"] is True)
    which = {name: _text(row[name]) for name in ("experiment", "batch", "claim")}
    return which | {"verdict": _text(row["verdict"]) + marks}


def _numbers(row: Mapping[str, Any]) -> Cells:
    return {
        "n": _text(row["n"], ",.0f"),
        "effect": _text(row["effect"], "+.3f"),
        "p": _p(row["p"]),
        "p by Holm": _p(row["p_holm"]),
    }


def _p(p: float | None) -> str:
    return "<0.001" if p is not None and p < 0.001 else _text(p, ".3f")


def _text(value: Any, spec: str = "") -> str:
    return NOTHING if value is None else format(value, spec) if spec else str(value)


def _time(value: Any) -> str:
    """To the minute, in UTC."""
    return _text(value)[:16].replace("T", " ")


def _print(rows: Sequence[Cells]) -> None:
    """A table of the columns that say something, as many as a terminal has room for."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    if not rows:
        return

    def table(headings: Sequence[str]) -> Table:
        made = Table(box=None, pad_edge=False, header_style="dim")
        for heading in headings:
            made.add_column(heading, justify="right" if heading in NUMBERS else "left", overflow="fold")
        for row in rows:
            made.add_row(*(_coloured(escape(row[heading])) for heading in headings))
        return made

    # Piped output has no width of its own: there each row keeps to its line.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 1000)
    endless = console.options.update_width(10_000)
    headings = [heading for heading in rows[0] if any(row[heading] != NOTHING for row in rows)]
    left_out = []
    for heading in LEAST:
        wanted = console.measure(table(headings), options=endless).maximum
        if heading in headings and wanted > console.width:
            headings.remove(heading)
            left_out.append(heading)
    console.print(table(headings))
    if left_out:
        console.print(f"no room for {', '.join(left_out)}; --export has everything", style="dim")


def _coloured(cell: str) -> str:
    colour = COLOURS.get(cell.partition(" (")[0])
    return f"[{colour}]{cell}[/]" if colour else cell
