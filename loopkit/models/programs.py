"""The program in a model's answer."""

import ast
import re

from loopkit.verdict import Failure

_FENCED = re.compile(r"```([\w+-]*)[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)


def program_in(answer: str) -> str:
    """The program in a model's answer: the first block fenced as Python, else the first fenced one, else all.

    Raises `Failure`: `malformed` if it is not Python, `empty` if there is nothing in it. So neither is ever run.
    """
    blocks = _FENCED.findall(answer)
    code = next((code for tag, code in blocks if tag.lower() in ("python", "python3", "py")), None)
    if code is None:
        code = blocks[0][1] if blocks else answer
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:  # a NUL character, absurd nesting
        raise Failure("malformed", f"not Python: {error}", answer=answer) from error
    if not tree.body:
        raise Failure("empty", "an answer with no program in it", answer=answer)
    return code
