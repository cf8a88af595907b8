"""What the expressions of a short Python program stand for: module names, texts and paths, with marks for the rest."""

import ast
import re
from collections.abc import Iterator

from .places import ANYTHING, HOLE, HOME, MARKS, NAME, SOME

_AS_IT_IS = {
    "str", "os.path.abspath", "os.path.normpath", "os.fspath", "os.path.realpath", "sorted", "list", "tuple", "set",
    "enumerate", "reversed",
}  # fmt: skip
_NUMBERS = {
    "len", "int", "abs", "round", "sum", "min", "max", "id", "os.getpid", "time.time", "range", "float", "ord",
}  # fmt: skip
_PATH_CLASSES = {"pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath"}
_SAME_PLACE = {"resolve", "absolute", "strip", "rstrip", "lower", "as_posix", "with_suffix"}


class Values:
    """Names and what is bound to them anywhere in the program; what is bound to different things is not known."""

    def __init__(self, tree: ast.AST, args: list[str]) -> None:
        self.args = args
        self.modules: dict[str, str] = {}
        self.known: dict[str, str] = {}
        for node in ast.walk(tree):
            self._import(node)
        for _ in range(3):  # a value may depend on one that turns out not to be known
            for target, found in self._bindings(tree):
                self._bind(target, found)

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for name in node.names:
                top = name.name.split(".")[0]
                self.modules[name.asname or top] = name.name if name.asname else top
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                self.modules[name.asname or name.name] = f"{node.module or ''}.{name.name}"

    def _bindings(self, tree: ast.AST) -> Iterator[tuple[ast.expr | str, str]]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                yield from ((target, self.value(node.value)) for target in node.targets)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                yield node.target, self.value(node.value)
            elif isinstance(node, ast.AugAssign):
                yield node.target, HOLE
            elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
                yield node.target, self.items(node.iter)
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                yield node.optional_vars, self.value(node.context_expr)
            elif isinstance(node, ast.arg):
                yield node.arg, HOLE
            elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
                yield node.name, HOLE

    def _bind(self, target: ast.expr | str, found: str) -> None:
        if isinstance(target, ast.Name):
            target = target.id
        if isinstance(target, str):
            self.known[target] = found if self.known.get(target, found) == found else HOLE
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._bind(part, found if SOME in found or found == NAME else HOLE)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, HOLE)

    def dotted(self, node: ast.expr) -> str | None:
        """`os.path.join` for what belongs to a module."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id)
        if isinstance(node, ast.Attribute):
            start = self.dotted(node.value)
            return f"{start}.{node.attr}" if start else None
        return None

    def value(self, node: ast.expr) -> str:
        """The text or path that an expression stands for."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else NAME
        if isinstance(node, ast.Name):
            return self.known.get(node.id, HOLE)
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.FormattedValue) else part for part in node.values)
            return "".join(self.value(part) for part in parts)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.value(node.left) + self.value(node.right)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return _joined([self.value(node.left), self.value(node.right)])
        if isinstance(node, ast.Subscript) and self.dotted(node.value) == "sys.argv":
            index = node.slice.value if isinstance(node.slice, ast.Constant) else None
            return self.args[index - 1] if isinstance(index, int) and 0 < index <= len(self.args) else HOLE
        if isinstance(node, ast.Attribute) and node.attr == "parent":
            return f"{self.value(node.value)}/.."
        if isinstance(node, ast.Attribute) and node.attr in ("name", "stem", "path"):
            found = self.value(node.value)
            return found if found == HOLE or node.attr == "path" else NAME
        return self._called(node) if isinstance(node, ast.Call) else HOLE

    def items(self, node: ast.expr) -> str:
        """What a loop takes from an expression, one at a time."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            found = {self.value(item) for item in node.elts}
            if len(found) > 1 and all(
                re.fullmatch(r"\w[\w./-]*", item) and ".." not in item for item in found
            ):
                return SOME
            return found.pop() if len(found) == 1 else HOLE
        if isinstance(node, ast.Subscript) and self.dotted(node.value) == "sys.argv":
            near = all(
                not arg.startswith(("/", HOME, "..")) and not ANYTHING.search(arg) for arg in self.args
            )
            return SOME if self.args and near else HOLE
        found = self.value(node)
        return found if SOME in found or not MARKS.sub("", found) else HOLE

    def _called(self, node: ast.Call) -> str:
        full = self.dotted(node.func) or (node.func.id if isinstance(node.func, ast.Name) else "")
        args = [self.value(arg) for arg in node.args]
        if full in _PATH_CLASSES or full == "os.path.join":
            return _joined(args)
        if full in ("os.path.expanduser", "os.path.expandvars"):
            return _at_home(args[0]) if args else HOLE
        if full == "pathlib.Path.home":
            return HOME
        if full in ("os.getcwd", "pathlib.Path.cwd"):
            return "."
        if full in _NUMBERS:
            return NAME
        if full in _AS_IT_IS:
            return args[0] if args else ""
        if full.startswith("tempfile."):
            return f"/tmp/{NAME}" if not node.keywords else HOLE
        if full in ("glob.glob", "glob.iglob"):
            return _below(re.split(r"[*?[]", args[0])[0]) if args else HOLE
        if full in ("os.listdir", "os.walk", "os.scandir"):
            return _below(args[0] if args else ".")
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func.attr, self.value(node.func.value), args)
        return HOLE

    def _method(self, name: str, inner: str, args: list[str]) -> str:
        if name in ("glob", "rglob", "iterdir"):
            return _below(inner)
        if name in _SAME_PLACE:
            return inner
        if name == "expanduser":
            return _at_home(inner)
        return _joined([inner, *args]) if name == "joinpath" else HOLE


def _joined(parts: list[str]) -> str:
    """A path put together: a part that starts at the root, or that may, throws away what stands before it."""
    found = parts[0] if parts else "."
    for part in parts[1:]:
        found = part if part.startswith(("/", HOME, HOLE)) else f"{found}/{part}"
    return found


def _below(start: str) -> str:
    return HOLE if ANYTHING.search(start) else f"{start.rstrip('/') or ('/' if start else '.')}/{SOME}"


def _at_home(path: str) -> str:
    return re.sub(r"^(~\w*|\$HOME|\$\{HOME\})", HOME, path)
