"""Batch files: what is wrong with one is said before anything runs, all of it, and by name."""

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopkit.batch import BatchSpec, SpecError, load_spec
from loopkit.batch.spec import expand

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks" / "02_constraint_solving.ipynb"
DEMO = (ROOT / "experiments" / "knights" / "demo.yaml").read_text(encoding="utf-8")


@pytest.fixture(autouse=True, scope="module")
def weights(tmp_path_factory):
    """Something that passes for the weights, which nothing here loads."""
    path = tmp_path_factory.mktemp("weights") / "tiny.gguf"
    path.write_bytes(b"GGUF....")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOPKIT_MODEL_PATH", str(path))
        yield


def batch(**changes):
    """A batch file as data; None leaves a field out."""
    data = {
        "experiment": "knights",
        "notebook": str(NOTEBOOK),
        "question": "Who is what?",
        "fixed": {"people": 2, "seed": 7},
        "grid": [{"arm": ["clauses", "reasoning"], "model": "simulated:random", "count": 2}],
    } | changes
    return {key: value for key, value in data.items() if value is not None}


@pytest.fixture
def cells(tmp_path):
    """Reads and expands a batch given as data or as text."""

    def read(data, *overrides):
        path = tmp_path / "batch.yaml"
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data), encoding="utf-8")
        return expand(load_spec(path, overrides))

    return read


def claim(**changes):
    return {"id": "first", "says": "It works.", "arm": "clauses"} | changes


def test_a_good_batch_multiplies_lists_and_keeps_the_rest(cells):
    found = cells(batch())
    assert [cell.params["arm"] for cell in found] == ["clauses", "reasoning"]
    for cell in found:
        assert cell.params["people"] == "2"
        assert cell.params["seed"] == 7
        assert cell.params["max_iterations"] == 3, "the experiment's own default"
        assert len(set(cell.keys)) == 2, "one trial a puzzle"
    assert not set(found[0].keys) & set(found[1].keys)


def test_committed_batch_files_are_good():
    files = sorted((ROOT / "experiments").glob("*/*.yaml"))
    batches = [file for file in files if "\ngrid:" in file.read_text(encoding="utf-8")]
    assert batches
    for file in batches:
        assert expand(load_spec(file)), file.name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("grid: [arm", "not YAML"),
        ("\tgrid: 1", "not YAML"),
        ("fixed: !!python/object/apply:os.getpid []", "not YAML.*python/object"),
        ("", "mapping.*NoneType"),
        ("- knights", "mapping.*list"),
        ("just words", "mapping.*str"),
        ("fixed: {seed: 2026-13-45}", "not YAML.*month"),
        ("fixed: {seed: " + "1" * 5000 + "}", "not YAML.*digits"),
        ("[" * 3000, "not YAML"),
    ],
    ids=lambda text: text[:30],
)
def test_text_that_is_no_batch(cells, text, said):
    with pytest.raises(SpecError, match=f"(?s)batch.yaml.*{said}"):
        cells(text)


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "batch.yaml").write_bytes(b"question: \xff\xfe")
    with pytest.raises(SpecError, match="batch.yaml is not YAML"):
        load_spec(tmp_path / "batch.yaml")


@pytest.mark.parametrize(
    ("make", "said"), [(lambda path: None, "No such file"), (Path.mkdir, "Is a directory")]
)
def test_a_path_that_holds_no_file(tmp_path, make, said):
    make(tmp_path / "batch.yaml")
    with pytest.raises(SpecError, match=f"batch.yaml: {said}"):
        load_spec(tmp_path / "batch.yaml")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"quesion": "?"}, "quesion"),
        ({"question": None}, "question"),
        ({"experiment": None}, "experiment"),
        ({"notebook": None}, "notebook"),
        ({"grid": None}, "grid"),
        ({"grid": []}, "grid"),
        ({"grid": {"arm": "clauses"}}, "grid"),
        ({"grid": ["clauses"]}, "grid.0.*'clauses'"),
        ({"fixed": ["seed"]}, "fixed.*'seed'"),
        ({"timeout": 0}, "timeout.*got 0"),
        ({"timeout": float("nan")}, "timeout.*got nan"),
        ({"timeout": "soon"}, "timeout.*'soon'"),
        ({"timeout": 2.5}, "timeout.*got 2.5"),
        ({"timeout": float("inf")}, "timeout.*got inf"),
        ({"notebook": "a\0b"}, r"batch.yaml.*notebook 'a\\x00b'"),
        ({"grid": [{"arm": [], "count": 1}]}, "arm is an empty list"),
        ({"group_by": ["peple"]}, "group_by.*peple"),
        (
            {"claims": [claim()]},
            "'first' must have exactly one of over, under, same_as, at_least, at_most, equals",
        ),
        ({"claims": [claim(at_least=0.5, at_most=0.9)]}, "'first' must have exactly one"),
        ({"claims": [claim(over="reasoning", at_most=0.9)]}, "'first' must have exactly one"),
        ({"claims": [claim(at_least=90)]}, "claims.0.at_least.*got 90"),
        ({"claims": [claim(at_most=float("nan"))]}, "claims.0.at_most.*got nan"),
        ({"claims": [claim(over="reasoning", p_below=0)]}, "claims.0.p_below.*got 0"),
        ({"claims": [claim(at_lest=0.5)]}, "claims.0.at_lest"),
        ({"claims": [claim(at_least=0.5), claim(at_most=0.5)]}, "claims.*found twice: first"),
        (
            {"claims": [claim(at_least=0.5, over_where={"model": "m"})]},
            "'first' has over_where but none of over, under, same_as",
        ),
        ({"claims": [claim(at_least=0.5, where={"peple": 3})]}, "claims.*peple"),
        ({"claims": [claim(over="reasoning", over_where={"modle": "m"})]}, "claims.*modle"),
        ({"claims": [{"id": "first", "at_least": 0.5}]}, "claims.0.says.*claims.0.arm"),
    ],
    ids=str,
)
def test_a_field_that_is_wrong(cells, changes, said):
    with pytest.raises(SpecError, match=f"(?s){said}"):
        cells(batch(**changes))


@pytest.mark.parametrize("name", ["knigths", "", "..knights", "knights/../knights", "knights.arms"])
def test_an_experiment_that_is_none(cells, name):
    with pytest.raises(SpecError) as caught:
        cells(batch(experiment=name))
    assert (repr(name) if name != "knights.arms" else "experiments.knights.arms lacks") in str(caught.value)


def notebook(path, *sources, tag=True):
    made = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    )
    made.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    if tag:
        made.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(made, path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "cannot read the notebook .*own.ipynb.*No such file"),
        (lambda path: path.write_text("nobody: home"), "cannot read the notebook .*own.ipynb"),
        (lambda path: path.write_text("[1, 2]"), "cannot read the notebook .*own.ipynb"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "cannot read the notebook .*own.ipynb"),
        (lambda path: notebook(path, "arm = 1", tag=False), "own.ipynb has no cell tagged 'parameters'"),
        (lambda path: notebook(path, "# nothing yet"), "own.ipynb has no cell tagged 'parameters'"),
        (lambda path: notebook(path, "arm = 1\nspeed = 2"), "own.ipynb has a parameter 'speed'"),
    ],
    ids=["missing", "not JSON", "JSON but no notebook", "not text", "untagged", "empty cell", "alien name"],
)
def test_a_notebook_that_will_not_do(cells, tmp_path, make, said):
    make(tmp_path / "own.ipynb")
    with pytest.raises(SpecError, match=said):
        cells(batch(notebook="own.ipynb"))


def test_the_notebook_is_found_beside_the_batch_file(cells, tmp_path):
    notebook(tmp_path / "own.ipynb", "arm = 1\nmodel = 2\ncount = 3\npeople = 4\nseed = 5")
    assert len(cells(batch(notebook="own.ipynb"))) == 2


OWN = """\
from pydantic import BaseModel
from loopkit.batch import Trial
class Params(BaseModel):
    size: int
def trials(params):
    return [Trial(params=params.model_dump(), code="1", run=None, grade=None)]
"""


@pytest.fixture
def own(tmp_path):
    """A folder of one's own, on nobody's path: writes an experiment into it, and a notebook beside."""

    def write(name):
        package = tmp_path / "experiments" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(OWN)
        (tmp_path / "notebooks").mkdir()
        notebook(tmp_path / "notebooks" / "own.ipynb", "size = 1")
        grid = [{"size": [1, 2]}]
        return {"experiment": name, "notebook": "notebooks/own.ipynb", "question": "?", "grid": grid}

    return write


def test_an_experiment_beside_the_notebook_is_found(cells, own):
    assert [cell.params for cell in cells(own("found_beside"))] == [{"size": 1}, {"size": 2}]
    assert len(cells(batch())) == 2, "and so are ours"


def test_of_two_experiments_of_one_name_neither_is_taken(cells, own, tmp_path):
    with pytest.raises(SpecError, match=f"experiments.knights is .*: give {tmp_path}.*knights another name"):
        cells(own("knights"))


# Each is wrong in the grid, among the fixed values and as an override alike.
BAD_VALUES = [
    ("cuont", 5, "unknown parameter 'cuont'.*count"),
    ("out", "elsewhere", "unknown parameter 'out'"),
    ("count", "many", "count.*'many'"),
    ("count", 0, "count.*got 0"),
    ("count", 2.5, "count.*2.5"),
    ("count", "(1, 2)", r"count.*'\(1, 2\)'"),
    ("count", float("nan"), "count.*nan"),
    ("count", float("inf"), "count.*inf"),
    ("count", None, "count.*None"),
    ("seed", -1, "seed.*-1"),
    ("people", "(2, 5)", r"people.*'\(2, 5\)'"),
    ("people", 9, "people.*9"),
    ("people", "5-2", "people.*'5-2'.*empty range"),
    ("arm", "claused", "arm.*'claused'"),
    ("arm", {"clauses": 1}, "arm.*{'clauses': 1}"),
    ("perturb", "none of it", "perturb.*'none of it'"),
    ("model", "embeded", "unknown model 'embeded'.*simulated:random"),
    ("model", "simulated:genius", "unknown model 'simulated:genius'"),
    ("data", "no/such/file.jsonl", "no such file.*file.jsonl"),
]


@pytest.mark.parametrize(("name", "value", "said"), BAD_VALUES, ids=str)
@pytest.mark.parametrize("place", ["grid", "fixed", "--set"])
def test_a_parameter_that_is_wrong(cells, place, name, value, said):
    data, overrides = batch(), []
    for block in (data["fixed"], *data["grid"]):
        block.pop(name, None)
    match place:
        case "grid":
            data["grid"][0][name] = [value]
        case "fixed":
            data["fixed"][name] = value
        case "--set":
            overrides = [
                f"{name}={yaml.safe_dump(value, default_flow_style=True).removesuffix('...' + chr(10))}"
            ]
    with pytest.raises(SpecError, match=f"(?s){said}"):
        cells(data, *overrides)


def test_everything_that_is_wrong_is_said_at_once(cells):
    data = batch(grid=[{"arm": "claused"}, {"cuont": 1}, {"count": -4}])
    with pytest.raises(SpecError) as caught:
        cells(data)
    assert all(word in str(caught.value) for word in ("'claused'", "'cuont'", "-4"))


@pytest.mark.parametrize(
    "text",
    ["count", "=5", "a b=5", "count=[1", "count={[1]: 2}", "seed=2026-13-45", "seed=" + "1" * 5000, "seed=" + "[" * 3000],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_an_override_that_is_wrong(cells, text):
    with pytest.raises(SpecError) as caught:
        cells(batch(), text)
    assert repr(text) in str(caught.value)


def test_an_override_that_is_an_empty_list_is_named(cells):
    with pytest.raises(SpecError, match="arm is an empty list"):
        cells(batch(), "arm=[]")


def test_bad_lines_of_a_data_file_are_numbered(cells, tmp_path):
    good = {"quiz": "Ava the knight said: hi.", "names": ["Ava"], "solution": [True]}
    lines = [json.dumps(good), "", "not json", json.dumps(good | {"solution": [1]})]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    with pytest.raises(SpecError, match=r"(?s)own.jsonl: 2 bad.*line 3: .*line 4: solution .*\[1\]"):
        cells(batch(), f"data={tmp_path / 'own.jsonl'}")
    (tmp_path / "own.jsonl").write_text("")
    with pytest.raises(SpecError, match="own.jsonl: no puzzles"):
        cells(batch(), f"data={tmp_path / 'own.jsonl'}")


def test_overrides_replace_axes_of_every_block_and_fixed_values(cells):
    data = batch(grid=[{"arm": ["clauses", "reasoning"], "count": 2}, {"arm": "program", "count": [3, 4]}])
    found = cells(data, "arm=sentence", "seed=11", "count=1", "model=simulated:oracle", "people=3")
    (only,) = found
    said = {name: only.params[name] for name in ("arm", "seed", "count", "model", "people")}
    assert said == {"arm": "sentence", "seed": 11, "count": 1, "model": "simulated:oracle", "people": "3"}
    assert len(only.keys) == 1


def test_an_override_that_is_a_list_is_an_axis(cells):
    found = cells(batch(), "count=[1, 3]")
    assert [(cell.params["arm"], cell.params["count"]) for cell in found] == [
        ("clauses", 1), ("clauses", 3), ("reasoning", 1), ("reasoning", 3),
    ]  # fmt: skip


def test_the_last_of_two_overrides_counts(cells):
    assert {cell.params["count"] for cell in cells(batch(), "count=5", "count=1")} == {1}


def test_cells_that_come_out_alike_are_one(cells):
    block = {"arm": "clauses", "model": "simulated:random", "count": 1}
    spelled_otherwise = block | {"people": "2", "max_iterations": 3}
    assert len(cells(batch(grid=[block, block, spelled_otherwise]))) == 1
    assert len(cells(batch(grid=[block, block | {"count": 2}]))) == 2


def test_ids_and_keys_are_the_same_in_any_process(cells, tmp_path):
    found = [[cell.id, list(cell.keys)] for cell in cells(batch())]
    code = (
        "import json, sys; from loopkit.batch.spec import expand, load_spec; "
        "print(json.dumps([[cell.id, cell.keys] for cell in expand(load_spec(sys.argv[1]))]))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "batch.yaml")],
        capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    assert json.loads(other.stdout) == found
    assert len({id for id, _ in found}) == 2


SNIPPETS = [
    *"[]{}:,-\"'|>&*!%@?# \n\t\0\x07é☃\u2028",
    *("\n  ", "\n- ", ": ", "{}", "[]", "null", "~", "yes", ".nan", "-.inf", "1e9", "0x_", "12", "-1", "''"),
    *("arm: ", "grid:", "claims:", "fixed: ", "&a ", "*a", "<<: ", "!!set ", "!!binary ", "---\n", "...\n"),
    *("unknown: 1\n", "[clauses, reasoning]", "at_most: 0.5", "over: ", "simulated:oracle", "(1, 2)"),
]
EDIT = st.tuples(
    st.integers(0, len(DEMO)), st.integers(0, 12), st.one_of(st.just(""), st.sampled_from(SNIPPETS))
)


@pytest.mark.filterwarnings("ignore:the file is not specified", "ignore:The specified file")
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(edits=st.lists(EDIT, min_size=1, max_size=4))
def test_a_mangled_batch_file_is_refused_in_words_or_runs(tmp_path_factory, edits):
    text = DEMO
    for place, length, snippet in edits:
        text = text[:place] + snippet + text[place + length :]
    path = tmp_path_factory.getbasetemp() / "mangled.yaml"
    path.write_text(text.replace("../../notebooks", str(ROOT / "notebooks")), encoding="utf-8")
    try:
        spec = load_spec(path)
        for block in (spec.fixed, *spec.grid):  # a count or a number of people grown large takes its time
            if isinstance(block.get("count"), int):
                block["count"] = min(block["count"], 2)
        found = expand(spec)
    except SpecError as error:
        assert str(error).strip()
    else:
        assert isinstance(spec, BatchSpec)
        assert all(cell.keys for cell in found)


def test_a_list_for_a_parameter_that_is_no_axis_yet_becomes_one(cells):
    found = cells(batch(), "seed=[1, 2]", "max_iterations=[2, 4]")
    points = {(cell.params["arm"], cell.params["seed"], cell.params["max_iterations"]) for cell in found}
    assert points == {(arm, seed, n) for arm in ("clauses", "reasoning") for seed in (1, 2) for n in (2, 4)}
