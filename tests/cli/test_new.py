"""`loopkit new experiment …`: it says what it wrote and what to do next, or what is wrong."""

import pytest

from loopkit.cli import main


def test_it_says_what_it_wrote_and_what_to_do_next(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    assert main(["new", "experiment", "said"]) == 0
    out = capsys.readouterr().out
    written, _, then = out.partition("\n\n")
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert set(written.splitlines()) == files
    for command in ("loopkit batch", "jupyter lab", "pytest"):
        (line,) = [line for line in then.splitlines() if line.strip().startswith(command)]
        assert line.split()[-1] in files


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-good"], "'no-good' will not do as a name"),
        (["good"], "has no folder `experiments`: go to the project's folder, or name one with --into"),
        (["knights", "--into", "."], "there is an experiment 'knights' already"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(capsys, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "experiment", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("loopkit: ") and said in err
    assert list(tmp_path.iterdir()) == []
