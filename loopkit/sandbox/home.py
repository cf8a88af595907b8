"""The folder that a sandbox keeps its runs in, and what a host that was killed left of one."""

import contextlib
import itertools
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
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
        self._lock = open(self.path / _LOCK, "x", opener=private)  # noqa: SIM115
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._numbers = itertools.count(1)
        # Taking away a folder can take a file system longer than the run did, so nobody waits for it.
        self._tidying = ThreadPoolExecutor(1, thread_name_prefix="loopkit-tidying")

    def new_run(self) -> Path:
        """A path for the folder of one run; the names that begin with it and a dot are its files."""
        return self.path / str(next(self._numbers))

    def remove_run(self, path: Path) -> None:
        """Remove the folder and the files of a run, some time soon."""
        with contextlib.suppress(RuntimeError):  # all is being deleted already
            self._tidying.submit(self._remove, path)

    def _remove(self, path: Path) -> None:
        for file in (f"{path}.stdout.txt", f"{path}.stderr.txt"):
            with contextlib.suppress(OSError):
                os.unlink(file)
        delete_tree(path)

    def delete(self) -> None:
        """Remove all of it."""
        self._tidying.shutdown(cancel_futures=True)
        self.forget()
        delete_tree(self.path)

    def forget(self) -> None:
        """Leave it to somebody else."""
        self._lock.close()


def private(path: str, flags: int) -> int:
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
