"""The set-up script's words and its order of steps, in a copy of the project where nothing is really installed."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PINS = "\n".join(
    f"{name}==1.0 \\\n    --hash=sha256:{'0' * 64}"
    for name in ("alpha", "some-thing", "setuptools", "uv", "wheel")
)
BENCH_LINE = "# Only for the extra `bench`:\n"

# Stands in for `.venv/bin/python` and `.venv/bin/uv`: notes how it was called and does as the test says.
FAKE = f"""\
#!{sys.executable}
import json, os, pathlib, sys
project = pathlib.Path({{project!r}})
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
if words[0] != "-c":
    uv = {{{{key: value for key, value in os.environ.items() if key.startswith(("UV_", "SSL_CERT"))}}}}
    with open(project / "calls", "a") as file:
        file.write(json.dumps([name, words, uv]) + "\\n")
if words[-2:] == ["config", "list"]:
    print((project / "pip-config").read_text())
if any(word.endswith("uv.txt") for word in words):
    os.symlink(sys.argv[0], project / ".venv/bin/uv")
if "compile" in words:
    answer = "resolved-bench" if "bench" in words else "resolved"
    pathlib.Path(words[words.index("--output-file") + 1]).write_text((project / answer).read_text())
if (project / f"{{{{name}}}}-fails").exists() and "install" in words:
    print((project / f"{{{{name}}}}-fails").read_text())
    sys.exit(1)
"""


class Project:
    """A checkout with a few pins, and an environment in which set-up is run."""

    def __init__(self, folder: Path):
        self.root = folder / "project"
        (self.root / ".ci").mkdir(parents=True)
        shutil.copy(ROOT / ".ci" / "setup.py", self.root / ".ci")
        self.write("pyproject.toml", "[project]\n")
        self.write("constraints.txt", PINS + "\n")
        self.write("pip-config", "")
        self.modules = folder / "modules"
        self.modules.mkdir()
        self.path = folder / "bin"
        self.path.mkdir()
        self.env = {"PATH": str(self.path), "PYTHONPATH": str(self.modules), "HOME": str(folder)}

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def module(self, name: str, text: str) -> None:
        """Put a module of this name before Python's own."""
        path = self.modules / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def fake_venv(self) -> None:
        """`python -m venv` makes the stand-in."""
        fake = FAKE.format(project=str(self.root))
        self.module(
            "venv",
            f"""
            import os, pathlib, shutil, sys
            folder = pathlib.Path(sys.argv[-1])
            if __name__ == "__main__":
                shutil.rmtree(folder, ignore_errors=True)
                (folder / "bin").mkdir(parents=True)
                (folder / "bin" / "python").write_text({fake!r})
                (folder / "bin" / "python").chmod(0o755)
            """,
        )

    def start(self, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, str(self.root / ".ci" / "setup.py"), *arguments]
        return subprocess.Popen(
            command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def calls(self) -> list:
        """[name, words, uv's variables] of every stand-in call since the last look, in order."""
        path = self.root / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]

    @property
    def ready(self) -> bool:
        return (self.root / ".venv" / ".ready").exists()


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path)


def only_line(text: str) -> str:
    (line,) = text.splitlines()
    return line


def pretend_version(project: Project, *version: int) -> None:
    project.module("sitecustomize", f"import sys; sys.version_info = {version!r}")


def test_python_too_old(project):
    pretend_version(project, 3, 9, 2)
    status, _, err = project.run()
    assert status == 1
    assert "Python 3.9.2 found" in only_line(err)
    assert ">= 3.11" in err
    assert not project.ready


def test_a_newer_python_on_the_path_is_taken(project):
    pretend_version(project, 3, 9, 2)
    hollow, good = project.path / "python3.13", project.path / "python3.12"
    hollow.write_text("#!/bin/sh\nexit 127\n")
    good.write_text('#!/bin/sh\nif [ "$1" = -c ]; then echo 3.12.1; else echo venv by 3.12 >&2; exit 1; fi\n')
    hollow.chmod(0o755)
    good.chmod(0o755)
    _, _, err = project.run()
    assert "venv by 3.12" in only_line(err)


def test_no_venv_module(project):
    project.module("ensurepip", "raise ImportError")
    status, _, err = project.run()
    assert status == 1
    assert "has no venv module" in only_line(err)
    assert "apt install python3-venv" in err


@pytest.mark.parametrize(
    "said", ["(from versions: none)", "error: dns error: no such host", "Connection refused"]
)
def test_no_network(project, said):
    project.fake_venv()
    project.write("python-fails", said)
    status, _, err = project.run()
    assert status == 1
    assert "no network" in only_line(err)
    assert "PIP_INDEX_URL" in err
    assert not project.ready


def test_real_pip_without_a_network_is_understood(project):
    """The words of the pip that is installed here, not words that the test made up."""
    project.module(
        "venv",
        f"""
        import pathlib, sys
        if __name__ == "__main__":
            python = pathlib.Path(sys.argv[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.write_text('#!/bin/sh\\nexec "{sys.executable}" "$@"\\n')
            python.chmod(0o755)
        """,
    )
    project.env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0"}
    _, _, err = project.run()
    assert "no network" in only_line(err)


def test_uv_installs_the_pins_with_hashes_then_the_checkout(project):
    project.fake_venv()
    status, out, err = project.run()
    assert (status, err) == (0, "")
    assert "creating .venv" in out
    assert "installing about 5 packages" in out
    installs = [(name, words) for name, words, _ in project.calls() if "install" in words]
    assert [name for name, _ in installs] == ["python", "uv", "uv"]
    assert "--require-hashes" in installs[0][1]
    assert "--require-hashes" in installs[1][1]
    assert installs[2][1][-4:] == ["--no-deps", "--no-build-isolation", "-e", str(project.root)]
    assert (project.root / ".venv" / "uv.txt").read_text().startswith("uv==1.0")
    assert "uv==" not in (project.root / ".venv" / "pins.txt").read_text()
    assert project.ready


def test_second_run_does_nothing_until_the_pins_change(project):
    project.fake_venv()
    project.run()
    project.calls()
    assert project.run() == (0, "", "")
    assert project.calls() == []

    mine = project.root / ".venv" / "added-by-the-user"
    mine.touch()
    project.write("constraints.txt", PINS + "\nbeta==2.0\n")
    _, out, _ = project.run()
    assert "about 6 packages" in out
    assert "creating" not in out
    assert mine.exists()


def test_what_only_the_benchmarks_need_is_left_to_bench(project):
    project.fake_venv()
    gamma = f"gamma==3.0 \\\n    --hash=sha256:{'1' * 64}\n"
    project.write("constraints.txt", PINS + "\n" + BENCH_LINE + gamma)
    _, out, _ = project.run()
    assert "installing about 5 packages" in out
    assert "gamma" not in (project.root / ".venv" / "pins.txt").read_text()
    project.calls()

    status, out, err = project.run("bench")
    assert (status, err) == (0, "")
    assert "adding 1 packages" in out
    ((name, words, _),) = (call for call in project.calls() if "install" in call[1])
    pins = project.root / ".venv" / "bench.txt"
    assert (name, words[-3:]) == ("uv", ["--require-hashes", "-r", str(pins)])
    assert gamma in pins.read_text()
    assert "alpha==1.0" in pins.read_text()  # set-up's pins hold for what is added
    assert "uv==" not in pins.read_text()

    assert project.run("bench") == (0, "", "")
    assert project.calls() == []
    project.write("constraints.txt", PINS + "\n" + BENCH_LINE + gamma.replace("3.0", "3.1"))
    project.run("bench")
    assert "gamma==3.1" in pins.read_text()


def test_bench_that_fails_is_tried_again(project):
    project.fake_venv()
    project.run()
    for name in ("uv", "python"):
        project.write(f"{name}-fails", "ERROR: no such package")
    status, _, err = project.run("bench")
    assert status == 1
    assert "no such package" in only_line(err)
    assert project.ready  # set-up itself is as it was
    for name in ("uv", "python"):
        (project.root / f"{name}-fails").unlink()
    assert "adding" in project.run("bench")[1]


def test_pins_put_what_the_benchmarks_add_last(project):
    project.fake_venv()
    project.run()
    project.calls()
    # With the extra, a shared package may be held at an older version: set-up takes that one too.
    project.write("resolved-bench", "alpha==0.9\n    --hash=a\nbeta==2\n    --hash=b\nuv==1\n")
    project.write("resolved", "alpha==0.9\n    --hash=a\nuv==1\n")
    project.env["PINS_FLAGS"] = "--upgrade"
    status, out, err = project.run("pins")
    assert (status, err) == (0, "")
    assert "3 pins" in out
    written = (project.root / "constraints.txt").read_text()
    assert written == "alpha==0.9\n    --hash=a\nuv==1\n" + BENCH_LINE + "beta==2\n    --hash=b\n"
    compiles = [words for _, words, _ in project.calls() if "compile" in words]
    # What was moved by the first is kept by the second.
    assert ["--upgrade" in words for words in compiles] == [True, False]
    assert not list(project.root.glob("constraints.txt.*"))


@pytest.mark.parametrize("damage", ["interrupted", "hollow"])
def test_broken_environment_is_made_again(project, damage):
    project.fake_venv()
    project.run()
    if damage == "interrupted":
        (project.root / ".venv" / ".ready").unlink()
    else:
        (project.root / ".venv" / "bin" / "python").unlink()
    status, out, _ = project.run()
    assert status == 0
    assert "remaking the unfinished .venv" in out
    assert project.ready


def test_pip_takes_over_when_uv_fails(project):
    project.fake_venv()
    project.write("uv-fails", "error: no such option")
    status, out, _ = project.run()
    assert status == 0
    assert "uv failed" in out
    installs = [(name, words) for name, words, _ in project.calls() if "install" in words]
    assert [name for name, _ in installs] == ["python", "uv", "python", "uv", "python"]
    assert "--require-hashes" in installs[2][1]


def test_failure_shows_the_error_and_leaves_no_stamp(project):
    project.fake_venv()
    project.write("uv-fails", "")
    project.write("python-fails", "Collecting alpha\nERROR: hashes do not match\nsome hint")
    status, _, err = project.run()
    assert status == 1
    assert "ERROR: hashes do not match" in only_line(err)
    assert not project.ready


def test_uv_is_told_what_pip_is_set_to(project):
    project.fake_venv()
    settings = {
        "global.index-url": "from global",
        "install.index-url": "from install",
        "download.index-url": "from another command",
        ":env:.extra-index-url": "one\ntwo",
        "global.find-links": "/a /b",
        "global.no-index": "true",
        "global.cert": "/certs.pem",
        ":env:.default-timeout": "77",
    }
    project.write("pip-config", "\n".join(f"{key}={value!r}" for key, value in settings.items()))
    project.env["UV_HTTP_TIMEOUT"] = "5"
    project.run()
    _, words, variables = next(call for call in project.calls() if call[0] == "uv")
    assert "--no-index" in words
    assert variables == {
        "UV_DEFAULT_INDEX": "from install",
        "UV_INDEX": "one two",
        "UV_FIND_LINKS": "/a,/b",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_HTTP_TIMEOUT": "5",  # the user's own
        "SSL_CERT_FILE": "/certs.pem",
    }


def test_two_at_once_install_once(project):
    project.fake_venv()
    both = [project.start(), project.start()]
    outputs = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert sum("creating .venv" in out for out, _ in outputs) == 1
    assert project.ready


def test_the_committed_pins_hold_hashes_and_no_address():
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text
    setups, added = (part.replace("\\\n", " ").splitlines() for part in text.split(BENCH_LINE))
    assert len(setups) > 100
    assert all("==" in block and "--hash=sha256:" in block for block in setups + added)
    assert not any(block.startswith("lang") for block in setups)
    assert {"langgraph", "langgraph-checkpoint-sqlite"} <= {block.partition("==")[0] for block in added}


def test_make_bench_sets_up_what_it_runs():
    """The target, as make reads it: what is installed comes before what needs it, and every script exists."""
    shown = subprocess.run(
        ["make", "--dry-run", "--always-make", "bench"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    order = [line.split()[1:] for line in shown if ".ci/setup.py" in line or "tests/benchmarks/" in line]
    assert [words[0] for words in order[-5:]] == [
        ".ci/setup.py",
        "tests/benchmarks/bench_durable.py",
        "tests/benchmarks/bench_clauses.py",
        "tests/benchmarks/bench_sandbox.py",
        "tests/benchmarks/bench_batch.py",
    ]
    assert order[-5][1] == "bench"
    assert order[-6][0] == ".ci/setup.py"
    assert all((ROOT / words[0]).is_file() for words in order)
