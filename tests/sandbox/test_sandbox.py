"""Running code that nobody has read: what comes back, whatever the program does, and what never gets in."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import loopkit.sandbox
from loopkit.sandbox import Limits, Sandbox, SandboxError, run_python
from loopkit.sandbox.inside import NOBODY
from loopkit.sandbox.results import ErrorInfo, MadeFile

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


# --- values, output, errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", "2"),
        ("x = 3\nx * 'ab'", "'ababab'"),
        ("x = 3", None),
        ("None", None),
        ("print(1)", None),
        ("for x in (1, 2): x", None),
        ("def f():\n    return 5\nf()", "5"),
        ("5;", "5"),
        ("# nothing", None),
        ("'''text'''", "'text'"),
        ("{'b': [1.5, (None,)]}", "{'b': [1.5, (None,)]}"),
        ("if True:\n    'inside'", None),
        ("import sympy\nsympy.factorint(2**67 - 1)", "{193707721: 1, 761838257287: 1}"),
        ("import numpy\nnumpy.arange(3)", "array([0, 1, 2])"),
        ("__name__, __import__('sys').argv", "('__main__', ['<program>'])"),
    ],
)
async def test_the_value_is_that_of_the_last_expression(warm, code, value):
    done = await warm.run(code)
    assert (done.ended, done.message, done.value, done.exit_code) == ("ok", "", value, 0)
    assert done.error is None and done.files == ()


async def test_output_of_both_streams_and_how_long_it_took(bare):
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.stdout.write('no newline')"
    done = await bare.run(code)
    assert (done.stdout, done.stderr) == ("out\nno newline", "err\n")
    assert done.stdout_file is done.stderr_file is None
    assert 0 < done.seconds < 10 and 0 <= done.cpu < 10


@pytest.mark.parametrize(
    ("code", "type_", "message", "line"),
    [
        ("print('before'); 1 / 0", "ZeroDivisionError", "division by zero", 1),
        ("def f():\n    raise KeyError('k')\n\nf()", "KeyError", "'k'", 2),
        ("x = 1\ndef f(:\n", "SyntaxError", "invalid syntax", 2),
        ("  x = 1", "IndentationError", "unexpected indent", 1),
        ("raise ValueError", "ValueError", "", 1),
        ("import no_such_module", "ModuleNotFoundError", "No module named 'no_such_module'", 1),
        ("raise KeyboardInterrupt('own')", "KeyboardInterrupt", "own", 1),
        ("raise ExceptionGroup('two', [ValueError(1)])", "ExceptionGroup", "two (1 sub-exception)", 1),
        ("class E(Exception):\n    pass\nraise E('é')", "E", "é", 3),
        ("def f(): f()\nf()", "RecursionError", "maximum recursion depth exceeded", 1),
    ],
)
async def test_an_exception_is_an_error_with_its_type_message_and_line(bare, code, type_, message, line):
    done = await bare.run(code)
    assert (done.ended, done.exit_code, done.stderr) == ("error", 1, "")
    assert (done.error.type, done.error.message, done.error.line) == (type_, message, line)
    assert done.message == (f"{type_}: {message} (line {line})" if message else f"{type_} (line {line})")
    assert done.error.traceback.splitlines()[-1] == (f"{type_}: {message}" if message else type_)
    assert done.stdout == ("before\n" if "before" in code else "")


@pytest.mark.parametrize(
    "code",
    [
        "print(1)\0",
        "'\ud800'",
        "(" * 1000,
        "-" * 200_000 + "1",
        "class M(type):\n    @property\n    def __name__(cls): raise OSError\nclass E(Exception, metaclass=M): pass\nraise E",
        "class E(Exception):\n    def __str__(self): raise self\nraise E",
        "class E(Exception):\n    def __str__(self): return 5\nraise E",
        "raise SyntaxError('m', ('<program>', 1, 1, 5))",
        "class V:\n    def __repr__(self): raise SystemError\nV()",
        "class V:\n    def __repr__(self): return 3\nV()",
        "import sys; sys.stderr = sys.stdout = None; sys.exit('bye')",
        "import builtins; builtins.print = None; raise SystemExit('bye')",
        "__import__('builtins').__dict__.clear()",
        "import sys\nsys.setrecursionlimit(60)\nraise ValueError('x')",
        "raise BaseException('\ud800\\ud800\\0')",
        "import os; os.close(3); raise ValueError",
    ],
)
async def test_however_strangely_a_program_fails_it_is_a_result(bare, code):
    done = await bare.run(code)
    assert done.ended in ("error", "killed")
    json.dumps([done.message, done.stdout, done.stderr, done.value, done.error and vars(done.error)]).encode()


@pytest.mark.parametrize(
    ("code", "ended", "exit_code", "message"),
    [
        ("import sys; sys.exit()", "ok", 0, ""),
        ("raise SystemExit(0)", "ok", 0, ""),
        ("exit(3)", "error", 3, "exited with code 3; it printed nothing"),
        ("raise SystemExit('bye')", "error", 1, "exited with code 1; last output: bye"),
        ("import os; print('x', flush=True); os._exit(4)", "error", 4, "exited with code 4; last output: x"),
        ("import os; os._exit(0)", "ok", 0, ""),
        ("import os; os.abort()", "killed", None, "killed by SIGABRT; it printed nothing"),
        ("import os; os.kill(os.getpid(), 9)", "killed", None, "killed by SIGKILL; it printed nothing"),
        ("import os; os.kill(os.getpid(), 10)", "killed", None, "killed by SIGUSR1; it printed nothing"),
        ("import ctypes; ctypes.string_at(0)", "killed", None, "killed by SIGSEGV; it printed nothing"),
        ("import os; os.closerange(3, 99)", "ok", 0, ""),
    ],
)
async def test_a_program_that_ends_itself(bare, code, ended, exit_code, message):
    done = await bare.run(code)
    assert (done.ended, done.exit_code, done.message) == (ended, exit_code, message)


@pytest.mark.parametrize("code", ["", "  \n\t"])
async def test_empty_code_is_refused(bare, code):
    with pytest.raises(ValueError, match="empty code"):
        await bare.run(code)
    with pytest.raises(ValueError, match="empty code"):
        await run_python(code)


async def test_a_traceback_shows_the_frames_of_the_program_and_the_last_of_a_library(bare):
    code = "import json\ndef load(text):\n    return json.loads(text)\nload('[')"
    done = await bare.run(code)
    lines = done.error.traceback.splitlines()
    assert lines[:2] == ["line 4: load('[')", "line 3 in load: return json.loads(text)"]
    assert re.match(r"json/decoder\.py line \d+ in raw_decode: ", lines[2])
    assert lines[3] == "JSONDecodeError: Expecting value: line 1 column 2 (char 1)" == lines[-1]


async def test_a_long_traceback_loses_its_middle(bare):
    done = await bare.run("def f(n):\n    return f(n - 1) if n else 1 / 0\nf(50)")
    lines = done.error.traceback.splitlines()
    assert len(lines) == 10 and "… 44 more …" in lines
    assert lines[0] == "line 3: f(50)" and lines[-1] == "ZeroDivisionError: division by zero"


async def test_a_warning_is_one_line(bare):
    code = "import warnings\nwarnings.warn('mind the gap')\nwarnings.warn('gone', DeprecationWarning)"
    done = await bare.run(code + "\nwarnings.warn('x' * 1000)")
    lines = done.stderr.splitlines()
    assert lines[:2] == ["UserWarning (line 2): mind the gap", "DeprecationWarning (line 3): gone"]
    assert len(lines) == 3 and len(lines[2]) < 400


async def test_modules_of_the_folder_are_the_program_too(bare):
    code = "open('helper.py', 'w').write('def f():\\n    return 1 / 0\\n')\nimport helper\nhelper.f()"
    done = await bare.run(code)
    assert done.error.traceback.splitlines()[:2] == [
        "line 3: helper.f()",
        "helper.py line 2 in f: return 1 / 0",
    ]
    assert done.error.line == 3
    assert [made.name for made in done.files] == ["helper.py"]  # and no bytecode


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("print('é 日本 😀 👩‍💻')", "é 日本 😀 👩‍💻\n"),
        ("print('a\\0b\\x1b[31m\\x9c')", "a\\x00b\\x1b[31m\\x9c\n"),
        ("import sys; sys.stdout.buffer.write(b'a\\xffb')", "a\ufffdb"),
        ("é = 'ü'; print(é)", "ü\n"),
        ("print('\\ud800')", "\\ud800\n"),
        ("print('1%\\r2%\\r\\n3%')", "1%\n2%\n3%\n"),
        ("print('\\u202egpj')", "\ufffdgpj\n"),
    ],
)
async def test_any_text_goes_in_and_what_comes_out_can_be_shown_anywhere(bare, code, printed):
    done = await bare.run(code)
    assert (done.ended, done.stdout) == ("ok", printed)


async def test_long_output_comes_back_as_head_and_tail_and_the_whole_is_in_a_file(bare):
    code = "for n in range(100_000): print(n)\nimport sys\nprint('é' * 300, file=sys.stderr)"
    done = await bare.run(code, limits=Limits(shown=100))
    whole = "".join(f"{n}\n" for n in range(100_000))
    head, mark, tail = done.stdout.partition(f"\n[… {len(whole) - 100} bytes left out …]\n")
    assert mark and whole.startswith(head) and whole.endswith(tail) and len(head + tail) == 100
    assert done.stdout_file.read_text() == whole
    assert done.stderr == "é" * 25 + "\n[… 502 bytes left out …]\n" + "é" * 24 + "\n"
    assert done.stderr_file.read_text() == "é" * 300 + "\n"
    assert (await bare.run("print('x' * 99)", limits=Limits(shown=100))).stdout_file is None


async def test_a_long_value_message_and_traceback_are_cut(bare):
    done = await bare.run("'y' * 100_000", limits=Limits(shown=200))
    assert len(done.value) <= 200 and done.value.startswith("'yyy") and done.value.endswith("yyy'")
    done = await bare.run("raise ValueError('z' * 100_000)", limits=Limits(shown=200))
    assert len(done.error.message) <= 200 and len(done.error.traceback) <= 200 and len(done.message) < 300


# --- what is around it -----------------------------------------------------------------------------------------


async def test_nothing_of_our_environment_gets_in(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PYTHONPATH", "/nowhere/secret")
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere/secret")
    async with Sandbox(preload=()) as box:
        done = await box.run("import json, os, sys; print(json.dumps([dict(os.environ), sys.path]))")
    environment, path = json.loads(done.stdout)
    assert "secret" not in done.stdout
    threads = {name for name in environment if name.endswith("_NUM_THREADS")}
    known = {"PATH", "LANG", "HOME", "TMPDIR", "LC_CTYPE", "PYTHONDONTWRITEBYTECODE", "MALLOC_ARENA_MAX"}
    assert environment.keys() - threads <= known
    assert environment["HOME"] == path[0] == str(done.folder)
    assert "" not in path and "." not in path


async def test_it_reads_nothing_on_standard_input(bare):
    done = await bare.run("import sys; print(repr(sys.stdin.read())); input()")
    assert (done.stdout, done.error.type) == ("''\n", "EOFError")


async def test_random_numbers_differ_between_runs(warm):
    code = (
        "import random, numpy, sympy\nfrom sympy.core.random import rng\n"
        "random.random(), numpy.random.random(), numpy.random.default_rng().random(), rng.random()"
    )
    first, second = (await warm.run(code), await warm.run(code))
    assert not set(first.value.strip("()").split(", ")) & set(second.value.strip("()").split(", "))


async def test_it_leaves_nothing_for_the_next(warm):
    code = "import numpy, sys, os\nnumpy.pi = 3\nsys.spoiled = os.environ['SPOILED'] = '1'\nopen('/tmp/left', 'w')"
    assert (await warm.run(code)).ended == "ok"
    done = await warm.run("import numpy, sys, os; numpy.pi, hasattr(sys, 'spoiled'), 'SPOILED' in os.environ")
    assert done.value == f"({__import__('math').pi}, False, False)"
    if "namespace" in warm.protection.files:
        assert (
            await warm.run("import os; os.path.exists('/tmp/left'), os.listdir('.')")
        ).value == "(False, [])"


async def test_threads_and_exit_handlers_are_waited_for(bare):
    code = (
        "import atexit, threading, time\natexit.register(print, 'at exit')\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()\nprint('end')"
    )
    assert (await bare.run(code)).stdout == "end\nthread\nat exit\n"
    assert (await bare.run(code + "\n1 / 0")).stdout == "end\nthread\nat exit\n"


async def test_a_forked_child_that_comes_to_the_end_is_not_taken_for_the_program(bare):
    code = "import os, time\nchild = os.fork()\nif child:\n    os.waitpid(child, 0)\nprint('parent' if child else 'child')\n'value'"
    done = await bare.run(code)
    assert (done.ended, done.stdout, done.value) == ("ok", "child\nparent\n", "'value'")


async def test_subprocesses_and_pools_work(bare):
    code = (
        "import subprocess, sys, multiprocessing, asyncio\n"
        "print(subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout)\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n    print(pool.map(abs, [-1, -2]))\n"
        "async def main():\n    return await asyncio.to_thread(len, 'abc')\nasyncio.run(main())"
    )
    done = await bare.run(code)
    assert (done.stdout, done.value, done.stderr) == ("42\n\n[1, 2]\n", "3", "")


# --- files -----------------------------------------------------------------------------------------------------


async def test_files_made_are_listed_and_kept(bare):
    code = (
        "import os\nopen('b', 'w').write('12345')\nos.makedirs('d/e')\nopen('d/e/f.txt', 'w').write('x')\n"
        "os.mkfifo('pipe')\nos.symlink('/etc', 'etc')\nos.symlink('b', 'link')\nopen('gone', 'w')\nos.unlink('gone')"
    )
    done = await bare.run(code)
    assert done.files == (MadeFile(name="b", size=5), MadeFile(name="d/e/f.txt", size=1))
    assert (done.folder / "d/e/f.txt").read_text() == "x"
    assert done.folder.is_relative_to(bare.home)


async def test_the_folder_of_a_run_that_left_nothing_is_removed(bare, eventually):
    done = await bare.run("import os; os.mkdir('d'); os.symlink('/', 'root'); sorted(os.listdir())")
    assert (done.value, done.files) == ("['d', 'root']", ())
    eventually(lambda: not done.folder.exists())
    assert Path("/usr").exists()


@pytest.mark.parametrize(
    "name", [b"a b", b"\xff\xfe", "é😀".encode(), b"new\nline\ttab", b"\x1b[31m", b"-rf", b"x" * 255, b"..."]
)
async def test_odd_names(bare, name):
    done = await bare.run(f"open({name!r}, 'w').write('x')")
    (made,) = done.files
    assert made.size == 1 and made.name.isprintable()
    assert json.loads(json.dumps(made.name).encode()) == made.name
    assert (done.folder / os.fsdecode(name)).exists()


async def test_folders_that_are_closed_or_deep_are_passed_over_and_removed(tmp_path):
    async with Sandbox(preload=()) as box:
        code = "import os\nos.mkdir('shut')\nopen('shut/f', 'w').write('x')\nos.chmod('shut', 0)\nopen('g', 'w')\nos.chmod('.', 0o500)"
        done = await box.run(code)
        assert done.ended == "ok" or "PermissionError" in done.message  # chmod may be refused
        assert "g" in [made.name for made in done.files]
        deep = "import os\nfor n in range(150):\n    os.mkdir('d')\n    os.chdir('d')"
        done = await box.run(deep)
        assert done.ended == "disk" and "folders that are too deep" in done.message
        home = box.home
    assert not home.exists()


async def test_runs_share_a_folder_that_is_given(workplace):
    (workplace / "old").write_text("old")
    (workplace / "old").chmod(0o666)
    async with Sandbox(folder=workplace, preload=()) as box:
        assert box.folder == workplace
        first = await box.run("open('new', 'w').write(open('old').read())")
        assert (first.files, first.folder) == ((MadeFile(name="new", size=3),), workplace)
        second = await box.run("import os; open('old', 'a').write('er'); sorted(os.listdir())")
        assert (second.value, second.files) == ("['new', 'old']", (MadeFile(name="old", size=5),))
        third = await box.run(
            "import os, time; s = os.stat('new'); open('new', 'r+').write('NEW'); os.utime('new', ns=(s.st_atime_ns, s.st_mtime_ns))"
        )
        assert [made.name for made in third.files] == ["new"]  # however it dates them
        assert (await box.run("1")).files == ()
    assert (workplace / "new").read_text() == "NEW"


async def test_inputs_are_read_only(workplace, tmp_path_factory):
    given = tmp_path_factory.mktemp("given")
    given.chmod(0o755)
    (given / "table.csv").write_text("a,b")
    for parent in (given, *given.parents[:2]):
        parent.chmod(0o755)
    inputs = {"table": given / "table.csv", "all": given}
    try:
        async with Sandbox(inputs=inputs, preload=()) as box:
            done = await box.run(
                "import os; open('inputs/table').read(), os.listdir('inputs/all'), sorted(os.listdir('inputs'))"
            )
            assert done.value == "('a,b', ['table.csv'], ['all', 'table'])"
            assert done.files == ()
            if box.protection.files == "none":
                return
            for attempt in (
                "open('inputs/table', 'a')",
                "open('inputs/all/new', 'w')",
                "import os; os.unlink('inputs/all/table.csv')",
            ):
                assert (await box.run(attempt)).error.type in ("OSError", "PermissionError")
        async with Sandbox(inputs={"table": given / "table.csv"}, folder=workplace, preload=()) as box:
            spoil = (
                "import os; os.unlink('inputs/table'); os.rename('inputs', 'x'); os.symlink('/', 'inputs')"
            )
            assert (await box.run(spoil)).ended == "ok"
            assert (await box.run("open('inputs/table').read()")).value == "'a,b'"
            assert (
                await box.run("import shutil; shutil.rmtree('inputs'); open('inputs', 'w')")
            ).ended == "ok"
            assert (await box.run("open('inputs/table').read()")).value == "'a,b'"
            if os.geteuid() == 0:  # who gives the folder to the programs' user
                os.chown(workplace, NOBODY, NOBODY)
            for closed in ("inputs", "."):
                assert (await box.run(f"import os; os.chmod({closed!r}, 0)")).ended == "ok"
                assert (await box.run("open('inputs/table').read()")).value == "'a,b'"
            assert (await box.run("import shutil; shutil.rmtree('inputs')")).ended == "ok"
            first = await asyncio.gather(*(box.run("open('inputs/table').read()") for _ in range(6)))
            assert [done.value for done in first] == ["'a,b'"] * 6
    finally:
        assert (given / "table.csv").read_text() == "a,b"
        assert os.listdir(given) == ["table.csv"]


# --- what is asked of it ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"require": ["nothing"]}, ValueError, "require takes some of network, files.*got 'nothing'"),
        ({"require": "network"}, ValueError, "got 'network'"),
        ({"walls": ["bricks"]}, ValueError, "walls takes some of namespaces.*got 'bricks'"),
        ({"start": "cold"}, ValueError, "got 'cold'"),
        ({"preload": "numpy"}, TypeError, "got 'numpy'"),
        ({"folder": "/no/such/folder"}, NotADirectoryError, "/no/such/folder"),
        ({"folder": "/"}, ValueError, "would own all of /"),
        ({"folder": "~"}, ValueError, "would own all of"),
        ({"folder": sys.prefix}, ValueError, "would own all of"),
        ({"inputs": {"a/b": "."}}, ValueError, "got 'a/b'"),
        ({"inputs": {"a": "/no/such/file"}}, FileNotFoundError, "input 'a'.*/no/such/file"),
    ],
)
def test_what_cannot_be_is_refused_at_once(arguments, error, told):
    with pytest.raises(error, match=told):
        Sandbox(**arguments)


def test_an_input_within_the_folder_is_no_input(workplace):
    (workplace / "f").write_text("x")
    with pytest.raises(ValueError, match="'f' lies in"):
        Sandbox(folder=workplace, inputs={"f": workplace / "f"})


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"seconds": 0}, ValueError),
        ({"seconds": float("nan")}, ValueError),
        ({"cpu": -1}, ValueError),
        ({"memory": 100}, ValueError),
        ({"memory": 2**60}, ValueError),
        ({"memory": 1e9}, TypeError),
        ({"processes": True}, TypeError),
        ({"shown": "all"}, TypeError),
    ],
)
def test_limits_are_sensible_numbers(arguments, error):
    with pytest.raises(error, match=f"{next(iter(arguments))} must be"):
        Limits(**arguments)


async def test_without_a_protection_that_is_required_nothing_runs():
    box = Sandbox(preload=(), require=["network"], walls=())
    with pytest.raises(SandboxError, match="not to be had on this machine: network"):
        await box.run("1")
    with pytest.raises(SandboxError, match="has not started"):
        box.protection  # noqa: B018


async def test_what_is_to_be_loaded_must_be_there():
    with pytest.raises(SandboxError, match="to be loaded: no_such_module"):
        await Sandbox(preload=["no_such_module"]).run("1")


async def test_functions_are_called_as_code_is_run(workplace):
    async with Sandbox(folder=workplace, preload=()) as box:
        done = await box.call("write", {"path": "f", "content": "text"})
        assert (done.ended, done.result["bytes"], done.files) == ("ok", 4, (MadeFile(name="f", size=4),))
        done = await box.call("read", {"path": "missing"})
        assert (done.ended, done.error.type, done.result["kind"]) == ("error", "ToolProblem", "missing")
        done = await box.call("no_such_function", {})
        assert (done.ended, done.error.type) == ("error", "KeyError")


# --- starting and closing --------------------------------------------------------------------------------------


async def test_a_fresh_interpreter_gives_the_same_results(warm):
    codes = [
        "1 + 1", "import numpy; numpy.arange(2)", "print('a'); raise KeyError(3)", "x = (",
        "exit(3)", "import os; os._exit(4)", "import os; os.abort()", "open('f', 'w').write('x')", "import warnings; warnings.warn('w')",
        "import json; json.loads('{')", "__name__, __file__ if '__file__' in dir() else None", "import sys; sys.argv, len(sys.path) > 1",
        "x = bytearray(1 << 40)", "import socket; socket.socket().bind(('', 0))", "import os; sorted(os.environ)",
    ]  # fmt: skip

    def comparable(done):
        return {**vars(done), "seconds": 0, "cpu": 0, "memory": 0, "folder": 0} | {
            "message": re.sub(r"[\d.]+ s", "", done.message)
        }

    limits = Limits(seconds=60)
    async with Sandbox(start="fresh", limits=limits) as box:
        assert box.protection == warm.protection
        cold = await asyncio.gather(*map(box.run, codes))
        for code, one in zip(codes, cold, strict=True):
            assert comparable(one) == comparable(await warm.run(code, limits=limits)), code
        assert (await box.run("while True: pass", limits=Limits(seconds=0.3))).ended == "timeout"
        async with box.session() as session:
            assert [(await session.run(cell)).value for cell in ("x = 41", "x + 1")] == [None, "42"]


async def test_a_sandbox_starts_by_itself_and_closed_it_stays(eventually):
    box = Sandbox(preload=())
    assert "not started" in repr(box)
    assert (await box.run("1 + 1")).value == "2"
    assert "protection of" in repr(box) or "no protection" in repr(box)
    home = box.home
    box.close()
    box.close()
    assert "closed" in repr(box) and not home.exists()
    with pytest.raises(SandboxError, match="the sandbox is closed"):
        await box.run("1")
    async with box:
        assert (await box.run("1 + 1")).value == "2"


@linux
async def test_closing_ends_what_still_runs(eventually):
    others = descendants(os.getpid())
    box = Sandbox(preload=())
    running = asyncio.create_task(box.run("import time\nopen('begun', 'w')\ntime.sleep(60)"))
    session = await box.session().__aenter__()
    await session.run("import subprocess; subprocess.Popen(['sleep', '60'])")
    while not list(box.home.glob("*/begun")):
        await asyncio.sleep(0.02)
    home, below = box.home, descendants(os.getpid()) - others
    assert len(below) > 4
    await asyncio.to_thread(box.close)
    with pytest.raises(SandboxError, match="closed"):
        await running
    with pytest.raises(SandboxError):
        await session.run("1")
    await session.__aexit__()
    assert not home.exists()
    eventually(lambda: not below & descendants(os.getpid()))


def descendants(pid):
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(name))
    found, todo = set(), [pid]
    while todo:
        new = children.get(todo.pop(), [])
        found.update(new)
        todo += new
    return found


@linux
@pytest.mark.parametrize("after", [0.0, 0.01, 0.03, 0.1, 0.4])
async def test_a_cancelled_run_leaves_nothing(bare, eventually, descriptors, after):
    await bare.run("1")
    await asyncio.sleep(0.2)
    open_before, folders = descriptors(), len(os.listdir(bare.home))
    running = asyncio.create_task(bare.run("import time, subprocess\nsubprocess.run(['sleep', '31'])"))
    await asyncio.sleep(after)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    eventually(lambda: descriptors() <= open_before and len(os.listdir(bare.home)) <= folders)
    eventually(lambda: not programs("sleep\x0031"))
    assert (await bare.run("1 + 1")).value == "2"


def programs(line):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if line in Path(f"/proc/{name}/cmdline").read_text():
                    found.append(int(name))
            except OSError:
                continue
    return found


async def test_cancelled_twice_it_lets_go_at_once(bare):
    running = asyncio.create_task(bare.run("import time; time.sleep(30)"))
    await asyncio.sleep(0.1)
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await bare.run("1 + 1")).value == "2"


@linux
async def test_a_zygote_that_was_killed_is_replaced():
    async with Sandbox(preload=()) as box:
        running = asyncio.create_task(box.run("import time; time.sleep(30)"))
        await asyncio.sleep(0.3)
        os.kill(box._started.zygote.pid, signal.SIGKILL)
        if "namespace" in box.protection.processes:  # all runs go with it
            with pytest.raises(SandboxError, match="lost"):
                await running
        else:
            running.cancel()
        assert (await box.run("1 + 1")).value == "2"


async def test_runs_at_once_do_not_meet(bare):
    codes = [
        f"import time, os\nopen('f', 'x').write('{n}')\ntime.sleep(0.1)\nos.listdir('.'), open('f').read()"
        for n in range(12)
    ]
    done = await asyncio.gather(*map(bare.run, codes))
    assert [one.value for one in done] == [f"(['f'], '{n}')" for n in range(12)]


def test_several_threads_and_event_loops_share_it(bare):
    values = {}

    def use(n):
        async def some():
            return [(await bare.run(f"{n} * {k}")).value for k in range(4)]

        values[n] = asyncio.run(some())

    threads = [threading.Thread(target=use, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == {n: [str(n * k) for k in range(4)] for n in range(4)}


@linux
def test_a_fork_of_the_host_starts_its_own(bare):
    assert asyncio.run(bare.run("1 + 1")).value == "2"
    home = bare.home
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if asyncio.run(bare.run("1 + 1")).value == "2" and bare.home != home else 2
            bare.close()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert home.exists() and asyncio.run(bare.run("1 + 1")).value == "2"


HOST = """
import asyncio, sys
from loopkit.sandbox import Sandbox
async def main():
    box = Sandbox(preload=())
    async with box.session() as session:
        await session.run("import subprocess; subprocess.Popen(['sleep', '47'], start_new_session=True)")
        print(box.home, flush=True)
        await box.run("import time; time.sleep(60)")
asyncio.run(main())
"""


@linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_host_that_is_killed_takes_everything_with_it(eventually, number):
    host = subprocess.Popen(
        [sys.executable, "-c", HOST], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    home = Path(host.stdout.readline().strip())
    time.sleep(0.2)
    below = descendants(host.pid)
    assert programs("sleep\x0047") and below
    host.send_signal(number)
    host.wait()
    eventually(lambda: not programs("sleep\x0047") and not any(alive(pid) for pid in below))
    assert home.exists() == (number != signal.SIGINT)  # Python ends in order when it is interrupted
    if home.exists():  # the next host tidies up, once that of this one cannot be just about to start
        old = time.time() - 100
        os.utime(home / "in-use", (old, old))
        asyncio.run(_start_and_close())
        assert not home.exists()


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def _start_and_close():
    async with Sandbox(preload=()):
        pass


@linux
def test_interrupting_the_terminal_leaves_the_sandbox_to_the_host():
    code = (
        "import asyncio, os, signal\nfrom loopkit.sandbox import Sandbox\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "async def main():\n    async with Sandbox(preload=()) as box:\n"
        "        running = asyncio.create_task(box.run('import time; time.sleep(0.5); 7'))\n"
        "        await asyncio.sleep(0.2)\n        os.killpg(0, signal.SIGINT)\n        print((await running).value)\n"
        "asyncio.run(main())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, start_new_session=True)
    assert run.stdout == "7\n", run.stderr


@linux
async def test_descriptors_and_folders_do_not_add_up(bare, descriptors, eventually):
    await bare.run("1")
    zygote = bare._started.zygote.pid
    await asyncio.sleep(0.1)
    before = descriptors(), descriptors(zygote), len(os.listdir(bare.home))
    await asyncio.gather(*(bare.run(f"{n}") for n in range(30)))
    eventually(lambda: (descriptors(), descriptors(zygote), len(os.listdir(bare.home))) <= before)


async def test_a_full_process_table_is_told(monkeypatch):
    async with Sandbox(preload=()) as box:
        await box.run("1")
        monkeypatch.setattr(box._started.home, "new_run", lambda: Path("/proc/no/such/place"))
        with pytest.raises(SandboxError, match="cannot start a run: .*/proc/no/such/place"):
            await box.run("1")


async def test_a_home_that_was_tidied_away_is_made_anew():
    async with Sandbox(preload=()) as box:
        await box.run("1")
        loopkit.sandbox.folders.delete_tree(box.home)
        assert (await box.run("1 + 1")).value == "2"


@linux
async def test_a_folder_that_the_user_of_programs_cannot_write_to_is_told(tmp_path):
    if os.geteuid():
        pytest.skip("programs run as the host's user")
    tmp_path.chmod(0o700)
    async with Sandbox(folder=tmp_path, preload=()) as box:
        if box.protection.user != "nobody":
            pytest.skip("programs run as root here")
        with pytest.raises(SandboxError, match="chown -R 65534"):
            await box.run("1")


async def test_run_python_shares_a_sandbox():
    done = await run_python("import sympy; sympy.Integer(7)", timeout=5)
    assert (done.ended, done.value) == ("ok", "7")
    assert (await run_python("while True: pass", timeout=0.2)).ended == "timeout"


# --- how it shows itself ---------------------------------------------------------------------------------------


async def test_results_show_themselves(bare):
    done = await bare.run("print('<b>')\n1 / 0")
    assert repr(done).startswith("Execution(ended='error', message='ZeroDivisionError")
    assert "folder" not in repr(done) and "stderr" not in repr(done)
    html = done._repr_html_()
    assert "&lt;b&gt;" in html and "<b>" not in html.replace("<b style", "") and "division by zero" in html
    shown = str(bare.protection)
    assert [line.split()[0] for line in shown.splitlines()] == [
        "network",
        "files",
        "processes",
        "system",
        "memory",
        "user",
    ]
    assert bare.protection._repr_html_().count("<tr>") == 6


def test_every_name_of_the_package_is_there():
    for name in loopkit.sandbox.__all__:
        if name != "Workbench":
            assert getattr(loopkit.sandbox, name).__name__ == name
    assert ErrorInfo is loopkit.sandbox.ErrorInfo
    with pytest.raises(AttributeError, match="nonsense"):
        loopkit.sandbox.nonsense  # noqa: B018
