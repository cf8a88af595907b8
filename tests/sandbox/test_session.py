"""A program that is given cell by cell."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from loopkit.sandbox import Limits, SandboxError
from loopkit.sandbox.results import MadeFile


async def test_variables_functions_and_imports_stay(warm):
    cells = [
        "import sympy\nx = sympy.Symbol('x')",
        "def f(n):\n    return x + n",
        "f(2)",
        "x = 5",
        "f(2)",
        "_ = 1",
    ]
    async with warm.session() as session:
        assert session.alive
        values = [(await session.run(cell)).value for cell in cells]
    assert values == [None, None, "x + 2", None, "7", None]
    assert not session.alive


async def test_a_cell_that_fails_keeps_what_was_there(bare):
    async with bare.session() as session:
        await session.run("x = 41")
        failed = await session.run("x += 1\n1 / 0")
        assert (failed.ended, failed.exit_code, failed.error.line) == ("error", None, 2)
        assert failed.error.traceback.startswith("<cell 2> line 2: 1 / 0\n")
        assert (await session.run("x")).value == "42"
        assert (await session.run("def g():\n    return 1 / 0")).ended == "ok"
        frames = (await session.run("g()")).error.traceback.splitlines()
        assert frames[:2] == ["<cell 5> line 1: g()", "<cell 4> line 2 in g: return 1 / 0"]


async def test_each_cell_has_its_own_output_and_files(bare):
    async with bare.session(limits=Limits(shown=50)) as session:
        first = await session.run("print('one'); open('a', 'w').write('1')")
        second = await session.run("import sys; print('two', end=''); print('err', file=sys.stderr)")
        third = await session.run("print('x' * 1000); open('b', 'w').write('22')")
        fourth = await session.run("print('y' * 2000); open('a', 'a').write('1')")
        assert [done.stdout for done in (first, second)] == ["one\n", "two"]
        assert (second.stderr, second.files) == ("err\n", ())
        assert (first.files, third.files) == ((MadeFile(name="a", size=1),), (MadeFile(name="b", size=2),))
        assert fourth.files == (MadeFile(name="a", size=2),)
        assert third.stdout_file.read_text() == "x" * 1000 + "\n"
        assert fourth.stdout_file.read_text() == "y" * 2000 + "\n"
        assert {first.folder, fourth.folder} == {session.folder}


async def test_output_may_add_up_to_more_than_a_file_may_hold(bare):
    async with bare.session(limits=Limits(file_size=100_000)) as session:
        for _ in range(4):
            done = await session.run("print('x' * 60_000)")
            assert (done.ended, done.message) == ("ok", "")


@pytest.mark.parametrize(
    "cell",
    ["import time\ntime.sleep(9)", "while True: pass", "try:\n    while True: pass\nfinally:\n    y = 6"],
)
async def test_a_cell_without_end_is_interrupted_and_the_session_goes_on(bare, cell):
    async with bare.session() as session:
        await session.run("x = 41")
        done = await session.run(cell, limits=Limits(seconds=0.2))
        assert (done.ended, done.error.type) == ("timeout", "KeyboardInterrupt")
        assert done.message.startswith("interrupted after 0.") and "(limit: seconds=0.2)" in done.message
        assert session.alive and (await session.run("x + 1")).value == "42"


@pytest.mark.parametrize(
    "cell",
    [
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        "import time\nwhile True:\n    try:\n        while True: time.sleep(0.01)\n    except BaseException: pass",
    ],
)
async def test_who_does_not_mind_the_interrupt_is_ended(bare, cell):
    async with bare.session() as session:
        done = await session.run(cell, limits=Limits(seconds=0.2, cpu=5))
        assert done.ended == "timeout" and 1 < done.seconds < 5
        assert not session.alive
        with pytest.raises(SandboxError, match=r"the session has ended \(ended after .*start another one"):
            await session.run("1")


async def test_an_interrupt_handler_is_the_cells_own(bare):
    async with bare.session() as session:
        await session.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)")
        done = await session.run("while True: pass", limits=Limits(seconds=0.2))
        assert done.ended == "timeout" and session.alive


@pytest.mark.parametrize(
    ("cell", "ended", "exit_code"),
    [
        ("exit(3)", "error", 3),
        ("exit()", "ok", 0),
        ("import os; os._exit(4)", "error", 4),
        ("import os; os.kill(os.getpid(), 9)", "killed", None),
        ("[].extend(iter(int, 1))", "memory", None),
        ("while True: print('x' * 9999)", "output", None),
    ],
)
async def test_a_session_may_end_by_a_cell(bare, cell, ended, exit_code):
    async with bare.session(limits=Limits(memory=64 << 20, output=1 << 20)) as session:
        done = await session.run(cell)
        assert (done.ended, done.exit_code) == (ended, exit_code)
        if ended == "memory" and done.error:  # stopped by the system, not by the warden: it can go on
            return
        assert not session.alive
        with pytest.raises(SandboxError, match="the session has ended"):
            await session.run("1")


async def test_who_dies_between_two_cells_is_told_with_the_next(bare):
    async with bare.session() as session:
        await session.run(
            "import threading, os, time\nthreading.Thread(target=lambda: (time.sleep(0.2), os._exit(5))).start()"
        )
        await asyncio.sleep(0.6)
        done = await session.run("1")
        assert (done.ended, done.exit_code, session.alive) == ("error", 5, False)


@pytest.mark.skipif(not os.path.exists("/proc"), reason="only where there is /proc it can be seen")
async def test_a_session_that_waits_costs_nothing(bare):
    def cpu():
        found = [bare._started.zygote.pid]
        for one in found:
            found += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
        ticks = (Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:13] for one in found)
        return sum(int(tick) for pair in ticks for tick in pair) / os.sysconf("SC_CLK_TCK")

    async with bare.session() as session:
        await asyncio.sleep(0.3)
        before = cpu()
        await asyncio.sleep(1)
        assert cpu() - before < 0.4
        assert (await session.run("1")).value == "1"


async def test_what_goes_on_between_two_cells_is_limited_too(bare):
    spin = "import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin, daemon=True).start()"
    async with bare.session(limits=Limits(cpu=0.5)) as session:
        assert (await session.run(spin)).ended == "ok"
        await asyncio.sleep(3)
        done = await session.run("1")
        assert (done.ended, "CPU time" in done.message, session.alive) == ("timeout", True, False)


async def test_memory_is_that_of_the_cell(bare):
    async with bare.session() as session:
        large = await session.run("held = bytearray(100 << 20)\nimport time\ntime.sleep(0.1)\ndel held")
        assert large.memory > 50 << 20
        assert (await session.run("1 + 1")).memory < 20 << 20


async def test_the_limits_of_a_cell_are_its_own(bare):
    async with bare.session(limits=Limits(seconds=5)) as session:
        assert (await session.run("import time\ntime.sleep(0.3)")).ended == "ok"
        assert (await session.run("time.sleep(0.3)", limits=Limits(seconds=0.1))).ended == "timeout"
        assert (await session.run("time.sleep(0.3)")).ended == "ok"
        assert (await session.run("print('x' * 5000)", limits=Limits(shown=10))).stdout_file is not None
        assert (await session.run("print('x' * 5000)")).stdout_file is None
        assert (await session.run("while True: pass", limits=Limits(cpu=0.1))).message.count("cpu=0.1") == 1


async def test_cells_given_at_once_run_one_after_the_other(bare):
    async with bare.session() as session:
        done = await asyncio.gather(
            *(session.run(f"x = {n}\nimport time\ntime.sleep(0.02)\nx") for n in range(5))
        )
        assert [one.value for one in done] == ["0", "1", "2", "3", "4"]


async def test_a_cancelled_cell_ends_the_session(bare):
    async with bare.session() as session:
        running = asyncio.create_task(session.run("import time\ntime.sleep(60)"))
        await asyncio.sleep(0.1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not session.alive
        with pytest.raises(SandboxError, match="it was cancelled"):
            await session.run("1")


async def test_a_session_is_entered_first(bare):
    session = bare.session()
    assert not session.alive and "not started" in repr(session)
    with pytest.raises(SandboxError, match="async with"):
        await session.run("1")
    async with session:
        assert "alive" in repr(session)
        with pytest.raises(ValueError, match="empty code"):
            await session.run(" ")
    with pytest.raises(SandboxError, match="closed"):
        await session.run("1")


async def test_calls_and_cells_share_a_process(bare):
    async with bare.session() as session:
        await session.run("import os; os.environ['X'] = '1'; pid = os.getpid()")
        done = await session.call("write", {"path": "f", "content": "from a call"})
        assert (done.ended, done.files) == ("ok", (MadeFile(name="f", size=11),))
        assert (await session.run("open('f').read(), os.getpid() == pid")).value == "('from a call', True)"


async def test_a_long_call_is_taken_and_a_long_result_too(bare):
    text = "é\n" * 300_000
    async with bare.session(limits=Limits(memory=1 << 30)) as session:
        done = await session.run(f"text = {text!r}\nlen(text)")
        assert done.value == str(len(text))
        done = await session.run("text", limits=Limits(shown=500_000))
        assert len(done.value) <= 500_000 and done.value.startswith("'é\\né")


FORGED = b'{"value": "forged", "error": null, "result": null, "exit_code": null}\n'


async def test_who_writes_answers_of_its_own_deceives_only_about_itself(bare):
    async with bare.session() as session:
        done = await session.run(f"import os, time\nos.write(3, {FORGED!r} * 9)\ntime.sleep(0.2)\n'real'")
        assert done.value == "forged"
        await asyncio.sleep(0.4)  # the true answer comes, and nobody waits for it
        assert (await session.run("1 + 1")).value == "2"
        assert (await session.run("2 + 2")).value == "4"


@pytest.mark.parametrize(
    "noise",
    [
        b"\0\xff{]}\n",
        b"x" * 100_000,
        b'[]\n0\nnull\n"a"\n',
        b'{"result": {"x": ' + b"[" * 600 + b"]" * 600 + b"}}\n",
        b'{"value": 1e999}\n{"value": NaN}\n',
        b'{"value": ' + b"9" * 5000 + b"}\n",
    ],
    ids=["bytes", "long", "no objects", "deep", "not finite", "huge number"],
)
async def test_noise_on_the_channel_is_passed_over(bare, noise):
    async with bare.session(limits=Limits(seconds=1)) as session:
        done = await session.run(f"import os\nos.write(3, {noise!r})\n'x' * 3")
        if not noise.endswith(b"\n"):  # what follows is part of the noise
            assert done.ended == "timeout"
            return
        assert (done.ended, done.value) == ("ok", "'xxx'")
        assert (await session.run("1 + 1")).value == "2"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
async def test_what_a_session_leaves_behind_ends_with_it(bare, eventually):
    async with bare.session() as session:
        await session.run("import subprocess\nsubprocess.Popen(['sleep', '53'], start_new_session=True)")
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and _line(pid) == b"sleep\x0053\0"]


def _line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""
