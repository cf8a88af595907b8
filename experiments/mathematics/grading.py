"""Is it the right answer? Integers are compared; else math-verify is asked, which evaluates text: in the sandbox."""

from __future__ import annotations

import json
import re

from loopkit.sandbox import Limits, Sandbox, SandboxError

from .problems import in_range

PRELOAD = ("sympy", "math_verify")

# Texts of models and of files are read as LaTeX and as plain numbers; what a program printed also as sympy prints it.
_PROGRAM = """
import json
import re
import sympy
from math_verify import parse, verify
truth, given = json.loads({data!r})

def read(text):
    return parse(text, raise_on_error=False, parsing_timeout=None)  # the sandbox keeps the time

def spellings(text):
    yield text
    try:
        yield sympy.latex(sympy.sympify(text))
    except Exception:
        pass

def readings(text):
    yield read(text)
    yield from (read("$" + one.strip("$") + "$") for one in spellings(text))

right = any("".join(one.split()) == "".join(truth.split()) for one in spellings(given)) or any(
    verify(gold, answer, timeout_seconds=None)
    for gold in readings(truth) if gold for answer in readings(given) if answer
)
"right" if right else "wrong"
"""


async def equal(truth: str, given: str, sandbox: Sandbox) -> bool:
    """Whether `given` is the same value as `truth`; an answer that cannot be read, or takes too long, is not.

    What is evaluated could, if a model set out to, change what evaluates it. An integer is not evaluated.

    `sandbox` should have PRELOAD loaded, for speed. Raises SandboxError if grading itself does not work.
    """
    if in_range(truth) and re.fullmatch(r"[+-]?[0-9]{1,20}", given):
        return int(given) == int(truth)
    run = await sandbox.run(_PROGRAM.format(data=json.dumps([truth, given])), limits=Limits(seconds=20))
    if run.ended == "ok" and run.value in ("'right'", "'wrong'"):
        return run.value == "'right'"
    if (
        run.ended == "error"
        and run.error is not None
        and run.error.type in ("ImportError", "ModuleNotFoundError")
    ):
        raise SandboxError(f"grading needs math-verify: {run.message}")
    return False
