"""Short Python programs, given on the command line or in a here-document, read as a tree.

Allowed is what provably stays with harmless modules and with files of the folder. A module that is not of the
standard library is the folder's own or was installed on purpose: its functions are taken as the agent's programs.
"""

import ast
import re
import sys
import warnings

from . import printing
from . import python_facts as facts
from .places import ANYTHING, HOLE, NAME
from .programs import HANDLERS, handles, own, script
from .python_values import Values
from .state import above
from .table import table
from .walking import Call, Shell
from .words import plain


def snippet(shell: Shell, source: str, args: list[str], stdin: str) -> str:
    """Read a program and note what it does; gives what it prints, as far as known."""
    for arg in args:
        own(shell, arg)
    source = source.replace(NAME, "_0")  # a plain word, or a number, within the program
    if ANYTHING.search(source):
        shell.run_unknown(source)
        return HOLE
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the program's own mistakes
            tree = ast.parse(source)
        _Reader(shell, Values(tree, args)).visit(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        shell.note("obscure", "", "ask", "runs Python that cannot be read")
    return printing.carried(stdin)


class _Reader(ast.NodeVisitor):
    """Walks a program and notes what it does."""

    def __init__(self, shell: Shell, values: Values) -> None:
        self.shell = shell
        self.values = values

    def ask(self, what: str) -> None:
        self.shell.note("obscure", what, "ask", f"runs Python that {what}")

    def network(self, what: str) -> None:
        self.shell.note("network", what, "ask", f"runs Python that reaches the network ({what})")

    # --- modules ---

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            self.load(name.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for name in node.names:
            full = f"{module}.{name.name}"
            if (
                name.name == "*"
                and module.split(".")[0] in sys.stdlib_module_names
                and module not in facts.SAFE
            ):
                self.ask(f"takes all names of {module}")
            self.load(full if full in facts.SAFE | facts.NETWORK else module)
            self.use(full)

    def load(self, module: str) -> None:
        top = module.split(".")[0]
        if module in facts.SAFE or top in facts.SAFE:
            return
        if module in facts.NETWORK or top in facts.NETWORK:
            self.network(module)
        elif module not in ("os", "sys", "shutil", "subprocess", "importlib.util") and (
            top in facts.EVIL or top in sys.stdlib_module_names
        ):
            self.ask(f"loads {module}")

    def use(self, full: str) -> None:
        """Something of a module is named."""
        top, *rest = full.split(".")
        if not rest:
            return
        if full in ("os.environ", "os.getenv", "os.environb"):
            self.shell.note(
                "secret", full, "ask", "runs Python that reads the environment, which may hold secrets"
            )
        elif full in facts.PATHS or full in facts.RUNS:
            return
        elif (
            {"": facts.OS, "os": facts.OS, "sys": facts.SYS}.get(top, {rest[0]}).isdisjoint(rest[:1])
            or (
                top in ("shutil", "subprocess")
                and rest[0] not in ("PIPE", "DEVNULL", "STDOUT", "CalledProcessError")
            )
            or full in facts.SHARP
            # A method that is given the object it is called on.
            or (
                rest[-2:-1] != []
                and rest[-2][:1].isupper()
                and rest[-1] in {*facts.METHODS, "open", "replace"}
            )
            or any(
                part in facts.LEADS_ON or (part.startswith("_") and part not in facts.DUNDERS)
                for part in rest
            )
        ):
            self.ask(f"uses {full}")
        elif top in facts.NETWORK and full.rsplit(".", 1)[0] != top:
            self.load(full.rsplit(".", 1)[0])

    # --- names ---

    def visit_Name(self, node: ast.Name) -> None:
        full = self.values.modules.get(node.id)
        if node.id in facts.BUILTINS or (node.id in ("open", "getattr", "setattr") and full is None):
            self.ask(f"uses {node.id}")
        elif (
            full in ("os", "sys", "shutil", "subprocess") or facts.PATHS.get(full or "") or full in facts.RUNS
        ):
            self.ask(f"passes {full} on")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        full = self.values.dotted(node)
        if full is None:
            hidden = node.attr.startswith("__") and node.attr not in facts.DUNDERS
            if hidden or node.attr in facts.LEADS_ON or node.attr in facts.SHARP_METHODS:
                self.ask(f"uses {node.attr}")
            self.visit(node.value)
            return
        self.use(full)
        if facts.PATHS.get(full) or full in facts.RUNS:
            self.ask(f"passes {full} on")

    # --- calls ---

    def visit_Call(self, node: ast.Call) -> None:
        full = self.values.dotted(node.func)
        name = node.func.id if isinstance(node.func, ast.Name) and full is None else None
        if full is not None:
            self.use(full)
            self.function(node, full)
        elif name == "open":
            self.opened(node, node.args[0] if node.args else None, node.args[1:2])
        elif name in ("getattr", "setattr"):
            self.attribute(node)
        elif isinstance(node.func, ast.Attribute):
            self.method(node, node.func)
        else:
            self.visit(node.func)
        if any(keyword.arg == "allow_pickle" for keyword in node.keywords):
            self.ask("loads pickled objects")
        if name != "print" and any(_is_address(arg) for arg in node.args):
            self.network("an address")
        for child in [*node.args, *node.keywords]:
            self.visit(child)

    def function(self, node: ast.Call, full: str) -> None:
        """A function of a module is called."""
        if full in facts.RUNS:
            self.runs(node, facts.RUNS[full])
            return
        kinds = facts.PATHS.get(full, ())
        if full.endswith((".open", ".ZipFile", ".FileIO")) and kinds:
            self.opened(node, node.args[0] if node.args else None, node.args[1:2])
            return
        if full.endswith(".savefig"):
            kinds = ("write",)
        for kind, arg in zip(kinds, node.args, strict=False):
            self.shell.touch(kind, self.values.value(arg))
        if len(node.args) < len(kinds) and (kinds != ("read",) or node.keywords):
            self.ask(f"calls {full} with arguments that are not understood")

    def attribute(self, node: ast.Call) -> None:
        """getattr and setattr: with a plain name, on an object that is no module."""
        wanted = node.args[1] if len(node.args) > 1 else None
        named = (
            isinstance(wanted, ast.Constant)
            and isinstance(wanted.value, str)
            and not wanted.value.startswith("_")
        )
        if (
            not named
            or wanted.value in facts.LEADS_ON | facts.SHARP_METHODS
            or self.values.dotted(node.args[0])
        ):
            self.ask("names attributes at run time")

    def method(self, node: ast.Call, function: ast.Attribute) -> None:
        """A method of some object is called: what it is called on may be a path."""
        name, inner = function.attr, self.values.value(function.value)
        if name in facts.METHODS:
            kind, on_itself = facts.METHODS[name]
            if on_itself or node.args:
                self.shell.touch(kind, inner if on_itself else self.values.value(node.args[0]))
        if name in ("rename", "symlink_to", "hardlink_to") or (name == "replace" and len(node.args) == 1):
            self.shell.touch("write", self.values.value(node.args[0]) if node.args else HOLE)
        elif name in ("run", "runctx") and any(isinstance(arg, ast.Constant) for arg in node.args):
            self.ask(f"runs text ({name})")
        elif name == "open":
            self.opened(node, function.value, node.args[:1])
        self.visit_Attribute(function)

    def opened(self, node: ast.Call, path: ast.expr | None, mode: list[ast.expr]) -> None:
        """A file is opened: for reading, unless the mode is another or is not known."""
        mode = [keyword.value for keyword in node.keywords if keyword.arg == "mode"] or mode
        reads = not mode or (
            isinstance(mode[0], ast.Constant) and re.fullmatch(r"[rbtU]*", str(mode[0].value))
        )
        target = self.values.value(path) if path is not None else HOLE
        self.shell.touch("read" if reads else "write", target)

    def runs(self, node: ast.Call, how: str) -> None:
        """A program is run: its words are judged as those of a command."""
        first = node.args[0] if node.args else None
        given = {keyword.arg for keyword in node.keywords}
        if first is None or given & {"env", "executable", "preexec_fn", "cwd", None}:
            self.ask("runs a program in another place or way")
        if first is None:
            return
        if isinstance(first, ast.List | ast.Tuple) and "shell" not in given:
            self.shell.fork().invoke([self.values.value(item) for item in first.elts])
        else:
            found = self.values.value(
                first.elts[0] if isinstance(first, ast.List | ast.Tuple) and first.elts else first
            )
            self.shell.fork().code(found) if how == "code" or "shell" in given else self.shell.fork().invoke(
                [found]
            )


def _is_address(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.match(r"(https?|ftp|s3|gs|ssh)://", node.value) is not None
    )


# --- the interpreter ---

_MODULES = {
    "unittest", "json.tool", "compileall", "py_compile", "doctest", "tokenize", "ast", "dis", "calendar", "sysconfig",
    "platform", "inspect", "this", "gzip", "base64", "zipfile", "tarfile",
}  # fmt: skip
_RUNNERS = {"coverage", "cProfile", "profile", "trace", "kernprof"}


@handles("python", "pypy", "ipython", "py")
def _python(shell: Shell, call: Call) -> str:
    todo = list(call.args)
    while todo and todo[0].startswith("-") and len(todo[0]) > 1:
        option = todo.pop(0)
        if option.startswith("--"):
            continue
        letter = next((letter for letter in option[1:] if letter in "cmWX"), "")
        rest = option[option.index(letter) + 1 :] if letter else ""
        if letter == "c":
            return snippet(shell, plain(rest or _first(todo)), todo[not rest :], call.stdin)
        if letter == "m":
            return _module(shell, rest or _first(todo), todo[not rest :], call)
        if letter and not rest:
            todo[:1] = []
    if not todo or todo[0] in ("-", "/dev/stdin"):
        if call.stdin:
            return snippet(shell, call.stdin, todo[1:], "")
        shell.note("obscure", "", "ask", "runs what comes on its input")
        return HOLE
    if todo[0].endswith("setup.py") and {"upload", "register", "install", "develop"} & set(todo[1:]):
        shell.note(
            "install",
            todo[0],
            "refuse" if {"upload", "register"} & set(todo) else "ask",
            "installs or publishes the package",
        )
    return script(shell, todo[0], "python", todo[1:], call.stdin)


def _first(todo: list[str]) -> str:
    return todo[0] if todo else HOLE


def _module(shell: Shell, module: str, args: list[str], call: Call) -> str:
    """python -m: the standard library's programs, those of the table, and the agent's own."""
    if ANYTHING.search(module):
        shell.run_unknown(module)
    elif args == ["--help"]:
        return NAME
    elif module == "venv":
        for arg in args:
            if not arg.startswith("-"):
                shell.touch("write", arg)
    elif module in _RUNNERS and args and args[0] not in ("report", "html", "xml", "erase", "combine", "json"):
        rest = args[1:] if args[0] == "run" else args
        while rest and rest[0].startswith("-") and rest[0] != "-m":
            if rest[0] == "-o":
                shell.touch("write", _first(rest[1:]))
            rest = rest[2:] if rest[0] in ("-o", "-s") else rest[1:]
        return _python(shell, Call("python", rest, call.stdin)) if rest else HOLE
    elif module == "timeit":
        snippet(shell, "\n".join(plain(arg) for arg in args if not arg.startswith("-")), [], "")
    elif module not in _MODULES and (module in table() or module in HANDLERS):
        return shell.invoke([module, *args], call.stdin)
    elif module in _MODULES or module.split(".")[0] not in sys.stdlib_module_names:
        for arg in args:
            own(shell, arg)
    else:
        kind = "network" if module in ("http.server", "smtpd", "ftplib", "webbrowser") else "unknown"
        shell.note(
            kind, module, "ask", f"runs the module {plain(module)}, which reaches out or is not known here"
        )
    return NAME if module in ("calendar", "platform") else HOLE


above.python = snippet
