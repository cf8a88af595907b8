"""The small language: what it means is what Python means by it; what it leaves out cannot be reached."""

import json
import operator
import pickle
import warnings
from collections import defaultdict
from types import MappingProxyType

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loopkit.flow.expressions import Expression, ExpressionError, Template

SCOPE = {
    "goal": "a poem",
    "round": 2,
    "tags": ["short", "sad"],
    "steps": {
        "review": {"output": {"verdict": "approve", "score": 0.75, "my-key": [1, [2, 3]]}},
        "later": None,
    },
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("goal", "a poem"),
        ("steps.review.output.verdict == 'approve'", True),
        ('steps["review"].output["verdict"] != "approve"', False),
        ("steps.review.output['my-key'][1][0]", 2),
        ("tags[-1]", "sad"),
        ("round < 3 and steps.review.output.score >= 0.5", True),
        ("1 < round <= 2 < 3", True),
        ("1 < round < 2 < goal", False),
        ("'sad' in tags and 'glad' not in tags", True),
        ("steps.review.output.verdict in ['approve', 'revise']", True),
        ("'poem' in goal", True),
        ("'review' in steps", True),
        ("len(tags) == 2 and len(steps.review.output) == 3", True),
        ("not (round == 2 or nonsense)", False),
        ("nonsense or goal", "a poem"),
        ("round and tags", ["short", "sad"]),
        ("-round", -2),
        ("[round, (goal, true), []]", [2, ("a poem", True), []]),
        ("[true, false, null] == [True, False, None]", True),
        ("true.anything", None),
        ("(nonsense or steps.review).output.score", 0.75),
        # What is not there is None, all the way down.
        ("nonsense", None),
        ("steps.draft.output.text == null", True),
        ("steps.later.output", None),
        ("goal.length", None),
        ("goal[0]", None),
        ("round[0]", None),
        ("tags.short", None),
        ("tags['0']", None),
        ("tags[2]", None),
        ("tags[-3]", None),
        ("steps[0]", None),
        # Blanks and line ends around and inside are blanks.
        ("  round == 2 \n", True),
        ("round\n==\r\n2", True),
    ],
)
def test_what_expressions_say(text, value):
    found = Expression(text).evaluate(SCOPE)
    assert (found, type(found)) == (value, type(value))
    assert Expression(text).evaluate(MappingProxyType(SCOPE)) == value


@pytest.mark.parametrize(
    ("text", "paths", "literals"),
    [
        ("1 == 1", [], []),
        ("goal", [("goal",)], []),
        ("steps.review.output['my-key'][0]", [("steps", "review", "output", "my-key", "0")], []),
        ("a.b == 'x'", [("a", "b")], [(("a", "b"), "x")]),
        ("'x' == a.b", [("a", "b")], [(("a", "b"), "x")]),
        ("a != -1.5", [("a",)], [(("a",), -1.5)]),
        ("a in ['x', b, true]", [("a",), ("b",)], [(("a",), "x"), (("a",), True)]),
        ("a not in ('x', null)", [("a",)], [(("a",), "x"), (("a",), None)]),
        ("a == b == 'x' != c", [("a",), ("b",), ("c",)], [(("b",), "x"), (("c",), "x")]),
        ("a == b", [("a",), ("b",)], []),
        ("a < 3 or 'x' in b", [("a",), ("b",)], []),
        ("not (b == 1 and a == 1) or b == 2", [("b",), ("a",)], [(("b",), 1), (("a",), 1), (("b",), 2)]),
        ("len(a.b) == 1", [("a", "b")], []),
        ("(b or a).c == 'x'", [("b",), ("a",)], []),
        ("a[-1] == null", [("a", "-1")], [(("a", "-1"), None)]),
    ],
)
def test_paths_and_literals_are_known_before_anything_runs(text, paths, literals):
    found = Expression(text)
    assert found.paths == tuple(paths)
    assert [(path, value, type(value)) for path, value in found.literals] == [
        (path, value, type(value)) for path, value in literals
    ]


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("().__class__", "().__class__"),
        ("output.__class__", "output.__class__"),
        ("a or output._private.b", "output._private"),
        ("__import__", "__import__"),
        ("_hidden == 1", "_hidden"),
        ("1 == __import__('os').system('ls')", "__import__('os').system('ls')"),
        ("'{0.__class__}'.format(a)", "'{0.__class__}'.format(a)"),
        ("a.strip()", "a.strip()"),
        ("open('x')", "open('x')"),
        ("len()", "len()"),
        ("len(a, b)", "len(a, b)"),
        ("len(a=b)", "len(a=b)"),
        ("len(*a)", "*a"),
        ("len.x(a)", "len.x(a)"),
        ("[*a]", "*a"),
        ("a and (lambda: 1)", "lambda: 1"),
        ("(a := 1)", "a := 1"),
        ("[b for b in a]", "[b for b in a]"),
        ("{'a': 1}", "{'a': 1}"),
        ("{1, 2}", "{1, 2}"),
        ("f'{a}'", "f'{a}'"),
        ("b'x' == a", "b'x'"),
        ("a if b else c", "a if b else c"),
        ("a is null", "a is null"),
        ("1 == a is not b", "1 == a is not b"),
        ("9 ** 9", "9 ** 9"),
        ("'x' * 1000000000", "'x' * 1000000000"),
        ("steps.my-step.output", "steps.my-step.output"),
        ("a + 1", "a + 1"),
        ("~a", "~a"),
        ("+a", "+a"),
        ("a[b]", "a[b]"),
        ("a[1:2]", "a[1:2]"),
        ("a[1.5]", "a[1.5]"),
        ("a[true]", "a[true]"),
        ("a[1, 2]", "a[1, 2]"),
        ("await a", "await a"),
        ("a == 1e999", "1e999"),
        ("a == -1e999", "-1e999"),
        ("1j", "1j"),
        ("...", "..."),
        ("36893488147419103232 == a", "36893488147419103232"),
        (r"a == '\ud800'", r"'\ud800'"),
        ("a in 'x', 'y'", "a in 'x', 'y'"),
        ("größe == 'ä' or a + 1", "a + 1"),
        ("\n größe == 'ä' or a + 1", "a + 1"),
    ],
)
def test_everything_else_is_refused_by_name_and_column(text, piece):
    with pytest.raises(ExpressionError) as caught:
        Expression(text)
    assert str(caught.value).startswith(f"{piece!r} ")
    assert caught.value.column == text.index(piece) + 1


@pytest.mark.parametrize(
    ("text", "said", "column"),
    [
        ("", "empty", None),
        (" \n", "empty", None),
        ("a ==", "'a ==': invalid syntax", 5),
        ("  a = 1", "invalid syntax", 5),
        ("a b", "invalid syntax", 3),
        ("steps.pass", "keys (a.b, a[0], and a['my-key'] where Python would not read a name)", 7),
        ("a; b", "invalid syntax", 2),
        ("import os", "invalid syntax", 1),
        ("'open", "unterminated string", 1),
        ("a) or (b", "unmatched ')'", 2),
        ("a == 1 # or b", "followed by a comment", 1),
        ("a == 1\n# or b", "followed by a comment", 1),
        ("a" * 1001, "has 1001 characters, at most 1000", None),
        ("(" * 400, "too many nested", 201),
        ("not " * 200 + "a", "nested deeper than 40 levels", 161),
        ("-" * 900 + "a", "nested deeper than 40 levels", 41),
        ("[" * 60 + "]" * 60, "nested deeper than 40 levels", 41),
        ("a == '\ud800'", "surrogates", None),
        (5, "the expression must be text, got 5; write it in quotes", None),
        (True, "got True; write it in quotes", None),
        (None, "got None", None),
    ],
)
def test_what_cannot_be_read_is_a_typed_error(text, said, column):
    with pytest.raises(ExpressionError) as caught:
        Expression(text)
    assert said in str(caught.value)
    assert caught.value.column == column


@pytest.mark.parametrize("text", ["a\0", "\0", "a" + "(a" * 400, "\ufeffa +", "a\\\n", "'\\N{no}'"])
def test_odd_texts_are_refused_too(text):
    with pytest.raises(ExpressionError):
        Expression(text)


def test_long_chains_are_no_deep_nesting():
    assert Expression(".".join("a" * 500)).paths == (("a",) * 500,)
    assert Expression(" or ".join("a" * 200)).evaluate({}) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a < 1", "'a < 1' does not work for 'text' and 1"),
        ("missing >= 1", "'missing >= 1' does not work for None and 1"),
        ("1 in a", "does not work for 1 and 'text'"),
        ("1 in missing", "does not work for 1 and None"),
        ("[1] in d", "does not work for [1] and {}"),
        ("-a", "'-a' does not work for 'text'"),
        ("len(missing)", "'len(missing)' does not work for None"),
        ("len(1)", "'len(1)' does not work for 1"),
        ("long < 1", "..."),
    ],
)
def test_values_that_do_not_suit_are_named(text, said):
    expression = Expression(f"d and x or  {text}")
    with pytest.raises(ExpressionError) as caught:
        expression.evaluate({"a": "text", "d": {}, "long": ["x" * 1000] * 1000})
    assert said in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert caught.value.column == 13


def test_what_is_not_reached_does_not_fail():
    assert Expression("missing != null and missing > 1").evaluate({}) is False
    assert Expression("1 or len(missing)").evaluate({}) == 1


def test_no_attribute_of_an_object_is_ever_read():
    class Thing:
        secret = "found"

        def __getattr__(self, name):
            raise AssertionError(name)

        def __getitem__(self, key):
            raise AssertionError(key)

    scope = {"thing": Thing(), "text": "x", "mapping": {}}
    assert Expression("thing.secret").evaluate(scope) is None
    assert Expression("thing['secret']").evaluate(scope) is None
    assert Expression("thing[0]").evaluate(scope) is None
    assert Expression("text.upper").evaluate(scope) is None
    assert Expression("mapping.items").evaluate(scope) is None
    assert Expression("mapping['__class__']").evaluate(scope) is None
    assert Expression("print").evaluate(scope) is None


def test_a_missing_key_is_not_made():
    scope = defaultdict(dict)
    assert Expression("a.b").evaluate(scope) is None
    assert not scope


def test_reading_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Expression(r"'\d' == 1or 2").evaluate({}) == 2


def test_expressions_and_templates_are_known_by_their_text():
    assert Expression("a.b") == Expression("a.b") != Expression("a .b")
    assert len({Expression("a"), Expression("a"), Template("a"), Template("a")}) == 2
    assert Expression("a") != Template("a") and Expression("a") != "a"
    assert repr(Expression("a == 'x'")) == """Expression("a == 'x'")"""
    assert repr(Template("{{ a }}")) == "Template('{{ a }}')"
    assert Expression(" a").text == " a"


def test_errors_survive_the_way_between_processes():
    with pytest.raises(ExpressionError) as caught:
        Expression("1 + a")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.column) == (str(caught.value), 1)


# --- The same text, for the language and for Python's own eval -------------------------------------------------


class Box:
    """A value that Python's eval treats as the language treats it: a dot is a key, what is missing is None."""

    def __init__(self, value):
        self.value = value

    def __getattr__(self, name):
        return self[name]

    def __getitem__(self, key):
        try:
            return Box(self.value[key]) if isinstance(self.value, dict | list) else Box(None)
        except (KeyError, IndexError, TypeError):
            return Box(None)

    def __bool__(self):
        return bool(plain(self))

    def __len__(self):
        return len(plain(self))

    def __neg__(self):
        return -plain(self)

    def __contains__(self, item):
        return plain(item) in plain(self)

    __hash__ = None


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _function = getattr(operator, _name)
    setattr(Box, f"__{_name}__", lambda self, other, function=_function: function(plain(self), plain(other)))


def plain(value):
    if isinstance(value, Box):
        return plain(value.value)
    return type(value)(map(plain, value)) if isinstance(value, list | tuple) else value


def both(ours, pythons=None):
    return st.just((ours, pythons or ours))


def joined(parts, pattern):
    return tuple(pattern.format(*texts) for texts in zip(*parts, strict=True))


NAMES = ["a", "b", "steps", "none_such"]
KEYS = [".a", ".b", "['a']", "[0]", "[1]", "[-1]", ".none_such", "[7]"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, -1.0, "", "a", "ab", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=8,
)
PATHS = st.tuples(st.sampled_from(NAMES), st.lists(st.sampled_from(KEYS), max_size=3)).map(
    lambda path: ("".join([path[0], *path[1]]),) * 2
)
CONSTANTS = st.sampled_from(
    [*map(repr, ["", "a", "ab", 0, 1, 2, 0.5, None, True, False]), "true", "false", "null"]
).map(
    lambda text: (
        text,
        f"Box({text.replace('null', 'None').replace('true', 'True').replace('false', 'False')})",
    )
)
SIGNS = ["==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]


def larger(inner):
    """Pieces put together without brackets as well as with them, so that precedence counts."""
    return st.one_of(
        st.tuples(inner, st.sampled_from(SIGNS), inner).map(
            lambda parts: joined([parts[0], parts[2]], f"{{}} {parts[1]} {{}}")
        ),
        inner.map(lambda part: joined([part], "({})")),
        inner.map(lambda part: joined([part], "not {}")),
        inner.map(lambda part: joined([part], "-{}")),
        inner.map(lambda part: joined([part], "len({})")),
        st.tuples(inner, inner).map(lambda parts: (f"[{parts[0][0]}, {parts[1][0]}]", f"Box([{parts[0][1]}, {parts[1][1]}])")),
        st.tuples(inner, inner).map(lambda parts: (f"({parts[0][0]}, {parts[1][0]})", f"Box(({parts[0][1]}, {parts[1][1]}))")),
    )  # fmt: skip


@given(
    st.recursive(PATHS | CONSTANTS, larger, max_leaves=8),
    st.dictionaries(st.sampled_from(NAMES[:3]), VALUES, min_size=1),
)
@settings(max_examples=250, deadline=None)
def test_the_language_means_what_python_means(texts, scope):
    ours, pythons = texts
    names = {name: Box(scope.get(name)) for name in NAMES} | {"Box": Box, "len": len, "__builtins__": {}}
    try:
        expected = plain(eval(pythons, names))
    except SyntaxError:  # a == not b
        with pytest.raises(ExpressionError):
            Expression(ours)
        return
    except TypeError:
        expression = Expression(ours)
        with pytest.raises(ExpressionError, match="does not work for"):
            expression.evaluate(scope)
        return
    found = Expression(ours).evaluate(scope)
    assert (found, type(found)) == (expected, type(expected))


@given(st.recursive(PATHS | CONSTANTS, larger, max_leaves=8), st.data())
@settings(max_examples=60, deadline=None)
def test_only_the_paths_that_are_named_are_read(texts, data):
    try:
        expression = Expression(texts[0])
    except ExpressionError:
        assume(False)
    scope = data.draw(st.dictionaries(st.sampled_from(NAMES), VALUES))
    read = {path[0] for path in expression.paths}
    less = {name: value for name, value in scope.items() if name in read}

    def outcome(scope):
        try:
            return repr(expression.evaluate(scope))
        except ExpressionError as error:
            return str(error)

    assert outcome(scope) == outcome(less)


TOKENS = [
    *"()[]{}.,:;=<>+-*/%@~&|^!#\\'\"0123456789_ \n\t\r\f\0\ud800é\u2028\ufeff", "a", "steps", "len", "lambda", "for", "in",
    "if", "else", "not", "and", "or", "is", "await", "yield", "f'", "{{", "}}", ":=", "**", "__class__", "1e9", "null",
]  # fmt: skip


@given(st.text(max_size=40) | st.lists(st.sampled_from(TOKENS), max_size=25).map("".join))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_a_value_or_the_typed_error(text):
    for kind in (Expression, Template):
        try:
            made = kind(text)
            made.evaluate(SCOPE) if kind is Expression else made.render(SCOPE)
        except ExpressionError as error:
            assert str(error)
            assert error.column is None or 1 <= error.column <= len(text) + 1


# --- Templates --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", ""),
        ("no hole, } or }} or { alone", "no hole, } or }} or { alone"),
        ("{{goal}}", "a poem"),
        ("Write {{ goal }}, {{ round }}!", "Write a poem, 2!"),
        ("{{ goal }}{{ goal }}", "a poema poem"),
        ("<{{ nonsense.at.all }}>", "<>"),
        ("{{ tags }}", '["short","sad"]'),
        ("{{ steps.review.output['my-key'] }}", "[1,[2,3]]"),
        ("{{ [null, true, 'ä', (1.5,)] }}", '[null,true,"ä",[1.5]]'),
        ("{{ round == 2 }} {{ 0.5 }}", "True 0.5"),
        ("{{ '{{' }} {{\ngoal\n}} }}", "{{ a poem }}"),
    ],
)
def test_what_templates_write(text, written):
    assert Template(text).render(SCOPE) == written


@pytest.mark.parametrize(
    ("text", "said", "column"),
    [
        ("Write {{ goal", "opens a hole that nothing closes", 7),
        ("{{ goal }} {{ goal } }", "opens a hole that nothing closes", 12),
        ("Write {{}}", "empty", 7),
        ("Write {{  }}", "empty", 7),
        ("Write\n{{ goal + 1 }}", "'goal + 1' is not part of the language", 10),
        ("{{ goal }} {{ a.__class__ }}", "'a.__class__' has a name that begins with '_'", 15),
        ("ä {{ goal == }}", "invalid syntax", 14),
        ("{{ {{ a }} }}", "'{' was never closed", 5),
        ("{{ '}}' }}", "unterminated string", 4),
        (7, "the template must be text, got 7", None),
    ],
)
def test_a_bad_template_says_where(text, said, column):
    with pytest.raises(ExpressionError) as caught:
        Template(text)
    assert said in str(caught.value)
    assert caught.value.column == column


def test_a_hole_that_cannot_be_filled_says_where():
    template = Template("Round {{ round }}: {{ goal < 3 }}")
    with pytest.raises(ExpressionError, match="'goal < 3' does not work for 'a poem' and 3") as caught:
        template.render(SCOPE)
    assert caught.value.column == 23
    loop = []
    loop.append(loop)
    with pytest.raises(ExpressionError, match="cannot be written as text") as caught:
        Template("x{{ loop }}").render({"loop": loop})
    assert caught.value.column == 2


def test_a_template_knows_its_paths():
    template = Template("{{ b.c }} {{ a == b.c or len(d[0]) }} {{ a }}")
    assert template.paths == (("b", "c"), ("a",), ("d", "0"))
    assert template.text == "{{ b.c }} {{ a == b.c or len(d[0]) }} {{ a }}"


@given(st.lists(st.tuples(st.text(st.characters(exclude_characters="{"), max_size=9), VALUES), max_size=4))
@settings(max_examples=60, deadline=None)
def test_templates_keep_the_text_and_write_each_value(pieces):
    def written(value):
        if isinstance(value, list | dict):
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return "" if value is None else str(value)

    text = "".join(f"{before}{{{{ v[{number}] }}}}" for number, (before, _) in enumerate(pieces))
    expected = "".join(before + written(value) for before, value in pieces)
    assert Template(text).render({"v": [value for _, value in pieces]}) == expected


def test_mappings_of_any_kind_are_json():
    value = MappingProxyType({"a": MappingProxyType({"b": (1, "ä")})})
    assert Template("{{ v }}").render({"v": value}) == '{"a":{"b":[1,"ä"]}}'
