"""`loopkit sandbox …`: what this machine enforces, whether hostile programs are contained, and running a file."""

import argparse
import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loopkit.cli import ending

EPILOG = """\
examples:
  loopkit sandbox show
  loopkit sandbox check
  loopkit sandbox check --list
  loopkit sandbox check 'fork bomb' --walls landlock seccomp
  loopkit sandbox run program.py --seconds 5
  echo 'import sympy; sympy.factorint(2**67 - 1)' | loopkit sandbox run -
  loopkit sandbox judge 'find . -name "*.pyc" -exec rm {} +'

Exit codes: 0 all well (contained, ran to its end, allowed); 1 not contained, or the program did not end well;
2 an argument is wrong, or no sandbox can be had; 3 the judge of commands asks, 4 it refuses.
"""


def add(commands: Any) -> None:
    """Add `sandbox` and its own commands to the `loopkit` command."""
    sandbox = commands.add_parser(
        "sandbox",
        help="see what the sandbox enforces here, try hostile programs on it, run a file in it",
        description="The sandbox: code that nobody has read runs there.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sandbox.set_defaults(main=main)
    actions = sandbox.add_subparsers(dest="action", required=True)

    def action(name: str, help: str, run: Callable[[argparse.Namespace], Any]) -> Any:
        parser = actions.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        parser.set_defaults(run=run)
        return parser

    def walls(parser: Any) -> None:
        parser.add_argument(
            "--walls",
            nargs="*",
            help="build only these, where the machine has them: namespaces, landlock, seccomp",
        )

    walls(action("show", "print what keeps programs in on this machine", _show))
    check = action("check", "run hostile programs, and see whether each is contained", _check)
    check.add_argument("names", nargs="*", metavar="NAME", help="only these programs (default: all)")
    check.add_argument("--list", action="store_true", help="list the programs, and run none")
    walls(check)
    run = action("run", "run a Python file in the sandbox", _run)
    run.add_argument("file", help="the program, or - for standard input")
    run.add_argument("--seconds", type=float, default=10.0, help="limit by the clock (default: 10)")
    run.add_argument("--memory", type=int, default=512, metavar="MIB", help="limit in MiB (default: 512)")
    judge = action("judge", "say of a shell command whether an agent may run it, and why not", _judge)
    judge.add_argument("shell", metavar="COMMAND", help="the command, as one argument")


def main(args: argparse.Namespace) -> int:
    """Run the command that was parsed."""
    from loopkit.sandbox import SandboxError

    try:
        result = args.run(args)
        return result if isinstance(result, int) else ending.run(result)
    except (SandboxError, ValueError, OSError) as error:
        print(f"loopkit: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("\nloopkit: interrupted", file=sys.stderr)
        return 130


def _chosen(args: argparse.Namespace) -> dict[str, Any]:
    return {} if args.walls is None else {"walls": args.walls}


async def _show(args: argparse.Namespace) -> int:
    from loopkit.sandbox import Sandbox

    async with Sandbox(**_chosen(args)) as box:
        print(box.protection)
    return 0


def _check(args: argparse.Namespace) -> Any:
    from loopkit.sandbox.hostile import PROGRAMS

    if not args.list:
        return _checked(args)
    for program in PROGRAMS:
        print(f"{program.group:<13}{program.name:<45}{program.threatens}")
    print(f"\n{len(PROGRAMS)} programs")
    return 0


async def _checked(args: argparse.Namespace) -> int:
    from rich.progress import Progress

    from loopkit.sandbox import Sandbox
    from loopkit.sandbox.hostile import PROGRAMS, check

    def factory(**settings: Any) -> Sandbox:
        return Sandbox(**settings, **_chosen(args))

    with Progress(transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("hostile programs", total=len(args.names or PROGRAMS))
        report = await check(factory, args.names or None, on_done=lambda _: progress.advance(task))
    print(report)
    return 0 if report.ok else 1


async def _run(args: argparse.Namespace) -> int:
    from loopkit.sandbox import Limits, Sandbox

    code = sys.stdin.read() if args.file == "-" else Path(args.file).read_text(encoding="utf-8")
    async with Sandbox(limits=Limits(seconds=args.seconds, memory=args.memory << 20)) as box:
        done = await box.run(code)
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    if done.value is not None:
        print(done.value)
    if done.ended != "ok":
        print(done.error.traceback if done.error else f"{done.ended}: {done.message}", file=sys.stderr)
    return 0 if done.ended == "ok" else 1


def _judge(args: argparse.Namespace) -> int:
    from loopkit.sandbox.shell import judge

    decision = judge(args.shell)
    print(decision.verdict, *decision.reasons, sep="\n  ")
    return {"allow": 0, "ask": 3, "refuse": 4}[decision.verdict]
