"""The `loopkit` command: parses, calls, prints."""

import argparse
import asyncio
import contextlib
import shlex
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from loopkit import cli_flow, cli_sandbox

if TYPE_CHECKING:
    from loopkit.batch.runner import BatchOutcome

T = TypeVar("T")

EPILOG = """\
examples:
  loopkit batch experiments/knights/batch.yaml
  loopkit batch experiments/knights/demo.yaml --out runs/demo
  loopkit batch experiments/knights/batch.yaml --set count=5 --set 'arm=[clauses]' --set model=openai:gpt-5-mini

The same command again does only what is missing. Exit codes: 0 everything ran; 1 a notebook or a trial could not
run (each is named); 2 the batch file, a parameter or a model is wrong; 130 interrupted (run it again to go on).
"""


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="loopkit",
        description="Understand, run and trust agent loops.",
        epilog="`loopkit batch --help`, `loopkit flow --help` and `loopkit sandbox --help` have examples and exit codes. Notebooks: `make lab`.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    batch = commands.add_parser(
        "batch",
        help="run a grid of notebooks and adjudicate its claims",
        description="Run a grid of notebooks, record every trial, adjudicate the claims, write the report.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    batch.add_argument("spec", type=Path, help="a batch.yaml: experiment, notebook, grid, claims")
    batch.add_argument(
        "--set", dest="overrides", metavar="NAME=VALUE", action="append", default=[],
        help="override a parameter; the value is YAML, a list makes it an axis of the grid; may be repeated",
    )  # fmt: skip
    batch.add_argument(
        "--out", type=Path, help="where records and report go (default: runs/<experiment>-<file>)"
    )
    batch.add_argument("--workers", type=int, help="notebooks at a time (default: 2, or 1 on a single core)")
    cli_flow.add(commands)
    cli_sandbox.add(commands)
    args = parser.parse_args(argv)
    if args.command == "flow":
        return cli_flow.main(args, _ended_by_sigterm)
    if args.command == "sandbox":
        return cli_sandbox.main(args, _ended_by_sigterm)
    if args.workers is not None and args.workers < 1:
        parser.error(f"--workers must be >= 1, got {args.workers}")
    return _batch(args, sys.argv[1:] if argv is None else argv)


def _batch(args: argparse.Namespace, argv: list[str]) -> int:
    from loopkit.assets import AssetError
    from loopkit.batch import SpecError, load_spec, run_batch
    from loopkit.store import StoreError

    command = shlex.join(["loopkit", *argv])
    try:
        spec = load_spec(args.spec, args.overrides)
        out = args.out or Path("runs") / f"{spec.experiment}-{args.spec.stem}"
        outcome = asyncio.run(
            _ended_by_sigterm(
                run_batch(spec, out, name=args.spec.stem, command=command, workers=args.workers)
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


async def _ended_by_sigterm(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; SIGTERM ends it as Ctrl-C does: workers stopped, everything recorded, resumable."""
    with contextlib.suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    return await work


def _print(outcome: "BatchOutcome") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from loopkit.views import model_label

    # Piped output has no width of its own; 80 columns would fold the table into shreds.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    summary = outcome.summary
    console.print(f"\n[bold]{escape(summary['question'])}[/]\n")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in (
        "arm",
        "model",
        "n",
        "right",
        "accuracy",
        "95 % interval",
        "failures",
        "tokens",
        "seconds",
    ):
        table.add_column(heading, justify="left" if heading in {"arm", "model", "failures"} else "right")
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
    colours = {"supported": "green", "not supported": "yellow", "contradicted": "red"}
    for claim in summary["claims"]:
        verdict = f"[bold {colours[claim['verdict']]}]{claim['verdict'].upper()}[/]"
        console.print(f"\n{verdict}  {escape(claim['says'])}\n  {escape(claim['explained'])}")
    for problem in outcome.problems:
        console.print(f"\n[bold red]COULD NOT RUN[/]  {escape(problem)}")
    console.print(f"\nreport: {outcome.out / 'report.html'}", soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
