"""A shell that runs nothing: it walks the tree of a command, keeps variables, folders and files as the command would
leave them, and notes what each program would do.

Branches and loops are walked once or twice, and what then differs is not known. What a command prints is followed as
far as it is known, since it may become a word, a script or the input of an interpreter.
"""

import re

from tree_sitter import Node

from . import words
from .decisions import Effect, Kind, Verdict
from .parsing import Unreadable, text, understood
from .places import (
    ANYTHING,
    ENDLESS,
    FOLDER,
    GLOBS,
    HOLE,
    HOME,
    JOB,
    MARKS,
    NAME,
    NET,
    SECRET,
    SOME,
    UNKNOWN,
    Place,
    shown,
    weigh,
)  # fmt: skip
from .state import Call, Shared, Vars, above

_MAX_STEPS = 8_000
_MAX_EFFECTS = 2_000
_MAX_CALLS = 24
_MAX_TEXT = 50_000
_MAX_TURNS = 12
_MAX_PLACES = 6
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|API_?KEY|ACCESS_KEY|PRIVATE|CREDENTIAL|SESSION_ID", re.IGNORECASE
)
_NAMES = [
    "USER", "LOGNAME", "HOSTNAME", "RANDOM", "SRANDOM", "SECONDS", "UID", "EUID", "PPID", "BASHPID", "LINENO", "SHLVL",
    "OSTYPE", "HOSTTYPE", "MACHTYPE", "COLUMNS", "LINES", "EPOCHSECONDS", "EPOCHREALTIME", "BASH_VERSION", "LANG",
    "TERM", "#", "?", "$", "-",
]  # fmt: skip
_SIMPLE = {name: NAME for name in _NAMES} | {
    "HOME": HOME, "TMPDIR": "/tmp", "!": JOB, "IFS": " \t\n", "SHELL": "/bin/bash", "BASH": "/bin/bash", "0": "bash", "PATH": "/usr/bin:/bin",
}  # fmt: skip
# A word that may stand for several, or for none.
SEVERAL = re.compile(f"[{UNKNOWN}{SOME}{''.join(GLOBS)}]")


class Shell:
    """The state of one shell. `run(node)` gives what is printed."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.vars: Vars = {}
        self.functions: dict[str, tuple[Node, ...]] = {}
        """The bodies that each may have."""
        self.cwd = Place("folder")
        self.elsewhere: tuple[Place, ...] = ()
        """Where it stands instead, should a change of folder fail."""
        self.once_there: tuple[Place, ...] = ()
        """The same, should the last change of folder have succeeded."""
        self.positional: list[str] | None = None
        self.locals: set[str] = set()
        """Variables of the function that runs."""
        self.stack: tuple[str, ...] = ()
        self.source = ""

    def fork(self) -> "Shell":
        """A shell that starts where this one stands; what it changes stays its own."""
        other = Shell(self.shared)
        other.vars, other.functions = dict(self.vars), dict(self.functions)
        other.elsewhere, other.once_there = self.elsewhere, self.once_there
        other.cwd, other.positional = self.cwd, self.positional
        other.stack, other.source, other.locals = self.stack, self.source, self.locals
        return other

    def doubt(self, other: "Shell") -> None:
        """A variable may have either shell's value: what differs is not known, but that it holds code is."""
        for name in sorted({*self.vars, *other.vars}):
            values = [shell.vars.get(name, "") for shell in (self, other)]
            if values[0] != values[1]:
                texts = [found if isinstance(found, str) else " ".join(found) for found in values]
                self.vars[name] = HOLE + "".join(found for found in texts if "$(" in found or "`" in found)

    def merge(self, other: "Shell") -> None:
        """This shell may have gone the other's way."""
        self.doubt(other)
        for name, bodies in other.functions.items():
            for body in bodies:
                self.define(name, body)
        if self.cwd != other.cwd:
            self.cwd = Place("unknown")

    def define(self, name: str, body: Node) -> None:
        before = self.functions.get(name, ())
        self.functions[name] = before if body in before else (*before, body)

    # --- what is noted ---

    def note(self, kind: Kind, target: str, verdict: Verdict, why: str) -> None:
        source = " ".join(shown(self.source[:400]).split())
        source = source if len(source) <= 80 else source[:79] + "…"
        effect = Effect(kind=kind, target=shown(target), source=source, verdict=verdict, why=why)
        self.shared.effects.append(effect)

    def touch(self, kind: Kind, path: str) -> Place:
        """Note that a path is read, written, deleted or executed."""
        self.spend()
        if kind == "read" and path in ("-", ""):
            return Place("folder")
        place = self.place(path)
        verdict, why = weigh(kind, place, self.shared.policy)
        if verdict == "allow" and self.strays(kind, path):
            verdict, why = "ask", f"{kind}s outside the folder, should a change of folder before it fail"
        if NET in path:
            verdict, why = "refuse", f"{why}; the network names the path"
        self.note(kind, str(place), verdict, why)
        return place

    def works_here(self) -> None:
        """Note that a program writes where the shell stands, whatever its words are."""
        if weigh("write", self.cwd, self.shared.policy)[0] != "allow" or self.strays("write", "."):
            self.note("write", str(self.cwd), "ask", f"works outside the folder ({shown(str(self.cwd))})")

    def strays(self, kind: Kind, path: str) -> bool:
        """Whether a path would be changed that must not be, should a change of folder have failed."""
        places = (start.join(path, self.shared.folder) for start in self.elsewhere)
        changes = kind in ("write", "delete")
        return changes and any(weigh(kind, place, self.shared.policy)[0] != "allow" for place in places)

    def go(self, path: str, *, sure: bool = False) -> None:
        """Change the folder, which fails where there is none of that name."""
        before = (self.cwd, *self.elsewhere)
        self.once_there = tuple(start.join(path, self.shared.folder) for start in self.elsewhere)
        self.cwd = self.place(path)
        self.vars.update((name, HOLE) for name in ("PWD", "OLDPWD") if name in self.vars)
        self.stay(self.once_there if sure else (*self.once_there, *before))

    def stay(self, places: tuple[Place, ...]) -> None:
        """It may stand in these places too."""
        places = tuple(dict.fromkeys(place for place in places if place != self.cwd))
        self.elsewhere = places if len(places) <= _MAX_PLACES else (Place("unknown"),)

    def place(self, path: str) -> Place:
        """Where a path leads, through the links that the command itself makes."""
        if self.shared.linked and ".." in path.split("/"):  # where a link leads it does not lead back from
            return Place("unknown", (path,))
        place = self.cwd.join(path, self.shared.folder)
        for _ in range(4 if self.shared.links else 0):
            parts = place.parts
            for cut in range(len(parts), 0, -1):
                target = self.shared.links.get(str(Place(place.base, parts[:cut])))
                if target is not None:
                    place = Place(place.base, parts[: cut - 1]).join(target, self.shared.folder)
                    place = place.join("/".join(parts[cut:]) or ".", self.shared.folder)
                    break
            else:
                break
        return place

    def unclear(self, node: Node | None = None, why: str = "cannot be understood beforehand") -> None:
        if node is not None:
            self.source = text(node)
        self.note("obscure", "", "ask", why)

    def spend(self) -> None:
        self.shared.steps += 1
        if self.shared.steps > _MAX_STEPS or len(self.shared.effects) > _MAX_EFFECTS:
            raise Unreadable("does too much to be followed")

    # --- variables ---

    def assigned(self, name: str) -> bool:
        return name in self.vars or name in _SIMPLE or name == "PWD"

    def lookup(self, name: str) -> list[str]:
        """The value of a variable; several for the elements of an array."""
        match = re.fullmatch(r"(\w+)\[(.*)\]", name, re.S)
        if match:
            found = self.vars.get(match[1], HOLE)
            elements = found if isinstance(found, list) else [found]
            if match[2] in "@*":
                return elements
            if isinstance(found, str) and match[2] != "0":
                return [HOLE]
            if match[2].isdigit():
                return self.nth(elements, int(match[2]))
            return [HOLE] if len(set(elements)) > 1 else elements[:1]
        if name in ("@", "*") or (name.isdigit() and name != "0"):
            if self.positional is None:
                return [HOLE]
            if name in "@*":
                return self.positional
            return self.nth(self.positional, int(name) - 1) or [""]
        if name in self.vars:
            found = self.vars[name]
            return found[:1] if isinstance(found, list) else [found]
        if name == "PWD":
            return [self.here()]
        if _SECRET_NAME.search(name):
            self.note("secret", name, "ask", f"uses ${name}, which may hold a secret")
            return [SECRET]
        return [_SIMPLE.get(name, HOLE)]

    def nth(self, elements: list[str], number: int) -> list[str]:
        loose = {element for element in elements[:number] if SEVERAL.search(element)}
        if loose:  # each may be several, or none
            return [SOME if loose == {SOME} else HOLE]
        return elements[number:][:1]

    def here(self) -> str:
        """The path of the folder in which the shell stands."""
        start = {"folder": FOLDER, "root": "", "home": HOME, "above": f"{FOLDER}/..", "unknown": HOLE}[
            self.cwd.base
        ]
        return "/".join((start, *self.cwd.parts)) or "/"

    def assign(self, name: str, found: "str | list[str]", *, more: bool = False) -> None:
        if name in self.shared.fixed:
            found = HOLE
        if more:
            old = self.vars.get(name, HOLE if self.lookup(name) == [HOLE] else "")
            if isinstance(found, list) or isinstance(old, list):
                old = old if isinstance(old, list) else [old] * bool(old)
                found = old + (found if isinstance(found, list) else [found])
            else:
                found = (old + found)[:_MAX_TEXT]
        self.indexed(found if isinstance(found, str) else " ".join(found))
        self.vars[name] = found
        above.assigned(self, name, found if isinstance(found, str) else " ".join(found))

    def indexed(self, found: str) -> None:
        """Text with a substitution in an index runs it wherever it is computed with, or taken for a variable."""
        if re.search(r"\w\[.*(\$\(|`)", found, re.S):
            self.counted_with_value(found)

    def counted_with(self, name: str) -> None:
        """A variable within arithmetic: its value is itself computed, indices and substitutions too."""
        if name in self.vars:
            self.counted_with_value(" ".join(self.lookup(f"{name}[@]")))

    def counted_with_value(self, found: str) -> None:
        if "$(" in found or "`" in found:
            self.code(f': "{found}"')
        elif NET in found:
            self.note("obscure", found, "refuse", "computes with text from the network")

    # --- code and programs ---

    def code(self, source: str, stdin: str = "") -> str:
        """Run text as a script of this shell."""
        self.spend()
        source = words.plain(source)
        if ANYTHING.search(source):
            self.run_unknown(source)
        if len(self.stack) > _MAX_CALLS:
            raise Unreadable("calls itself too deep")
        before, self.stack = self.stack, (*self.stack, "code")
        outer, self.source = self.source, source
        root, doubts = understood(source)
        for why in doubts:
            self.note("obscure", source, "ask", why)
        printed = self.run(root, stdin)
        self.stack, self.source = before, outer
        return printed

    def run_unknown(self, source: str) -> None:
        if NET in source:
            self.note("execute", "", "refuse", "runs what the network sends")
        elif SECRET in source or ENDLESS in source:
            self.note("execute", "", "refuse", "runs text that is no program")
        else:
            self.note("obscure", "", "ask", "runs text that is not known beforehand")

    def invoke(self, argv: list[str], stdin: str = "") -> str:
        """Run a program, a function or a builtin with these words; gives what it prints."""
        self.spend()
        if not argv:
            return ""
        if len(self.stack) > _MAX_CALLS:
            raise Unreadable("calls itself too deep")
        before, self.stack = self.stack, (*self.stack, f"run {argv[0]}")
        printed = above.invoke(self, Call(argv[0], argv[1:], stdin))
        self.stack = before
        return printed[:_MAX_TEXT]

    def call(self, name: str, args: list[str], stdin: str) -> str:
        """Call a function of the command."""
        self.shared.called.add(name)
        bodies = self.functions[name]
        if f"call {name}" in self.stack:
            if any(re.search(r"(?<![|&<>])[|&](?![|&>\d])", text(body)) for body in bodies):
                self.note("exhaust", name, "refuse", "multiplies processes without end")
            else:
                self.note("obscure", name, "ask", "calls itself")
            return HOLE
        before, outer = (self.stack, self.positional, self.locals), self.fork()
        self.stack, self.positional, self.locals = (*self.stack, f"call {name}"), args, set()
        others = [self.fork() for _ in bodies[1:]]
        printed = {shell.run(body, stdin) for shell, body in zip((self, *others), bodies, strict=True)}
        for other in others:
            self.merge(other)
        outer.vars = self.vars | {name: outer.vars.get(name, "") for name in self.locals}
        self.doubt(outer)
        self.stack, self.positional, self.locals = before
        return printed.pop() if len(printed) == 1 else HOLE

    # --- substitutions ---

    def substituted(self, node: Node) -> str:
        """What $(…) prints."""
        source = text(node)
        inner = self.fork()
        if re.fullmatch(r"\$\(\([\w\s+*/%<>=!&|?:,()-]*\)\)", source):
            # In a here-document the grammar takes arithmetic for a substitution.
            for name in re.findall(r"[A-Za-z_]\w*", source):
                self.counted_with(name)
            return NAME
        if source.startswith("`") and "\\" in source:
            # Within backquotes a backslash has another meaning, which the tree does not know.
            return inner.code(re.sub(r"\\([`$\\])", r"\1", source[1:-1]))
        return above.run_all(inner, node, "")

    def substituted_process(self, node: Node) -> str:
        """The path that stands for <(…) or >(…)."""
        path = f"/dev/fd/{63 + len(self.shared.files)}"
        writes = text(node).startswith(">")
        printed = above.run_all(self.fork(), node, HOLE if writes else "")
        self.shared.files[path] = HOLE if writes else printed
        return path

    def run(self, node: Node, stdin: str = "") -> str:
        """Walk a statement; gives what it prints."""
        self.spend()
        return above.run(self, node, stdin)[:_MAX_TEXT]

    def fields(self, node: Node) -> list[str]:
        return words.fields(node, self)

    def value(self, node: Node) -> str:
        return words.value(node, self)

    def turns(self, items: list[str]) -> list[str]:
        """The values that a loop takes, many of them as one that is not known."""
        if len(items) <= _MAX_TURNS:
            return items
        kept = list(dict.fromkeys(items))
        if len(kept) <= _MAX_TURNS:
            return kept
        alike = all(re.fullmatch(r"[\w.]+", item) for item in kept)
        return [
            NAME
            if alike
            else SOME
            if all(
                item[:1] not in ("/", HOME, "-") and ".." not in item and not MARKS.search(item)
                for item in kept
            )
            else HOLE
        ]
