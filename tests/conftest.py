"""What several rooms of tests need."""

import hashlib
import json
import os

import pytest

from loopkit.batch.spec import BatchSpec, Cell
from loopkit.batch.status import opening, read_batch, record_summary
from loopkit.batch.summary import summarise, trial_rows
from loopkit.store import RunLog, Store

# Two workers on two cores: threads of one model would wait for those of the other's, turning round and round.
os.environ.setdefault("LOOPKIT_THREADS", "1")
RESULTS = {
    "c": ("correct", None),
    "w": ("wrong", None),
    "f": ("failed", "empty"),
    "e": ("error", "ConnectError"),
}


@pytest.fixture
def make_batch(monkeypatch):
    """Writes the folder of a batch as the runner does, without a notebook: `make_batch(folder, {"arm": "cwfe"})`.

    A letter is a trial, on item 0, 1, 2, …: correct, wrong, failed, error, `-` for interrupted, `.` for never begun.
    Again with more letters, it goes on. With `ends=False` it is begun only; `problems` keep it from being complete.
    """
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)

    def make(folder, trials, *, claims=(), name="small", model="m", ends=True, problems=(), **spec):
        spec = BatchSpec(
            experiment="made", notebook="n.ipynb", question="Why?", grid=[{}], claims=list(claims), **spec
        )
        store = Store(folder / "records")
        cells = []
        for arm, letters in trials.items():
            keys = tuple(key_of(arm, model, item) for item in range(len(letters)))
            cells.append(Cell(id=f"{arm}-{model}", params={"arm": arm, "model": model}, keys=keys))
        with RunLog(folder / "status.jsonl") as status:
            command = f"loopkit batch {name}.yaml"
            status.open("batch", **opening(spec, cells, name=name, command=command))
            for arm, letters in trials.items():
                for item, letter in enumerate(letters):
                    play(store, arm, model, item, letter)
            if ends:
                for cell in cells:
                    status.append("cell", cell=cell.id, params=cell.params, status="done", detail="")
                rows = trial_rows(store, [key for cell in cells for key in cell.keys])
                provenance = {"command": command, "finished": "2026-11-30T12:00:00+00:00", "loopkit": "0.1.0"}
                declared = read_batch(folder).declared
                summary = summarise(spec, rows, name=name, provenance=provenance, declared=declared)
                summary |= {"problems": list(problems)}
                (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
                record_summary(status, summary)
        return store

    return make


def play(store, arm, model, item, letter):
    """Record one trial, unless it is on record."""
    key = key_of(arm, model, item)
    if letter == "." or store.path(key).exists():
        return
    params = {"trial": key, "code": "c0de", "experiment": "made", "arm": arm, "model": model}
    with store.create(key, **params, item=f"item-{item}", seed=1, size=item % 2) as log:
        usage = {"calls": 1, "input_tokens": 10, "output_tokens": item}
        log.append("iteration", iteration=1, decision="keep", score=0.5, usage=usage, seconds=0.25)
        if letter != "-":
            result, kind = RESULTS[letter]
            log.append("stop", gate="MaxIterations", reason="enough", best=1)
            log.append("trial", result=result, kind=kind, detail=f"detail of {item}")


def key_of(arm, model, item):
    return hashlib.sha256(f"{arm} {model} {item}".encode()).hexdigest()[:20]
