"""What the modules, functions and methods of Python do, as data."""

# Modules from which nothing reaches out, but for what stands in SHARP and PATHS.
SAFE = {
    "math", "cmath", "json", "re", "collections", "itertools", "functools", "statistics", "random",
    "datetime", "time", "calendar", "string", "textwrap", "csv", "decimal", "fractions", "numbers", "typing",
    "types", "dataclasses", "enum", "pprint", "platform", "ast", "tokenize", "token", "keyword", "difflib",
    "heapq", "bisect", "operator", "copy", "io", "argparse", "unicodedata", "uuid", "hashlib", "hmac", "zlib",
    "base64", "binascii", "struct", "array", "abc", "contextlib", "warnings", "reprlib", "graphlib",
    "secrets", "colorsys", "html", "fnmatch", "stat", "locale", "gettext", "traceback", "cProfile", "profile",
    "pstats", "dis", "unittest", "doctest", "logging", "tomllib", "configparser", "xml", "urllib.parse",
    "importlib.metadata", "importlib.resources", "zoneinfo", "sysconfig", "inspect", "threading", "queue",
    "asyncio", "concurrent.futures", "weakref", "__future__", "errno", "getopt", "shlex", "timeit", "bz2",
    "lzma", "gzip", "zipfile", "email.utils", "html.parser", "os.path", "posixpath", "ntpath", "glob",
    "pathlib", "tempfile", "sqlite3", "filecmp", "linecache", "mimetypes", "ipaddress", "optparse",
    "plistlib", "quopri", "codecs", "gc", "tracemalloc",
}  # fmt: skip
# What may be used of sys.
SYS = {
    "argv", "version", "version_info", "path", "stdin", "stdout", "stderr", "exit", "platform", "executable",
    "maxsize", "getsizeof", "byteorder", "getrecursionlimit", "setrecursionlimit", "float_info", "flags",
    "implementation", "getdefaultencoding", "prefix", "base_prefix", "hexversion", "stdlib_module_names",
}  # fmt: skip
# What may be used of os.
OS = {
    "path", "sep", "linesep", "listdir", "getcwd", "walk", "scandir", "stat", "cpu_count", "getpid",
    "getppid", "fspath", "name", "curdir", "pardir", "devnull", "uname", "get_terminal_size", "getloadavg",
    "sched_getaffinity", "process_cpu_count", "fsencode", "fsdecode", "extsep", "access", "R_OK", "W_OK",
    "F_OK", "X_OK", "getuid", "geteuid", "times", "urandom", "strerror", "error",
}  # fmt: skip
# Functions that take paths: what they do with their arguments, in order.
PATHS: dict[str, tuple[str, ...]] = {
    "os.remove": ("delete",), "os.unlink": ("delete",), "os.rmdir": ("delete",), "os.removedirs": ("delete",),
    "shutil.rmtree": ("delete",), "os.rename": ("delete", "write"), "os.replace": ("delete", "write"),
    "os.renames": ("delete", "write"), "shutil.move": ("delete", "write"), "os.mkdir": ("write",),
    "os.makedirs": ("write",), "os.truncate": ("write",), "os.chmod": ("write",), "os.utime": ("write",),
    "os.chdir": ("read",), "os.symlink": ("read", "write"), "os.link": ("read", "write"),
    "shutil.copy": ("read", "write"), "shutil.copy2": ("read", "write"), "shutil.copyfile": ("read", "write"),
    "shutil.copytree": ("read", "write"), "shutil.make_archive": ("write",),
    "shutil.unpack_archive": ("read", "write"), "os.listdir": ("read",), "os.walk": ("read",),
    "os.scandir": ("read",), "os.stat": ("read",), "glob.glob": ("read",), "glob.iglob": ("read",),
    "sqlite3.connect": ("write",), "zipfile.ZipFile": ("write",), "gzip.open": ("write",),
    "bz2.open": ("write",), "lzma.open": ("write",), "shutil.which": (), "shutil.disk_usage": (),
    "shutil.get_terminal_size": (), "linecache.getlines": ("read",), "pandas.read_csv": ("read",),
    "numpy.loadtxt": ("read",), "pathlib.Path": (), "numpy.save": ("write",), "numpy.savez": ("write",),
    "logging.FileHandler": ("write",), "codecs.open": ("write",), "io.open": ("write",),
    "io.FileIO": ("write",), "os.listxattr": ("read",), "filecmp.cmp": ("read", "read"),
    "tempfile.mkdtemp": (), "tempfile.TemporaryDirectory": (), "tempfile.NamedTemporaryFile": (),
    "tempfile.mkstemp": (), "tempfile.gettempdir": (), "pandas.read_json": ("read",),
    "pandas.read_parquet": ("read",), "pandas.read_excel": ("read",), "numpy.genfromtxt": ("read",),
    "numpy.savetxt": ("write",),
}  # fmt: skip
# Methods: what they do to the path they are called on (True), or to their first argument.
METHODS: dict[str, tuple[str, bool]] = {
    "write_text": ("write", True), "write_bytes": ("write", True), "unlink": ("delete", True),
    "rmdir": ("delete", True), "touch": ("write", True), "mkdir": ("write", True),
    "symlink_to": ("write", True), "hardlink_to": ("write", True), "chmod": ("write", True),
    "rename": ("delete", True), "read_text": ("read", True), "read_bytes": ("read", True),
    "iterdir": ("read", True), "to_csv": ("write", False), "to_json": ("write", False),
    "to_excel": ("write", False), "to_parquet": ("write", False), "savefig": ("write", False),
    "extractall": ("write", False), "tofile": ("write", False), "to_pickle": ("write", False),
    "save": ("write", False), "dump_stats": ("write", False), "loadtxt": ("read", False),
}  # fmt: skip
# Functions that run programs: a line for a shell, or words.
RUNS = {
    "os.system": "code", "os.popen": "code", "subprocess.getoutput": "code",
    "subprocess.getstatusoutput": "code", "subprocess.run": "argv", "subprocess.call": "argv",
    "subprocess.check_call": "argv", "subprocess.check_output": "argv", "subprocess.Popen": "argv",
    "pty.spawn": "argv",
}  # fmt: skip
# Modules that reach the network.
NETWORK = {
    "requests", "httpx", "urllib3", "aiohttp", "urllib.request", "urllib", "http.client", "http.server",
    "ftplib", "smtplib", "poplib", "imaplib", "telnetlib", "socketserver", "xmlrpc", "websocket",
    "websockets", "boto3", "botocore", "paramiko", "fabric", "pycurl", "tornado", "wget", "socket", "ssl",
    "select", "selectors",
}  # fmt: skip
# Modules beside the standard library that reach past what can be read here.
EVIL = {
    "cffi", "dill", "cloudpickle", "sh", "plumbum", "pexpect", "psutil", "docker", "pip", "joblib", "sysv_ipc",
}  # fmt: skip
# Builtins that run text, or lead to names that are not written down.
BUILTINS = {
    "exec", "eval", "compile", "__import__", "globals", "locals", "vars", "breakpoint", "delattr",
    "__builtins__", "__loader__",
}  # fmt: skip
# Names with underscores that are harmless.
DUNDERS = {
    "__name__", "__version__", "__doc__", "__file__", "__len__", "__all__", "__path__", "__annotations__",
    "__init__", "__main__", "__repr__", "__str__", "__eq__", "__lt__", "__hash__", "__post_init__",
    "__enter__", "__exit__", "__iter__", "__next__", "__call__", "__getitem__", "__add__", "__mul__",
    "__contains__", "__qualname__", "__dataclass_fields__", "__author__", "__bool__", "__float__", "__int__",
}  # fmt: skip
# Functions of harmless modules that are not harmless.
SHARP = {
    "io.open_code", "inspect.currentframe", "inspect.stack", "gc.get_objects", "gc.get_referrers",
    "asyncio.create_subprocess_shell", "asyncio.create_subprocess_exec", "asyncio.open_connection",
    "asyncio.start_server", "unittest.mock", "logging.config", "timeit.timeit", "timeit.repeat", "timeit.Timer",
    "cProfile.run", "cProfile.runctx", "profile.run", "operator.attrgetter", "operator.methodcaller",
    "types.FunctionType", "types.CodeType", "codecs.decode", "doctest.testfile", "pandas.read_pickle",
    "pandas.read_sql", "pandas.read_html", "pandas.eval", "numpy.fromregex", "numpy.ctypeslib", "numpy.f2py",
    "numpy.distutils", "torch.load", "torch.hub", "yaml.load", "yaml.load_all", "yaml.unsafe_load",
    "yaml.full_load", "sympy.sympify", "sympy.parse_expr",
}  # fmt: skip
# Methods that run or load what is given to them, on whatever object.
SHARP_METHODS = {
    "system", "popen", "spawn", "spawnl", "execv", "execve", "execl", "fork", "unsafe_load", "full_load",
    "eval", "load_extension", "enable_load_extension", "load_module", "exec_module", "import_module",
    "read_pickle", "check_output", "run_path", "run_module", "rmtree", "urlopen", "urlretrieve",
    "create_connection", "connect_ex",
}  # fmt: skip
# Attributes by which one module, or a frame, leads to another.
LEADS_ON = {
    "f_globals", "gi_frame", "cr_frame", "tb_frame", "func_globals", "modules", "f_builtins", "f_locals",
    "os", "sys", "subprocess", "builtins", "shutil", "socket", "importlib", "ctypes",
}  # fmt: skip
