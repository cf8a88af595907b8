"""`loopkit judge …`: what the checks say of a file."""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopkit.judges.checks import Check, CheckResult

EPILOG = """\
examples:
  loopkit judge check skills/changelog/SKILL.md
  loopkit judge check SKILL.md --only front_matter references_exist
  loopkit judge check SKILL.md --checks checks.yaml --json

What stands in the file's folder and below belongs to what is checked. A file of checks is a list in YAML, such as
`[front_matter, {length: {max_words: 400}}, {references_exist: {veto: true}}]`; without one, the checks for skill files run.
In Python: `loopkit.judges.run_checks(skill_checks(), Material.read("SKILL.md"))`.

Exit codes: 0 all passed; 1 some did not (each is named, with the places); 2 an argument is wrong, or a file cannot be read.
"""


def add(commands: Any) -> None:
    """Add `judge` and its own commands to the `loopkit` command."""
    judge = commands.add_parser(
        "judge",
        help="check a file",
        description="Judges: what says how good a text is.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    judge.set_defaults(main=main)
    actions = judge.add_subparsers(dest="action", required=True)

    def action(name: str, help: str, run: Callable[[argparse.Namespace], int]) -> Any:
        parser = actions.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        parser.set_defaults(run=run)
        return parser

    check = action("check", "say which checks a file passes, and where it does not", _check)
    check.add_argument("file", type=Path, help="the main file; its folder is the package")
    check.add_argument("--only", nargs="+", metavar="NAME", help="only these checks")
    check.add_argument(
        "--checks", type=Path, metavar="FILE", help="a list of checks in YAML (default: those for skills)"
    )
    check.add_argument("--json", action="store_true", help="print the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Run the command that was parsed."""
    try:
        return args.run(args)
    except (ValueError, OSError) as error:
        print(f"loopkit: {error}", file=sys.stderr)
        return 2


def _check(args: argparse.Namespace) -> int:
    from loopkit.judges.checks import run_checks, share
    from loopkit.judges.material import Material

    checks = _chosen(args)
    results = run_checks(checks, Material.read(args.file))
    if args.json:
        told = {
            "file": str(args.file),
            "share": share(results),
            "checks": [asdict(result) for result in results],
        }
        print(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        _print(results)
    return 0 if all(result.passed for result in results) else 1


def _chosen(args: argparse.Namespace) -> "list[Check]":
    from loopkit.judges.checks import checks_from, skill_checks

    checks = skill_checks() if args.checks is None else checks_from(_listed(args.checks))
    there = [check.name for check in checks]
    if unknown := [name for name in args.only or () if name not in there]:
        raise ValueError(f"no check {unknown[0]!r}; there are {', '.join(there)}")
    return [check for check in checks if args.only is None or check.name in args.only]


def _listed(path: Path) -> list[Any]:
    import yaml

    try:
        listed = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(listed, list) or not listed:
        raise ValueError(f"{path}: a list of checks is wanted, such as [front_matter, parses]")
    return listed


def _print(results: "list[CheckResult]") -> None:
    for result in results:
        print(
            f"{'✓' if result.passed else '✗'} {result.name}{' (veto)' if result.veto and not result.passed else ''}"
        )
        for problem in result.problems:
            print(f"    {problem}")
    print(f"\n{sum(result.passed for result in results)} of {len(results)} passed")
