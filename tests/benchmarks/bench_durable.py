"""What one durable iteration of a loop costs: loopkit with a log, beside LangGraph with its SQLite checkpointer.

Every arm goes through the same three steps, propose → execute → judge, on the same payload: a candidate of about
200 bytes, a small observation, a verdict with a score and one blocking sentence. The steps themselves do nothing,
so what is measured is the loop and its records. All arms run in this process and write to the same folder; they
take turns, in another order each round. Compiling a graph, opening a file, creating its tables and closing it are
not counted, checking afterwards that every iteration was recorded is not either.

  floor              three JSON lines written with os.write and one fsync an iteration: the least that is durable
  loopkit            Loop with Store(...).create(...): a line per phase and one for the turn, one fsync an iteration
  langgraph          three nodes and an edge back, SqliteSaver, durability="async", LangGraph's default: a step is
                     saved while the next one runs, all of them before the graph returns
  langgraph sync     the same with durability="sync": a step is saved before the next one starts
  langgraph 1 node   the three steps in one node, "sync": one checkpoint an iteration, as loopkit syncs one
  langgraph exit     three nodes, "exit": saved once, at the end. Not durable; what the framework costs by itself

SQLite is left as SqliteSaver and the sqlite3 module set it up, which the first lines name; with synchronous=full
every commit is synced, and SqliteSaver commits twice a step: what the node wrote, and the checkpoint. The state
holds the last candidate, observation and verdict and a counter, no history.

Then, unless --quick: one long loop, to see whether an iteration costs the same late as early, and the time to read
its events back into a pandas frame.

Syncs cost what the disk under --folder takes for them, and it may take ten times longer from one minute to the
next: look at the ranges, and at the CPU time, which leaves the disk out. In memory (tmpfs) a sync costs nothing.
"""

import argparse
import asyncio
import gc
import itertools
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from json import dumps
from pathlib import Path
from typing import Any, TypedDict

from loopkit import Feedback, Loop, MaxIterations, Store, Verdict
from loopkit.store import read_events

READ_EVENTS = 100_000
BLOCKING = "The second case still fails: the total is off by one when the list is empty."


class Task:
    """The three steps, the same for every arm."""

    def __init__(self) -> None:
        self.number = 0

    def propose(self) -> str:
        self.number += 1
        return f"candidate {self.number:08d}: " + "for each item, add what it weighs to the total; " * 4

    def execute(self, candidate: str) -> dict[str, Any]:
        return {"number": self.number, "length": len(candidate), "passed": 17, "failed": 3, "exit": 1}

    def judge(self, observation: dict[str, Any]) -> float:
        return observation["number"] * 7919 % 1000 / 1000


class State(TypedDict):
    """What LangGraph keeps: the last of everything."""

    number: int
    candidate: str
    observation: dict[str, Any]
    verdict: dict[str, Any]


class Stopwatch:
    """Seconds on the clock and on the processors, of all threads, while it is entered."""

    def __enter__(self) -> "Stopwatch":
        self.clock, self.cpu = -time.perf_counter(), -time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.clock, self.cpu = self.clock + time.perf_counter(), self.cpu + time.process_time()


@dataclass(frozen=True)
class Measured:
    """One arm in one round: the time of all its iterations, and the bytes on disk just after and once closed."""

    time: Stopwatch
    open: int
    closed: int


def expect(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise SystemExit(f"{what}: {found} recorded, expected {expected}; no number here can be trusted")


def floor(folder: Path, iterations: int) -> Measured:
    task, path = Task(), folder / "floor.jsonl"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(phase: str, value: Any) -> None:
        os.write(file, dumps({"iteration": task.number, "phase": phase, "value": value}).encode() + b"\n")

    with Stopwatch() as watch:
        for _ in range(iterations):
            candidate = task.propose()
            write("propose", candidate)
            observation = task.execute(candidate)
            write("execute", observation)
            write("judge", {"score": task.judge(observation), "blocking": [BLOCKING]})
            os.fsync(file)
    os.close(file)
    expect("floor", path.read_bytes().count(b"\n"), 3 * iterations)
    return Measured(watch, path.stat().st_size, path.stat().st_size)


def make_loop(iterations: int, starts: list[tuple[float, float]] | None = None) -> Loop:
    """The loop over the task; `starts` collects clock and CPU time of each iteration's beginning."""
    task = Task()

    def propose(_goal: Any, _history: Any) -> str:
        if starts is not None:
            starts.append((time.perf_counter(), time.process_time()))
        return task.propose()

    def judge(_candidate: str, observation: dict[str, Any]) -> Verdict:
        return Verdict(score=task.judge(observation), feedback=Feedback(blocking=(BLOCKING,)))

    return Loop(propose=propose, execute=task.execute, judge=judge, gates=[MaxIterations(iterations)])


def loopkit(folder: Path, iterations: int) -> Measured:
    loop, store = make_loop(iterations), Store(folder)

    async def timed(log: Any) -> Stopwatch:
        with Stopwatch() as watch:
            await loop.run("the least total", log=log)
        return watch

    with store.create("loopkit") as log:
        watch = asyncio.run(timed(log))
        size = store.path("loopkit").stat().st_size
    events = read_events(store.path("loopkit"))
    expect("loopkit, steps", sum(event["event"] == "step" for event in events), 3 * iterations)
    expect("loopkit, turns", sum(event["event"] == "iteration" for event in events), iterations)
    return Measured(watch, size, store.path("loopkit").stat().st_size)


def make_graph(saver: Any, iterations: int, *, one_node: bool) -> Any:
    from langgraph.graph import END, START, StateGraph

    task = Task()

    def propose(state: State) -> dict[str, Any]:
        return {"number": state["number"] + 1, "candidate": task.propose()}

    def execute(state: State) -> dict[str, Any]:
        return {"observation": task.execute(state["candidate"])}

    def judge(state: State) -> dict[str, Any]:
        return {"verdict": {"score": task.judge(state["observation"]), "blocking": [BLOCKING]}}

    def turn(state: State) -> dict[str, Any]:
        made = propose(state)
        made |= execute(made)
        return made | judge(made)

    graph = StateGraph(State)
    steps = {"turn": turn} if one_node else {"propose": propose, "execute": execute, "judge": judge}
    for name, step in steps.items():
        graph.add_node(name, step)
    names = list(steps)
    first, last = names[0], names[-1]
    graph.add_edge(START, first)
    for before, after in itertools.pairwise(names):
        graph.add_edge(before, after)
    graph.add_conditional_edges(
        last, lambda state: first if state["number"] < iterations else END, [first, END]
    )
    return graph.compile(checkpointer=saver)


def langgraph(folder: Path, iterations: int, *, durability: str | None, one_node: bool = False) -> Measured:
    from langgraph.checkpoint.sqlite import SqliteSaver

    path = folder / "langgraph.sqlite"
    steps = iterations if one_node else 3 * iterations
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        graph = make_graph(saver, iterations, one_node=one_node)
        config = {"configurable": {"thread_id": "1"}, "recursion_limit": steps + 10}
        options = {"durability": durability} if durability else {}
        with Stopwatch() as watch:
            graph.invoke({"number": 0}, config, **options)
        size = sum(Path(f"{path}{end}").stat().st_size for end in ("", "-wal"))
    with SqliteSaver.from_conn_string(str(path)) as saver:
        state = make_graph(saver, iterations, one_node=one_node).get_state(config)
        expect("langgraph, iterations", state.values["number"], iterations)
        # One more for the input and one for the start, which LangGraph counts as a step.
        (found,) = saver.conn.execute("SELECT count(*) FROM checkpoints").fetchone()
        expect("langgraph, checkpoints", found, 1 if durability == "exit" else steps + 2)
    return Measured(watch, size, path.stat().st_size)


ARMS: dict[str, Callable[[Path, int], Measured]] = {
    "floor": floor,
    "loopkit": loopkit,
    "langgraph": partial(langgraph, durability=None),
    "langgraph sync": partial(langgraph, durability="sync"),
    "langgraph 1 node": partial(langgraph, durability="sync", one_node=True),
    "langgraph exit": partial(langgraph, durability="exit"),
}


def measure(name: str, folder: Path, iterations: int) -> Measured:
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        gc.collect()
        return ARMS[name](Path(fresh), iterations)


def compare(folder: Path, rounds: int, iterations: int) -> None:
    print(
        f"\n{rounds} rounds of {iterations} iterations an arm, interleaved; medians (range over the rounds)\n"
    )
    names = list(ARMS)
    for name in names:
        measure(name, folder, 10)  # imports, caches
    found: dict[str, list[Measured]] = {name: [] for name in names}
    for number in range(rounds):
        for place in range(len(names)):
            name = names[(place + number) % len(names)]
            found[name].append(measure(name, folder, iterations))

    def per_iteration(name: str, value: Callable[[Measured], float]) -> list[float]:
        return [value(measured) / iterations for measured in found[name]]

    ms = {name: per_iteration(name, lambda it: it.time.clock * 1000) for name in names}
    median = {name: statistics.median(ms[name]) for name in names}
    print(
        f"{'':17}{'ms an iteration':>26}{'× loopkit':>11}{'× floor':>9}{'CPU ms':>9}"
        f"{'bytes an iteration':>20}{'open':>8}"
    )
    for name in names:
        spread = f"{median[name]:.3f} ({min(ms[name]):.3f} to {max(ms[name]):.3f})"
        cpu = statistics.median(per_iteration(name, lambda it: it.time.cpu * 1000))
        closed = statistics.median(per_iteration(name, lambda it: it.closed))
        still_open = statistics.median(per_iteration(name, lambda it: it.open))
        print(
            f"{name:17}{spread:>26}{median[name] / median['loopkit']:11.2f}{median[name] / median['floor']:9.2f}"
            f"{cpu:9.3f}{closed:20,.0f}{still_open:8,.0f}"
        )
    print(
        "\nCPU ms: an iteration, all threads. bytes an iteration: of the log or database once closed. open: before "
        "that,\nwith SQLite's write-ahead log, which grows to about 4 MB, is then written over, and goes on closing."
    )


def scale(folder: Path, iterations: int) -> None:
    print(
        f"\nOne loopkit loop of {iterations:,} iterations with a log; ms an iteration in each tenth of it\n"
    )
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        store = Store(Path(fresh) / "long")
        starts: list[tuple[float, float]] = []
        loop = make_loop(iterations, starts)
        with store.create("long") as log:
            asyncio.run(loop.run("the least total", log=log))
        starts.append((time.perf_counter(), time.process_time()))
        tenths = [starts[iterations * i // 10 : iterations * (i + 1) // 10 + 1] for i in range(10)]

        def show(name: str, clock: int, middle: Callable[[list[float]], float]) -> None:
            each = [
                middle([(after[clock] - before[clock]) * 1000 for before, after in itertools.pairwise(tenth)])
                for tenth in tenths
            ]
            print(f"{name:7}" + "".join(f"{ms:8.3f}" for ms in each) + f"{each[-1] / each[0]:14.2f}")

        print(f"{'tenth':7}" + "".join(f"{number:8}" for number in range(1, 11)) + "  last / first")
        show("median", 0, statistics.median)
        show("mean", 0, statistics.mean)
        show("CPU", 1, statistics.mean)
        read_back(store, Path(fresh))


def read_back(store: Store, folder: Path) -> None:
    """Time steps_df on the whole log, and on the beginning of it that has READ_EVENTS events."""
    path = store.path("long")
    with path.open("rb") as file:
        head = b"".join(itertools.islice(file, READ_EVENTS))
        rest = sum(1 for _ in file)
    lines = head.count(b"\n")
    print(f"\nthe log: {lines + rest:,} events, {path.stat().st_size / 1e6:.1f} MB")
    import pandas  # noqa: F401, its import is not counted

    parts = [(lines + rest, store)]
    if rest:
        # What a run leaves that is stopped there.
        start = Store(folder / "head")
        start.folder.mkdir()
        start.path("long").write_bytes(head)
        parts.insert(0, (lines, start))
    for events, part in parts:
        gc.collect()
        started = time.perf_counter()
        frame = part.steps_df()
        print(f"steps_df: {events:,} events, {len(frame):,} rows: {time.perf_counter() - started:.2f} s")


def file_system(folder: Path) -> str:
    """The kind of file system, where the system says (Linux)."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return "file system unknown"
    there = [(len(point), kind) for point, kind in mounts if folder.resolve().is_relative_to(point)]
    return max(there)[1] if there else "file system unknown"


def packages() -> str:
    names = ("langgraph", "langgraph-checkpoint-sqlite")
    try:
        return ", ".join(f"{name} {version(name)}" for name in names)
    except PackageNotFoundError as error:
        raise SystemExit(f"{error.name} is not installed: `make bench` installs it") from error


def sqlite_settings(folder: Path) -> str:
    """What SqliteSaver leaves SQLite set to."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    with (
        tempfile.TemporaryDirectory(dir=folder) as fresh,
        closing(sqlite3.connect(Path(fresh) / "probe.sqlite")) as connection,
    ):
        SqliteSaver(connection).setup()
        found = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "wal_autocheckpoint")
        }
    found["synchronous"] = ["off", "normal", "full", "extra"][found["synchronous"]]
    return f"SQLite {sqlite3.sqlite_version} " + ", ".join(f"{name}={value}" for name, value in found.items())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="turns that each arm takes (default: 5)")
    parser.add_argument("--iterations", type=int, default=200, help="in a round, per arm (default: 200)")
    parser.add_argument(
        "--scale",
        type=int,
        default=100_000,
        metavar="N",
        help="iterations of the long loop (default: 100000)",
    )
    parser.add_argument("--quick", action="store_true", help="leave the long loop out")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="where to write, removed afterwards: choose the disk to be measured (default: %(default)s)",
    )
    args = parser.parse_args()
    for name, least in (("rounds", 1), ("iterations", 1), ("scale", 10)):
        if getattr(args, name) < least:
            parser.error(f"--{name} must be >= {least}, got {getattr(args, name)}")
    if not args.folder.is_dir():
        parser.error(f"--folder {args.folder} is not a folder")
    # Whatever the shell says: nothing measured here is sent anywhere.
    os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {packages()}")
    print(sqlite_settings(args.folder))
    print(f"writing under {args.folder} ({file_system(args.folder)})", flush=True)
    compare(args.folder, args.rounds, args.iterations)
    if not args.quick:
        scale(args.folder, args.scale)


if __name__ == "__main__":
    main()
