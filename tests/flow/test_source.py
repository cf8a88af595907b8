"""YAML with places: the data is what people read in the file, and every problem says where."""

import json
import math
import pickle
import re
from typing import Annotated, Literal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loopkit.flow.source import FlowError, Source

FLOW = """\
name: poem  # a comment
inputs:
  goal: {type: string}
steps:
  - id: draft
    ask: >
      Write {{ goal }}
  - id: review
    ask: Judge it.
    output:
      verdict: {enum: [yes, no]}
      "on": 2026-01-01
limits: {rounds: 3}
"""


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *[(word, word) for word in ["yes", "no", "on", "off", "y", "n", "Yes", "NO", "On", "OFF", "nUll", "tRue"]],
        *[(word, True) for word in ["true", "True", "TRUE"]],
        *[(word, False) for word in ["false", "False", "FALSE"]],
        *[(word, None) for word in ["null", "Null", "NULL", "~", ""]],
        *[(word, word) for word in ["2026-01-01", "2026-01-01T00:00:00Z", "1:30", "190:20:30.15"]],
        *[(word, word) for word in ["007", "0o17", "0x1F", "0b1", "1_000", "+-1", "1e", "1e+", ".", ".e1", "--", "-a", "nan", "inf", "-inf", "NaN", "=", "<<"]],
        ("0", 0), ("-0", 0), ("12", 12), ("-12", -12), ("+12", 12), ("18446744073709551615", 2**64 - 1),
        ("1.5", 1.5), ("-1.", -1.0), (".5", 0.5), ("1e3", 1000.0), ("1.5E-1", 0.15), ("00.5", 0.5), ("+1.0", 1.0),
        ("'12'", "12"), ('"true"', "true"), ("'null'", "null"), ("''", ""), ('"\\u00e4\\n"', "ä\n"), ("'it''s'", "it's"),
        ("[]", []), ("{}", {}), ("[1, yes, [no]]", [1, "yes", ["no"]]), ("{a: 1, b: {c: }}", {"a": 1, "b": {"c": None}}),
        ("|\n  two\n  lines\n", "two\nlines\n"), (">-\n  one\n  line\n", "one line"), ("\n- 1\n- a: b\n", [1, {"a": "b"}]),
    ],
)  # fmt: skip
def test_values_are_what_they_look_like(written, value):
    found = Source.parse(f"value: {written}").data["value"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "key", ["yes", "on", "2026-01-01", "1:30", '"1"', "'null'", "a b", "größe", '"<<"', "'true'"]
)
def test_keys_are_text(key):
    assert list(Source.parse(f"{key}: 1").data) == [key.strip("\"'")]


def test_a_source_keeps_its_name_text_and_data():
    source = Source.parse(FLOW, "poem.yaml")
    assert (source.name, source.text) == ("poem.yaml", FLOW)
    assert source.data == {
        "name": "poem",
        "inputs": {"goal": {"type": "string"}},
        "steps": [
            {"id": "draft", "ask": "Write {{ goal }}\n"},
            {
                "id": "review",
                "ask": "Judge it.",
                "output": {"verdict": {"enum": ["yes", "no"]}, "on": "2026-01-01"},
            },
        ],
        "limits": {"rounds": 3},
    }
    assert repr(source) == "Source(name='poem.yaml')"
    assert Source.parse("---\na: 1\n...\n").data == Source.parse("\ufeffa: 1\r\n").data == {"a": 1}


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("a: 1\nb: 2\na: 3", ["3:1: the key 'a' is given twice, first in line 1; leave one out"]),
        ("a:\n  b: 1\n  'b': 2", ["3:3: the key 'b' is given twice, first in line 2; leave one out"]),
        ("1: x", ["1:1: the key 1 is not text; write it in quotes"]),
        ("a: {true: x, null: y}", ["1:5: the key True is", "1:14: the key None is"]),
        ("? [a, b]\n: c", ["1:3: the key ['a', 'b'] is not text"]),
        ("1: x\n'1': y", ["1:1: the key 1 is not text"]),
        ("a: &here 1\nb: *here", ["1:4: the anchor &here is not allowed", "2:4: the alias *here is not allowed; write"]),
        ("a: *nowhere", ["1:4: the alias *nowhere"]),
        ("&a b: 1", ["1:1: the anchor &a"]),
        ("a:\n  <<: {b: 1}", ["2:3: the merge key << is not allowed; write out what it stands for"]),
        ("a: !foo b", ["1:4: the tag '!foo' is not allowed; leave it out"]),
        ("a: !!str 5", ["1:4: the tag '!!str'"]),
        ("a: ! b", ["1:4: the tag '!'"]),
        ("a: !!python/object/apply:os.system [ls]", ["1:4: the tag '!!python/object/apply:os.system'"]),
        ("--- !!set {a, b}", ["1:5: the tag '!!set'"]),
        ("a: !x%0Ay z", ["1:4: the tag '!x\\ny'"]),
        ("a: .inf", ["1:4: '.inf' is no finite number; write it in quotes if it is text"]),
        ("a: [-.INF, .NaN]", ["1:5: '-.INF' is", "1:12: '.NaN' is"]),
        ("a: 1e999", ["1:4: '1e999' is no finite number"]),
        ("a: 36893488147419103232", ["1:4: '36893488147419103232' has more than 64 bits"]),
        ("a: " + "9" * 5000, ["1:4: '999999999999...9999999999999' has more than 64 bits"]),
        ('a: "\\ud800"', ["1:4: '\\ud800' holds half a character"]),
        ('"\\ud83d\\ude00": 1', ["1:1: '\\ud83d\\ude00' holds half a character"]),
        ("a: \x01", ["1:4: the character U+0001 is not allowed; leave it out"]),
        ("a: 1\nb: '\ud800'", ["2:5: the character U+D800 is not allowed"]),
        ("", ["1:1: must hold a mapping, lines such as `key: value`, found nothing"]),
        ("# nothing\n", ["2:1: must hold a mapping, lines such as `key: value`, found nothing"]),
        ("null", ["1:1: must hold a mapping, lines such as `key: value`, found nothing"]),
        ("- a", ["1:1: must hold a mapping, lines such as `key: value`, found a list"]),
        ("\n  text", ["2:3: must hold a mapping, lines such as `key: value`, found a single value"]),
        ("a: 1\n---\nb: 2", ["2:1: cannot be read: expected a single document in the stream"]),
        ("a: 1\n---\n", ["2:1: cannot be read: expected a single document in the stream"]),
        ("a: [1,\n  2", ["2:4: cannot be read: while parsing a flow sequence, expected ',' or ']'"]),
        ("a: b: c", ["1:5: cannot be read: mapping values are not allowed here"]),
        ("\ta: 1", ["1:1: cannot be read: while scanning for the next token, found character '\\t'"]),
        ("a: 'b", ["1:6: cannot be read: while scanning a quoted scalar"]),
        ("a: @b", ["1:4: cannot be read:"]),
        ('a: "\\UFFFFFFFF"', ["1:7: cannot be read: OverflowError"]),
        ("%YAML 9" + "9" * 5000 + "\n--- a", ["1:7: cannot be read: ValueError"]),
        ("a: " + "[" * 40 + "]" * 40, ["1:43: cannot be read: nested deeper than 40 levels"]),
        # All that is wrong at once, in the order of the file.
        (
            "a: !foo b\n1: .nan\nc: {d: 1, d: 2}\nc: &x",
            ["1:4: the tag", "2:1: the key 1", "2:4: '.nan'", "3:11: the key 'd'", "4:1: the key 'c'", "4:4: the anchor"],
        ),
        ("a: !foo b\nc: ]", ["1:4: the tag", "2:4: cannot be read:"]),
    ],
)  # fmt: skip
def test_what_is_refused_and_where(text, problems):
    with pytest.raises(FlowError) as caught:
        Source.parse(text, "made.yaml")
    found = caught.value.problems
    assert len(found) == len(problems)
    for line, start in zip(found, problems, strict=True):
        assert line.startswith(f"made.yaml:{start}")
        assert "\n" not in line and len(line) < 250
    assert str(caught.value) == "\n".join(found)


@pytest.mark.parametrize(
    ("piece", "times", "said"),
    [
        ("[", 100_000, "1:41: cannot be read: nested deeper than 40 levels"),
        ("- ", 100_000, "1:81: cannot be read: nested deeper than 40 levels"),
        ("{a: ", 40_000, "1:161: cannot be read: nested deeper than 40 levels"),
        ("a", 200_001, "1:1: is longer than 200000 characters; take it apart"),
    ],
)
def test_what_is_too_much_is_refused(piece, times, said):
    with pytest.raises(FlowError, match=f"^flow:{said}$"):
        Source.parse(piece * times)


def test_forty_levels_are_allowed():
    value = Source.parse("a: " + "[" * 39 + "]" * 39).data["a"]
    for _ in range(38):
        (value,) = value
    assert value == []


def test_errors_survive_the_way_between_processes():
    error = FlowError(["a:1:1: b", "a:2:1: c"])
    assert pickle.loads(pickle.dumps(error)).problems == error.problems == ("a:1:1: b", "a:2:1: c")
    assert isinstance(error, ValueError)


def test_yaml_elsewhere_stays_as_it_is():
    assert yaml.safe_load("[yes, 1:30, 0o7]") == [True, 90, "0o7"]


# --- Files ------------------------------------------------------------------------------------------------------


def test_a_file_is_read_as_its_text(tmp_path):
    path = tmp_path / "flow.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + "größe: ä\r\n".encode())
    source = Source.read(path)
    assert source == Source.read(str(path))
    assert (source.name, source.data) == (str(path), {"größe": "ä"})
    assert source.place(["größe"]) == f"{path}:1:1"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: 1\nb: \xc3\xa4\xff", "2:5: is not UTF-8: invalid start byte; save the file as UTF-8"),
        (b"\xef\xbb\xbf\xff", "1:1: is not UTF-8"),
        ("a: 1".encode("utf-16"), "1:1: is not UTF-8"),
        (b"a: 1\na: 2", "2:1: the key 'a' is given twice"),
        (b"a: \0", "1:4: the character U+0000 is not allowed"),
        (b"", "1:1: must hold a mapping"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path, content, said):
    path = tmp_path / "flow.yaml"
    path.write_bytes(content)
    with pytest.raises(FlowError) as caught:
        Source.read(path)
    assert str(caught.value).startswith(f"{path}:{said}")


def test_a_file_over_the_limit_is_refused(tmp_path):
    path = tmp_path / "flow.yaml"
    path.write_bytes(b"a: " + b"x" * 199_997)
    assert len(Source.read(path).data["a"]) == 199_997
    path.write_bytes(b"a: " + b"x" * 199_998)
    with pytest.raises(FlowError, match=f"^{path}:1:1: is larger than 200000 bytes; take it apart$"):
        Source.read(path)


@pytest.mark.parametrize(
    ("name", "said"), [("missing.yaml", "No such file"), (".", "Is a directory"), ("a\0b", "null byte")]
)
def test_a_file_that_cannot_be_opened_is_refused(tmp_path, name, said):
    with pytest.raises(FlowError, match=f":1:1: cannot be read: .*{said}"):
        Source.read(f"{tmp_path}/{name}")


# --- Places -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loc", "place"),
    [
        ((), "1:1"),
        (("name",), "1:1"),
        (("inputs", "goal", "type"), "3:10"),
        (("steps",), "4:1"),
        (("steps", 0), "5:5"),
        (("steps", 0, "id"), "5:5"),
        (("steps", 1, "output", "verdict", "enum", 1), "11:29"),
        (("steps", 1, "output", "on"), "12:7"),
        # Of what is missing: the deepest that is there.
        (("steps", 7), "4:1"),
        (("steps", -1), "4:1"),
        (("steps", "0"), "4:1"),
        (("steps", 0, "output"), "5:5"),
        (("nonsense",), "1:1"),
        (("name", "deeper", 0), "1:1"),
        # What pydantic adds of its own.
        (("steps", "list[union]", 1, "function-after[check()]", "output", "verdict"), "11:7"),
        (("inputs", "goal", "[key]"), "3:3"),
        # A union's tag that is a key as well.
        (("steps", 0, "ask", "id"), "5:5"),
        (("steps", 1, "ask", "output", "verdict"), "11:7"),
        (("steps", 1, "ask", "ask"), "9:5"),
        (("steps", 1, "ask", "retries"), "9:5"),
        (("a",) * 300 + ("limits", "rounds"), "13:10"),
    ],
)
def test_places_of_parts(loc, place):
    source = Source.parse(FLOW)
    assert source.place(loc) == source.place(list(loc)) == f"flow:{place}"
    assert source.problem(loc, "is wrong") == f"flow:{place}: is wrong"


def test_many_equal_keys_are_walked_quickly():
    text = "".join("  " * depth + "a:\n" for depth in range(39))
    assert Source.parse(text).place(("a",) * 500) == "flow:39:77"


class Ask(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["ask"]
    prompt: str
    tries: int = 1


class Stop(BaseModel):
    kind: Literal["stop"]
    after: Annotated[int, Field(gt=0)] | list[int]


class Whole(BaseModel):
    steps: list[Annotated[Ask | Stop, Field(discriminator="kind")]]
    limits: dict[Annotated[str, Field(pattern="^[a-z]+$")], int] = {}


def test_pydantics_errors_find_their_places():
    source = Source.parse(
        "steps:\n"
        "  - kind: ask\n"
        "    prompt: [no text]\n"
        "    retries: 3\n"
        "  - {kind: stop, after: [1, two]}\n"
        "  - kind: ask\n"
        "  - kind: other\n"
        "limits:\n"
        "  UP: 1\n"
        "  down: much\n"
    )
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate(source.data)
    found = {source.problem(error["loc"], error["type"]) for error in caught.value.errors()}
    assert found == {
        "flow:3:5: string_type",
        "flow:4:5: extra_forbidden",
        "flow:5:18: int_type",  # after: neither a number …
        "flow:5:29: int_parsing",  # … nor a list of them
        "flow:6:5: missing",
        "flow:7:5: union_tag_invalid",
        "flow:9:3: string_pattern_mismatch",
        "flow:10:3: int_parsing",
    }


@st.composite
def trees(draw):
    """Data in which every key and every piece of text is the only one of its name."""
    names = iter(range(10_000))

    def tree(depth):
        kind = draw(st.sampled_from(["text", "list", "mapping"] if depth < 4 else ["text"]))
        if kind == "list":
            return [tree(depth + 1) for _ in range(draw(st.integers(0, 3)))]
        return mapping(depth, 0) if kind == "mapping" else f"v{next(names)}v"

    def mapping(depth, least):
        return {f"k{next(names)}k": tree(depth + 1) for _ in range(draw(st.integers(least, 3)))}

    return mapping(0, 1)


def walk(value, loc=()):
    """Every loc, and the text that is written there (None for a list or mapping in a list)."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, child in items:
        yield (*loc, part), part if isinstance(part, str) else child if isinstance(child, str) else None
        yield from walk(child, (*loc, part))


@given(trees(), st.sampled_from([False, None, True]), st.integers(2, 6), st.data())
@settings(max_examples=60, deadline=None)
def test_places_agree_with_a_search_of_the_text(tree, flow_style, indent, data):
    text = "# ä\n" + yaml.safe_dump(
        tree, sort_keys=False, default_flow_style=flow_style, indent=indent, width=40
    )
    source = Source.parse(text)
    assert source.data == tree
    for loc, word in walk(tree):
        if word is None:
            continue
        line, column = next(
            (number, row.index(word)) for number, row in enumerate(text.split("\n")) if word in row
        )
        assert source.place(loc) == f"flow:{line + 1}:{column + 1}"
        added = list(loc)
        for _ in range(data.draw(st.integers(0, 2))):
            added.insert(data.draw(st.integers(0, len(added))), "function-after[check(), list[str]]")
        assert source.place(added) == source.place(loc)


# --- Anything at all --------------------------------------------------------------------------------------------

TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn", "Zl", "Zp"], exclude_characters="\ufeff"), max_size=8
) | st.sampled_from(
    ["yes", "1", "null", "2026-01-01", "1e3", "<<", "*a", "&a", "!a", ": ", " #", "\n", "\t", '"', "{{ a }}"]
)
NUMBERS = st.integers(-(2**64) + 1, 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
DATA = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(TEXTS, DATA, max_size=4), st.sampled_from([None, 1, 4]))
@settings(max_examples=80, deadline=None)
def test_json_is_read_as_json_reads_it(data, indent):
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    found = Source.parse(text).data
    assert json.dumps(found, ensure_ascii=False, indent=indent) == text


def check(text):
    """A source of plain data, or an error whose every line has a place in the text."""
    try:
        source = Source.parse(text)
    except FlowError as error:
        assert error.problems
        rows = re.split("\r\n|[\r\n\x85\u2028\u2029]", text)
        for problem in error.problems:
            line, column = map(int, re.match(r"flow:(\d+):(\d+): .", problem).groups())
            assert 1 <= line <= len(rows)
            assert 1 <= column <= len(rows[line - 1]) + 1
        return
    plain = json.dumps(source.data, allow_nan=False, ensure_ascii=False).encode()
    assert json.loads(plain) == source.data
    for loc, _ in walk(source.data):
        assert re.fullmatch(r"flow:\d+:\d+", source.place(loc))


PIECES = [
    *":-?[]{},#&*!|>'\"%@`~=.<\\ \n\t\r\0\x85\u2028\ufeff\ud800ä0", "\n  ", "\n- ", ": ", "&a ", "*a", "!!int ", "<<: ",
    "---\n", "...\n", "%YAML 1.1\n", "%TAG ! x\n", "!<x> ", "? ", "|2-\n", "1e999", ".nan", "\\x", "\\U00110000", "yes",
]  # fmt: skip


@given(
    st.lists(
        st.tuples(st.integers(0, len(FLOW)), st.integers(0, 6), st.sampled_from(["", *PIECES])), max_size=5
    )
)
@settings(max_examples=150, deadline=None)
def test_any_change_of_a_good_file_gives_a_source_or_the_typed_error(changes):
    text = FLOW
    for at, length, piece in changes:
        text = text[:at] + piece + text[at + length :]
    check(text)


@given(st.text(max_size=60) | st.lists(st.sampled_from([*PIECES, "a", "b: "]), max_size=25).map("".join))
@settings(max_examples=150, deadline=None)
def test_any_text_gives_a_source_or_the_typed_error(text):
    check(text)


@given(
    content=st.binary(max_size=40)
    | st.text(max_size=20).map(lambda text: f"a: {text}".encode("utf-8", "ignore"))
)
@settings(max_examples=60, deadline=None)
def test_any_file_gives_a_source_or_the_typed_error(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    try:
        assert isinstance(Source.read(path).data, dict)
    except FlowError as error:
        assert all(problem.startswith(f"{path}:") for problem in error.problems)


@given(st.floats())
@settings(max_examples=60, deadline=None)
def test_numbers_are_finite_or_refused(number):
    text = f"a: {yaml.safe_dump(number).split()[0]}"
    if math.isfinite(number):
        assert Source.parse(text).data["a"] == number
    else:
        with pytest.raises(FlowError, match="is no finite number"):
            Source.parse(text)
