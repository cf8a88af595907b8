"""Programs that go to the kernel directly, where a mistake of the kernel's would make them its master.

Each asks in a way that changes nothing: with arguments that the kernel looks at only once it has found the caller to
be allowed, so that any other error than a refusal is a success.
"""

from functools import partial

from .program import Program

_program = partial(Program, group="system calls", needs=("system calls",))
_ASK = r"""
def ask(what, name, *arguments):
    try:
        call(name, *arguments)
    except OSError as error:
        print(f"contained: {what}:", errno.errorcode.get(error.errno))
        if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS):
            return
    escaped(f"may {what}")

"""
_FOREIGN = r"""
import mmap, struct
if platform.machine() != "x86_64":
    sys.exit()

def foreign(number, *arguments):
    # push rbx; mov ebx, ecx, edx and eax; int 0x80; pop rbx; ret: a system call of 32-bit programs
    code = b"\x53"
    for register, value in zip((0xBB, 0xB9, 0xBA, 0xB8), (*arguments, *[0] * 3)[:3] + (number,)):
        code += struct.pack("<BI", register, value)
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code + b"\xcd\x80\x5b\xc3")
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()

"""

PROGRAMS = [
    _program(
        name="BPF",
        threatens="runs programs in the kernel",
        code=r"""
        import struct
        with attempt("made a BPF map"):
            call("bpf", 0, struct.pack("4I", 2, 4, 4, 1).ljust(128, b"\0"), 128)
        """,
    ),
    _program(
        name="performance counters",
        threatens="watches other programs, and reaches code with a long list of mistakes",
        code=r"""
        import struct
        with attempt("opened a counter"):
            call("perf_event_open", struct.pack("IIQ", 1, 112, 0).ljust(112, b"\0"), 0, -1, -1, 0)
        """,
    ),
    _program(
        name="page faults of its own",
        threatens="stops the kernel at a place of its choice, the first step of many attacks",
        code=r"""
        for flags in (0, 1):
            with attempt("opened userfaultfd"):
                call("userfaultfd", flags)
        """,
    ),
    _program(
        name="modules",
        threatens="loads code into the kernel",
        code=_ASK
        + r"""
ask("load a module", "init_module", None, 0, b"")
ask("remove a module", "delete_module", b"loopkit_check_none", os.O_NONBLOCK)
ask("load another kernel", "kexec_load", 0, 1000, 0, 0xFFFF)
""",
    ),
    _program(
        name="the machine",
        threatens="stops, renames or reconfigures the machine",
        code=_ASK
        + r"""
ask("restart the machine", "reboot", 0, 0, 0, None)
ask("swap to a file", "swapon", b"/loopkit-check-none", 0)
ask("end swapping", "swapoff", b"/loopkit-check-none")
ask("rename the machine", "sethostname", b"x", -1)
ask("keep accounts", "acct", b"/loopkit-check-none")
""",
    ),
    _program(
        name="the clock",
        threatens="changes the time of the machine",
        code=r"""
        import time
        for clock in (time.CLOCK_REALTIME, time.CLOCK_TAI):
            with attempt(f"set clock {clock}"):
                time.clock_settime_ns(clock, time.clock_gettime_ns(clock))
        """,
    ),
    _program(
        name="ports of the processor",
        threatens="talks to devices past the kernel",
        code=r"""
        for function, arguments in (("iopl", (3,)), ("ioperm", (0x80, 1, 1))):
            if hasattr(LIBC, function):
                with attempt(f"has {function}"):
                    checked(getattr(LIBC, function)(*arguments))
        """,
    ),
    _program(
        name="watching all files",
        threatens="sees and stops what other programs do with files",
        code=r"""
        for flags in (0, 4, 0x200):
            with attempt("opened fanotify"):
                call("fanotify_init", flags, 0)
        """,
    ),
    _program(
        name="comparing processes",
        threatens="learns addresses of the kernel",
        code=r"""
        for pid in {os.getppid(), 1, HOST.bait} - {os.getpid(), 0}:
            with attempt(f"compared itself with process {pid}"):
                call("kcmp", os.getpid(), pid, 1, 0, 0)
        """,
    ),
    _program(
        name="calls of 32-bit programs",
        threatens="gets past a filter that knows the numbers of 64-bit programs only",
        code=_FOREIGN
        + r"""
if foreign(359, 2, 1, 0) >= 0:  # socket
    escaped("opened a socket by a 32-bit call")
if foreign(310, 0x10000000) == 0:  # unshare
    escaped("has a user namespace by a 32-bit call")
""",
        ends=("ok", "killed"),
    ),
    _program(
        name="calls of x32 programs",
        threatens="gets past a filter that knows one set of numbers only",
        code=r"""
        if platform.machine() == "x86_64":
            with attempt("opened a socket by an x32 call"):
                checked(LIBC.syscall(ctypes.c_long(0x40000000 + 41), 2, 1, 0))
            with attempt("has a user namespace by an x32 call"):
                checked(LIBC.syscall(ctypes.c_long(0x40000000 + 272), 0x10000000))
        """,
        ends=("ok", "killed"),
    ),
    _program(
        name="numbers with something above",
        threatens="gets past a filter that compares all bits, where the kernel looks at the lower ones",
        code=r"""
        number = CALLS["socket"][("x86_64", "aarch64").index(platform.machine())]
        for high in (1 << 32, 1 << 63, 0xFFFFFFFF << 32):
            with attempt("opened a socket by a call with high bits"):
                checked(LIBC.syscall(ctypes.c_ulong(number | high), 2, 1, 0))
        """,
        ends=("ok", "killed"),
    ),
    _program(
        name="a filter of its own",
        threatens="overrules the filter that holds it",
        code=r"""
        import socket, struct
        allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
        block = struct.pack("HxxxxxxQ", 1, ctypes.addressof(allow))
        LIBC.prctl(38, 1, 0, 0, 0)
        LIBC.prctl(22, 2, block, 0, 0)
        LIBC.prctl(22, 0, None, 0, 0)
        with attempt("opened a socket once its own filter allowed it"):
            socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        """,
    ),
    _program(
        name="calls from another thread",
        threatens="gets past a filter that holds the first thread only",
        code=r"""
        import socket, subprocess, threading
        def open_one():
            with attempt("opened a socket from a thread"):
                socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        thread = threading.Thread(target=open_one)
        thread.start()
        thread.join()
        code = "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); print('open')"
        if b"open" in subprocess.run([sys.executable, "-Sc", code], capture_output=True).stdout:
            escaped("opened a socket from another program")
        """,
    ),
]
