"""What the shell does itself: folders, variables, its own code."""

import itertools
import re

from . import printing
from .places import HOLE, HOME, JOB, MARKS, NAME, SECRET, SOME
from .programs import handles, known
from .walking import SEVERAL, Call, Shell
from .words import plain


@handles("cd", "pushd", "chdir")
def _cd(shell: Shell, call: Call) -> str:
    args = [arg for arg in call.args if arg in ("-", "--") or not arg.startswith("-")]
    target = next((arg for arg in args if arg != "--"), HOME if call.name != "pushd" else HOLE)
    search = shell.vars.get("CDPATH")
    if target == "-" or re.fullmatch(r"[+-]\d+", target):
        target = HOLE
    elif isinstance(search, str) and search and not target.startswith(("/", HOME, ".")):
        target = f"{search.split(':')[0]}/{target}"
    shell.go(target, sure=re.fullmatch(rf"(\.\.?/?)+|/(tmp|usr|etc|home)?/?|{HOME}", target) is not None)
    return ""


@handles("popd")
def _popd(shell: Shell, call: Call) -> str:
    shell.go(HOLE, sure=True)
    return ""


@handles("pwd")
def _pwd(shell: Shell, call: Call) -> str:
    return shell.here()


@handles("echo")
def _echo(shell: Shell, call: Call) -> str:
    return printing.echo(call.args)


@handles("printf")
def _printf(shell: Shell, call: Call) -> str:
    if call.args[:1] == ["-v"] and len(call.args) > 2:
        shell.indexed(call.args[1])
        shell.assign(call.args[1], printing.printf(call.args[2:]))
        return ""
    return printing.printf(call.args)


@handles("read", "readarray", "mapfile", "getopts")
def _read(shell: Shell, call: Call) -> str:
    """What is read is known where it is one line for one name."""
    found = call.stdin.strip("\n")
    found = found if found and "\n" not in found else HOLE
    for option, given in itertools.pairwise([*call.args, ""]):
        shell.indexed(option)
        if option == "-C":
            shell.fork().code(given)
    names = [arg for arg in call.args if re.fullmatch(r"[A-Za-z_]\w*", arg)] or [
        "MAPFILE" if call.name != "read" else "REPLY"
    ]
    if len(names) > 1 and "".join(shell.lookup("IFS")).strip():  # it may come apart anywhere
        found = HOLE
    for name in names:
        shell.assign(name, found if len(names) == 1 or MARKS.search(found) else HOLE)
    return ""


@handles("set")
def _set(shell: Shell, call: Call) -> str:
    if not call.args:
        shell.note("secret", "", "ask", "prints the variables, which may hold secrets")
        return SECRET
    rest = list(call.args)
    while rest and rest[0][:1] in "-+" and rest[0] != "--":
        rest = rest[2:] if rest[0] in ("-o", "+o") else rest[1:]
    if "--" in call.args or rest:
        shell.positional = rest[1:] if rest[:1] == ["--"] else rest
    return ""


@handles("shift")
def _shift(shell: Shell, call: Call) -> str:
    count, given = "".join(call.args) or "1", shell.positional
    if given is None or not count.isdigit():
        shell.positional = None
    elif not any(SEVERAL.search(arg) for arg in given[: int(count)]):
        shell.positional = given[int(count) :]
    return ""


@handles("let")
def _let(shell: Shell, call: Call) -> str:
    for arg in call.args:
        shell.counted_with_value(arg)
        name = re.match(r"[A-Za-z_]\w*", arg)
        if name:
            shell.counted_with(name[0])
            shell.assign(name[0], NAME)
    return ""


@handles("alias")
def _alias(shell: Shell, call: Call) -> str:
    for arg in call.args:
        name, equals, value = arg.partition("=")
        if equals:
            shell.fork().code(value)
        if equals and known(name):
            shell.note("obscure", name, "ask", "has one name stand for another program")
    return ""


@handles("unalias", "unset")
def _unset(shell: Shell, call: Call) -> str:
    for arg in call.args:
        shell.indexed(arg)
        if arg in shell.vars:
            shell.assign(arg, HOLE)
    return ""


@handles("trap")
def _trap(shell: Shell, call: Call) -> str:
    args = [arg for arg in call.args if arg != "--"]
    if len(args) > 1 and args[0] not in ("-", "-p", "-l"):
        shell.fork().code(args[0])
    return ""


@handles("eval")
def _eval(shell: Shell, call: Call) -> str:
    return shell.code(" ".join(plain(arg) for arg in call.args if arg != "--"), call.stdin)


@handles("source", ".")
def _source(shell: Shell, call: Call) -> str:
    if not call.args:
        return ""
    if call.args[0] in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        return shell.code(call.stdin)
    place = shell.touch("execute", call.args[0])
    text = shell.shared.files.get(str(place))
    return shell.code(text, call.stdin) if text is not None else ""


@handles("command")
def _command(shell: Shell, call: Call) -> str:
    todo = list(call.args)
    if todo and re.fullmatch(r"-[vV]+", todo[0]):
        return SOME
    while todo and todo[0] in ("-p", "--"):
        todo.pop(0)
    return _without_functions(shell, todo, call.stdin) if todo else ""


def _without_functions(shell: Shell, todo: list[str], stdin: str) -> str:
    other = shell.fork()
    other.functions.pop(todo[0], None)
    printed = other.invoke(todo, stdin)
    shell.cwd, shell.vars = other.cwd, other.vars
    return printed


@handles("kill")
def _kill(shell: Shell, call: Call) -> str:
    args = call.args
    if args and args[0].startswith("-"):
        args = args[2 if args[0] in ("-s", "-n") else 1 :]
    for arg in args:
        if not arg.startswith("%") and not {*arg} <= {JOB, " ", "\n"}:
            shell.note("signal", arg, "ask", "ends a process that it may not have started")
    return ""


@handles("jobs")
def _jobs(shell: Shell, call: Call) -> str:
    return JOB if "-p" in call.args else NAME
