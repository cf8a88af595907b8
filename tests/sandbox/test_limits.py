"""Every limit: how a program ends that breaks it, what is said of it, and that nothing is left."""

import asyncio
import os
import sys

import pytest

from loopkit.sandbox import Limits, Sandbox

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux can be watched")
MB = 1 << 20

FORKS = "import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        time.sleep(90)\n        os._exit(0)\ntime.sleep(90)"
HOARD = "held = []\nwhile True: held.append(bytearray(1 << 20))"


@pytest.mark.parametrize(
    ("code", "limits", "ended", "told"),
    [
        ("import time\nprint('so far')\ntime.sleep(90)", {"seconds": 0.3}, "timeout", "(limit: seconds=0.3); it printed nothing"),
        ("import time\nprint('so far', flush=True)\ntime.sleep(90)", {"seconds": 0.3}, "timeout", "last output: so far"),
        ("while True: pass", {"cpu": 0.2}, "timeout", " s of CPU time (limit: cpu=0.2)"),
        ("import threading\nthreading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()", {"seconds": 0.3}, "timeout", "seconds=0.3"),
        ("import atexit, time\natexit.register(time.sleep, 90)", {"seconds": 0.3}, "timeout", "seconds=0.3"),
        ("bytearray(200 << 20)", {"memory": 64 * MB}, "memory", "out of memory (limit: memory=64 MiB)"),
        (HOARD, {"memory": 64 * MB}, "memory", "memory=64 MiB"),
        ("x = '-' * (60 << 20)\nx, x", {"memory": 100 * MB}, "memory", "memory=100 MiB"),
        (f"import os\nif os.fork() == 0:\n    os.fork()\n{HOARD.replace('True', 'len(held) < 40')}\nimport time\ntime.sleep(5)", {"memory": 64 * MB}, "memory", "more than memory=64 MiB"),
        ("while True: print('x' * 999)", {"output": MB}, "output", "more than output=1 MiB; last output: xxx"),
        ("import sys\nwhile True: sys.stderr.write('e' * 9999)", {"output": MB}, "output", "more than output=1 MiB"),
        ("import os\nos.write(1, bytes(3 << 20))", {"output": MB}, "output", "more than output=1 MiB"),
        ("import os\nos.write(1, bytes(3 << 20))\nos._exit(1)", {"output": MB}, "output", "more than output=1 MiB"),
        ("open('f', 'wb').write(bytes(2 << 20))", {"file_size": MB}, "error", "OSError: [Errno 27] File too large (line 1)"),
        ("files = [open('/dev/null') for _ in range(50)]", {"open_files": 20}, "error", "OSError: [Errno 24] Too many open files"),
        ("for n in range(5): open(str(n), 'wb').write(bytes(1 << 20))", {"disk": 3 * MB}, "disk", "more than disk=3 MiB"),
        ("import os, time\nf = open('f', 'wb')\nos.unlink('f')\nf.write(bytes(4 << 20))\nf.flush()\ntime.sleep(90)", {"disk": 3 * MB}, "disk", "more than disk=3 MiB"),
        ("import os\nos.mkdir('d', 0o700)\nfor n in range(5): open(f'd/{n}', 'wb').write(bytes(1 << 20))\nos.chmod('d', 0)", {"disk": 3 * MB}, "disk", "more than disk=3 MiB"),
        ("import os\nopen('f', 'w')\nfor n in range(20_100): os.link('f', str(n))", {}, "disk", "too many files"),
        (FORKS, {"processes": 8}, "processes", "more than processes=8"),
        (FORKS.replace("20", "10").removesuffix("time.sleep(90)"), {"processes": 8}, "processes", "more than processes=8"),
        ("import threading, time\nfor _ in range(9): threading.Thread(target=time.sleep, args=(90,)).start()", {"processes": 8}, "processes", "more than processes=8"),
    ],
    ids=lambda value: value.splitlines()[-1][:40] if isinstance(value, str) and "\n" in value else None,
)  # fmt: skip
@linux
async def test_a_limit_that_is_broken_ends_the_program(bare, code, limits, ended, told):
    done = await bare.run(code, limits=Limits(**{"seconds": 60} | limits))
    assert (done.ended, told in done.message) == (ended, True), done


@linux
async def test_what_stays_below_the_limits_goes_through(bare):
    code = (
        "import os, threading, time\n"
        "held = bytearray(40 << 20)\nopen('f', 'wb').write(bytes(2 << 20))\nprint('x' * 500_000)\n"
        "threads = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(2)]\n"
        "for thread in threads: thread.start()\nfor thread in threads: thread.join()\n"
        "files = [open('/dev/null') for _ in range(10)]\nlen(held)"
    )
    limits = Limits(memory=64 * MB, disk=3 * MB, file_size=2 * MB, output=MB, processes=8, open_files=20)
    done = await bare.run(code, limits=limits)
    assert (done.ended, done.message, done.value) == ("ok", "", str(40 << 20))
    assert 30 * MB < done.memory < 64 * MB


@linux
async def test_forks_that_share_their_memory_count_it_once(warm):
    code = (
        "import os, time\nheld = bytearray(100 << 20)\n"
        "children = []\nfor _ in range(6):\n    child = os.fork()\n    if not child:\n        time.sleep(0.2)\n        os._exit(0)\n"
        "    children.append(child)\nfor child in children: os.waitpid(child, 0)\n'ok'"
    )
    done = await warm.run(code, limits=Limits(seconds=60, memory=200 * MB))
    assert (done.ended, done.value) == ("ok", "'ok'")


@linux
async def test_memory_of_other_programs_counts_whole(warm):
    """They have none of what was loaded, so nothing is taken off."""
    hold = "import time; held = b'x' * (60 << 20); time.sleep(90)"
    code = f"import subprocess, sys, time\nfor _ in range(4): subprocess.Popen([sys.executable, '-c', {hold!r}])\ntime.sleep(90)"
    done = await warm.run(code, limits=Limits(seconds=60, memory=150 * MB))
    assert (done.ended, "more than memory=150 MiB" in done.message) == ("memory", True)


@linux
async def test_the_disk_limit_is_on_what_is_added(workplace):
    (workplace / "large").write_bytes(bytes(4 * MB))
    async with Sandbox(folder=workplace, preload=(), limits=Limits(disk=3 * MB)) as box:
        assert (await box.run("open('small', 'wb').write(bytes(2 << 20))")).ended == "ok"
        assert (await box.run("open('more', 'wb').write(bytes(4 << 20))")).ended == "disk"


@linux
async def test_scratch_folders_are_private_and_bounded(bare):
    if "namespace" not in bare.protection.files:
        pytest.skip("without namespaces there are none")
    limits = Limits(memory=64 * MB)
    for folder in ("/tmp", "/dev/shm"):
        assert (
            await bare.run(f"open('{folder}/f', 'wb').write(bytes(8 << 20))", limits=limits)
        ).ended == "ok"
        done = await bare.run(f"open('{folder}/f', 'wb').write(bytes(20 << 20))", limits=limits)
        assert "No space left on device" in done.message
        code = f"import os\nfor n in range(30_000): os.close(os.open(f'{folder}/{{n}}', os.O_CREAT))"
        assert "No space left on device" in (await bare.run(code, limits=Limits(memory=64 * MB))).message


@linux
async def test_a_fork_bomb_is_over_when_the_run_is(bare, eventually):
    code = "import os\nos.environ['X'] = 'y'\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    done = await bare.run(code, limits=Limits(seconds=1, processes=12))
    assert done.ended in ("processes", "timeout")
    assert (await bare.run("1 + 1")).value == "2"


@linux
async def test_who_stops_itself_or_hides_is_ended_all_the_same(bare, tmp_path):
    stop = "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"
    assert (await bare.run(stop, limits=Limits(seconds=0.3))).ended == "timeout"
    hide = "import os\nfor _ in range(3):\n    if os.fork(): os._exit(0)\n    os.setsid()\nos.execvp('sleep', ['sleep', '59'])"
    done = await bare.run(hide, limits=Limits(seconds=0.3))
    assert (done.ended, done.exit_code) == ("ok", 0)  # the program itself has ended, and with it all others
    await asyncio.sleep(0.1)
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and _line(pid) == b"sleep\059\0"]


def _line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


@linux
async def test_the_warden_cannot_be_governed(bare):
    """It has the user of the program: what the kernel lets one do to the other is refused."""
    if "seccomp" not in bare.protection.system_calls or "namespace" not in bare.protection.processes:
        pytest.skip("only with namespaces and a filter of system calls")
    attempts = [
        "import resource; resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))",
        "import os; os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))",
        "import os; os.sched_setaffinity(1, {0})",
        "import os; os.setpriority(os.PRIO_PROCESS, 1, 19)",
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\nif libc.prctl(4, 0, 0, 0, 0): raise PermissionError(ctypes.get_errno())",
        "open('/proc/1/environ').read()",
        "open('/proc/1/mem', 'rb')",
        "import os; os.listdir('/proc/1/fd')",
        "import os; os.readlink('/proc/1/cwd')",
    ]  # fmt: skip
    for attempt in attempts:
        assert (await bare.run(attempt)).error.type == "PermissionError", attempt
    done = await bare.run(
        "import os, time\nfor number in (9, 15, 2, 19): os.kill(1, number)\ntime.sleep(0.1)\n'alive'"
    )
    assert done.value == "'alive'"
    allowed = "import os, resource\nos.sched_setaffinity(0, os.sched_getaffinity(0))\nresource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))\n'yes'"
    assert (await bare.run(allowed)).value == "'yes'"


@linux
async def test_descriptors_are_the_standard_ones_and_the_channel(bare):
    done = await bare.run("import os; sorted(int(fd) for fd in os.listdir('/proc/self/fd'))")
    assert (
        done.value in ("[0, 1, 2, 3, 4]", "[0, 1, 2, 3]") or done.ended == "error"
    )  # 4 is the listing itself
