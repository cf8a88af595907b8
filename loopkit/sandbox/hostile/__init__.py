"""Programs that try to break out of the sandbox, and the check that they do not.

    report = await check()
    print(report)
    report.ok

They are run one after the other in a sandbox on this machine, between canaries that show what a program's own words
would hide. Without root, and without harm to the machine where a wall is missing: a program whose wall is reported
as missing is not run.
"""

import difflib
from collections.abc import Callable, Iterable
from typing import Any

from ..results import Limits
from ..sandbox import Sandbox
from . import calls, files, host, interpreter, network, output, privileges, processes, resources, secrets
from .canaries import Canaries
from .checking import Checker
from .program import Program
from .report import Report, Row

__all__ = ["LIMITS", "PROGRAMS", "Program", "Report", "Row", "check"]

PROGRAMS: tuple[Program, ...] = tuple(
    program
    for module in (
        network,
        files,
        secrets,
        processes,
        privileges,
        resources,
        output,
        calls,
        interpreter,
        host,
    )
    for program in module.PROGRAMS
)
LIMITS = Limits(
    seconds=2,
    memory=256 << 20,
    processes=16,
    file_size=16 << 20,
    open_files=64,
    disk=32 << 20,
    output=1 << 20,
    shown=2000,
)


async def check(
    sandbox_factory: Callable[..., Any] | None = None,
    names: Iterable[str] | None = None,
    on_done: Callable[[Row], object] | None = None,
) -> Report:
    """Run the programs of these names, or all, and say of each whether it was contained.

    `sandbox_factory` takes the arguments of `Sandbox` and returns one; `on_done` is called with each row. Raises
    ValueError for a name that no program has, SandboxError where no sandbox can be started at all.
    """
    chosen = PROGRAMS if names is None else [_named(name) for name in names]
    rows = []

    def done(row: Row) -> None:
        rows.append(row)
        if on_done:
            on_done(row)

    with Canaries() as canaries:
        checker = Checker(sandbox_factory or Sandbox, LIMITS, canaries)
        try:
            for program in chosen:
                done(await checker.check(program))
        finally:
            closing = await checker.close()
        done(closing)
    return Report(tuple(rows))


def _named(name: str) -> Program:
    known = {program.name: program for program in PROGRAMS}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3) or list(known)[:3]
        raise ValueError(
            f"no hostile program is named {name!r}; there are, for example: {', '.join(map(repr, near))}"
        )
    return known[name]
