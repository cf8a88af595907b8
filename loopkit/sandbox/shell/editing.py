"""sed and awk: their programs are read, for both can write files and run commands."""

import re

from . import printing
from .places import ANYTHING, HOLE, NAME
from .programs import handles
from .redirecting import contents
from .table import spec
from .walking import Call, Shell
from .words import ansi_c, plain

_ADDRESS = re.compile(
    r"\s*(?:(?:\d+(?:~\d+)?|\$|/(?:\\.|\[[^]]*\]|[^/\\\n])*/[IM]*|\\(.)(?:\\.|(?!\1)[^\n])*\1[IM]*|[+~]\d+)\s*,?\s*)*!?\s*",
    re.S,
)


class _NotRead(Exception):
    """The program holds what is not understood."""


@handles("sed", "gsed")
def _sed(shell: Shell, call: Call) -> str:
    args = [arg for arg in call.args if not re.fullmatch(r"-i.*|--in-place(=.*)?|-[nErsuz]+i\S*", arg)]
    in_place = len(args) < len(call.args)
    found = spec("text*", "-e=code --expression=code -f=file --file=file -l=text --line-length=text").sort(
        args
    )
    programs = [arg for role, arg in found if role == "code"]
    operands = [arg for role, arg in found if role == "text"]
    for role, arg in found:
        if role == "file":
            place = shell.touch("execute", arg)
            programs.append(contents(shell, place) if str(place) in shell.shared.files else "")
    if not programs and operands:
        programs.append(operands.pop(0))
    for program in programs:
        _sed_program(shell, plain(program))
    for path in operands:
        place = shell.touch("read", path)
        if in_place:
            shell.touch("write", path)
            shell.shared.files[str(place)] = HOLE
    if not call.stdin or operands:
        return HOLE
    if printing.only_names(call.stdin) and all(_OF_A_NAME.fullmatch(plain(program)) for program in programs):
        return NAME
    near = not re.search(r"(^|\s)(/|\ue007)", call.stdin)
    keeps = near and all(_KEEPS.fullmatch(plain(program)) for program in programs)
    return printing.narrowed(call.stdin) if keeps else printing.carried(call.stdin)


# Prints some of the lines as they are, takes a folder from the front of a path, changes a suffix, or one word to another.
_KEEPS = re.compile(
    r"([\d,$]*|/[^/\\]*/)!?[pdq]|s([,|#!])\^(\\?\.|[\w-]+)/\2\2|s/\^(\\?\.|[\w-]+)\\///"
    r"|s([/,|#])(\\?\.)?\w+\$\5(\.?\w+)?\5|s([/,|#])(\\?\.|[\w-])+\8\.?\w+\8g?"
)
_OF_A_NAME = re.compile(r"s([/,|#])(?:(?!\1).)*\1[\w-]*\1g?")


def _sed_program(shell: Shell, program: str) -> None:
    if ANYTHING.search(program):
        # Unknown text may end the expression in which it stands, and begin another.
        shell.note("obscure", program, "ask", "edits by a program that is not known beforehand")
        program = ANYTHING.sub("x", program)
    try:
        at = 0
        while at < len(program):
            at = _sed_command(shell, program, at)
    except (_NotRead, IndexError):
        shell.note("obscure", program, "ask", "edits by a program that cannot be understood")


def _sed_command(shell: Shell, program: str, at: int) -> int:
    """Read one command; gives where the next one starts."""
    at = _skip(program, at)
    if at >= len(program):
        return at
    if program[at] == "#":
        return _line_end(program, at)
    at = _ADDRESS.match(program, at).end()
    letter = program[at]
    at += 1
    if letter in "{}=dDgGhHnNpPxlzF":
        return at
    if letter in "qQL":
        return re.compile(r"\s*\d*").match(program, at).end()
    if letter in "bt T:":
        return re.compile(r"[^;\n}]*").match(program, at).end()
    if letter in "aic":
        end = re.compile(r"(?:\\\n|[^\n])*").match(program, at).end()
        return end
    if letter in "rR":
        end = _line_end(program, at)
        shell.touch("read", program[at:end].strip())
        return end
    if letter in "wW":
        end = _line_end(program, at)
        shell.touch("write", program[at:end].strip())
        return end
    if letter == "e":
        end = _line_end(program, at)
        code = program[at:end].strip()
        shell.fork().code(code)
        shell.note("obscure", code, "ask", "has the editor run a command")
        return end
    if letter in "sy":
        return _substitution(shell, program, at, letter)
    raise _NotRead


def _skip(program: str, at: int) -> int:
    while at < len(program) and program[at] in " \t\n;":
        at += 1
    return at


def _line_end(program: str, at: int) -> int:
    end = program.find("\n", at)
    return len(program) if end < 0 else end


def _substitution(shell: Shell, program: str, at: int, letter: str) -> int:
    delimiter, ends = program[at], []
    at += 1
    while len(ends) < 2:
        if program[at] == "\\":
            at += 1
        elif program[at] == delimiter:
            ends.append(at)
        at += 1
    flags = re.compile(r"[gpiIMm0-9e]*").match(program, at)
    if letter == "s" and "e" in flags.group():
        shell.note("obscure", program, "ask", "runs what it edits as commands")
    at = flags.end()
    if program[at : at + 1] == "w":
        end = _line_end(program, at)
        shell.touch("write", program[at + 1 : end].strip())
        at = end
    if program[at : at + 1] not in ("", ";", "\n", "}", " ", "\t", "#"):
        raise _NotRead
    return at


_AWK = re.compile(
    r'(?P<string>"(?:\\.|[^"\\])*")|(?P<comment>#[^\n]*)|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)|(?P<op>>>|\|\||\|&|&&|[-+*/%^!=<>]=|\+\+|--|.)',
    re.S,
)


_AWK_OPTIONS = (
    "-F=text -v=text --field-separator=text --assign=text -f=file --file=file -i=include --include=include -l=include"
    " --load=include -e=code --source=code -E=file --exec=file -o=write -p=write -d=write"
)


@handles("awk", "gawk", "mawk", "nawk", "original-awk")
def _awk(shell: Shell, call: Call) -> str:
    found = spec("text*", _AWK_OPTIONS).sort(call.args)
    programs = [arg for role, arg in found if role == "code"]
    operands = [arg for role, arg in found if role == "text"]
    in_place = False
    for role, arg in found:
        if role == "file":
            place = shell.touch("execute", arg)
            programs.append(contents(shell, place) if str(place) in shell.shared.files else "")
        elif role == "include":
            in_place = in_place or arg == "inplace"
            shell.note(
                "obscure",
                arg,
                "allow" if arg == "inplace" else "ask",
                "takes more of its program from elsewhere",
            )
        elif role == "write":
            shell.touch("write", arg)
    if not programs and operands:
        programs.append(operands.pop(0))
    for program in programs:
        _awk_program(shell, plain(program))
    for path in operands:
        if not re.match(r"[A-Za-z_]\w*=", path):
            shell.touch("read", path)
            if in_place:
                shell.touch("write", path)
    # Fields of paths are no other paths, unless something is put before them or they are cut elsewhere.
    cut = not printing.only_names(call.stdin) and any(re.match(r"-[vF](?!/)|--", arg) for arg in call.args)
    whole = not cut and not any(re.search(r"[\"@]|sub|printf|split|FS|RS", program) for program in programs)
    return (
        printing.narrowed(call.stdin)
        if whole and call.stdin and not operands
        else printing.carried(call.stdin)
    )


def _awk_program(shell: Shell, program: str) -> None:
    if ANYTHING.search(program):
        shell.note("obscure", program, "ask", "runs a program that is not known beforehand")
    tokens = _awk_tokens(program)
    printing_now, depth = False, 0
    for at, (kind, word) in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else ("", "")
        after = tokens[at + 2] if at + 2 < len(tokens) else ("", "")
        if kind == "name" and word in ("print", "printf"):
            printing_now, depth = True, 0
        elif kind == "op" and word in ";{}\n":
            printing_now = False
        elif kind == "op" and word in "()":
            depth += 1 if word == "(" else -1
        elif kind == "op" and word in (">", ">>") and printing_now and depth <= 0:
            whole = following[0] == "string" and (after[1] in (";", "}", "\n", "") or after[0] == "")
            shell.touch("write", _string(following[1]) if whole else HOLE)
        elif kind == "op" and word in ("|", "|&"):
            # To a command, or with getline from one.
            code = following if printing_now else tokens[at - 1] if at else ("", "")
            _awk_runs(
                shell,
                code,
                alone=(printing_now and after[1] in (";", "}", "\n", ""))
                or (
                    not printing_now
                    and tokens[at - 2 : at - 1] in ([], [("op", "{")], [("op", "(")], [("op", ";")])
                ),
            )
        elif kind == "name" and word == "system" and following[1] == "(":
            closing = tokens[at + 3][1] if at + 3 < len(tokens) else ""
            _awk_runs(shell, after, alone=closing == ")")
        elif kind == "name" and word == "getline" and (following[1] == "<" or after[1] == "<"):
            path = after if following[1] == "<" else tokens[at + 3] if at + 3 < len(tokens) else ("", "")
            shell.touch("read", _string(path[1]) if path[0] == "string" else HOLE)
        elif kind == "name" and word == "ENVIRON":
            shell.note("secret", "ENVIRON", "ask", "reads the environment, which may hold secrets")
        elif kind == "op" and word == "@":
            shell.note("obscure", program, "ask", "calls what it names at run time")
        elif kind == "string" and "/inet" in word:
            shell.note("network", word, "refuse", "opens a connection")


def _awk_runs(shell: Shell, token: tuple[str, str], *, alone: bool) -> None:
    if token[0] == "string":
        shell.fork().code(_string(token[1]))
    if token[0] != "string" or not alone:
        shell.note("obscure", token[1], "ask", "runs a command that it puts together")


def _string(word: str) -> str:
    return ansi_c(word[1:-1])


def _awk_tokens(program: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    program, at = program.replace("\\\n", " "), 0
    while at < len(program):
        if program[at] == "/" and (
            not tokens
            or (tokens[-1][0] == "op" and tokens[-1][1] not in (")", "]", "$", "++", "--"))
            or tokens[-1][1] in ("in", "return", "print")
        ):
            match = re.compile(r"/(?:\\.|\[\]?[^]]*\]|[^/\\\n])*/", re.S).match(program, at)
            if match:
                tokens.append(("regex", match.group()))
                at = match.end()
                continue
        match = _AWK.match(program, at)
        at = match.end()
        goes_on = match.group() == "\n" and tokens and tokens[-1][1] in (",", "&&", "||")
        if match.lastgroup != "comment" and match.group().strip(" \t") and not goes_on:
            tokens.append((match.lastgroup, match.group()))
    return tokens
