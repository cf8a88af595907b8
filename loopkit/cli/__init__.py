"""The `loopkit` command: each module adds its own; all parse, call, print, and say how it went by the exit code."""

import argparse
import sys

from loopkit.cli import batch, flow, judge, new, notebooks, records, sandbox

COMMANDS = (batch, flow, judge, sandbox, records, notebooks, new)
"""Each has `add(commands)`, which sets `main`: called with the parsed arguments, it returns the exit code."""


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="loopkit",
        description="Understand, run and trust agent loops.",
        epilog="`loopkit COMMAND --help` has examples and exit codes. Notebooks: `make lab`.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for module in COMMANDS:
        module.add(commands)
    args = parser.parse_args(argv)
    args.argv = argv
    return args.main(args)
