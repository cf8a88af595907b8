"""The small language of flow files: expressions that read and compare, and templates with such holes.

Python's parser reads the text, but nothing of it ever runs as Python: each piece that is allowed becomes a closure
over the scope, anything else is refused. A dot looks a key up in a mapping, never an attribute of an object.
"""

import ast
import json
import math
import operator
import re
import reprlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any, NoReturn

MAX_LENGTH = 1000
"""Characters of an expression."""
MAX_DEPTH = 40
"""Brackets and operators inside one another."""

_ALLOWED = (
    "allowed are constants, names, keys (a.b, a[0], and a['my-key'] where Python would not read a name), lists, "
    "== != < <= > >= in, and, or, not, minus before a number, and len(x)"
)
_CONSTANTS = {"true": True, "false": False, "null": None}
_OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, group: item in group,
    ast.NotIn: lambda item, group: item not in group,
    ast.Not: operator.not_,
    ast.USub: operator.neg,
}
_NOTHING = object()
_REPR = reprlib.Repr()
_REPR.maxstring, _REPR.maxlevel = 80, 2

Scope = Mapping[str, Any]
Path = tuple[str, ...]
Reading = Callable[[Scope], Any]


class ExpressionError(ValueError):
    """Text that is no expression or template, or one that does not suit the values in its scope.

    `column` counts from 1 in the text of the expression or template; None when no place can be named.
    """

    def __init__(self, message: str, *, column: int | None = None) -> None:
        super().__init__(message)
        self.column = column


class _Text:
    """Something read from `text`, and known by it."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            kind = type(self).__name__.lower()
            raise ExpressionError(f"the {kind} must be text, got {_REPR.repr(text)}; write it in quotes")
        self.text = text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self.text))


class Expression(_Text):
    """One expression, such as `steps.review.output.verdict == "approve" and len(items) < 3`.

    Python's syntax and precedence, less all that a flow has no use for; `true`, `false` and `null` are constants too.
    Raises ExpressionError naming the piece that is refused and what is allowed.
    """

    paths: tuple[Path, ...]
    """Every path that is read, once, as far as it goes: `a.b[0]` is `("a", "b", "0")`. In order of appearance."""
    literals: tuple[tuple[Path, Any], ...]
    """A path and a constant it is compared with by `==`, `!=`, `in [constants]` or `not in [constants]`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        reader = _Reader(text)
        self._reading = reader.reading
        self.paths, self.literals = tuple(dict.fromkeys(reader.paths)), tuple(reader.literals)

    def evaluate(self, scope: Scope) -> Any:
        """The value in `scope`, which holds plain data. What is not there is None.

        Raises ExpressionError for values that cannot be compared, measured or negated.
        """
        return self._reading(scope)


class Template(_Text):
    """Text with holes: `Review this: {{ steps.draft.output }}`. The first `}}` ends a hole; `{{ "{{" }}` writes `{{`.

    Raises ExpressionError for a hole that is empty, not closed or no expression.
    """

    paths: tuple[Path, ...]
    """Of all holes together, as in `Expression.paths`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._pieces: list[tuple[str, int, Expression]] = []
        at = 0
        while (start := text.find("{{", at)) >= 0:
            end = text.find("}}", start)
            if end < 0:
                raise ExpressionError("'{{' opens a hole that nothing closes; add '}}'", column=start + 1)
            with _inside_hole(start):
                self._pieces.append((text[at:start], start, Expression(text[start + 2 : end])))
            at = end + 2
        self._rest = text[at:]
        self.paths = tuple(dict.fromkeys(path for *_, hole in self._pieces for path in hole.paths))

    def render(self, scope: Scope) -> str:
        """Fill the holes: text as it is, None as nothing, mappings and lists as compact JSON, all else by `str`.

        Raises ExpressionError where a hole cannot be evaluated, or what it holds cannot be written.
        """
        made = []
        for before, start, hole in self._pieces:
            with _inside_hole(start):
                made += before, _written(hole.evaluate(scope))
        return "".join([*made, self._rest])


class _Reader:
    """Reads one expression into `reading`, which evaluates it, and notes its paths and literals on the way."""

    def __init__(self, text: str) -> None:
        if not text.strip():
            raise ExpressionError(f"the expression is empty; {_ALLOWED}")
        if len(text) > MAX_LENGTH:
            raise ExpressionError(
                f"the expression has {len(text)} characters, at most {MAX_LENGTH} are allowed"
            )
        # One line, so that columns are positions, and a comment is at the end.
        source = re.sub(r"[\r\n\f]", " ", text).lstrip(" \t")
        self.shift = len(text) - len(source)
        self.paths: list[Path] = []
        self.literals: list[tuple[Path, Any]] = []
        try:
            self.source = source.encode()  # where the parser counts
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source, mode="eval").body
        except SyntaxError as error:
            place = self.shift + (error.offset or len(source) + 1)  # 0 is the end
            raise ExpressionError(
                f"cannot read {_REPR.repr(text)}: {error.msg}; {_ALLOWED}", column=place
            ) from error
        except Exception as error:  # surrogates, nesting: ValueError, MemoryError, RecursionError, …
            raise ExpressionError(f"cannot read {_REPR.repr(text)}: {error!r}; {_ALLOWED}") from error
        if b"#" in self.source[tree.end_col_offset :]:
            self.refuse(tree, "is followed by a comment; leave it out")
        if isinstance(tree, ast.Tuple) and not self.piece(tree).startswith("("):
            # x in "a", "b" would be a pair, and so always hold.
            self.refuse(tree, "is a list without brackets; write x in ['a', 'b']")
        self.reading = self.read(tree)

    def read(self, node: ast.expr, depth: int = 1) -> Reading:
        """What evaluates `node`."""
        if depth > MAX_DEPTH:
            self.refuse(node, f"is nested deeper than {MAX_DEPTH} levels; take it apart")
        if (constant := self.constant(node)) is not _NOTHING:
            return lambda scope: constant
        base, keys = self.chain(node)
        if path := _path(base, keys):
            self.paths.append(path)
            return lambda scope: reduce(_child, (base.id, *keys), scope)

        def below(*parts: ast.expr) -> list[Reading]:
            return [self.read(part, depth + 1) for part in parts]

        match node:
            case ast.Attribute() | ast.Subscript():
                (whole,) = below(base)
                return lambda scope: reduce(_child, keys, whole(scope))
            case ast.List(parts) | ast.Tuple(parts):
                items, kind = below(*parts), list if isinstance(node, ast.List) else tuple
                return lambda scope: kind(item(scope) for item in items)
            case ast.BoolOp(sign, parts):
                return _joined(below(*parts), stop=isinstance(sign, ast.Or))
            case ast.UnaryOp(ast.Not() | ast.USub() as sign, part):
                (value,) = below(part)
                return lambda scope: self.apply(node, _OPERATIONS[type(sign)], value(scope))
            case ast.Call(ast.Name("len"), [part], []):
                (value,) = below(part)
                return lambda scope: self.apply(node, len, value(scope))
            case ast.Compare(left, signs, others) if all(type(sign) in _OPERATIONS for sign in signs):
                for pair in zip([left, *others], signs, others, strict=False):
                    self.note_literals(*pair)
                return self.comparison(node, below(left, *others))
        self.refuse(node, f"is not part of the language; {_ALLOWED}")

    def comparison(self, node: ast.Compare, operands: list[Reading]) -> Reading:
        """A chain such as `a < b < c`, evaluated only as far as it holds."""

        def holds(scope: Scope) -> bool:
            left = operands[0](scope)
            for sign, operand in zip(node.ops, operands[1:], strict=True):
                right = operand(scope)
                if not self.apply(node, _OPERATIONS[type(sign)], left, right):
                    return False
                left = right
            return True

        return holds

    def note_literals(self, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> None:
        pairs: list[tuple[ast.expr, ast.expr]] = []
        match sign, right:
            case (ast.Eq() | ast.NotEq(), _):
                pairs = [(left, right), (right, left)]
            case (ast.In() | ast.NotIn(), ast.List(items) | ast.Tuple(items)):
                pairs = [(left, item) for item in items]
        for side, other in pairs:
            path, constant = _path(*self.chain(side)), self.constant(other)
            if path and constant is not _NOTHING:
                self.literals.append((path, constant))

    def chain(self, node: ast.expr) -> tuple[ast.expr, tuple[str | int, ...]]:
        """What the dots and brackets of `node` look into, and the keys they look up, outermost first."""
        keys: list[str | int] = []
        while isinstance(node, ast.Attribute | ast.Subscript):
            key = node.attr if isinstance(node, ast.Attribute) else self.constant(node.slice)
            if type(key) not in (str, int):
                self.refuse(
                    node, "needs constant text or a whole number in its brackets, as in a['key'] or a[0]"
                )
            if isinstance(node, ast.Attribute) and key.startswith("_"):
                self.refuse(node, f"has a name that begins with '_'; write a key as [{key!r}]")
            keys.append(key)
            node = node.value
        if isinstance(node, ast.Name) and node.id.startswith("_"):
            self.refuse(node, "begins with '_', which no name may")
        return node, tuple(reversed(keys))

    def constant(self, node: ast.expr) -> Any:
        """The constant that `node` is, or `_NOTHING`."""
        match node:
            case ast.Name(name) if name in _CONSTANTS:
                return _CONSTANTS[name]
            case ast.UnaryOp(ast.USub(), ast.Constant(value)) if type(value) in (int, float):
                value = -value
            case ast.Constant(value):
                pass
            case _:
                return _NOTHING
        match value:
            case None | bool():
                good = True
            case int():
                good = value.bit_length() <= 64
            case float():
                good = math.isfinite(value)
            case _:  # a backslash can write half a character
                good = isinstance(value, str) and not re.search("[\ud800-\udfff]", value)
        if not good:
            self.refuse(
                node, "is no constant here; use text, true, false, null or a number of at most 64 bits"
            )
        return value

    def apply(self, node: ast.expr, function: Callable[..., Any], *values: Any) -> Any:
        try:
            return function(*values)
        except (TypeError, ValueError, RecursionError) as error:
            self.refuse(node, f"does not work for {' and '.join(map(_REPR.repr, values))}: {error}")

    def piece(self, node: ast.expr) -> str:
        return self.source[node.col_offset : node.end_col_offset].decode()

    def refuse(self, node: ast.expr, why: str) -> NoReturn:
        column = self.shift + len(self.source[: node.col_offset].decode()) + 1
        raise ExpressionError(f"{_REPR.repr(self.piece(node))} {why}", column=column)


def _path(base: ast.expr, keys: tuple[str | int, ...]) -> Path | None:
    """The path of `keys` from a name, if `base` is one."""
    return (base.id, *map(str, keys)) if isinstance(base, ast.Name) and base.id not in _CONSTANTS else None


def _child(value: Any, key: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(key)
    if isinstance(value, list | tuple) and isinstance(key, int) and -len(value) <= key < len(value):
        return value[key]
    return None


def _joined(operands: list[Reading], *, stop: bool) -> Reading:
    """`or`, which stops at the first that holds (`stop`), or `and`, at the first that does not. Gives that value."""

    def value(scope: Scope) -> Any:
        for operand in operands:
            if bool(found := operand(scope)) is stop:
                break
        return found

    return value


def _written(value: Any) -> str:
    """A value as a template shows it."""
    try:
        if isinstance(value, Mapping | list | tuple):
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
        return "" if value is None else str(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ExpressionError(f"{_REPR.repr(value)} cannot be written as text: {error}") from error


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


@contextmanager
def _inside_hole(start: int) -> Iterator[None]:
    """Turns columns of a hole's expression into columns of its template."""
    try:
        yield
    except ExpressionError as error:
        column = start + 1 if error.column is None else start + 2 + error.column
        raise ExpressionError(str(error), column=column) from error
