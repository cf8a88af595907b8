"""Programs that take too much: memory, time, processors, disk, files, depth."""

from functools import partial

from .program import Program

_program = partial(Program, group="resources")
_memory = partial(_program, needs=("memory",), ends=("memory", "killed", "error", "timeout"))
_disk = partial(_program, ends=("disk", "error", "ok", "killed", "timeout"))
_HOLD = r"""
import time

def hold(what, size, limit):
    if size > 2 * limit:
        time.sleep(1)  # a look every now and then may miss a short excess, not one that lasts
        escaped(f"holds {size >> 20} MiB of {what}, the limit is {limit >> 20}")

"""

PROGRAMS = [
    _memory(
        name="one block of memory",
        threatens="takes the memory of everything else",
        code=_HOLD
        + r"""
block = bytearray(4 * HOST.memory)
hold("memory", len(block), HOST.memory)
""",
    ),
    _memory(
        name="a list without end",
        threatens="takes the memory of everything else",
        code=_HOLD
        + r"""
kept, size = [], 0
while size < 4 * HOST.memory:
    kept.append("x" * 100_000 + str(size))
    size += 100_000
hold("memory", size, HOST.memory)
""",
    ),
    _memory(
        name="arrays",
        threatens="takes the memory of everything else, past Python's own allocator",
        code=_HOLD
        + r"""
import numpy
kept = []
for _ in range(16):
    kept.append(numpy.ones(HOST.memory // 4 // 8))
hold("memory", sum(array.nbytes for array in kept), HOST.memory)
""",
    ),
    _memory(
        name="mapped memory",
        threatens="takes the memory of everything else, past every allocator",
        code=_HOLD
        + r"""
import mmap
kept = []
for _ in range(64):
    kept.append(mmap.mmap(-1, HOST.memory // 16))
    kept[-1].write(b"x" * len(kept[-1]))
hold("mapped memory", sum(map(len, kept)), HOST.memory)
""",
    ),
    _memory(
        name="memory of many processes",
        threatens="takes the memory of everything else, a little in each process",
        code=_HOLD
        + r"""
reading, writing = os.pipe()
children = 0
for _ in range(HOST.processes - 4):
    if os.fork() == 0:
        block = b"x" * (HOST.memory // 3)
        os.write(writing, b"x")
        time.sleep(20)
        os._exit(0)
    children += 1
for _ in range(children):
    os.read(reading, 1)
hold("memory", children * HOST.memory // 3, HOST.memory)
""",
        seconds=3.0,
    ),
    _memory(
        name="memory in /tmp and /dev/shm",
        threatens="takes memory that no process is seen to have",
        code=_HOLD
        + r"""
size = 0
for folder in ("/tmp", "/dev/shm"):
    for number in range(4 * HOST.memory // HOST.file_size):
        try:
            with open(f"{folder}/fill-{number}", "wb") as file:
                size += file.write(b"x" * (HOST.file_size - 1))
        except OSError as error:
            print("contained:", error)
            break
hold("files in memory", size, HOST.memory)
""",
        ends=("ok", "memory", "disk", "killed", "error"),
    ),
    _program(
        name="memory without a process",
        threatens="takes memory that no process is seen to have",
        needs=("system calls",),
        code=r"""
        with attempt("made a file of memory"):
            call("memfd_create", b"x", 0)
        with attempt("made SysV shared memory"):
            call("shmget", 0, 4096, 0o1600)
        with attempt("made a message queue"):
            call("mq_open", b"loopkit-check", 0o102, 0o600, None)
        """,
    ),
    _memory(
        name="pickle of 100 MB",
        threatens="takes several times the memory that it seems to need",
        code=r"""
        import pickle
        pickle.loads(pickle.dumps([bytes(100_000_000), pickle.dumps([os.urandom(100) for _ in range(1_000_000)])]))
        pickle.loads(pickle.dumps([str(n) * 40 for n in range(2_000_000)]))
        """,
    ),
    _memory(
        name="a bomb to unpack",
        threatens="takes memory by a few bytes of input",
        seconds=1.0,
        code=r"""
        import zlib
        worker = zlib.compressobj()
        packed = b"".join(worker.compress(bytes(1 << 22)) for _ in range(256)) + worker.flush()
        len(zlib.decompress(packed))
        """,
    ),
    _program(
        name="endless loop",
        threatens="takes a processor for ever",
        seconds=0.5,
        code="while True: pass",
        ends=("timeout",),
    ),
    _program(
        name="endless loop in C",
        threatens="takes a processor for ever, where Python cannot interrupt it",
        seconds=0.5,
        code="sum(range(10**13))",
        ends=("timeout",),
    ),
    _program(
        name="endless arithmetic",
        threatens="takes a processor for ever, where Python cannot interrupt it",
        seconds=0.5,
        code="10**10**9",
        ends=("timeout", "memory"),
    ),
    _program(
        name="endless regular expression",
        threatens="takes a processor for ever, where Python cannot interrupt it",
        seconds=0.5,
        code=r"""
        import re
        re.match("(a+)+$", "a" * 64 + "b")
        """,
        ends=("timeout",),
    ),
    _program(
        name="all processors",
        threatens="takes all processors",
        seconds=1.0,
        code=r"""
        for _ in range(3):
            os.fork()
        while True:
            pass
        """,
        ends=("timeout",),
    ),
    _program(
        name="sleep",
        threatens="is waited for without end",
        seconds=0.5,
        code=r"""
        import time
        time.sleep(10**6)
        """,
        ends=("timeout",),
    ),
    _program(
        name="waits for a key",
        threatens="is waited for without end",
        seconds=0.5,
        code="input('your password? ')",
        ends=("error",),
    ),
    _program(
        name="recursion",
        threatens="overflows the stack",
        code=r"""
        sys.setrecursionlimit(10**9)

        def deeper(_):
            return sorted([0], key=deeper)

        deeper(0)
        """,
        ends=("error", "killed", "memory", "timeout"),
    ),
    _program(
        name="recursion in C",
        threatens="overflows the stack of a part that is written in C",
        seconds=1.0,
        code=r"""
        import ast, json, pickle
        sys.setrecursionlimit(10**9)
        nested = []
        for _ in range(10**6):
            nested = [nested]
        for what in (lambda: json.loads("[" * 10**6), lambda: repr(nested), lambda: ast.parse("-" * 10**6 + "1"),
                     lambda: pickle.dumps(nested), lambda: nested == [nested]):
            try:
                what()
            except (RecursionError, MemoryError, ValueError, SyntaxError) as error:
                print("contained:", type(error).__name__)
        """,
    ),
    _program(
        name="nested program",
        threatens="overflows the stack of the compiler",
        bare=True,
        code="-" * 200_000 + "1",
        ends=("error", "killed", "memory"),
    ),
    _program(
        name="long program",
        threatens="takes memory and time before it even runs",
        bare=True,
        seconds=1.0,
        code="x = [" + "1," * 1_000_000 + "]\nlen(x)",
        ends=("ok", "memory", "timeout", "error"),  # out of memory, the parser speaks of nesting
    ),
    _disk(
        name="huge file",
        threatens="fills the disk",
        code=_HOLD
        + r"""
size = 0
with open("huge", "wb", 0) as file:
    while size < 4 * HOST.disk:
        size += file.write(b"x" * (1 << 20))
hold("disk", size, HOST.disk)
""",
        ends=("error", "disk", "killed"),
    ),
    _disk(
        name="large files",
        threatens="fills the disk",
        code=_HOLD
        + r"""
size = 0
while size < 4 * HOST.disk:
    with open(f"large-{size}", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, HOST.file_size)
        size += HOST.file_size
hold("disk", size, HOST.disk)
""",
        ends=("disk", "error"),
    ),
    _disk(
        name="files without a name",
        threatens="fills the disk where nobody finds what fills it",
        code=_HOLD
        + r"""
kept, size = [], 0
while size < 4 * HOST.disk:
    kept.append(open("unnamed", "wb"))
    os.posix_fallocate(kept[-1].fileno(), 0, HOST.file_size)
    os.unlink("unnamed")
    size += HOST.file_size
hold("disk", size, HOST.disk)
""",
        ends=("disk", "error"),
    ),
    _disk(
        name="files behind a mapping",
        threatens="fills the disk with files that have no name and are not open",
        code=_HOLD
        + r"""
import mmap
kept, size = [], 0
while size < 4 * HOST.disk:
    with open("mapped", "w+b") as file:
        os.posix_fallocate(file.fileno(), 0, HOST.file_size)
        address = LIBC.mmap(None, ctypes.c_size_t(4096), 1, 1, file.fileno(), 0)
        if address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "mmap")
    os.unlink("mapped")
    size += HOST.file_size
hold("disk", size, HOST.disk)
""",
    ),
    _disk(
        name="files in the mail",
        threatens="fills the disk with files that are on their way between two sockets",
        code=_HOLD
        + r"""
import socket
left, right = socket.socketpair()
size = 0
while size < 4 * HOST.disk:
    with open("sent", "w+b") as file:
        os.posix_fallocate(file.fileno(), 0, HOST.file_size)
        socket.send_fds(left, [b"x"], [file.fileno()])
    os.unlink("sent")
    size += HOST.file_size
hold("disk", size, HOST.disk)
""",
    ),
    _disk(
        name="a folder that cannot be listed",
        threatens="fills the disk where nobody may look",
        code=_HOLD
        + r"""
os.mkdir("closed", 0o300)
size = 0
while size < 4 * HOST.disk:
    with open(f"closed/{size}", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, HOST.file_size)
    size += HOST.file_size
hold("disk", size, HOST.disk)
""",
        ends=("disk", "error"),
    ),
    _disk(
        name="many files",
        threatens="takes every file that the disk has room for",
        seconds=1.0,
        code=r"""
        import time
        for number in range(100_000):
            open(f"{number}", "w").close()
        time.sleep(1)
        escaped("has 100,000 files")
        """,
        ends=("disk", "timeout"),
    ),
    _disk(
        name="many files in /tmp",
        threatens="takes the kernel's memory for names of files",
        needs=("files",),
        seconds=1.0,
        code=r"""
        for number in range(100_000):
            open(f"/tmp/{number}", "w").close()
        escaped("has 100,000 files in /tmp")
        """,
    ),
    _disk(
        name="sparse file",
        threatens="seems to be larger than the disk, and is read by the host",
        code=r"""
        with attempt("made a file of 1 TB"):
            with open("sparse", "wb") as file:
                file.truncate(10**12)
        """,
        ends=("ok", "error", "killed"),
    ),
    _disk(
        name="deep folders",
        threatens="cannot be listed or removed by its path",
        code=r"""
        for _ in range(1200):
            os.mkdir("d" * 100)
            os.chdir("d" * 100)
        """,
        ends=("ok", "disk", "timeout"),
    ),
    _program(
        name="every descriptor",
        threatens="takes every open file that the system has room for",
        code=r"""
        kept = []
        try:
            while len(kept) < 10 * HOST.open_files:
                kept.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            print("contained:", error)
        else:
            escaped(f"has {len(kept)} open files")
        """,
        ends=("ok", "error"),
    ),
]
