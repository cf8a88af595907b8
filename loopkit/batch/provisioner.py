"""What jupyter_client starts the kernels of a batch with: warm where there is a forge, else as ever."""

import os
import tempfile
from typing import Any
from uuid import uuid4

from jupyter_client.provisioning import LocalProvisioner

from loopkit.batch.warm import FORGE, Forked

NAME = "loopkit"
"""Its entry point, in the group `jupyter_client.kernel_provisioners`."""


class Provisioner(LocalProvisioner):
    """Starts Python's kernel as a fork of a process that is loaded already, and any other kernel as usual."""

    exit_code: int | None = None
    """Of the last kernel that ended in this process, negative for a signal; the class's own attribute."""

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        # Sockets that are files: two kernels that start at once cannot take each other's, as they can with ports. Their
        # names must stay under some 100 characters, which the usual ones, below the user's home, may not.
        if os.name == "posix":
            self.parent.transport = "ipc"
            self.parent.ip = os.path.join(tempfile.gettempdir(), f"k{uuid4().hex[:8]}")
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        address = os.environ.get(FORGE)
        if not address or cmd[1:3] != ["-m", "ipykernel_launcher"]:
            return await super().launch_kernel(cmd, **kwargs)
        self.cwd = os.fspath(kwargs.get("cwd") or os.getcwd())
        env = kwargs.get("env") or os.environ
        with open(os.devnull) as null:
            self.process = Forked(
                address, "kernel", cmd[2:], cwd=self.cwd, env=env, stdio=(null.fileno(), 2, 2)
            )
        self.pid = self.pgid = self.process.pid
        return self.connection_info

    async def poll(self) -> int | None:
        code = await super().poll()
        if code is not None and self.process:
            Provisioner.exit_code = code
        return code
