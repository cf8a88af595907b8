"""Programs that run others: shells, env, timeout, xargs, watch and their kin."""

import re

from . import printing
from .places import HOLE, SECRET
from .programs import SHELLS, handles, interpret, script
from .redirecting import contents
from .walking import Call, Shell
from .words import plain


@handles(*SHELLS)
def _shell(shell: Shell, call: Call) -> str:
    todo = list(call.args)
    while todo and todo[0][:1] in ("-", "+") and len(todo[0]) > 1:
        option = todo.pop(0)
        if option == "--":
            break
        if option in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file"):
            if todo and option.startswith("--"):
                script(shell, todo[0], "sh", [], "")
            todo[:1] = []
        elif not option.startswith("--") and "c" in option:
            if not todo:
                return ""
            return interpret(shell, "sh", plain(todo[0]), todo[2:], call.stdin)
        elif option in ("-s",) or (not option.startswith("--") and "s" in option):
            return interpret(shell, "sh", call.stdin, [arg for arg in todo if arg != "--"], "")
        elif not option.startswith("--") and "i" in option and not call.stdin:
            shell.note("obscure", "", "ask", "starts an interactive shell")
    if not todo or todo[0] in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        if not call.stdin:
            shell.note("obscure", "", "ask", "runs what comes on its input")
            return HOLE
        return interpret(shell, "sh", call.stdin, todo[1:], "")
    return script(shell, todo[0], "sh", todo[1:], call.stdin)


# Programs whose other words are a command: their options with a value, and the number of words before the command.
_WRAPPERS: dict[str, tuple[str, int]] = {
    "nice": ("-n --adjustment", 0), "nohup": ("", 0), "timeout": ("-s -k --signal --kill-after", 1), "gtimeout": ("-s -k", 1),
    "builtin": ("", 0), "exec": ("-a", 0), "setsid": ("", 0), "stdbuf": ("-i -o -e --input --output --error", 0),
    "ionice": ("-c -n -p -P -u --class --classdata", 0), "taskset": ("", 1), "coproc": ("", 0), "unbuffer": ("", 0),
    "time": ("-f -o --format --output", 0), "nocorrect": ("", 0), "noglob": ("", 0),
}  # fmt: skip


_FLAGS = {
    "--foreground", "--preserve-status", "--verbose", "--portability", "--append", "--quiet", "--wait", "--fork",
    "--all-tasks", "--cpu-list",
}  # fmt: skip


@handles(*_WRAPPERS)
def _wrapper(shell: Shell, call: Call) -> str:
    valued, before = _WRAPPERS[call.name]
    todo = list(call.args)
    while todo and todo[0].startswith("-"):
        option = todo.pop(0)
        if option == "--":
            break
        name, equals, given = option.partition("=")
        if call.name == "time" and (found := re.match(r"--output|-\w*o", option)):
            shell.touch("write", (given if equals else option[found.end() :]) or (todo or [HOLE])[0])
        letter = next((letter for letter in option[1:] if f"-{letter}" in valued.split()), "")
        if name in valued.split() or (letter and name[1] != "-" and option.endswith(letter)):
            todo[: not equals] = []
        elif name.startswith("--") and name not in _FLAGS:
            shell.note("unknown", option, "ask", "starts a program in a way that is not understood")
    todo = todo[before:]
    if todo and todo[0] in ("{", "(", "if", "for", "while"):
        shell.unclear(None)
        return HOLE
    return shell.invoke(todo, call.stdin) if todo else ""


@handles("env")
def _env(shell: Shell, call: Call) -> str:
    todo, other = list(call.args), shell.fork()
    while todo:
        arg = todo.pop(0)
        if re.match(r"[A-Za-z_]\w*=", arg):
            name, _, value = arg.partition("=")
            other.assign(name, value)
        elif arg in ("-u", "--unset"):
            todo[:1] = []
        elif not arg.startswith("-"):
            return other.invoke([arg, *todo], call.stdin)
        elif arg not in ("-i", "-", "--", "--ignore-environment"):
            shell.note("unknown", arg, "ask", "starts a program in a way that is not understood")
            return other.invoke(todo, call.stdin)
    shell.note("secret", "", "ask", "prints the environment, which may hold secrets")
    return SECRET


@handles("printenv")
def _printenv(shell: Shell, call: Call) -> str:
    if not [arg for arg in call.args if not arg.startswith("-")]:
        shell.note("secret", "", "ask", "prints the environment, which may hold secrets")
        return SECRET
    return "".join(shell.lookup(arg)[0] for arg in call.args if not arg.startswith("-"))


@handles("xargs", "gxargs")
def _xargs(shell: Shell, call: Call) -> str:
    """The words of the input become arguments, or replace a mark."""
    todo, mark, given, flags, delimiter = list(call.args), None, call.stdin, "", ""
    valued = {"-n", "-P", "-L", "-s", "-E", "--max-args", "--max-procs", "--max-lines"}
    while todo and todo[0].startswith("-"):
        option = todo.pop(0)
        flags += option if not option.startswith("--") else ""
        if option == "--":
            break
        if option in ("-I", "-i", "--replace", "-J"):
            mark = todo.pop(0) if todo and option in ("-I", "-J") else "{}"
        elif re.match(r"-I.|--replace=", option):
            mark = re.sub(r"^(-I|--replace=)", "", option)
        elif option in ("-a", "--arg-file") or option.startswith("--arg-file="):
            path = option[11:] if "=" in option else todo.pop(0) if todo else HOLE
            given = contents(shell, shell.touch("read", path))
        elif re.match(r"-d|--delimiter", option):
            delimiter = re.sub(r"-d|--delimiter=?", "", option, count=1) or (todo.pop(0) if todo else HOLE)
        elif option in valued:
            todo[:1] = []
    if delimiter not in ("", "\n", "\\n", "\0", "\\0") and not printing.only_names(given):
        given = printing.carried(given)  # it may come apart anywhere
    if mark is None:
        parts = given.split("\n") if delimiter else given.split()
        if "0" in flags or "--null" in call.args:
            parts = given.split("\0")
        items = [part for part in parts if part] or [HOLE]
        return shell.fork().invoke([*(todo or ["echo"]), *items[:200]])
    for item in shell.turns([line.strip() for line in given.split("\n") if line.strip()] or [HOLE]):
        shell.fork().invoke([word.replace(mark, item) for word in todo])
    return HOLE
