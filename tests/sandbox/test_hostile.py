"""Programs that try to break out: none does from the sandbox, and the check sees it when one does from something weaker."""

import ast
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from loopkit.sandbox import ErrorInfo, Execution, MadeFile, Sandbox, SandboxError
from loopkit.sandbox.hostile import LIMITS, PROGRAMS, Report, Row, canaries, check, checking
from loopkit.sandbox.hostile.canaries import VARIABLE, Canaries, descendants, left
from loopkit.sandbox.hostile.checking import Checker
from loopkit.sandbox.hostile.program import Program, prepared

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the programs speak to Linux, the check reads /proc"
)

GROUPS = list(dict.fromkeys(program.group for program in PROGRAMS))


def bad(report: Report) -> list[str]:
    rows = [row for row in report.rows if row.outcome not in ("contained", "not enforced here")]
    return [f"{row.name}: {row.outcome}, ended as {row.ended or 'nothing'}: {row.detail}" for row in rows]


# --- the sandbox ---------------------------------------------------------------------------------------------------


# A sample of each group: most programs wait for something. `loopkit sandbox check` runs them all, and .ci/run calls it.
@pytest.mark.parametrize("group", GROUPS)
async def test_programs_are_contained(group):
    report = await check(names=[program.name for program in PROGRAMS if program.group == group][::4])
    assert bad(report) == []
    assert report.ok


async def test_programs_are_contained_where_there_are_no_namespaces():
    def factory(**settings):
        return Sandbox(**{"preload": (), "walls": ("landlock", "seccomp")} | settings)

    groups = ("network", "files", "secrets", "processes")
    names = [program.name for program in PROGRAMS if program.group in groups][2::8]
    assert bad(await check(factory, names)) == []


async def test_the_check_leaves_nothing_and_tells_of_each_row():
    before = set(os.listdir(tempfile.gettempdir())), set(os.listdir(Path.home())), descendants(os.getpid())
    told = []
    report = await check(
        lambda **settings: Sandbox(preload=(), **settings), ["exit code", "secrets by path"], told.append
    )
    after = set(os.listdir(tempfile.gettempdir())), set(os.listdir(Path.home())), descendants(os.getpid())
    assert [row.name for row in report.rows] == ["exit code", "secrets by path", "closing the sandbox"]
    assert list(report.rows) == told
    assert not [name for name in after[0] - before[0] if "check" in name or "shared" in name]
    assert not [name for name in after[1] - before[1] if "check" in name]
    assert after[2] <= before[2]
    assert VARIABLE not in os.environ


# --- the programs --------------------------------------------------------------------------------------------------


def test_the_programs_have_names_of_their_own_and_known_needs():
    names = [program.name for program in PROGRAMS]
    assert len(names) == len(set(names)) >= 75
    needs = {need for program in PROGRAMS for need in program.needs}
    assert needs == {"network", "files", "processes", "system calls", "memory", "user"}


@pytest.mark.parametrize("program", [p for p in PROGRAMS if not p.bare], ids=lambda program: program.name)
def test_every_program_is_a_program(program):
    for code in (program.code, program.then):
        ast.parse(prepared(code, {"token": "t"}))
    assert program.threatens and program.seconds <= LIMITS.seconds + 1


# --- something weaker: the canaries must ring ------------------------------------------------------------------------

PRETENDED = SimpleNamespace(
    network="pretended", files="pretended", processes="pretended", system_calls="pretended", memory="pretended",
    user="pretended",
)  # fmt: skip


@pytest.fixture
def impatient(monkeypatch):
    """What is left by nobody's walls stays: there is nothing to wait for."""
    monkeypatch.setattr(canaries, "_PATIENCE", 0.2)


class Weak:
    """The interface of a sandbox and none of its walls."""

    protection = PRETENDED

    def __init__(self, **_: object) -> None:
        self.home = Path(tempfile.mkdtemp())

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_: object) -> None:
        shutil.rmtree(self.home)

    def made(self, **fields) -> Execution:
        return Execution(**{"ended": "ok", "folder": self.home} | fields)


class Naked(Weak):
    """A plain child process. Only for programs that harm nothing but canaries."""

    async def run(self, code, *, limits=None):
        if code == "1 + 1":
            return self.made(value="2")
        out, err = self.home / "out", self.home / "err"
        with out.open("w") as stdout, err.open("w") as stderr:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", code), cwd=self.home, stdout=stdout, stderr=stderr
            )
            await asyncio.wait_for(child.wait(), 20)
        texts = {"stdout": out.read_text(), "stderr": err.read_text()}
        return self.made(ended="ok" if child.returncode == 0 else "error", **texts)


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("TCP", "the host was reached by TCP"),
        ("TCP", "connected to 127.0.0.1"),
        ("TCP that connects as it sends", "the host was reached by TCP"),
        ("UDP", "the host was reached by UDP"),
        ("HTTP by other programs", "the host was reached by TCP"),
        ("UNIX socket by path", "the host was reached by a socket in a folder"),
        ("UNIX socket by abstract name", "the host was reached by an abstract socket"),
        ("datagram from half a socket pair", "the host was reached by a socket in a folder (datagram)"),
        ("the host's ports", "sees that a port of the host is taken"),
        ("secrets by path", "the secret is in stdout"),
        ("secrets by ../", "the secret is in stdout"),
        ("secrets by a link", "the secret is in stdout"),
        ("secrets by a hard link", "has a second name for"),
        ("the user's folder", "lists "),
        ("a foreign /tmp", "sees "),
        ("a canary's end", "/open/file is gone"),
        ("environment", "has ['LOOPKIT_CANARY_KEY'] in its environment"),
        ("environment", "found loopkit-canary-"),
        ("own memory", "in memory of self"),
        ("kill a process of the host", "the bait changed"),
        ("kill every process", "could signal processes of the host, and holds back"),
        ("orphan", "left processes"),
        ("daemon", "left processes"),
        ("background program", "left processes"),
        ("child of its parent's", "left processes"),
        ("zombies", "left 319 zombies"),
        ("every descriptor", "has 640 open files"),
        ("exit code", ""),
    ],
)
async def test_the_canaries_ring_without_a_sandbox(name, sign, impatient):
    report = await check(Naked, [name])
    row = report.rows[0]
    assert sign in row.detail
    assert row.outcome == ("ESCAPED" if sign else "contained")
    assert report.ok == (not sign)
    assert not left(f"lk{'0' * 8}")


class OneInterpreter(Weak):
    """All programs in one process, which answers as `Naked` does: what one changes, the next one meets."""

    _LOOP = """
import contextlib, io, json, sys
reading, writing, loads, run, printed = sys.stdin, sys.stdout, json.loads, exec, io.StringIO
for line in reading:
    with contextlib.redirect_stdout(printed()) as out:
        ended = "ok"
        try:
            run(loads(line), {"__name__": "__main__"})
        except BaseException:
            ended = "error"
    writing.write(ended + " " + out.getvalue().encode().hex() + "\\n")
    writing.flush()
"""

    async def __aenter__(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.child = await asyncio.create_subprocess_exec(sys.executable, "-c", self._LOOP, **pipes)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.child.stdin.close()
        await self.child.wait()
        shutil.rmtree(self.home)

    async def run(self, code, *, limits=None):
        self.child.stdin.write(json.dumps(code).encode() + b"\n")
        answer = await asyncio.wait_for(self.child.stdout.readline(), 20)
        ended, stdout = answer.decode().removesuffix("\n").split(" ")
        value = "2" if code == "1 + 1" else None
        return self.made(ended=ended, stdout=bytes.fromhex(stdout).decode(), value=value)


async def test_a_changed_interpreter_is_seen_by_the_next_program(impatient):
    poisoned = await check(OneInterpreter, ["poisoned builtins"])
    assert "what followed ended as" in poisoned.rows[0].detail  # its `print` is silent, and that is a sign
    poison = replace(HARMLESS, code="import builtins; builtins.poison = 1", then=PROBE)
    assert "the builtins were poisoned" in (await row_of(poison, OneInterpreter)).detail
    assert "poisoned" not in (await row_of(replace(poison, code="pass"), OneInterpreter)).detail


PROBE = "import builtins\nif hasattr(builtins, 'poison'): escaped('the builtins were poisoned')"
HARMLESS = Program(name="harmless", group="t", threatens="nothing", code="pass")


async def row_of(program: Program, factory: Callable[..., Weak]) -> Row:
    with Canaries() as canaries:
        checker = Checker(factory, LIMITS, canaries)
        try:
            return await checker.check(program)
        finally:
            await checker.close()


# --- results as they may come back -----------------------------------------------------------------------------------


def scripted(make, *, next_run=None):
    """A sandbox whose programs end as `make(box)` says, or raise what it raises."""

    class Scripted(Weak):
        async def run(self, code, *, limits=None):
            if code == "1 + 1":
                return self.made(**next_run or {"value": "2"})
            result = make(self)
            return await result if asyncio.iscoroutine(result) else result

    return Scripted


def with_file(box, name="file", text="x", link=None):
    path = box.home / name
    path.symlink_to(link) if link else path.write_text(text)
    return box.made(files=(MadeFile(name=name, size=1),))


def raising(error):
    raise error


async def slowly(box):
    await asyncio.sleep(0.3)
    return box.made()


LONG = ErrorInfo(type="ValueError", message="m", line=1, traceback="x" * 9999)


@pytest.mark.parametrize(
    ("make", "outcome", "sign"),
    [
        (lambda box: box.made(), "contained", ""),
        (lambda box: box.made(stdout="this is no line of\nnot ESCAPED: x\n"), "contained", ""),
        (lambda box: with_file(box), "contained", ""),
        (lambda box: box.made(stdout="a\nESCAPED: from stdout\n"), "ESCAPED", "from stdout"),
        (lambda box: box.made(stderr="ESCAPED: from stderr"), "ESCAPED", "from stderr"),
        (lambda box: box.made(value=os.environ[VARIABLE]), "ESCAPED", "the secret is in value"),
        (lambda box: box.made(message=f"<{os.environ[VARIABLE]}>"), "ESCAPED", "the secret is in message"),
        (lambda box: with_file(box, text=os.environ[VARIABLE]), "ESCAPED", "the secret is in file"),
        (lambda box: with_file(box, link="/etc/hosts"), "ESCAPED", "is listed as a file of the run"),
        (lambda box: with_file(box, name="a\nb"), "ESCAPED", "the name of a file shows 'a\\nb'"),
        (lambda box: box.made(value="x" * 9999), "ESCAPED", "value has 9,999 characters, the limit is 2,000"),
        (lambda box: box.made(ended="error", error=LONG), "ESCAPED", "error.traceback has 9,999 characters"),
        (lambda box: box.made(message="\x1b[2J"), "ESCAPED", r"message shows '\x1b'"),
        (lambda box: box.made(stdout="\0"), "ESCAPED", r"stdout shows '\x00'"),
        (lambda box: box.made(stderr="\ud800"), "ESCAPED", r"stderr shows '\ud800'"),
        (lambda box: raising(SandboxError("lost")), "error", "no result, but SandboxError: lost"),
        (slowly, "error", "it came back 0.3 s after its limit"),
        (
            lambda box: box.made(ended="error", error=replace(LONG, type="NameError", traceback="")),
            "error",
            "it was not to end as error",
        ),
    ],
)
async def test_signs_of_an_escape(make, outcome, sign, monkeypatch):
    monkeypatch.setattr(checking, "_GRACE", 0.25)
    row = await row_of(replace(HARMLESS, seconds=0.01), scripted(make))
    assert (row.outcome, sign in row.detail, not row.detail) == (outcome, True, not sign)


async def test_the_whole_output_is_searched_not_what_is_shown():
    def make(box):
        path = box.home / "stdout.txt"
        path.write_text(f"x\nESCAPED: in the middle\n{os.environ[VARIABLE]}\n")
        return box.made(stdout="x\n[…]\n", stdout_file=path)

    row = await row_of(HARMLESS, scripted(make))
    assert row.outcome == "ESCAPED"
    assert "in the middle" in row.detail and "the secret is in" in row.detail


async def test_an_end_that_was_not_expected_is_an_error():
    row = await row_of(replace(HARMLESS, ends=("timeout",)), scripted(lambda box: box.made()))
    assert (row.outcome, row.ended) == ("error", "ok")


@pytest.mark.parametrize("next_run", [{"value": "3"}, {"value": "2", "stdout": "x"}, {"ended": "error"}])
async def test_an_unhealthy_next_run_is_an_error(next_run):
    row = await row_of(HARMLESS, scripted(lambda box: box.made(), next_run=next_run))
    assert (row.outcome, "the next run went wrong" in row.detail) == ("error", True)


async def test_a_disturbed_neighbour_is_an_escape():
    row = await row_of(replace(HARMLESS, neighbour=True), scripted(lambda box: box.made(ended="killed")))
    assert (row.outcome, "disturbed another run: killed" in row.detail) == ("ESCAPED", True)


async def test_a_planted_file_is_an_escape_and_is_removed():
    code = 'import tempfile; open(f"{tempfile.gettempdir()}/loopkit-check-{HOST.mark}", "x")'
    row = await row_of(replace(HARMLESS, code=code), Naked)
    assert (row.outcome, row.detail.endswith(" was made")) == ("ESCAPED", True)
    assert not Path(row.detail.removesuffix(" was made")).exists()


@pytest.mark.parametrize(
    ("needs", "missing"), [(("network",), "network"), (("files", "system calls"), "system calls")]
)
async def test_a_program_whose_wall_is_missing_is_not_run(needs, missing):
    class Partial(Naked):
        protection = SimpleNamespace(**vars(PRETENDED) | {missing.replace(" ", "_"): "none"})

        async def run(self, code, *, limits=None):
            raise AssertionError("it was run")

    row = await row_of(replace(HARMLESS, needs=needs), Partial)
    assert (row.outcome, row.detail) == ("not enforced here", f"no protection of {missing}")


async def test_what_is_left_after_closing_is_an_escape(impatient):
    class Forgetful(Naked):
        async def __aexit__(self, *_: object) -> None:
            self.child = subprocess.Popen(["sleep", "30"])

    boxes = []
    report = await check(lambda **settings: boxes.append(Forgetful()) or boxes[-1], ["exit code"])
    row = report.rows[-1]
    boxes[0].child.kill()
    boxes[0].child.wait()
    shutil.rmtree(boxes[0].home)
    assert (row.name, row.outcome) == ("closing the sandbox", "ESCAPED")
    assert f"{boxes[0].home} is still there" in row.detail
    assert f"left processes {boxes[0].child.pid}" in row.detail


# --- the canaries and the report -------------------------------------------------------------------------------------


def test_changed_canaries_are_named_and_put_right_again():
    with Canaries() as canaries:
        before, host = canaries.state(), canaries.host("m")
        assert canaries.changed(before) == []
        secret, open_file = Path(host["secrets"][0]), Path(host["open_file"])
        secret.chmod(0o600)
        open_file.write_text("spoilt")
        Path(host["open_folder"], "new").touch()
        changed = canaries.changed(before)
        assert sorted(changed) == sorted(
            [f"{secret} changed", f"{open_file} changed", f"{host['open_folder']}/new appeared"]
        )
        assert canaries.changed(canaries.state()) == []
        assert (secret.stat().st_mode & 0o777, open_file.read_text()) == (0o644, "untouched")
    assert not secret.exists() and not open_file.exists()


def test_processes_are_found_by_their_mark():
    begun = time.monotonic()
    child = subprocess.Popen(["sleep", "30"], env={"LOOPKIT_MARK": "lk-a-mark"})
    while not left("lk-a-mark") and time.monotonic() < begun + 5:
        time.sleep(0.01)
    assert left("lk-a-mark") == {child.pid} <= descendants(os.getpid())
    child.kill()
    child.wait()
    assert not left("lk-a-mark")


async def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="no hostile program is named 'fork bom'.*'fork bomb'"):
        await check(Naked, ["fork bom"])


def test_the_report_counts_and_says_what_is_missing():
    def row(outcome, detail=""):
        return Row(name="n", group="g", threatens="t", outcome=outcome, detail=detail)

    good = Report((row("contained"), row("contained"), row("not enforced here", "no protection of files")))
    assert good.ok
    assert good.summary == "3 checks: 2 contained, 1 not enforced here (no protection of files)"
    assert str(good).splitlines()[-1] == good.summary
    for outcome in ("ESCAPED", "error"):
        report = Report((row("contained"), row(outcome, "the detail")))
        assert not report.ok
        assert report.summary == f"2 checks: 1 contained, 1 {outcome}"
        assert "the detail" in report.table()
    assert not Report(()).ok
