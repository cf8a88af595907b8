"""The embedded model in a process of its own, so that several share it: loaded once, and with all cores to itself."""

import os
import subprocess
import sys
import threading
from typing import IO

ADDRESS = "LOOPKIT_MODEL_SERVER"
"""The environment variable that tells `embedded` to ask such a process instead of loading the model itself."""


class ModelServer:
    """A server of the embedded model, as long as the block lasts: `with ModelServer(slots=2, log=file) as server`.

    It answers `slots` requests at once. What it says goes to `log`.
    """

    def __init__(self, *, slots: int, log: IO[bytes]) -> None:
        self.slots, self._log = slots, log
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()
        self._address = ""

    def __enter__(self) -> "ModelServer":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    @property
    def pid(self) -> int | None:
        """Of the process; None before the first `address`."""
        return self._process and self._process.pid

    def address(self) -> str:
        """Where it listens; it is started if it does not run. Raises RuntimeError when it cannot be."""
        with self._starting:
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "loopkit.models.served", str(self.slots)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._log,
                    env={name: value for name, value in os.environ.items() if name != ADDRESS},
                    start_new_session=True,  # Ctrl-C is for who started it
                )
                self._address = self._process.stdout.readline().decode().strip()
                if not self._address:
                    code = self._process.wait()
                    raise RuntimeError(
                        f"the embedded model cannot be served (exit code {code}); see {self._log.name}"
                    )
            return self._address
