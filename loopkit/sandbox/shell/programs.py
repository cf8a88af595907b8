"""From the words of a command to the program they name, and what a row of the table says of it."""

import re
from collections.abc import Callable

from . import printing
from .places import (
    ALL,
    ANYTHING,
    ENDLESS,
    FOLDER,
    GLOBS,
    HOLE,
    HOME,
    NAME,
    NET,
    SECRET,
    SOME,
    Place,
    secret,
    weigh,
)
from .redirecting import contents
from .state import above
from .table import LOOKS, NEVER, VERDICTS, Spec, table
from .walking import Call, Shell
from .words import plain

Handler = Callable[[Shell, Call], str]
HANDLERS: dict[str, Handler] = {}
# python3.11, gcc-12, mkfs.ext4
_VERSION = re.compile(r"-?\d[\d.]*$|(?<=^mkfs)\.\w+$")
_BIN = {"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a function for the programs of these names."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


def invoke(shell: Shell, call: Call) -> str:
    """Find what the first word names, and what it does with the others."""
    name = call.name
    if ANYTHING.search(name) or name in (NAME, SOME):
        shell.run_unknown(name)
        for arg in call.args:
            own(shell, arg)
        return printing.carried(call.stdin)
    if any(glob in name for glob in GLOBS):
        shell.note("obscure", name, "refuse" if "/" in name else "ask", "names its program by a pattern")
        return HOLE
    if name in shell.functions and not known(name):
        return shell.call(name, call.args, call.stdin)
    if name in shell.functions:
        # The definition may not have taken place, or be undone: the program counts, too.
        other = shell.fork()
        printed = shell.call(name, call.args, call.stdin), by_name(other, call)
        shell.merge(other)
        return printed[0] if printed[0] == printed[1] else printing.carried("".join(printed))
    if "/" in name:
        return by_path(shell, call)
    return by_name(shell, call)


def known(name: str) -> bool:
    return name in HANDLERS or name in table()


def by_name(shell: Shell, call: Call) -> str:
    name = call.name
    plainly = name if known(name) else _VERSION.sub("", name)
    handler, spec = HANDLERS.get(plainly), table().get(plainly)
    if handler is None and spec is None:
        shell.note("unknown", name, "ask", f"runs {plain(name)!r}, a program that is not known here")
        for arg in call.args:
            own(shell, arg)
        return printing.carried(call.stdin)
    looks = LOOKS.get(name, NEVER).fullmatch(" ".join(call.args))
    if looks or call.args in (["--version"], ["--help"], ["-V"]):
        return NAME
    return handler(shell, call) if handler is not None else by_row(shell, call, spec)


def by_path(shell: Shell, call: Call) -> str:
    place, base = shell.place(call.name), call.name.rsplit("/", 1)[-1]
    written = str(place) in shell.shared.files
    plainly = known(base) or known(_VERSION.sub("", base))
    installed = place.parts[-2:-1] in (("bin",), (".bin",), ("Scripts",)) or base in ("gradlew", "mvnw")
    of_the_folder = place.base == "folder" and installed and plainly and not written
    if of_the_folder or str(place).rpartition("/")[0] in _BIN:
        return by_name(shell, Call(base, call.args, call.stdin))
    if re.search(r"\s", call.name):
        shell.note("obscure", call.name, "ask", "runs a program with blanks in its name")
    return script(shell, call.name, "", call.args, call.stdin)


def script(shell: Shell, path: str, language: str, args: list[str], stdin: str) -> str:
    """Run a file. What the command itself wrote is read; what stood in the folder before is the agent's own."""
    place = shell.touch("execute", path)
    text = shell.shared.files.get(str(place))
    for arg in args:
        own(shell, arg)
    if text is None:
        return printing.carried(stdin)
    interpreter = language
    match = re.match(r"#!\s*(?:/usr/bin/env\s+(?:-S\s+)?)?(\S+)", text)
    if not language:
        interpreter = match[1].rsplit("/", 1)[-1] if match else "sh"
    return interpret(shell, interpreter, text, args, stdin)


def interpret(shell: Shell, interpreter: str, text: str, args: list[str], stdin: str) -> str:
    """Run text in a language named by its interpreter."""
    interpreter = re.sub(r"[\d.]+$", "", interpreter)
    if interpreter in SHELLS:
        other = shell.fork()
        other.positional = args
        other.vars.pop("IFS", None)
        return other.code(text, stdin)
    if ANYTHING.search(text):
        shell.run_unknown(text)
        return printing.carried(text)
    if interpreter == "python":
        return above.python(shell, text, args, stdin)
    return above.snippet(shell, interpreter, text, args)


def own(shell: Shell, arg: str) -> None:
    """An argument of a program of the folder: text, unless it names a path elsewhere, or a host."""
    word = re.sub(r"^(-{0,2}[\w.-]+=|-[A-Za-z](?=[/\ue007]))", "", arg)
    if re.match(r"[a-z][a-z0-9+.-]*://", word) and not word.startswith("file://"):
        shell.note("network", word, "ask", "is given an address of the network")
        return
    word = word.removeprefix("file://").removeprefix("@")
    if (
        word.startswith(("/", HOME, "../"))
        or "/../" in word
        or word == ".."
        or (secret(shell.place(word)) and "/" in word)
    ):
        shell.touch("read", word)
    elif NET in word or SECRET in word:
        shell.note("obscure", word, "ask", "passes on what it got from elsewhere")


SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish", "rbash", "yash", "busybox-sh"}


_UNPACK = {"unzip", "cpio", "patch", "split", "csplit", "7z", "7za", "7zr"}


def by_row(shell: Shell, call: Call, spec: Spec) -> str:
    """What a row of the table says."""
    name, printed, sources = call.name, [], []
    if spec.operands == ["own*"] or name in _UNPACK:
        shell.works_here()
    for role, arg in spec.sort(call.args):
        if role == "read" and name in ("less", "more") and re.match(r"\+.*[!|]", arg):
            shell.note("obscure", arg, "ask", "gives a command to the pager")
        elif role == "read":
            place = shell.touch("read", arg)
            hidden = secret(place) and place.base != "folder"
            printed.append(call.stdin if arg == "-" else SECRET if hidden else contents(shell, place))
            sources.append(place)
        elif role in ("write", "enter"):
            place = shell.touch("write", arg)
            if "network" in spec.traits:
                shell.shared.files[str(place)] = NET
            elif spec.operands[:1] != ["own*"]:
                written(shell, name, place, call.stdin if name in ("tee", "sponge") else sources)
        elif role in ("delete", "move"):
            # What moves within the folder is not lost.
            grave = weigh("delete", shell.place(arg), shell.shared.policy)[0] != "allow"
            if role == "delete" or grave or shell.strays("delete", arg):
                shell.touch("delete", arg)
            else:
                sources.append(shell.touch("read", arg))
        elif role == "code":
            shell.fork().code(arg, call.stdin)
        elif role == "inline":
            shell.note("obscure", "", "ask", "runs a program in a language that is not read here")
        elif role == "own" or (role == "value" and re.match(r"/\w|~|\ue007|\.\./", arg)):
            own(shell, arg)
    _special(shell, call)
    for kind, reason in spec.traits.items():
        if kind == "network":  # what it saves has the name that it has there
            names = [arg.rsplit("/", 1)[-1] for arg in call.args if "://" in arg]
            shell.shared.files.update(dict.fromkeys((str(shell.place(name)) for name in names), NET))
        if kind == "network" and any(SECRET in part for part in [call.stdin, *call.args]):
            shell.note(kind, plain(name), "refuse", "sends secrets away")
        elif kind != "out":
            shell.note(kind, plain(name), VERDICTS[kind], reason)
    return _printed(shell, call, spec.traits, "".join(printed) if printed else None)


def _special(shell: Shell, call: Call) -> None:
    """Programs that print the environment, or set what they usually show, for one letter or word."""
    first = call.args[0] if call.args else ""
    if call.name == "ps" and re.fullmatch(r"[a-zA-Z]*[eE][a-zA-Z]*|-E", first):
        shell.note("secret", "", "ask", "prints the environment of processes, which may hold secrets")
    if call.name in ("jq", "gojq", "yq") and any(
        re.search(r"(?<![.\w])env\b|\$ENV|\bstrenv\b", arg) for arg in call.args
    ):
        shell.note("secret", "ENVIRON", "ask", "reads the environment, which may hold secrets")
    if call.name == "unzip" and any(re.match(r"-\w*:", arg) for arg in call.args):
        shell.note("write", "", "ask", "unpacks to wherever the archive says")
    if call.name == "date" and any(re.match(r"-s|--set", arg) for arg in call.args):
        shell.note("system", "", "refuse", "sets the clock")
    if call.name in ("test", "[", "wait"):
        for arg in call.args:
            shell.indexed(arg)


def written(shell: Shell, name: str, place: Place, found: "str | list[Place]") -> None:
    """Remember what a file now holds."""
    files = shell.shared.files
    if isinstance(found, str):
        if ENDLESS in found and not str(place).startswith("/dev/"):
            shell.note("exhaust", str(place), "refuse", "fills the disk")
        files[str(place)] = found
    elif name in ("cp", "mv", "install"):
        for source in found:
            if ENDLESS in contents(shell, source) and name != "mv":
                shell.note("exhaust", str(place), "refuse", "fills the disk")
            if str(source) in files:
                into = Place(place.base, (*place.parts, *source.parts[-1:]))
                files[str(place)] = files[str(into)] = files[str(source)]
    elif name not in ("mkdir", "touch", "truncate", "chmod", "rmdir", "fallocate"):
        files[str(place)] = HOLE


def _printed(shell: Shell, call: Call, traits: dict[str, str], read: str | None) -> str:
    out = traits.get("out", "")
    given = call.stdin if read is None else read
    if call.name == "dirname" and call.args:
        return _parent(call.args[-1])
    if call.name == "which" and call.args:
        return f"/usr/bin/{call.args[-1]}"
    if out == "name":
        return NAME
    if out == "args":
        return "\n".join(arg for arg in call.args if not arg.startswith("-"))
    if out == "endless":
        return ENDLESS
    if "network" in traits:
        return NET
    if call.name in ("cat", "tee", "sponge") and not any(re.match(r"-\w", arg) for arg in call.args):
        return given
    if call.name in ("ls", "dir", "vdir", "tree"):
        names = [arg for arg in call.args if not arg.startswith("-")] or ["."]
        return "\n".join(name if any(glob in name for glob in GLOBS) else ALL for name in names)
    if out == "some":
        return _grepped(call, read)
    if call.name in ("head", "tail"):
        whole = not any(re.match(r"-\w*c|--bytes", arg) for arg in call.args)
        return (printing.narrowed(given) if whole else printing.carried(given)).replace(ENDLESS, HOLE)
    joined = " ".join(call.args)
    if call.name == "cut" and "--output" not in joined and re.search(r"(^| )(-d ?)?/( |$)", joined):
        return printing.narrowed(given)  # names of a path
    if printing.only_names(given) and (call.name == "cut" or (call.name == "tr" and "-d" in call.args)):
        return NAME
    return printing.narrowed(given) if out == "pass" and given else printing.carried(given)


def _parent(path: str) -> str:
    if "/" in path:
        return path.rstrip("/").rpartition("/")[0] or "/"
    return f"{path}/.." if path[:1] in (FOLDER, HOME) else HOLE if ANYTHING.search(path) else "."


def _grepped(call: Call, read: str | None) -> str:
    flags = {letter for arg in call.args if re.fullmatch(r"-[A-Za-z]+", arg) for letter in arg[1:]}
    if flags & {"l", "L"} or "--files-with-matches" in call.args or "--files" in call.args:
        return SOME
    if flags & {"c", "q"}:
        return NAME
    if flags & {"o", "r"} or re.search(r" --(only-matching|replace|output)", f" {' '.join(call.args)}"):
        return printing.carried(call.stdin + (read or ""))  # pieces of lines
    return printing.narrowed(call.stdin) if read is None and call.stdin else printing.carried(read or "")


above.invoke = invoke
