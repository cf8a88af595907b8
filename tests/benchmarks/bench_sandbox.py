"""What the warm sandbox is worth: sympy programs in it, in a plain interpreter, and in a sandbox without warm process.

The three take turns with each program, so that they meet the same machine. Then many runs one after the other, to see
whether memory, descriptors or folders add up; and many at once. The plain interpreter has no walls and no limits.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from loopkit.sandbox import Execution, Sandbox

# A program that keeps sympy busy, and one that hardly does: what is left is the sandbox.
PROGRAMS = {
    "solves an equation": (
        "import sympy\nx = sympy.symbols('x')\nprint(sympy.solve(x**2 - 5*x + 6, x))",
        "[2, 3]\n",
    ),
    "counts coprimes": ("import sympy\nprint(sympy.totient(720720) % 1000)", "240\n"),
}
PROGRAM, PRINTED = PROGRAMS["solves an equation"]


def checked(done: Execution, printed: str = PRINTED) -> None:
    if (done.ended, done.stdout) != ("ok", printed):
        raise SystemExit(f"a run went wrong: {done!r}")


def play_plain(program: str, printed: str) -> None:
    run = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True)
    if run.stdout != printed:
        raise SystemExit(f"a plain run went wrong: {run.stderr}")


async def compare(warm: Sandbox, what: str, rounds: int) -> None:
    """Latency of one program: `each` warm runs go with every slow one."""
    program, printed = PROGRAMS[what]
    each, times = 4, {"warm sandbox": [], "plain interpreter": [], "fresh sandbox": []}
    async with Sandbox(start="fresh") as fresh:
        for _ in range(rounds):
            for _ in range(each):
                started = time.perf_counter()
                checked(await warm.run(program), printed)
                times["warm sandbox"].append(time.perf_counter() - started)
            started = time.perf_counter()
            await asyncio.to_thread(play_plain, program, printed)
            times["plain interpreter"].append(time.perf_counter() - started)
            started = time.perf_counter()
            checked(await fresh.run(program), printed)
            times["fresh sandbox"].append(time.perf_counter() - started)
    warmth = statistics.median(times["warm sandbox"])
    print(f"{what:18}{'runs':>6}{'p50 ms':>9}{'p90 ms':>9}{'ratio':>8}")
    for name, seconds in times.items():
        middle, high = statistics.median(seconds), statistics.quantiles(seconds, n=10)[-1]
        print(f"{name:18}{len(seconds):6}{middle * 1e3:9.1f}{high * 1e3:9.1f}{middle / warmth:8.1f}")


def footprint(pid: int) -> tuple[float, int]:
    """Resident memory (MiB) and open descriptors."""
    status = Path(f"/proc/{pid}/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return int(kilobytes) / 1024, len(os.listdir(f"/proc/{pid}/fd"))


async def repeat(warm: Sandbox, marks: tuple[int, ...]) -> None:
    """Whether something adds up, looked at after so many runs."""
    zygote = warm._started.zygote.pid
    print(
        f"{'after runs':>12}{'host MiB':>10}{'fds':>5}{'zygote MiB':>12}{'fds':>5}{'processes':>11}{'folders':>9}"
    )
    count = 0
    for mark in marks:
        while count < mark:
            checked(await warm.run(PROGRAM))
            count += 1
        await asyncio.sleep(1)
        host, others = footprint(os.getpid()), below(zygote)
        # Programs' processes that wait share nearly all of their memory with the largest, which has the libraries.
        largest = max(footprint(pid)[0] for pid in others)
        descriptors = sum(footprint(pid)[1] for pid in others)
        folders = sum(name.isdigit() for name in os.listdir(warm.home))
        print(
            f"{count:12}{host[0]:10.1f}{host[1]:5}{largest:12.1f}{descriptors:5}{len(others):11}{folders:9}"
        )


def below(pid: int) -> list[int]:
    """The process that was started and all that come from it: the zygote, and what waits for a run."""
    found = [pid]
    for one in found:
        found += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
    return found


async def crowd(warm: Sandbox, at_once: int, runs: int) -> None:
    """Throughput, with as many at once as given."""
    turn = asyncio.Semaphore(at_once)

    async def one() -> None:
        async with turn:
            checked(await warm.run(PROGRAM))

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(runs)))
    seconds = time.perf_counter() - started
    print(f"\n{runs} runs, {at_once} at once: none failed, {runs / seconds:.1f} a second")


async def measure(quick: bool) -> None:
    async with Sandbox() as warm:
        print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n{warm.protection}\n")
        checked(await warm.run(PROGRAM))
        for what in PROGRAMS:
            await compare(warm, what, rounds=3 if quick else 20)
            print()
        if sys.platform.startswith("linux"):
            await repeat(warm, marks=(20, 60) if quick else (100, 1000))
        await crowd(warm, at_once=8, runs=40 if quick else 200)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    asyncio.run(measure(parser.parse_args().quick))


if __name__ == "__main__":
    main()
