"""Programs that kill, outlive and multiply."""

from functools import partial

from .program import Program

_program = partial(Program, group="processes", needs=("processes",))
_bomb = partial(_program, needs=("processes", "user"))  # the kernel counts nobody's processes, never root's

PROGRAMS = [
    _program(
        name="kill the parent",
        threatens="ends the process that watches it",
        code=r"""
        import signal
        keep_off_the_host()
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            for pid in (os.getppid(), 1):
                if pid != os.getpid():
                    try:
                        os.kill(pid, number)
                    except OSError as error:
                        print("contained:", error)
        """,
    ),
    _program(
        name="kill every process",
        threatens="ends everything that the user runs",
        neighbour=True,
        code=r"""
        import signal
        keep_off_the_host()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            try:
                os.kill(-1, number)
            except OSError as error:
                print("contained:", error)
        """,
        ends=("ok", "killed", "timeout"),
    ),
    _program(
        name="kill by number",
        threatens="ends what other runs do",
        neighbour=True,
        code=r"""
        import signal
        keep_off_the_host()
        for pid in range(2, 400):
            if pid != os.getpid():
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
        """,
    ),
    _program(
        name="kill a process of the host",
        threatens="ends other programs of the user",
        code=r"""
        import signal
        for what, kill in {
            "kill": lambda: os.kill(HOST.bait, signal.SIGKILL),
            "killpg": lambda: os.killpg(HOST.bait, signal.SIGKILL),
            "pidfd": lambda: call("pidfd_send_signal", call("pidfd_open", HOST.bait, 0), 9, None, 0),
            "sigqueue": lambda: checked(LIBC.sigqueue(HOST.bait, 9, None)),
            "stop": lambda: os.kill(HOST.bait, signal.SIGSTOP),
        }.items():
            try:
                kill()
            except OSError as error:
                print("contained:", error)
        """,
    ),
    _program(
        name="kill its group",
        threatens="ends the process that watches it, if they share a group",
        code=r"""
        import signal
        keep_off_the_host()
        if os.getpgid(os.getppid()) == os.getpgid(0) and os.getppid():
            escaped("is in the group of the process that watches it")
        os.killpg(0, signal.SIGKILL)
        """,
        ends=("killed",),
    ),
    _program(
        name="signal by a pipe",
        threatens="has the kernel end other programs of the user",
        code=r"""
        import fcntl, signal
        reading, writing = os.pipe()
        try:
            fcntl.fcntl(reading, fcntl.F_SETOWN, HOST.bait)
            fcntl.fcntl(reading, 10, signal.SIGKILL)  # F_SETSIG
            fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
            os.write(writing, b"now")
        except OSError as error:
            print("contained:", error)
        """,
    ),
    _program(
        name="orphan",
        threatens="goes on when its run is over",
        code=r"""
        import time
        if os.fork() == 0:
            os.closerange(0, 64)
            time.sleep(30)
            os._exit(0)
        """,
    ),
    _program(
        name="daemon",
        threatens="goes on when its run is over, and writes later",
        code=r"""
        import signal, time
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if os.fork() == 0:
                os.closerange(0, 64)
                LIBC.prctl(1, 0, 0, 0, 0)  # no signal when the parent dies
                LIBC.prctl(36, 1, 0, 0, 0)  # orphans come here
                for _ in range(300):
                    time.sleep(0.1)
                    open("late", "a").write("later")
            os._exit(0)
        os.wait()
        """,
    ),
    _program(
        name="background program",
        threatens="goes on when its run is over",
        code=r"""
        import subprocess
        wait = "import time; time.sleep(30)"
        for more in ({"start_new_session": True}, {"process_group": 0}, {"start_new_session": True, "env": {}}):
            subprocess.Popen([sys.executable, "-c", wait, HOST.mark], stdout=subprocess.DEVNULL, **more)
        """,
    ),
    _program(
        name="child of its parent's",
        threatens="leaves the family by which it would be found",
        code=r"""
        import time
        number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
        try:
            child = checked(LIBC.syscall(number, ctypes.c_long(0x8000 | 17), None, None, None, None))  # CLONE_PARENT
        except OSError as error:
            print("contained:", error)
            child = -1
        if child == 0:
            os.closerange(0, 64)
            os.setsid()
            time.sleep(30)
            os._exit(0)
        """,
    ),
    _program(
        name="running from the killer",
        threatens="is never where it is looked for: each process forks one and ends",
        code=r"""
        import time
        end = time.monotonic() + 12  # lest it runs for ever if it gets away
        if os.fork() == 0:
            os.setsid()
            os.closerange(0, 64)
            while time.monotonic() < end:
                try:
                    if os.fork():
                        os._exit(0)
                except OSError:
                    pass  # too many of them for the moment
            os._exit(0)
        time.sleep(0.3)
        """,
    ),
    _program(
        name="two of it",
        threatens="answers twice, and confuses who waits for one answer",
        needs=(),
        code=r"""
        os.fork()
        "one of two"
        """,
    ),
    _bomb(
        name="fork bomb",
        threatens="takes every process that the machine has room for",
        code=r"""
        import time
        children = 0
        try:
            while children < 10 * HOST.processes:
                if os.fork() == 0:
                    time.sleep(20)
                    os._exit(0)
                children += 1
        except OSError as error:
            print("contained:", error)
        time.sleep(0.5)
        if children > HOST.processes:
            escaped(f"has {children} children")
        """,
    ),
    _bomb(
        name="fork bomb that doubles",
        threatens="takes every process that the machine has room for",
        seconds=0.6,
        code=r"""
        import time
        for _ in range(8):  # 256 at most
            try:
                os.fork()
            except OSError:
                pass
        time.sleep(20)
        """,
        ends=("processes", "timeout", "killed"),
    ),
    _bomb(
        name="bomb of programs",
        threatens="takes every process that the machine has room for",
        code=r"""
        import subprocess
        running = []
        try:
            while len(running) < 10 * HOST.processes:
                running.append(subprocess.Popen(["sleep", "20"]))
        except OSError as error:
            print("contained:", error)
        else:
            escaped(f"runs {len(running)} programs")
        """,
    ),
    _bomb(
        name="thread bomb",
        threatens="takes every process that the machine has room for",
        code=r"""
        import threading, time
        threads = []
        try:
            while len(threads) < 10 * HOST.processes:
                threads.append(threading.Thread(target=time.sleep, args=(20,), daemon=True))
                threads[-1].start()
        except RuntimeError as error:
            print("contained:", error)
        else:
            time.sleep(0.5)
            escaped(f"has {len(threads)} threads")
        """,
    ),
    _bomb(
        name="zombies",
        threatens="fills the table of processes with dead ones",
        code=r"""
        count = 0
        try:
            for count in range(20 * HOST.processes):
                if os.fork() == 0:
                    os._exit(0)
        except OSError as error:
            print("contained:", error)
        else:
            import time
            time.sleep(0.5)
            escaped(f"left {count} zombies")
        """,
    ),
    _program(
        name="no signal ends it",
        threatens="runs on after its time",
        needs=(),
        seconds=0.5,
        code=r"""
        import signal
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        while True:
            pass
        """,
        ends=("timeout",),
    ),
    _program(
        name="stops itself",
        threatens="waits for ever without using time",
        needs=(),
        seconds=0.5,
        code=r"""
        import signal
        os.kill(os.getpid(), signal.SIGSTOP)
        """,
        ends=("timeout", "killed"),
    ),
    _program(
        name="kills itself later",
        threatens="dies in the middle of its answer",
        needs=(),
        code=r"""
        import signal
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while True:
            pass
        """,
        ends=("killed",),
    ),
]
