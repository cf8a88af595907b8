"""How a command ends early."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, in which SIGTERM cancels as Ctrl-C does: workers stopped, everything recorded, resumable."""
    return asyncio.run(_ended_by_sigterm(work))


async def _ended_by_sigterm(work: Coroutine[Any, Any, T]) -> T:
    with contextlib.suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    return await work
