"""Running code that nobody has read: real child processes, and what must not get in or out."""

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from loopkit.sandbox import run_python

posix = pytest.mark.skipif(sys.platform == "win32", reason="limits and process groups are POSIX")


async def test_output_and_how_it_ended():
    run = await run_python("import sys; print('out'); print('err', file=sys.stderr)")
    assert (run.ended, run.stdout, run.stderr) == ("ok", "out\n", "err\n")
    assert 0 < run.seconds < 10


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("print('before'); 1 / 0", "ZeroDivisionError"),
        ("def f(:", "SyntaxError"),
        ("print(1)\0", "null byte"),
        ("raise SystemExit('bye')", "bye"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", ""),
    ],
)
async def test_a_program_that_fails_is_an_error_with_its_own_words(code, told):
    run = await run_python(code)
    assert run.ended == "error"
    assert told in run.stderr
    assert run.stdout == ("before\n" if "before" in code else "")


@pytest.mark.parametrize("code", ["", "  \n\t"])
async def test_empty_code_is_refused(code):
    with pytest.raises(ValueError, match="empty code"):
        await run_python(code)


async def test_a_program_without_end_is_killed_and_what_it_printed_is_kept():
    run = await run_python("print('begun', flush=True)\nwhile True: pass", timeout=0.5)
    assert (run.ended, run.stdout) == ("timeout", "begun\n")
    assert 0.5 <= run.seconds < 3


async def test_output_without_end_is_kept_to_the_limit_and_ended():
    code = "import sys\nwhile True: print('o' * 999); print('e' * 999, file=sys.stderr)"
    run = await run_python(code, timeout=0.5, max_output=1500)
    assert run.ended == "error"  # it met the limit of what a program may write
    assert run.stdout == ("o" * 999 + "\n" + "o" * 500)
    assert run.stderr == ("e" * 999 + "\n" + "e" * 500)


async def test_much_output_on_both_streams_does_not_block_the_program():
    code = "import sys\nsys.stderr.write('e' * 300_000); sys.stdout.write('o' * 300_000)"
    run = await run_python(code, max_output=10)
    assert (run.ended, run.stdout, run.stderr) == ("ok", "o" * 10, "e" * 10)


async def test_nothing_of_our_environment_gets_in(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PYTHONPATH", "/nowhere/secret")
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere/secret")
    run = await run_python("import json, os, sys; print(json.dumps([dict(os.environ), sys.path, sys.argv]))")
    environment, path, argv = json.loads(run.stdout)
    assert "secret" not in run.stdout
    assert set(environment) <= {"PATH", "LANG", "HOME", "OPENBLAS_NUM_THREADS", "LC_CTYPE", "SYSTEMROOT"}
    assert "" not in path and "." not in path
    assert argv == ["main.py"]


async def test_it_reads_nothing_on_standard_input():
    run = await run_python("import sys; print(repr(sys.stdin.read())); input()")
    assert run.stdout == "''\n"
    assert (run.ended, "EOFError" in run.stderr) == ("error", True)


async def test_the_working_folder_holds_the_program_alone_and_is_gone_afterwards():
    code = "import os, json; os.mkdir('made'); open('made/file', 'w').write('x'); print(json.dumps([os.getcwd(), sorted(os.listdir())]))"
    run = await run_python(code)
    folder, listing = json.loads(run.stdout)
    assert listing == ["made", "main.py"]
    assert not Path(folder).exists()
    assert Path(folder) != Path.cwd()


@pytest.mark.parametrize("code", ["raise ValueError", "while True: pass"])
async def test_the_working_folder_is_removed_however_the_program_ends(code, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = await run_python(code, timeout=0.4)
    assert run.ended in ("error", "timeout")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("print('é 日本 😀')", "é 日本 😀\n"),
        ("print('a\\0b')", "a\0b\n"),
        ("import sys; sys.stdout.buffer.write(b'a\\xffb')", "a\ufffdb"),
        ("é = 'ü'; print(é)", "ü\n"),
        ("print('\ud800')", "?\n"),
    ],
)
async def test_any_text_goes_in_and_any_bytes_come_out(code, printed):
    run = await run_python(code)
    assert (run.ended, run.stdout) == ("ok", printed), run.stderr


async def test_output_cut_within_a_character_is_still_text():
    assert (await run_python("print('é')", max_output=1)).stdout == "\ufffd"


@posix
async def test_a_memory_bomb_is_an_error():
    code = "held = bytearray(1 << 29); print(len(held))"
    assert (await run_python(code, memory=1 << 30)).stdout == f"{1 << 29}\n"
    bomb = await run_python(code, memory=1 << 28)
    assert (bomb.ended, bomb.stdout, "MemoryError" in bomb.stderr) == ("error", "", True)


@posix
async def test_a_large_file_is_an_error():
    run = await run_python("open('large', 'wb').write(bytes(4 << 20))")
    assert (run.ended, "OSError" in run.stderr) == ("error", True)


def gone(pid):
    """Whether the process ends within a moment; a zombie that nobody has reaped yet has ended."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
            status = Path(f"/proc/{pid}/stat")
            if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return False


CHILD = (
    "import subprocess, sys; quiet = subprocess.DEVNULL; sleep = [sys.executable, '-c', 'import time; time.sleep(60)'];"
    "child = subprocess.Popen(sleep, stdout=quiet, stderr=quiet); print(child.pid, flush=True)"
)


@posix
@pytest.mark.parametrize(("then", "ended"), [("", "ok"), ("; child.wait()", "timeout"), ("; 1 / 0", "error")])
async def test_children_are_killed_with_the_program(then, ended):
    run = await run_python(CHILD + then, timeout=1.5 if ended == "timeout" else 10)
    assert run.ended == ended
    assert gone(int(run.stdout))


@posix
@pytest.mark.parametrize("session", [False, True])
async def test_a_child_that_holds_the_output_open_keeps_nobody_waiting(session):
    code = (
        "import subprocess, sys; sleep = [sys.executable, '-c', 'import time; time.sleep(9)'];"
        f"print(subprocess.Popen(sleep, start_new_session={session}).pid)"
    )
    run = await run_python(code, timeout=10)
    try:
        assert (run.ended, run.stderr) == ("ok", "")
        assert run.seconds < 4  # well under one on an idle machine
    finally:
        assert gone(int(run.stdout)) or session  # in a session of its own it is not ours to find


@posix
async def test_cancelling_kills_the_program_and_removes_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "import os; open('pid.part', 'w').write(str(os.getpid())); os.rename('pid.part', 'pid')\nwhile True: pass"
    running = asyncio.create_task(run_python(code))
    while not (written := list(tmp_path.glob("*/pid"))):
        await asyncio.sleep(0.02)
    pid = int(written[0].read_text())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert list(tmp_path.iterdir()) == []
    assert await asyncio.to_thread(gone, pid)


async def test_programs_at_once_do_not_meet():
    runs = await asyncio.gather(*(run_python(f"print({n}); open('f', 'x')") for n in range(4)))
    assert [(run.ended, run.stdout) for run in runs] == [("ok", f"{n}\n") for n in range(4)]
