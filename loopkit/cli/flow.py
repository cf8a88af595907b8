"""`loopkit flow …`: check, draw, run, resume, answer and fork flows from a terminal."""

import argparse
import asyncio
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from loopkit.cli import ending

EPILOG = """\
examples:
  loopkit flow check experiments/flows/factory.yaml
  loopkit flow run experiments/flows/factory.yaml --model simulated:random --script experiments/flows/scenarios/eventful.yaml
  loopkit flow run experiments/flows/factory.yaml --set task='a function that doubles' --run monday
  loopkit flow answer runs/factory/monday decision=merge
  loopkit flow fork runs/factory/monday tuesday --at 4 --model simulated:oracle

A run is named by its log: runs/<flow>/<run>, with or without .jsonl. With a `simulated:` model nothing is executed
and nothing waits. Exit codes: 0 done; 1 the flow ended as failed, or a limit opened; 2 the file, a parameter, a run
or an answer is wrong; 3 a person is asked, and the run goes on with `loopkit flow answer`; 130 interrupted, and it
goes on with `loopkit flow resume`.
"""
MARKS = {"keep": "✓", "crash": "✗"}


def add(commands: Any) -> None:
    """Add `flow` and its own commands to the `loopkit` command."""
    flow = commands.add_parser(
        "flow",
        help="check, draw and run flows declared in YAML",
        description="Flows: declared graphs that an engine walks, on budgets, with or without a model.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    flow.set_defaults(main=main)
    actions = flow.add_subparsers(dest="action", required=True)

    def action(name: str, help: str, run: Callable[[argparse.Namespace], Any], *flags: str) -> Any:
        parser = actions.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        parser.set_defaults(run=run)
        if "file" in flags:
            parser.add_argument("file", type=Path, help="a flow in YAML")
        if "log" in flags:
            parser.add_argument("log", type=Path, help="a recorded run: runs/<flow>/<run>")
        if "settings" in flags:
            parser.add_argument(
                "--model", help="asked in place of every model of the flow; simulated:… executes nothing"
            )
            parser.add_argument(
                "--set", dest="params", metavar="NAME=VALUE", action="append", default=[],
                help="a parameter of the flow; the value is YAML; may be repeated",
            )  # fmt: skip
            parser.add_argument("--script", type=Path, help="answers for a simulated run, in YAML")
            parser.add_argument("--seed", type=int, default=0, help="of a simulated run (default: 0)")
        return parser

    action("check", "validate a flow and list where each outcome of each step leads", _check, "file")
    draw = action("draw", "print a flow as a Mermaid graph", _draw, "file")
    draw.add_argument("--failures", action="store_true", help="also where failures, and the supervisor, lead")
    run = action("run", "run a flow, recording every step", _run, "file", "settings")
    run.add_argument("--run", dest="name", help="a name for the run (default: the time)")
    run.add_argument("--out", type=Path, help="folder of the records (default: runs/<flow>)")
    action("resume", "go on with a run that was interrupted", _resume, "log")
    answer = action("answer", "answer what a run asks a person, and go on with it", _answer, "log")
    answer.add_argument(
        "fields", nargs="*", metavar="FIELD=VALUE", help="the answer; without any the question is shown"
    )
    fork = action("fork", "start a new run from the first iterations of another", _fork, "log", "settings")
    fork.add_argument("new", help="the name of the new run")
    fork.add_argument("--at", type=int, required=True, help="how many steps of the old run to keep")


def main(args: argparse.Namespace) -> int:
    """Do what the arguments say; returns the exit code."""
    from loopkit.assets import AssetError
    from loopkit.flow import FlowError
    from loopkit.log import StoreError

    try:
        return args.run(args)
    except FlowError as error:
        print(f"loopkit: {error}".replace("\n", "\n         "), file=sys.stderr)
    except (StoreError, AssetError, ValueError) as error:  # of a model or a record too
        print(f"loopkit: {error}", file=sys.stderr)
    except (KeyboardInterrupt, asyncio.CancelledError):
        log = getattr(args, "opened", None)
        hint = f"; `loopkit flow resume {log}` goes on from here" if log else ""
        print(f"\nloopkit: interrupted{hint}", file=sys.stderr)
        return 130
    return 2


def _check(args: argparse.Namespace) -> int:
    from rich.table import Table

    from loopkit.flow import Flow, World

    flow = Flow.load(args.file)
    _importable(args.file)
    World(flow.file, {})  # finds its functions, or says which one is not there
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("step", "outcome", "leads to"):
        table.add_column(heading)
    last = None
    for row in flow.outcomes():
        table.add_row(
            _plain(row["step"] if row["step"] != last else ""), _plain(row["outcome"]), _plain(row["goto"])
        )
        last = row["step"]
    _console().print(table)
    print(f"\n{flow.name}: {len(flow.file.steps)} steps, every cycle bounded, every step reachable")
    return 0


def _draw(args: argparse.Namespace) -> int:
    from loopkit.flow import Flow

    print(Flow.load(args.file).draw(failures=args.failures), end="")
    return 0


def _run(args: argparse.Namespace) -> int:
    from loopkit.flow import Flow
    from loopkit.store import Store

    flow = Flow.load(args.file)
    _importable(args.file)
    settings = _settings(args, flow)
    flow.check(**settings)
    store = Store(args.out or Path("runs") / flow.name)
    name = args.name or f"{datetime.now():%Y%m%d-%H%M%S}"
    known = {"flow": flow.name, "file": str(args.file.resolve()), "model": args.model or flow.file.model}
    with store.create(name, **known) as log:
        return _walk(args, flow, log, **settings)


def _resume(args: argparse.Namespace) -> int:
    from loopkit.flow import Flow

    store, name = _recorded(args.log)
    with store.resume(name) as log:
        _importable(_file_of(log.past))
        return _walk(args, Flow.of(log), log)


def _answer(args: argparse.Namespace) -> int:
    from loopkit.flow import Flow

    store, name = _recorded(args.log)
    if not args.fields:
        return _ask(args.log, store.run(name))
    with store.resume(name) as log:
        _importable(_file_of(log.past))
        flow = Flow.of(log)
        asked = [event for event in log.past if event["event"] == "question"][-1:]
        parts = asked[0]["schema"].get("properties", {}) if asked else {}
        texts = {name for name, part in parts.items() if _is_text(part)}
        flow.answer(log, dict(_pair(field, texts) for field in args.fields))
        return _walk(args, flow, log)


def _ask(path: Path, run: Any) -> int:
    asked = run.all("question")
    if run.status != "waiting":
        raise ValueError(f"{run.id} asks nobody anything (it is {run.status})")
    _print_question(path, asked[-1]["text"], asked[-1]["schema"])
    return 3


def _fork(args: argparse.Namespace) -> int:
    from loopkit.flow import Flow

    store, name = _recorded(args.log)
    parent = store.run(name)
    _importable(_file_of(parent.events))
    flow = Flow.of(parent)
    before = parent.first("settings") or {}
    settings = _settings(args, flow)
    if before.get("simulation") and args.model and settings["simulation"] is None:
        raise ValueError(
            f"{name} is simulated, and its first steps cannot become real: fork it with a simulated: model"
        )
    settings["params"] = (before.get("params") or {}) | settings["params"]
    if args.model is None:
        settings["model"] = before.get("model")
        settings["simulation"] = settings["simulation"] or _again(before.get("simulation"))
    flow.check(**settings)
    with store.fork(
        name, args.new, at=args.at, flow=flow.name, model=args.model or parent.params.get("model")
    ) as log:
        return _walk(args, flow, log, **settings)


def _importable(file: Path | None) -> None:
    """Functions of a flow may stand in modules beside its file, or in the folder one works in."""
    for folder in (file.resolve().parent if file else None, Path.cwd()):
        if folder and str(folder) not in sys.path:
            sys.path.insert(0, str(folder))


def _file_of(events: Sequence[Mapping[str, Any]]) -> Path | None:
    """The file that a recorded run was begun with."""
    file = events[0].get("params", {}).get("file") if events else None
    return Path(file) if isinstance(file, str) else None


def _again(recorded: Mapping[str, Any] | None) -> Any:
    from loopkit.flow import Simulation

    return Simulation(**recorded) if recorded else None


def _settings(args: argparse.Namespace, flow: Any) -> dict[str, Any]:
    """What `Flow.run` is given: parameters, and a model or a simulation."""
    from loopkit.flow import Simulation

    texts = {name for name, value in flow.file.params.items() if isinstance(value, str)}
    params = dict(_pair(text, texts) for text in args.params)
    if args.model is not None:
        from loopkit.models import check_id

        check_id(args.model)
    policy = args.model.removeprefix("simulated:") if (args.model or "").startswith("simulated:") else None
    if policy is None:
        if args.script:
            raise ValueError("--script goes with --model simulated:…, real models answer for themselves")
        return {"params": params, "model": args.model, "simulation": None}
    known = {"policy": policy, "seed": args.seed}
    simulation = Simulation.load(args.script, **known) if args.script else Simulation(**known)
    simulation.check(flow.file)
    return {"params": params, "model": None, "simulation": simulation}


def _walk(args: argparse.Namespace, flow: Any, log: Any, **settings: Any) -> int:
    args.opened = log.path.with_suffix("")
    console = _console()
    simulated = settings.get("simulation") or any(
        e.get("simulation") for e in log.past if e["event"] == "settings"
    )
    label = "  [yellow]simulated: nothing is executed[/]" if simulated else ""
    console.print(f"[bold]{_plain(flow.name)}[/]  {_plain(str(args.opened))}{label}\n")
    if known := sum(event["event"] == "iteration" for event in log.past):
        console.print(f"[dim]{known} steps on record[/]")
    outcome = ending.run(flow.run(log=log, watch=lambda event: _tell(console, event), **settings))
    _report(console, outcome)
    if outcome.question:
        _print_question(args.opened, outcome.question.text, outcome.question.schema)
        return 3
    return 0 if outcome.status == "done" else 1


def _tell(console: Any, event: Mapping[str, Any]) -> None:
    """One line per event, as it happens."""
    match event["event"]:
        case "iteration":
            mark = MARKS.get(str(event["decision"]), " ")
            colour = "green" if mark == "✓" else "red"
            goto = f"→ {event['goto']}" if event["goto"] else "stopped"
            text = (
                f"[{colour}]{mark}[/] {event['iteration']:>3}  {_plain(event['step']):<20} {_plain(goto):<20}"
            )
            console.print(f"{text} [dim]{_plain(event['via'])}[/]")
            if event["error"]:
                console.print(f"       [red]{_plain(event['error']['message'][:200])}[/]")
        case "poll":
            console.print(
                f"  [dim]…  {_plain(event['step'])} poll {event['poll']}: {_plain(event['state'])}[/]"
            )
        case "cancelled":
            text = f"  [dim]…  correction cancelled ({_plain(event['reason'])}): {_plain(event['correction'][:100])}[/]"
            console.print(text)
        case "advice":
            said = f"refused: {event['refused']}" if event["refused"] else "followed"
            console.print(
                f"  [dim]…  supervisor on {_plain(event['step'])}: {event['action']}, {_plain(said)}[/]"
            )


def _report(console: Any, outcome: Any) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading, justify in (
        ("", "left"),
        ("", "left"),
        ("count", "right"),
        ("limit", "right"),
        ("opened", "right"),
    ):
        table.add_column(heading, justify=justify)
    for row in outcome.counters.rows():
        if row["count"] or row["limit"] is not None:
            limit = "" if row["limit"] is None else str(row["limit"])
            table.add_row(
                row["what"], _plain(row["name"]), str(row["count"]), limit, str(row["opened"] or "")
            )
    console.print()
    console.print(table)
    polls = outcome.counters.polls.total()
    if polls:
        console.print(f"\n{outcome.counters.polls_without_model} of {polls} polls called no model")
    usage = outcome.usage
    console.print(
        f"\n[bold]{outcome.status}[/]  {len(outcome.history)} steps, {usage.calls} model calls, {usage.tokens} tokens"
    )
    if outcome.stopped_by:
        console.print(_plain(outcome.stopped_by.reason))


def _print_question(path: Path, text: str, schema: Mapping[str, Any]) -> None:
    fields = schema.get("properties", {})
    parts = {name: part.get("anyOf", [part])[0] for name, part in fields.items()}  # what may be left out
    options = {name: part.get("enum") or [part.get("const", "…")] for name, part in parts.items()}
    example = " ".join(f"{name}={'|'.join(map(str, values))}" for name, values in options.items())
    print(f"\n{text.strip()}\n\nanswer with: loopkit flow answer {path.with_suffix('')} {example}")


def _recorded(path: Path) -> Any:
    from loopkit.store import Store

    return Store(path.parent), path.name.removesuffix(".jsonl")


def _is_text(part: Mapping[str, Any]) -> bool:
    """Whether a JSON schema allows nothing but text (and null, for what may be left out)."""
    kinds = {one.get("type") for one in part.get("anyOf", [part])} - {"null"}
    return kinds == {"string"}


def _pair(text: str, texts: Container[str]) -> tuple[str, Any]:
    """`name=value`; the value of a name in `texts` is taken as it stands, any other is YAML."""
    from loopkit.flow import FlowError
    from loopkit.flow.source import Source

    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"expected name=value, got {text!r}")
    if name in texts or not value:
        return name, value
    try:
        return name, Source.parse(f"value: {value}").data["value"]
    except FlowError as error:
        raise ValueError(f"{text!r}: {value!r} is not YAML") from error


def _console() -> Any:
    from rich.console import Console

    # Piped output has no width of its own; 80 columns would fold the table into shreds.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
