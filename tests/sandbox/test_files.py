"""The tools' functions in a folder of their own, against pathlib, str.replace, splitlines and a plain scan."""

import contextlib
import json
import os
import re
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

pytest.importorskip("fcntl", reason="the functions run inside the sandbox, which is POSIX's")

from loopkit.sandbox.inside import files
from loopkit.sandbox.inside.editing import DIFF, difference
from loopkit.sandbox.inside.files import (
    CHARS,
    KEPT,
    LINES,
    ToolProblem,
    check,
    edit,
    glob,
    grep,
    read,
    shell,
    write,
)
from loopkit.sandbox.inside.paths import NOISE, WIDTH
from loopkit.sandbox.inside.syntax import CHECKED


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@contextlib.contextmanager
def empty_folder():
    """For hypothesis, which runs many examples within one test."""
    with tempfile.TemporaryDirectory() as path, contextlib.chdir(path):
        yield Path(path)


def put(name, content):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def problem(call, *args, **kwargs):
    with pytest.raises(ToolProblem) as caught:
        call(*args, **kwargs)
    assert caught.value.message
    return caught.value.kind, caught.value.message


def numbered(lines, start=1):
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, start))


# --- read -----------------------------------------------------------------------------------------------------

TEXT = st.text(st.sampled_from("ab é日\t\n\r\f\v\x1c\x85\u2028"), max_size=40)


@given(TEXT, st.integers(1, 12), st.none() | st.integers(1, 12))
def test_lines_are_those_of_splitlines(text, start, end):
    lines = [
        line.decode() for line in text.encode().splitlines()
    ]  # of bytes: \n, \r and \r\n alone end a line
    assume(start <= max(len(lines), 1) and (end is None or end >= start))
    with empty_folder():
        put("f", text)
        done = read("f", start, end)
    assert done["text"] == numbered(lines[start - 1 : end], start)
    assert done["lines"] == len(lines)
    assert "read on" not in done["note"]
    assert bool(done["note"]) == (lines[start - 1 : end] != lines)


@given(st.integers(0, 3 * LINES), st.integers(0, 3 * WIDTH))
@settings(max_examples=20, deadline=None)
def test_a_long_file_is_read_on_to_its_end(count, width):
    lines = [f"{number}:" + "x" * width for number in range(count)]
    with empty_folder():
        put("f", "\n".join(lines))
        seen, start, parts = [], 1, 0
        while True:
            done = read("f", start)
            parts += 1
            seen += [line.split("\t")[1] for line in done["text"].split("\n") if line]
            assert len(done["text"]) < CHARS + 2 * WIDTH and done["end"] - start < LINES
            further = re.search(r"read on with start=(\d+)", done["note"])
            if not further:
                break
            start = int(further[1])
    assert [line[:WIDTH] for line in seen] == [line[:WIDTH] for line in lines]
    assert parts >= count / LINES


def test_a_long_line_is_cut_and_says_how_long_it_is():
    put("f", "y" * 10_000 + "\nnext")
    assert read("f")["text"].split("\n") == [f"     1\t{'y' * WIDTH}… [10000 characters]", "     2\tnext"]


def test_what_is_shown_of_bytes_that_are_not_utf8_and_of_a_byte_order_mark():
    put("latin", b"caf\xe9\n")
    put("marked", b"\xef\xbb\xbfx = 1\n")
    assert read("latin")["text"] == "     1\tcaf\ufffd"
    assert read("marked")["text"] == "     1\tx = 1"


@pytest.mark.parametrize(("start", "end"), [(0, None), (-1, None), (3, 2), (4, None), (4, 9)])
def test_lines_that_are_not_there(start, end):
    put("f", "1\n2\n3\n")
    kind, message = problem(read, "f", start, end)
    assert kind == "range" and str(start) in message


def test_a_missing_file_with_names_that_are_near():
    put("source/of/it/all/config.py", "")
    put("settings.toml", "")
    assert problem(read, "config.py") == (
        "missing",
        "config.py does not exist; did you mean source/of/it/all/config.py?",
    )
    assert "settings.toml" in problem(read, "setting.toml")[1]
    assert problem(read, "zzz") == ("missing", "zzz does not exist")


def test_what_is_not_a_text_file():
    put("b", b"\x7fELF\0\1")
    os.mkdir("d")
    os.mkfifo("pipe")
    assert problem(read, "b") == ("binary", "b is binary (6 bytes)")
    for name in ("d", "pipe", "/dev/null"):
        assert problem(read, name)[0] == ("outside" if name.startswith("/") else "not a file")
        assert problem(write, name, "x")[0] == ("outside" if name.startswith("/") else "not a file")
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


# --- paths ----------------------------------------------------------------------------------------------------


@pytest.fixture
def secret(folder):
    path = folder.parent / "secret"
    path.write_text("hunter2")
    (folder.parent / "work-2").write_text("hunter2")
    os.symlink(path, "link")
    os.symlink(folder.parent, "up")
    os.symlink("loop", "loop")
    return path


@pytest.mark.parametrize(
    "path", ["../secret", "link", "up/secret", "../work-2", "d/../../secret", "/etc/passwd", "//etc/passwd"]
)
def test_paths_that_lead_out_are_refused(secret, path):
    for call in (read, lambda p: write(p, "x"), lambda p: edit(p, "h", "g"), lambda p: grep("h", p)):
        kind, message = problem(call, path)
        assert kind == "outside" and path in message and "hunter2" not in message
    assert secret.read_text() == "hunter2"


def test_links_that_lead_out_are_neither_found_nor_searched(secret):
    put("here", "hunter2")
    assert glob("**")["paths"] == ["here"]
    assert [match["path"] for match in grep("hunter2")["matches"]] == ["here"]
    assert problem(glob, "../*")[0] == problem(glob, "/etc/*")[0] == "outside"
    assert problem(read, "loop")[0] in ("not a file", "missing")


def test_links_and_absolute_paths_that_stay_inside(folder):
    put("d/f", "text")
    os.symlink("d/f", "link")
    os.symlink("d", "other")
    for path in ("link", "other/f", f"{folder}/d/f", "./d//f", "d/../d/f"):
        assert read(path)["path"] == "d/f"
    write("link", "new")
    assert os.path.islink("link") and Path("d/f").read_text() == "new"
    assert sorted(glob("**")["paths"]) == ["d/f", "link"]  # not other/f: it is d/f again
    assert [match["path"] for match in grep("new")["matches"]] == ["d/f"]


def test_inputs_are_links_that_may_lead_out(folder):
    place = folder.parent / "data"
    put(place / "set/a.csv", "one")
    put(place / "b.csv", "two")
    os.mkdir("inputs")
    os.symlink(place / "set", "inputs/set")
    os.symlink(place / "b.csv", "inputs/b.csv")
    assert read("inputs/set/a.csv")["path"] == "inputs/set/a.csv"
    assert sorted(glob("**/*.csv")["paths"]) == ["inputs/b.csv", "inputs/set/a.csv"]
    assert [match["path"] for match in grep("one|two")["matches"]] == ["inputs/b.csv", "inputs/set/a.csv"]
    assert problem(read, "inputs/../../data/c")[0] == "outside"


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (read, {}),
        (read, {"path": ""}),
        (read, {"path": "a\0b"}),
        (read, {"path": 3}),
        (read, {"path": "f", "start": True}),
        (read, {"path": "f", "start": "1"}),
        (read, {"path": "f", "line": 1}),
        (read, {"path": "x" * 300}),
        (write, {"path": "f", "content": None}),
        (write, {"path": "f", "content": "\ud800"}),
        (write, {"path": "d/", "content": ""}),
        (edit, {"path": "f", "old": "", "new": "x"}),
        (edit, {"path": "f", "old": "x", "new": "y", "all": 1}),
        (glob, {"pattern": ""}),
        (glob, {"pattern": "./"}),
        (glob, {"pattern": "*", "limit": 0}),
        (grep, {"pattern": "x", "mode": "all"}),
        (grep, {"pattern": "x", "context": -1}),
        (grep, {"pattern": "x", "glob": "!"}),
        (shell, {"command": "a\0b"}),
    ],
)
def test_arguments_are_checked(call, arguments):
    put("f", "x")
    assert problem(call, **arguments)[0] == "argument"
    assert Path("f").read_text() == "x" and os.listdir() == ["f"]


# --- write ----------------------------------------------------------------------------------------------------


@given(st.text(max_size=30))
def test_what_is_written_is_what_is_there(text):
    with empty_folder():
        done = write("d/e/f", text)
        assert Path("d/e/f").read_bytes() == text.encode()
        assert os.listdir("d/e") == ["f"]
    assert done["lines"] == len(text.encode().splitlines()) and done["bytes"] == len(text.encode())


def test_writing_replaces_the_file_in_one_step(folder):
    put("f", "old")
    with open("f") as held:
        assert (write("f", "new")["created"], write("g", "")["created"]) == (False, True)
        assert held.read() == "old"
    assert sorted(os.listdir()) == ["f", "g"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_the_mode_is_kept_and_a_new_file_gets_the_usual_one(mask):
    put("script", "#!/bin/sh\necho 1\n").chmod(0o775)
    before = os.umask(mask)
    try:
        edit("script", "1", "2")
        write("new", "")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(os.stat(name).st_mode) for name in ("script", "new")]
    assert modes == [0o775, 0o666 & ~mask]


def test_a_write_that_fails_leaves_nothing_behind(folder, monkeypatch):
    put("f", "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert problem(write, "f", "new") == ("disk", "No space left on device")
    assert os.listdir() == ["f"] and Path("f").read_text() == "old"


def test_a_file_in_the_place_of_a_folder():
    put("f", "text")
    assert problem(write, "f/g", "x")[0] == "not a file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_what_is_read_only_is_not_replaced():
    put("f", "old").chmod(0o444)
    os.mkdir("d", 0o555)
    assert problem(write, "f", "new")[0] == problem(write, "d/f", "new")[0] == "denied"


def test_with_known_versions_only_a_file_known_as_it_is_now_is_replaced():
    put("f", "old")
    assert problem(write, "f", "new", {}) == ("not read", "f exists and has not been read")
    known = {"f": read("f")["version"]}
    put("f", "changed by somebody else")
    assert problem(write, "f", "new", known) == ("not read", "f has changed since it was read")
    known = {"f": read("f")["version"]}
    known["f"] = write("f", "new", known)["version"]
    assert write("f", "newer", known)["created"] is False
    assert write("g", "", {})["created"] is True


# --- syntax ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "place", "told"),
    [
        ("a.py", "x = 1\nif x\n    y\n", (2, 5), "expected ':'"),
        ("a.py", "x = (1\n", (1, 5), "never closed"),
        ("a.py", "return 1\n", (1, 1), "outside function"),
        ("a.py", "\tx = 1\n", (1, 1), "unexpected indent"),
        ("a.py", "x = 1\ny = x is 1\n", (2, None), 'warning: "is" with a literal'),
        ("a.py", "x\0", (None, None), "null bytes"),
        ("a.pyi", "def f(:\n", (1, 7), "invalid syntax"),
        ("a.json", '{\n"a": 1,\n}', (3, 1), "property name"),
        ("a.ipynb", "[1", (1, 3), "','"),
        ("a.json", "", (1, 1), "Expecting value"),
        ("a.toml", "a = 1\nb = \n", (2, 5), "Invalid value"),
        ("a.yaml", "a: [1\nb: 2\n", (2, 2), "','"),
        ("A.YML", "a: 'x\n", (2, 1), "end of stream"),
        ("a.json", "[" * 100_000, (None, None), "RecursionError"),
        ("a.py", "x = 1\n" * CHECKED, (None, None), "not checked"),
    ],
)
def test_what_does_not_parse_is_told_and_written_all_the_same(name, content, place, told):
    (first, *_) = write(name, content)["problems"]
    assert Path(name).read_text() == content
    assert ((first["line"], first["column"]), told in first["message"]) == (place, True), first
    if first["line"]:
        assert first["text"] == content.split("\n")[first["line"] - 1]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.py", "# coding: latin-1\nx = 'é'\n"),
        ("a.py", "\ufeffx = 1\n"),
        ("a.json", '{"a": [1, null]}'),
        ("a.toml", "[a]\nb = 1979-05-27\n"),
        ("a.yaml", "a: !custom {b: *c}\n---\n- 1\n".replace("*c", "d")),
        ("a.txt", "def f(:"),
        ("py", "def f(:"),
    ],
)
def test_what_parses_has_no_problems(name, content):
    assert write(name, content)["problems"] == []


@given(
    st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3))
)
def test_any_json_has_no_problems_until_it_is_cut(value):
    text = json.dumps([value])
    with empty_folder():
        assert write("a.json", text)["problems"] == []
        assert len(write("a.json", text[:-1])["problems"]) == 1


def test_a_program_to_run_must_be_one():
    assert check("x = 1\nx is 1") == {}  # a warning, not an error
    assert problem(check, " \n") == ("empty", "there is no code")
    assert problem(check, "x = (") == ("syntax", "'(' was never closed (line 1: x = ()")
    assert problem(check, "pass\nreturn")[0] == problem(check, "x\0")[0] == "syntax"


# --- edit -----------------------------------------------------------------------------------------------------

PIECE = st.text(st.sampled_from("ab \n"), max_size=3)


@given(
    st.text(st.sampled_from("ab \n"), max_size=15), PIECE.filter(bool), PIECE, st.booleans(), st.booleans()
)
@example("aaa", "aa", "b", False, False)
@example("a\n", "a", "b\n\n", False, True)
@settings(max_examples=300, deadline=None)
def test_an_edit_is_str_replace_where_it_is_meant_once(text, old, new, every, crlf):
    times = sum(text.startswith(old, place) for place in range(len(text)))
    kind = (
        "no change"
        if old == new
        else "not found"
        if not times
        else "not unique"
        if times > 1 and not every
        else None
    )
    crlf = crlf and "\n" in text
    end = "\r\n" if crlf else "\n"
    with empty_folder():
        put("f.txt", text.replace("\n", end))
        if kind:
            assert problem(edit, "f.txt", old, new, every)[0] == kind
            after = text
        else:
            done = edit("f.txt", old, new.replace("\n", end), every)
            after = text.replace(old, new)
            assert done["replaced"] == text.count(old)
        assert Path("f.txt").read_bytes() == after.replace("\n", end).encode()


def test_other_line_ends_are_kept():
    put("mixed", b"one\r\ntwo\nthree\rfour")
    edit("mixed", "two\n", "2\n")
    assert Path("mixed").read_bytes() == b"one\r\n2\nthree\rfour"
    put("dos", b"one\r\ntwo\r\n")
    assert "no change" in problem(edit, "dos", "one\n", "one\r\n")
    edit("dos", "one\r\ntwo", "1\n2\n3")
    assert Path("dos").read_bytes() == b"1\r\n2\r\n3\r\n"


def test_the_diff_and_the_problems_are_told():
    put("f.py", "".join(f"x{n} = {n}\n" for n in range(9)))
    done = edit("f.py", "x4 = 4", "x4 = (4")
    assert (
        done["diff"]
        == "@@ -2,7 +2,7 @@\n x1 = 1\n x2 = 2\n x3 = 3\n-x4 = 4\n+x4 = (4\n x5 = 5\n x6 = 6\n x7 = 7"
    )
    assert [(p["line"], p["text"]) for p in done["problems"]] == [(5, "x4 = (4")]
    put("long", "a\n" * 1000)
    assert edit("long", "a", "b", all=True)["diff"].endswith("more lines")


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=20), st.integers(0), st.integers(1, 4), PIECE
)
def test_the_diff_turns_the_old_lines_into_the_new(letters, start, length, new):
    text = "".join(f"{letter}\n" for letter in letters)
    old = text[start % len(text) :][:length]
    assume(new != old)
    after = text.replace(old, new)
    assume(len(text) + len(after) < DIFF)  # else the diff is cut
    was, now = text.splitlines(keepends=True), after.splitlines(keepends=True)
    for hunk in re.split(r"^(?=@@)", difference(text, old, new), flags=re.MULTILINE)[1:]:
        a, m, b, n = map(int, re.match(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@\n", hunk).groups())
        lines = hunk.rstrip("\n").replace("\n\\ No newline at end of file", "\0").split("\n")[1:]
        lines = [line.removesuffix("\0") + "\n" * (not line.endswith("\0")) for line in lines]
        assert [line[1:] for line in lines if line[0] != "+"] == was[a - 1 : a - 1 + m]
        assert [line[1:] for line in lines if line[0] != "-"] == now[b - 1 : b - 1 + n]
        was[a - 1 : a - 1 + m] = [None] * m
        now[b - 1 : b - 1 + n] = [None] * n
    assert [line for line in was if line] == [line for line in now if line]


def test_a_diff_counts_the_lines_that_came_before():
    put("f", "x\n" + "-\n" * 20 + "x\n")
    assert re.findall("@@.*@@", edit("f", "x\n", "", all=True)["diff"]) == [
        "@@ -1,4 +1,3 @@",
        "@@ -19,4 +18,3 @@",
    ]


def test_an_edit_says_which_versions_it_knows():
    put("f", "a")
    before = read("f")["version"]
    done = edit("f", "a", "b")
    assert (done["before"], done["version"]) == (before, read("f")["version"])
    assert before != done["version"]


def test_occurrences_are_told_by_line():
    put("f", "x\ny x\nz\n" + "x\n" * 20)
    kind, message = problem(edit, "f", "x", "w")
    assert kind == "not unique" and "22 times" in message and "(lines 1, 2, 4, 5, " in message
    assert message.endswith("…)")


@pytest.mark.parametrize(
    ("old", "told"),
    [
        ("     2\t    total = sum(items)\n     3\t    return total", "leave out the line numbers"),
        ("def f(items):\n  total = sum(items)", r"only white space differs from lines 1 to 2"),
        ("return  total", r"line 3, which is exactly '    return total'"),
        ("    totals = sum(item)", "the nearest lines are\n     2\t    total = sum(items)"),
        ("while True: pass", "nor anything like it"),
        (" \n \n \n", "nor anything like it"),
    ],
)
def test_why_a_text_is_not_found(old, told):
    put("f.py", "def f(items):\n    total = sum(items)\n    return total\n")
    kind, message = problem(edit, "f.py", old, "x")
    assert kind == "not found" and told in message, message


def test_what_cannot_be_edited_as_text():
    put("latin", b"caf\xe9")
    put("binary", b"\0")
    assert problem(edit, "latin", "caf", "x") == ("encoding", "latin is not UTF-8 (byte 3)")
    assert problem(edit, "binary", "a", "b")[0] == "binary"
    assert problem(edit, "none", "a", "b")[0] == "missing"
    assert Path("latin").read_bytes() == b"caf\xe9"


# --- glob -----------------------------------------------------------------------------------------------------

NAMES = ["a", "b", "ab", "a.py", "b.py", ".hid", "[x]", "a b"]
TREES = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join), max_size=12)
PARTS = ["*", "**", "?", "a*", "*.py", "[ab]", "[!a]*", "*b*", ".*", "[[]x]", *NAMES[:4]]
PATTERNS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map("/".join)


def grow(tree):
    """The files of a tree; a path through a file that is there already is left out."""
    for name in tree:
        with contextlib.suppress(OSError):
            put(name, f"content of {name}\n")


@given(TREES, PATTERNS)
@example(["a", "b/a"], "*/**")
@example(["a/b/a"], "a/**/b/**/a")
@settings(max_examples=300, deadline=None)
def test_names_found_are_those_of_pathlib(tree, pattern):
    with empty_folder() as root:
        grow(tree)
        found = glob(pattern)
        same = f"{pattern}/*" if pattern.endswith("**") else pattern  # before 3.13 `**` alone finds folders
        expected = {str(path.relative_to(root)) for path in root.glob(same) if path.is_file()}
        folders = {
            f"{path.relative_to(root)}/" for path in root.glob(pattern) if path.is_dir() and path != root
        }
        if "**" not in pattern.split("/")[-1]:
            assert set(glob(f"{pattern}/")["paths"]) == folders
    assert (set(found["paths"]), found["total"]) == (expected, len(expected))


def test_alternatives_and_absolute_patterns(folder):
    grow(["a.js", "a.ts", "d/b.ts", "d/c.py"])
    assert sorted(glob("**/*.{js,ts}")["paths"]) == ["a.js", "a.ts", "d/b.ts"]
    assert sorted(glob("{d/{b,c},a}.*")["paths"]) == ["a.js", "a.ts", "d/b.ts", "d/c.py"]
    assert glob(f"{folder}/d/*.py")["paths"] == ["d/c.py"]


def test_the_last_changed_come_first_and_a_limit_is_told():
    for age, name in enumerate(["z", "old/b", "a", "old/a"]):
        os.utime(put(name, ""), (0, 1e9 - min(age, 2)))
    assert glob("**")["paths"] == ["z", "old/b", "a", "old/a"]
    done = glob("**", limit=2)
    assert (done["paths"], done["total"]) == (["z", "old/b"], 4)


def test_folders_of_tools_are_passed_over_unless_they_are_asked_for():
    grow([f"{name}/x.py" for name in NOISE] + ["src/x.py", "src/node_modules/deep/x.py"])
    assert glob("**/*.py")["paths"] == ["src/x.py"]
    assert [match["path"] for match in grep("content")["matches"]] == ["src/x.py"]
    assert glob(".git/*")["paths"] == [".git/x.py"]
    assert glob("**/node_modules/**/*.py")["total"] == 2
    assert grep("content", "src/node_modules")["total"] == 1


def test_names_that_are_no_text_are_shown_as_well_as_can_be():
    put(os.fsdecode(b"caf\xe9"), "x")
    assert glob("*")["paths"] == ["caf\ufffd"]
    assert grep("x")["total"] == 1


def test_folders_deeper_than_recursion_or_a_path_goes(folder):
    put("f", "")
    for level in range(3000):
        os.mkdir("d")
        os.chdir("d")
        if level == 1200:
            put("f", "")
    os.chdir(folder)
    done = glob("**/f")
    assert (done["total"], done["unreadable"]) == (2, 1)
    subprocess.run(["rm", "-r", "d"], check=True)  # pytest's own cleaning up recurses


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everywhere")
def test_what_cannot_be_read_is_counted(folder):
    put("closed/f", "x")
    put("f", "x").chmod(0)
    os.chmod("closed", 0)
    try:
        assert glob("**")["unreadable"] == 1
        done = grep("x")
        assert (done["total"], done["skipped"], done["unreadable"]) == (0, 1, 1)
        assert problem(read, "f")[0] == problem(grep, "x", "f")[0] == "denied"
    finally:
        os.chmod("closed", 0o755)


# --- grep -----------------------------------------------------------------------------------------------------

REGEXES = ["a", "b+", "^a", "b$", "[ab]{2}", "a|$", r"\s", "A", "(?i)A", "^$", "é"]
CONTENTS = st.dictionaries(st.sampled_from(["x", "y", "d/z"]), st.text("ab é\n\r\f", max_size=20), max_size=3)


@given(CONTENTS, st.sampled_from(REGEXES), st.booleans(), st.integers(0, 3), st.integers(1, 6))
@settings(max_examples=300, deadline=None)
def test_lines_found_are_those_of_a_plain_scan(contents, pattern, ignore_case, context, limit):
    lines = {
        name: [ln.decode() for ln in text.encode().splitlines()] for name, text in sorted(contents.items())
    }
    hits = [
        (name, number)
        for name in lines
        for number, line in enumerate(lines[name], 1)
        if re.search(pattern, line, re.IGNORECASE if ignore_case else 0)
    ]
    near = {(name, at + by) for name, at in hits[:limit] for by in range(-context, context + 1)} - set(hits)
    expected = [
        (name, number, line, (name, number) in hits)
        for name in sorted(lines)
        for number, line in enumerate(lines[name], 1)
        if (name, number) in hits[:limit] or (name, number) in near
    ]
    with empty_folder():
        for name, text in contents.items():
            put(name, text)
        done = grep(pattern, ignore_case=ignore_case, context=context, limit=limit)
        counts = grep(pattern, ignore_case=ignore_case, mode="count", limit=limit)
        names = grep(pattern, ignore_case=ignore_case, mode="files")
    assert [(m["path"], m["line"], m["text"], m["match"]) for m in done["matches"]] == expected
    assert (done["total"], done["searched"]) == (len(hits), len(contents))
    per_file = [(name, len([hit for hit in hits if hit[0] == name])) for name in sorted(lines)]
    per_file = [(name, count) for name, count in per_file if count]
    assert [(m["path"], m["count"]) for m in counts["matches"]] == per_file[:limit]
    assert (counts["total"], counts["files"]) == (len(hits), len(per_file))
    assert [m["path"] for m in names["matches"]] == [name for name, _ in per_file]


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.py", ["a.py", "src/b.py", "tests/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/", ["src/b.py", "src/d.js"]),
        ("*.{py,js}", ["a.py", "src/b.py", "src/d.js", "tests/c.py"]),
        ("!*.py", ["src/d.js", "tests/tests"]),
        ("!tests", ["a.py", "src/b.py", "src/d.js"]),
        ("!src/**", ["a.py", "tests/c.py", "tests/tests"]),
        ("nothing", []),
    ],
)
def test_files_to_search_are_picked_or_left_out(glob, found):
    grow(["a.py", "src/b.py", "src/d.js", "tests/c.py", "tests/tests"])
    assert [match["path"] for match in grep("content", glob=glob)["matches"]] == found


def test_a_part_of_the_tree_or_one_file_is_searched():
    grow(["a", "d/b", "d/e/c"])
    assert [match["path"] for match in grep("content", "d")["matches"]] == ["d/b", "d/e/c"]
    assert [match["path"] for match in grep("content", "d/b")["matches"]] == ["d/b"]
    assert problem(grep, "content", "d/x")[0] == "missing"


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "*", "[", "(?P<n>a)(?P<n>b)", "a{99999999999999999999}"])
def test_a_bad_regular_expression_says_where(pattern):
    kind, message = problem(grep, pattern)
    assert kind == "pattern" and repr(pattern) in message
    assert "position" in message or "large" in message


def test_binary_files_are_passed_over_and_long_lines_cut_around_the_match():
    put("b", b"needle\0")
    put("t", "x" * 5000 + "needle" + "x" * 5000)
    done = grep("needle")
    (match,) = done["matches"]
    assert "needle" in match["text"] and len(match["text"]) < WIDTH + 40
    assert (done["searched"], done["skipped"]) == (1, 1)
    assert problem(grep, "needle", "b")[0] == "binary"


# --- shell ----------------------------------------------------------------------------------------------------


def test_a_command_runs_and_its_exit_code_is_told(capfd):
    assert shell("echo out; echo err >&2; exit 3")["exit_code"] == 3
    assert capfd.readouterr() == ("out\n", "err\n")
    assert shell("read x")["exit_code"] == 1  # nothing to read
    assert shell("kill -9 $$")["exit_code"] == 137
    assert shell("no-such-command")["exit_code"] == 127
    assert "line 1: no-such-command: " in capfd.readouterr().err
    assert shell("if (")["exit_code"] != 0
    assert problem(shell, " \n")[0] == "empty"


def test_the_folder_and_the_variables_last(folder, capfd):
    os.mkdir("d")
    left = shell("cd d; export A='x y\nz' B=2; C=3; unset LANG")
    assert (left["folder"], left["environment"]["A"], left["environment"]["B"]) == ("d", "x y\nz", "2")
    assert "C" not in left["environment"]
    place = {"folder": left["folder"], "environment": left["environment"]}
    assert shell('pwd; echo "$A|$B|$C"; unset B', **place)["environment"].get("A") == "x y\nz"
    assert capfd.readouterr().out == f"{folder.resolve()}/d\nx y\nz|2|\n"
    again = shell("exit 1", **place)
    assert again["environment"] == left["environment"] and again["folder"] == "d"
    assert shell("unset PATH; cd ..", **place)["environment"]["PATH"] is None
    assert problem(shell, "true", folder="gone")[0] == "missing"


@pytest.mark.parametrize("command", ["cd d; exec true", "cd d; kill -9 $$", "trap '' EXIT; cd d"])
def test_a_shell_that_says_nothing_leaves_things_as_they_were(command):
    os.mkdir("d")
    left = shell(command, folder=".", environment={"A": "1"})
    assert (left["folder"], left["environment"]) == (".", {"A": "1"})


def test_what_a_command_does_not_leave():
    left = shell(
        "cd /; export BASH_ENV=x LD_PRELOAD= IFS=, ENVIRONMENT=kept; f() { :; }; export -f f 2>/dev/null"
    )
    assert left["folder"] == "." and "not in /" in left["note"]
    assert left["environment"] == {"ENVIRONMENT": "kept"}
    assert "gone" in shell("mkdir d; cd d; rmdir ../d")["note"]
    left = shell(f"export X=$(head -c {KEPT} /dev/zero | tr '\\0' x)")
    assert left["environment"] == {} and "not kept" in left["note"]


def test_every_function_is_registered():
    assert set(files.FUNCTIONS) == {"read", "write", "edit", "glob", "grep", "shell", "check"}
