"""What programs cannot reach, with every choice of walls and for every kind of host: root, root whose Python others
can read, and an ordinary user. What `protection` says is in force must hold; what it calls "none" is not tried."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from loopkit.sandbox.inside import kernel
from loopkit.sandbox.inside.seccomp import available, compiled

WALLS = [("namespaces", "landlock", "seccomp"), ("landlock", "seccomp"), ("seccomp",), ()]
HOSTS = ["as it is", "readable Python", "ordinary user"]
USER = 12345
LINUX = sys.platform.startswith("linux")
HAS = {"landlock": LINUX and kernel.landlock_version() > 0, "seccomp": available()}
pytestmark = pytest.mark.skipif(not LINUX, reason="the walls are Linux's")

# Makes the interpreter readable for everybody, in mounts of its own, becomes another user, and goes on as HOST.
AS_OTHER = """
import os, sys
from loopkit.sandbox.inside import kernel
kernel.unshare(kernel.NEW_MOUNT)
kernel.make_private()
closed = [path for path in (sys.base_prefix, {project!r}) if path.startswith("/root/")]
kept = {{path: os.open(path, os.O_PATH) for path in closed}}
if kept:
    kernel.mount("tmpfs", "/root", "mode=755,size=1m")
for path, fd in kept.items():
    os.makedirs(path)
    kernel.bind(f"/proc/self/fd/{{fd}}", path, writable=True)
    os.close(fd)
user = {user}
if user:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
os.environ["HOME"] = "/tmp"
os.execv(sys.executable, [sys.executable, "-c", {host!r}, *sys.argv[1:]])
"""
HOST = """
import asyncio, json, os, sys
from loopkit.sandbox import Limits, Sandbox
asked = json.loads(sys.argv[1])

async def main():
    victim = os.fork()
    if victim == 0:
        import time
        time.sleep(300)
        os._exit(0)
    try:
        told = await asyncio.gather(*(tell(walls, victim) for walls in asked["walls"]))
    finally:
        os.kill(victim, 9)
    print(json.dumps(told))

async def tell(walls, victim):
    told = {}
    async with Sandbox(walls=walls, preload=(), inputs={"given": asked["given"] + str(len(walls))}) as box:
        told["protection"] = vars(box.protection)
        done = await box.run(f"ASKED = {asked!r}\\nASKED['victim'] = {victim}\\n" + asked["probe"])
        told["probe"] = json.loads(done.stdout) if done.ended == "ok" else repr(done)
        short = Limits(seconds=0.3, memory=64 << 20, processes=8)
        for name, code in asked["ordinary"].items():
            done = await box.run(code, limits=short if name == "timeout" else Limits(seconds=60, memory=64 << 20))
            told[name] = [done.ended, done.value, done.stdout, [[made.name, made.size] for made in done.files]]
        async with box.session() as session:
            cells = ("x = 41", "x + 1", "import time; time.sleep(9)", "x")
            limits = (None, None, short, None)
            told["session"] = [(await session.run(cell, limits=limit)).value for cell, limit in zip(cells, limits)]
        home = box.home
    told["left"] = home.exists()
    told["victim"] = os.waitpid(victim, os.WNOHANG) == (0, 0)
    return told

asyncio.run(main())
"""
PROBE = """
import ctypes, glob, json, os, socket, subprocess

def possible(attempt):
    try:
        attempt()
    except OSError:
        return False
    return True

def write(path):
    with open(path, "w") as file:
        file.write("x")

def connect():
    socket.create_connection(("127.0.0.1", ASKED["port"]), timeout=2).close()

def datagram():
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", ASKED["datagrams"])

def call(*arguments):
    if ctypes.CDLL(None, use_errno=True).syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")

kill = ASKED["victim"]
given = open("inputs/given").read()
print(json.dumps({
    "files": {
        "read": possible(lambda: open(ASKED["readable"]).read()),
        "list": possible(lambda: os.listdir(os.path.dirname(ASKED["readable"]))),
        "write": possible(lambda: write(ASKED["writable"])),
        "make": possible(lambda: write(ASKED["open_folder"] + "/made")),
        "change an input": possible(lambda: write("inputs/given")),
        "change Python": possible(lambda: write(os.__file__)),
        "passwords": possible(lambda: open("/etc/shadow").read()),
        "through a link": possible(lambda: (os.symlink(ASKED["readable"], "link"), open("link").read())),
    },
    "network": {"connect": possible(connect), "send a datagram": possible(datagram)},
    "processes": {
        "signal": possible(lambda: os.kill(kill, 0)),
        "continue": possible(lambda: os.kill(kill, 18)),
    },
    "system calls": {
        "bpf": possible(lambda: call(321, 0, 0, 0)),
        "ptrace": possible(lambda: call(101, 16, kill, 0, 0)),
        "unshare": possible(lambda: call(272, 0x10000000)),
        "socket": possible(lambda: socket.socket()),
        "send descriptors": possible(lambda: socket.send_fds(socket.socketpair()[0], [b"x"], [0])),
        "mount": possible(lambda: call(165, None, b"/tmp", b"tmpfs", 0, None)),
    },
    "user": {"root's file": possible(lambda: open("/etc/shadow").read()), "uid 0": os.getuid() == 0},
    "given": given,
}))
"""
ORDINARY = {
    "value": "6 * 7",
    "files": "open('made', 'w').write('12345')",
    "child": "import subprocess; subprocess.run(['echo', 'hello'], capture_output=True, text=True).stdout",
    "timeout": "while True: pass",
    "memory": "bytearray(1 << 30)",
    "orphan": "import os\nif os.fork() == 0:\n    os.setsid()\n    os.execvp('sleep', ['sleep', '61'])",
}


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_said_to_be_in_force_holds(host):
    if host != "as it is" and os.geteuid():
        pytest.skip("only root can become somebody else")
    # Not pytest's folder, which is closed to everybody else.
    with tempfile.TemporaryDirectory(prefix="walls-") as folder:
        _holds(host, Path(folder))


def _holds(host, place):
    place.chmod(0o755)
    for name in ("readable", "writable", *(f"given{len(walls)}" for walls in WALLS)):
        (place / name).write_text(name)
    (place / "writable").chmod(0o666)
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as post,
    ):
        post.bind(str(place / "post"))
        (place / "post").chmod(0o777)
        asked = {
            "walls": WALLS, "probe": PROBE, "ordinary": ORDINARY, "port": server.getsockname()[1], "readable": str(place / "readable"),
            "given": str(place / "given"), "writable": str(place / "writable"), "open_folder": str(place / "open"),
            "datagrams": str(place / "post"),
        }  # fmt: skip
        project = str(Path(__file__).parents[2])
        code = HOST
        if host != "as it is":
            code = AS_OTHER.format(project=project, user=USER * (host == "ordinary user"), host=HOST)
        run = subprocess.run(
            [sys.executable, "-c", code, json.dumps(asked)], capture_output=True, text=True, cwd="/", timeout=240,
            env=os.environ | {"PYTHONPATH": project},
        )  # fmt: skip
    if "PermissionError" in run.stderr and "unshare" in run.stderr:
        pytest.skip("mounts cannot be made here")
    assert run.returncode == 0, run.stderr
    for walls, told in zip(WALLS, json.loads(run.stdout), strict=True):
        judge(walls, told)
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and _line(pid) == b"sleep\061\0"]


def judge(walls, told):
    protection, probe = told["protection"], told["probe"]
    assert isinstance(probe, dict), (walls, probe)
    for name in ("network", "files", "processes", "system calls"):
        if protection[name.replace(" ", "_")] != "none":
            assert not [attempt for attempt, possible in probe[name].items() if possible], (walls, name)
    if protection["user"] != "none":
        assert not [attempt for attempt, possible in probe["user"].items() if possible], walls
    for wall, name in (("landlock", "files"), ("seccomp", "network"), ("seccomp", "system_calls")):
        assert (protection[name] == "none") <= (wall not in walls or not HAS[wall]), (walls, name)
    assert probe["given"] == f"given{len(walls)}"
    assert told["value"] == ["ok", "42", "", []]
    assert told["files"] == ["ok", "5", "", [["made", 5]]]
    assert told["child"][:2] == ["ok", "'hello\\n'"]
    assert (told["timeout"][0], told["memory"][0], told["orphan"][0]) == ("timeout", "memory", "ok"), walls
    assert told["session"] == [None, "42", None, "41"], walls
    assert (told["left"], told["victim"]) == (False, True), walls


def _line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def test_the_filter_is_a_program_whose_jumps_stay_within():
    for attributes in (False, True):
        code = compiled(attributes=attributes)
        assert len(code) % 8 == 0 and len(code) // 8 <= 4096
        lines = [
            (int.from_bytes(code[n : n + 2], "little"), code[n + 2], code[n + 3])
            for n in range(0, len(code), 8)
        ]
        for number, (operation, if_true, if_false) in enumerate(lines):
            if operation & 7 == 5:
                assert number + 1 + max(if_true, if_false) < len(lines)
        assert lines[-1][0] == 6
