"""What processes do before a run is asked for, so that the run need not wait for it.

A process that was forked shares its memory with its parent until it writes to it; then each page is copied, which costs
far more than what is done there. In Python, using an object is writing to it. So who waits for a run uses what the run
will use.
"""

import ast
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

_SOURCE = (
    "def f(n):\n    return [i for i in range(n) if i % 2]\nclass A:\n    x = f'{sum(f(9)):>5}'\nA().x.split()"
)


def libraries() -> None:
    """Let sympy load what it loads at first use, and build its tables: half of what a short program waits for."""
    if "sympy" in sys.modules:
        import sympy

        x, y = sympy.symbols("x y")
        sympy.solve([x + y - 3, x - y - 1], [x, y])
        sympy.solve(x**2 - 3 * x + 2, x)
        sympy.simplify(sympy.sin(x) ** 2 + sympy.cos(x) ** 2)
        sympy.summation(x**2, (x, 1, y))
        sympy.factorint(2**31 - 2)


def rehearse(needed: Callable[[], bool]) -> None:
    """Go through what programs do, a piece at a time, until somebody needs this process."""
    with suppress(Exception):
        for _ in _pieces():
            if needed():
                return


def _pieces() -> Iterator[None]:
    json.loads(json.dumps({"a": [1, 2.5, "x", None]}))
    os.listdir("/dev/fd")
    yield
    exec(compile(ast.parse(_SOURCE, "rehearsal"), "rehearsal", "exec"), {"__name__": "rehearsal"})
    yield
    if "sympy" in sys.modules:
        import sympy

        x, y = sympy.symbols("x y")
        str(sympy.expand((x + y) ** 2))
        yield
        sympy.solve(x**2 - 3 * x + 2, x)
