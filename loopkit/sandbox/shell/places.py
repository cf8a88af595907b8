"""Where a path leads, as far as its text tells, and what may be done there.

Texts hold marks, characters of a private range, for what is not known beforehand.
"""

import re
from dataclasses import dataclass

from .decisions import Kind, Policy, Verdict

HOLE = "\ue000"  # any text
NAME = (
    "\ue001"  # one plain word: a number, a date, the name of a branch; no slash, no blank, no dash before it
)
SOME = "\ue002"  # a path that was selected below the place where it stands
NET = "\ue003"  # any text, from the network
SECRET = "\ue004"  # any text, with secrets in it
ENDLESS = "\ue005"  # any text, without end
JOB = "\ue006"  # the number of a process that the command itself started
HOME = "\ue007"  # the home directory
FOLDER = "\ue008"  # the folder of the agent
UNKNOWN = HOLE + NET + SECRET + ENDLESS
MARKS = re.compile("[\ue000-\uf8ff]")
_ACTIVE = 0xE100  # a letter that is special to the shell, not quoted, stands this far up


def active(letter: str) -> str:
    """The mark for a special letter that is not quoted."""
    return chr(_ACTIVE + ord(letter))


GLOBS = {active(letter): letter for letter in "*?[]"}
ANYTHING = re.compile(f"[{UNKNOWN}]")
ALL = active("*")
_MAX_PATH = 4096


def shown(text: str) -> str:
    """The text as a person should see it."""
    text = "".join(GLOBS.get(letter, letter) for letter in text).replace(HOME, "~").replace(FOLDER, ".")
    return MARKS.sub("…", text)


@dataclass(frozen=True)
class Place:
    """A path without its detours. `base` is where it starts: the folder, the root, the home directory, a place
    that climbs out of the folder, or nowhere that is known."""

    base: str  # "folder", "root", "home", "above", "unknown"
    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        start = {"folder": "", "root": "/", "home": "~/", "above": "../", "unknown": "…/"}[self.base]
        return start + "/".join(self.parts) or "."

    def join(self, text: str, folder: tuple[str, ...]) -> "Place":
        """Where `text` leads from here. `folder` holds the parts of the agent's folder as the machine sees it."""
        if ANYTHING.search(text.split("/")[0]):
            return Place("unknown", (text,))
        if len(text) > _MAX_PATH:
            return Place("unknown", (HOLE,))
        place = self
        if text.startswith("/"):
            place = Place("root")
        elif text[:1] == HOME or text == "~" or text.startswith("~/"):
            # A quoted tilde is a plain letter to the shell; too near to a home directory to tell apart.
            place, text = Place("home"), text[1:]
        elif text[:1] == FOLDER:
            place, text = Place("folder"), text[1:]
        base, parts = place.base, list(place.parts)
        for part in text.split("/"):
            if part == ".." and parts:
                parts.pop()
            elif part == "..":
                base = base if base in ("root", "unknown") else "above"
            elif ANYTHING.search(part):  # what is unknown may climb anywhere
                return Place("unknown", (*parts, part))
            elif part not in ("", "."):
                parts.append(part)
        if base == "root" and folder and tuple(parts[: len(folder)]) == folder:
            return Place("folder", tuple(parts[len(folder) :]))
        return Place(base, tuple(parts))


_DEVICES = {"null", "stdin", "stdout", "stderr", "tty", "fd", "zero", "urandom", "random", "full"}
_SECRET = re.compile(
    r"(^|/)(\.ssh|\.aws|\.gnupg|\.kube|\.azure|\.docker|\.netrc|\.pgpass|\.npmrc|\.pypirc|\.git-credentials|\.password-store"
    r"|\.config/(gcloud|gh|rclone)|\.mozilla|\.vault-token|\.my\.cnf|\.boto|\.s3cfg|\.env|\.envrc|\.terraformrc"
    r"|\.?credentials(\.\w+)?|secrets?(\.(ya?ml|json|toml|txt|env))?|\.\w*_history|id_(rsa|dsa|ecdsa|ed25519)"
    r"|login\.keychain-db|wallet\.dat|kubeconfig|service[-_]account\.json|\.htpasswd)($|/)"
    r"|\.(pem|key|p12|pfx|jks|kdbx|keystore|ppk)$|(^|/)\.env\.(?!example|sample|template|dist)\w+$"
    r"|^/etc/(g?shadow|sudoers|ssl/private|krb5\.keytab)|^/etc/ssh/\S*key|^/run/secrets|^/var/run/secrets"
    r"|^/proc/[^/]+/(environ|mem|cmdline|maps|fd|root)|^/dev/(k?mem|port)$|^/(var/)?run/docker\.sock|^/var/lib/(sss|docker)"
)
_HOOKS = re.compile(
    r"^\.git/(hooks|config|info/attributes|modules)(/|$)|(^|/)\.git/(hooks|config)(/|$)|^\.envrc$|^\.vscode/(tasks|settings)\.json$"
)


def secret(place: Place) -> bool:
    """Whether a path is one where secrets are kept."""
    return _SECRET.search(str(place)) is not None


def weigh(kind: Kind, place: Place, policy: Policy) -> tuple[Verdict, str]:
    """What to say of reading, writing, deleting or executing there, and why."""
    path = str(place)
    verb = {"read": "reads", "write": "writes", "delete": "deletes", "execute": "runs a program"}[kind]
    if place.base == "unknown":
        return ("refuse" if kind == "delete" else "ask"), f"{verb}, it is not known where"
    if place.base == "folder":
        return _weigh_inside(kind, path, place.parts, verb)
    if kind in ("read", "execute") and secret(place):
        return "refuse", f"{verb} where secrets are kept ({shown(path)})"
    if place.base == "root":
        device = place.parts[0] == "dev" if place.parts else False
        if device and len(place.parts) > 1:
            return _weigh_device(kind, place.parts[1], verb)
        below = [scratch for scratch in policy.scratch if f"{path}/".startswith(f"{scratch}/")]
        if below and kind == "delete" and path[len(below[0]) :].strip("/" + ALL) == "":
            return "ask", f"deletes all of {below[0]}"
        if below:
            return "allow", f"{verb} in {below[0]}"
        if kind in ("read", "execute") and any(f"{path}/".startswith(f"{root}/") for root in policy.readable):
            return "allow", f"{verb} of the system"
    if kind == "read":
        return "ask", f"reads outside the folder ({shown(path)})"
    if kind == "execute":
        return "ask", f"runs a program from outside the folder ({shown(path)})"
    return "refuse", f"{verb} outside the folder ({shown(path)})"


_CLASS = f"{active('[')}[^/{active(']')}]*{active(']')}"
_EVERY = re.compile(f"[{ALL}{active('?')}.]*|\\.?{_CLASS}[{ALL}]")  # * and .[!.]*


def _weigh_inside(kind: Kind, path: str, parts: tuple[str, ...], verb: str) -> tuple[Verdict, str]:
    if kind == "delete" and all(_EVERY.fullmatch(part) for part in parts):
        return "ask", "deletes all of the folder"
    if kind == "delete" and ".git" in parts[:1]:
        return "ask", "deletes the history of the repository"
    if kind == "write" and _HOOKS.search(path):
        return "refuse", f"writes what the repository's tools run by themselves ({shown(path)})"
    if kind in ("read", "execute") and secret(Place("folder", parts)):
        return "ask", f"{'reads' if kind == 'read' else 'runs'} what may hold secrets ({shown(path)})"
    return "allow", f"{verb} in the folder"


def _weigh_device(kind: Kind, name: str, verb: str) -> tuple[Verdict, str]:
    if name in ("tcp", "udp"):
        return "refuse", "opens a connection through the shell"
    if name == "shm" and kind in ("read", "write"):
        return "allow", f"{verb} in shared memory"
    if name in _DEVICES and kind in ("read", "write"):
        return "allow", f"{verb} /dev/{name}"
    return ("ask" if kind == "read" else "refuse"), f"{verb} the device /dev/{shown(name)}"
