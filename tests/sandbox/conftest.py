"""One sandbox that most tests share: its zygote takes a second to start, a run some hundredths."""

import asyncio
import os
import sys
import time

import pytest

if sys.platform == "win32":
    collect_ignore_glob = ["test_sandbox*.py", "test_session.py", "test_limits.py", "test_walls.py"]


@pytest.fixture(scope="session")
def warm():
    """A sandbox as it comes, whose runs have a folder each."""
    from loopkit.sandbox import Sandbox

    box = Sandbox()
    asyncio.run(box.run("pass"))  # so that what it protects is known, whichever test comes first
    yield box
    box.close()


@pytest.fixture(scope="session")
def bare():
    """The same without libraries."""
    from loopkit.sandbox import Sandbox

    box = Sandbox(preload=())
    asyncio.run(box.run("pass"))
    yield box
    box.close()


@pytest.fixture
def workplace(tmp_path_factory):
    """A folder that programs may write to, whoever they run as."""
    path = tmp_path_factory.mktemp("workplace")
    path.chmod(0o777)
    return path


@pytest.fixture
def eventually():
    """Wait for something to become true, ten seconds at most."""

    def wait(condition):
        until = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < until, "it did not come true within 10 s"
            time.sleep(0.02)

    return wait


@pytest.fixture
def descriptors():
    return lambda pid="self": len(os.listdir(f"/proc/{pid}/fd"))
