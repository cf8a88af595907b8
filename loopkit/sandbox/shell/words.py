"""What the words of a command stand for, as far as the command itself tells.

`fields(node, shell)` gives the words that one word of the source becomes; `value(node, shell)` gives one text, as
for an assignment. What is not known is a mark (see `places`). `shell` looks variables up, runs substitutions and
is told what cannot be understood.
"""

import fnmatch
import itertools
import re
from typing import TYPE_CHECKING

from tree_sitter import Node

from .parsing import Unreadable, pieces, text
from .places import ANYTHING, FOLDER, GLOBS, HOLE, HOME, MARKS, NAME, SOME, active

if TYPE_CHECKING:
    from .walking import Shell

_QUOTED = "\ue010"  # something was quoted here: the word stays though it be empty
_SPLIT = "\ue011"  # two words part here
_SPECIAL = {letter: active(letter) for letter in "{},*?[]~"}
_PLAIN = {mark: letter for letter, mark in _SPECIAL.items() if mark not in GLOBS}
_PLAIN_KINDS = {
    "word",
    "number",
    "extglob_pattern",
    "regex",
    "variable_name",
    "test_operator",
    "file_descriptor",
}
_MAX_WORDS = 400
_MAX_TEXT = 60_000
_OPEN, _COMMA, _CLOSE, _TILDE = (active(letter) for letter in "{,}~")


def fields(node: Node, shell: "Shell") -> list[str]:
    """The words that `node` becomes: none, one or several."""
    found = []
    for word in _braces(_expand(node, shell, quoted=False)):
        for part in word.split(_SPLIT):
            if part or not word:
                found.append(part)
    return [_finish(part) for part in found if part]


def value(node: Node, shell: "Shell") -> str:
    """The text that `node` stands for, not split: of an assignment, a redirection, a pattern."""
    return _finish(_expand(node, shell, quoted=False).replace(_SPLIT, " "), ":=")


def body(node: Node, shell: "Shell") -> str:
    """The text of a here-document whose end word is not quoted."""
    return _inside(node, shell).replace(_QUOTED, "").replace(_SPLIT, " ")


def plain(word: str) -> str:
    """The word with its patterns as they were typed, for programs that take them as text."""
    return "".join(GLOBS.get(letter, letter) for letter in word)


def _finish(word: str, after: str = "=") -> str:
    """Tildes become directories; what is special to the shell alone becomes plain again."""
    word = re.sub(f"(^|[{after}]){_TILDE}(?=/|$|:)", lambda match: match[1] + HOME, word)
    # Somebody else's home directory is as foreign as one's own; ~+ and ~- are where the shell was.
    word = re.sub(f"(^|[{after}]){_TILDE}(?:[+-]\\d*|\\d+)(?=/|$)", lambda match: match[1] + HOLE, word)
    word = re.sub(
        f"(^|[{after}]){_TILDE}([a-z_][\\w-]*)(?=/|$)", lambda match: f"{match[1]}{HOME}/../{match[2]}", word
    )
    return "".join(_PLAIN.get(letter, letter) for letter in word.replace(_QUOTED, ""))


def _expand(node: Node, shell: "Shell", *, quoted: bool) -> str:
    shell.spend()
    found = _expanded(node, shell, quoted=quoted)
    if len(found) > _MAX_TEXT:
        raise Unreadable("expands to a text that is too long")
    return found


def _expanded(node: Node, shell: "Shell", *, quoted: bool) -> str:
    kind = node.type
    if kind in _PLAIN_KINDS:
        if node.named_child_count and kind == "number":  # a base of its own, as in 16#$x
            return NAME
        return _plain_word(node, shell, quoted=quoted)
    if kind == "command_name":
        return "".join(_expand(child, shell, quoted=quoted) for child in node.children)
    if kind in ("string", "translated_string"):
        return _QUOTED + _inside(node, shell)
    if kind == "raw_string":
        return _QUOTED + text(node)[1:-1]
    if kind == "ansi_c_string":
        return _QUOTED + ansi_c(text(node)[2:-1])
    if kind == "concatenation":
        between = (lambda gap: gap) if quoted else _unescape
        return "".join(
            between(piece) if isinstance(piece, str) else _expand(piece, shell, quoted=quoted)
            for piece in pieces(node)
        )
    if kind == "brace_expression":
        return _unescape(text(node))
    if kind == "process_substitution":
        return shell.substituted_process(node)
    if kind == "arithmetic_expansion" or kind.endswith("_expression"):
        return arithmetic(node, shell)
    if kind in ("simple_expansion", "expansion"):
        found = _variable(node, shell)
    elif kind == "command_substitution":
        found = [shell.substituted(node).rstrip("\n")]
    else:
        shell.unclear(node)
        return HOLE
    if quoted:
        return _SPLIT.join(found)
    return _SPLIT.join(_split(part, shell) for part in found)


def _plain_word(node: Node, shell: "Shell", *, quoted: bool) -> str:
    found = text(node)
    if re.search(r"(?<!\\)(`|\$\()", found):
        # In some places the grammar leaves a substitution within the word.
        for inner in re.findall(r"`((?:\\.|[^`\\])*)`", found, re.S):
            shell.fork().code(re.sub(r"\\([`$\\])", r"\1", inner))
        shell.unclear(node)
        return HOLE
    return found if quoted else _unescape(found)


def _inside(node: Node, shell: "Shell") -> str:
    """The text between double quotes, or of a here-document."""
    out = []
    for piece in pieces(node):
        if isinstance(piece, str):
            out.append(_unescape_quoted(piece))
        elif piece.type in ("string_content", "heredoc_content"):
            out.append(_unescape_quoted(text(piece)))
        elif piece.type == "string":
            out.append(_inside(piece, shell))
        elif piece.is_named:
            # The grammar gives the blanks before an expansion, or before the last quotation mark, to these.
            found = text(piece)
            out.append(found[: len(found) - len(found.lstrip())] + _expand(piece, shell, quoted=True))
        else:
            out.append(text(piece).removesuffix('"'))
    return "".join(out)


def _split(word: str, shell: "Shell") -> str:
    """What an expansion without quotes becomes: parted at blanks, its patterns active."""
    blanks = shell.vars.get("IFS", " \t\n")
    if not isinstance(blanks, str) or ANYTHING.search(blanks):
        return HOLE  # it may come apart anywhere
    return "".join(_SPLIT if c in blanks else _SPECIAL[c] if c in "*?[]" else c for c in word)


def _unescape(word: str) -> str:
    out, at = [], 0
    while at < len(word):
        if word[at] == "\\" and at + 1 < len(word):
            out.append("" if word[at + 1] == "\n" else _QUOTED + word[at + 1])
            at += 2
            continue
        out.append(_SPECIAL.get(word[at], word[at]))
        at += 1
    return "".join(out)


def _unescape_quoted(word: str) -> str:
    return re.sub(r'\\([$`"\\\n])', lambda match: match[1].strip("\n"), word)


_LETTERS = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|0?([0-7]{1,3})|c(.)|(.))", re.S
)


def ansi_c(word: str) -> str:
    """The text of $'…', of `echo -e` and of the format of printf."""

    def letter(match: re.Match[str]) -> str:
        number = next(
            (int(match[n], base) for n, base in ((1, 16), (2, 16), (3, 16), (4, 8)) if match[n]), None
        )
        if number is not None:
            return chr(number) if number < 0x110000 else ""
        if match[5]:
            return chr(ord(match[5]) & 31)
        return _LETTERS.get(match[6], match[6] if match[6] in "\\'\"?" else "\\" + match[6])

    return _ESCAPE.sub(letter, word)


def _braces(word: str) -> list[str]:
    """The words of a word with {a,b} and {1..9} in it."""
    todo, done = [word], []
    while todo:
        if len(todo) + len(done) > _MAX_WORDS:
            raise Unreadable("expands to too many words")
        word = todo.pop()
        found = _first_braces(word)
        if found is None:
            done.append(word)
            continue
        start, end, choices = found
        todo += [word[:start] + choice + word[end:] for choice in reversed(choices)]
    return done


def _first_braces(word: str) -> tuple[int, int, list[str]] | None:
    start = word.find(_OPEN)
    while start >= 0:
        level, cuts = 0, [start]
        for at in range(start, len(word)):
            letter = word[at]
            level += (letter == _OPEN) - (letter == _CLOSE)
            if level == 1 and letter == _COMMA:
                cuts.append(at)
            if level == 0:
                cuts.append(at)
                break
        if level == 0 and len(cuts) > 2:
            return start, cuts[-1] + 1, [word[a + 1 : b] for a, b in itertools.pairwise(cuts)]
        if level == 0 and (sequence := _sequence(word[start + 1 : cuts[-1]])):
            return start, cuts[-1] + 1, sequence
        start = word.find(_OPEN, start + 1)
    return None


def _sequence(inner: str) -> list[str] | None:
    match = re.fullmatch(r"(-?\d{1,9}|[a-zA-Z])\.\.(-?\d{1,9}|[a-zA-Z])(?:\.\.-?(\d{1,9}))?", inner)
    if match is None:
        return [NAME] if ".." in inner and not ANYTHING.sub("", inner).strip(NAME + ".-0123456789") else None
    first, last, step = match[1], match[2], int(match[3] or 1) or 1
    if first.isalpha() != last.isalpha():
        return None
    a, b = (ord(first), ord(last)) if first.isalpha() else (int(first), int(last))
    numbers = range(a, b + 1, step) if a <= b else range(a, b - 1, -step)
    if len(numbers) > 50:  # numbers are all alike to the judge
        return [NAME]
    return [chr(n) if first.isalpha() else str(n) for n in numbers]


def arithmetic(node: Node, shell: "Shell") -> str:
    """The result of arithmetic is a number; what stands in it may run something."""
    todo = [child for child in node.children if child.is_named]
    while todo:
        child = todo.pop()
        if child.type in ("variable_name", "word"):
            shell.counted_with(text(child))
        elif child.type in ("simple_expansion", "expansion", "command_substitution", "string", "raw_string"):
            shell.counted_with_value(_expand(child, shell, quoted=True))
        else:
            todo += [inner for inner in child.children if inner.is_named]
    return NAME


def _variable(node: Node, shell: "Shell") -> list[str]:
    """The values of $x or ${x…}: several for all the elements of an array."""
    children = [
        child for child in node.children if text(child).strip() not in ("$", "${", "}") or child.is_named
    ]
    first = text(children[0]).strip() if children else ""
    if first in ("!", "#") and len(children) > 1 and not children[0].is_named:
        name = children[1]
        if first == "#":
            return [NAME]
        if len(children) > 2 or name.type == "subscript":  # ${!prefix*}, ${!array[@]}: names
            return [NAME]
        target = shell.lookup(text(name))[0]
        if MARKS.search(target) or not re.fullmatch(r"\w+|\w+\[[@*\w]+\]", target):
            shell.unclear(node, "takes the name of a variable from another")
            return [HOLE]
        return shell.lookup(target)
    if not children:
        return [HOLE]
    name = children[0]
    if name.type == "subscript":
        found = shell.lookup(_subscript(name, shell))
    else:
        found = shell.lookup(text(name))
    if len(children) == 1:
        return found
    operator = "".join(text(child) for child in children[1:] if not child.is_named and text(child) not in "}")
    operands = [_operand(child, shell) for child in children[1:] if child.is_named]
    if operator == ":" and (text(name) in "@*" or text(name).endswith(("[@]", "[*]"))):
        return [HOLE]
    return [_operate(one, operator, operands, name, node, shell) for one in found]


def _operand(node: Node, shell: "Shell") -> str:
    return _finish(_expand(node, shell, quoted=False).replace(_SPLIT, " "))


def _subscript(node: Node, shell: "Shell") -> str:
    name, index = node.child_by_field_name("name"), node.child_by_field_name("index")
    inner = _operand(index, shell) if index is not None else "@"
    if "$(" in inner or "`" in inner:
        shell.counted_with_value(inner)
    return f"{text(name)}[{plain(inner)}]"


def _operate(found: str, operator: str, operands: list[str], name: Node, node: Node, shell: "Shell") -> str:
    operand = operands[0] if operands else ""
    known = shell.assigned(text(name))
    if operator in (":-", "-", ":=", "="):
        # A variable that nothing assigned is taken to be unset: its value is the default.
        result = operand if not known or not found else found
        if "=" in operator and name.type == "variable_name":
            shell.assign(text(name), result)
        return result
    if operator in (":+", "+"):
        return ("" if not found else operand) if known else HOLE
    if operator in (":?", "?"):
        return found
    if operator.startswith("@"):
        if operator.endswith("P"):
            shell.counted_with_value(found)
        return found if operator[1:] in ("P", "E", "U", "L", "u") else HOLE
    if operator.startswith(("^", ",")):
        changed = {"^^": found.upper(), ",,": found.lower()}
        return changed.get(operator, found[:1].swapcase() + found[1:])
    if operator.startswith(":"):
        return _slice(found, operands)
    if operator.startswith(("#", "%")):
        return _trim(found, operator, operand)
    if operator.startswith("/"):
        replacement = operands[1] if len(operands) > 1 else ""
        return _replace(found, operator, operand, replacement)
    shell.unclear(node)
    return HOLE


def _known(word: str) -> bool:
    return not MARKS.search(word)


def _slice(found: str, operands: list[str]) -> str:
    try:
        start, *length = (int(operand) for operand in operands)
    except ValueError:
        return HOLE
    if not _known(found):
        return NAME if found == NAME else HOLE
    found = found[start:]
    return found[: length[0]] if length else found


def _trim(found: str, operator: str, pattern: str) -> str:
    """${x#pattern} and its kin. What is left of a path below the folder is one too."""
    if found == NAME or (operator == "##" and pattern in (f"{active('*')}/", "*/")):
        return found.rsplit("/")[-1] if _known(found) else NAME
    if not _known(found) or len(found) > 2_000:
        near = not ANYTHING.search(found) and found[:1] not in ("/", HOME, FOLDER) and ".." not in found
        # What is left of a path behind anything but a slash may begin with one.
        climbs = operator[0] == "#" and not pattern.endswith("/") and ("/" in found or SOME in found)
        return SOME if near and not climbs else HOLE
    match = re.compile(fnmatch.translate(plain(pattern))).match
    cuts = range(len(found) + 1) if operator in ("#", "%%") else range(len(found), -1, -1)
    for cut in cuts:
        if operator[0] == "#" and match(found[:cut]):
            return found[cut:]
        if operator[0] == "%" and match(found[cut:]):
            return found[:cut]
    return found


def _replace(found: str, operator: str, pattern: str, replacement: str) -> str:
    if not (_known(found) and _known(replacement) and _known(pattern)) or re.search(r"[*?\[]", pattern):
        return NAME if {found, replacement} <= {NAME, ""} else HOLE
    if not pattern:
        return found
    return found.replace(pattern, replacement, -1 if operator.startswith("//") else 1)
