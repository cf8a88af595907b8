"""Small programs in perl, ruby, JavaScript and their kin, given on the command line.

They are not read: what could reach out of them is looked for, and then asked about.
"""

import re

from . import printing
from .places import ANYTHING, HOLE, secret
from .programs import handles, own, script
from .state import above
from .walking import Call, Shell
from .words import plain

# What could reach out of a program, by language; in others everything could.
_REACHES_OUT = {
    "perl": (
        r"\b(system|exec|qx|open|opendir|sysopen|unlink|rmdir|rename|mkdir|fork|kill|socket|syscall|eval|do|dump|link"
        r"|symlink|chmod|chown|truncate|utime|glob|readpipe|chdir|chroot|require|dbmopen|pipe|ENV)\b|`|&\s*[${]|->\s*\$"
        r"|\buse\s+(?!strict|warnings|utf8|List::|Scalar::|POSIX|Data::Dumper|JSON::PP|Time::|feature|v?5|integer|bigint"
        r"|Text::|Encode|constant)|<[^<>=\s]*[*/|][^<>]*>|\*\{|\(\?\??\{|\$\{\^|@\{?ARGV"
        r"|(?<![\w$@%])s(\W)(?:(?!\2).){0,200}\2(?:(?!\2).){0,200}\2\w*e"  # s///e
    ),
    "ruby": (
        r"`|%x|\b(system|exec|spawn|fork|eval|instance_eval|class_eval|send|__send__|public_send|method|open|popen\w*|load"
        r"|require_relative|syscall|trap|File|IO|Dir|FileUtils|Kernel|Process|ObjectSpace|Open3|PTY|Socket|TCPSocket|Net"
        r"|URI|ENV|binding|unsafe_load\w*|const_get|Object|at_exit|autoload|Marshal|Fiddle|Pathname|Shellwords)\b"
        r"|\brequire\b(?!\s*\(?['\"](json|csv|set|date|time|yaml|digest|bigdecimal|prime|pp|securerandom|erb)['\"])"
    ),
    "node": (
        r"\b(eval|Function|constructor|child_process|globalThis|global|module|import|Reflect|Proxy|WebAssembly|fetch"
        r"|XMLHttpRequest|WebSocket|Deno|Bun|Worker|__proto__|prototype|binding|dlopen|mainModule|vm|net|http|https|http2"
        r"|tls|dgram|cluster|worker_threads|repl|inspector|promises)\b|\\[xu]|\[\s*['\"`]|\bthis\s*\["
        r"|\bprocess\b(?!\.(argv|version|versions|platform|arch|stdout|stderr|memoryUsage|uptime|hrtime|cwd|exit"
        r"|exitCode|stdin|pid)\b)|`[^`]*\$\{[^}]*(require|process)"
        r"|\brequire\b(?!\s*\(\s*['\"](\./[^'\"]*|(node:)?(path|util|os|url|assert|crypto|fs|events|querystring"
        r"|stream|perf_hooks|string_decoder|readline))['\"]\s*\))|readFile(Sync)?\((?!\s*['\"])"
        r"|(?<!stdout\.)(?<!stderr\.)\b(write\w*|append\w*|unlink\w*|rm|rmSync|rmdir\w*|rename\w*|copy\w*|cp|cpSync"
        r"|chmod\w*|chown\w*|symlink\w*|link\w*|truncate\w*|mkdir\w*|mkdtemp\w*|create\w*Stream|open|openSync|utimes\w*)"
        r"\s*[(\[]"
    ),
}
# A command that is given to one of the functions that run it, spelled out.
_RUN = re.compile(
    r"\b(?:system|exec|execSync|spawn|spawnSync|popen|qx)\s*[({]?\s*"
    r"(?:'([^']*)'|\"((?:\\.|[^\"])*)\"|\{([^}]*)\})|`([^`]*)`"
)
_MAX_LENGTH = 4_000


def snippet(shell: Shell, interpreter: str, code: str, args: list[str]) -> str:
    """Look a program in one of these languages over."""
    language = {"nodejs": "node", "deno": "node", "bun": "node", "tsx": "node"}.get(interpreter, interpreter)
    for arg in args:
        own(shell, arg)
    if ANYTHING.search(code):
        shell.run_unknown(code)
    if len(code) > _MAX_LENGTH:
        shell.note("obscure", "", "ask", f"runs more than {_MAX_LENGTH} letters of {language}")
        return HOLE
    match = re.search(_REACHES_OUT.get(language, "."), code, re.DOTALL)
    if match:
        what = plain(match.group())[:30]
        shell.note("obscure", what, "ask", f"runs {language} code that may reach out ({what!r})")
    for inner in _RUN.findall(code):
        shell.fork().code("".join(inner))
    for quoted in re.findall(r"['\"]([^'\"\s]+)['\"]", code):
        if quoted.startswith(("/", "~", "../")) or secret(shell.place(quoted)):
            shell.touch("read", quoted)
    return HOLE


# Letters of the options that give a program, and of the others with a value.
_INLINE = {
    "perl": "eE", "ruby": "e", "node": "ep", "nodejs": "ep", "php": "r", "lua": "e", "luajit": "e", "osascript": "e",
    "julia": "eE", "Rscript": "e", "guile": "c", "racket": "e", "ocaml": "e", "tclsh": "", "runghc": "e",
}  # fmt: skip
_VALUED = {
    "perl": "MmIixC0FlD", "ruby": "rIEKCTx0F", "node": "rC", "nodejs": "rC", "php": "dcz", "lua": "l", "luajit": "lj",
    "osascript": "l", "julia": "ptLJ", "guile": "lL", "racket": "fltS", "ocaml": "I",
}  # fmt: skip


@handles(*_INLINE)
def _interpreter(shell: Shell, call: Call) -> str:
    name, todo = call.name, list(call.args)
    codes, in_place, lines = [], False, False
    while todo and todo[0].startswith("-") and len(todo[0]) > 1:
        option = todo.pop(0)
        if option == "--":
            break
        if option.startswith("--"):
            match = re.fullmatch(
                r"--(eval|print|require|import|loader|experimental-loader)(?:=(.*))?", option, re.S
            )
            if match and match[1] in ("eval", "print"):
                codes.append(match[2] or (todo.pop(0) if todo else HOLE))
            elif match:
                own(shell, match[2] or (todo.pop(0) if todo else HOLE))
                shell.note("obscure", option, "ask", "loads code before its own")
            continue
        at = 1
        while at < len(option):
            letter, rest = option[at], option[at + 1 :]
            at += 1
            if letter in _INLINE[name]:
                codes.append(rest or (todo.pop(0) if todo else HOLE))
                break
            in_place = in_place or letter == "i"
            if letter == "S" and name == "php":
                shell.note("network", rest, "ask", "serves the folder to the network")
            lines = lines or letter in "np"
            if letter in _VALUED.get(name, ""):
                if letter in "Mmr" and rest + (todo[0] if todo and not rest else ""):
                    module = rest or todo.pop(0)
                    if not re.match(
                        r"(strict|warnings|utf8|List::|Scalar::|POSIX|Data::|JSON|Time::|Text::|json|csv|set|date|time|yaml)",
                        module,
                    ):
                        shell.note("obscure", module, "ask", "loads code before its own")
                elif not rest and todo and (letter in "ICTrdz" or name not in ("perl", "ruby")):
                    own(shell, todo.pop(0))
                break
    if codes:
        for code in codes:
            snippet(shell, name, plain(code), [])
        for path in todo:
            place = shell.touch("read", path) if lines or name in ("perl", "ruby") else None
            if in_place and place is not None:
                shell.touch("write", path)
                shell.shared.files[str(place)] = HOLE
        return printing.carried(call.stdin)
    if not todo or todo[0] == "-":
        if call.stdin:
            snippet(shell, name, call.stdin, todo[1:])
            return HOLE
        if call.args:
            return HOLE
        shell.note("obscure", "", "ask", "runs what comes on its input")
        return HOLE
    return script(shell, todo[0], name, todo[1:], call.stdin)


above.snippet = snippet
