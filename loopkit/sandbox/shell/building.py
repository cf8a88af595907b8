"""Programs that build, test, install and publish, and data bases in a file."""

import itertools
import re

from .places import ANYTHING, HOLE
from .programs import handles, interpret, own
from .table import spec
from .walking import Call, Shell
from .words import plain


@handles(
    "make", "gmake", "just", "task", "rake", "invoke", "nox-make", "gradle", "gradlew", "mvn", "mvnw", "ant", "bmake"
)  # fmt: skip
def _make(shell: Shell, call: Call) -> str:
    options = "-f=file --file=file --makefile=file -C=enter --directory=enter -l=text -o=text -W=text --eval=eval -I=read -E=eval -p=text"
    row = spec("target*", options)
    inner = shell.fork()
    inner.works_here()
    for role, arg in row.sort(call.args):
        if role == "enter":
            inner.touch("execute", arg)
            inner.cwd = inner.place(arg)
        elif role == "file" and arg in ("-", "/dev/stdin"):
            for line in re.findall(r"^\t(.*)$", call.stdin, re.M):
                inner.code(re.sub(r"\$\((\w+)\)", r"${\1}", line.lstrip("@-")).replace("$$", "$"))
            shell.note("obscure", arg, "ask", "takes rules from its input")
        elif role == "file":
            inner.touch("execute", arg)
            _written_rules(inner, arg)
        elif role == "eval":
            for code in re.findall(r"\$\(shell (.*?)\)|^\t(.*)$", arg, re.M):
                inner.code("".join(code))
            shell.note("obscure", arg, "ask", "takes rules from its arguments")
        elif role == "target" and ANYTHING.search(arg):
            shell.note("unknown", arg, "ask", "makes a target that is not known beforehand")
        elif role == "target" and "=" in arg:
            if "$(" in arg or "`" in arg or re.match(r"(SHELL|\.SHELLFLAGS|MAKE)=", arg):
                shell.note("obscure", arg, "ask", "gives rules code of its own")
            own(shell, arg)
        elif (
            role == "target"
            and re.search(r"install|deploy|publish|release|upload|push|distribute|provision|prod", arg)
            and not re.search(r"-n$|dry", " ".join(call.args))
        ):
            shell.note("install", arg, "ask", f"makes {plain(arg)!r}, which reaches beyond the folder")
    for name in ("Makefile", "makefile", "GNUmakefile"):
        _written_rules(inner, name)
    return HOLE


def _written_rules(shell: Shell, name: str) -> None:
    if str(shell.place(name)) in shell.shared.files:
        shell.note("obscure", name, "ask", "runs rules that the same command wrote")


_INSTALLS = {
    "install", "i", "ci", "add", "update", "upgrade", "up", "remove", "rm", "uninstall", "un", "link", "get",
    "fetch", "download", "vendor", "exec", "x", "dlx", "create", "init-from", "sync", "lock", "tidy", "audit",
    "outdated", "view", "info", "search", "dedupe", "rebuild", "generate", "self", "self-update", "tool",
    "import", "global", "set", "config", "cache", "wheel", "use", "pip", "mod",
}  # fmt: skip
_PUBLISHES = {
    "publish", "unpublish", "login", "adduser", "logout", "token", "owner", "yank", "upload", "deprecate",
    "access", "dist-tag", "deploy",
}  # fmt: skip
_FROM = re.compile(r"--(extra-)?index-url|-i$|--trusted-host|--registry|--find-links|-f$")
_READS = {
    "list", "ls", "show", "freeze", "check", "tree", "why", "--version", "version", "help", "-v", "-V", "env",
    "debug", "inspect", "explain", "metadata", "config-list", "root", "bin", "prefix", "--help", "licenses",
    "-h", "locate-project", "pkgid",
}  # fmt: skip


@handles(
    "pip", "npm", "yarn", "pnpm", "go", "cargo", "uv", "bun", "deno", "poetry", "pdm", "hatch", "pipenv", "conda"
)  # fmt: skip
def _packages(shell: Shell, call: Call) -> str:
    """Runners of the folder's own tasks that also install and publish."""
    shell.works_here()
    words = [arg for arg in call.args if not arg.startswith("-")]
    verb = words[0] if words else "install" if call.name == "yarn" else ""
    if verb in ("mod", "pip", "config", "cache", "tool") and len(words) > 1:
        looks = (
            {"get", "list", "ls"}
            if call.name == "npm"
            else _READS | {"get", "vet", "verify", "graph", "edit", "dir"}
        )
        if words[1] in looks:
            return HOLE
    if ANYTHING.search(verb):
        shell.note("unknown", verb, "ask", f"has {call.name} do what is not known beforehand")
    for arg in call.args:
        if verb in _INSTALLS and _FROM.match(arg):
            shell.note("install", arg, "refuse", "installs from a place that nobody vouches for")
        own(shell, arg)
    if verb in _PUBLISHES or (verb == "run" and re.search(r"publish|release|deploy", "".join(words[1:2]))):
        kind = "refuse" if verb in _PUBLISHES else "ask"
        shell.note("publish", verb, kind, "publishes a package")
    elif verb == "run" and call.name in ("uv", "poetry", "pdm", "hatch", "pipenv", "conda"):
        rest = call.args[call.args.index("run") + 1 :]
        valued = ("--with", "-p", "--python", "--extra", "--group", "-n", "--name", "--directory")
        while rest and rest[0].startswith("-"):
            rest = rest[2:] if rest[0] in valued else rest[1:]
        if "--with" in call.args:
            shell.note("install", "", "ask", "may download and install packages")
        return shell.invoke(rest, call.stdin) if rest else HOLE
    elif verb == "eval" or (
        call.name in ("bun", "deno") and {"-e", "--eval", "-p", "--print"} & {*call.args[:2]}
    ):
        return interpret(shell, "node", call.args[-1], [], "")
    elif verb in _INSTALLS and (call.name, verb) not in (("go", "tool"), ("go", "link"), ("pip", "info")):
        shell.note("install", verb, "ask", "may download, install or change packages")
    elif call.name == "go" and any(re.match(r"-(exec|toolexec)", arg) for arg in call.args):
        shell.note("obscure", "", "ask", "has another program run what it builds")
    for option, given in itertools.pairwise(call.args):
        if option in ("-o", "--output", "--prefix", "--out-dir", "--target-dir") and not given.startswith(
            "-"
        ):
            shell.touch("write", given)
    return HOLE


_REACHES_OUT = re.compile(
    r"^\s*\.(shell|system|output|once|import|load|read|excel|edit|log|clone|save|backup|restore|open|archive|ar|cd|dump-to)\b"
    r"|load_extension|writefile|readfile|\battach\b|\bedit\(|copy\b.*\bto\b|install\b|httpfs",
    re.I | re.M,
)


@handles("sqlite3", "duckdb")
def _sqlite(shell: Shell, call: Call) -> str:
    row = spec("write text*", "-cmd=sql -init=read -separator=text -newline=text -nullvalue=text -A=text")
    found = row.sort(call.args)
    text = "\n".join(
        [arg for role, arg in found if role in ("text", "sql")] + ([call.stdin] if call.stdin else [])
    )
    for role, arg in found:
        if role == "write" and arg != ":memory:":
            shell.touch("write", arg)
        elif role == "read":
            shell.touch("read", arg)
    for code in re.findall(r"^\s*\.(?:shell|system)\s+(.*)$|\|\s*([^|'\"]*)$", text, re.M):
        if "".join(code) and re.search(r"^\s*\.", text, re.M):
            shell.fork().code("".join(code))
    if ANYTHING.search(text) or _REACHES_OUT.search(text):
        shell.note("obscure", "", "ask", "has the data base run, read or write something else")
    return HOLE
