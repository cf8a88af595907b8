"""What the factory's code steps do: a suite, a push, and a CI that takes a moment and runs on its own.

The code that the model wrote runs in `loopkit.sandbox`, never in this process.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from loopkit.flow import Context
from loopkit.sandbox import run_python

CI_SECONDS = 3


def code_of(context: Context) -> str:
    """The code as it stands: the last draft, or its last repair. A repair of an earlier draft is out of date."""
    draft, repair, pushed = (context.steps[name] for name in ("develop", "repair", "push"))
    before = pushed["output"]
    repaired = before and before["draft"] == draft["visits"] and repair["visits"] > before["repairs"]
    return (repair if repaired else draft)["output"]["code"]


async def run_suite(context: Context) -> dict[str, Any]:
    """The code, the test the model wrote, and the check of the task, together."""
    program = "\n".join(
        [code_of(context), context.steps["test"]["output"]["assertion"], context.params["check"]]
    )
    run = await run_python(program, timeout=10)
    return {"passed": run.ended == "ok", "log": run.message[:400]}


def push(context: Context) -> dict[str, Any]:
    """Put the code into the build folder and start the CI, a process that outlives this one."""
    code, before = code_of(context), context.steps["push"]["output"]
    draft, repairs = context.steps["develop"]["visits"], context.steps["repair"]["visits"]
    if before and before["draft"] == draft:
        repairs = before["repairs"]
    build = Path(context.params["folder"]) / "build"
    build.mkdir(parents=True, exist_ok=True)
    (build / "result.json").unlink(missing_ok=True)
    (build / "solution.py").write_text(code, encoding="utf-8")
    (build / "check.py").write_text(context.params["check"], encoding="utf-8")
    subprocess.Popen(
        [sys.executable, "-m", "experiments.flows.ci", str(build), str(CI_SECONDS)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    return {"build": str(build), "code": code, "draft": draft, "repairs": repairs}


def ci_status(context: Context) -> dict[str, Any]:
    """A probe: `pending` until the CI has written its result, then `done` or, if it is red, `news`."""
    result = Path(context.params["folder"]) / "build" / "result.json"
    if not result.exists():
        return {"state": "pending"}
    found = json.loads(result.read_text(encoding="utf-8"))
    return {"state": "done" if found["passed"] else "news", "log": found["log"]}
