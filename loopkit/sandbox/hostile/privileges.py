"""Programs that raise themselves above their user, or above the process that watches them."""

from functools import partial

from .program import Program

_program = partial(Program, group="processes", needs=("user", "system calls"))

PROGRAMS = [
    _program(
        name="blind the watcher",
        threatens="takes away what the process that watches it needs to see",
        needs=("processes", "user", "system calls"),
        code=r"""
        import resource
        keep_off_the_host()
        for pid in {1, os.getppid()} - {os.getpid(), 0}:
            for name in ("NOFILE", "AS", "FSIZE", "CPU"):
                with attempt(f"limited {name} of process {pid}"):
                    resource.prlimit(pid, getattr(resource, f"RLIMIT_{name}"), (0, 0))
        """,
    ),
    _program(
        name="starve the watcher",
        threatens="leaves the process that watches it no time to do so",
        needs=("processes", "user", "system calls"),
        code=r"""
        keep_off_the_host()
        for pid in {1, os.getppid()} - {os.getpid(), 0}:
            for what, change in {
                "its turn": lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
                "its importance": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
                "its processors": lambda: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}),
            }.items():
                with attempt(f"changed {what}, of process {pid}"):
                    change()
        """,
    ),
    _program(
        name="become root",
        threatens="owns what root owns",
        code=r"""
        for what, change in {
            "user": lambda: os.setuid(0), "effective user": lambda: os.seteuid(0), "group": lambda: os.setgid(0),
            "all users": lambda: os.setresuid(0, 0, 0), "groups": lambda: os.setgroups([0]),
        }.items():
            with attempt(f"became root: {what}"):
                change()
        """,
    ),
    _program(
        name="capabilities",
        threatens="has a part of root's power",
        code=r"""
        import struct
        header = struct.pack("Ii", 0x20080522, 0)
        for sets in (struct.pack("6I", *[0xFFFFFFFF] * 6), struct.pack("6I", 1 << 21, 1 << 21, 0, 0, 0, 0)):
            with attempt("gave itself capabilities"):
                call("capset", header, sets)
        held = ctypes.create_string_buffer(24)
        call("capget", header, held)
        if any(held.raw):
            escaped(f"has capabilities {held.raw.hex()}")
        with attempt("raised an ambient capability"):
            checked(LIBC.prctl(47, 2, 21, 0, 0))
        """,
    ),
    _program(
        name="setuid programs",
        threatens="becomes root by a program that may",
        code=r"""
        import shutil, subprocess
        if LIBC.prctl(39, 0, 0, 0, 0) != 1:
            escaped("may gain privileges by setuid programs")
        for command in (["su", "-c", "id -u"], ["sudo", "-n", "id", "-u"], ["pkexec", "id", "-u"], ["newuidmap"]):
            if shutil.which(command[0]):
                done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=1)
                if done.stdout.strip() == b"0":
                    escaped(f"became root by {command[0]}")
        """,
        ends=("ok", "error"),
    ),
    _program(
        name="priority",
        threatens="takes the processor from everything else",
        code=r"""
        with attempt("made itself more important"):
            os.nice(-5)
        with attempt("became a real-time process"):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        with attempt("made a process of the host less important"):
            os.setpriority(os.PRIO_PROCESS, HOST.bait, 5)
        """,
    ),
    _program(
        name="limits raised",
        threatens="takes away the limits that hold it",
        code=r"""
        import resource
        for name in ("AS", "CPU", "FSIZE", "NOFILE", "NPROC", "CORE"):
            kind = getattr(resource, f"RLIMIT_{name}")
            hard = resource.getrlimit(kind)[1]
            if hard == resource.RLIM_INFINITY:
                if name not in ("CPU",):
                    escaped(f"has no limit {name}")
                continue
            for pid in (0, os.getppid()):
                try:
                    resource.prlimit(pid, kind, (hard + 1, hard + 1))
                except (OSError, ValueError) as error:
                    print("contained:", error)
                else:
                    escaped(f"raised {name} of process {pid}")
        """,
    ),
]
