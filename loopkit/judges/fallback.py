"""A verdict, whatever the judge does."""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any

from loopkit.journal import Irreproducible, message_of
from loopkit.log import StoreError
from loopkit.verdict import Failure, Verdict

Judge = Callable[[Any, Any], Any]
"""`judge(candidate, observation)` returns a `Verdict` or a bare number, or something to await that does."""


async def verdict_of(judge: Judge, candidate: Any, observation: Any = None) -> Verdict:
    """What `judge` says; where it fails outright, a fallback: score 0, `barred` with what went wrong, and `fallback`
    `failure` (it raised a `Failure`, or returned what is no verdict) or `error` (it raised anything else).

    So the loop goes on and the candidate is not lost, but nobody takes silence for approval: a fallback never opens
    `Threshold`. What the record itself raises (StoreError, Irreproducible) passes through.
    """
    try:
        said = judge(candidate, observation)
        if isawaitable(said):
            said = await said
    except (StoreError, Irreproducible):
        raise
    except Failure as failure:
        return _fallback("failure", f"{failure}")
    except Exception as error:
        return _fallback("error", f"{type(error).__name__}: {message_of(error)}")
    try:
        return said if isinstance(said, Verdict) else Verdict(score=said)
    except ValueError as error:
        return _fallback("failure", str(error))


def _fallback(kind: Any, why: str) -> Verdict:
    return Verdict(score=0.0, barred=f"the judge failed: {why}", fallback=kind)
