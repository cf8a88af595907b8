"""git: what stays in the repository is the agent's own work; what throws work away or reaches out is asked about."""

import re

from .places import ALL, ANYTHING, FOLDER, HOLE, HOME, NAME, NET, SECRET, SOME
from .programs import handles, own
from .walking import Call, Shell
from .words import plain

_LOOKS = {
    "status", "log", "diff", "show", "blame", "grep", "ls-files", "ls-tree", "rev-parse", "rev-list",
    "describe", "shortlog", "cat-file", "name-rev", "merge-base", "for-each-ref", "show-ref", "count-objects",
    "fsck", "diff-tree", "diff-index", "diff-files", "version", "help", "check-ignore", "check-attr",
    "whatchanged", "range-diff", "cherry", "var", "annotate", "show-branch", "hash-object", "verify-commit",
    "verify-tag", "get-tar-commit-id", "stripspace", "mktree", "write-tree", "merge-tree", "column",
    "interpret-trailers", "check-ref-format",
}  # fmt: skip
_WORKS = {
    "add", "commit", "mv", "rm", "tag", "branch", "switch", "checkout", "merge", "rebase", "cherry-pick",
    "revert", "stash", "init", "apply", "am", "worktree", "format-patch", "restore", "notes", "config", "gc",
    "reset", "clean", "archive", "bisect", "reflog", "update-index", "symbolic-ref", "remote",
    "rerere", "sparse-checkout", "commit-tree", "read-tree", "stage", "pack-refs",
}  # fmt: skip
_REACHES = {"push", "fetch", "pull", "clone", "ls-remote", "submodule"}
_SAFE_KEYS = re.compile(
    r"(user|color|advice|init|column|log|diff\.(?!external)|status|branch|push|pull|merge\.(?!.*driver)|rebase|fetch"
    r"|tag|blame|commit\.(?!template)|gc|format|i18n|apply|versionsort|safe\.directory|feature|index|pack|grep|help"
    r"|rerere|stash|worktree|submodule\.recurse|core\.(quotepath|autocrlf|eol|filemode|ignorecase|abbrev|longpaths"
    r"|whitespace|safecrlf|symlinks|logallrefupdates))",
    re.IGNORECASE,
)
_CODE_KEYS = re.compile(
    r"alias\.|core\.(pager|editor|sshcommand|fsmonitor|askpass|gitproxy)|diff\.external|pager\.|sequence\.editor|gpg\."
    r"|interactive\.|credential\.|uploadpack\.|.*\.(textconv|command|cmd|driver|clean|smudge|process|helper|program)$",
    re.IGNORECASE,
)
_RUNS = {"--upload-pack", "--receive-pack", "--exec", "--ext-diff", "-O", "--open-files-in-pager", "--extcmd"}
_TAKES_FILE = re.compile(r"--(?:file|template|pathspec-from-file)(?:=|$)|-[aesvqnpu]*F|-t$")
"""A message, or the paths, from a file."""


@handles("git")
def _git(shell: Shell, call: Call) -> str:
    args, inner = list(call.args), shell.fork()
    while args and args[0].startswith("-"):
        option = args.pop(0)
        if option == "-C" and args:
            path = args.pop(0)
            inner.touch("read", path)
            inner.cwd = inner.place(path)
        elif option in ("-c", "--config-env") and args:
            _setting(inner, *args.pop(0).partition("=")[::2], once=True)
        elif re.match(r"--(git-dir|work-tree|exec-path|namespace|super-prefix)", option):
            path = option.partition("=")[2] or (
                args.pop(0) if "=" not in option and args and option != "--exec-path" else ""
            )
            if path:
                inner.touch("write", path)
            if "exec-path=" in option:
                inner.note("obscure", option, "ask", "takes its programs from another place")
        elif option in ("--version", "--help", "--html-path"):
            return NAME
    if not args:
        return NAME
    verb, rest = args[0], args[1:]
    flags = {arg.split("=")[0] for arg in rest if arg.startswith("-")}
    words = [arg for arg in rest if not arg.startswith("-")]
    for arg in rest:
        option, _, given = arg.partition("=")
        if option in ("--output", "--output-directory", "--directory") or (
            arg.startswith("-o") and verb in ("archive", "format-patch")
        ):
            inner.touch("write", given or (rest[rest.index(arg) + 1 :] or [HOLE])[0])
        if option in _RUNS or (option == "-x" and verb in ("rebase", "difftool")):
            code = given or (rest[rest.index(arg) + 1 :] or [""])[0]
            if option != "--ext-diff" and code:
                inner.fork().code(code)
            inner.note("obscure", option, "ask", "has another program run")
        if verb in _WORKS and (taken := _TAKES_FILE.match(arg)) and (verb == "commit" or arg[1] != "t"):
            inner.touch("read", arg[taken.end() :] or (rest[rest.index(arg) + 1 :] or [HOLE])[0])
        if re.match(r"-O.", arg) and verb == "grep":
            inner.fork().code(arg[2:])
        if SECRET in arg or (NET in arg and verb != "commit"):
            inner.note("secret", "", "refuse", "puts secrets into the repository")
    if verb in _LOOKS:
        for word in (
            words if verb in ("grep", "diff", "blame", "hash-object") and "--no-index" in flags else rest
        ):
            if not word.startswith("-"):
                _elsewhere(inner, word)
        return _printed(verb, rest)
    if verb in _REACHES:
        _reach(inner, verb, rest, flags, words)
        return NET
    if verb in _WORKS:
        inner.works_here()
        _work(inner, verb, rest, flags, words)
        return SOME if verb == "branch" and "--show-current" in flags else HOLE
    inner.note("unknown", verb, "ask", f"runs git {plain(verb)}, which is not known here")
    return HOLE


def _printed(verb: str, rest: list[str]) -> str:
    if verb == "rev-parse" and "--show-toplevel" in rest:
        return FOLDER
    if verb == "rev-parse":
        return SOME if any("git" in arg or "prefix" in arg for arg in rest) else NAME
    unseen = {"-d", "-o", "-m", "--deleted", "--others", "--modified"}
    if verb == "ls-files" and all(arg.startswith("-") for arg in rest) and not unseen & {*rest}:
        return ALL
    if verb in ("ls-files", "ls-tree") or "--name-only" in rest or ("-l" in rest and verb == "grep"):
        return SOME
    names = {"describe", "rev-list", "merge-base", "symbolic-ref", "hash-object", "count-objects"}
    return NAME if verb in names else HOLE


def _elsewhere(shell: Shell, word: str) -> None:
    """A path, if it leads out of the folder; words of other kinds are commits and texts."""
    if word.startswith(("/", "../", HOME)) or word == "..":
        shell.touch("read", word)


def _setting(shell: Shell, key: str, value: str, *, once: bool) -> None:
    if _CODE_KEYS.match(key):
        code = (
            value.lstrip("!")
            if value.startswith("!") or not key.lower().startswith("alias.")
            else f"git {value}"
        )
        if key.lower() not in ("core.pager", "core.editor") or value not in (
            "cat",
            "less",
            "true",
            ":",
            "",
            "vim",
            "nano",
        ):
            shell.fork().code(code)
            if not once:
                shell.note("persist", key, "ask", "has git run a program from now on")
    elif re.match(r"core\.(hookspath|worktree|attributesfile)|include", key, re.I):
        shell.note("persist", key, "refuse", "has git run or read what stands elsewhere")
    elif not _SAFE_KEYS.match(key):
        shell.note("obscure", key, "ask", f"changes the setting {plain(key)}")


def _reach(shell: Shell, verb: str, rest: list[str], flags: set[str], words: list[str]) -> None:
    if verb == "submodule" and (not words or words[0] in ("status", "summary")):
        return
    if verb == "submodule" and words[:1] == ["foreach"]:
        shell.fork().code(" ".join(words[1:]))
    if verb == "push" and (
        flags & {"--force", "-f", "--mirror", "--delete", "-d", "--prune", "--force-with-lease"}
        or any(word.startswith(("+", ":")) for word in words[1:])
    ):
        shell.note("publish", " ".join(words), "refuse", "rewrites or deletes what is published")
    for word in words:
        if word.startswith("ext::"):
            shell.fork().code(word[5:])
        _elsewhere(shell, word)
    if verb == "clone" and len(words) > 1:
        shell.touch("write", words[1])
    shell.note(
        "network", verb, "ask", "publishes commits" if verb == "push" else "reaches another repository"
    )


_CHANGES, _HISTORY = "throws away uncommitted changes", "throws away history"
# Options that throw something away: letters, and words or subcommands.
_LOSES: dict[str, tuple[str, set[str], str]] = {
    "reset": ("", {"--hard", "--merge", "--keep"}, _CHANGES),
    "checkout": ("fBp", {"--force", "--ours", "--theirs", "--pathspec-from-file", "."}, _CHANGES),
    "switch": ("fC", {"--force", "--discard-changes", "--force-create"}, _CHANGES),
    "branch": ("DfMCd", {"--force", "--delete"}, "deletes or overwrites a branch"),
    "tag": ("df", {"--delete", "--force"}, "deletes or overwrites a tag"),
    "stash": ("", {"drop", "clear"}, "throws away put-aside changes"),
    "commit": ("n", {"--no-verify"}, "commits without the checks of the repository"),
    "reflog": ("", {"expire", "delete"}, _HISTORY),
    "gc": ("", {"--prune"}, _HISTORY),
    "worktree": ("", {"remove"}, "throws away a working tree"),
    "rebase": ("i", {"--interactive"}, "asks for an editor"),
    "rm": ("", {".", "*"}, "deletes files that were not named"),
}


def _work(shell: Shell, verb: str, rest: list[str], flags: set[str], words: list[str]) -> None:
    short = {letter for flag in flags if re.fullmatch(r"-[a-zA-Z]+", flag) for letter in flag[1:]}
    letters, options, lost = _LOSES.get(verb, ("", set(), ""))
    loses = bool(short & {*letters} or options & {*flags, *words[:1]})
    if verb == "config":
        _config(shell, rest, flags, words)
    elif verb == "reset":
        loses = loses or any(word[:1] == HOLE for word in words)
    elif verb == "clean":
        loses, lost = "n" not in short and "--dry-run" not in flags, "deletes files that are not tracked"
        if loses and shell.cwd.base != "folder":
            shell.touch("delete", ".")
    elif verb == "checkout":
        loses = loses or "--" in rest[:-1] or "." in words or (len(words) > 1 and not short & {"b", "t"})
    elif verb == "restore":
        staged = "--staged" in flags or "S" in short
        loses, lost = not staged or "--worktree" in flags or "W" in short, _CHANGES
    elif verb == "worktree" and words[:1] == ["add"] and len(words) > 1:
        shell.touch("write", words[1])
    elif verb == "remote" and words[:1] not in ([], ["show"], ["get-url"]):
        shell.note("network", " ".join(words), "ask", "changes which repositories it works with")
    elif verb == "bisect" and words[:1] == ["run"]:
        shell.invoke(rest[rest.index("run") + 1 :])
    elif verb == "rm":
        loses = any(word in options or ANYTHING.search(word) for word in words)
    if verb in ("rm", "mv", "add", "apply", "am", "init", "archive"):
        for word in words:
            _elsewhere(shell, word) if verb != "init" else shell.touch("write", word)
    if verb in ("apply", "am") and flags & {"--unsafe-paths"}:
        shell.note("write", "", "refuse", "lets a patch write outside the folder")
    if loses:
        shell.note("discard", verb, "ask", lost)


def _config(shell: Shell, rest: list[str], flags: set[str], words: list[str]) -> None:
    asks = flags & {"--get", "--get-all", "--list", "-l", "--get-regexp", "--show-origin", "--name-only"}
    words = words[1:] if words[:1] in (["get"], ["set"], ["list"], ["unset"]) else words
    where = flags & {"--global", "--system", "--file", "-f"}
    if not asks and len(words) > 1:
        _setting(shell, words[0], words[1], once=False)
    if where and (len(words) > 1 or flags & {"--unset", "--unset-all", "--edit", "-e", "--add"}):
        shell.note("persist", " ".join(words), "ask", "changes git's settings beyond this repository")
    for word in rest:
        if word.startswith(("/", HOME, "../")):
            own(shell, word)
