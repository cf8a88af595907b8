"""`loopkit flow …` from a terminal: what is printed, what is recorded, and the exit code."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loopkit import Store, cli

ROOT = Path(__file__).parents[2]
FACTORY = ROOT / "experiments" / "flows" / "factory.yaml"
SCENARIOS = FACTORY.parent / "scenarios"

ASKS = """\
flow: asks
params: { topic: tides, count: 2 }
steps:
  - id: draft
    command: [echo, "about {{ params.topic }}"]
    goto: ask
  - id: ask
    human: |
      Ship [{{ steps.draft.output.stdout }}]?
    output_schema:
      properties: { decision: { type: string, enum: ["yes", "no"] }, why: { type: string }, stars: { type: integer } }
      required: [decision]
    transitions:
      - { when: output.decision == 'yes', goto: done }
      - { when: output.decision == 'no', goto: draft, max_visits: 2 }
"""
SLEEPS = """\
flow: sleeps
steps:
  - {id: first, command: ["true"], goto: sleep}
  - {id: sleep, command: [sh, -c, "echo $$ >> pids; [ -e awake ] || exec sleep 60"], goto: done}
"""


def run(capsys, *arguments):
    """The exit code, and what was printed on standard output and on standard error."""
    try:
        code = cli.main(["flow", *map(str, arguments)])
    except SystemExit as ended:
        code = ended.code
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return code, out, err


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "asks.yaml").write_text(ASKS)
    (tmp_path / "sleeps.yaml").write_text(SLEEPS)
    (tmp_path / "broken.yaml").write_text(
        "flow: f\nsteps:\n  - {id: a, code: f, goto: b}\n  - {id: c, code: f, gto: a}\n"
    )
    return tmp_path


def test_help_has_examples_and_every_exit_code_and_the_files_it_names_exist(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "Exit codes: 0 done; 1 the flow ended as failed" in " ".join(out.split())
    for number in ("2 the file", "3 a person", "130 interrupted"):
        assert number in " ".join(out.split())
    for name in re.findall(r"\S+\.yaml", out):
        assert (ROOT / name).is_file(), name
    for command in ("check", "draw", "run", "resume", "answer", "fork"):
        assert command in out
        assert run(capsys, command, "--help")[0] == 0


# --- looking ------------------------------------------------------------------------------------------------


def test_check_lists_where_each_outcome_leads(capsys):
    code, out, err = run(capsys, "check", FACTORY)
    assert (code, err) == (0, "")
    flat = [" ".join(line.split()) for line in out.splitlines()]
    assert "review output.verdict is 'approved' test" in flat
    assert "output.verdict is 'changes_requested' develop" in flat
    assert "limit reached: review_cycle ask_person" in flat
    assert (
        flat[-1] == "factory: 11 steps, every cycle bounded, every step reachable"
        or "steps, every cycle" in flat[-1]
    )
    assert "\x1b" not in out


def test_draw_prints_mermaid_and_nothing_else(capsys):
    code, out, err = run(capsys, "draw", FACTORY)
    assert (code, err) == (0, "")
    assert out.startswith("flowchart TD\n") and out.endswith("\n") and not out.endswith("\n\n")
    assert "  s_review -->|\"output.verdict == 'approved'\"| s_test" in out.splitlines()


@pytest.mark.parametrize("command", ["check", "draw", "run"])
def test_a_file_that_is_wrong_is_refused_with_every_place(capsys, here, command):
    code, out, err = run(capsys, command, "broken.yaml")
    assert (code, out) == (2, "")
    assert err == "loopkit: broken.yaml:4:25: unknown field 'gto'\n" or "broken.yaml:4:" in err
    (here / "broken.yaml").write_text(
        "flow: f\nsteps:\n  - {id: a, code: f, goto: b}\n  - {id: c, code: f, goto: d}\n"
    )
    code, out, err = run(capsys, command, "broken.yaml")
    assert [line.strip().split(" ")[-7:] != [] for line in err.splitlines()] == [True, True]
    assert err.startswith("loopkit: broken.yaml:3:22: goto: there is no step 'b'")
    assert "\n         broken.yaml:4:22: goto: there is no step 'd'" in err
    code, _, err = run(capsys, command, "none.yaml")
    assert (code, err) == (2, "loopkit: none.yaml:1:1: cannot be read: No such file or directory\n")
    assert not (here / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: action"),
        (["chekc"], "'chekc'"),
        (["run"], "the following arguments are required: file"),
        (["run", "asks.yaml", "--sed", "3"], "--sed"),
        (["run", "asks.yaml", "--seed", "x"], "'x'"),
        (["fork", "runs/a/b", "c"], "required: --at"),
    ],
)
def test_a_command_that_is_wrong(capsys, here, arguments, said):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "usage: loopkit" in err and said in err


# --- running ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "code", "words"),
    [
        ("eventful", 0, ["done 21 steps, 14 model calls", "8 of 9 polls called no model", "supervisor on test: goto, refused: 'merge' is not in the recover list"]),
        ("stubborn_review", 1, ["failed 9 steps, 8 model calls", "loop review_cycle 3 3 1", "corrections cancelled 1"]),
    ],
)  # fmt: skip
def test_a_simulated_run_tells_each_step_and_the_counters(capsys, here, scenario, code, words):
    arguments = ["--model", "simulated:random", "--script", SCENARIOS / f"{scenario}.yaml", "--run", "r"]
    found, out, err = run(capsys, "run", FACTORY, *arguments)
    assert (found, err) == (code, "")
    flat = " ".join(out.split())
    for said in ("simulated: nothing is executed", "runs/factory/r", *words):
        assert said in flat
    assert Store(here / "runs" / "factory").run("r").status == "finished"
    # Once more over the record: nothing is new.
    log = here / "runs" / "factory" / "r.jsonl"
    before = log.read_bytes()
    found, out, _ = run(capsys, "resume", "runs/factory/r")
    assert (found, log.read_bytes()) == (code, before)
    assert all(said in " ".join(out.split()) for said in words[:1])


def test_a_run_asks_is_answered_and_is_done(capsys, here):
    code, out, err = run(capsys, "run", "asks.yaml", "--set", "topic=cats: and [dogs]", "--run", "r")
    assert (code, err) == (3, "")
    assert "Ship [about cats: and [dogs]\n]?" in out
    line = "answer with: loopkit flow answer runs/asks/r decision=yes|no why=… stars=…"
    assert out.rstrip().endswith(line)
    for name in ("runs/asks/r", "runs/asks/r.jsonl"):
        code, out, err = run(capsys, "answer", name)
        assert (code, err) == (3, "") and "Ship [about cats" in out and line in out
    code, out, _ = run(capsys, "resume", "runs/asks/r")
    assert code == 3 and line in out
    code, out, _ = run(capsys, "answer", "runs/asks/r", "decision=no", "why=not: now")
    assert code == 3
    code, out, _ = run(capsys, "answer", "runs/asks/r", "decision=yes", "why=true", "stars=3")
    assert code == 0 and "done  4 steps" in out
    answers = Store(here / "runs" / "asks").run("r").all("answer")
    assert [event["answer"] for event in answers] == [
        {"decision": "no", "why": "not: now", "stars": None}, {"decision": "yes", "why": "true", "stars": 3},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (["decision=maybe"], "ask: decision: Input should be 'yes' or 'no'"),
        (["stars=3"], "ask: decision: Field required"),
        (["decision=yes", "stars=many"], "ask: stars: Input should be a valid integer"),
        (["decision=yes", "stars=[1"], "'[1' is not YAML"),
        (["decision=yes", "colour=red"], "ask: colour: Extra inputs"),
        (["yes"], "expected name=value, got 'yes'"),
        (["=yes"], "expected name=value"),
    ],
)
def test_an_answer_that_is_wrong_is_refused_and_the_run_still_waits(capsys, here, fields, said):
    run(capsys, "run", "asks.yaml", "--run", "r")
    code, _, err = run(capsys, "answer", "runs/asks/r", *fields)
    assert code == 2
    assert err.startswith("loopkit: ") and said in err
    record = Store(here / "runs" / "asks").run("r")
    assert (record.status, record.all("answer")) == ("waiting", [])
    assert run(capsys, "answer", "runs/asks/r", "decision=yes")[0] == 0
    for fields in ([], ["decision=yes"]):
        code, _, err = run(capsys, "answer", "runs/asks/r", *fields)
        assert code == 2 and ("asks nobody anything (it is finished)" in err or "waits for no answer" in err)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "tpoic=x"], "no parameter tpoic; there are topic, count"),
        (["--set", "topic"], "expected name=value, got 'topic'"),
        (["--set", "count=[1"], "'count=[1': '[1' is not YAML"),
        (["--model", "nobody"], "unknown model 'nobody'"),
        (["--model", "simulated:nobody"], "unknown model 'simulated:nobody'"),
        (["--script", "asks.yaml"], "--script goes with --model simulated:"),
        (["--model", "simulated:random", "--script", "none.yaml"], "none.yaml:1:1: cannot be read"),
        (
            ["--model", "simulated:random", "--script", "asks.yaml"],
            "asks.yaml:1:1: flow: a list of answers, got str",
        ),
        (["--model", "simulated:random", "--script", "script.yaml"], "the script answers for 'develop'"),
        (["--run", "a/b"], "run id 'a/b' must be"),
        (["--out", "asks.yaml"], "cannot write asks.yaml/"),
    ],
)
def test_settings_that_are_wrong_are_refused_before_there_is_a_run(capsys, here, arguments, said):
    (here / "script.yaml").write_text("develop: []\n")
    code, out, err = run(capsys, "run", "asks.yaml", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("loopkit: ") and said in err
    assert not list(here.rglob("*.jsonl"))


def test_a_function_that_is_not_there_is_refused_before_there_is_a_run(capsys, here):
    (here / "f.yaml").write_text("flow: f\nsteps: [{id: a, code: 'no.such:thing', goto: done}]")
    code, _, err = run(capsys, "run", "f.yaml", "--run", "r")
    assert code == 2 and "cannot find the function 'no.such:thing'" in err
    assert not (here / "runs").exists()
    assert run(capsys, "run", "f.yaml", "--run", "r", "--model", "simulated:random")[0] == 0


def test_parameters_are_yaml_unless_the_flow_has_text_there(capsys, here):
    assert (
        run(capsys, "run", "asks.yaml", "--set", "count=[1, x]", "--set", "topic=007", "--run", "r")[0] == 3
    )
    (settings,) = Store(here / "runs" / "asks").run("r").all("settings")
    assert settings["params"] == {"topic": "007", "count": [1, "x"]}


def test_a_name_is_taken_once_and_without_one_it_is_the_time(capsys, here):
    assert run(capsys, "run", "asks.yaml", "--run", "r")[0] == 3
    before = (here / "runs" / "asks" / "r.jsonl").read_bytes()
    code, _, err = run(capsys, "run", "asks.yaml", "--run", "r")
    assert code == 2 and "run 'r' exists already" in err
    assert (here / "runs" / "asks" / "r.jsonl").read_bytes() == before
    assert run(capsys, "run", "asks.yaml", "--out", "elsewhere")[0] == 3
    (found,) = (here / "elsewhere").glob("*.jsonl")
    assert re.fullmatch(r"\d{8}-\d{6}", found.stem)


@pytest.mark.parametrize("command", [["resume"], ["answer"], ["answer", "a=b"], ["fork", "new", "--at", "0"]])
def test_a_run_that_is_not_there_or_no_flows_or_was_changed_is_refused(capsys, here, command):
    verb, *more = command
    code, _, err = run(capsys, verb, "runs/asks/none", *more)
    assert code == 2 and re.match(r"loopkit: no run 'none' in runs/asks; there are 0", err)
    Store(here / "runs" / "other").create("r").close()
    code, _, err = run(capsys, verb, "runs/other/r", *more)
    assert code == 2 and ("not begun by a flow" in err or "asks nobody anything" in err)
    run(capsys, "run", "asks.yaml", "--run", "r")
    path = here / "runs" / "asks" / "r.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"topic":"tides"', b'"topic":"cats!"'))
    code, _, err = run(capsys, verb, "runs/asks/r", *more)
    assert code == 2 and "runs/asks/r.jsonl, line 2" in err and "was changed" in err


def test_a_run_that_somebody_else_writes_is_left_alone(capsys, here):
    run(capsys, "run", "asks.yaml", "--run", "r")
    with Store(here / "runs" / "asks").resume("r"):
        for command in (["resume", "runs/asks/r"], ["answer", "runs/asks/r", "decision=yes"]):
            code, _, err = run(capsys, *command)
            assert code == 2 and "is being written by" in err


def test_a_changed_file_does_not_change_a_run_that_was_begun(capsys, here):
    run(capsys, "run", "asks.yaml", "--run", "r")
    (here / "asks.yaml").write_text("flow: [")
    assert run(capsys, "answer", "runs/asks/r", "decision=yes")[0] == 0


# --- forking ------------------------------------------------------------------------------------------------


def test_a_fork_keeps_the_first_steps_and_the_settings_that_are_not_given_anew(capsys, here):
    arguments = ["--model", "simulated:random", "--script", SCENARIOS / "eventful.yaml"]
    _, whole, _ = run(capsys, "run", FACTORY, *arguments, "--run", "r", "--set", "task=x")
    _, out, _ = run(capsys, "fork", "runs/factory/r", "same", "--at", "5")
    assert "simulated: nothing is executed" in out
    assert out.splitlines()[-2:] == whole.splitlines()[-2:]  # status, steps, calls, reason
    code, out, _ = run(
        capsys, "fork", "runs/factory/r", "other", "--at", "5", "--model", "simulated:random", "--seed", "8"
    )
    assert code in (0, 1) and "simulated: nothing is executed" in out
    store = Store(here / "runs" / "factory")
    parent, same, other = (store.run(name) for name in ("r", "same", "other"))
    steps = [[event["step"] for event in one.all("iteration")] for one in (parent, same, other)]
    assert steps[0] == steps[1] and steps[0][:5] == steps[2][:5]
    assert same.first("settings")["params"]["task"] == "x"
    assert same.first("settings")["simulation"] == parent.first("settings")["simulation"]
    assert other.first("settings")["simulation"] == {"policy": "random", "seed": 8, "script": {}}
    assert same.first("start")["parent"]["run"] == "r"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["new", "--at", "9"], "cannot fork it at 9"),
        (["new", "--at", "-1"], "cannot fork it at -1"),
        (["r", "--at", "0"], "run 'r' exists already"),
        (["new", "--at", "0", "--set", "x=1"], "no parameter x"),
        (["new", "--at", "0", "--model", "nobody"], "unknown model 'nobody'"),
        (["a b", "--at", "0"], "run id 'a b'"),
    ],
)
def test_a_fork_that_is_wrong_leaves_nothing_behind(capsys, here, arguments, said):
    run(capsys, "run", "asks.yaml", "--run", "r")
    code, _, err = run(capsys, "fork", "runs/asks/r", *arguments)
    assert code == 2 and said in err
    assert Store(here / "runs" / "asks").ids() == ["r"]
    assert run(capsys, "fork", "runs/asks/r", "new", "--at", "1", "--set", "topic=new")[0] == 3


# --- interrupted --------------------------------------------------------------------------------------------


def heed_ctrl_c():
    """What runs in the background of a script ignores Ctrl-C, and so do its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def started(here, *arguments):
    """A process in its folder, once its `sleep` step has begun."""
    program = Path(sys.executable).with_name("loopkit")
    process = subprocess.Popen(
        [program, "flow", *arguments],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_ctrl_c,
    )
    deadline = time.monotonic() + 60
    while not (here / "pids").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on_and_does(here, sign):
    process = started(here, "run", "sleeps.yaml", "--run", "r")
    process.send_signal(sign)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.endswith("loopkit: interrupted; `loopkit flow resume runs/sleeps/r` goes on from here\n")
    assert "Traceback" not in out + err
    (pid,) = map(int, (here / "pids").read_text().split())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)  # what it ran is gone
    assert Store(here / "runs" / "sleeps").run("r").status == "unfinished"
    (here / "awake").touch()
    ended = started(here, "resume", "runs/sleeps/r")
    out, err = ended.communicate(timeout=30)
    assert (ended.returncode, err) == (0, "")
    assert "1 steps on record" in out and "done  2 steps" in out
    assert len((here / "pids").read_text().split()) == 2


def test_the_command_works_as_it_is_installed(here):
    program = shutil.which("loopkit", path=Path(sys.executable).parent)
    done = subprocess.run([program, "flow", "draw", FACTORY], capture_output=True, text=True, cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("flowchart TD")
    done = subprocess.run([program, "flow", "check", "broken.yaml"], capture_output=True, text=True, cwd=here)
    assert (done.returncode, done.stdout) == (2, "") and "broken.yaml:4:" in done.stderr


def test_functions_stand_beside_the_file_and_are_found_again_from_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "my_checks_beside.py").write_text("def length(context): return {'ok': True}\n")
    file = tmp_path / "there" / "f.yaml"
    text = "flow: f\nsteps:\n  - {id: a, code: 'my_checks_beside:length', goto: b}\n  - {id: b, human: 'Well?', goto: done}\n"
    file.write_text(text)
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "loopkit", "flow"]

    def run(*args, folder):
        return subprocess.run([*command, *args], cwd=folder, capture_output=True, text=True)

    assert run("check", str(file), folder=tmp_path).returncode == 0
    assert run("run", str(file), "--out", "runs", "--run", "r", folder=tmp_path).returncode == 3
    done = run("answer", str(tmp_path / "runs" / "r"), "answer=yes", folder="/")
    assert done.returncode == 0, done.stderr
    file.write_text(text.replace(":length", ":lenght"))
    wrong = run("check", str(file), folder=tmp_path)
    assert wrong.returncode == 2 and "cannot find the function 'my_checks_beside:lenght'" in wrong.stderr


def test_a_simulation_does_not_become_real(tmp_path, capsys):
    file = tmp_path / "f.yaml"
    file.write_text("flow: f\nsteps:\n  - {id: a, human: 'Well?', goto: done}\n")
    out = str(tmp_path / "runs")
    assert (
        cli.main(["flow", "run", str(file), "--model", "simulated:random", "--out", out, "--run", "r"]) == 0
    )
    assert cli.main(["flow", "fork", f"{out}/r", "s", "--at", "1", "--model", "embedded"]) == 2
    assert "r is simulated" in capsys.readouterr().err
