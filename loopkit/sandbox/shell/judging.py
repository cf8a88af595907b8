"""`judge`: what to say of a shell command before it runs."""

import os
from importlib import import_module
from pathlib import Path

from .decisions import Decision, Policy
from .parsing import Unreadable
from .places import MARKS, SOME
from .walking import Shared, Shell

# Each registers what it knows when it is loaded.
for _name in (
    "building", "builtins", "editing", "environment", "files", "languages", "python", "statements", "versions", "wrappers",
):  # fmt: skip
    import_module(f"{__package__}.{_name}")


def judge(command: str, *, folder: str | Path = ".", policy: Policy | None = None) -> Decision:
    """Judge a shell command (bash) by what it does; nothing is run, and no file is looked at.

    `folder` is where the command will run and where the agent may read, write and delete; `policy` says where else
    (by default in /tmp, private in the sandbox). Relative paths and variables that the command sets are followed.

    - `allow`: all that it does is understood, and stays within the folder and /tmp; the agent's own programs may run
      there, for they run in the sandbox.
    - `ask`: it reaches the network, installs, throws work away, or something about it is not understood.
    - `refuse`: it changes or destroys something outside, takes secrets, gains rights, stays behind, or runs what it
      downloads.

    Never raises for any text. This is a second line: the sandbox is the first, and does not read commands at all.
    """
    shared = Shared(folder=Path(os.path.abspath(folder)).parts[1:], policy=policy or Policy())
    shell = Shell(shared)
    shell.source = command
    try:
        if MARKS.search(command):
            shell.note("obscure", "", "ask", "holds letters of private use")
            command = MARKS.sub("?", command)
        shell.code(command)
        _uncalled(shell)
    except Unreadable as error:
        shell.source = command
        shell.note("obscure", "", "ask", str(error))
    except RecursionError:
        shell.source = command
        shell.note("obscure", "", "ask", "is nested too deep")
    return Decision.of(shared.effects)


def _uncalled(shell: Shell, depth: int = 0) -> None:
    """A function that is defined and not called may be called by the next command, and define others."""
    for name, bodies in [*shell.functions.items()]:
        if name not in shell.shared.called and depth < 8:
            inner = shell.fork()
            inner.call(name, [SOME], "")
            inner.functions = {name: found for name, found in inner.functions.items() if found != bodies}
            _uncalled(inner, depth + 1)
