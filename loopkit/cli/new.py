"""`loopkit new experiment NAME`: an experiment to make one's own."""

import argparse
import sys
from pathlib import Path
from typing import Any

EPILOG = """\
examples:
  loopkit new experiment sums
  loopkit new experiment sums --into ~/mine

It writes experiments/NAME/ (task, arms, batch.yaml with a claim, README with the protocol), a notebook and a test. All
of it runs at once, on a small task: put yours in its place, and run them again. NAME is a Python identifier in
lower case. In a folder of your own, `loopkit batch`, the notebook and the test find the experiment by where they lie.

Exit codes: 0 written; 2 the name or the folder will not do, and nothing was written.
"""


def add(commands: Any) -> None:
    """Add `new` to the `loopkit` command."""
    new = commands.add_parser(
        "new",
        help="write an experiment that runs, to make it your own",
        description="Write an experiment that runs, with a notebook, a batch file and a test, to make it your own.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    new.set_defaults(main=main)
    new.add_argument("kind", choices=["experiment"])
    new.add_argument("name", metavar="NAME", help="what it is called: experiments.NAME in Python")
    new.add_argument(
        "--into", metavar="DIR", type=Path,
        help="the folder to write into, made if need be (default: this one, if it has a folder `experiments`)",
    )  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Write the experiment that the arguments name, and say what to do with it."""
    from loopkit.scaffold import ScaffoldError, new_experiment

    try:
        written = [_short(path) for path in new_experiment(args.name, args.into)]
    except ScaffoldError as error:
        print(f"loopkit: {error}", file=sys.stderr)
        return 2
    print(*written, sep="\n")

    def one(ending: str) -> Path:
        return next(path for path in written if path.name.endswith(ending))

    print(
        f"\nIt runs as it is:\n"
        f"  loopkit batch {one('batch.yaml')}\n"
        f"  jupyter lab {one('.ipynb')}\n"
        f"  pytest {one(f'test_{args.name}.py')}\n"
        f"To make it your own, begin with {one('README.md')}."
    )
    return 0


def _short(path: Path) -> Path:
    """As seen from here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
