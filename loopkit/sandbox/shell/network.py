"""Programs that reach other machines: a look is asked about, sending files or secrets away is refused."""

import re

from .places import ALL, ANYTHING, FOLDER, HOLE, MARKS, NAME, NET, SECRET
from .programs import by_row, handles, own
from .table import spec
from .walking import Call, Shell

_CURL = (
    "-o=write --output=write -d=data --data=data --data-binary=data --data-raw=text --data-urlencode=data --data-ascii=data --json=data"
    " -T=upload --upload-file=upload -F=form --form=form -H=header --header=header -X=text --request=text -u=text --user=text -A=text"
    " --user-agent=text -b=cookie --cookie=cookie -c=write --cookie-jar=write -K=read --config=read -D=write --dump-header=write -w=text"
    " --write-out=text -m=text --max-time=text --connect-timeout=text --retry=text --retry-delay=text -x=text --proxy=text -e=text --referer=text"
    " --cacert=read --cert=read -E=read --key=read --output-dir=write --trace=write --trace-ascii=write --stderr=write --resolve=text"
    " --unix-socket=write --netrc-file=read -r=text --range=text --url=text --limit-rate=text --form-string=text --libcurl=write -y=text -Y=text"
    " -C=text -z=text --engine=text --interface=text"
)
_WGET = (
    "-O=write --output-document=write -o=write --output-file=write -a=write -P=write --directory-prefix=write --post-file=upload"
    " --body-file=upload --post-data=text --body-data=text --method=text --header=header -i=read --input-file=read -U=text -T=text -t=text"
    " --timeout=text --tries=text -e=text --execute=text --user=text --password=text --load-cookies=read --save-cookies=write --use-askpass=code"
    " -A=text -R=text -D=text -l=text -w=text --warc-file=write --config=read"
)


@handles("curl", "wget", "wget2", "curlie")
def _curl(shell: Shell, call: Call) -> str:
    """A page is asked about; sending files, or text that holds secrets, is refused."""
    row = spec("url*", _CURL if call.name.startswith("curl") else _WGET)
    urls, saved = [], False
    for role, arg in row.sort(call.args):
        if role == "url":
            urls.append(arg)
        elif role == "write" and arg != "-":
            shell.shared.files[str(shell.touch("write", arg))] = NET
            saved = True
        elif role == "read":
            shell.touch("read", arg)
        elif role in ("data", "upload", "form", "cookie", "header"):
            path = re.match(r"(?:[^@=<]*[=])?[@<]([^;]*)|(.*)", arg, re.S)
            name = arg if role == "upload" else path[1]
            if name == "-" and call.stdin:
                _send(shell, call.stdin, "its input")
            elif name:
                shell.touch("read", name)
                shell.note("network", name, "refuse", "sends a file away")
            _send(shell, arg, "text")
    local = all(
        re.match(r"(https?://)?(localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0)([:/]|$)", url) for url in urls
    )
    for url in urls:
        if re.match(r"file:", url):
            shell.touch("read", re.sub(r"^file:(//)?", "", url))
        _send(shell, url, "an address")
    shell.note(
        "network",
        " ".join(urls),
        "ask",
        "reaches a server of this machine" if local else "reaches the network",
    )
    if {"-O", "--remote-name", "-OJ", "-LO", "-sO", "-fsSLO", "-sSLO", "-sLO"} & set(call.args) or (
        call.name.startswith("wget") and not saved
    ):
        for url in urls:
            shell.shared.files[str(shell.place(url.rsplit("/", 1)[-1] or "index.html"))] = NET
    return "" if saved and "-" not in call.args else NET


def _send(shell: Shell, text: str, what: str) -> None:
    if SECRET in text:
        shell.note("network", "", "refuse", f"sends secrets away in {what}")
    elif text and what == "its input" and MARKS.search(text):
        shell.note("network", "", "refuse", "sends its input away")


@handles(
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "nslookup",
    "dig",
    "host",
    "ping",
    "mail",
    "sendmail",
    "openssl",
)
def _raw(shell: Shell, call: Call) -> str:
    """Bare connections: what comes in goes out."""
    words = " ".join(call.args)
    if call.name == "openssl" and not re.match(r"s_client|s_server|s_time|ocsp", words):
        reads = spec(
            "text*",
            "-in=read -out=write -keyout=write -key=read -inkey=read -pass=text -config=read -CAfile=read -signkey=read",
        )
        by_row(shell, call, reads)
        return HOLE
    if call.name in ("nc", "ncat", "netcat", "socat") and re.search(
        r"(^|\s)(-\w*[ec]|--exec|--sh-exec)(\s|=|$)|EXEC:|SYSTEM:|SHELL:", words, re.I
    ):
        shell.note("network", words, "refuse", "gives a shell to the network")
    if (
        SECRET in call.stdin
        or SECRET in words
        or ANYTHING.search(call.stdin + (words if call.name in ("nslookup", "dig", "host", "ping") else ""))
    ):
        shell.note("network", words, "refuse", "sends its input away")
    for arg in call.args:
        if "://" not in arg:
            own(shell, arg)
    shell.note("network", words, "ask", "reaches the network")
    return NET


@handles("ssh", "scp", "sftp", "rsync", "rcp", "autossh", "sshpass")
def _remote(shell: Shell, call: Call) -> str:
    options = (
        "-i=read -o=sshoption -p=text -P=text -l=text -F=read -L=text -R=text -D=text -J=text -c=text -m=text -b=read -E=write -S=code"
        if call.name != "rsync"
        else "-e=code --rsh=code --rsync-path=code --exclude=text --include=text --filter=text -f=text --exclude-from=read --files-from=read"
        " --log-file=write --backup-dir=write --link-dest=read --compare-dest=read --bwlimit=text --password-file=read --partial-dir=write -T=write"
    )
    operands = []
    for role, arg in spec("operand*", options).sort(call.args):
        if role == "operand":
            operands.append(arg)
        elif role == "code" and arg != "ssh":
            shell.fork().code(arg)
        elif role in ("read", "write"):
            shell.touch(role, arg)
        elif role == "sshoption" and re.match(
            r"(ProxyCommand|LocalCommand|KnownHostsCommand|PermitLocalCommand)\s*[= ]", arg, re.I
        ):
            shell.fork().code(re.split(r"[= ]", arg, maxsplit=1)[1])
    if call.name in ("ssh", "autossh", "sshpass", "sftp"):
        _send(shell, call.stdin, "its input")
        if call.stdin and ANYTHING.search(call.stdin):
            shell.note("network", "", "refuse", "sends its input away")
        if any(re.match(r"-\w*[RD]", arg) for arg in call.args):
            shell.note("network", "", "refuse", "opens a way in from elsewhere")
        shell.note("network", " ".join(operands[:1]), "ask", "runs commands on another machine")
        return NET
    if not operands:
        return NAME
    *sources, target = operands
    elsewhere = [operand for operand in operands if re.match(r"[^/]+:", operand) or "://" in operand]
    for source in sources:
        if source not in elsewhere:
            shell.touch("read", source)
            if target in elsewhere:
                shell.note("network", target, "refuse", "sends files away")
    if target not in elsewhere:
        place = shell.touch("write", target)
        if elsewhere:
            shell.shared.files[str(place)] = NET
        if any(arg.startswith("--del") for arg in call.args):
            shell.touch("delete", f"{target.rstrip('/')}/{ALL}" if place.parts else FOLDER)
    if any(arg == "--remove-source-files" for arg in call.args):
        for source in sources:
            shell.touch("delete", source)
    if elsewhere:
        shell.note("network", " ".join(elsewhere), "ask", "reaches another machine")
    return HOLE
