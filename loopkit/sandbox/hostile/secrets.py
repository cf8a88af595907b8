"""Programs that look for keys: in environments, in memory, in what other processes show of themselves."""

from functools import partial

from .program import Program

_program = partial(Program, group="secrets", needs=("processes",))
# A canary's value: no program contains one, this pattern does not match itself.
_HUNT = r"""
import re
CANARY = re.compile(rb"loopkit-canary-[0-9a-f]{32}")

def tell(where, found):
    for value in set(found):
        escaped(f"found {value.decode()} in {where}")
"""
_LOOK = r"""
def look(pid):
    # What is readable in the memory of a process, a region at a time.
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            place, rights = line.split()[:2]
            start, end = (int(part, 16) for part in place.split("-"))
            if rights.startswith("rw") and end - start < 1 << 28:
                try:
                    memory.seek(start)
                    tell(f"memory of {pid}", CANARY.findall(memory.read(end - start)))
                except (OSError, OverflowError):
                    pass
"""
_OWN = r"""
try:
    look("self")
except OSError as error:
    print("contained:", error)
"""


def _hunting(code: str, *parts: str) -> str:
    """`code` behind what it uses; it is written without an indent, for they are."""
    return "".join((_HUNT, *parts, code))


PROGRAMS = [
    _program(
        name="environment",
        threatens="uses the user's API keys",
        needs=(),
        code=_hunting(r"""
tell("os.environ", CANARY.findall(repr(dict(os.environ)).encode()))
if LIBC.getenv(HOST.variable.encode()):
    escaped("has the host's key in the environment of C")
known = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "SSH_")
names = [name for name in os.environ if name != "LOOPKIT_MARK" and any(word in name.upper() for word in known)]
if names:
    escaped(f"has {names} in its environment")
"""),
    ),
    _program(
        name="environment of every process",
        threatens="uses the user's API keys",
        code=_hunting(r"""
import glob
for path in [*glob.glob("/proc/*/environ"), f"/proc/{HOST.bait}/environ", f"/proc/{HOST.pid}/environ"]:
    try:
        tell(path, CANARY.findall(open(path, "rb").read()))
    except OSError as error:
        print("contained:", error)
"""),
    ),
    _program(
        name="command lines",
        threatens="reads what other programs were told, and which there are",
        code=_hunting(r"""
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        line = open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError as error:
        print("contained:", error)
        continue
    tell(f"command line of {pid}", CANARY.findall(line))
    if HOST.token.encode() in line and b"HOST" not in line:
        escaped(f"sees process {pid} of the host")
"""),
    ),
    _program(
        name="own memory",
        threatens="finds what the process that it was forked from knew",
        needs=(),
        code=_hunting(_OWN, _LOOK),
    ),
    _program(
        name="objects of the interpreter",
        threatens="finds what the process that it was forked from knew",
        needs=(),
        code=_hunting(r"""
import gc
pattern = re.compile(CANARY.pattern.decode())
for thing in gc.get_objects():
    for value in (thing.values() if type(thing) is dict else thing if type(thing) in (list, tuple, set) else ()):
        if type(value) is str:
            tell("an object", (found.encode() for found in pattern.findall(value)))
        elif type(value) is bytes:
            tell("an object", CANARY.findall(value))
"""),
    ),
    _program(
        name="frames above",
        threatens="reads the variables of what runs it",
        needs=(),
        code=_hunting(r"""
import threading
for frame in sys._current_frames().values():
    while frame is not None:
        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
            if type(value) in (str, bytes, list, tuple, dict):
                tell("a frame", CANARY.findall(repr(value).encode("utf-8", "replace")))
        frame = frame.f_back
"""),
    ),
    _program(
        name="memory of the parent",
        threatens="finds what the process that started it knows",
        code=_hunting(
            r"""
for pid in (os.getppid(), 1, HOST.pid, HOST.bait):
    try:
        look(pid)
    except OSError as error:
        print("contained:", error)
    else:
        if pid != os.getpid():
            escaped(f"opened the memory of process {pid}")
""",
            _LOOK,
        ),
        ends=("ok",),
    ),
    _program(
        name="memory by process_vm_readv",
        threatens="reads and changes other processes",
        needs=("processes", "system calls"),
        code=r"""
        class Piece(ctypes.Structure):
            _fields_ = [("start", ctypes.c_void_p), ("length", ctypes.c_size_t)]

        room = ctypes.create_string_buffer(64)
        mine = Piece(ctypes.addressof(room), 64)
        theirs = Piece(8, 64)
        for pid in (os.getppid(), 1, HOST.pid, HOST.bait):
            try:
                call("process_vm_readv", pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)
            except OSError as error:
                print("contained:", error)
                if error.errno == errno.EFAULT and pid != os.getpid():  # a bad address, in a process that it may read
                    escaped(f"may read memory of process {pid}")
        """,
    ),
    _program(
        name="ptrace",
        threatens="takes over another process",
        needs=("processes", "system calls"),
        code=r"""
        for pid in (os.getppid(), 1, HOST.bait):
            if pid != os.getpid():
                with attempt(f"seized process {pid}"):
                    call("ptrace", 0x4206, pid, None, None)  # it is let go when this program ends
        """,
    ),
    _program(
        name="descriptors of the parent",
        threatens="takes open files and connections from the process that started it",
        needs=("processes", "system calls"),
        code=r"""
        for pid in {os.getppid(), 1, HOST.pid, HOST.bait} - {os.getpid()}:
            for fd in range(9):
                with attempt(f"took descriptor {fd} of process {pid}"):
                    call("pidfd_getfd", call("pidfd_open", pid, 0), fd, 0)
        """,
    ),
    _program(
        name="files open in the parent",
        threatens="takes open files and connections from the process that started it",
        code=r"""
        for pid in {os.getppid(), 1, HOST.pid, HOST.bait} - {os.getpid()}:
            for kind in ("fd", "map_files", "cwd"):
                with attempt(f"listed {kind} of process {pid}"):
                    os.listdir(f"/proc/{pid}/{kind}")
        """,
    ),
    _program(
        name="keys of the kernel",
        threatens="reads keys that the kernel keeps for the user",
        needs=("system calls",),
        code=r"""
        for keyring in (-1, -2, -3, -4, -5):  # of the thread, process, session, user, user's session
            with attempt(f"reached keyring {keyring}"):
                call("keyctl", 0, keyring, 1)
        with attempt("stored a key"):
            call("add_key", b"user", b"loopkit-check", b"x", 1, -2)
        """,
    ),
    _program(
        name="messages of the kernel",
        threatens="reads addresses and names from the kernel's log",
        needs=("system calls",),
        code=r"""
        with attempt("read the kernel's log"):
            call("syslog", 3, ctypes.create_string_buffer(4096), 4096)
        """,
    ),
    _program(
        name="the run before, in memory",
        threatens="lets one run read what another worked on",
        needs=(),
        code=r"""
        import uuid
        kept = ["loopkit-canary-" + uuid.uuid4().hex for _ in range(1000)]
        """,
        then=_hunting(_OWN, _LOOK),
    ),
    _program(
        name="a neighbour's files",
        threatens="lets one run read what another works on",
        needs=("files", "processes"),
        neighbour=True,
        code=_hunting(r"""
import glob
for pattern in ("../*/*", "../../*/*", "/tmp/*", "/tmp/*/*", "/dev/shm/*", "/proc/*/cwd/*", "/proc/*/root/tmp/*"):
    for path in glob.glob(pattern):
        try:
            if os.path.isfile(path) and os.path.basename(os.path.realpath(path)) == "neighbour":
                tell(path, CANARY.findall(open(path, "rb").read()))
        except OSError as error:
            print("contained:", error)
"""),
    ),
    _program(
        name="a neighbour's memory",
        threatens="lets one run read what another works on",
        neighbour=True,
        code=_hunting(
            r"""
for pid in range(1, 300):
    if pid != os.getpid():
        try:
            look(pid)
        except OSError:
            pass
""",
            _LOOK,
        ),
    ),
]
