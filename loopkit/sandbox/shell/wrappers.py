"""Programs that run others: shells, env, timeout, xargs, watch and their kin."""

import re
import shlex

from .places import HOLE, NAME, SECRET
from .programs import SHELLS, by_name, handles, interpret, script
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


# Options with a value, of programs whose other words are a command; then the number of words before the command.
_WRAPPERS: dict[str, tuple[str, int]] = {
    "nice": ("-n --adjustment", 0), "nohup": ("", 0), "timeout": ("-s -k --signal --kill-after", 1),
    "builtin": ("", 0), "exec": ("-a", 0), "setsid": ("", 0), "stdbuf": ("-i -o -e --input --output --error", 0),
    "ionice": ("-c -n -p --class --classdata", 0), "chrt": ("-T -P -D", 1), "taskset": ("", 1), "coproc": ("", 0),
    "time": ("-f -o --format --output", 0), "unbuffer": ("", 0), "caffeinate": ("-t -w", 0), "faketime": ("", 1),
    "prlimit": ("", 0), "linux32": ("", 0), "linux64": ("", 0), "setarch": ("", 0), "fakeroot": ("", 0), "noglob": ("", 0),
    "nocorrect": ("", 0), "catchsegv": ("", 0), "valgrind": ("", 0), "xvfb-run": ("-s -n -e -f -w -p", 0), "doppler": ("", 0),
    "choom": ("-n", 0), "dbus-run-session": ("", 0), "systemd-inhibit": ("", 0), "ltrace": ("", 0), "rlwrap": ("", 0),
    "chronic": ("", 0), "ts": ("", 0), "retry": ("", 0), "gtimeout": ("-s -k", 1), "hyperfine": ("-w -r -m -M -n", 0),
}  # fmt: skip


@handles(*_WRAPPERS)
def _wrapper(shell: Shell, call: Call) -> str:
    valued, before = _WRAPPERS[call.name]
    todo = list(call.args)
    while todo and todo[0].startswith("-"):
        option = todo.pop(0)
        if option == "--":
            break
        if option in valued.split():
            if option in ("-o", "--output") and call.name == "time" and todo:
                shell.touch("write", todo[0])
            todo[:1] = []
    todo = todo[before:]
    if call.name == "hyperfine":
        for arg in todo:
            shell.fork().code(arg)
        return NAME
    if todo and todo[0] in ("{", "(", "if", "for", "while"):
        shell.unclear(None)
        return HOLE
    return shell.invoke(todo, call.stdin, call.env) if todo else ""


@handles("env")
def _env(shell: Shell, call: Call) -> str:
    todo, other = list(call.args), shell.fork()
    while todo:
        arg = todo.pop(0)
        if arg in ("-u", "--unset", "-C", "--chdir"):
            if arg in ("-C", "--chdir") and todo:
                other.cwd = other.place(todo[0])
            todo[:1] = []
        elif arg.startswith("--chdir="):
            other.cwd = other.place(arg[8:])
        elif arg in ("-S", "--split-string") or re.match(r"-\w*S.|-vS|--split-string=", arg):
            given = (
                todo.pop(0)
                if arg in ("-S", "--split-string", "-vS") and todo
                else re.sub(r"^(-\w*?S|--split-string=)", "", arg)
            )
            return other.code(" ".join([given, *map(shlex.quote, todo)]), call.stdin)
        elif re.match(r"[A-Za-z_]\w*=", arg):
            name, _, value = arg.partition("=")
            other.assign(name, value)
        elif not arg.startswith("-") or arg == "--":
            todo = todo if arg == "--" else [arg, *todo]
            return other.invoke(todo, call.stdin, call.env) if todo else ""
    shell.note("secret", "", "ask", "prints the environment, which may hold secrets")
    return SECRET


@handles("printenv")
def _printenv(shell: Shell, call: Call) -> str:
    if not [arg for arg in call.args if not arg.startswith("-")]:
        shell.note("secret", "", "ask", "prints the environment, which may hold secrets")
        return SECRET
    return "".join(shell.lookup(arg)[0] for arg in call.args if not arg.startswith("-"))


@handles("busybox", "toybox")
def _busybox(shell: Shell, call: Call) -> str:
    return by_name(shell, Call(call.args[0], call.args[1:], call.stdin, call.source)) if call.args else ""


@handles(
    "watch",
    "script",
    "flock",
    "entr",
    "when-changed",
    "parallel",
    "sem",
    "nodemon",
    "concurrently",
    "tsx-watch",
)
def _code_wrapper(shell: Shell, call: Call) -> str:
    """Programs whose words are a command line: watch, script -c, flock, parallel."""
    todo, valued = (
        list(call.args),
        {
            "-n",
            "--interval",
            "-w",
            "-E",
            "-j",
            "--jobs",
            "-I",
            "-a",
            "--arg-file",
            "--colsep",
            "-N",
            "-d",
            "--delay",
        },
    )
    while todo and todo[0].startswith("-") and todo[0] not in ("-c", "--command"):
        option = todo.pop(0)
        if option in valued:
            todo[:1] = []
    if call.name == "flock" and todo:
        shell.touch("write", todo.pop(0))
    if call.name == "script" and todo and todo[0] not in ("-c", "--command"):
        shell.touch("write", todo.pop(0))
        todo = todo or ["sh"]
    if todo and todo[0] in ("-c", "--command"):
        return interpret(shell, "sh", todo[1] if len(todo) > 1 else HOLE, [], call.stdin)
    given = [arg for arg in todo if arg not in (":::", "::::", ":::+")]
    cut = next((at for at, arg in enumerate(todo) if arg.startswith(":::")), None)
    if call.name == "parallel":
        items = todo[cut + 1 :] if cut is not None else call.stdin.split("\n") or [HOLE]
        template = " ".join(plain(word) for word in (todo[:cut] if cut is not None else todo))
        for item in shell.turns(items):
            filled = re.sub(r"\{[./]*\}", lambda match, item=item: item, template)
            shell.fork().code(filled if filled != template else f"{template} {item}")
        return HOLE
    return shell.fork().code(" ".join(plain(arg) for arg in given), call.stdin) if given else ""


@handles("xargs", "gxargs")
def _xargs(shell: Shell, call: Call) -> str:
    """The words of the input become arguments, or replace a mark."""
    todo, mark, given, flags = list(call.args), None, call.stdin, ""
    valued = {"-n", "-P", "-L", "-s", "-d", "-E", "--max-args", "--max-procs", "--delimiter", "--max-lines"}
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
        elif option in valued:
            todo[:1] = []
    if mark is None:
        parts = given.split("\n") if any(re.match(r"-d|--delim", arg) for arg in call.args) else given.split()
        if "0" in flags or "--null" in call.args:
            parts = given.split("\0")
        items = [part for part in parts if part] or [HOLE]
        return shell.fork().invoke([*(todo or ["echo"]), *items[:200]])
    for item in shell.turns([line.strip() for line in given.split("\n") if line.strip()] or [HOLE]):
        shell.fork().invoke([word.replace(mark, item) for word in todo])
    return HOLE
