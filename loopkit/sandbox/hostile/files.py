"""Programs that try to read what is not theirs, to write where they must not, and to change what they see."""

from functools import partial

from .program import Program

_program = partial(Program, group="files", needs=("files",))
_mount = partial(_program, needs=("files", "system calls"))

PROGRAMS = [
    _program(
        name="secrets by path",
        threatens="reads the user's files",
        code=r"""
        for path in HOST.secrets:
            with attempt(f"read {path}"):
                print(open(path).read())
        """,
    ),
    _program(
        name="secrets by ../",
        threatens="reads the user's files",
        code=r"""
        for path in HOST.secrets:
            with attempt(f"read {path} from below"):
                print(open("../" * 40 + path.lstrip("/")).read())
        """,
    ),
    _program(
        name="secrets by a link",
        threatens="has the host read the user's files, through a link in the working folder",
        code=r"""
        for number, path in enumerate(HOST.secrets):
            os.symlink(path, f"link-{number}")
            with attempt(f"read {path} through a link"):
                print(open(f"link-{number}").read())
        os.symlink(HOST.open_folder, "folder")
        os.symlink("/", "root")
        os.symlink("/proc/self/root", "proc-root")
        """,
    ),
    _program(
        name="secrets by a hard link",
        threatens="makes another name for a file of the host, where it may read it",
        code=r"""
        for number, path in enumerate([*HOST.secrets, HOST.open_file]):
            with attempt(f"has a second name for {path}"):
                os.link(path, f"hard-{number}")
        """,
    ),
    _program(
        name="secrets by another root",
        threatens="reads the user's files through the root of another process",
        code=r"""
        import glob
        roots = [*glob.glob("/proc/*/root"), *glob.glob("/proc/*/task/*/root"), *glob.glob("/proc/*/cwd"),
                 f"/proc/{HOST.pid}/root", f"/proc/{HOST.bait}/cwd", "/proc/1/root", "/proc/1/cwd"]
        for root in roots:
            for path in HOST.secrets:
                for way in (path, "/../../../../../../.." + path):
                    with attempt(f"read {root}{way}"):
                        print(open(root + way).read())
        """,
    ),
    _program(
        name="secrets by an inherited folder",
        threatens="climbs out through a descriptor that was left open",
        code=r"""
        for fd in range(3, 256):
            for path in HOST.secrets:
                for way in ("../" * 40 + path[1:], os.path.basename(path)):
                    with attempt(f"read {path} from descriptor {fd}"):
                        print(os.read(os.open(way, os.O_RDONLY, dir_fd=fd), 1000))
        """,
    ),
    _program(
        name="files of root",
        threatens="reads passwords and keys of the system",
        code=r"""
        for path in ("/etc/shadow", "/etc/sudoers", "/etc/gshadow", "/proc/kcore", "/proc/1/mem"):
            with attempt(f"opened {path}"):
                open(path, "rb").close()
        """,
    ),
    _program(
        name="the user's folder",
        threatens="learns what the user has",
        code=r"""
        for folder in {os.path.dirname(os.path.dirname(path)) for path in HOST.secrets}:
            try:
                names = os.listdir(folder)
            except OSError as error:
                print("contained:", error)
            else:
                if any(HOST.token in name for name in names):
                    escaped(f"lists {folder}")
        """,
    ),
    _program(
        name="a canary's end",
        threatens="changes, moves or removes the user's files",
        code=r"""
        import shutil
        target = HOST.open_file
        for what, change in {
            "changed": lambda: open(target, "r+").write("gone"),
            "emptied": lambda: os.truncate(target, 0),
            "aged": lambda: os.utime(target, (0, 0)),
            "opened to all": lambda: os.chmod(target, 0o777),
            "moved": lambda: os.rename(target, "taken"),
            "replaced": lambda: (open("mine", "w").close(), os.replace("mine", target)),
            "removed": lambda: os.unlink(target),
            "exchanged": lambda: os.rename(HOST.open_folder, "folder"),
        }.items():
            with attempt(f"{what} {target}"):
                change()
        """,
    ),
    _program(
        name="new files everywhere",
        threatens="plants a file where the host will run or read it",
        code=r"""
        for folder in [*HOST.places, HOST.open_folder]:
            try:
                with open(f"{folder}/loopkit-check-{HOST.mark}", "x") as file:
                    file.write("planted")
            except OSError as error:
                print("contained:", error)
        """,
    ),
    _program(
        name="programs and libraries",
        threatens="changes what every later program runs",
        code=r"""
        import glob, json
        known = ["/etc/passwd", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.preload", "/bin/sh", "/usr/bin/env",
                 sys.executable, os.path.realpath(sys.executable), os.__file__, json.__file__,
                 *glob.glob(os.path.dirname(os.__file__) + "/__pycache__/*")[:9],
                 *glob.glob(os.path.dirname(os.__file__) + "/site-packages/*.pth")]
        for path in known:
            with attempt(f"opened {path} to write"):
                os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
            with attempt(f"changed the mode of {path}"):
                os.chmod(path, os.stat(path).st_mode)
            with attempt(f"changed the times of {path}"):
                os.utime(path, ns=(os.stat(path).st_atime_ns, os.stat(path).st_mtime_ns))
        """,
    ),
    _program(
        name="the installed packages",
        threatens="plants code that a later run imports",
        code=r"""
        import sysconfig
        known = {*sysconfig.get_paths().values(), os.path.dirname(os.__file__) + "/__pycache__", *sys.path}
        for folder in filter(os.path.isdir, known):
            if os.path.realpath(folder) == os.getcwd():
                continue
            with attempt(f"made a file in {folder}"):
                path = f"{folder}/loopkit-check-{HOST.mark}"
                open(path, "x").close()
                os.unlink(path)
        """,
    ),
    _program(
        name="switches of the kernel",
        threatens="has the kernel run a program as root, or crash",
        code=r"""
        for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
                     "/proc/sys/fs/binfmt_misc/register", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/hostname",
                     "/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent", "/sys/power/state",
                     "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/1/oom_score_adj", "/proc/sys/net/ipv4/ip_forward",
                     "/proc/sys/user/max_user_namespaces"):
            with attempt(f"opened {path} to write"):
                os.close(os.open(path, os.O_WRONLY))
        """,
    ),
    _program(
        name="limits of its control group",
        threatens="leaves the group whose limits hold it",
        code=r"""
        for folder, _, names in os.walk("/sys/fs/cgroup"):
            for name in {"cgroup.procs", "tasks", "memory.max", "pids.max", "cgroup.subtree_control"} & {*names}:
                with attempt(f"opened {folder}/{name} to write"):
                    os.close(os.open(f"{folder}/{name}", os.O_WRONLY))
        """,
    ),
    _program(
        name="devices",
        threatens="reads disks and memory beneath the file system, or takes the keyboard",
        code=r"""
        # Not all there are: to open a watchdog would restart the machine.
        for name in ("mem", "kmem", "port", "kmsg", "sda", "vda", "xvda", "nvme0n1", "dm-0", "mapper/control", "kvm", "fuse",
                     "uinput", "input/event0", "dri/card0", "snd/timer", "net/tun", "vhost-net", "vhost-vsock", "ptmx",
                     "loop-control", "loop0", "userfaultfd", "cuse", "hpet", "btrfs-control", "udmabuf"):
            with attempt(f"opened /dev/{name}"):
                os.close(os.open("/dev/" + name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
        """,
    ),
    _program(
        name="device nodes of its own",
        threatens="makes itself a door to the disk or to memory",
        code=r"""
        import stat
        for name, kind, major, minor in (("disk", stat.S_IFBLK, 8, 0), ("mem", stat.S_IFCHR, 1, 1),
                                         ("kmsg", stat.S_IFCHR, 1, 11), ("null", stat.S_IFCHR, 1, 3)):
            with attempt(f"made and opened the device {name}"):
                os.mknod(name, kind | 0o600, os.makedev(major, minor))
                os.close(os.open(name, os.O_RDONLY | os.O_NONBLOCK))
        """,
    ),
    _program(
        name="the terminal",
        threatens="types commands into the user's terminal",
        needs=("files", "system calls"),
        code=r"""
        import fcntl
        for path in ("/dev/tty", "/dev/console", "/dev/tty0", "/dev/pts/0", "/proc/self/fd/0", "/proc/self/fd/2"):
            with attempt(f"typed into {path}"):
                fcntl.ioctl(os.open(path, os.O_RDWR | os.O_NOCTTY), 0x5412, b" ")  # TIOCSTI
        """,
    ),
    _program(
        name="file handles",
        threatens="opens files by number, past every path",
        code=r"""
        import struct
        handle, mount = ctypes.create_string_buffer(struct.pack("II", 128, 0), 136), ctypes.c_int()
        with attempt("opened the root of a file system by its number"):
            try:
                call("name_to_handle_at", -100, b".", handle, ctypes.byref(mount), 0)
            except OSError:
                pass
            handle.raw = struct.pack("IIII", 8, 1, 2, 0).ljust(136, b"\0")  # inode 2, generation 0
            call("open_by_handle_at", os.open(".", os.O_RDONLY), handle, 0)
        """,
    ),
    _program(
        name="a foreign /tmp",
        threatens="reads what other programs left in /tmp",
        code=r"""
        for folder in ("/tmp", "/var/tmp", "/dev/shm"):
            if os.path.exists(folder) and (names := [n for n in os.listdir(folder) if HOST.token in n]):
                escaped(f"sees {names} in {folder}")
        """,
    ),
    _program(
        name="a letter to the next run",
        threatens="lets one run influence another through a folder that both see",
        code=r"""
        for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/", "/dev", ".."):
            try:
                open(f"{folder}/letter", "w").close()
            except OSError as error:
                print("contained:", error)
        """,
        then=r"""
        for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/", "/dev", ".."):
            if os.path.exists(f"{folder}/letter"):
                escaped(f"found a letter of the run before in {os.path.realpath(folder)}")
        """,
    ),
    _program(
        name="a folder for another",
        threatens="has the next run, or the clean-up, work in a folder of the host",
        code=r"""
        here = os.getcwd()
        for what, change in {
            "moved its folder": lambda: os.rename(here, here + "-moved"),
            "put a link in its place": lambda: os.symlink(HOST.open_folder, here),
            "removed its folder": lambda: os.rmdir(here),
            "put a link in its place afterwards": lambda: os.symlink(HOST.open_folder, here),
        }.items():
            with attempt(what):
                change()
        """,
    ),
    _mount(
        name="mount",
        threatens="changes what its later programs, or the host, see",
        code=r"""
        os.mkdir("here")
        for kind in (b"tmpfs", b"proc", b"sysfs", b"devtmpfs", b"cgroup2", b"overlay", b"securityfs"):
            with attempt(f"mounted {kind.decode()}"):
                call("mount", kind, b"here", kind, 0, None)
        with attempt("bound / to another place"):
            call("mount", b"/", b"here", None, 0x5000, None)
        if os.stat("/proc/self/ns/mnt").st_ino == HOST.mounts:
            sys.exit()  # what follows would harm the host if it worked
        with attempt("made /usr writable"):
            call("mount", None, b"/usr", None, 0x1020, None)
        with attempt("made / writable by mount_setattr"):
            call("mount_setattr", -100, b"/", 0x8000, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32)
        """,
    ),
    _mount(
        name="mount, the new way",
        threatens="mounts past a filter of mount()",
        code=r"""
        with attempt("opened a file system"):
            call("fsopen", b"tmpfs", 0)
        with attempt("cloned a tree of mounts"):
            call("open_tree", -100, b"/", 0x8001)
        """,
    ),
    _mount(
        name="unmount",
        threatens="uncovers what was hidden",
        code=r"""
        detach = 2
        if os.stat("/proc/self/ns/mnt").st_ino == HOST.mounts:
            detach = 4  # MNT_EXPIRE only asks, the first time: EAGAIN or EBUSY where it is allowed
        for line in reversed(open("/proc/self/mounts").readlines()):
            place = line.split()[1]
            try:
                call("umount2", place.encode(), detach)
            except OSError as error:
                print("contained:", error)
                if error.errno not in (errno.EAGAIN, errno.EBUSY):
                    continue
            escaped(f"may unmount {place}")
        for path in HOST.secrets:
            with attempt(f"read {path}"):
                print(open(path).read())
        """,
    ),
    _mount(
        name="another root",
        threatens="climbs out of its root",
        code=r"""
        os.makedirs("inner", exist_ok=True)
        outside = os.open(".", os.O_RDONLY)
        with attempt("changed its root"):
            os.chroot("inner")
        with attempt("climbed above its root"):
            os.fchdir(outside)
            for _ in range(40):
                os.chdir("..")
            for path in HOST.secrets:
                open(path[1:]).close()
        with attempt("turned its root around"):
            call("pivot_root", b".", b".")
        """,
    ),
    _mount(
        name="new namespaces",
        threatens="becomes root within a namespace, and reaches code of the kernel that only root reaches",
        code=r"""
        for name, flag in {"mount": 0x20000, "control group": 0x2000000, "host name": 0x4000000, "IPC": 0x8000000,
                           "user": 0x10000000, "process": 0x20000000, "network": 0x40000000, "time": 0x80}.items():
            child = os.fork()
            if not child:
                with attempt(f"left for a new {name} namespace"):
                    call("unshare", flag)
                with attempt(f"left for a new user and {name} namespace"):
                    call("unshare", 0x10000000 | flag)
                os._exit(0)
            os.waitpid(child, 0)
        """,
    ),
    _mount(
        name="namespaces by clone",
        threatens="gets past a filter of unshare()",
        code=r"""
        import struct
        for flag in (0x10000000, 0x10020000, 0x50000000):
            with attempt(f"cloned into new namespaces {flag:#x}"):
                number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
                if checked(LIBC.syscall(number, ctypes.c_long(flag | 17), None, None, None, None)) == 0:
                    os._exit(0)
            with attempt(f"cloned into new namespaces {flag:#x} by clone3"):
                block = struct.pack("8Q", flag, 0, 0, 0, 17, 0, 0, 0)
                if checked(LIBC.syscall(435, block, len(block))) == 0:
                    os._exit(0)
        """,
    ),
    _mount(
        name="others' namespaces",
        threatens="goes back to where the host is",
        code=r"""
        import glob
        for path in [*glob.glob("/proc/*/ns/*"), f"/proc/{HOST.pid}/ns/mnt", f"/proc/{HOST.bait}/ns/mnt"]:
            with attempt(f"entered {path}"):
                call("setns", os.open(path, os.O_RDONLY), 0)
        """,
    ),
]
