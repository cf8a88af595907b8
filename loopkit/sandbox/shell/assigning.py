"""Statements that set variables."""

import re

from tree_sitter import Node

from .parsing import text
from .places import HOLE, SECRET
from .walking import Shell
from .words import plain

WORDS = {
    "word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "expansion",
    "simple_expansion", "command_substitution", "process_substitution", "arithmetic_expansion", "brace_expression",
}  # fmt: skip


def assignment(shell: Shell, node: Node, stdin: str) -> str:
    name, found = assigned(shell, node)
    shell.assign(name, found, more="+=" in [child.type for child in node.children])
    return ""


def assigned(shell: Shell, node: Node) -> tuple[str, str | list[str]]:
    name, given = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None:
        shell.unclear(node)
        return "_", HOLE
    if name.type == "subscript":
        index = name.child_by_field_name("index")
        if index is not None:
            shell.counted_with_value(shell.value(index))
        inner = name.child_by_field_name("name")
        if given is not None:
            shell.value(given)
        return text(inner) if inner is not None else "_", HOLE
    if given is None:
        return text(name), ""
    if given.type == "array":
        items = [item for child in given.named_children for item in shell.fields(child)]
        if any(re.match(r"[\ue15b[].*[\ue15d\]]=", item) for item in items):  # [key]=value
            found = {re.sub(r"^[\ue15b[].*?[\ue15d\]]=", "", item) for item in items}
            return text(name), HOLE if len(found) > 1 else found.pop()
        return text(name), items
    return text(name), shell.value(given)


def declaration(shell: Shell, node: Node, stdin: str) -> str:
    """export, declare, local, readonly, typeset."""
    shell.source = text(node)
    listed = not any(child.type in ("variable_assignment", "variable_name") for child in node.named_children)
    keyword = text(node.children[0])
    option = " ".join(text(part) for part in node.named_children if part.type == "word")
    inside = keyword == "local" or (
        keyword in ("declare", "typeset") and "g" not in option and _in_function(shell)
    )
    for child in node.named_children:
        if child.type == "variable_assignment":
            name, found = assigned(shell, child)
            shell.source = text(node)
            # -n makes a name for another variable, -i computes.
            if "n" in option and keyword != "export":
                shell.unclear(node, "makes a name for another variable")
            if "i" in option and isinstance(found, str):
                shell.counted_with_value(found)
            shell.assign(name, found)
        elif child.type == "variable_name":
            name = text(child)
            if inside and name not in shell.locals:
                shell.assign(name, "")
        elif child.type != "word":
            for word in shell.fields(child):
                shell.indexed(word)
                name, equals, found = word.partition("=")
                shell.assign(plain(name), found if equals else HOLE)
        if child.type in ("variable_assignment", "variable_name"):
            if inside:
                shell.locals.add(name)
            elif keyword == "readonly" or "r" in option:
                shell.shared.fixed.add(name)
    if listed and not re.search(r"-\w*[fF]", text(node)):
        shell.note("secret", "", "ask", "prints the variables, which may hold secrets")
        return SECRET
    return ""


def _in_function(shell: Shell) -> bool:
    return any(part.startswith("call ") for part in shell.stack)


def unset(shell: Shell, node: Node, stdin: str) -> str:
    shell.source = text(node)
    for child in node.named_children:
        shell.indexed(shell.value(child) if child.type in WORDS else text(child))
        if "-f" not in text(node).split():
            shell.assign(text(child), "")
    return ""
