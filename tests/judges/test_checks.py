"""Checks: what a test may say, the checks that come along, and naming them."""

import json
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit.judges import Material
from loopkit.judges.checks import (
    CHECKS,
    Check,
    Problem,
    check_named,
    checks_from,
    front_matter,
    length,
    markdown_well_formed,
    numbers_within,
    parses,
    references_exist,
    register,
    required_fields,
    run_checks,
    share,
    skill_checks,
    speaks_to_no_judge,
    usage_trigger,
)

ROOT = Path(__file__).parents[2]
ALL = [*skill_checks(max_words=50), length(max_lines=9, max_characters=90, min_words=3), speaks_to_no_judge()]


def problems(check, main, name="SKILL.md", files=None):
    """What `check` finds, as text."""
    return [str(problem) for problem in check(Material(main=main, name=name, files=files or {})).problems]


def with_fields(**fields):
    return f"---\n{yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)}---\n# Title\n"


# What a test may say


@pytest.mark.parametrize("answer", [None, True, "", [], (), iter([])])
def test_nothing_to_say_passes(answer):
    result = Check("mine", lambda material: answer)("text")
    assert (result.passed, result.problems) == (True, ())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (False, ["main.md: does not hold"]),
        ("too blue", ["main.md: too blue"]),
        (Problem("a.md:3", "too blue"), ["a.md:3: too blue"]),
        (["one", Problem("a.md", "two")], ["main.md: one", "a.md: two"]),
        ((str(number) for number in (1, 2)), ["main.md: 1", "main.md: 2"]),
    ],
)
def test_what_a_test_says_are_the_problems(answer, said):
    result = Check("mine", lambda material: answer)("text")
    assert not result.passed
    assert [str(problem) for problem in result.problems] == said
    assert result.lines() == tuple(f"mine: {one}" for one in said)


async def later(material):
    return None


def raising(error):
    def test(material):
        raise error

    return test


@pytest.mark.parametrize(
    ("test", "why"),
    [
        (raising(KeyError("size")), "KeyError: 'size'"),
        (raising(RecursionError("too deep")), "RecursionError: too deep"),
        (lambda material: 3, "TypeError: "),
        (lambda material: [True], "TypeError: a test gives texts and Problems, got a bool"),
        (lambda: None, "TypeError: "),
    ],
)
def test_a_broken_test_is_a_failure_that_says_so_and_never_a_pass(test, why):
    result = Check("mine", test, veto=True)("text")
    assert (result.passed, result.veto) == (False, True)
    [problem] = result.problems
    assert problem.text.startswith(f"the check itself failed: {why}")


@pytest.mark.filterwarnings("ignore:coroutine")
def test_an_async_test_does_not_pass_by_never_running():
    assert not Check("mine", later)("text").passed


def test_of_endless_problems_the_first_are_named():
    def endless(material):
        while True:
            yield "again"

    found = Check("mine", endless)("text").problems
    assert len(found) == 21
    assert found[-1].text == "more than 20 problems: the others are not listed"
    assert len(Check("mine", lambda material: ["again"] * 20)("text").problems) == 20


def test_a_check_as_a_veto_is_otherwise_the_same():
    check = Check("mine", lambda material: "no")
    assert check.vetoing() == Check("mine", check.test, veto=True)
    assert (check("x").veto, check.vetoing()("x").veto) == (False, True)


@given(st.lists(st.booleans(), min_size=1))
def test_the_share_is_the_part_that_passed(outcomes):
    results = run_checks(
        [Check(str(place), lambda material, good=good: good) for place, good in enumerate(outcomes)], "x"
    )
    assert [result.name for result in results] == [str(place) for place in range(len(outcomes))]
    assert share(results) == pytest.approx(sum(outcomes) / len(outcomes))


def test_no_checks_have_no_share():
    with pytest.raises(ValueError, match="no share"):
        share(run_checks([], "text"))


def test_what_is_no_material_is_a_mistake_of_the_caller():
    with pytest.raises(TypeError, match="cannot judge a int"):
        run_checks([], 3)
    with pytest.raises(TypeError, match="cannot judge a int"):
        Check("mine", lambda material: None)(3)


# Any material


PIECES = st.sampled_from(
    ["---\n", "a: b\n", "name: x\n", "[", "](", "x)", "```", "```json\n", "```python\n", "\n", "# ", "### ", "|", "|-|-|\n",
     "{", "}", "references/x.md", "<!--", "-->", "\x00", "\ufeff", "\r", "&a *a ", "\t", "use when ", "é", "\ud800"]
)  # fmt: skip
TEXTS = st.text(max_size=60) | st.lists(PIECES, max_size=30).map("".join)
NAMES = st.sampled_from(["SKILL.md", "references/x.md", "x.json", "x.yaml", "x.py", "x", "../x.md", ""])
MATERIALS = st.builds(
    lambda name, files, **texts: Material(
        name=name, files={one: text for one, text in files.items() if one != name}, **texts
    ),
    main=TEXTS,
    name=NAMES,
    files=st.dictionaries(NAMES, TEXTS, max_size=3),
    goal=TEXTS,
)


@given(MATERIALS)
@settings(max_examples=300, deadline=None)
def test_any_material_gets_results_and_no_check_breaks(material):
    results = run_checks(ALL, material)
    assert [result.name for result in results] == [check.name for check in ALL]
    for result in results:
        assert result.passed == (not result.problems)
        assert not any("the check itself failed" in problem.text for problem in result.problems), result
    assert results == run_checks(ALL, material)


@given(MATERIALS, TEXTS)
@settings(max_examples=100, deadline=None)
def test_a_file_that_is_no_part_of_it_changes_nothing(material, text):
    more = Material(**{**vars(material), "files": {**material.files, "aside/unrelated.txt": text}})
    aside = speaks_to_no_judge().name  # what speaks to the judge is looked for everywhere
    assert [r for r in run_checks(ALL, more) if r.name != aside] == [
        r for r in run_checks(ALL, material) if r.name != aside
    ]


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10**6, "\x00\xff" * 500_000, "[" * 10**6, "---\n" + "a: b\n" * 200_000, "---\n---\n" + "```json\n{}\n```\n" * 60_000,
        "references/" * 90_000, "|a|b|\n|-|-|\n" * 80_000, "use " * 250_000, "[a](" * 12_000, "[" * 49_000, "a" * 49_000 + "](",
        f"---\na: {'[' * 49_000}\n---\n", f"---\na: {'- ' * 20_000}\n---\n", f"---\ndescription: {'use ' * 12_000}\n---\n",
        f"```python\n{'(' * 40_000}\n```\n", f"```json\n{'[' * 40_000}\n```\n", "references/a" + "." * 40_000,
    ],
    ids=lambda text: repr(text[:16]),
)  # fmt: skip
def test_large_and_hostile_texts_are_done_with(text):
    start = time.process_time()
    results = run_checks(ALL, Material(main=text, name="SKILL.md"))
    assert time.process_time() - start < 20  # no measure of speed: what grows by squares takes many minutes
    assert not all(result.passed for result in results)
    assert not any("the check itself failed" in line for result in results for line in result.lines())


# The checks that come along


@given(st.text(st.sampled_from("ab: -\n'\"[]{}#&*!|>%@,\t1é"), max_size=30) | st.dictionaries(st.text(max_size=5), st.integers()).map(yaml.safe_dump))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_front_matter_is_what_yaml_reads_as_fields(text):
    if any(line.rstrip() == "---" for line in text.split("\n")):
        return
    try:
        expected = isinstance(list(yaml.safe_load_all(text))[-1], dict)
    except (yaml.YAMLError, ValueError, IndexError):
        expected = False
    assert front_matter()(f"---\n{text}\n---\nbody").passed == expected


@pytest.mark.parametrize(
    ("main", "said"),
    [
        ("# Title\n", "SKILL.md:1: no front matter"),
        ("", "SKILL.md:1: no front matter"),
        ("\n---\na: b\n---\n", "SKILL.md:1: no front matter"),
        ("---\na: b\n", "SKILL.md:1: the front matter has no end"),
        ("---\n---\n", "SKILL.md:2: the front matter must be fields"),
        ("---\n- a\n- b\n---\n", "SKILL.md:2: the front matter must be fields"),
        ("---\na: b\nc: d: e\n---\n", "SKILL.md:3: not YAML: mapping values are not allowed here"),
        ("---\na: b\n\tc: d\n---\n", "SKILL.md:3: not YAML: "),
        ("---\na: b\nc: \x07\n---\n", "SKILL.md:3: not YAML: the character '\\x07'"),
        (
            "---\nday: 2024-13-01\n---\n",
            "SKILL.md:2: the front matter cannot be read: month must be in 1..12",
        ),
    ],
)
def test_broken_front_matter_is_told_with_its_line(main, said):
    [problem] = problems(front_matter(), main)
    assert problem.startswith(said)


def test_front_matter_may_end_its_lines_as_windows_does():
    assert front_matter()("\ufeff---\r\na: b\r\n---\r\nbody").passed


def test_fields_that_are_wanted():
    check = required_fields("name", "meta.owner", "tags", "count")
    assert problems(check, with_fields(name="x", meta={"owner": "me"}, tags=["a"], count=0)) == []
    assert problems(check, with_fields(name="  ", meta="me", tags=[], count=None)) == [
        "SKILL.md:2: the field 'name' is empty",
        "SKILL.md:1: no field 'meta.owner' in the front matter",
        "SKILL.md:4: the field 'tags' is empty",
        "SKILL.md:5: the field 'count' is empty",
    ]
    assert problems(check, "text")[0].startswith("SKILL.md:1: no front matter")


@pytest.mark.parametrize(
    "description",
    [
        "Writes tests. Use when a function has none.",
        "Use this skill for reviews of migrations.",
        "Use it before a release.",
        "This is used whenever a build fails.",
        "Whenever a build fails, this reads the log.",
        "Reads logs. When a build fails, it finds the cause.",
        "Apply after an outage.",
        "Escreve testes. Use quando uma função não tem nenhum.",
        "Usar sempre que um build falhar.",
        "Revisa migrações; utilize antes de publicar.",
        "Quando um build falha, lê o log.",
    ],
)
def test_a_description_that_says_when_to_use_it(description):
    assert problems(usage_trigger(), with_fields(description=description)) == []


@pytest.mark.parametrize(
    "description",
    ["Writes tests.", "A useful tool.", "Formats dates when asked", "Escreve testes.", 3, ["use when"], None],
)
def test_a_description_that_does_not(description):
    [problem] = problems(usage_trigger(), with_fields(name="x", description=description))
    assert problem == "SKILL.md:3: 'description' does not say when to use it: add 'Use when …'"


def test_the_trigger_may_be_wanted_of_another_field():
    assert problems(usage_trigger("meta.when"), with_fields(meta={"when": "Use when it rains."})) == []
    assert "no field 'meta.when'" in problems(usage_trigger("meta.when"), with_fields(name="x"))[0]


@given(st.text(st.sampled_from("ab \n"), max_size=40))
def test_length_counts_lines_words_and_characters(text):
    for limit, count in (
        ("lines", len(text.splitlines())),
        ("words", len(text.split())),
        ("characters", len(text)),
    ):
        for allowed in (max(count - 1, 1), max(count, 1)):
            assert length(**{f"max_{limit}": allowed})(text).passed == (count <= allowed)
    words = len(text.split())
    assert not length(min_words=words + 1)(text).passed
    assert length(min_words=max(words, 1))(text).passed == (words > 0)


def test_length_says_how_long_it_is():
    assert problems(length(max_lines=1, max_words=1_000), "one\n" * 1_200) == [
        "SKILL.md: 1,200 lines: at most 1 are allowed",
        "SKILL.md: 1,200 words: at most 1,000 are allowed",
    ]


FILES = {"references/a.md": "", "references/deep/b.md": "", "scripts/run.py": "", "note s.md": ""}


@pytest.mark.parametrize(
    "main",
    [
        "[a](references/a.md) and [a](./references/a.md#part) and [a](references/a.md?raw=1)",
        "![a](note%20s.md) [b](<note s.md>) [folder](references/) [folder](references/deep)",
        "see `references/a.md` and references/deep/b.md. Or ./scripts/run.py, (scripts/run.py)",
        "`python scripts/run.py --fast`",
        "[web](https://x.org/references/none.md) https://x.org/references/none.md <mailto:a@b.org> [top](#top)",
        "[me](SKILL.md) [root](/references/none.md)",
        "```\nreferences/none.md\n[a](none.md)\n```\n",
        "`src/none.py`, and/or, references in general, references/TOPIC, `references/<topic>.md`, my-references/none.md",
        "[a][x]\n\n[x]: references/a.md",
    ],
)
def test_references_that_are_there_or_are_none(main):
    assert problems(references_exist(), main, files=FILES) == []


@pytest.mark.parametrize(
    ("main", "path"),
    [
        ("\n[a](references/none.md)", "references/none.md"),
        ("\n![a](none.png)", "none.png"),
        ("\nsee `references/none.md`.", "references/none.md"),
        ("\nsee references/none.md.", "references/none.md"),
        ("\n[a](../references/a.md)", "../references/a.md"),
        ("\n[a](References/a.md)", "References/a.md"),
        ("\n[references/none.md](references/none.md)", "references/none.md"),
        ("text\n[a][x]\n\n[x]: none.md", "none.md"),
    ],
)
def test_a_dead_reference_is_told_with_its_line(main, path):
    assert problems(references_exist(), main, files=FILES) == [
        f"SKILL.md:2: there is no file {path!r} beside it: add it, or mend the path"
    ]


def test_files_refer_to_others_from_where_they_stand():
    files = {
        "references/a.md": "[b](b.md) [main](../SKILL.md) `references/b.md` `scripts/none.py`",
        "references/b.md": "",
    }
    assert problems(references_exist(), "x", files=files) == [
        "references/a.md:1: there is no file 'scripts/none.py' beside it: add it, or mend the path"
    ]
    assert references_exist()(Material(main="![x](logo.png)", others=["logo.png"])).passed


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)), st.integers(0, 40), st.sampled_from(["", ",", "}", '"', "\n"]))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_json_parses_when_json_reads_it(value, place, noise):
    text = json.dumps(value, indent=1)
    text = text[:place] + noise + text[place:]
    try:
        json.loads(text)
        expected = True
    except json.JSONDecodeError:
        expected = False
    assert parses()(Material(main="x", files={"a.json": text})).passed == expected
    assert parses()(Material(main=f"````json\n{text}\n````\n")).passed == expected


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("```json\n{\n  'a': 1\n}\n```", "SKILL.md:4: not JSON: "),
        ("```json\n[NaN]\n```", "SKILL.md:3: not JSON: NaN is no JSON"),
        ("```yaml\na: 1\nb: [1, 2\n```", "SKILL.md:5: not YAML: "),
        ("```yml\na: b: c\n```", "SKILL.md:3: not YAML: mapping values are not allowed here"),
        ("```python\nx = 1\ndef f(:\n```", "SKILL.md:4: not Python: invalid syntax"),
        ("~~~ {.py}\nx = 1\n  y\n~~~", "SKILL.md:4: not Python: unexpected indent"),
        ("1. one\n   ```Python title=x\n   x = (\n   ```", "SKILL.md:4: not Python: '(' was never closed"),
    ],
)
def test_a_block_that_does_not_parse_is_told_with_its_line(block, said):
    [problem] = problems(parses(), f"\n{block}\n")
    assert problem.startswith(said)


def test_blocks_that_parse_or_are_not_looked_at():
    good = (
        "```json\n[1]\n```\n```yaml\n- !tag x\n---\n- y\n```\n```python\n    await x\n    '\\d'\n```\n"
        "```\n{{{\n```\n```bash\nif (\n```\n```jsonc\n// {\n```\n    def f(:\n"
    )
    assert problems(parses(), good) == []


def test_yaml_with_too_many_open_brackets_is_refused_before_its_parser_takes_seconds():
    assert problems(parses(), "x", files={"a.yaml": "[" * 100 + "]" * 100}) == []
    assert problems(parses(), "x", files={"a.yaml": "[" * 101 + "]" * 101}) == [
        "a.yaml:1: YAML with more than 100 brackets open at once"
    ]


def test_files_are_read_by_their_suffix():
    files = {
        "a.json": "{",
        "b.YAML": "a: b: c",
        "c.py": "x = 1\nx = = 2",
        "d.txt": "{",
        "e.md": "```json\n{\n```",
    }
    assert [problem.split(": not")[0] for problem in problems(parses(), "x", files=files)] == [
        "a.json:1", "b.YAML:1", "c.py:2", "e.md:3",
    ]  # fmt: skip
    assert problems(parses(), "x = (", name="main.py") == ["main.py:1: not Python: '(' was never closed"]


@given(st.floats(allow_nan=False, width=32) | st.integers(-100, 100), st.integers(-5, 5), st.integers(0, 10))
def test_numbers_within_their_bounds(value, low, width):
    check = numbers_within("meta.size", low=low, high=low + width)
    assert check(with_fields(meta={"size": value})).passed == (low <= value <= low + width)


@pytest.mark.parametrize("value", ["high", True, None, [1], float("nan")])
def test_what_is_no_number_is_not_within(value):
    assert problems(numbers_within("size", low=0), with_fields(name="x", size=value)) == [
        "SKILL.md:3: 'size' must be a number"
    ]


def test_a_field_that_is_not_there_is_within():
    assert problems(numbers_within("size", high=1), with_fields(name="x")) == []
    assert problems(numbers_within("size", high=1), with_fields(size=2)) == [
        "SKILL.md:2: 'size' is 2: it must be within -inf and 1"
    ]


def test_numbers_in_the_text_are_found_by_a_pattern():
    check = numbers_within(pattern=r"wait (\S+) s", low=0, high=60)
    assert problems(check, "wait 3 s, wait 60 s") == []
    assert problems(check, "wait 3 s\nthen wait 61.5 s\nor wait some s") == [
        "SKILL.md:2: 'wait 61.5 s' is 61.5: it must be within 0 and 60",
        "SKILL.md:3: 'wait some s' must be a number",
    ]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (required_fields, "needs the names"),
        (length, "length needs a limit: max_lines"),
        (lambda: length(max_words=0), "max_words must be a whole number >= 1, got 0"),
        (lambda: length(max_lines=1.5), "max_lines must be a whole number >= 1, got 1.5"),
        (lambda: length(min_words=True), "min_words must be a whole number >= 1, got True"),
        (lambda: numbers_within(low=1), "needs a field or a pattern"),
        (lambda: numbers_within("a", pattern="(b)", low=1), "needs a field or a pattern"),
        (lambda: numbers_within("a"), "needs bounds"),
        (lambda: numbers_within("a", low=2, high=1), "needs bounds, low <= high, got 2 and 1"),
        (lambda: numbers_within("a", low=float("nan")), "needs bounds"),
        (lambda: numbers_within(pattern="a", low=1), "must have one group, the number; it has 0"),
        (lambda: numbers_within(pattern="(", low=1), "is no regular expression"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(make, why):
    with pytest.raises(ValueError, match=why):
        make()


def test_what_makes_a_skill_useless_is_a_veto():
    assert [check.name for check in skill_checks() if check.veto] == [
        "front_matter", "required_fields", "references_exist", "parses",
    ]  # fmt: skip


DOCUMENTS = [path for path in (ROOT, ROOT / "data", ROOT / "experiments") for path in path.glob("*.md")]
DOCUMENTS += (ROOT / "experiments").glob("*/*.md")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_pages_of_this_project_are_well_formed_and_their_links_alive(path):
    beside = [
        str(other.relative_to(path.parent))
        for folder in ("data", "experiments", "loopkit", "notebooks", "tests")
        for other in (ROOT / folder).rglob("*")
        if other.is_relative_to(path.parent)
    ]
    others = [*beside, *(other.name for other in path.parent.iterdir())]
    page = Material(main=path.read_text(encoding="utf-8"), name=path.name, others=others)
    checks = [markdown_well_formed(), parses(), *[references_exist()] * (path.parent == ROOT)]
    assert [line for result in run_checks(checks, page) for line in result.lines()] == []


# Naming them


@pytest.fixture
def no_todo():
    """A check of one's own, registered for one test."""

    @register("no-todo")
    def test(material, *, most=0):
        return material.main.count("TODO") <= most

    yield test
    del CHECKS["no-todo"]


def test_every_check_can_be_named_in_yaml():
    listed = yaml.safe_load("""
        - front_matter
        - required_fields: [name, description]
          veto: true
        - usage_trigger: description
        - length: {max_lines: 120}
        - references_exist: {veto: true}
        - markdown_well_formed:
        - parses: {veto: false}
        - numbers_within: {field: temperature, low: 0, high: 2}
        - speaks_to_no_judge
    """)
    checks = checks_from(listed)
    assert [check.name for check in checks] == list(CHECKS)
    assert [check.name for check in checks if check.veto] == ["required_fields", "references_exist"]
    good = with_fields(name="x", description="Use when it rains.", temperature=1)
    assert [result.lines() for result in run_checks(checks, good) if not result.passed] == []
    assert not checks[3]("\n" * 121).passed and checks[3]("\n" * 120).passed


def test_checks_of_ones_own_are_named_as_the_others_are(no_todo):
    plain, lenient = checks_from(["no-todo", {"no-todo": {"most": 1, "veto": True}}])
    assert (plain("TODO").passed, lenient("TODO").passed, lenient("TODO TODO").passed) == (False, True, False)
    assert plain("TODO").lines() == ("no-todo: main.md: does not hold",)
    assert lenient.veto and no_todo(Material(main="x"))
    assert checks_from([plain]) == [plain]


def test_one_line_registers_a_check():
    register("short", lambda material: len(material.main) < 9)
    try:
        assert check_named("short", veto=True)("x" * 9).veto
        assert not check_named("short")("x" * 9).passed
    finally:
        del CHECKS["short"]


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="a check 'length' already"):
        register("length", lambda material: None)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("lenght", "no check 'lenght'; there are front_matter, length, "),
        ({"length": {"max_word": 3}}, "check 'length': .*'max_word'; it takes max_lines, max_words, "),
        ({"length": {}}, "length needs a limit"),
        ({"front_matter": ["x"]}, "check 'front_matter': .*; it takes nothing"),
        ({"no-todo": {"least": 3}}, "check 'no-todo': .*'least'; it takes most"),
        ({"parses": {"veto": "yes"}}, "check 'parses': veto must be true or false, got 'yes'"),
        ({"parses": None, "length": None}, "a check is a name, or `name: options`"),
        ({"veto": True}, "a check is a name, or `name: options`"),
        (3, "a check is a name, or `name: options`, got 3"),
        (None, "a check is a name, or `name: options`, got None"),
    ],
)
def test_what_names_no_check_is_refused(no_todo, entry, why):
    with pytest.raises(ValueError, match=why):
        checks_from([entry])
