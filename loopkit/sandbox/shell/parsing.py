"""The syntax tree of a command, and what makes its text not mean what it seems to mean."""

import functools
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from .places import HOLE, MARKS

MAX_LENGTH = 60_000
"""Characters; what is longer is not read."""
_MAX_DEPTH = 120
_MAX_REPAIRS = 8
_ONE_LINE = {
    "command", "redirected_statement", "declaration_command", "unset_command", "file_redirect", "concatenation",
    "herestring_redirect", "variable_assignment", "variable_assignments",
}  # fmt: skip
# A backslash before the end of a line joins two lines; the grammar takes the halves of a word for two words.
_GLUED = re.compile(r"(?<=[^\s\\])((?:\\\\)*)\\\n(?=\S)")


_QUOTES = {"string", "expansion", "heredoc_body"}
# The grammar's scanner looks letters up in tables made for single bytes, and crashes on others: these are spelled
# out, between two letters that a word may hold.
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]")


class Unreadable(Exception):
    """The text cannot be read to its end; the message says why."""


@functools.cache
def _bash() -> Language:
    return Language(tree_sitter_bash.language())


def parse(source: str) -> Node:
    """The tree of a command; raises Unreadable for one that is too long or nested too deep."""
    if len(source) > MAX_LENGTH:
        raise Unreadable(f"is longer than {MAX_LENGTH} characters")
    if _nesting(source) > _MAX_DEPTH:
        raise Unreadable("is nested too deep")
    root = Parser(_bash()).parse(_UNUSUAL.sub(_spelled, source).encode("ascii")).root_node
    if _depth(root) > _MAX_DEPTH:
        raise Unreadable("is nested too deep")
    return root


def _nesting(source: str) -> int:
    """An upper bound of the brackets open at once: the parser itself is slow where there are thousands."""
    deepest = level = 0
    for letter in source:
        if letter in "({[`":
            level += 1
            deepest = max(deepest, level)
        elif letter in ")}]":
            level = max(0, level - 1)
    return deepest


def _depth(root: Node) -> int:
    """Levels of the tree, counted without recursion."""
    cursor, level, deepest = root.walk(), 0, 0
    while True:
        if cursor.goto_first_child():
            level += 1
            deepest = max(deepest, level)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return deepest
            level -= 1


def _spelled(match: re.Match[str]) -> str:
    return f"\1{ord(match.group()):x}\2"


def _read(spelled: bytes) -> str:
    """The text of a part of the tree. What the grammar cut in the middle of a letter is not known."""
    found = spelled.decode("ascii")
    if "\1" not in found and "\2" not in found:
        return found
    found = re.sub(r"\x01([0-9a-f]+)\x02", lambda match: chr(int(match[1], 16)), found)
    return found.replace("\1", HOLE).replace("\2", HOLE)


def text(node: Node) -> str:
    return _read(node.text or b"")


def understood(source: str) -> tuple[Node, list[str]]:
    """The tree, and why the text may mean something else than the tree says, each as the end of a sentence."""
    root, doubts = parse(source), []
    breaks = [match.end(1) for match in _GLUED.finditer(_UNUSUAL.sub(_spelled, source))]
    if not all(_literal(root, at) for at in breaks):
        doubts.append("breaks a word over two lines")
        source = _GLUED.sub(r"\1", source)
        root = parse(source)
    for _ in range(_MAX_REPAIRS):
        lost = _lost_line_end(root)
        if lost is None:
            return root, [*doubts, *_oddities(source, root)]
        # A semicolon says the same, and is not overlooked.
        spelled = _UNUSUAL.sub(_spelled, source)
        source = _read((spelled[:lost] + " ;" + spelled[lost:]).encode("ascii"))
        root = parse(source)
    return root, [*doubts, "cannot be parted into its lines for certain"]


def _lost_line_end(root: Node) -> int | None:
    """Where the end of a line stands within a command or a word: the grammar now and then takes it for a blank."""
    todo = [root]
    while todo:
        node = todo.pop()
        todo += node.children
        data, start = node.text or b"", node.start_byte
        if node.type == "word" and b"\n" in data and (node.parent is None or node.parent.type not in _QUOTES):
            at = data.replace(b"\\\n", b"  ").find(b"\n")
            if at >= 0:
                return start + at
        if node.type not in _ONE_LINE:
            continue
        for left, right in pairwise(node.children):
            gap = data[left.end_byte - start : right.start_byte - start]
            at = gap.replace(b"\\\n", b"  ").find(b"\n")
            if at >= 0 and not left.type.startswith("heredoc") and not right.type.startswith("heredoc"):
                return left.end_byte + at
    return None


def _literal(root: Node, at: int) -> bool:
    """Whether a place of the text stands between single quotes, or in a here-document that is taken as it is."""
    node = root.descendant_for_byte_range(at, at + 1)
    while node is not None and not root.has_error:
        if node.type == "raw_string":
            return True
        if node.type == "heredoc_body" and node.parent is not None:
            return any(child.type == "heredoc_start" and quoted(child) for child in node.parent.children)
        node = node.parent
    return False


def quoted(start: Node) -> bool:
    """Whether the end word of a here-document is quoted, and its text taken as it is."""
    return any(letter in text(start) for letter in "'\"\\")


def _oddities(source: str, root: Node) -> Iterator[str]:
    if root.has_error:
        yield "cannot be read as a shell command for certain"
    for letter in sorted(set(MARKS.sub("", source))):
        if letter not in "\n\t" and unicodedata.category(letter) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp"):
            yield f"holds an invisible character (U+{ord(letter):04X})"
        elif letter != " " and unicodedata.category(letter) == "Zs":
            yield f"holds a blank that the shell takes for a letter (U+{ord(letter):04X})"


def pieces(node: Node) -> Iterator[Node | str]:
    """The children, and as strings the text that the grammar leaves between them."""
    data, start = node.text or b"", node.start_byte
    at = node.start_byte
    for child in node.children:
        if child.start_byte > at:
            yield _read(data[at - start : child.start_byte - start])
        yield child
        at = max(at, child.end_byte)
    if node.end_byte > at:
        yield _read(data[at - start :])
