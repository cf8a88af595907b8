"""Programs that try to reach something outside: by every family of sockets, and by what is not called a socket."""

from functools import partial

from .program import Program

_program = partial(Program, group="network", needs=("network",))

PROGRAMS = [
    _program(
        name="TCP",
        threatens="talks to services of this machine",
        code=r"""
        import socket
        for address in ("127.0.0.1", "0.0.0.0", "localhost"):
            with attempt(f"connected to {address}"):
                socket.create_connection((address, HOST.tcp), timeout=0.5)
        """,
    ),
    _program(
        name="TCP over IPv6",
        threatens="talks to services of this machine",
        code=r"""
        import socket
        with attempt("connected to an IPv4 service through an IPv6 socket"):
            socket.socket(socket.AF_INET6).connect(("::ffff:127.0.0.1", HOST.tcp))
        """,
    ),
    _program(
        name="TCP that connects as it sends",
        threatens="gets past a filter of connect()",
        code=r"""
        import socket
        with attempt("opened a connection by sending"):
            socket.socket().sendto(b"hello", 0x20000000, ("127.0.0.1", HOST.tcp))  # MSG_FASTOPEN
        """,
    ),
    _program(
        name="TCP through raw system calls",
        threatens="gets past a Python whose socket module was taken away",
        code=r"""
        import struct
        with attempt("connected to the host"):
            fd = call("socket", 2, 1, 0)
            where = struct.pack("=H", 2) + struct.pack(">H4s8x", HOST.tcp, bytes([127, 0, 0, 1]))
            checked(LIBC.connect(fd, where, 16))
        """,
    ),
    _program(
        name="UDP",
        threatens="sends data out without a connection",
        code=r"""
        import socket
        try:
            socket.socket(type=socket.SOCK_DGRAM).sendto(b"hello", ("127.0.0.1", HOST.udp))
        except OSError as error:
            print("contained:", error)
        """,
    ),
    _program(
        name="HTTP",
        threatens="uses a local API, such as a model server or Jupyter",
        code=r"""
        import urllib.request
        for host in ("127.0.0.1", "localhost"):
            with attempt("got an HTTP answer"):
                urllib.request.urlopen(f"http://{host}:{HOST.tcp}/", timeout=0.5)
        """,
    ),
    _program(
        name="HTTP by other programs",
        threatens="has a tool of the system talk for it",
        code=r"""
        import shutil, subprocess
        if shutil.which("curl"):
            subprocess.run(["curl", "-s", "-m", "1", f"http://127.0.0.1:{HOST.tcp}/"])
        if shutil.which("bash"):
            subprocess.run(["bash", "-c", f"echo hello > /dev/tcp/127.0.0.1/{HOST.tcp}"], stderr=subprocess.DEVNULL)
        """,
    ),
    _program(
        name="name lookup",
        threatens="leaks data in the names that it looks up",
        code=r"""
        import socket
        with attempt("looked up a name"):
            socket.getaddrinfo("example.com", 80)
        """,
        ends=("ok", "timeout"),
    ),
    _program(
        name="DNS packet",
        threatens="leaks data in the names that it looks up",
        code=r"""
        import socket
        question = bytes.fromhex("12340100000100000000000007") + b"example\x03com\0\0\1\0\1"
        for server in HOST.resolvers:
            with attempt(f"had an answer from {server}"):
                probe = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
                probe.settimeout(0.5)
                probe.sendto(question, (server, 53))
                probe.recv(512)
        """,
    ),
    _program(
        name="UNIX socket by path",
        threatens="talks to services of this machine, such as a container engine",
        code=r"""
        import socket
        with attempt("connected to a socket in a folder"):
            socket.socket(socket.AF_UNIX).connect(HOST.unix_path)
        """,
    ),
    _program(
        name="UNIX socket by abstract name",
        threatens="talks to services of this machine",
        code=r"""
        import socket
        with attempt("connected to an abstract socket"):
            socket.socket(socket.AF_UNIX).connect("\0" + HOST.unix_name)
        """,
    ),
    _program(
        name="datagram from half a socket pair",
        threatens="sends from a socket that never went through socket() or connect()",
        code=r"""
        import socket
        for where in (HOST.datagram_path, "\0" + HOST.datagram_name):
            with attempt("sent a datagram to the host"):
                socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"hello", where)
        """,
    ),
    _program(
        name="services of the system",
        threatens="gives orders to D-Bus, a container engine, systemd or the display",
        code=r"""
        import glob, socket
        known = ["/run/dbus/system_bus_socket", "/var/run/docker.sock", "/run/containerd/containerd.sock",
                 "/run/systemd/private", "/run/systemd/journal/socket", "/dev/log", "/run/snapd.socket",
                 "\0/tmp/.X11-unix/X0", "/tmp/.X11-unix/X0", *glob.glob("/run/user/*/bus")]
        for where in known:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with attempt(f"connected to {where!r}"):
                    socket.socket(socket.AF_UNIX, kind).connect(where)
        """,
    ),
    _program(
        name="the host's ports",
        threatens="shares the network of the host, and can serve in its name",
        code=r"""
        import errno, socket
        try:
            socket.socket().bind(("127.0.0.1", HOST.tcp))
        except OSError as error:
            print("contained:", error)
            if error.errno == errno.EADDRINUSE:
                escaped("sees that a port of the host is taken")
        """,
    ),
    _program(
        name="the host's interfaces",
        threatens="learns how this machine is connected",
        code=r"""
        import socket
        try:
            seen = {name for _, name in socket.if_nameindex()}
        except OSError as error:
            seen = set()
            print("contained:", error)
        if seen & set(HOST.interfaces):
            escaped(f"sees {sorted(seen & set(HOST.interfaces))}")
        """,
    ),
    _program(
        name="netlink",
        threatens="configures networks and listens to the kernel's events",
        needs=("system calls",),
        code=r"""
        import socket
        for protocol in (0, 2, 9, 12, 15):  # routes, inet_diag, audit, netfilter, devices
            with attempt(f"opened netlink protocol {protocol}"):
                socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        """,
    ),
    _program(
        name="packet socket",
        threatens="reads and forges what passes on the network",
        code=r"""
        import socket
        for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):
            with attempt("opened a packet socket"):
                socket.socket(17, kind, socket.ntohs(3))
        """,
    ),
    _program(
        name="raw socket",
        threatens="forges packets",
        code=r"""
        import socket
        for family in (socket.AF_INET, socket.AF_INET6):
            for protocol in (1, 58, 255):
                with attempt(f"opened raw protocol {protocol}"):
                    socket.socket(family, socket.SOCK_RAW, protocol)
        """,
    ),
    _program(
        name="vsock",
        threatens="talks to the host of a virtual machine, past every network namespace",
        needs=("system calls",),
        code=r"""
        import socket
        with attempt("opened a vsock"):
            socket.socket(40, socket.SOCK_STREAM)
        """,
    ),
    _program(
        name="kernel cryptography",
        threatens="reaches the attack surface of the kernel's crypto drivers",
        needs=("system calls",),
        code=r"""
        import socket
        with attempt("opened AF_ALG"):
            socket.socket(38, socket.SOCK_SEQPACKET).bind(("hash", "sha256"))
        """,
    ),
    _program(
        name="every other family",
        threatens="reaches old and little tested network code of the kernel",
        needs=("system calls",),
        code=r"""
        import socket
        for family in range(3, 46):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
                with attempt(f"opened family {family}, type {int(kind)}"):
                    socket.socket(family, kind)
        """,
    ),
    _program(
        name="other transports",
        threatens="gets out by a protocol that nobody thought of",
        code=r"""
        import socket
        for kind, protocol in ((1, 262), (1, 132), (5, 132), (6, 33), (2, 136), (2, 1)):
            with attempt(f"connected by protocol {protocol}"):
                probe = socket.socket(socket.AF_INET, kind, protocol)
                probe.settimeout(0.3)
                probe.connect(("127.0.0.1", HOST.tcp))
                if kind == 2:  # a connect that sends nothing proves nothing
                    raise OSError("no connection")
        """,
    ),
    _program(
        name="io_uring",
        threatens="opens sockets and files through a queue that no filter of system calls sees",
        needs=("system calls",),
        code=r"""
        with attempt("set up io_uring"):
            call("io_uring_setup", 4, ctypes.create_string_buffer(120))
        """,
    ),
    _program(
        name="inherited descriptors",
        threatens="uses a connection that was left open for it",
        code=r"""
        import socket, stat
        for fd in range(3, 256):
            try:
                if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                    continue
                left = socket.socket(fileno=os.dup(fd))
            except OSError:
                continue
            if left.family in (socket.AF_INET, socket.AF_INET6):
                escaped(f"has {left}")
            with attempt("sent to a named socket through what it inherited"):
                left.sendto(b"hello", HOST.datagram_path)
        """,
        ends=("ok", "killed", "error", "timeout"),
    ),
]
