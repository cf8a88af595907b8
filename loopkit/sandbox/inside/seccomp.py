"""A filter of system calls (seccomp-BPF): no sockets, no tracing, no mounts, no namespaces, no kernel interfaces.

A list of what is refused, not of what is allowed: namespaces or Landlock, limits and an unprivileged user are the
walls, this takes away the tools to climb them. See seccomp(2) and filter.rst of the kernel's documentation.
"""

import ctypes
import functools
import os
import platform
import struct

# Of socket's family only socketpair is left: asyncio and multiprocessing need it, and it leads nowhere.
_REFUSED = """
    socket bind listen accept accept4 connect
    ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd
    mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr
    unshare setns open_by_handle_at name_to_handle_at
    keyctl add_key request_key bpf perf_event_open userfaultfd fanotify_init
    io_uring_setup io_uring_enter io_uring_register
    memfd_create memfd_secret shmget msgget semget mq_open
    init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff
    sethostname setdomainname settimeofday clock_settime clock_adjtime adjtimex
    quotactl quotactl_fd acct syslog personality move_pages migrate_pages mbind set_mempolicy
    iopl ioperm modify_ldt vhangup
    setpriority ioprio_set sendmsg sendmmsg
""".split()  # noqa: SIM905
# Memory files and SysV memory belong to no process, and descriptors on their way in a message to none either: no limit
# would see them.

# Landlock does not cover these; a read-only mount does. Refused only where there is no mount namespace.
_ATTRIBUTES = """
    chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes utimensat futimesat
    setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr
""".split()  # noqa: SIM905

_NUMBERS = {
    "x86_64": dict(
        socket=41, connect=42, accept=43, bind=49, listen=50, accept4=288, ptrace=101, process_vm_readv=310,
        process_vm_writev=311, kcmp=312, pidfd_getfd=438, mount=165, umount2=166, pivot_root=155, chroot=161,
        unshare=272, setns=308, open_by_handle_at=304, name_to_handle_at=303, keyctl=250, add_key=248,
        request_key=249, bpf=321, perf_event_open=298, userfaultfd=323, fanotify_init=300, memfd_create=319,
        shmget=29, msgget=68, semget=64, mq_open=240, init_module=175, finit_module=313, delete_module=176,
        kexec_load=246, kexec_file_load=320, reboot=169, swapon=167, swapoff=168, sethostname=170,
        setdomainname=171, settimeofday=164, clock_settime=227, clock_adjtime=305, adjtimex=159, quotactl=179,
        acct=163, syslog=103, personality=135, move_pages=279, migrate_pages=256, mbind=237, set_mempolicy=238,
        iopl=172, ioperm=173, modify_ldt=154, vhangup=153, chmod=90, fchmod=91, fchmodat=268, chown=92, fchown=93,
        lchown=94, fchownat=260, utime=132, utimes=235, utimensat=280, futimesat=261, setxattr=188, lsetxattr=189,
        fsetxattr=190, removexattr=197, lremovexattr=198, fremovexattr=199, clone=56, ioctl=16, prctl=157,
        prlimit64=302, sched_setparam=142, sched_setscheduler=144, sched_setaffinity=203, sched_setattr=314,
        setpriority=141, ioprio_set=251, sendto=44, sendmsg=46, sendmmsg=307, fallocate=285,
    ),
    "aarch64": dict(
        socket=198, bind=200, listen=201, accept=202, connect=203, accept4=242, ptrace=117, process_vm_readv=270,
        process_vm_writev=271, kcmp=272, pidfd_getfd=438, mount=40, umount2=39, pivot_root=41, chroot=51,
        unshare=97, setns=268, open_by_handle_at=265, name_to_handle_at=264, keyctl=219, add_key=217,
        request_key=218, bpf=280, perf_event_open=241, userfaultfd=282, fanotify_init=262, memfd_create=279,
        shmget=194, msgget=186, semget=190, mq_open=180, init_module=105, finit_module=273, delete_module=106,
        kexec_load=104, kexec_file_load=294, reboot=142, swapon=224, swapoff=225, sethostname=161,
        setdomainname=162, settimeofday=170, clock_settime=112, clock_adjtime=266, adjtimex=171, quotactl=60,
        acct=89, syslog=116, personality=92, move_pages=239, migrate_pages=238, mbind=235, set_mempolicy=237,
        vhangup=58, fchmod=52, fchmodat=53, fchown=55, fchownat=54, utimensat=88, setxattr=5, lsetxattr=6,
        fsetxattr=7, removexattr=14, lremovexattr=15, fremovexattr=16, clone=220, ioctl=29, prctl=167,
        prlimit64=261, sched_setparam=118, sched_setscheduler=119, sched_setaffinity=122, sched_setattr=274,
        setpriority=140, ioprio_set=30, sendto=206, sendmsg=211, sendmmsg=269, fallocate=47,
    ),
}  # fmt: skip
# The newer calls have one number everywhere.
_EVERYWHERE = dict(
    io_uring_setup=425, io_uring_enter=426, io_uring_register=427, open_tree=428, move_mount=429, fsopen=430,
    fsconfig=431, fsmount=432, fspick=433, clone3=435, mount_setattr=442, quotactl_fd=443, memfd_secret=447,
    fchmodat2=452, setxattrat=463, removexattrat=466, file_setattr=469,
)  # fmt: skip
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_EQUAL, _ANY_OF, _OTHER_THAN = 0x15, 0x45, 0
_NEW_NAMESPACES = 0x7E020000
_PARENT = 0x8000  # a child of its parent's: of the process that forks all programs
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # put characters into a terminal's input
_PR_SET_DUMPABLE = 4
# Refused when an argument, counted from 0, is what is given here.
_REFUSED_WITH = [
    ("clone", 0, _ANY_OF, _NEW_NAMESPACES | _PARENT),
    ("ioctl", 1, _EQUAL, _TIOCSTI),
    ("ioctl", 1, _EQUAL, _TIOCLINUX),
    # The warden has the same user: it could not look any more into who hides, nor keep time when it is slowed down.
    ("prctl", 0, _EQUAL, _PR_SET_DUMPABLE),
    *(
        (name, 0, _OTHER_THAN, 0)
        for name in (
            "prlimit64",
            "sched_setparam",
            "sched_setscheduler",
            "sched_setaffinity",
            "sched_setattr",
        )
    ),
    # An address: a datagram may go to any socket that has a path.
    ("sendto", 4, _OTHER_THAN, 0),
]

_LOAD, _JUMP_GREATER, _RET = 0x20, 0x35, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS, _EOPNOTSUPP = 0x00050001, 0x00050026, 0x0005005F
_X32 = 0x40000000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


def available() -> bool:
    """Whether this kernel takes filters, and we know the numbers of its processor's system calls."""
    return platform.machine() in _NUMBERS and os.path.exists("/proc/sys/kernel/seccomp/actions_avail")


def install(*, attributes: bool) -> None:
    """Filter this process and its children, for good. `attributes`: refuse changes of modes, owners and times too."""
    code = compiled(attributes=attributes)
    libc = ctypes.CDLL(None, use_errno=True)
    block = ctypes.create_string_buffer(code)

    class Fprog(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    program = Fprog(len(code) // 8, ctypes.addressof(block))
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp filter refused")


@functools.cache
def compiled(*, attributes: bool) -> bytes:
    """The filter's instructions, which take a while to put together: do that before the fork.

    Each is: operation, lines to skip if true, if false, operand. The offsets are those of `seccomp_data`.
    """
    machine = platform.machine()
    numbers = _NUMBERS[machine] | _EVERYWHERE
    lines = [
        (_LOAD, 0, 0, 4),  # the architecture: the same number is another call on another one
        (_EQUAL, 1, 0, _AUDIT[machine]),
        (_RET, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),  # the number of the call
        (_JUMP_GREATER, 0, 1, _X32),  # a second set of numbers on x86-64
        (_RET, 0, 0, _ENOSYS),
        # Takes its flags in memory, out of our sight; libc falls back to clone.
        (_EQUAL, 0, 1, numbers["clone3"]),
        (_RET, 0, 0, _ENOSYS),
        # Space on disk faster than anybody could look; libc falls back to writing.
        (_EQUAL, 0, 1, numbers["fallocate"]),
        (_RET, 0, 0, _EOPNOTSUPP),
    ]
    for name in _REFUSED + (_ATTRIBUTES if attributes else []):
        if name in numbers:
            lines += [(_EQUAL, 0, 1, numbers[name]), (_RET, 0, 0, _EPERM)]
    for name, argument, test, operand in _REFUSED_WITH:
        place = 16 + 8 * argument
        if test != _OTHER_THAN:
            low = [(_LOAD, 0, 0, place), (test, 0, 1, operand), (_RET, 0, 0, _EPERM)]
        else:  # pointers and numbers of 64 bits: either half
            low = [
                (_LOAD, 0, 0, place),
                (_EQUAL, 0, 2, operand),
                (_LOAD, 0, 0, place + 4),
                (_EQUAL, 1, 0, 0),
                (_RET, 0, 0, _EPERM),
            ]
        lines += [(_EQUAL, 0, len(low) + 1, numbers[name]), *low, (_LOAD, 0, 0, 0)]
    lines.append((_RET, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in lines)
