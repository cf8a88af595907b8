"""Statements: lists, pipes, branches, loops, functions, redirections. Each gives what it prints, as far as known."""

import re
from collections.abc import Callable

from tree_sitter import Node

from . import words
from .assigning import WORDS, assigned, assignment, declaration, unset
from .parsing import text
from .places import NAME
from .redirecting import REDIRECTS, Redirects, redirected
from .state import above
from .walking import Shell


def run(shell: Shell, node: Node, stdin: str) -> str:
    if node.next_sibling is not None and node.next_sibling.type == "&":  # another shell runs it
        shell = shell.fork()
    handler = _STATEMENTS.get(node.type)
    if handler is not None:
        return handler(shell, node, stdin)
    if node.type in ("comment", "heredoc_body", "heredoc_end", "\n"):
        return ""
    if node.type == "ERROR":  # noted already; what can be seen in it counts all the same
        return run_all(shell, node, stdin)
    if node.type in WORDS:
        shell.fields(node)
        return ""
    shell.unclear(node, f"holds a {node.type.replace('_', ' ')}, which is not understood")
    return run_all(shell, node, stdin)


def run_all(shell: Shell, node: Node, stdin: str) -> str:
    """The statements within a node, one after the other."""
    if any(child.type == "&" for child in node.children) and "loop" in shell.stack[-1:]:
        shell.unclear(node, "starts processes in a loop")
    printed = [run(shell, child, stdin) for child in node.named_children if child.type not in REDIRECTS]
    redirects = [child for child in node.children if child.type in REDIRECTS]
    if redirects:  # $(< file)
        printed.append(redirected(shell, redirects, lambda given: given, stdin))
    return "".join(printed)


Part = tuple[str, Node, Redirects]
"""A command of a list, with the operator before it and the redirections that the grammar hung on the whole."""


def _list(shell: Shell, node: Node, stdin: str) -> str:
    """`a | b && c || d`: what may be left out leaves in doubt what it changes."""
    return _run_parts(shell, _parts(node), stdin)


def _parts(node: Node) -> list[Part]:
    """The commands in their order: the grammar now and then nests them by the wrong precedence."""
    if node.type == "redirected_statement":
        body = node.child_by_field_name("body")
        if body is None or body.type not in ("list", "pipeline"):
            return [("", node, [])]
        *parts, (operator, last, redirects) = _parts(body)
        return [
            *parts,
            (operator, last, redirects + [child for child in node.children if child.type in REDIRECTS]),
        ]
    if node.type not in ("list", "pipeline"):
        return [("", node, [])]
    parts, operator = [], ""
    for child in node.children:
        if child.type in ("&&", "||", "|", "|&"):
            operator = child.type
        elif child.is_named and child.type != "comment":
            (_, first, redirects), *rest = _parts(child)
            parts += [(operator, first, redirects), *rest]
            operator = ""
    return parts


def _run_parts(shell: Shell, parts: list[Part], stdin: str) -> str:
    """Run the commands of a list: those that pipes join are one, in shells of their own."""
    groups: list[tuple[str, list[Part]]] = []
    for part in parts:
        if part[0] in ("|", "|&") and groups:
            groups[-1][1].append(part)
        else:
            groups.append((part[0], [part]))
    printed, doubts, before, moved = [], [], (shell.cwd, *shell.elsewhere), False
    for operator, stages in groups:
        leaves = _starts(stages[-1][1], "exit|return|continue|break")
        if operator == "||":
            other = shell.fork()
            printed.append(_pipe(other, stages, stdin))
            if not leaves:
                shell.merge(other)
        if moved and (operator == "&&" or leaves):  # the change of folder did not fail
            shell.stay(shell.once_there)
        if operator != "||":
            if operator == "&&":
                doubts.append(shell.fork())
            printed.append(_pipe(shell, stages, stdin))
        moved = _starts(stages[-1][1], "cd|pushd")
    for doubt in doubts:
        shell.doubt(doubt)
    if doubts and shell.cwd != before[0]:
        shell.stay((*shell.elsewhere, *before))
    return "".join(printed)


def _pipe(shell: Shell, stages: list[Part], given: str) -> str:
    if len(stages) == 1:
        return _redirected(shell, stages[0][1], stages[0][2], given)
    for _, node, redirects in stages:
        given = _redirected(shell.fork(), node, redirects, given)
    return given


def continued(shell: Shell, node: Node, operator: str, given: str) -> str:
    """The rest of a line behind a here-document: what it is piped into, and what comes after."""
    (_, first, redirects), *rest = _parts(node)
    parts = [(operator, first, redirects), *rest]
    cut = next((at for at, part in enumerate(parts) if part[0] in ("&&", "||")), len(parts))
    for _, stage, redirects in parts[:cut]:
        given = _redirected(shell.fork(), stage, redirects, given)
    return given + _run_parts(shell, parts[cut:], "")


def _starts(node: Node, names: str) -> bool:
    """Whether the last command of a statement is one of these."""
    last = text(node).strip("{}; \n").rsplit(";")[-1].rsplit("\n")[-1]
    return re.match(rf"\s*({names})\b", last) is not None


def _subshell(shell: Shell, node: Node, stdin: str) -> str:
    return run_all(shell.fork(), node, stdin)


def _compound(shell: Shell, node: Node, stdin: str) -> str:
    if node.children and node.children[0].type == "((":
        words.arithmetic(node, shell)
        for part in re.findall(r"([A-Za-z_]\w*)\s*(?:[-+*/%]|<<|>>)?=(?!=)", text(node)):
            shell.assign(part, NAME)
        return ""
    return run_all(shell, node, stdin)


def _if(shell: Shell, node: Node, stdin: str) -> str:
    """Every branch may be taken, or none."""
    printed, branches, here = [], [], shell
    for child in node.children:
        if child.type in ("then", "elif_clause", "else_clause"):
            here = shell.fork()
            branches.append(here)
        if child.type == "elif_clause":
            printed.append(_if(here, child, stdin))
        elif child.is_named:
            printed.append(run(here, child, stdin))
    for branch in branches:
        shell.merge(branch)
    return "".join(printed)


def _case(shell: Shell, node: Node, stdin: str) -> str:
    printed, branches = [], []
    for child in node.named_children:
        if child.type == "case_item":
            branches.append(branch := shell.fork())
            patterns = child.children_by_field_name("value")
            for pattern in patterns:
                branch.value(pattern)
            printed += [run(branch, part, stdin) for part in child.named_children if part not in patterns]
        elif child.type != "comment":
            shell.value(child)
    for branch in branches:
        shell.merge(branch)
    return "".join(printed)


def _for(shell: Shell, node: Node, stdin: str) -> str:
    variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
    if variable is None or body is None:
        shell.unclear(node)
        return run_all(shell, node, stdin)
    items = [item for child in node.children_by_field_name("value") for item in shell.fields(child)]
    if not any(child.type == "in" for child in node.children):
        items = shell.lookup("@")
    before, printed = shell.fork(), []
    for item in shell.turns(items):
        # A name that came out of a pattern may look like anything, but leads nowhere else.
        shell.assign(text(variable), item)
        printed.append(_turn(shell, body, stdin))
    if not items:
        shell.merge(before)
    return "".join(printed)


def _turn(shell: Shell, body: Node, stdin: str) -> str:
    before, shell.stack = shell.stack, (*shell.stack, "loop")
    printed = run(shell, body, stdin)
    shell.stack = before
    return printed


def _while(shell: Shell, node: Node, stdin: str) -> str:
    """Walked twice, the second time with what the first may have changed."""
    body = node.child_by_field_name("body")
    conditions = [child for child in node.children_by_field_name("condition") if child.is_named]
    if body is None or not conditions:
        shell.unclear(node)
        return run_all(shell, node, stdin)
    printed = []
    for _ in range(2):
        before = shell.fork()
        printed = [run(shell, condition, stdin) for condition in conditions]
        printed.append(_turn(shell, body, stdin))
        shell.merge(before)
    endless = text(conditions[-1]).strip() in ("true", ":", "[ 1 ]", "((1))", "1", "/bin/true")
    if endless and not re.search(r"\b(break|exit|return)\b", text(body)):
        shell.unclear(node, "goes on without end")
    return "".join(printed)


def _c_style_for(shell: Shell, node: Node, stdin: str) -> str:
    body = node.child_by_field_name("body")
    for child in node.named_children:
        if child.type == "variable_assignment":
            name = child.child_by_field_name("name")
            shell.assign(text(name), NAME)
    for name in re.findall(r"[A-Za-z_]\w*", text(node).split("))")[0]):
        shell.counted_with(name)
    if body is None or node.child_by_field_name("condition") is None:
        shell.unclear(node, "goes on without end")
    return _turn(shell, body, stdin) if body is not None else ""


def _function(shell: Shell, node: Node, stdin: str) -> str:
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is None or body is None:
        shell.unclear(node)
    else:
        shell.define(text(name), body)
        shell.shared.called.discard(text(name))
    return ""


def _test(shell: Shell, node: Node, stdin: str) -> str:
    """[ … ] and [[ … ]]: expansions happen, -v and -ef look, nothing changes."""
    todo = list(node.named_children)
    while todo:
        child = todo.pop()
        if child.type in WORDS:
            shell.indexed(shell.value(child))
        elif child.type not in ("test_operator", "regex", "extglob_pattern") or child.named_child_count:
            todo += child.named_children
    return ""


# --- commands ---


def _command(shell: Shell, node: Node, stdin: str, more: list[Node] | None = None) -> str:
    """A simple command; `more` are words that the grammar hung on a redirection before them."""
    compound = re.match(r"(time|coproc)\s+(?:-p\s+|\w+\s+)?(?=[({])", text(node))
    if compound:  # to the grammar these are the names of programs
        return shell.code(text(node)[compound.end() :], stdin)
    env, redirects = {}, []
    names: list[Node] = []
    for child in node.children:
        if child.type == "variable_assignment":
            shell.source = text(node)
            name, found = assigned(shell, child)
            env[name] = found
        elif child.type in REDIRECTS:
            redirects.append(child)
            names += child.children_by_field_name("destination")[1:]
        elif child.is_named and child.type != "comment":
            names.append(child)
    argv = [word for child in [*names, *(more or [])] for word in shell.fields(child)]
    shell.source = text(node)

    def go(given: str) -> str:
        saved = {name: shell.vars.get(name) for name in env}
        for name, found in env.items():
            shell.assign(name, found)
        shell.source = text(node)
        printed = shell.invoke(argv, given)
        if argv:
            for name, found in saved.items():
                shell.vars.pop(name, None) if found is None else shell.vars.update({name: found})
        return printed

    return redirected(shell, redirects, go, stdin)


def _redirected_statement(shell: Shell, node: Node, stdin: str) -> str:
    body = node.child_by_field_name("body")
    redirects = [child for child in node.children if child.type in REDIRECTS]
    for child in node.children:
        if child.type == "ERROR":
            run(shell, child, stdin)
    if body is None:
        return redirected(shell, redirects, lambda given: "", stdin)
    if body.type in ("list", "pipeline"):
        return _list(shell, node, stdin)
    return _redirected(shell, body, redirects, stdin)


def _redirected(shell: Shell, node: Node, redirects: Redirects, stdin: str) -> str:
    """Run a statement under redirections; to the grammar the words of a command may belong to one of them."""
    if node.type != "command" or not redirects:
        return redirected(shell, redirects, lambda given: run(shell, node, given), stdin)
    more = [word for child in redirects for word in child.children_by_field_name("destination")[1:]]
    more += [word for child in redirects for word in child.children_by_field_name("argument")]
    return redirected(shell, redirects, lambda given: _command(shell, node, given, more), stdin)


_STATEMENTS: dict[str, Callable[[Shell, Node, str], str]] = {
    "program": run_all, "do_group": run_all, "compound_statement": _compound, "list": _list,
    "pipeline": _list, "subshell": _subshell, "negated_command": run_all, "else_clause": run_all, "if_statement": _if,
    "case_statement": _case, "for_statement": _for, "while_statement": _while, "c_style_for_statement": _c_style_for,
    "function_definition": _function, "test_command": _test, "variable_assignment": assignment,
    "variable_assignments": run_all, "declaration_command": declaration, "unset_command": unset,
    "command": _command, "redirected_statement": _redirected_statement,
}  # fmt: skip


above.run, above.run_all, above.continued = run, run_all, continued
