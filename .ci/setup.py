"""Build `.venv` from the pins in constraints.txt: `python3 .ci/setup.py`; `... pins` writes the pins anew, and
`... bench` adds what the benchmarks compare with, which set-up leaves out.

Standard library only, and syntax that old Pythons can parse (no f-strings, no annotations), so that
"this Python is too old" is one clear line and not a SyntaxError.
"""

import ast
import fcntl
import hashlib
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROJECT = os.path.join(ROOT, "pyproject.toml")
PINS = os.path.join(ROOT, "constraints.txt")
VENV = os.path.join(ROOT, ".venv")
STAMP = os.path.join(VENV, ".ready")
BENCH_STAMP = os.path.join(VENV, ".ready-bench")
LOG = os.path.join(VENV, "setup.log")
PYTHON = os.path.join(VENV, "bin", "python")
UV = os.path.join(VENV, "bin", "uv")
OLDEST = (3, 11)
# In constraints.txt: the pins above this line are set-up's, those below it are added by `make bench`.
BENCH_ONLY = "# Only for the extra `bench`:\n"
BOOTSTRAP = b"setuptools\nwheel\nuv\n"  # pinned with what pyproject.toml asks for
OTHER_PYTHONS = ("python3.13", "python3.12", "python3.11")
# What pip and uv print when no index answers. "from versions: none" is pip's last word on it.
NO_NETWORK = re.compile(
    r"from versions: none|NewConnectionError|NameResolutionError|Temporary failure in name resolution"
    r"|Max retries exceeded|Connection refused|ConnectTimeout|Network is unreachable|dns error"
    # pip 26 and later
    r"|Failed to establish a new connection|connection to .* timed out",
    re.IGNORECASE,
)


class Stop(Exception):
    """Set-up cannot go on; the message is the one line a person needs."""


def say(text):
    print("setup: " + text)
    sys.stdout.flush()


def main(arguments):
    if arguments not in ([], ["pins"], ["bench"]):
        raise Stop("usage: python3 .ci/setup.py [pins|bench]")
    # The script locks itself: a second `make` waits here, then finds the work done. No lock file is left.
    with open(os.path.abspath(__file__), "r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("waiting for another set-up of this checkout ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if arguments == ["pins"]:
            write_pins()
        else:
            make_environment()
        if arguments == ["bench"]:
            add_bench()


# --- the environment ---------------------------------------------------------------------------------------


def make_environment():
    digest = wanted_digest()
    made_from = read(STAMP)
    if made_from == digest and runs(PYTHON):
        os.utime(STAMP, None)  # same contents, newer mtime (a branch was switched): nothing to install
        return
    started = time.time()
    if made_from and runs(PYTHON):
        os.remove(STAMP)  # a failure from here on must not look finished
    else:
        interpreter = choose_python()
        say(("remaking the unfinished .venv" if os.path.isdir(VENV) else "creating .venv") + " ...")
        call([interpreter, "-m", "venv", "--clear", VENV], "python -m venv", log=None)
    install()
    write(STAMP, digest)
    say("ready in %d s" % round(time.time() - started))


def add_bench():
    digest = wanted_digest()
    if read(BENCH_STAMP) == digest:
        return
    started = time.time()
    setups, added = read_pins()
    pins = [pin for pin in setups + added if pin[0] != "uv"]
    say("adding %d packages for the benchmarks ..." % len(added))
    install_pins(pins, "bench.txt", os.path.exists(UV))
    write(BENCH_STAMP, digest)
    say("ready in %d s" % round(time.time() - started))


def choose_python():
    """This Python, or a newer one on the PATH; raises Stop with what is wrong with this one."""
    complaint = None
    for name in (sys.executable, *OTHER_PYTHONS):
        complaint_here = why_not(name)
        if complaint_here is None:
            return name
        complaint = complaint or complaint_here
    raise Stop(complaint)


def why_not(python):
    """None if `python` can build the environment. It is run to find out: a name on the PATH may be hollow."""
    probe = (
        "import sys; print('%d.%d.%d' % tuple(sys.version_info[:3]))\n"
        "try: import venv, ensurepip\n"
        "except ImportError: print('incomplete')"
    )
    try:
        words = subprocess.check_output([python, "-c", probe], stderr=subprocess.DEVNULL).decode().split()
    except (OSError, subprocess.CalledProcessError):
        return "%s does not run" % python
    version = words[0]
    if tuple(int(part) for part in version.split(".")) < OLDEST:
        found = "Python %s found (%s), but loopkit needs >= %d.%d" % (version, python, OLDEST[0], OLDEST[1])
        return found + ": install one, or name it: make PYTHON=/path/to/python3"
    if "incomplete" in words:
        found = "Python %s (%s) has no venv module" % (version, python)
        return found + ": install it (Debian, Ubuntu: apt install python3-venv)"
    return None


def install():
    pins, _ = read_pins()
    uv_works = install_uv("".join(block for name, block in pins if name == "uv"))
    here = sum(" ; " not in block for _, block in pins)  # those with a marker are mostly for other platforms
    say("installing about %d packages ..." % here)
    install_pins([pin for pin in pins if pin[0] != "uv"], "pins.txt", uv_works)
    # The build backend is among the pins, so nothing is fetched for the project itself.
    say("installing loopkit from this checkout ...")
    editable = ["--no-deps", "--no-build-isolation", "-e", ROOT]
    if not (uv_works and try_uv(editable)):
        call(pip("install") + editable, "pip install -e .")


def install_pins(pins, name, uv_works):
    requirements = os.path.join(VENV, name)
    write(requirements, "".join(block for _, block in pins))
    wanted = ["--require-hashes", "-r", requirements]
    if not (uv_works and try_uv(wanted)):
        call(pip("install") + wanted, "pip install")


def install_uv(requirement):
    """uv installs the rest several times faster than pip does, but nothing depends on having it."""
    if not requirement:
        return False
    say("installing uv ...")
    path = os.path.join(VENV, "uv.txt")
    write(path, requirement)
    try:
        # Only a wheel: where uv ships none (rare platforms), a build would take a Rust compiler and minutes.
        wheel = ["--only-binary", ":all:", "--require-hashes", "-r", path]
        call(pip("install") + wheel, "pip install uv")
        return True
    except Stop as stop:
        if "network" in str(stop):
            raise
        say("uv cannot be installed here: going on with pip (slower)")
        return False


def try_uv(arguments):
    settings = pip_settings()
    command = [UV, "pip", "install", "--python", PYTHON]
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        command.append("--no-index")
    try:
        call(command + arguments, "uv pip install", env=uv_environment(settings))
        return True
    except Stop:
        say("uv failed (see %s): trying again with pip (slower)" % os.path.relpath(LOG, ROOT))
        return False


# --- the pins ----------------------------------------------------------------------------------------------


def write_pins():
    """Resolve for every platform and Python >= 3.11; `PINS_FLAGS=--upgrade` moves what is already pinned."""
    if not os.path.exists(UV):
        raise Stop("uv is not in .venv: run `make setup` first")
    settings = pip_settings()
    # A local collection of files would give hashes for this machine's platform only.
    for key in ("extra-index-url", "find-links"):
        settings.pop(key, None)
    draft = PINS + ".new"
    write(draft, read(PINS))  # what is pinned already stays, unless --upgrade is asked for
    env = uv_environment(settings)
    command = [UV, "pip", "compile", "--quiet", "--universal", "--python-version", "%d.%d" % OLDEST]
    # Where packages come from is the user's affair: no address and no local path goes into the file.
    command += ["--generate-hashes", "--no-header", "--no-annotate"]
    command += ["--no-emit-index-url", "--no-emit-find-links"]
    command += ["--extra", "test", PROJECT, "-", "--output-file", draft]
    flags = os.environ.get("PINS_FLAGS", "").split()
    try:
        # One resolution for all, so that `make bench` only ever adds to what set-up has installed ...
        call(command + flags + ["--extra", "bench"], "uv pip compile", env=env, stdin=BOOTSTRAP)
        pins = split_pins(read(draft))
        # ... and the same versions without the extra, to see which of them are set-up's.
        call(command, "uv pip compile", env=env, stdin=BOOTSTRAP)
        setups = {name for name, _ in split_pins(read(draft))}
        text = "".join(block for name, block in pins if name in setups) + BENCH_ONLY
        text += "".join(block for name, block in pins if name not in setups)
        if "://" in text:
            raise Stop("the new pins hold an address; constraints.txt is left as it was")
        write(draft, text)
        os.replace(draft, PINS)
    finally:
        if os.path.exists(draft):
            os.remove(draft)
    say("%d pins written to constraints.txt" % len(pins))


def read_pins():
    """Set-up's pins, and those that only the benchmarks need."""
    above, _, below = read(PINS).partition(BENCH_ONLY)
    return split_pins(above), split_pins(below)


def split_pins(text):
    """[(name, its lines with the hashes)]"""
    blocks = re.findall(r"^(?!#)\S.*\n(?:[ \t]+.*\n)*", text, re.MULTILINE)
    return [(re.split(r"[=<>!~;\[ ]", block, maxsplit=1)[0], block) for block in blocks]


# --- pip's settings, for uv --------------------------------------------------------------------------------


def pip_settings():
    """What pip would use: pip's environment over its [install] section over its [global] one."""
    out = subprocess.check_output([PYTHON, "-m", "pip", "config", "list"], stderr=subprocess.DEVNULL).decode()
    found = {}
    for line in out.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        rank = {"global": 0, "install": 1, ":env:": 2}.get(section.rstrip("."), -1)
        if rank >= found.get(name, (0,))[0]:
            try:
                found[name] = (rank, str(ast.literal_eval(value)))
            except (ValueError, SyntaxError):
                continue  # a line pip printed for people
    return {name: value for name, (_, value) in found.items()}


def uv_environment(settings):
    """uv does not read pip's settings: they are translated for one call. The user's own UV_* variables win."""
    env = dict(os.environ)

    def default(variable, value):
        if value:
            env.setdefault(variable, value)

    default("UV_DEFAULT_INDEX", settings.get("index-url"))
    default("UV_INDEX", " ".join(settings.get("extra-index-url", "").split()))
    default("UV_FIND_LINKS", ",".join(settings.get("find-links", "").split()))
    # Like pip, look at all indexes; hashes are checked, so a stranger's package cannot slip in.
    default("UV_INDEX_STRATEGY", "unsafe-best-match")
    default("UV_INSECURE_HOST", " ".join(settings.get("trusted-host", "").split()))
    default("UV_HTTP_TIMEOUT", settings.get("timeout") or settings.get("default-timeout"))
    default("ALL_PROXY", settings.get("proxy"))
    default("SSL_CLIENT_CERT", settings.get("client-cert"))
    cert = settings.get("cert", "")
    default("SSL_CERT_DIR" if os.path.isdir(cert) else "SSL_CERT_FILE", cert)
    return env


# --- small tools -------------------------------------------------------------------------------------------


def pip(verb):
    return [PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input", verb]


def call(command, label, env=None, log=LOG, stdin=None):
    """Run quietly, with a sign of life every 15 s. On failure: Stop, with its last line or 'no network'."""
    env = dict(env or os.environ)
    env.pop("PYTHONHOME", None)
    env.setdefault("PIP_RETRIES", "2")  # pip's five take half a minute to say that there is no network
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    started = time.time()
    try:
        while True:
            try:
                out = process.communicate(stdin, timeout=15)[0].decode("utf-8", "replace")
                break
            except subprocess.TimeoutExpired:
                stdin = None
                say("  ... still at it after %d s" % (time.time() - started))
    except BaseException:
        process.kill()
        process.wait()
        raise
    if log and os.path.isdir(os.path.dirname(log)):
        with open(log, "a") as handle:
            handle.write("$ %s\n%s\n" % (label, out))
    if process.returncode:
        if NO_NETWORK.search(out):
            raise Stop(
                "no network: no package index could be reached. Connect, or point pip at an index or folder "
                "you can reach (PIP_INDEX_URL, PIP_FIND_LINKS or pip.conf), and run the same command again"
            )
        lines = [line.strip() for line in out.splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().startswith("error")]
        last = (errors or lines or ["exit status %d" % process.returncode])[-1]
        raise Stop("%s failed: %s" % (label, last) + (" (all of it: .venv/setup.log)" if log else ""))


def runs(python):
    try:
        return subprocess.call([python, "-c", "import pip"], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def wanted_digest():
    return hashlib.sha256((read(PROJECT) + "\0" + read(PINS)).encode()).hexdigest()


def read(path):
    try:
        with open(path, "rb") as handle:
            return handle.read().decode()
    except OSError:
        return ""


def write(path, text):
    """Whole or not at all, so that an interrupted run leaves no half-written stamp."""
    part = path + ".part"
    with open(part, "wb") as handle:
        handle.write(text.encode())
    os.replace(part, path)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Stop as stop:
        sys.exit("setup: %s" % stop)
    except KeyboardInterrupt:
        sys.exit("setup: interrupted; run it again, it starts over by itself")
    except OSError as error:
        sys.exit("setup: %s" % error)
