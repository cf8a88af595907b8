"""Programs that change, crash or end the interpreter they run in, and lie about it."""

from functools import partial

from .program import Program

_program = partial(Program, group="interpreter")
_UNTOUCHED = r"""
import builtins, io, sys, threading
if builtins.print.__class__.__name__ != "builtin_function_or_method" or builtins.len([1]) != 1:
    escaped("the builtins of the run before")
if "poison" in sys.modules or hasattr(builtins, "poison") or hasattr(os, "poison"):
    escaped("what the run before left in modules")
if json.loads("[1]") != [1] or json.dumps([1]) != "[1]" or os.getcwd() == "poison":
    escaped("the functions of the run before")
if sys.gettrace() or sys.getprofile() or threading.active_count() != 1 or sys.getrecursionlimit() < 100:
    escaped("the settings of the run before")
if sys.excepthook is not sys.__excepthook__ or any("poison" in str(path) for path in sys.path):
    escaped("the hooks of the run before")
if "POISON" in os.environ or os.path.exists("poison"):
    escaped("the environment or the files of the run before")
"""

PROGRAMS = [
    _program(
        name="crash",
        threatens="takes the process that runs it with it",
        code="ctypes.string_at(0)",
        ends=("killed",),
    ),
    _program(
        name="abort", threatens="takes the process that runs it with it", code="os.abort()", ends=("killed",)
    ),
    _program(
        name="crash in a thread",
        threatens="takes the process that runs it with it",
        code=r"""
        import threading
        threading.Thread(target=ctypes.string_at, args=(1,)).start()
        while True:
            pass
        """,
        ends=("killed",),
    ),
    _program(
        name="sudden success",
        threatens="has the end taken for success in the middle of a line",
        code="print('half', end='', flush=True); os._exit(0)",
        ends=("ok",),
    ),
    _program(name="exit code", threatens="is taken for a success", code="sys.exit(3)", ends=("error",)),
    _program(
        name="exit code that lies",
        threatens="is taken for a success",
        code="sys.exit(256)",
        ends=("ok", "error"),
    ),
    _program(
        name="exit with anything",
        threatens="fails where the exit code is read",
        code=r"""
        class Code:
            def __str__(self):
                raise SystemExit(self)

        raise SystemExit(Code())
        """,
    ),
    _program(
        name="errors that are none",
        threatens="passes every handler of errors",
        code="raise GeneratorExit",
        ends=("error",),
    ),
    _program(
        name="interrupt", threatens="stops who runs it", code="raise KeyboardInterrupt", ends=("error",)
    ),
    _program(
        name="exit from a thread",
        threatens="leaves the run without its main thread",
        seconds=0.7,
        code=r"""
        import _thread, threading, time
        _thread.start_new_thread(time.sleep, (10,))
        threading.Thread(target=time.sleep, args=(10,)).start()
        _thread.exit()
        """,
    ),
    _program(
        name="thread that stays",
        threatens="is waited for without end",
        seconds=0.5,
        code=r"""
        import threading, time
        threading.Thread(target=time.sleep, args=(30,)).start()
        """,
        ends=("timeout",),
    ),
    _program(
        name="exit that never comes",
        threatens="is waited for without end",
        seconds=0.5,
        code=r"""
        import atexit, time
        atexit.register(time.sleep, 30)
        """,
        ends=("timeout",),
    ),
    _program(
        name="last words of an object",
        threatens="runs after its run is over",
        seconds=0.7,
        code=r"""
        import gc

        class Bomb:
            def __del__(self):
                while True:
                    pass

        bomb = Bomb()
        bomb.self = bomb
        del bomb
        """,
    ),
    _program(
        name="another program in its place",
        threatens="answers with the voice of the interpreter",
        code=r"""
        os.execv(sys.executable, [sys.executable, "-c", "print('another')"])
        """,
    ),
    _program(
        name="another program that waits",
        threatens="is no longer the process that was started",
        seconds=0.5,
        code='os.execvp("sleep", ["sleep", "30"])',
        ends=("timeout",),
    ),
    _program(
        name="poisoned builtins",
        threatens="changes what later runs do",
        code=r"""
        import builtins
        builtins.poison = True
        builtins.len = lambda _: 42
        builtins.print = builtins.repr = builtins.open = builtins.isinstance = lambda *a, **k: "forged"
        builtins.__import__ = lambda *a, **k: sys
        """,
        then=_UNTOUCHED,
    ),
    _program(
        name="poisoned modules",
        threatens="changes what later runs do",
        code=r"""
        sys.modules["poison"] = sys
        os.poison = True
        os.getcwd = lambda: "poison"
        json.loads = json.dumps = lambda *a, **k: "forged"
        os.write = os.read = os._exit = os.close = os.fork = lambda *a, **k: 0
        """,
        then=_UNTOUCHED,
        ends=("ok", "error", "killed", "timeout"),
    ),
    _program(
        name="poisoned settings",
        threatens="changes what later runs do",
        code=r"""
        import gc, signal, threading
        sys.path[:] = ["poison"]
        sys.excepthook = threading.excepthook = lambda *_: 1 / 0
        os.environ["POISON"] = "1"
        gc.disable()
        sys.setswitchinterval(1000)
        sys.settrace(lambda *_: None)
        sys.setprofile(lambda *_: None)
        sys.setrecursionlimit(50)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        open("poison", "w").close()
        """,
        then=_UNTOUCHED,
        ends=("ok", "error", "killed", "timeout"),
    ),
    _program(
        name="no modules",
        threatens="takes away what the answer needs",
        code=r"""
        import builtins
        sys.modules.clear()
        for name in list(vars(builtins)):
            delattr(builtins, name)
        """,
        then=_UNTOUCHED,
        ends=("ok", "error", "killed", "timeout"),
    ),
    _program(
        name="poisoned integers",
        threatens="changes constants that all runs share",
        code=r"""
        # The value of the small integer 2, which the interpreter keeps once for all.
        (ctypes.c_int).from_address(id(2) + 24).value = 3
        """,
        then=r"""
        if int("1") + int("1") != int("3") - int("1"):
            escaped("a changed integer of the run before")
        """,
        ends=("ok", "error", "killed", "timeout"),
    ),
    _program(
        name="poisoned pages",
        threatens="changes memory that later runs share",
        code=r"""
        for line in open("/proc/self/maps"):
            place, rights = line.split()[:2]
            if rights == "rw-s":
                start, end = (int(part, 16) for part in place.split("-"))
                ctypes.memset(start, 0x50, end - start)
        """,
        needs=("files",),
        ends=("ok", "error", "killed"),
    ),
    _program(
        name="poisoned code by /proc/self/mem",
        threatens="writes to pages of libraries that all processes share",
        needs=("files",),
        code=r"""
        address = ctypes.cast(LIBC.getpid, ctypes.c_void_p).value
        with open("/proc/self/mem", "r+b", 0) as memory:
            memory.seek(address)
            memory.write(b"\xcc" * 16)  # a trap, in a page of its own from now on
        """,
        then=r"""
        if LIBC.getpid() != os.getpid():
            escaped("changed a library for the next run")
        """,
        ends=("ok", "error", "killed"),
    ),
    _program(
        name="audit hook",
        threatens="sees and stops what the interpreter does for others",
        code=r"""
        def hook(event, arguments):
            raise RuntimeError("no")

        sys.addaudithook(hook)
        """,
        then=_UNTOUCHED,
        ends=("ok", "error", "killed"),
    ),
    _program(
        name="streams that fail",
        threatens="fails where its output is taken",
        code=r"""
        class Stream:
            def __getattr__(self, name):
                raise SystemExit(name)

        sys.stdout = sys.stderr = Stream()
        """,
    ),
    _program(
        name="streams that do not end",
        threatens="is waited for where its output is taken",
        seconds=0.5,
        code=r"""
        class Stream:
            def flush(self):
                while True:
                    pass

        sys.stdout = Stream()
        """,
        ends=("ok", "timeout"),
    ),
    _program(
        name="another main",
        threatens="takes the place of the program that was asked for",
        code=r"""
        import types
        sys.modules["__main__"] = types.ModuleType("another")
        __name__ = "another"
        globals().clear()
        """,
        then=_UNTOUCHED,
    ),
    _program(
        name="changed caller",
        threatens="rewrites the code that runs it",
        code=r"""
        import gc
        frame = sys._getframe()
        while frame := frame.f_back:
            for name in list(frame.f_globals):
                if name.startswith("_") and not name.startswith("__") or name[:1].isupper():
                    frame.f_globals[name] = None
        for thing in gc.get_objects():
            if type(thing).__module__.startswith("loopkit") and hasattr(thing, "__dict__"):
                thing.__dict__.clear()
        """,
        then=_UNTOUCHED,
        ends=("ok", "error", "killed", "timeout"),
    ),
]
