"""Parameters: told without executing the notebook, and by the model that checks them."""

import ast
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import nbformat
import pytest
from annotated_types import Gt, Lt
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from pydantic import BaseModel, Field, ValidationError, create_model

from loopkit.notebooks import NotebookError, assignments, parameters, params_model
from loopkit.notebooks.wording import in_words

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
EXPERIMENTS = {"02_constraint_solving": "knights", "04_code_aided_math": "mathematics"}


@pytest.fixture
def notebook(tmp_path):
    """Writes a notebook: the parameters cell, then more cells."""

    def write(*sources, tag="parameters"):
        cells = [new_markdown_cell("# Title"), *map(new_code_cell, sources)]
        cells[1].metadata["tags"] = [tag]
        path = tmp_path / "own.ipynb"
        nbformat.write(new_notebook(cells=cells), path)
        return path

    return write


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_notebooks_tell_types_defaults_and_help(path):
    found = {one.name: one for one in parameters(path)}
    assert found.pop("out").model is None
    model = params_model(path)
    assert set(found) == set(model.model_fields)
    for one in found.values():
        assert one.model and one.type and one.help, one.name
        assert one.default == ast.literal_eval(one.written)


@pytest.mark.parametrize(("name", "experiment"), EXPERIMENTS.items())
def test_the_model_is_the_experiments_own(name, experiment):
    model = params_model(NOTEBOOKS[0].parent / f"{name}.ipynb")
    assert model is import_module(f"experiments.{experiment}").Params


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_told_of_numbers_is_what_the_model_accepts(path):
    model, found = params_model(path), parameters(path)
    good = {one.name: one.default for one in found if one.model}
    told = 0
    for one in found:
        for key, step in (("minimum", -1), ("maximum", 1)):
            if key in (one.schema or {}):
                bound = one.schema[key]
                told += 1
                assert str(bound) in one.type
                with pytest.raises(ValidationError, match=one.name):
                    model(**good | {one.name: bound + step})
                try:
                    model(**good | {one.name: bound})
                except ValidationError as error:  # not by itself: the other values may not go with it
                    assert all(one.name not in problem["loc"] for problem in error.errors())
    assert told


def test_choices_are_those_of_the_literal():
    found = {one.name: one for one in parameters(NOTEBOOKS[0].parent / "02_constraint_solving.ipynb")}
    assert found["arm"].type == "reasoning | program | sentence | clauses"
    assert found["arm"].help == "`reasoning`, `program`, `sentence` or `clauses`."
    assert (found["count"].default, found["count"].schema["default"]) == (3, 5)
    assert found["data"].type == "str | None"
    assert found["out"].type == "str"
    assert found["out"].help == "the folder that the records go to"


def test_without_a_model_the_cell_itself_tells(notebook):
    path = notebook(
        'title = "C# and # more"  # of the page\n'
        "share: float = 0.5\n"
        "sizes = [\n    1,\n    2,\n]  # in pages\n"
        "nothing = None\n"
        "when = str(1 + 1)  # computed\n"
        "a = b = -1; c = True  # three\n"
        "title.upper()\nundefined: int\n"
    )
    told = [(one.name, one.type, one.written, one.default, one.help) for one in parameters(path)]
    assert told == [
        ("title", "str", "'C# and # more'", "C# and # more", "of the page"),
        ("share", "float", "0.5", 0.5, ""),
        ("sizes", "list", "[1, 2]", [1, 2], "in pages"),
        ("nothing", "None", "None", None, ""),
        ("when", "expression", "str(1 + 1)", None, "computed"),
        ("a", "int", "-1", -1, "three"),
        ("b", "int", "-1", -1, "three"),
        ("c", "bool", "True", True, "three"),
    ]
    assert {one.model for one in parameters(path)} == {None}


DEFINED = '''
import there_is_no_such_module
from pydantic import BaseModel, Field
LEAST = limit()
class Base(BaseModel, use_attribute_docstrings=True):
    word: str = "x"
class Params(Base):
    size: int = Field(default=7, ge=LEAST)
    """How many
    there are."""
'''


def test_of_a_notebook_only_what_its_model_needs_is_executed(notebook, tmp_path):
    mark = tmp_path / "executed"
    path = notebook(
        "size = 5\nword = 'y'  # the word",
        f"open({str(mark)!r}, 'w')\ndef limit():\n    return 3\nlater = open({str(mark)!r}, 'w')",
        "%matplotlib inline\n!touch executed\nx = await nobody()",
        "%%bash\ntouch executed",
        DEFINED,
        "Params(size=size, word=word)",
    )
    size, word = parameters(path)
    assert (size.type, size.default, size.help) == ("int >= 3", 5, "How many there are.")
    assert (word.type, word.help, word.model) == ("str", "the word", "own.Params")
    assert not mark.exists()
    assert not Path("executed").exists()


def test_modules_beside_the_notebook_are_found_as_by_its_kernel(notebook, tmp_path):
    (tmp_path / "beside_it.py").write_text(
        "from pydantic import BaseModel\nclass Params(BaseModel):\n    n: int\n"
    )
    (one,) = parameters(notebook("n = 1", "from beside_it import Params"))
    assert (one.type, one.model) == ("int", "beside_it.Params")


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            ["n = 1", "from no_such_module import Params"],
            "cannot load the Params of .*own.ipynb.*ModuleNotFoundError.*no_such_module",
        ),
        (["n = 1", "class Params(Base): pass"], "cannot load the Params of .*own.ipynb.*NameError.*Base"),
        (
            ["n = 1", "from experiments.nobody import Params"],
            "own.ipynb.*ModuleNotFoundError.*experiments.nobody",
        ),
        (["n = 1", "Params = dict"], "the Params of .*own.ipynb is no pydantic model"),
        (["n = 1", "class Params(:"], "own.ipynb, cell 3, is not Python"),
        (["n ="], "the parameters cell of .*own.ipynb is not plain Python"),
        (["print(1)"], "own.ipynb has no cell tagged 'parameters' with assignments"),
    ],
    ids=["import", "name", "experiment", "no model", "no Python", "no default", "no assignment"],
)
def test_what_cannot_be_told_says_why(notebook, cells, said):
    with pytest.raises(NotebookError, match=f"(?s){said}"):
        parameters(notebook(*cells))


def test_an_untagged_cell_has_no_parameters(notebook):
    with pytest.raises(NotebookError, match="no cell tagged 'parameters'"):
        assignments(notebook("n = 1", tag="settings"))


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    """A model within."""


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "int"),
        (float, "float"),
        (bool, "bool"),
        (Annotated[int, Field(ge=1, le=20)], "int 1 to 20"),
        (Annotated[int, Field(ge=1)], "int >= 1"),
        (Annotated[float, Gt(0), Lt(1)], "float > 0 < 1"),
        (Annotated[int, Field(ge=0)] | None, "int >= 0 | None"),
        (Annotated[int, Field(multiple_of=5)], "int multiple of 5"),
        (Annotated[str, Field(min_length=1, max_length=60)], "str 1 to 60 characters"),
        (Annotated[str, Field(pattern="^a+$")], "str matching ^a+$"),
        (Literal["seen", "unseen"], "seen | unseen"),
        (Literal["one"], "one"),
        (Literal[1, 2] | None, "1 | 2 | None"),
        (list[Annotated[int, Field(le=3)]], "list of int <= 3"),
        (Annotated[list[str], Field(min_length=2)], "list of str >= 2 items"),
        (Colour, "red | blue"),
        (Inner, "dict"),
        (dict[str, int], "dict"),
    ],
    ids=str,
)
def test_a_type_in_words(annotation, words):
    schema = create_model("Some", field=(annotation, ...)).model_json_schema()
    assert in_words(schema["properties"]["field"], schema.get("$defs", {})) == words
