"""Programs that find, pack, link and make files."""

import itertools
import re

from .places import ALL, ENDLESS, FOLDER, HOLE, MARKS, NAME, SECRET, SOME, Place, secret
from .programs import by_row, handles, own
from .redirecting import contents
from .table import spec, table
from .walking import Call, Shell

_TESTS = {
    "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-type", "-size", "-mtime",
    "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-newer", "-perm", "-user", "-group", "-uid", "-gid",
    "-links", "-inum", "-samefile", "-maxdepth", "-mindepth", "-printf", "-fstype", "-xtype", "-lname",
    "-newermt", "-regextype",
}  # fmt: skip
_DEPTHS = {"-maxdepth", "-mindepth", "-printf", "-regextype"}


@handles("find", "fd", "fdfind", "gfind")
def _find(shell: Shell, call: Call) -> str:
    """What is found stands below the start; without a test it is everything there."""
    args = list(call.args)
    if call.name.startswith("fd"):
        if {"-x", "-X", "--exec", "--exec-batch"} & set(args):
            at = next(n for n, arg in enumerate(args) if arg in ("-x", "-X", "--exec", "--exec-batch"))
            shell.fork().invoke(
                [SOME if word == "{}" else word for word in args[at + 1 :]] + ([] if "{}" in args else [SOME])
            )
            args = args[:at]
        for arg in args:
            own(shell, arg)
        return SOME
    while args and re.match(r"-([LPHEXdsx]+$|O|D$)", args[0]):
        args = args[2 if args[0] == "-D" else 1 :]
    starts = []
    while args and not args[0].startswith(("-", "(", "!", "\\")):
        starts.append(args.pop(0))
    starts = starts or ["."]
    tested = any(
        arg in _TESTS - _DEPTHS or arg in ("-empty", "-executable")
        for before, arg in zip(["", *args], args, strict=False)
        if before not in ("!", "-not") and arg != "-type"
    )
    for start in starts:
        shell.touch("read", start)
    rest = ALL if not tested else SOME
    named = [word.strip("*") for option, word in itertools.pairwise(args) if option in ("-name", "-iname")]
    if rest == SOME and any(secret(Place("folder", (name,))) for name in named):
        rest = next(name for name in named if secret(Place("folder", (name,))))
    only = ("-maxdepth", "0") in itertools.pairwise(args)
    found = [start if only else f"{start.rstrip('/')}/{rest}" for start in starts]
    printed = "\n".join(found) + "\n"
    at = 0
    while at < len(args):
        action = args[at]
        at += 2 if action in _TESTS else 1
        if action == "-delete":
            for path in found:
                shell.touch("delete", path)
        elif action in ("-exec", "-execdir", "-ok", "-okdir"):
            ends = (
                n
                for n in range(at, len(args))
                if args[n] in (";", "\\;") or args[n - 1 : n + 1] == ["{}", "+"]
            )
            end = next(ends, len(args))
            for path in found:
                inner = shell.fork()
                if action in ("-execdir", "-okdir"):
                    inner.cwd, path = inner.place(path.rsplit("/", 1)[0] or "/"), f"./{rest}"
                inner.invoke([word.replace("{}", path) for word in args[at:end]])
            printed, at = HOLE, end + 1
        elif action in ("-fprint", "-fls", "-fprint0", "-fprintf"):
            shell.touch("write", args[at] if at < len(args) else HOLE)
            at += 1
        elif action == "-printf" and not re.fullmatch(r"([^/.]* )?%[pP](\\[n0])?", args[at - 1]):
            printed = NAME if re.fullmatch(r"[^/.%]*%[^pPhHl]([^/.]*)", args[at - 1]) else HOLE
        elif action == "-files0-from":
            shell.touch("read", args[at] if at < len(args) else HOLE)
    return printed


@handles("tar", "bsdtar", "gtar")
def _tar(shell: Shell, call: Call) -> str:
    args = list(call.args)
    if args and not args[0].startswith("-"):
        args[0] = f"-{args[0]}"
    flags = "".join(arg[1:] for arg in args if re.match(r"-[a-zA-Z]", arg)) + "".join(
        letter
        for word, letter in (
            ("--create", "c"),
            ("--extract", "x"),
            ("--get", "x"),
            ("--list", "t"),
            ("--delete", "r"),
        )
        if word in args
    )
    making = bool(set("cru") & set(re.sub(r"f.*", "", flags) + flags[:3])) and "x" not in flags[:4]
    options = (
        f"-f={'write' if making else 'read'} --file={'write' if making else 'read'} -C=enter --directory=enter -T=read --files-from=read -X=read"
        " --exclude=text --exclude-from=read --strip-components=text --transform=text --xform=text --checkpoint=text --checkpoint-action=action"
        " --to-command=code -I=code --use-compress-program=code --rsh-command=code -F=code --info-script=code --new-volume-script=code"
        " --owner=text --group=text --mtime=text --mode=text -b=text --one-top-level=enter -g=write --listed-incremental=write --wildcards-match=text"
    )
    inner = shell.fork()
    unpacks = not making and "x" in flags
    operands = []
    for role, arg in spec("member*", options).sort(args):
        if role == "enter":
            inner.touch("write" if unpacks else "read", arg)
            inner.cwd = inner.place(arg)
        elif role in ("read", "write") and arg != "-":
            shell.touch(role, arg)
        elif role == "code":
            shell.fork().code(arg, HOLE)
        elif role == "action" and arg.startswith("exec="):
            shell.fork().code(arg[5:])
        elif role == "member":
            operands.append(arg)
    if unpacks:
        inner.works_here()
    if unpacks and ("P" in flags or "--absolute-names" in args):
        shell.note("write", "", "refuse", "unpacks to wherever the archive says")
    if making:
        # Their order matters to tar, not to what may be read.
        places = [inner.touch("read", arg) for arg in operands]
        if "--remove-files" in args:
            for arg in operands:
                inner.touch("delete", arg)
        return SECRET if any(secret(place) and place.base != "folder" for place in places) else HOLE
    return HOLE


@handles("rsync")
def _rsync(shell: Shell, call: Call) -> str:
    """As cp; either side may stand on another machine, and what only the target has may be deleted."""
    row = table()["rsync"]
    by_row(shell, call, row)
    *sources, target = [arg for role, arg in row.sort(call.args) if role in ("read", "write")] or [""]
    elsewhere = [path for path in (*sources, target) if re.match(r"[^/]+:|\w+://", path)]
    if elsewhere:
        shell.note("network", " ".join(elsewhere), "ask", "reaches another machine")
    elif any(arg.startswith("--del") for arg in call.args):
        shell.touch("delete", f"{target.rstrip('/')}/{ALL}")
    if "--remove-source-files" in call.args:
        for source in sources:
            shell.touch("delete", source)
    return HOLE


@handles("dd")
def _dd(shell: Shell, call: Call) -> str:
    given = dict(arg.split("=", 1) for arg in call.args if "=" in arg)
    source, target = given.get("if"), given.get("of")
    read = contents(shell, shell.touch("read", source)) if source else call.stdin
    if ENDLESS in read and "count" in given:
        read = HOLE
        if _bytes(given.get("bs", "512")) * _bytes(given["count"]) > _MUCH:
            shell.note("exhaust", target or "", "refuse", "fills the disk")
    if target is None:
        return read
    place = shell.touch("write", target)
    if ENDLESS in read and not str(place).startswith("/dev/"):
        shell.note("exhaust", target, "refuse", "fills the disk")
    shell.shared.files[str(place)] = read
    return ""


_MUCH = 20 * 2**30


def _bytes(word: str) -> float:
    match = re.fullmatch(r"(\d+)([kKMGTPE]?)(i?[bB]?)", word)
    return int(match[1]) * 1024 ** " KMGTPE".index(match[2].upper() or " ") if match else 2.0**60


@handles("fallocate", "truncate", "head")
def _sized(shell: Shell, call: Call) -> str:
    """Programs that make as many bytes as they are told."""
    match = re.search(r"(?:^|\s)(?:-[lsc]\s?|--(?:size|length|bytes)[=\s])[-+<>]*(\S+)", " ".join(call.args))
    much = match is not None and (MARKS.search(match[1]) or _bytes(match[1]) > _MUCH)
    if much and (call.name != "head" or ENDLESS in call.stdin or "/dev/zero" in call.args):
        shell.note("exhaust", "", "refuse", "fills the disk")
    return by_row(shell, call, table()[call.name])


@handles("mktemp")
def _mktemp(shell: Shell, call: Call) -> str:
    """A new file in /tmp, or made from a template in the folder."""
    args = ["--tmpdir=/tmp" if arg == "--tmpdir" else arg for arg in call.args]
    found = dict(spec("template", "-p=in --tmpdir=in --suffix=text").sort(args))
    folder = found.get("in") or ("/tmp" if "template" not in found or "-t" in args else "")
    name = re.sub("X{3,}", NAME, found.get("template", f"tmp.{NAME}"))
    path = f"{folder}/{name}" if folder else name
    shell.touch("write", path)
    return path


@handles("ln", "link")
def _ln(shell: Shell, call: Call) -> str:
    row = spec("text*", "-t=write --target-directory=write -S=text")
    found = row.sort(call.args)
    names = [arg for role, arg in found if role == "text"]
    for role, arg in found:
        if role == "write":
            shell.touch("write", arg)
    if not names:
        return ""
    *targets, name = names if len(names) > 1 else [names[0], names[0].rsplit("/", 1)[-1]]
    place = shell.touch("write", name)
    hard = not any(re.match(r"-\w*s|--symbolic", arg) for arg in call.args)
    shell.shared.linked |= not hard
    for target in targets:
        # A link is as far away as what it leads to; a relative one starts where it stands.
        start = (
            Place(place.base, place.parts[:-1])
            if not hard and not target.startswith(("/", FOLDER))
            else shell.cwd
        )
        leads = start.join(target, shell.shared.folder)
        inner = shell.fork()
        inner.cwd = start
        inner.touch("read", target)
        path = (
            shell.here() + "/" + target
            if start == shell.cwd and not target.startswith(("/", "~", FOLDER)) and leads.base != "home"
            else target
        )
        if leads.base != "folder":
            shell.shared.links[str(place)] = path
            shell.shared.links[str(Place(place.base, (*place.parts, target.rsplit("/", 1)[-1])))] = path
        elif str(leads) in shell.shared.files:
            shell.shared.files[str(place)] = shell.shared.files[str(leads)]
    return ""


@handles("chmod", "chown", "chgrp")
def _chmod(shell: Shell, call: Call) -> str:
    flags = [arg for arg in call.args if re.fullmatch(r"-[RvfcHLP]+|--\w[\w-]*(=.*)?", arg)]
    names = [arg for arg in call.args if arg not in flags and arg != "--"]
    mode = names.pop(0) if names and not any(arg.startswith("--reference") for arg in flags) else ""
    for path in names:
        shell.touch("write", path)
    if call.name != "chmod":
        shell.note("privilege", mode, "ask", "changes who owns files")
        return ""
    if re.fullmatch(r"0*[2467]\d{3}", mode) or re.search(r"[+=][rwxXt]*s", mode):
        shell.note("privilege", mode, "refuse", "makes a program that runs with the rights of its owner")
    recursive = any("R" in arg or "recursive" in arg for arg in flags)
    everybody = re.fullmatch(r"0*[0-7]?[0-7]?[2367]|(?![ug])(.*[,oa])?[oa+]*\+\w*w.*", mode)
    if MARKS.search(mode) or (recursive and everybody):
        shell.note("discard", mode, "ask", "lets everybody change the files")
    if recursive and re.fullmatch(r"0*[0-3]?00|[aou]*-\w*[rwx]+", mode):
        shell.note("discard", mode, "ask", "takes the rights to the files away")
    return ""
