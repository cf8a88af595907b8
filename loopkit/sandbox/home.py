"""The folder that a sandbox keeps its runs in, and what a host that was killed left of one."""

import contextlib
import itertools
import os
import tempfile
import time
from pathlib import Path

from .folders import delete_tree

_PREFIX = "loopkit-"
_LOCK = "in-use"
_YOUNG = 60.0
"""Seconds within which a folder may not have been locked by its host yet."""


class Home:
    """A new folder below the system's for temporary files, locked for as long as this process lives."""

    def __init__(self) -> None:
        import fcntl

        _sweep()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        self.path.chmod(0o711)  # a run's user finds its own folder by name, and no other
        self._lock = open(self.path / _LOCK, "x", opener=_private)  # noqa: SIM115
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._numbers = itertools.count(1)

    def new_run(self) -> Path:
        """A folder for one run."""
        path = self.path / str(next(self._numbers))
        path.mkdir()
        path.chmod(0o711)
        return path

    def delete(self) -> None:
        self.forget()
        delete_tree(self.path)

    def forget(self) -> None:
        """Leave it to somebody else."""
        self._lock.close()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sweep() -> None:
    """Delete the folders of hosts that were killed: they hold no lock any more."""
    import fcntl

    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), open(path / _LOCK) as lock:  # without one it is none of ours
            info = os.fstat(lock.fileno())
            if info.st_uid == os.geteuid() and time.time() - info.st_mtime > _YOUNG:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                delete_tree(path)
