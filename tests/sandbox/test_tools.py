"""The tools through a real sandbox, called directly and by agents."""

import ast
import asyncio
import functools
import json
import os
import re
import tempfile
import typing
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("fcntl", reason="the sandbox is POSIX's")

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

from loopkit.sandbox import Limits, Sandbox, Workbench, shell
from loopkit.sandbox.answers import KEPT, REMEDIES, SHOWN, more_of, result
from loopkit.sandbox.folders import delete_tree
from loopkit.sandbox.inside import files, paths
from loopkit.sandbox.results import Ended

NAMES = ["python", "read", "write", "edit", "glob", "grep", "shell"]


@dataclass(frozen=True)
class Said:
    verdict: str
    reasons: tuple[str, ...] = ()


def judge(command):
    """A stand-in that goes by a word in the command."""
    for verdict in ("refuse", "ask"):
        if verdict in command:
            return Said(verdict, (f"it says {verdict}", "twice"))
    return Said("allow")


@pytest.fixture
def folder():
    path = Path(
        tempfile.mkdtemp(prefix="bench-")
    ).resolve()  # not pytest's own: other users cannot enter those
    path.chmod(0o777)
    yield path
    delete_tree(path)


@pytest.fixture
async def box(folder):
    async with Sandbox(folder=folder, preload=(), limits=Limits(seconds=5)) as box:
        yield box


@pytest.fixture
async def bench(box):
    async with Workbench(sandbox=box, judge=judge) as bench:
        yield bench


def failed(done, kind):
    assert not done.ok and (done.error.kind, done.error.remedy) == (kind, REMEDIES[kind]), done
    assert done.text.startswith(f"error ({kind}): {done.error.message}\n{REMEDIES[kind]}")
    return done


def test_a_workbench_needs_a_folder():
    with pytest.raises(ValueError, match=r"Sandbox\(folder=…\)"):
        Workbench(sandbox=Sandbox(), judge=judge)


def test_every_kind_of_problem_has_a_remedy():
    kinds = {*paths._KINDS.values(), "system", *typing.get_args(Ended)} - {"ok", "error"}
    for path in Path(files.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ToolProblem":
                if isinstance(node.args[0], ast.Constant):
                    kinds.add(node.args[0].value)
    assert len(kinds) > 20 and kinds <= set(REMEDIES)


def test_a_long_text_is_cut_in_its_middle():
    done = result(None, ["a" * SHOWN, "b" * SHOWN], ["a note"])
    assert len(done.text) < SHOWN + 100
    assert done.text.startswith("aaa") and done.text.endswith("bbb\n[a note]")
    assert "characters left out" in done.text


# --- python ---------------------------------------------------------------------------------------------------


async def test_variables_stay_and_the_last_value_is_shown(bench):
    assert (await bench.python("import math\nx = 41")).ok
    done = await bench.python("print('hello'); open('made.txt', 'w').write('12345')\nx + 1")
    assert done.text == "hello\nvalue: 42\n[files made or changed: made.txt (5 bytes)]"
    assert done.data == {"value": "42", "files": ["made.txt"], "session": True, "restarted": False}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("open('ran', 'w')\nif x", "syntax"),
        ("open('ran', 'w')\nreturn 1", "syntax"),
        ("open('ran', 'w')\0", "syntax"),
        ("open('ran', 'w') # \ud800", "argument"),
        ("open('ran', 'w')\nx = " + "(" * 5000, "syntax"),
    ],
)
async def test_nothing_empty_or_unparsed_is_run(bench, folder, code, kind):
    await bench.python("x = 1")
    failed(await bench.python(code), kind)
    assert os.listdir(folder) == []
    assert (await bench.python("x")).data["value"] == "1"


async def test_an_exception_is_told_with_its_line_and_what_was_printed(bench):
    done = failed(await bench.python("x = 7\nprint('before')\n1 / 0"), "exception")
    assert "ZeroDivisionError: division by zero (line 3)" in done.error.message
    assert "before" in done.text and "line 3: 1 / 0" in done.text
    assert (await bench.python("x")).data["value"] == "7"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("import os; os._exit(3)", "exit code"),
        ("import os; os.kill(os.getpid(), 9)", "killed"),
        ("exit(2)", "exit code"),
    ],
)
async def test_a_session_that_ends_is_started_again_and_says_so(bench, code, kind):
    await bench.python("x = 1")
    done = failed(await bench.python(code), kind)
    assert "its variables are gone" in done.text and not done.data["session"]
    done = failed(await bench.python("x"), "exception")
    assert "NameError" in done.text and "this is a new session" in done.text and done.data["restarted"]
    assert "new session" not in (await bench.python("1")).text


async def test_a_cell_without_end_is_ended_and_the_variables_stay(folder):
    async with (
        Sandbox(folder=folder, preload=(), limits=Limits(seconds=0.5)) as box,
        Workbench(sandbox=box, judge=judge) as bench,
    ):
        await bench.python("x = 1")
        failed(await bench.python("while True: pass"), "timeout")
        assert (await bench.python("x")).data == {
            "value": "1",
            "files": [],
            "session": True,
            "restarted": False,
        }


async def test_cells_at_once_run_one_after_the_other(bench):
    await bench.python("seen = []")
    await asyncio.gather(*(bench.python(f"seen += [{n}, {n}]") for n in range(4)))
    assert (await bench.python("seen[::2] == seen[1::2] and len(seen)")).data["value"] == "8"


async def test_a_cancelled_cell_ends_the_session(bench):
    await bench.python("x = 1")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await bench.python("import time; time.sleep(60)")
    assert "this is a new session" in failed(await bench.python("x"), "exception").text


# --- files ----------------------------------------------------------------------------------------------------


async def test_a_file_is_written_read_edited_and_found(bench, folder):
    done = await bench.write("src/f.py", "def f(x):\n    return x +\n")
    assert done.text == (
        "made src/f.py (2 lines, 25 bytes)\nthe syntax check says:\n"
        "  line 2, column 15: invalid syntax\n    return x +"
    )
    assert (await bench.read("src/f.py", 2)).text == "     2\t    return x +\n[lines 2 to 2 of 2]"
    done = await bench.edit("src/f.py", "x +", "x + 1")
    assert done.text == (
        "changed src/f.py in 1 place\n@@ -1,2 +1,2 @@\n def f(x):\n-    return x +\n+    return x + 1"
    )
    assert (await bench.python("from src.f import f; f(1)")).data["value"] == "2"
    assert (await bench.glob("**/*.py")).text == "src/f.py"
    assert (await bench.grep(r"RETURN \w", ignore_case=True)).text == "src/f.py:2:     return x + 1"
    assert (
        await bench.grep("def", context=1, path="src")
    ).text == "src/f.py:1: def f(x):\nsrc/f.py-2-     return x + 1"
    assert (await bench.grep("x", mode="count")).text == "src/f.py: 2"
    assert (await bench.grep("zzz")).text == "[nothing found in 1 file]"
    assert (await bench.glob("*.js")).text == "[nothing matches *.js]"
    assert folder.joinpath("src/f.py").read_text() == "def f(x):\n    return x + 1\n"


async def test_a_search_shows_where_lines_are_missing_and_how_many_there_are(bench, folder):
    folder.joinpath("f").write_text("a\nb\nc\nd\ne\na\nf\n")
    assert (await bench.grep("a", context=1)).text == "f:1: a\nf-2- b\n--\nf-5- e\nf:6: a\nf-7- f"
    assert (
        await bench.grep("a", limit=1)
    ).text == "f:1: a\n[1 shown of 2 lines in 1 files: narrow the search]"
    folder.joinpath("g").write_bytes(b"\0")
    assert (await bench.glob("*", limit=1)).text == "g\n[1 of 2: narrow the pattern to see the others]"
    assert (await bench.grep("d")).text == "f:4: d\n[1 files and folders, binary or unreadable, passed over]"


async def test_a_file_that_was_not_read_is_not_overwritten(bench, folder):
    folder.joinpath("f").write_text("precious")
    folder.joinpath("f").chmod(0o666)
    failed(await bench.write("f", "new"), "not read")
    await bench.edit("f", "precious", "still precious")  # which does not show the rest of the file
    failed(await bench.write("./f", "new"), "not read")
    await bench.read("f")
    folder.joinpath("f").write_text("changed since")
    failed(await bench.write("f", "new"), "not read")
    await bench.read("f")
    await bench.edit("f", "since", "again")
    for content in ("new", "newer"):
        assert (await bench.write("f", content)).ok
    assert folder.joinpath("f").read_text() == "newer"


async def test_a_long_file_says_how_to_read_on(bench, folder):
    folder.joinpath("f").write_text("x\n" * 1000)
    assert (await bench.read("f")).text.endswith(
        "   400\tx\n[lines 1 to 400 of 1000; read on with start=401]"
    )
    folder.joinpath("empty").write_text("")
    assert (await bench.read("empty")).text == "[the file is empty]"


async def test_problems_are_typed_errors(bench, folder):
    folder.joinpath("f").write_text("x x")
    folder.joinpath("b").write_bytes(b"\0")
    folder.joinpath("f").chmod(0o444)
    os.mkfifo(folder / "pipe")
    folder.joinpath("pipe").chmod(0o666)
    failed(await bench.read("g"), "missing")
    failed(await bench.read("b"), "binary")
    failed(await bench.read("pipe"), "not a file")
    failed(await bench.read("f", 9), "range")
    failed(await bench.edit("f", "y", "z"), "not found")
    failed(await bench.edit("f", "x", "z"), "not unique")
    failed(await bench.edit("f", "x x", "z"), "denied")
    failed(await bench.grep("("), "pattern")
    failed(await bench.glob("../*"), "outside")
    failed(await bench.glob("*", limit=0), "argument")
    assert (await bench.read("f")).ok


async def test_no_tool_reads_what_lies_outside(bench, box, folder):
    if box.protection.files == "none":
        pytest.skip("nothing keeps files from programs on this machine")
    with tempfile.TemporaryDirectory(prefix="outside-") as outside:
        os.chmod(outside, 0o755)
        secret = Path(outside, "secret")
        secret.write_text("root:hunter2")
        folder.joinpath("link").symlink_to(secret)
        await bench.python(f"import os; os.symlink('/etc/passwd', 'users'); os.symlink({outside!r}, 'away')")
        for path in ("link", "users", "away/secret", str(secret), f"../{secret.parent.name}/secret"):
            failed(await bench.read(path), "outside")
            failed(await bench.grep("root", path), "outside")
            failed(await bench.edit(path, "root", "me"), "outside")
            failed(await bench.write(path, "mine"), "outside")
        seen = [
            await bench.grep("root|hunter"),
            await bench.glob("**/*"),
            await bench.python(f"open({str(secret)!r}).read()"),
            await bench.python("open('link').read()"),
            await bench.python("open('users').read()"),
            await bench.shell(f"cat link users away/secret {secret}; ls -R {outside}"),
        ]
        assert not re.search("hunter2|root:", "".join(done.model_dump_json() for done in seen))
        assert secret.read_text() == "root:hunter2"


async def test_a_link_that_changes_while_it_is_read_leads_nowhere(bench, box, folder):
    if box.protection.files == "none":
        pytest.skip("nothing keeps files from programs on this machine")
    with tempfile.TemporaryDirectory(prefix="outside-") as outside:
        os.chmod(outside, 0o755)
        secret = Path(outside, "secret")
        secret.write_text("hunter2")
        folder.joinpath("safe").write_text("nothing")
        await bench.python(
            "import os, threading\n"
            "def swap():\n"
            "    while True:\n"
            f"        for target in ('safe', {str(secret)!r}):\n"
            "            os.symlink(target, 'new'); os.replace('new', 'link')\n"
            "threading.Thread(target=swap, daemon=True).start()"
        )
        answers = [await bench.read("link") for _ in range(30)] + [await bench.grep(".") for _ in range(10)]
        assert "hunter2" not in "".join(done.model_dump_json() for done in answers)
        assert any(done.ok for done in answers)


async def test_a_regular_expression_without_end_is_a_timeout(folder):
    folder.joinpath("f").write_text("a" * 40 + "b")
    async with Sandbox(folder=folder, preload=(), limits=Limits(seconds=0.5)) as box:
        bench = Workbench(sandbox=box, judge=judge)
        assert "limit: seconds=0.5" in failed(await bench.grep("(a+)+$"), "timeout").text
        assert (await bench.grep("a+b")).ok


async def test_inputs_are_read_and_searched_but_not_changed(folder):
    with tempfile.TemporaryDirectory(prefix="inputs-") as place:
        os.chmod(place, 0o755)
        data = Path(place, "data")
        data.joinpath("deep").mkdir(parents=True)
        data.joinpath("deep/a.csv").write_text("one\n")
        Path(place, "b.csv").write_text("two\n")
        inputs = {"data": data, "b.csv": Path(place, "b.csv")}
        async with Sandbox(folder=folder, preload=(), inputs=inputs) as box:
            bench = Workbench(sandbox=box, judge=judge)
            assert (await bench.read("inputs/data/deep/a.csv")).text == "     1\tone"
            assert sorted((await bench.glob("**/*.csv")).data["paths"]) == [
                "inputs/b.csv",
                "inputs/data/deep/a.csv",
            ]
            assert (await bench.grep("one|two", mode="files")).text == "inputs/b.csv\ninputs/data/deep/a.csv"
            for path in ("inputs/data/deep/a.csv", "inputs/b.csv"):
                failed(await bench.edit(path, "o", "x"), "denied")
                await bench.read(path)
                failed(await bench.write(path, "mine"), "denied")
            failed(await bench.write("inputs/data/new", "mine"), "denied")
        assert data.joinpath("deep/a.csv").read_text() == "one\n" and os.listdir(data) == ["deep"]


async def test_a_file_over_the_limit_is_not_written(folder):
    limits = Limits(seconds=5, file_size=1 << 20)
    async with Sandbox(folder=folder, preload=(), limits=limits) as box:
        bench = Workbench(sandbox=box, judge=judge)
        await bench.write("f", "small")
        failed(await bench.write("f", "x" * (2 << 20)), "disk")
        assert (await bench.read("f")).text == "     1\tsmall"
        assert os.listdir(folder) == ["f"]


# --- shell ----------------------------------------------------------------------------------------------------


async def test_a_command_with_its_output_and_exit_code(bench):
    assert (await bench.shell("echo hi")).text == "hi"
    assert (await bench.shell("true")).text == "[done; there is nothing to show]"
    done = failed(await bench.shell("echo out; echo err >&2; exit 3"), "exit code")
    assert done.text.endswith("\nout\nstderr:\nerr") and done.data["exit_code"] == 3
    failed(await bench.shell("  "), "empty")
    failed(await bench.shell("kill -9 $PPID"), "killed")


async def test_the_shell_goes_on_where_it_left_off(bench, folder):
    done = await bench.shell("mkdir -p a/b && cd a/b && export NAME='x y'")
    assert done.text == "[now in a/b]"
    assert (await bench.shell('pwd; echo "$NAME"')).text == f"{folder}/a/b\nx y\n[now in a/b]"
    failed(await bench.shell("kill -9 $PPID"), "killed")
    assert (await bench.shell("echo $NAME")).text == "x y\n[now in a/b]"
    await bench.python("import os; os.rename('a', 'c')")
    failed(await bench.shell("pwd"), "missing")
    assert (await bench.shell("pwd")).text == str(folder)
    assert "not in /" in (await bench.shell("cd /")).text
    assert (await bench.shell("pwd")).text == str(folder)


async def test_time_that_a_command_may_take(bench):
    assert "0.3" in failed(await bench.shell("sleep 30", timeout=0.3), "timeout").error.message
    for timeout in (0, -1, 5.5, float("nan")):
        failed(await bench.shell("true", timeout=timeout), "argument")
    assert (await bench.shell("true", timeout=5)).ok


async def test_output_that_is_cut_can_be_read_whole(bench, folder):
    folder.joinpath("outputs").mkdir(mode=0o777)
    folder.joinpath("outputs").chmod(0o777)
    folder.joinpath("outputs/1-stdout.txt").write_text("from another time")
    done = await bench.shell("seq 100000; seq 3 >&2")
    assert len(done.text) < 10_000 and done.text.startswith("1\n2\n") and "left out" in done.text
    assert done.text.endswith("stderr:\n1\n2\n3\n[more of stdout is in outputs/2-stdout.txt]")
    assert (await bench.read("outputs/2-stdout.txt", 77_777, 77_777)).text.startswith(" 77777\t77777\n")
    done = await bench.python("print('x' * 100, end='\\n' * 10_000)")
    assert done.text.endswith("outputs/3-stdout.txt]") and folder.joinpath("outputs/3-stdout.txt").exists()
    assert folder.joinpath("outputs/1-stdout.txt").read_text() == "from another time"


def test_of_an_output_without_end_head_and_tail_are_kept(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"a\0" + b"b" * KEPT + b"\xff")
    text = more_of(path)
    assert text.startswith("a\ufffdb") and text.endswith("b\ufffd") and "[… 3 bytes left out …]" in text
    assert KEPT <= len(text) < KEPT + 50
    path.write_bytes(b"b" * KEPT)
    assert more_of(path) == "b" * KEPT


@pytest.mark.parametrize(
    ("command", "answer", "kind"),
    [
        ("touch ran # allow", None, None),
        ("touch ran # refuse", True, "refused"),
        ("touch ran # ask", None, "needs approval"),
        ("touch ran # ask", False, "not approved"),
        ("touch ran # ask", "no", "not approved"),
        ("touch ran # ask", True, None),
    ],
)
async def test_a_command_is_judged_before_it_runs(box, folder, command, answer, kind):
    asked = []

    async def approve(command, decision):
        asked.append((command, decision))
        return answer

    bench = Workbench(sandbox=box, judge=judge, approve=None if answer is None else approve)
    done = await bench.shell(command)
    assert folder.joinpath("ran").exists() == (kind is None)
    if kind:
        verdict = "refuse" if kind == "refused" else "ask"
        assert failed(done, kind).error.message == f"it says {verdict}; twice"
    assert asked == ([(command, judge(command))] if answer is not None and "ask" in command else [])


async def test_the_judge_is_told_where_the_command_will_run(box):
    judged = []
    bench = Workbench(sandbox=box, judge=lambda command: judged.append(command) or Said("allow"))
    await bench.shell("mkdir 'a b'; cd 'a b'")
    await bench.shell("rm -r x")
    assert judged == ["mkdir 'a b'; cd 'a b'", "cd 'a b' || exit\nrm -r x"]
    await asyncio.gather(bench.shell("cd .."), bench.shell("rm -r y"))
    assert judged[2:] == ["cd 'a b' || exit\ncd ..", "rm -r y"]


async def test_with_the_judge_of_commands(box, folder):
    bench = Workbench(sandbox=box, judge=functools.partial(shell.judge, folder=folder))
    assert (await bench.shell("mkdir -p a/b; cd a; touch x b/y; ls | sort")).ok
    assert "outside the folder" in failed(await bench.shell("rm -rf /"), "refused").error.message
    failed(await bench.shell("cat ../../.ssh/id_rsa"), "refused")
    assert (await bench.shell(f"cat {folder}/a/x")).ok
    assert (await bench.shell("rm -r ../a/b")).ok  # which is inside, seen from where it runs
    assert sorted(os.listdir(folder / "a")) == ["x"]


async def test_a_judge_that_says_something_else_is_an_error(box):
    bench = Workbench(sandbox=box, judge=lambda command: Said("perhaps"))
    with pytest.raises(ValueError, match="perhaps"):
        await bench.shell("true")


# --- agents ---------------------------------------------------------------------------------------------------


def scripted(*calls):
    """A model that makes these calls, all in one response or one after the other, then is done."""

    def respond(messages, info):
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if turn == len(calls):
            return ModelResponse(parts=[TextPart("done")])
        batch = calls[turn] if isinstance(calls[turn], list) else [calls[turn]]
        return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in batch])

    return FunctionModel(respond)


def returned(run):
    return [
        part for message in run.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)
    ]


async def test_schemas_describe_every_argument_and_allow_no_other(bench):
    tools = {tool.name: tool for tool in bench.tools()}
    assert list(tools) == NAMES
    for tool in tools.values():
        schema = tool.function_schema.json_schema
        assert schema["additionalProperties"] is False and len(tool.description) > 80
        assert "Args:" not in tool.description
        for name, parameter in schema["properties"].items():
            assert len(parameter["description"]) > 15, (tool.name, name)
    assert [name for name, tool in tools.items() if not tool.sequential] == ["read", "glob", "grep"]
    assert tools["edit"].function_schema.json_schema["required"] == ["path", "old", "new"]


async def test_an_agent_calls_every_tool(bench, folder):
    model = scripted(
        ("write", {"path": "f.py", "content": "def f(:\n    return 1\n"}),
        ("edit", {"path": "f.py", "old": "f(:", "new": "f():"}),
        [
            ("read", {"path": "f.py"}),
            ("glob", {"pattern": "*"}),
            ("grep", {"pattern": "return", "mode": "files"}),
        ],
        ("python", {"code": "from f import f\nf()"}),
        ("shell", {"command": "wc -l < f.py"}),
    )
    run = await Agent(model, tools=bench.tools()).run("go")
    parts = returned(run)
    assert run.output == "done" and {part.outcome for part in parts} == {"success"}
    told = [(part.tool_name, part.content) for part in parts]
    assert told[0][0] == "write" and "line 1, column 7: invalid syntax" in told[0][1]
    assert told[1][0] == "edit" and "+def f():" in told[1][1]
    assert sorted(told[2:5]) == [
        ("glob", "f.py"), ("grep", "f.py"), ("read", "     1\tdef f():\n     2\t    return 1"),
    ]  # fmt: skip
    assert told[5:] == [("python", "value: 1"), ("shell", "2")]
    assert parts[0].metadata["data"]["problems"][0]["line"] == 1
    assert json.loads(json.dumps([part.metadata for part in parts]))


async def test_an_agent_is_told_of_errors_and_goes_on(bench, folder):
    model = scripted(
        [
            ("read", {"path": "none"}),
            ("python", {"code": "x = ("}),
            ("shell", {"command": "touch ran # refuse"}),
        ],
        ("python", {"code": "1 / 0"}),
    )
    run = await Agent(model, tools=bench.tools()).run("go")
    told = [(part.tool_name, part.outcome, part.content.split(":")[0]) for part in returned(run)]
    assert sorted(told[:3]) == [
        ("python", "failed", "error (syntax)"),
        ("read", "failed", "error (missing)"),
        ("shell", "failed", "error (refused)"),
    ]
    assert told[3] == ("python", "failed", "error (exception)")
    assert run.output == "done" and os.listdir(folder) == []


@pytest.mark.parametrize(
    ("tool", "arguments", "wrong"),
    [
        ("read", {"path": "f", "encoding": "utf-8"}, "encoding"),
        ("read", {"path": "f", "start": "first"}, "start"),
        ("grep", {"pattern": "x", "mode": "words"}, "mode"),
        ("write", {"path": "f"}, "content"),
    ],
)
async def test_arguments_that_do_not_fit_are_sent_back(bench, folder, tool, arguments, wrong):
    run = await Agent(scripted((tool, arguments)), tools=bench.tools()).run("go")
    retries = [
        part
        for message in run.all_messages()
        for part in message.parts
        if isinstance(part, RetryPromptPart) or getattr(part, "outcome", "") == "retried"
    ]
    assert len(retries) == 1 and wrong in str(retries[0].content)
    assert run.output == "done" and os.listdir(folder) == []


async def test_arguments_made_from_the_schemas_end_no_run(bench):
    run = await Agent(TestModel(), tools=bench.tools()).run("go")
    assert sorted(part.tool_name for part in returned(run)) == sorted(NAMES)
