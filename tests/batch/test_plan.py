"""What a batch has to do, and why, told from a folder's records alone."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopkit.batch import Choice, SpecError, choose, expand, load_spec, plan
from loopkit.batch.plan import notebook_digest
from loopkit.batch.spec import Cell
from loopkit.store import RunLog, Store

FILE = Path(__file__).parents[2] / "experiments" / "knights" / "demo.yaml"
CELLS = [
    Cell(id=f"{arm}-{n}", params={"arm": arm, "seed": n}, keys=(f"{arm}{n}",))
    for arm in "ab"
    for n in range(5)
]


@pytest.fixture
def spec():
    return load_spec(FILE, ["arm=[clauses, reasoning]", "model=simulated:random", "count=2", "people=2"])


@pytest.fixture
def batch(spec, tmp_path):
    """A folder as a runner leaves it, and what the plan for it says."""

    class Batch:
        cells = expand(spec)

        def __init__(self):
            self.store = Store(tmp_path / "records")
            self.status = RunLog(tmp_path / "status.jsonl")

        def begin(self, cell):
            self.status.append("begin", cell=cell.id, attempt=1)

        def end(self, cell, status="done", notebook=None):
            self.begin(cell)
            notebook = notebook or notebook_digest(spec.notebook)
            self.status.append("cell", cell=cell.id, notebook=notebook, status=status, detail="")

        def record(self, key, result):
            with self.store.create(key, trial=key) as log:
                log.append("trial", result=result, kind=None, detail="")

        def reasons(self, **choice):
            self.status.sync()
            return {one.cell.id: one.reason for one in plan(self.cells, spec, tmp_path, **choice)}

    made = Batch()
    yield made
    made.status.close()


def test_a_fresh_folder_needs_everything_and_nothing_is_written(spec, tmp_path):
    cells = expand(spec)
    planned = plan(cells, spec, tmp_path / "nowhere")
    assert [(one.cell, one.reason) for one in planned] == [(cell, "never run") for cell in cells]
    assert [one.missing for one in planned] == [len(cell.keys) for cell in cells]
    assert not (tmp_path / "nowhere").exists()


def test_why_each_notebook_would_run(batch):
    first, second = batch.cells[:2]
    for cell in batch.cells:
        batch.end(cell)
        for key in cell.keys:
            batch.record(key, "correct")
    assert set(batch.reasons().values()) == {""}

    batch.begin(first)
    assert batch.reasons() == {first.id: "was interrupted", second.id: ""}
    batch.end(first, "timeout")
    batch.end(second, notebook="another")
    assert batch.reasons() == {
        first.id: "ended as timeout last time",
        second.id: "the notebook has changed",
    }
    assert batch.reasons(failed=True) == {first.id: "ended as timeout last time"}
    batch.end(first)
    batch.end(second)
    assert set(batch.reasons().values()) == {""}


def test_trials_that_are_missing_or_could_not_run_are_counted(batch):
    first, second = batch.cells[:2]
    for cell in batch.cells:
        batch.end(cell)
    batch.record(first.keys[0], "wrong")
    batch.record(first.keys[1], "error")
    assert batch.reasons() == {
        first.id: "1 of 2 trials could not run",
        second.id: "code or data have changed; 2 of 2 trials have no result",
    }
    assert list(batch.reasons(failed=True)) == [first.id]


@given(st.integers(1, 12), st.data())
def test_shards_are_disjoint_and_all_there_is(parts, data):
    count = data.draw(st.integers(parts, 40))
    cells = [replace(CELLS[0], id=f"c-{n}") for n in range(count)]
    shards = [choose(cells, Choice(shard=(part, parts))) for part in range(1, parts + 1)]
    assert sorted(cell.id for shard in shards for cell in shard) == sorted(cell.id for cell in cells)
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


@pytest.mark.parametrize(
    ("only", "names"),
    [
        ((), [cell.id for cell in CELLS]),
        (("a-*",), [f"a-{n}" for n in range(5)]),
        (("seed=3",), ["a-3", "b-3"]),
        (("a-1", "b-4"), ["a-1", "b-4"]),
    ],
)
def test_only_some(only, names):
    assert [cell.id for cell in choose(CELLS, Choice(only=only))] == names


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (Choice(only=("c-*",)), r"no notebook is 'c-\*'; there are a-0, a-1, .* 2 more"),
        (Choice(shard=(0, 3)), "shard 0/3"),
        (Choice(shard=(4, 3)), "shard 4/3"),
        (Choice(only=("a-1",), shard=(2, 2)), "shard 2/2 of 1 notebooks is empty"),
    ],
)
def test_a_choice_of_nothing_is_refused(choice, said):
    with pytest.raises(SpecError, match=said):
        choose(CELLS, choice)
