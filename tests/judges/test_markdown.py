"""Markdown: what is well formed is left alone, what is not is found on its line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit.judges import Material
from loopkit.judges.checks import markdown_well_formed


def faults(text, name="SKILL.md"):
    return [str(problem) for problem in markdown_well_formed()(Material(main=text, name=name)).problems]


WORDS = st.lists(st.sampled_from(["plain", "`code [a][b] ](`", "**bold**", "[link](a.md)", "f[0]", "(x)", "[0, 1)", r"\[a\](b"]), min_size=1, max_size=6).map(" ".join)  # fmt: skip
PARAGRAPH = st.lists(WORDS, min_size=1, max_size=3).map("\n".join)
FENCE = st.sampled_from(
    [
        "```\na | b\n[x](\n```",
        "~~~json\n{\n~~~",
        "````\n```py\n```\n````",
        "```\n```",
        "- a\n\n  ```\n  x\n  ```",
    ]
)
TABLE = st.integers(1, 4).flatmap(
    lambda columns: st.lists(
        st.lists(st.sampled_from(["a", r"b \| c", "", "`d`"]), min_size=columns, max_size=columns),
        min_size=1,
        max_size=4,
    ).map(
        lambda rows: "\n".join(
            "| " + " | ".join(row) + " |" for row in [["h"] * columns, ["-"] * columns, *rows]
        )
    )
)
OTHER = st.sampled_from(
    [
        "- a\n- b\n  1. c",
        "> a\n> b",
        "***",
        "<!-- a\n\nb -->",
        "<b>\nx\n</b>",
        "    indented ```",
        "- [ ] to do",
    ]
)
BLOCKS = st.lists(PARAGRAPH | FENCE | TABLE | OTHER, max_size=6)


@given(BLOCKS, st.booleans(), st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=200, deadline=None)
def test_good_markdown_has_no_faults(blocks, front, ending):
    text = "\n\n".join(["---\na: '[x][y]'\n---"] * front + ["# Title", *blocks, "## Part", *blocks])
    assert faults(text.replace("\n", ending)) == []


FAULTS = [
    ("```\nrest", 0, "a fence ``` without its end"),
    ("~~~~ x\n~~~", 0, "a fence ~~~~ without its end"),
    ("```json\n{}\n\n```python\nx\n```", 3, "a fence within that of line {line}, which has no end"),
    ("#### Deep", 0, "a heading of level 4 under one of level 1"),
    ("Deep\n---\n#### Deeper", 2, "a heading of level 4 under one of level 2"),
    ("| a | b |\n|---|---|\n| 1 | 2 |\n| 1 |", 3, "a table row of 1 cells under a header of 2"),
    ("a | b\n--|--\n1 | 2 | 3", 2, "a table row of 3 cells under a header of 2"),
    (r"| a |" "\n|---|\n" r"| b \| c | d |", 2, "a table row of 2 cells under a header of 1"),
    ("> | a | b |\n> |---|---|\n> | 1 |", 2, "a table row of 1 cells under a header of 2"),
    ("| a | b |\n|---|\n| 1 | 2 |", 0, "a table header of 2 cells over a rule of 1"),
    ("| a | b |\n| 1 | 2 |", 0, "a table without a rule"),
    ("text\nsee [a]()", 1, "a link that points nowhere"),
    ("![a]()", 0, "an image that points nowhere"),
    ("text\n[a][b] x", 1, "[a][b] refers to a link that is not defined"),
    ("[`a`][b]", 0, "[…][b] refers to a link that is not defined"),
    ("[a][]", 0, "[a][] refers to a link that is not defined"),
    ("text **x**\nmore\n[a](b.md", 2, "[a]( is no link"),
    ("[a](b c.md)", 0, "[a]( is no link"),
    ("<!-- open\n\ntext", 0, "a comment without its end -->"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "offset", "said"), FAULTS, ids=[said[:40] + fault[:9] for fault, _, said in FAULTS]
)
@given(blocks=BLOCKS, front=st.booleans())
@settings(max_examples=20, deadline=None)
def test_a_fault_is_found_on_its_line(fault, offset, said, blocks, front):
    before = "\n\n".join(["---\na: b\n---"] * front + ["# Title", *blocks, ""]) + "\n"
    line = before.count("\n") + 1
    [found] = faults(before + fault)
    assert found.startswith(f"SKILL.md:{line + offset}: {said.format(line=line)}")


def test_a_definition_anywhere_defines():
    assert faults("# A\n\n[a][b]\n\n[b]: c.md\n") == []


def test_a_list_may_hold_a_heading_and_a_page_begin_at_any_level():
    assert faults("### A\n\n- ##### B\n\n#### C\n") == []


@pytest.mark.parametrize("name", ["main.py", "main.json", "main.yaml"])
def test_code_is_not_looked_at(name):
    assert faults("```\n[a](", name) == []


@pytest.mark.parametrize("name", ["main.txt", "main", "main.md.bak"])
def test_no_name_keeps_the_main_text_from_being_looked_at(name):
    assert faults("```\n[a](", name) != []


def test_every_markdown_file_is_looked_at():
    material = Material(
        main="x", name="main.md", files={"a/b.MD": "```", "c.markdown": "\n[a]()", "d.txt": "```"}
    )
    assert [problem.place for problem in markdown_well_formed()(material).problems] == [
        "a/b.MD:1",
        "c.markdown:2",
    ]


@pytest.mark.parametrize(("length", "read"), [(50_000, True), (50_001, False)])
def test_what_is_too_long_is_said_to_be(length, read):
    said = [] if read else ["SKILL.md:1: 50,001 characters of Markdown: at most 50,000 are read"]
    assert faults("x" * length) == said
