"""`loopkit judge …`: what the checks say of a file, and what a judge's word is worth."""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopkit.cli import ending

if TYPE_CHECKING:
    from loopkit.judges import Calibration, Labelled
    from loopkit.judges.checks import Check, CheckResult
    from loopkit.judges.fallback import Judge

EPILOG = """\
examples:
  loopkit judge check skills/changelog/SKILL.md
  loopkit judge check SKILL.md --only front_matter references_exist
  loopkit judge check SKILL.md --checks checks.yaml --json
  loopkit judge calibrate --model simulated:kind-judge
  loopkit judge calibrate --model embedded --hybrid --limit 20
  loopkit judge calibrate mine.jsonl --model openai:gpt-5-mini --threshold 0.7 --json

What stands in the file's folder and below belongs to what is checked. A file of checks is a list in YAML, such as
`[front_matter, {length: {max_words: 400}}, {references_exist: {veto: true}}]`; without one, the checks for skill files run.
In Python: `loopkit.judges.run_checks(skill_checks(), Material.read("SKILL.md"))`.

`calibrate` lets the rubric judge for skill files judge texts that are labelled already, and says whether it is fit to
stop a loop. A labelled file has one JSON object a line (id, main; accept, score or scores: `loopkit.judges.Labelled`),
or is a pydantic-evals data set in YAML or JSON. The same command again asks only what is missing.

Exit codes: 0 all passed, or fit; 1 some did not (each is named, with the places), or not fit (it says why); 2 an
argument is wrong, or a file cannot be read; 130 interrupted.
"""
LABELLED = Path("data/judging/labelled.jsonl")


def add(commands: Any) -> None:
    """Add `judge` and its own commands to the `loopkit` command."""
    judge = commands.add_parser(
        "judge",
        help="check a file, or calibrate a judge",
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

    calibrate = action("calibrate", "say whether a judge is fit to stop a loop", _calibrate)
    calibrate.add_argument(
        "file", type=Path, nargs="?", default=LABELLED, help=f"labelled texts (default: {LABELLED})"
    )
    calibrate.add_argument(
        "--model", required=True, help="who judges: embedded, simulated:…-judge, openai:gpt-5-mini, …"
    )
    calibrate.add_argument(
        "--hybrid", action="store_true", help="together with the checks for skill files, as `Hybrid` weighs them"
    )  # fmt: skip
    calibrate.add_argument(
        "--threshold", type=float, default=0.8, help="the score from which it accepts (default: 0.8)"
    )
    calibrate.add_argument(
        "--repeats", type=int, default=3, help="how often it judges each text as it is (default: 3)"
    )
    calibrate.add_argument("--temperature", type=float, default=0.0, help="of the model (default: 0)")
    calibrate.add_argument("--limit", type=int, metavar="N", help="only N texts, from all over the file")
    calibrate.add_argument(
        "--out", type=Path, default=Path("runs/calibration"), help="folder of the records (default: runs/calibration)"
    )  # fmt: skip
    calibrate.add_argument("--json", action="store_true", help="print everything as JSON")


def main(args: argparse.Namespace) -> int:
    """Run the command that was parsed."""
    from loopkit.assets import AssetError
    from loopkit.store import StoreError

    try:
        return args.run(args)
    except (ValueError, OSError, AssetError, StoreError) as error:
        print(f"loopkit: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("\nloopkit: interrupted; the same command goes on from here", file=sys.stderr)
        return 130


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


def _calibrate(args: argparse.Namespace) -> int:
    calibration = ending.run(_calibrated(args, _limited(_labelled(args.file), args.limit)))
    if args.json:
        told = {"fit": calibration.fit, "reasons": calibration.reasons, **calibration.to_dict()}
        print(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        print(calibration)
    return 0 if calibration.fit else 1


def _labelled(path: Path) -> "list[Labelled]":
    from loopkit.judges.evals import labelled_items

    try:
        return labelled_items(path)
    except ImportError as error:
        raise ValueError(f"cannot read {path}: {error}") from error


def _limited(items: "list[Labelled]", limit: int | None) -> "list[Labelled]":
    if limit is None or limit >= len(items):
        return items
    if limit < 1:
        raise ValueError(f"--limit must be >= 1, got {limit}")
    # Not the first ones: those may be variants of one text.
    return [items[number * len(items) // limit] for number in range(limit)]


async def _calibrated(args: argparse.Namespace, items: "list[Labelled]") -> "Calibration":
    from rich.progress import Progress

    from loopkit.batch.trials import code_version
    from loopkit.judges import calibrate
    from loopkit.models import fingerprint
    from loopkit.store import Store

    judge = _judge(args)
    params = {
        "model": args.model,
        "weights": fingerprint(args.model),
        "temperature": args.temperature,
        "hybrid": args.hybrid,
        "code": code_version("loopkit.judges", "loopkit.models"),
    }
    with Progress(transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("judgements", total=None)
        return await calibrate(
            judge,
            items,
            name=args.model,
            threshold=args.threshold,
            repeats=args.repeats,
            store=Store(args.out),
            params=params,
            on_done=lambda done, total: progress.update(task, completed=done, total=total),
        )


def _judge(args: argparse.Namespace) -> "Judge":
    from loopkit.judges import SKILL_RUBRIC, Hybrid, RubricJudge, skill_checks

    judge = RubricJudge(args.model, SKILL_RUBRIC, temperature=args.temperature)
    return Hybrid(checks=skill_checks(), judge=judge, threshold=args.threshold) if args.hybrid else judge
