"""What holds for any program, any text, any file name; and the small parts by themselves."""

import asyncio
import contextlib
import json
import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from loopkit.sandbox import Execution, Limits
from loopkit.sandbox.results import readable_text

if sys.platform == "win32":
    pytest.skip("the sandbox is POSIX's", allow_module_level=True)

from loopkit.sandbox.folders import delete_tree, made_since, snapshot
from loopkit.sandbox.inside.lines import Lines
from loopkit.sandbox.inside.tree import DEEPEST, Unseen, walk
from loopkit.sandbox.telling import execution, head_and_tail

few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
any_text = st.text(st.characters(exclude_categories=()), max_size=60)  # lone surrogates too


def told(done):
    """As JSON, which must be possible."""
    fields = {name: str(value) if isinstance(value, Path) else value for name, value in vars(done).items()}
    fields |= {"error": done.error and vars(done.error), "files": [vars(made) for made in done.files]}
    return json.loads(json.dumps(fields, allow_nan=False).encode())


# --- programs --------------------------------------------------------------------------------------------------


@few
@given(code=any_text.filter(str.strip))
@example(code="'\ud800'")
@example(code="(" * 300)
@example(code="0" * 5000)
@example(code="\0")
def test_any_text_as_a_program_is_a_result(bare, code):
    done = asyncio.run(bare.run(code, limits=Limits(seconds=30)))
    assert done.ended in ("ok", "error")
    told(done)


@few
@given(text=any_text, raw=st.binary(max_size=60))
def test_any_output_value_and_message_is_a_result(bare, text, raw):
    code = f"import sys\nsys.stdout.buffer.write({raw!r})\nprint({text!r}, file=sys.stderr)\n"
    done = asyncio.run(bare.run(code + repr(text)))
    assert (done.ended, done.value) == ("ok", readable_text(repr(text).encode("utf-8", "backslashreplace")))
    assert done.stdout == readable_text(raw)
    told(done)
    failed = asyncio.run(bare.run(f"raise ValueError({text!r})"))
    assert (failed.ended, failed.error.type) == ("error", "ValueError")
    told(failed)


names = st.binary(min_size=1, max_size=40).filter(
    lambda name: not {b"/", b"\0"} & {name[n : n + 1] for n in range(len(name))}
)


@few
@given(name=names.filter(lambda name: name not in (b".", b"..")))
def test_any_file_name_is_told(bare, name):
    done = asyncio.run(bare.run(f"open({name!r}, 'wb').write(b'123')"))
    assert [(made.size, made.name.isprintable()) for made in done.files] == [(3, True)]
    told(done)


numbers = st.integers(-9, 9).map(str)
expressions = st.recursive(
    numbers | st.sampled_from(["'ab'", "[1, 2]", "x", "None", "True"]),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "*", "-", "//", "<", "==", "and", "if 1 else"]), inner).map(" ".join).map("({})".format)
        | inner.map("[{}]".format)
        | inner.map("len({})".format)
    ),
    max_leaves=6,
)  # fmt: skip


@settings(few, max_examples=20)
@given(expression=expressions)
def test_the_value_is_what_eval_says(bare, expression):
    done = asyncio.run(bare.run(f"x = 3\n{expression}"))
    try:
        value = eval(expression, {"x": 3})
    except Exception as error:
        assert (done.ended, done.error.type, done.error.message) == (
            "error",
            type(error).__name__,
            str(error),
        )
        assert done.error.line == 2
    else:
        assert (done.ended, done.value) == ("ok", None if value is None else repr(value))


cells = st.lists(
    st.sampled_from(
        ["x = 1", "x += 2", "y = [x]", "y.append(x)", "def f(n):\n    return n * x", "y = f(3)", "print(x)", "del x", "x = 'a' * 2", "import math\nx = math.pi"]
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


@settings(few, max_examples=8)
@given(cells=cells)
def test_a_session_does_what_its_cells_do_one_after_the_other(bare, cells):
    async def by_cells():
        async with bare.session() as session:
            done = []
            for cell in cells:
                done.append(await session.run(cell))
                if done[-1].ended != "ok":
                    break
            return done

    done = asyncio.run(by_cells())
    whole = asyncio.run(bare.run("\n".join(cells)))
    assert "".join(one.stdout for one in done) == whole.stdout
    assert (done[-1].ended, done[-1].error and done[-1].error.message) == (
        whole.ended,
        whole.error and whole.error.message,
    )


# --- parts -----------------------------------------------------------------------------------------------------


@given(data=st.binary(max_size=200))
@example(data=b"a\r\nb\rc\x00\x1b[0m\xc2\x9b\xe2\x80\xae\xf0\x9f\x98\x80\xed\xa0\x80")
def test_readable_text_is_printable(data):
    text = readable_text(data)
    assert text.encode().decode() == text
    assert all(c in "\n\t\u00a0\u00ad\u200c\u200d" or c.isprintable() for c in text)
    assert readable_text(text.encode()) == text


@given(text=st.text(max_size=300), shown=st.integers(2, 80))
def test_head_and_tail_are_those_of_the_text(text, shown):
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        cut, whole = head_and_tail(file.fileno(), shown)
    text = readable_text(text.encode())
    if whole:
        assert cut == text and len(text) <= shown
        return
    head, mark, tail = cut.partition("\n[… ")
    tail = tail.partition("left out …]\n")[2]
    assert mark and text.startswith(head) and text.endswith(tail) and len(head) + len(tail) <= max(shown, 4)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
names_of_a_reply = st.sampled_from(
    ["value", "error", "result", "exit_code", "type", "message", "line", "traceback", "memory"]
)


@settings(max_examples=40, deadline=None)
@given(
    reply=st.dictionaries(names_of_a_reply, json_values | st.dictionaries(names_of_a_reply, json_values)),
    once=st.booleans(),
    late=st.booleans(),
)
@example(reply={"error": {"line": -(10**4000), "message": "x" * 10**6}}, once=True, late=False)
def test_any_reply_is_a_result(reply, once, late):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(json.dumps(reply).encode()[:60_000] + b"\n")
        heard = list(Lines(ours).hear())
    for reply in heard:
        answer = {"ended": "replied", "reply": reply, "late": late, "seconds": 0.1, "cpu": 0.1, "memory": 1}
        done = execution(
            answer, Limits(shown=100), once=once, files=(), folder=Path(), outputs=[("", None)] * 2
        )
        assert isinstance(done, Execution) and len(done.message) < 1000
        told(done)


@given(
    values=st.lists(st.dictionaries(st.text(max_size=5), st.integers()), max_size=5),
    noise=st.lists(st.binary(max_size=20), max_size=5),
    size=st.integers(1, 50),
)
def test_lines_come_whole_however_they_are_cut(values, noise, size):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lines, heard = Lines(ours), []
        data = b"".join(json.dumps(value).encode() + b"\n" for value in values)
        for start in range(0, len(data), size):
            theirs.send(data[start : start + size])
            heard += lines.hear()
        assert heard == values
        for part in noise:  # raises nothing, and is no object but by chance
            theirs.send(part + b"\n")
            list(lines.hear())
        theirs.close()
        assert not list(lines.hear()) and not lines.open


def test_a_long_line_is_noticed_and_a_closed_end_takes_no_more():
    ours, theirs = socket.socketpair()
    lines = Lines(ours, most=1000)
    theirs.send(b"x" * 900)
    assert not list(lines.hear()) and not lines.too_long
    theirs.send(b"x" * 200)
    assert not list(lines.hear()) and lines.too_long
    lines.send({"x": "y" * 10_000_000})
    assert lines.waits
    theirs.close()
    lines.flush()
    assert not lines.waits
    ours.close()


def test_a_walk_sees_everything_once_and_never_leaves(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/secret").write_text("x")
    top = tmp_path / "top"
    (top / "a/b/c").mkdir(parents=True)
    (top / "a/b/f").write_text("123")
    (top / "a/link").symlink_to(tmp_path / "out")
    (top / "loop").symlink_to(top)
    os.mkfifo(top / "pipe")
    found = dict(walk(top))
    assert found.keys() == {"a", "a/b", "a/b/c", "a/b/f", "a/link", "loop", "pipe"}
    assert found["a/b/f"].st_size == 3
    assert not list(walk(tmp_path / "missing")) and not list(walk(top / "loop"))


def test_a_walk_tells_when_it_is_too_deep(tmp_path):
    path = tmp_path
    for _ in range(DEEPEST + 5):
        path /= "d"
    path.mkdir(parents=True)
    before = len(os.listdir("/dev/fd"))
    found = []
    with pytest.raises(Unseen):
        for name, _ in walk(tmp_path):
            found.append(name)
    assert len(found) == DEEPEST and len(os.listdir("/dev/fd")) == before
    next(walks := walk(tmp_path))
    walks.close()
    assert len(os.listdir("/dev/fd")) == before


@given(names=st.lists(st.sampled_from("abc"), max_size=5), seed=st.randoms(use_true_random=False))
def test_what_was_made_is_what_differs(names, seed):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in "abc":
            (place / name).write_text("old")
        before = snapshot(place)
        for name in names:
            (place / name).write_text(seed.choice(["old", "new!", ""]))
        assert {made.name for made in made_since(before, place)} == set(names)
        assert made_since(snapshot(place), place) == ()


def test_deleting_takes_everything_and_nothing_else(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    top = tmp_path / "top"
    path = top
    path.mkdir()
    with contextlib.chdir(top):
        for n in range(300):
            os.mkdir("d")
            os.symlink(outside, f"link{n}")
            Path(f"f{n}").write_text("x")
            os.chdir("d")
    (top / "shut").mkdir()
    (top / "shut/f").write_text("x")
    (top / "shut").chmod(0)
    top.chmod(0o500)
    delete_tree(top)
    assert not top.exists() and (outside / "kept").read_text() == "x"
    assert oct(tmp_path.stat().st_mode & 0o777) == oct(0o700)
    delete_tree(top)
    delete_tree(outside / "kept")
    assert (outside / "kept").exists()
