"""What programs print, where it follows from their words and their input: it may become a word or a script."""

import base64
import binascii
import re

from .places import ALL, ENDLESS, HOLE, MARKS, NAME, NET, SECRET, SOME
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


def filtered(name: str, args: list[str], given: str, decoded: list[str]) -> str | None:
    """What a filter makes of known input; None where that is not known. `decoded` collects what was hidden."""
    flags = "".join(arg[1:] for arg in args if re.fullmatch(r"-[a-zA-Z]+", arg))
    if MARKS.search(given) or not given:
        return None
    result = None
    if name == "rev":
        result = "\n".join(line[::-1] for line in given.split("\n"))
    elif name == "tr":
        result = _tr(args, given)
    elif name in ("base64", "base32", "openssl"):
        decode = "d" in flags or "D" in flags or "--decode" in args or "-d" in args
        result = _decode(given, name) if decode else None
    elif name == "xxd":
        result = _from_hex(given) if "r" in flags and "p" in flags else None
    elif name == "tac":
        return "".join(reversed(given.splitlines(keepends=True)))
    elif (name in ("cat", "tee", "fold", "expand", "unexpand", "sponge") and "n" not in flags) or (
        name in ("head", "tail", "sort", "uniq", "shuf")
        and given.count("\n") <= 1
        and not re.search(r"c", flags)
    ):
        return given
    if (result is not None and name != "tr") or (result is not None and result != given):
        decoded.append((result or "").strip())
    return result


def _decode(given: str, name: str) -> str | None:
    packed = re.sub(r"\s", "", given)
    try:
        raw = base64.b32decode(packed) if name == "base32" else base64.b64decode(packed)
    except (binascii.Error, ValueError):
        return None
    return raw.decode("utf-8", "replace")


def _from_hex(given: str) -> str | None:
    try:
        return bytes.fromhex(re.sub(r"[^0-9a-fA-F]", "", given)).decode("utf-8", "replace")
    except ValueError:
        return None


_CLASSES = {
    "[:upper:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "[:lower:]": "abcdefghijklmnopqrstuvwxyz", "[:digit:]": "0123456789",
    "[:space:]": " \t\n\r\v\f", "[:blank:]": " \t",
}  # fmt: skip
_CLASSES["[:alpha:]"] = _CLASSES["[:upper:]"] + _CLASSES["[:lower:]"]
_CLASSES["[:alnum:]"] = _CLASSES["[:digit:]"] + _CLASSES["[:alpha:]"]


def _tr(args: list[str], given: str) -> str | None:
    flags = {letter for arg in args if re.fullmatch(r"-[cCdst]+", arg) for letter in arg[1:]}
    sets = [_letters(plain(arg)) for arg in args if not re.fullmatch(r"-[cCdst]+", arg)]
    if not sets or None in sets or flags & {"c", "C", "s"}:
        return None
    if "d" in flags:
        return given.translate({ord(letter): None for letter in sets[0]})
    if len(sets) < 2 or not sets[1]:
        return None
    first, second = sets[0], sets[1].ljust(len(sets[0]), sets[1][-1])
    return given.translate(
        {ord(a): b for a, b in zip(reversed(first), reversed(second[: len(first)]), strict=True)}
    )


def _letters(word: str) -> str | None:
    if MARKS.search(word):
        return None
    word = ansi_c(word)
    for name, letters in _CLASSES.items():
        word = word.replace(name, letters)
    if "[:" in word or "[=" in word:
        return None
    return re.sub(r"(.)-(.)", lambda m: "".join(map(chr, range(ord(m[1]), ord(m[2]) + 1))), word, flags=re.S)


def narrowed(given: str) -> str:
    """The lines of the input that a filter lets through."""
    if ALL in given and not re.search(f"[{HOLE}{NET}{SECRET}]", given):
        return given.replace(ALL, SOME)
    if not MARKS.search(given) or set(MARKS.findall(given)) <= {SOME, NAME}:
        return given
    return carried(given)
