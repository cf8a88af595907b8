"""YAML with places: plain data, and the line and column that every part of it was written at.

YAML 1.2 as people read it: only `true` and `false` are booleans, only decimal numbers are numbers, a date is text.
What makes a file hard to check by eye (anchors, tags, merge keys, a key given twice) is refused.
"""

import math
import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import yaml

MAX_SIZE = 200_000
"""Bytes of a file, characters of a text."""
MAX_DEPTH = 40
"""Mappings and lists inside one another."""


class FlowError(ValueError):
    """A flow file that cannot be used as it stands. The message lists all that is wrong, one problem a line."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(tuple(problems))

    @property
    def problems(self) -> tuple[str, ...]:
        """Each begins with `name:line:column: `."""
        return self.args[0]

    def __str__(self) -> str:
        return "\n".join(self.problems)


@dataclass(frozen=True, kw_only=True)
class Source:
    """A YAML file as data that knows its places: `Source.read(path)` or `Source.parse(text)`."""

    name: str
    text: str = field(repr=False)
    data: dict[str, Any] = field(repr=False)
    """Of dict, list, str, int, float, bool and None; keys are text, numbers finite, integers of at most 64 bits."""
    _root: yaml.Node = field(repr=False, compare=False)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Source":
        """Read a UTF-8 file. Raises FlowError for one that cannot be read, and as `parse` does."""
        name = str(path)
        try:
            with open(path, "rb") as file:
                content = file.read(MAX_SIZE + 1)
        except (OSError, ValueError) as error:  # a null byte in a path is a ValueError
            raise FlowError([f"{name}:1:1: cannot be read: {getattr(error, 'strerror', error)}"]) from error
        if len(content) > MAX_SIZE:
            raise FlowError([f"{name}:1:1: is larger than {MAX_SIZE} bytes; take it apart"])
        try:
            return cls.parse(content.decode("utf-8").removeprefix("\ufeff"), name)
        except UnicodeDecodeError as error:
            place = _place_after(name, content[: error.start].decode("utf-8-sig"))
            raise FlowError([f"{place}: is not UTF-8: {error.reason}; save the file as UTF-8"]) from error

    @classmethod
    def parse(cls, text: str, name: str = "flow") -> "Source":
        """Read YAML from `text`; `name` stands before the places. Raises FlowError listing all that is wrong."""
        if len(text) > MAX_SIZE:
            raise FlowError([f"{name}:1:1: is longer than {MAX_SIZE} characters; take it apart"])
        try:
            loader = _Loader(text)
        except yaml.reader.ReaderError as error:  # its position counts from 0
            place, said = _place_after(name, text[: error.position]), f"U+{error.character:04X}"
            raise FlowError([f"{place}: the character {said} is not allowed; leave it out"]) from error
        root, data = None, None
        try:
            root = loader.get_single_node()
            data = loader.plain(root) if root else None
        except yaml.MarkedYAMLError as error:
            said = ", ".join(filter(None, (error.context, error.problem)))
            loader.refuse(error.problem_mark or loader.get_mark(), f"cannot be read: {said}")
        except Exception as error:  # an escape such as "\UFFFFFFFF" is an OverflowError, …
            loader.refuse(loader.get_mark(), f"cannot be read: {type(error).__name__}: {error}")
        else:
            if not isinstance(data, dict):
                found = {type(None): "nothing", list: "a list"}.get(type(data), "a single value")
                mark = root.start_mark if root else loader.get_mark()
                loader.refuse(mark, f"must hold a mapping, lines such as `key: value`, found {found}")
        if loader.problems:
            places = sorted(loader.problems, key=lambda problem: problem[:2])
            raise FlowError([f"{name}:{line}:{column}: {said}" for line, column, said in places])
        return cls(name=name, text=text, data=data, _root=root)

    def place(self, loc: Sequence[str | int]) -> str:
        """`name:line:column` (from 1) of the deepest part along `loc`: of a key in a mapping, of an item in a list.

        `loc` is as pydantic gives it: what is not in the file (a missing key, a union's tag) is passed over.
        """
        # A tag may be a key as well, so follow `loc` with and without each part; of equally deep ends take the last.
        reached = {id(self._root): (0, self._root, self._root.start_mark)}
        for part in loc:
            for depth, node, _ in list(reached.values()):
                if child := _child(node, part):
                    reached.setdefault(id(child[0]), (depth + 1, *child))
        *_, mark = max(reversed(reached.values()), key=lambda end: end[0])
        return f"{self.name}:{mark.line + 1}:{mark.column + 1}"

    def problem(self, loc: Sequence[str | int], text: str) -> str:
        """A line for a FlowError."""
        return f"{self.place(loc)}: {text}"


class _Loader(yaml.SafeLoader):
    """Composes nodes, notes what is refused in `problems` (line, column, words), and makes plain data of them."""

    yaml_implicit_resolvers = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.problems: list[tuple[int, int, str]] = []
        self.depth = 0

    def refuse(self, mark: yaml.Mark, why: str) -> None:
        self.problems.append((mark.line + 1, mark.column + 1, why))

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        event = self.peek_event()
        mark = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            self.get_event()
            self.refuse(mark, f"the alias *{event.anchor} is not allowed; write out what it stands for")
            return yaml.ScalarNode("alias", event.anchor, mark, mark)
        if event.anchor is not None:
            self.refuse(mark, f"the anchor &{event.anchor} is not allowed; leave it out")
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.refuse(mark, f"the tag {tag[:60]!r} is not allowed; leave it out, or quote the text")
        event.anchor = event.tag = None
        if not isinstance(event, yaml.CollectionStartEvent):
            return super().compose_node(parent, index)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            said = f"nested deeper than {MAX_DEPTH} levels"
            raise yaml.composer.ComposerError(problem=said, problem_mark=mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def plain(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item) for item in node.value]
        made: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            name, mark = self.plain(key), key.start_mark
            below = self.plain(value)
            if not isinstance(name, str):
                self.refuse(mark, f"the key {_short(name)} is not text; write it in quotes")
            elif name == "<<" and key.style is None:
                self.refuse(mark, "the merge key << is not allowed; write out what it stands for")
            elif name in made:
                said = f"is given twice, first in line {lines[name]}; leave one out"
                self.refuse(mark, f"the key {_short(name)} {said}")
            else:
                made[name], lines[name] = below, mark.line + 1
        return made

    def scalar(self, node: yaml.ScalarNode) -> Any:
        text, wrong = node.value, ""
        match node.tag:
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                if len(text) <= 25 and (number := int(text)).bit_length() <= 64:
                    return number
                wrong = "has more than 64 bits; write it in quotes if it is text"
            case "float":
                if "n" not in text.lower() and math.isfinite(number := float(text)):
                    return number
                wrong = "is no finite number; write it in quotes if it is text"
            case _:
                if re.search("[\ud800-\udfff]", text):
                    wrong = "holds half a character; write the character itself"
        if wrong:
            self.refuse(node.start_mark, f"{_short(text)} {wrong}")
        return text


for _tag, _pattern, _first in (
    ("null", r"(~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    ("bool", r"(true|True|TRUE|false|False|FALSE)\Z", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9]*)\Z", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?\Z", list("-+.0123456789")),
    ("float", r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z", list("-+.")),
):
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), _first)


def _child(node: yaml.Node, part: str | int) -> tuple[yaml.Node, yaml.Mark] | None:
    """What `part` leads to, and where it is written."""
    if isinstance(node, yaml.MappingNode):
        return next(((value, key.start_mark) for key, value in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and 0 <= part < len(node.value):
        return node.value[part], node.value[part].start_mark
    return None


def _place_after(name: str, text: str) -> str:
    """The place where `text`, the beginning of a file, ends; lines end as they do in YAML."""
    lines = re.split("\r\n|[\r\n\x85\u2028\u2029]", text)
    return f"{name}:{len(lines)}:{len(lines[-1]) + 1}"


def _short(value: Any) -> str:
    return reprlib.repr(value)
