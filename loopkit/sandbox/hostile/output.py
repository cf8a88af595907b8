"""Programs whose output, value, error or files are the weapon: against who reads them."""

from functools import partial

from .program import Program

_program = partial(Program, group="output")

PROGRAMS = [
    _program(
        name="endless lines",
        threatens="fills memory and disk of who collects them",
        code="while True: print('All work and no play makes Jack a dull boy')",
        ends=("output",),
    ),
    _program(
        name="endless errors",
        threatens="fills memory and disk of who collects them",
        code="while True: print('alarm ' * 100, file=sys.stderr)",
        ends=("output",),
    ),
    _program(
        name="endless line",
        threatens="fills memory of who waits for its end",
        code=r"""
        while True:
            os.write(1, b"x" * 65536)
        """,
        ends=("output", "error", "killed"),
    ),
    _program(
        name="output of many processes",
        threatens="writes past a limit that each of them keeps",
        code=r"""
        for _ in range(3):
            os.fork()
        while True:
            os.write(2, b"x" * 1000 + b"\n")
        """,
        ends=("output", "error", "killed"),
    ),
    _program(
        name="long line",
        threatens="stops who shows it",
        code="print('x' * 900_000)",
        ends=("ok",),
    ),
    _program(
        name="many lines",
        threatens="stops who shows them",
        code="print('\\n' * 900_000)",
        ends=("ok",),
    ),
    _program(
        name="not text",
        threatens="breaks who takes it for text",
        code=r"""
        for stream in (1, 2):
            os.write(stream, bytes(range(256)) * 10 + b"\xff\xfe\xed\xa0\x80\xf4\x90\x80\x80\xc3")
        print("\ud800 lone \udfff", "\0\0\0")
        "\ud800\0\x1b"
        """,
        ends=("ok",),
    ),
    _program(
        name="orders to a terminal",
        threatens="rewrites what was shown, sets titles, answers questions in the user's shell",
        code=r"""
        orders = "\x1b[2J\x1b[31m\x1b]0;owned\x07\x1b]52;c;cm0gLXJm\x07\x1bP+q\x1b\\\x9b31m\r\x08\x08\x7f\u202e\u2066\u200b"
        print(orders)
        print(orders, file=sys.stderr)
        open("\x1b[31mred\x1b]0;owned\x07", "w").close()
        raise RuntimeError(orders)
        """,
        ends=("error",),
    ),
    _program(
        name="names of files",
        threatens="breaks who lists, sorts or writes down the files",
        code=r"""
        for name in (b"a\nb", b"\xff\xfe", b"-rf", b"\x1b[2J", b"x" * 255, b" ", b"...", b"\xed\xa0\x80", b"a\\b",
                     b"con", b"*", b"$(id)", b"'\"", "\u202egnp.exe".encode(), b"ESCAPED"):
            open(name, "w").close()
        """,
        ends=("ok",),
    ),
    _program(
        name="special files",
        threatens="has who collects the files wait for ever, or read the host's",
        code=r"""
        import socket
        os.mkfifo("pipe")
        os.mkfifo("out.csv")
        os.symlink("loop", "loop")
        os.symlink("/dev/zero", "zero")
        os.symlink("/etc/passwd", "passwd.txt")
        os.symlink(HOST.secrets[0], "result.json")
        os.symlink(os.path.dirname(HOST.secrets[0]), "results")
        os.symlink("..", "up")
        """,
        ends=("ok",),
    ),
    _program(
        name="closed folder",
        threatens="cannot be listed or removed",
        code=r"""
        os.makedirs("a/b/c")
        open("a/b/file", "w").close()
        os.symlink(HOST.open_file, "a/b/link")
        os.symlink(HOST.open_folder, "a/b/c/link")
        os.symlink(HOST.secrets[0], "a/link")
        for path, mode in {"a/b/file": 0, "a/b/c": 0o500, "a/b": 0o500, "a": 0, ".": 0o500}.items():
            try:
                os.chmod(path, mode)
            except OSError as error:
                print("contained:", error)
        """,
        ends=("ok",),
    ),
    _program(
        name="a folder closed from the start",
        threatens="cannot be listed or removed",
        code=r"""
        os.umask(0o777)
        os.mkdir("closed", 0)
        open("unreadable", "w").close()
        """,
        ends=("ok", "error"),
    ),
    _program(
        name="no folder",
        threatens="takes away the place where it works",
        code=r"""
        import shutil
        open("file", "w").close()
        shutil.rmtree(os.getcwd(), ignore_errors=True)
        os.chdir("/")
        """,
        ends=("ok",),
    ),
    _program(
        name="no standard streams",
        threatens="has the answer written where a closed stream was",
        code=r"""
        for fd in (0, 1, 2):
            os.close(fd)
        """,
        ends=("ok", "error", "killed"),
    ),
    _program(
        name="streams exchanged",
        threatens="has the answer written where a stream was",
        code=r"""
        files = [os.open(f"stream-{fd}", os.O_RDWR | os.O_CREAT) for fd in range(3)]
        for fd in range(3):
            os.dup2(files[fd], fd)
        print("where am I?")
        sys.stdout = sys.stderr = sys.__stdout__ = None
        """,
        ends=("ok", "error", "killed"),
    ),
    _program(
        name="output cut off",
        threatens="confuses who counts its output",
        code=r"""
        print("x" * 5000, flush=True)
        for change in (lambda: os.ftruncate(1, 0), lambda: os.ftruncate(1, 1 << 19), lambda: os.lseek(1, 0, 0),
                       lambda: os.fchmod(1, 0), lambda: os.pwrite(1, b"y", 1 << 18), lambda: os.ftruncate(1, 10)):
            try:
                change()
            except OSError as error:
                print("contained:", error, flush=True)
        """,
        ends=("ok",),
    ),
    _program(
        name="output of the host",
        threatens="reads and changes the file in which its output is kept",
        code=r"""
        for fd in (1, 2):
            try:
                path = os.readlink(f"/proc/self/fd/{fd}")
            except OSError as error:
                print("contained:", error)
                continue
            for change in (lambda: os.unlink(path), lambda: os.rename(path, "taken"),
                           lambda: os.symlink(HOST.secrets[0], path), lambda: os.chmod(path, 0)):
                try:
                    change()
                except OSError as error:
                    print("contained:", error)
        print("x" * 5000)
        """,
        ends=("ok",),
    ),
    _program(
        name="value that cannot be shown",
        threatens="fails where nobody expects a failure",
        code=r"""
        class Value:
            def __repr__(self):
                raise SystemError("no")

        Value()
        """,
        ends=("ok", "error"),
    ),
    _program(
        name="value without end",
        threatens="is waited for after the program has ended",
        seconds=0.5,
        code=r"""
        class Value:
            def __repr__(self):
                while True:
                    pass

        Value()
        """,
        ends=("timeout",),
    ),
    _program(
        name="huge value",
        threatens="fills the memory, or the model, that reads it",
        code="[['x' * 1000] * 1000] * 100",
        ends=("ok", "memory"),
    ),
    _program(
        name="value that ends the process",
        threatens="has the end taken for success",
        code=r"""
        class Value:
            def __repr__(self):
                os._exit(0)

        Value()
        """,
    ),
    _program(
        name="value of a strange type",
        threatens="is no text, though it says so",
        code=r"""
        class Text(str):
            def __len__(self):
                return -1

            def __getitem__(self, key):
                raise SystemError("no")

            def encode(self, *_):
                return 7

        class Value:
            def __repr__(self):
                return Text("x")

        Value()
        """,
    ),
    _program(
        name="error that cannot be shown",
        threatens="fails within the handling of its failure",
        code=r"""
        class Shy(BaseException):
            def __str__(self):
                raise self

            __repr__ = __str__

        raise Shy
        """,
        ends=("error",),
    ),
    _program(
        name="error without end",
        threatens="is waited for after the program has failed",
        seconds=0.5,
        code=r"""
        class Slow(Exception):
            def __str__(self):
                while True:
                    pass

        raise Slow
        """,
        ends=("timeout",),
    ),
    _program(
        name="huge error",
        threatens="fills the memory, or the model, that reads it",
        code="raise ValueError('x' * 50_000_000)",
        ends=("error", "memory"),
    ),
    _program(
        name="error of a strange type",
        threatens="fails within the handling of its failure",
        code=r"""
        class Meta(type):
            __name__ = property(lambda self: 1 / 0)

        class Strange(Exception, metaclass=Meta):
            __traceback__ = property(lambda self: 1 / 0)
            __cause__ = property(lambda self: self)

        raise Strange
        """,
        ends=("error", "killed"),
    ),
    _program(
        name="endless chain of errors",
        threatens="fails within the handling of its failure",
        code=r"""
        error = None
        for number in range(100_000):
            new = ValueError(number)
            new.__cause__, error = error, new
        raise error
        """,
        ends=("error",),
    ),
    _program(
        name="error far down",
        threatens="fills the model that reads where it happened",
        code=r"""
        def deeper(n):
            return deeper(n + 1)

        deeper(0)
        """,
        ends=("error",),
    ),
    _program(
        name="source that is no text",
        threatens="breaks who sends it on",
        bare=True,
        code="print('\ud800')",
    ),
    _program(
        name="source with NUL",
        threatens="breaks who sends it on, or runs only its first half",
        bare=True,
        code="1\0\nprint(2)",
        ends=("error",),
    ),
    _program(
        name="source in another encoding",
        threatens="is another program than the one that was read",
        bare=True,
        code="# coding: utf-7\nprint('a')  # +AAo-print('second')",
        ends=("ok",),
    ),
]
