"""A verdict, whatever the judge does."""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any

from loopkit.journal import Irreproducible
from loopkit.log import StoreError
from loopkit.verdict import Verdict

Judge = Callable[[Any, Any], Any]
"""`judge(candidate, observation)` returns a `Verdict` or a bare number, or something to await that does."""


async def verdict_of(judge: Judge, candidate: Any, observation: Any = None) -> Verdict:
    """What `judge` says; where it fails outright, a fallback: score 0, `fallback` set, `barred` with what went wrong.

    So the loop goes on and the candidate is not lost, but nobody takes silence for approval: a fallback never opens
    `Threshold`. What the record itself raises (StoreError, Irreproducible) passes through.
    """
    try:
        verdict = judge(candidate, observation)
        if isawaitable(verdict):
            verdict = await verdict
        return verdict if isinstance(verdict, Verdict) else Verdict(score=verdict)
    except (StoreError, Irreproducible):
        raise
    except Exception as error:
        return Verdict(score=0.0, barred=f"the judge failed: {type(error).__name__}: {error}", fallback=True)
