"""Redirections and here-documents: where input comes from and where output goes."""

import re
from collections.abc import Callable

from tree_sitter import Node

from . import words
from .parsing import quoted, text
from .places import ENDLESS, HOLE, Place
from .state import above
from .walking import Shell

Redirects = list[Node]
REDIRECTS = {"file_redirect", "heredoc_redirect", "herestring_redirect"}


def redirected(shell: Shell, redirects: Redirects, go: Callable[[str], str], stdin: str) -> str:
    """Run `go` with its input and output led elsewhere."""
    outputs: list[tuple[Place, bool]] = []
    after: list[Callable[[str], str]] = []
    for redirect in redirects:
        shell.source = text(redirect.parent) if redirect.parent is not None else text(redirect)
        if redirect.type == "herestring_redirect":
            stdin = "".join(shell.value(child) for child in redirect.named_children) + "\n"
        elif redirect.type == "heredoc_redirect":
            stdin = _heredoc(shell, redirect, outputs, after)
        else:
            stdin = _file(shell, redirect, outputs, stdin)
    printed = go(stdin)
    for place, more in outputs:
        if ENDLESS in printed and str(place).startswith("/dev/") is False:
            shell.note("exhaust", str(place), "refuse", "fills the disk")
        shell.shared.files[str(place)] = shell.shared.files.get(str(place), "") * more + printed
    if outputs:
        printed = ""
    for rest in after:
        printed = rest(printed)
    return printed


def _file(shell: Shell, redirect: Node, outputs: list[tuple[Place, bool]], stdin: str) -> str:
    operator = next((child.type for child in redirect.children if child.type[:1] in "<>&"), ">")
    destinations = redirect.children_by_field_name("destination")
    if redirect.has_error or not destinations:
        if not operator.endswith("-"):
            shell.unclear(redirect.parent)
        return stdin
    path = shell.value(destinations[0])
    if operator in (">&", "<&") and re.fullmatch(r"\d+-?|-", path):
        return stdin
    descriptor = next((text(child) for child in redirect.children if child.type == "file_descriptor"), "")
    if operator.startswith("<") and operator != "<>":
        place = shell.touch("read", path)
        if descriptor not in ("", "0"):
            return stdin
        return contents(shell, place)
    place = shell.touch("write", path)
    if operator == "<>":
        shell.touch("read", path)
    if descriptor in ("", "1") or operator.startswith("&"):
        outputs.append((place, ">>" in operator))
    return stdin


def contents(shell: Shell, place: Place) -> str:
    """What a file holds: known where the command wrote it."""
    path = str(place)
    if path in shell.shared.files:
        return shell.shared.files[path]
    if path in ("/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"):
        return ENDLESS
    return "" if path == "/dev/null" else HOLE


def _heredoc(shell: Shell, redirect: Node, outputs: list, after: list) -> str:
    """The text of a here-document; the grammar hangs the rest of the line on it."""
    start = next(child for child in redirect.children if child.type == "heredoc_start")
    found = next((child for child in redirect.children if child.type == "heredoc_body"), None)
    operator = "|"
    for child in redirect.children:
        if child.type in ("heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor"):
            continue
        if child.type == "file_redirect":
            _file(shell, child, outputs, "")
        elif child.type in ("&&", "||"):
            operator = child.type
        elif child.type == "ERROR" or b"\n" in (child.text or b""):
            shell.unclear(redirect.parent)
        if child.is_named and child.type not in ("file_redirect", "ERROR"):
            if child not in redirect.children_by_field_name("argument"):
                rest = (shell, child, operator)
                after.append(lambda given, rest=rest: above.continued(*rest, given))
    if found is None:
        return ""
    if quoted(start):
        lines = text(found)
    else:
        lines = words.body(found, shell)
    if any(child.type == "<<-" for child in redirect.children):
        lines = re.sub(r"^\t+", "", lines, flags=re.M)
    return lines
