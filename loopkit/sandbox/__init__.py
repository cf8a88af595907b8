"""Running code that nobody has read: a `Sandbox`, its typed results, tools for agents, and a judge of shell commands.

Names load when first used: the zygote imports this package too, and needs none of them.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "Sandbox": "sandbox", "run_python": "sandbox", "Session": "session",
    "Execution": "results", "Limits": "results", "Protection": "results", "ErrorInfo": "results",
    "MadeFile": "results", "SandboxError": "results",
    "Workbench": "tools",
}  # fmt: skip
__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'loopkit.sandbox' has no attribute {name!r}")
    return getattr(import_module(f"loopkit.sandbox.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
