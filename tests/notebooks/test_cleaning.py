"""Cleaning: whatever running and saving leave goes, whatever the author wrote stays, byte for byte."""

import json
import os
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from loopkit.notebooks import NotebookError, check, clean

KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
authored = st.fixed_dictionaries(
    {},
    optional={
        "note": texts,
        "slideshow": st.just({"slide_type": "slide"}),
        "jupyter": st.just({"source_hidden": True}),
    },
)
tags = st.lists(st.sampled_from(["parameters", "slow", "hide-input"]), unique=True, min_size=1)


@st.composite
def clean_notebooks(draw):
    cells = []
    for number in range(draw(st.integers(0, 4))):
        metadata = draw(authored) | ({"tags": draw(tags)} if draw(st.booleans()) else {})
        new = draw(st.sampled_from([new_code_cell, new_markdown_cell]))
        cells.append(new(draw(texts), metadata=metadata, id=f"id-{number}"))
    return new_notebook(cells=cells, metadata=KERNEL | draw(authored))


MARKS = {  # by tools, on a cell
    "execution": {"iopub.execute_input": "2026-11-30T21:00:00Z"},
    "collapsed": False,
    "scrolled": True,
    "ExecuteTime": {"end_time": "2026-11-30T21:00:00Z"},
    "papermill": {"status": "completed", "exception": False},
    "editable": True,
    "deletable": True,
    "vscode": {"languageId": "python"},
}
OUTPUTS = [
    new_output("stream", name="stdout", text="one\ntwo\n"),
    new_output("display_data", data={"text/plain": "x", "image/png": "aGk="}),
    new_output("error", ename="ValueError", evalue="no", traceback=["…"]),
]


@st.composite
def used(draw, notebook):
    """A clean notebook after somebody has run it and saved it."""
    notebook = deepcopy(notebook)
    for cell in notebook.cells:
        cell.metadata |= {key: MARKS[key] for key in draw(st.sets(st.sampled_from(sorted(MARKS))))}
        cell.metadata.setdefault("tags", [])
        if draw(st.booleans()):
            cell.metadata.setdefault("jupyter", {})["outputs_hidden"] = draw(st.booleans())
        if cell.cell_type == "code":
            cell.outputs = draw(st.lists(st.sampled_from(OUTPUTS), max_size=2))
            cell.execution_count = draw(st.none() | st.integers(1, 99))
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    notebook.metadata.language_info |= {"version": "3.11.7", "codemirror_mode": {"version": 3}}
    notebook.metadata.kernelspec.display_name = "Python 3 (ipykernel)"
    return notebook


def spelled(notebook, draw):
    """The notebook as JSON, not as nbformat spells it."""
    form = draw(st.sampled_from([{"indent": 2}, {"sort_keys": True}, {"ensure_ascii": False, "indent": 1}]))
    return json.dumps(notebook, **form).encode()


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_what_was_run_and_saved_is_again_what_was_written(tmp_path_factory, data):
    notebook = data.draw(clean_notebooks())
    path = tmp_path_factory.getbasetemp() / "any.ipynb"
    nbformat.write(notebook, path)
    written = path.read_bytes()
    assert check(path) == []
    assert clean(path) is False

    path.write_bytes(spelled(data.draw(used(notebook)), data.draw))
    assert check(path)
    assert clean(path) is True
    assert path.read_bytes() == written
    assert check(path) == []
    assert clean(path) is False


def test_what_a_kernel_leaves_goes(tmp_path):
    cells = [
        new_code_cell("x = 1\nprint(x)", id="a"),
        new_code_cell("x + 1", id="b", metadata={"tags": ["t"]}),
    ]
    notebook = new_notebook(cells=cells, metadata=deepcopy(KERNEL))
    path = tmp_path / "run.ipynb"
    nbformat.write(notebook, path)
    written = path.read_bytes()
    nbformat.write(NotebookClient(notebook, record_timing=True).execute(), path)
    found = check(path)
    for words in (
        "language_info",
        "cell 1 (a): 1 output",
        "cell 2 (b): execution count 2",
        "metadata execution",
    ):
        assert any(words in line for line in found), words
    clean(path)
    assert path.read_bytes() == written


def test_every_cell_that_is_not_clean_is_named(tmp_path):
    cells = [
        new_markdown_cell("# Title", id="title"),
        new_code_cell("1", id="one", execution_count=3, outputs=OUTPUTS[:2], metadata={"scrolled": True}),
        new_code_cell("2", id="two", metadata={"tags": ["slow"]}),
    ]
    path = tmp_path / "some.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata=KERNEL | {"widgets": {}}), path)
    assert check(path) == [
        "notebook: metadata widgets",
        "cell 2 (one): metadata scrolled",
        "cell 2 (one): 2 outputs",
        "cell 2 (one): execution count 3",
    ]


def test_another_kernel_keeps_its_name(tmp_path):
    path = tmp_path / "julia.ipynb"
    kernel = {"display_name": "Julia 1.11", "language": "julia", "name": "julia-1.11"}
    nbformat.write(new_notebook(metadata={"kernelspec": kernel}), path)
    assert check(path) == []


def test_spelling_alone_is_not_clean(tmp_path):
    path = tmp_path / "spelled.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("é", id="a")], metadata=KERNEL), path)
    written = path.read_bytes()
    for other in (written[:-1], written.replace(b"\n", b"\r\n"), json.dumps(json.loads(written)).encode()):
        path.write_bytes(other)
        assert len(check(path)) == 1 and "as nbformat writes it" in check(path)[0]
        clean(path)
        assert path.read_bytes() == written


def test_cells_without_an_id_of_their_own_get_one_for_good(tmp_path):
    path = tmp_path / "ids.ipynb"
    notebook = new_notebook(cells=[new_code_cell(text) for text in "abc"], metadata=KERNEL)
    for cell in notebook.cells:
        cell["id"] = "same"
    del notebook.cells[2]["id"]
    path.write_text(json.dumps(notebook))
    assert "ids of cells" in check(path)[0]
    clean(path)
    ids = [cell["id"] for cell in json.loads(path.read_bytes())["cells"]]
    assert ids[0] == "same" and len(set(ids)) == 3
    assert clean(path) is False


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nobody: home",
        b"[1, 2]",
        b"null",
        b"\xff\xfe\x00",
        b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}',
        b'{"nbformat": 9, "nbformat_minor": 0, "metadata": {}, "cells": []}',
        b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "ode", "source": ""}]}',
        b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {"a": "\\ud800"}, "cells": []}',
        b"[" * 100_000,
    ],
    ids=lambda content: content[:12].decode("latin-1"),
)
@pytest.mark.parametrize("act", [check, clean])
def test_what_is_no_notebook_is_named_and_left_alone(tmp_path, act, content):
    path = tmp_path / "broken.ipynb"
    path.write_bytes(content)
    with pytest.raises(NotebookError, match="broken.ipynb"):
        act(path)
    assert path.read_bytes() == content


def dirty(path: Path) -> bytes:
    cell = new_code_cell("1", id="a", outputs=[OUTPUTS[0]])
    nbformat.write(new_notebook(cells=[cell], metadata=KERNEL), path)
    return path.read_bytes()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "full.ipynb"
    content = dirty(path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotebookError, match="cannot write .*full.ipynb: No space left"):
        clean(path)
    assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == ["full.ipynb"]


def test_a_link_stays_a_link_and_rights_stay(tmp_path):
    path, link = tmp_path / "real.ipynb", tmp_path / "link.ipynb"
    dirty(path)
    path.chmod(0o640)
    link.symlink_to(path)
    clean(link)
    assert link.is_symlink()
    assert check(path) == []
    assert path.stat().st_mode & 0o777 == 0o640
