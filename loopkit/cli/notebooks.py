"""`loopkit params` and `loopkit notebooks …`: notebooks as code."""

import argparse
import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

PARAMS = """\
The types are those of the pydantic model `Params` that the notebook imports or defines; `loopkit batch` checks every
value by it. The notebook is not executed: of its code only `Params` itself is, and what that needs. Defaults are the
notebook's own; where a batch that does not say takes another one, the model's, it is given too.

examples:
  loopkit params notebooks/02_constraint_solving.ipynb
  loopkit params notebooks/04_code_aided_math.ipynb --json

Exit codes: 0 printed; 2 the notebook cannot be read, has no cell tagged `parameters`, or its `Params` cannot be had.
"""

NOTEBOOKS = """\
Outputs, execution counts, and metadata that kernels, JupyterLab, papermill and extensions leave (times, what was
unfolded, widgets' states, the version of Python) go; sources, cell ids, tags and whatever else was written by hand
stay. Files are rewritten in one step, as nbformat writes them; cleaning what is clean changes nothing.

examples:
  loopkit notebooks check
  loopkit notebooks clean
  loopkit notebooks clean notebooks/00_the_loop.ipynb drafts/

Exit codes: 0 all clean (after `clean`: now); 1 `check` found some that are not, and lists what they hold;
2 a path is wrong, or a notebook cannot be read or written (each is named, the others are still seen to).
"""


def add(commands: Any) -> None:
    """Add `params` and `notebooks` to the `loopkit` command."""

    def command(name: str, help: str, text: str, run: Callable[[argparse.Namespace], int]) -> Any:
        description, _, epilog = text.partition("\nexamples:")
        parser = commands.add_parser(
            name,
            help=help,
            description=description,
            epilog="examples:" + epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.set_defaults(main=run)
        return parser

    params = command("params", "print a notebook's parameters: types, defaults, help", PARAMS, _params)
    params.add_argument("notebook", type=Path)
    params.add_argument("--json", action="store_true", help="as JSON, with the JSON schema of each")
    notebooks = command("notebooks", "take outputs and volatile metadata out of notebooks", NOTEBOOKS, _run)
    notebooks.add_argument("action", choices=["check", "clean"], help="list what is not clean, or clean it")
    notebooks.add_argument(
        "paths", metavar="PATH", nargs="*", default=["notebooks"],
        help="notebooks, or folders of them (default: notebooks)",
    )  # fmt: skip


def _params(args: argparse.Namespace) -> int:
    from loopkit.notebooks import NotebookError, parameters

    try:
        found = parameters(args.notebook)
    except NotebookError as error:
        print(f"loopkit: {error}", file=sys.stderr)
        return 2
    if args.json:
        told = {"notebook": str(args.notebook), "parameters": list(map(asdict, found))}
        print(json.dumps(told, indent=2, ensure_ascii=False, default=repr))
    else:
        _print(found)
    return 0


def _print(found: list[Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading in ("name", "type", "default", "help"):
        table.add_column(heading)
    for one in found:
        default = one.written
        if one.schema and one.schema.get("default", one.default) != one.default:
            default += f" (in a batch {one.schema['default']!r})"
        table.add_row(*map(escape, (one.name, one.type, default, one.help)))
    console.print(table)
    for model in dict.fromkeys(one.model for one in found if one.model):
        console.print(f"\nchecked by {escape(model)}", soft_wrap=True)


def _run(args: argparse.Namespace) -> int:
    from loopkit.notebooks import NotebookError, check, clean, notebooks_in

    broken, dirty = 0, []
    try:
        paths = notebooks_in(args.paths)
    except NotebookError as error:
        print(f"loopkit: {error}", file=sys.stderr)
        return 2
    for path in paths:
        try:
            if args.action == "clean":
                if clean(path):
                    print(f"cleaned {path}")
            elif found := check(path):
                dirty.append(str(path))
                print(path, *found, sep="\n  ")
        except NotebookError as error:
            print(f"loopkit: {error}", file=sys.stderr)
            broken += 1
    if dirty:
        print(
            f"\nnot clean: {len(dirty)} of {len(paths)}. Clean with: loopkit notebooks clean {shlex.join(dirty)}"
        )
    elif not broken:
        print(f"{len(paths)} notebook{'' if len(paths) == 1 else 's'}, all clean")
    return 2 if broken else 1 if dirty else 0
