"""What programs print, where it follows from their words and their input: it may become a word or a script."""

import re

from .places import ALL, ANYTHING, ENDLESS, HOLE, MARKS, NAME, NET, SECRET, SOME
from .words import ansi_c, plain


def carried(given: str) -> str:
    """Unknown text that comes from this input: what it came from stays known."""
    return "".join(mark for mark in (NET, SECRET, ENDLESS) if mark in given) or HOLE


def echo(args: list[str]) -> str:
    escapes = newline = None
    while args and re.fullmatch(r"-[neE]+", args[0]):
        escapes = "e" in args[0] or escapes
        newline = "n" in args[0] or newline
        args = args[1:]
    line = plain(" ".join(args))
    return (ansi_c(line) if escapes else line) + ("" if newline else "\n")


_DIRECTIVE = re.compile(r"%([-+ #0']*)(\*|\d+)?(?:\.(\*|\d+))?([a-zA-Z%]|\([^)]*\)T)")


def printf(args: list[str]) -> str:
    if args[:1] == ["--"]:
        args = args[1:]
    if not args:
        return ""
    form, rest, out = ansi_c(plain(args[0])), [plain(arg) for arg in args[1:]], []
    for _ in range(100):
        before = len(rest)
        out.append(_DIRECTIVE.sub(lambda match: _directive(match, rest), form))
        if not rest or len(rest) == before:
            return "".join(out)
    return HOLE


def _directive(match: re.Match[str], rest: list[str]) -> str:
    flags, width, precision, kind = match.groups()
    if kind == "%":
        return "%"
    if "*" in (width, precision):
        return HOLE
    word = rest.pop(0) if rest else ""
    if kind in ("s", "b", "q", "c"):
        word = ansi_c(word) if kind == "b" else word
        word = word[:1] if kind == "c" and not MARKS.match(word) else word
        if precision is not None and not MARKS.search(word):
            word = word[: int(precision)]
        return word.ljust(int(width or 0)) if "-" in flags else word.rjust(min(int(width or 0), 1000))
    # Numbers: what is not known beforehand is a number all the same.
    return word if kind in "di" and re.fullmatch(r"\d+", word) and not width else NAME


def only_names(given: str) -> bool:
    """Whether the text is plain words that hold no path, whatever is cut from them."""
    return {*given.split()} == {NAME}


def narrowed(given: str) -> str:
    """What a filter makes of its input. Words that lead somewhere below remain such; others may be cut or joined."""
    words = given.split()
    if words and all(re.search(f"[{SOME}{NAME}{ALL}]", word) and not ANYTHING.search(word) for word in words):
        return given.replace(ALL, SOME)
    return carried(given)
