"""What else the records of a batch say: which libraries the programs use, what went wrong with them, what it cost.

python -m experiments.mathematics.measures runs/mathematics
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopkit.store import Run, Store

if TYPE_CHECKING:
    import pandas as pd

LIBRARIES = ("sympy", "numpy", "scipy", "constraint", "itertools", "math", "fractions")
_NO_PROGRAM = ("empty", "truncated", "malformed")
_NO_RESULT = ("crashed", "timeout", "no answer")


def libraries(program: str) -> set[str]:
    """The packages that a program imports, by their first name. None of a text that is no Python."""
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def measure(runs: Iterable[Run]) -> pd.DataFrame:
    """One row per trial that has ended, the settled attempt of each.

    Columns: arm, model, split, item, family, result; `programs` that were run; of the answers asked for, how many were
    `empty`, `truncated`, `malformed` (none of these is run; of several samples that were all of no use, the first counts);
    of the programs, how many `crashed`, ended in a `timeout`
    or gave `no answer`; `duplicate` programs (the very text of an earlier one of the trial); one column a library with
    how many programs import it; `calls`, `tokens`, `seconds`, and `cost` in dollars (0 where the price is not known).
    """
    import pandas as pd

    rows: dict[str, dict[str, Any]] = {}
    for run in sorted(runs, key=lambda run: run.events[0]["time"]):
        trial = run.first("trial")
        if trial and (run.params["trial"] not in rows or trial["result"] != "error"):
            rows[run.params["trial"]] = _row(run, trial)
    return pd.DataFrame(list(rows.values()))


def _row(run: Run, trial: dict[str, Any]) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    used: Counter[str] = Counter()
    before: set[str] = set()
    writes_code = run.params["arm"] != "reasoning"
    for step in run.all("step"):
        error = step.get("error")
        if error:
            counts[error["kind"]] += 1
        elif step["phase"] == "propose":
            counts.update(step["value"]["lost"])
            if writes_code:
                for program in step["value"]["texts"]:
                    counts["programs"] += 1
                    counts["duplicate"] += program.strip() in before
                    before.add(program.strip())
                    used.update(libraries(program) & set(LIBRARIES))
        elif step["phase"] == "execute":
            counts.update(why.partition(":")[0] for why in step["value"]["failed"])
    usage = run.usage
    seconds = sum(turn["seconds"] for turn in run.all("iteration"))
    return (
        {name: run.params[name] for name in ("arm", "model", "split", "item")}
        | {"family": run.params["family"], "result": trial["result"]}
        | {name: counts[name] for name in ("programs", *_NO_PROGRAM, *_NO_RESULT, "duplicate")}
        | {name: used[name] for name in LIBRARIES}
        | {"calls": usage.calls, "tokens": usage.tokens, "seconds": seconds, "cost": usage.cost}
    )


def summary(trials: pd.DataFrame) -> pd.DataFrame:
    """One row per arm, model and split: how many were right, sums over its trials, seconds and tokens per trial.

    `low` and `high`: the 95 % interval of the share that was right, by resampling whole families (`by_family`).
    """
    trials = trials[trials["result"] != "error"]
    groups = trials.groupby(["arm", "model", "split"], sort=True)
    counted = ["programs", *_NO_PROGRAM, *_NO_RESULT, "duplicate", *LIBRARIES]
    table = groups[counted].sum()
    table.insert(0, "trials", groups.size())
    table.insert(1, "right", groups["result"].agg(lambda results: (results == "correct").mean().round(3)))
    intervals = [by_family(group) for _, group in groups]
    table.insert(2, "low", [low for low, _ in intervals])
    table.insert(3, "high", [high for _, high in intervals])
    for name in ("calls", "tokens", "seconds"):
        table[name] = groups[name].mean().round(1)
    table["cost"] = groups["cost"].sum()
    return table.reset_index()


def by_family(trials: pd.DataFrame) -> tuple[float | None, float | None]:
    """The 95 % interval of the share of right answers when whole families are drawn anew, with replacement.

    Problems of one family are not independent: whoever solves one is likely to solve the others. So this is what says how
    far the share would carry over to other families. Percentile bootstrap over clusters, 9,999 draws (Davison and Hinkley
    1997, section 3.8); (None, None) for fewer than two families.
    """
    from scipy.stats import bootstrap

    right = (trials["result"] == "correct").groupby(trials["family"])
    counts, sizes = right.sum().to_numpy(), right.size().to_numpy()
    if len(sizes) < 2:
        return None, None
    drawn = bootstrap(
        (counts, sizes),
        lambda counts, sizes, axis: counts.sum(axis) / sizes.sum(axis),
        paired=True,
        vectorized=True,
        method="percentile",
        rng=0,
    ).confidence_interval
    return round(float(drawn.low), 3), round(float(drawn.high), 3)


def main() -> None:
    """Print the summary of the batch in the folder that is named."""
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "records").is_dir():
        raise SystemExit(
            "usage: python -m experiments.mathematics.measures FOLDER   (of a batch, with its records/)"
        )
    trials = measure(Store(Path(sys.argv[1]) / "records").runs())
    if trials.empty:
        raise SystemExit(f"no trial has ended in {sys.argv[1]}")
    print(summary(trials).to_string(index=False))


if __name__ == "__main__":
    main()
