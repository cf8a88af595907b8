"""Processes that start warm: forks of a loaded process, which behave as children of their own would."""

import asyncio
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
import pytest_asyncio

from loopkit.batch.warm import FORGE, Forge, Forked, ended

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="forks of a loaded process: on Linux only"
    ),
]

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "02_constraint_solving.ipynb"
SAY = """
import os, resource, sys
with open({out!r}, "w") as file:
    print(os.getcwd(), os.environ.get("MARK"), resource.getrlimit(resource.RLIMIT_DATA)[0], "pandas" in sys.modules,
          sorted(map(int, os.listdir("/proc/self/fd")))[:3], file=file)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def forge(tmp_path_factory):
    with (tmp_path_factory.mktemp("forge") / "log").open("wb") as log:
        async with Forge("knights", NOTEBOOK, env=os.environ, log=log) as one:
            yield one


async def kernel(tmp_path, address, **env):
    """A kernel by jupyter_client, from the forge, and a client of it."""
    from jupyter_client import AsyncKernelManager
    from jupyter_client.provisioning import KernelProvisionerFactory

    from loopkit.batch.provisioner import NAME

    KernelProvisionerFactory.instance().default_provisioner_name = NAME
    os.environ[FORGE] = address
    manager = AsyncKernelManager(kernel_name="python3")
    try:
        await manager.start_kernel(cwd=str(tmp_path), env=os.environ | env)
    finally:
        del os.environ[FORGE]
    client = manager.client()
    client.start_channels()
    await client.wait_for_ready(timeout=60)
    return manager, client


def gone(pid):
    return not Path(f"/proc/{pid}").exists()


async def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not so in time"
        await asyncio.sleep(0.05)


async def test_a_warm_kernel_is_a_kernel(forge, tmp_path):
    manager, client = await kernel(tmp_path, await forge.address(), MARK="here")
    out = tmp_path / "said"
    reply = await client.execute_interactive(SAY.format(out=str(out)), timeout=60)
    assert reply["content"]["status"] == "ok"
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    assert out.read_text() == f"{tmp_path} here {limit} True [0, 1, 2]\n"
    shown = []
    await client.execute_interactive(
        "6 * 7", output_hook=lambda message: shown.append(message["content"]), timeout=60
    )
    assert any(content.get("data", {}).get("text/plain") == "42" for content in shown)
    pid = manager.provisioner.pid
    client.stop_channels()
    await manager.shutdown_kernel(now=True)
    await until(lambda: gone(pid))


async def test_kernels_draw_different_random_numbers(forge, tmp_path):
    address, seen = await forge.address(), set()
    for number in range(2):
        manager, client = await kernel(tmp_path, address)
        out = tmp_path / f"drawn-{number}"
        code = f"import random, numpy; open({str(out)!r}, 'w').write(f'{{random.random()}} {{numpy.random.random()}}')"
        await client.execute_interactive(code, timeout=60)
        client.stop_channels()
        await manager.shutdown_kernel(now=True)
        seen.update(out.read_text().split())
    assert len(seen) == 4


async def worker(address, job: str = "") -> Forked:
    with tempfile.TemporaryFile() as given, open(os.devnull, "wb") as null:
        given.write(job.encode())
        given.seek(0)
        stdio = (given.fileno(), null.fileno(), null.fileno())
        return Forked(address, "worker", ["worker", "0"], cwd="/", env=os.environ, stdio=stdio)


async def test_the_end_of_a_worker_is_told(forge):
    process = await worker(await forge.address(), "no JSON")
    assert await ended(process) == 1
    assert process.poll() == process.wait() == 1


async def test_who_lets_go_of_a_process_ends_it(forge, tmp_path):
    manager, client = await kernel(tmp_path, await forge.address())
    pid = manager.provisioner.pid
    client.stop_channels()
    manager.provisioner.process.close()
    await until(lambda: gone(pid))


async def test_a_forge_that_was_killed_takes_all_along_and_is_started_anew(forge, tmp_path):
    address = await forge.address()
    manager, client = await kernel(tmp_path, address)
    pid = manager.provisioner.pid
    os.kill(forge.pid, signal.SIGKILL)
    await until(lambda: gone(pid))
    assert manager.provisioner.process.poll() == -signal.SIGKILL
    client.stop_channels()
    with pytest.raises(ChildProcessError, match="forge"):
        await worker(address)
    process = await worker(await forge.address(), "no JSON")
    assert await ended(process) == 1


async def test_a_forge_leaves_nothing(tmp_path):
    with (tmp_path / "log").open("wb") as log:
        async with Forge("knights", NOTEBOOK, env=os.environ, log=log) as forge:
            address = await forge.address()
            manager, client = await kernel(tmp_path, address)
            pids = [forge.pid, manager.provisioner.pid]
            client.stop_channels()
    assert not Path(address).exists()
    await until(lambda: all(map(gone, pids)))


async def test_a_forge_that_cannot_load_says_so(tmp_path):
    with (tmp_path / "log").open("wb") as log:
        async with Forge("no_such_thing", NOTEBOOK, env=os.environ, log=log) as forge:
            with pytest.raises(ChildProcessError, match="exit code 1"):
                await forge.address()
    assert "no_such_thing" in (tmp_path / "log").read_text()
