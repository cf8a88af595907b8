"""Markdown and its front matter: read once, with the line of whatever is wrong."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from loopkit.judges.parsing import MOST, Unreadable, yaml_node

if TYPE_CHECKING:
    from markdown_it.token import Token

SUFFIXES = (".md", ".markdown")
"""What a Markdown file's name ends in."""


@dataclass(frozen=True, kw_only=True)
class FrontMatter:
    """The YAML between the two lines of dashes that a Markdown file begins with."""

    fields: Mapping[Any, Any]
    """What it says."""
    lines: Mapping[Any, int]
    """The line of each field, counted from 1."""

    def find(self, name: str) -> Any:
        """The value at a dotted name (`metadata.version`). Raises KeyError where there is none."""
        value: Any = self.fields
        for part in name.split("."):
            if not isinstance(value, Mapping):
                raise KeyError(name)
            value = value[part]
        return value

    def line(self, name: str) -> int:
        """The line of a dotted name's first part, or the first line where there is none."""
        return self.lines.get(name.partition(".")[0], 1)


def front_matter(text: str) -> FrontMatter:
    """The front matter of `text`. Raises Unreadable: there is none, it has no end, or it is no mapping in YAML."""
    import yaml

    lines = _lines(text)
    if not _dashes(lines[0]):
        raise Unreadable(1, "no front matter: the first line must be ---")
    end = _end(lines)
    if end is None:
        raise Unreadable(1, "the front matter has no end: close it with a line ---")
    node = yaml_node("\n".join(lines[1:end]), 2)
    if not isinstance(node, yaml.MappingNode):
        raise Unreadable(2, "the front matter must be fields, each `name: value`")
    try:
        fields = yaml.SafeLoader("").construct_document(node)
    except (yaml.YAMLError, ValueError) as error:  # a key that is a list, a date with a 13th month
        raise Unreadable(
            2, f"the front matter cannot be read: {getattr(error, 'problem', None) or error}"
        ) from error
    named = {key.value: key.start_mark.line + 2 for key, _ in node.value}
    return FrontMatter(fields=fields, lines=named)


@lru_cache(maxsize=8)  # several checks in a row read the same text
def parse(text: str) -> "tuple[Token, ...]":
    """The tokens of `text` as CommonMark with tables, without its front matter. Raises Unreadable above MOST characters."""
    from markdown_it import MarkdownIt

    if len(text) > MOST:
        raise Unreadable(1, f"{len(text):,} characters of Markdown: at most {MOST:,} are read")
    # text_join would make an escaped bracket look like a bracket.
    return tuple(MarkdownIt("commonmark").enable("table").disable("text_join").parse(_body(text)))


def fences(text: str) -> Iterator[tuple[str, str, int]]:
    """Each fenced block of `text`: its tag in lower case, its content, and the line on which that begins."""
    for token in parse(text):
        if token.type == "fence":
            tag = token.info.split(maxsplit=1)[0].lower() if token.info.strip() else ""
            yield tag.strip("{}."), token.content, token.map[0] + 2


def destinations(text: str) -> Iterator[tuple[str, int]]:
    """Where each link and image of `text` points, and its line."""
    for token in parse(text):
        for child, line in _children(token):
            if child.type in ("link_open", "image"):
                yield _address(child), line


def words(text: str) -> Iterator[tuple[str, int]]:
    """The plain text and the code spans of `text`, each with its line; fenced blocks are not among them."""
    for token in parse(text):
        for child, line in _children(token):
            if child.type in ("text", "code_inline"):
                yield child.content, line


def faults(text: str) -> Iterator[tuple[int, str]]:
    """What is not well formed in `text`: the line, and what is wrong there."""
    tokens = parse(text)
    lines = _lines(text)
    level = 0
    columns = 0
    for place, token in enumerate(tokens):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "fence":
            yield from _fence_faults(token, line)
        elif token.type == "heading_open" and token.level == 0:
            now = int(token.tag[1:])
            if level and now > level + 1:
                yield line, f"a heading of level {now} under one of level {level}"
            level = now
        elif token.type == "thead_open":
            columns = 0
        elif token.type == "th_open":
            columns += 1
        elif token.type == "tr_open" and tokens[place + 1].type == "td_open":
            cells = _cells(lines[token.map[0]])
            if cells != columns:
                yield line, f"a table row of {cells} cells under a header of {columns}"
        elif token.type == "html_block" and token.content.lstrip().startswith("<!--"):
            if "-->" not in token.content:
                yield line, "a comment without its end -->"
        elif token.type == "inline":
            yield from _table_faults(token, line)
            yield from _link_faults(token, line)


def _fence_faults(token: "Token", line: int) -> Iterator[tuple[int, str]]:
    inside = token.content.count("\n")
    if inside == token.map[1] - token.map[0] - 1:  # a closed one has two lines more than it holds
        yield line, f"a fence {token.markup} without its end"
    for number, text in enumerate(token.content.split("\n"), line + 1):
        if text.startswith(token.markup):
            yield (
                number,
                f"a fence within that of line {line}, which has no end, or too few of {token.markup[0]}",
            )


RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")


def _table_faults(token: "Token", line: int) -> Iterator[tuple[int, str]]:
    """A table that is none, and so was read as a paragraph."""
    rows = token.content.split("\n")
    for above, row in enumerate(rows[1:]):
        if "|" in row and RULE.fullmatch(row.strip()):
            yield line + above, f"a table header of {_cells(rows[above])} cells over a rule of {_cells(row)}"
            return
    if len(rows) > 1 and all(row.strip().startswith("|") and row.strip().endswith("|") for row in rows):
        yield line, "a table without a rule |---| under its header"


# What is still text after links were read: brackets that belong to none.
LEFT_OVER = (
    (re.compile(r"(?<![\w\]])\[[^\[\]]+\]\[[^\[\]]*\]"), "refers to a link that is not defined"),
    (re.compile(r"(?<!\w)\[[^\[\]]*\]\("), "is no link: its ) is missing, or a space is in the address"),
)
SHOWN = {"text": None, "softbreak": "\n", "hardbreak": "\n"}
"""Tokens that are text, and as what; any other is an object in it."""


def _link_faults(token: "Token", line: int) -> Iterator[tuple[int, str]]:
    plain = ""
    for child, where in _children(token):
        plain += (SHOWN[child.type] or child.content) if child.type in SHOWN else "\ufffc"
        if child.type in ("link_open", "image") and not _address(child):
            yield where, f"{'an image' if child.type == 'image' else 'a link'} that points nowhere"
    for pattern, fault in LEFT_OVER:
        for match in pattern.finditer(plain):
            said = match.group().replace("\ufffc", "…").replace("\n", " ")
            yield line + plain.count("\n", 0, match.start()), f"{said} {fault}"


def _address(child: "Token") -> str:
    return str(child.attrs["src" if child.type == "image" else "href"])


def _children(token: "Token") -> "Iterator[tuple[Token, int]]":
    """What stands in a line of text, each with the line it is on."""
    line = token.map[0] + 1 if token.map else 0
    for child in token.children or ():
        yield child, line
        line += child.type in ("softbreak", "hardbreak")


def _cells(row: str) -> int:
    """The number of cells between the pipes of `row`, which may stand in a quotation or a list."""
    row = row.strip(" \t>").removeprefix("|")
    pipes = len(re.findall(r"(?<!\\)\|", row))
    return pipes + (0 if re.search(r"(?<!\\)\|$", row) else 1)


def _lines(text: str) -> list[str]:
    """The lines as CommonMark has them: no other character than these ends one."""
    return re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))


def _dashes(line: str) -> bool:
    return line.rstrip() == "---"


def _end(lines: list[str]) -> int | None:
    """The index of the line that ends the front matter."""
    return next((index for index, line in enumerate(lines[1:], 1) if _dashes(line)), None)


def _body(text: str) -> str:
    """`text` with empty lines in the place of its front matter (what follows keeps its line), and an end to its last line."""
    lines = _lines(text)
    end = _end(lines) if _dashes(lines[0]) else None
    kept = lines if end is None else [""] * (end + 1) + lines[end + 1 :]
    return "\n".join(kept) + "\n"
