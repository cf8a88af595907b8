"""What a hostile program begins with. It is sent along as text: none of this runs in the process that checks."""

import ctypes
import errno
import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

HOST = SimpleNamespace(**json.loads(r"""@HOST@"""))  # where the canaries are; see canaries.py
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
CALLS = {  # system call: number on x86_64, number on aarch64
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "capget": (125, 90),
    "capset": (126, 91),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "mq_open": (240, 180),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "shmat": (30, 196),
    "shmget": (29, 194),
    "socket": (41, 198),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
LIBC.syscall.restype = ctypes.c_long


def escaped(what: str) -> None:
    print(f"ESCAPED: {what}", flush=True)


@contextmanager
def attempt(what: str) -> Iterator[None]:
    """Prints that `what` was possible, unless the system refuses the body or there is no memory for it."""
    try:
        yield
    except (OSError, MemoryError) as error:
        code = getattr(error, "errno", None)
        print(f"contained: {errno.errorcode.get(code, type(error).__name__)}", flush=True)
    else:
        escaped(what)


def call(name: str, *arguments: object) -> int:
    """A system call as the kernel knows it, past every wrapper of Python and libc; OSError where it fails."""
    number = CALLS[name][("x86_64", "aarch64").index(platform.machine())]
    return checked(LIBC.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)))


def checked(returned: int) -> int:
    """What a libc function returned, or its errno as an OSError."""
    if returned == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return returned


def keep_off_the_host() -> None:
    """End this program if a signal of its could reach a process of the host: it is about to kill at random."""
    if os.stat("/proc/self/ns/pid").st_ino != HOST.pids:
        return
    try:
        os.kill(HOST.bait, 0)
    except PermissionError:
        return  # the bait is there, and is refused: so are all others of its user
    except ProcessLookupError:
        pass  # no bait, no proof
    escaped("could signal processes of the host, and holds back")
    sys.exit()


def mark() -> None:
    """Name this process, and by inheritance all that comes from it, so that the host finds what was left."""
    os.environ["LOOPKIT_MARK"] = HOST.mark
    if sys.platform == "linux":
        LIBC.prctl(15, HOST.mark.encode(), 0, 0, 0)  # PR_SET_NAME


mark()
