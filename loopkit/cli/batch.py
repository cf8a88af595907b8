"""`loopkit batch …`: run a grid of notebooks."""

import argparse
import asyncio
import shlex
import sys
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopkit.cli import ending

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from loopkit.batch import BatchSpec, Choice
    from loopkit.batch.runner import BatchOutcome

EPILOG = """\
examples:
  loopkit batch experiments/knights/batch.yaml
  loopkit batch experiments/knights/demo.yaml --out runs/demo
  loopkit batch experiments/knights/batch.yaml --dry-run
  loopkit batch experiments/knights/batch.yaml --only arm=clauses --shard 1/2
  loopkit batch experiments/knights/batch.yaml --set count=5 --set 'arm=[clauses]' --set model=openai:gpt-5-mini

claims of a batch file: id, says, arm, where (parameter: value or list), measure, and one of
  over: ARM          it has more: paired test on the same items, p_below (0.05) after Holm's correction
  under: ARM         it has less
  same_as: ARM       no difference beyond margin: NUMBER, by the whole 95 % interval of the difference
  at_least: NUMBER   the whole 95 % interval of the mean lies there
  at_most: NUMBER
  equals: NUMBER     every trial has exactly this; with within: NUMBER, the whole 95 % interval lies so near
A measure is accuracy (the default), iterations, tokens, seconds, or one that the experiment records. over_where says
what differs from where for the other arm, such as {model: "simulated:random"}. A claim is declared when the batch
first begins with its terms; one that is declared after trials it is about were on record is marked post hoc.

The same command again does only what is missing. Exit codes: 0 everything ran; 1 a notebook or a trial could not
run (each is named); 2 the batch file, a parameter or a model is wrong; 130 interrupted (run it again to go on).
"""


def add(commands: Any) -> None:
    """Add `batch` to the `loopkit` command."""
    batch = commands.add_parser(
        "batch",
        help="run a grid of notebooks and adjudicate its claims",
        description="Run a grid of notebooks, record every trial, adjudicate the claims, write the report.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    batch.set_defaults(main=main)
    batch.add_argument("spec", type=Path, help="a batch.yaml: experiment, notebook, grid, claims")
    batch.add_argument(
        "--set", dest="overrides", metavar="NAME=VALUE", action="append", default=[],
        help="override a parameter; the value is YAML, a list makes it an axis of the grid; may be repeated",
    )  # fmt: skip
    batch.add_argument(
        "--out", type=Path, help="where records and report go (default: runs/<experiment>-<file>)"
    )
    batch.add_argument(
        "--workers", type=_positive, help="notebooks at a time (default: 2, or 1 on a single core)"
    )
    batch.add_argument("--dry-run", action="store_true", help="say what would run, and why; write nothing")
    batch.add_argument(
        "--only", metavar="WHICH", action="append", default=[],
        help="only these notebooks: a pattern for the name, such as 'clauses-*', or NAME=VALUE; may be repeated",
    )  # fmt: skip
    batch.add_argument(
        "--failed",
        action="store_true",
        help="only notebooks that could not run, or had a trial that could not",
    )
    batch.add_argument(
        "--shard",
        metavar="I/N",
        type=_shard,
        help="only the I-th of N parts, to share a batch between machines",
    )
    batch.add_argument(
        "--dask", metavar="ADDRESS",
        help="execute on the workers of this Dask scheduler, such as tcp://host:8786 (needs loopkit[dask])",
    )  # fmt: skip
    batch.add_argument(
        "--cold",
        action="store_true",
        help="start every kernel anew, not as a fork of a process that is loaded",
    )


def _shard(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"reads I/N, such as 2/3, got {text!r}")
    return int(part), int(parts)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number >= 1, got {text!r}")
    return int(text)


def main(args: argparse.Namespace) -> int:
    """Run the batch that the arguments name, or say what it would run."""
    from loopkit.assets import AssetError
    from loopkit.batch import Choice, SpecError, load_spec, run_batch
    from loopkit.store import StoreError

    choice = Choice(only=tuple(args.only), failed=args.failed, shard=args.shard)
    try:
        spec = load_spec(args.spec, args.overrides)
        out = args.out or Path("runs") / f"{spec.experiment}-{args.spec.stem}"
        if args.dry_run:
            return _print_plan(spec, out, choice)
        outcome = ending.run(
            run_batch(
                spec,
                out,
                name=args.spec.stem,
                command=shlex.join(["loopkit", *args.argv]),
                workers=args.workers,
                choice=choice,
                warm=not args.cold,
                dask=args.dask,
            )
        )
    except (SpecError, AssetError, StoreError) as error:
        print(f"loopkit: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("\nloopkit: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    _print(outcome)
    return 0 if outcome.complete else 1


def _print_plan(spec: "BatchSpec", out: Path, choice: "Choice") -> int:
    from rich.markup import escape

    from loopkit.batch import choose, expand, plan

    planned = plan(choose(expand(spec), choice), spec, out, failed=choice.failed)
    todo = [one for one in planned if one.reason]
    console, table = _console(), _table("notebook", "trials to run", "because", right={"trials to run"})
    for one in todo:
        table.add_row(escape(one.cell.id), f"{one.missing} of {len(one.cell.keys)}", escape(one.reason))
    if todo:
        console.print(table)
    trials = sum(one.missing for one in todo)
    print(f"{len(todo)} of {len(planned)} notebooks would run, with {trials} trials; records in {out}")
    return 0


def _console() -> "Console":
    from rich.console import Console

    # Piped output has no width of its own; 80 columns would fold a table into shreds.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def _table(*headings: str, right: Container[str]) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left")
    return table


def _print(outcome: "BatchOutcome") -> None:
    from rich.markup import escape

    from loopkit.batch.claims.wording import number
    from loopkit.views import model_label

    console, summary = _console(), outcome.summary
    console.print(f"\n[bold]{escape(summary['question'])}[/]\n")
    numbers = ("n", "right", "accuracy", "95 % interval", "tokens", "seconds")
    table = _table("arm", "model", *numbers[:4], "failures", *numbers[4:], right=numbers)
    for row in summary["rows"]:
        low, high = row["wilson_low"], row["wilson_high"]
        table.add_row(
            escape(row["arm"]),
            escape(model_label(row["model"])),
            str(row["n"]),
            str(row["correct"]),
            "–" if row["accuracy"] is None else f"{row['accuracy']:.1%}",
            "–" if low is None else f"{low:.1%} to {high:.1%}",
            escape(", ".join(f"{kind} {n}" for kind, n in row["failures"].items()) or "–"),
            f"{row['tokens']:,}",
            f"{row['seconds']:.0f}",
        )
    console.print(table)
    if means := [(row, name, got) for row in summary["rows"] for name, got in row["measures"].items()]:
        table = _table(
            "arm", "model", "measure", *numbers[:1], "mean", "95 % interval", right=(*numbers, "mean")
        )
        for row, name, got in means:
            interval = "–" if got["low"] is None else f"{number(got['low'])} to {number(got['high'])}"
            table.add_row(
                escape(row["arm"]),
                escape(model_label(row["model"])),
                name,
                str(got["n"]),
                number(got["mean"]),
                interval,
            )
        console.print("")
        console.print(table)
    colours = {"supported": "green", "not supported": "yellow", "contradicted": "red"}
    for claim in summary["claims"]:
        marks = {"all": ", simulated", "some": ", partly simulated"}.get(claim["simulated"], "")
        marks += ", post hoc" * bool(claim["post_hoc"])
        verdict = f"[bold {colours[claim['verdict']]}]{claim['verdict'].upper()}{marks}[/]"
        console.print(f"\n{verdict}  {escape(claim['says'])}\n  {escape(claim['explained'])}")
    for problem in outcome.problems:
        console.print(f"\n[bold red]COULD NOT RUN[/]  {escape(problem)}")
    console.print(f"\nreport: {outcome.out / 'report.html'}", soft_wrap=True)
