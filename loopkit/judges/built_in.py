"""The checks that come with loopkit. Each function here makes one."""

import math
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from typing import Any
from urllib.parse import unquote

from loopkit.judges import markdown
from loopkit.judges.checking import Check, Problem
from loopkit.judges.evidence import withhold
from loopkit.judges.material import Material
from loopkit.judges.parsing import READERS, Unreadable

FOLDERS = ("references", "scripts", "assets")
"""Where a skill keeps its files: a path into one of them is a reference, even in plain text."""

# A verb of use, and in the same sentence, not far behind it, a word of occasion; or a word of occasion alone where it
# can hardly mean anything else. English and Portuguese.
TRIGGER = re.compile(
    r"\b(?:use|used|apply|invoke|call|load|usar|usada|usado|utilize|utilizar|aplique|acione|chame)\b"
    r"[^.!?]{0,60}?\b(?:when|whenever|for|if|before|after|during|while"
    r"|quando|sempre que|se|para|antes|depois|durante|ao|em caso)\b"
    r"|\b(?:whenever|sempre que)\b"
    r"|(?:^|[.!?:;]\s+)(?:when|quando)\b",
    re.IGNORECASE,
)


def front_matter() -> Check:
    """The main text begins with front matter: YAML fields between two lines `---`."""

    def test(material: Material) -> Problem | None:
        front = _front(material)
        return front if isinstance(front, Problem) else None

    return Check("front_matter", test)


def required_fields(*names: str) -> Check:
    """The front matter has each of these fields (dotted ones too), and none is empty. Raises ValueError without a name."""
    if not names:
        raise ValueError(
            "required_fields needs the names of the fields: required_fields('name', 'description')"
        )

    def test(material: Material) -> Iterator[Problem]:
        front = _front(material)
        if isinstance(front, Problem):
            yield front
            return
        for name in names:
            try:
                value = front.find(name)
            except KeyError:
                yield Problem(f"{material.name}:1", f"no field {name!r} in the front matter")
                continue
            if value is None or value in ([], {}) or (isinstance(value, str) and not value.strip()):
                yield Problem(f"{material.name}:{front.line(name)}", f"the field {name!r} is empty")

    return Check("required_fields", test)


def usage_trigger(field: str = "description") -> Check:
    """A field of the front matter says when to use what it describes, as `TRIGGER` reads it.

    "Use when …", "use this for/if/before/after …", "whenever …" and "When …" do, and so do "use quando …", "use para …",
    "sempre que …". It is a pattern: whether the occasion is the right one is for a judge to say.
    """

    def test(material: Material) -> Problem | None:
        front = _front(material)
        if isinstance(front, Problem):
            return front
        try:
            said = front.find(field)
        except KeyError:
            return Problem(
                f"{material.name}:1", f"no field {field!r} in the front matter that could say when to use it"
            )
        if isinstance(said, str) and TRIGGER.search(said):
            return None
        return Problem(
            f"{material.name}:{front.line(field)}", f"{field!r} does not say when to use it: add 'Use when …'"
        )

    return Check("usage_trigger", test)


def length(
    *,
    max_lines: int | None = None,
    max_words: int | None = None,
    max_characters: int | None = None,
    min_words: int | None = None,
) -> Check:
    """The main text, front matter included, keeps within these limits. Raises ValueError for none, or one below 1."""
    limits = {
        "max_lines": max_lines,
        "max_words": max_words,
        "max_characters": max_characters,
        "min_words": min_words,
    }
    if all(limit is None for limit in limits.values()):
        raise ValueError(f"length needs a limit: {', '.join(limits)}")
    for name, limit in limits.items():
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise ValueError(f"length: {name} must be a whole number >= 1, got {limit!r}")

    def test(material: Material) -> Iterator[Problem]:
        text = material.main
        lines, words = len(text.splitlines()), len(text.split())
        for unit, used, limit in (("lines", lines, max_lines), ("words", words, max_words), ("characters", len(text), max_characters)):  # fmt: skip
            if limit is not None and used > limit:
                yield Problem(material.name, f"{used:,} {unit}: at most {limit:,} are allowed")
        if min_words is not None and words < min_words:
            yield Problem(material.name, f"{words:,} words: at least {min_words:,} are wanted")

    return Check("length", test)


def references_exist(folders: Sequence[str] = FOLDERS) -> Check:
    """Every file that a Markdown text of the material refers to is part of it.

    Referred to by a relative link or image (relative to the text it stands in), or by a path in plain text or a code span
    that begins with one of `folders` and has a suffix (`references/style.md`). Addresses with a scheme, absolute paths and
    anchors are not looked at, nor is what stands in fenced blocks.
    """
    if isinstance(folders, str) or not folders:
        raise ValueError(f"references_exist: folders must be a list of names, got {folders!r}")
    inside = "|".join(map(re.escape, folders))
    path_in_text = re.compile(rf"(?<![\w./:@\\-])(?:\./)?(?:{inside})/[\w./-]*\.\w+")

    def test(material: Material) -> Iterator[Problem]:
        there = {posixpath.normpath(path) for path in (material.name, *material.files, *material.others)}
        there |= {
            path[: slash.start()] for path in there for slash in re.finditer("/", path)
        }  # their folders

        def dead(name: str, text: str) -> Iterator[Problem]:
            beside = posixpath.dirname(name)
            meant: dict[tuple[int, str], set[str]] = {}
            for address, line in markdown.destinations(text):
                path = unquote(re.split("[?#]", address, maxsplit=1)[0])
                if path and not re.match(r"/|[a-zA-Z][\w+.-]*:", path):
                    meant[line, path] = {posixpath.join(beside, path)}
            for words, line in markdown.words(text):
                for path in path_in_text.findall(words):
                    meant.setdefault((line, path), {path, posixpath.join(beside, path)})
            for (line, path), places in meant.items():
                if not {posixpath.normpath(place) for place in places} & there:
                    yield Problem(
                        f"{name}:{line}", f"there is no file {path!r} beside it: add it, or mend the path"
                    )

        return _in_markdown(material, dead)

    return Check("references_exist", test)


def markdown_well_formed() -> Check:
    """Nothing in the Markdown texts of the material reads otherwise than it was meant.

    A fence or comment without its end, a heading that skips a level, a table row with more or fewer cells than the header,
    a table without its rule, a link that points nowhere, is not defined or is broken off. Each is given with its line.
    """

    def malformed(name: str, text: str) -> Iterator[Problem]:
        for line, fault in markdown.faults(text):
            yield Problem(f"{name}:{line}", fault)

    return Check("markdown_well_formed", lambda material: _in_markdown(material, malformed))


def parses() -> Check:
    """What is tagged or named as JSON, YAML or Python can be read as that: fenced blocks, and files by their suffix.

    Nothing is run. Python is that of the interpreter which checks.
    """

    def unreadable(name: str, text: str, kind: str, first: int) -> Iterator[Problem]:
        try:
            if kind in READERS:
                READERS[kind](text, first)
        except Unreadable as error:
            yield Problem(f"{name}:{error.line}", str(error))

    def blocks(name: str, text: str) -> Iterator[Problem]:
        for tag, code, line in markdown.fences(text):
            yield from unreadable(name, code, tag, line)

    def test(material: Material) -> Iterator[Problem]:
        for name, text in material.texts().items():
            yield from unreadable(name, text, posixpath.splitext(name)[1][1:].lower(), 1)
        yield from _in_markdown(material, blocks)

    return Check("parses", test)


def numbers_within(
    field: str | None = None, *, pattern: str | None = None, low: float = -math.inf, high: float = math.inf
) -> Check:
    """A number is neither below `low` nor above `high`: that of a front-matter field (dotted names too), or those that the
    group of the regular expression `pattern` finds in the main text.

    A number that is not there passes; a field in front matter that cannot be read does not.

    Raises ValueError unless there is one of `field` and `pattern`, a bound, and one group in the pattern.
    """
    if (field is None) == (pattern is None):
        raise ValueError(f"numbers_within needs a field or a pattern, got {field!r} and {pattern!r}")
    if not low <= high or (low == -math.inf and high == math.inf):
        raise ValueError(f"numbers_within needs bounds, low <= high, got {low!r} and {high!r}")
    try:
        finder = re.compile(pattern or "()")
    except re.error as error:
        raise ValueError(f"numbers_within: {pattern!r} is no regular expression: {error}") from error
    if finder.groups != 1:
        raise ValueError(
            f"numbers_within: {pattern!r} must have one group, the number; it has {finder.groups}"
        )

    def outside(value: Any, said: str) -> str | None:
        if not isinstance(value, Real) or isinstance(value, bool) or math.isnan(value):
            return f"{said} must be a number"
        return (
            None if low <= value <= high else f"{said} is {value:g}: it must be within {low:g} and {high:g}"
        )

    def in_text(material: Material) -> Iterator[Problem]:
        for match in finder.finditer(material.main):
            try:
                value: Any = float(match[1])
            except ValueError:
                value = match[1]
            if fault := outside(value, repr(match[0])):
                yield Problem(f"{material.name}:{material.main.count(chr(10), 0, match.start()) + 1}", fault)

    def in_field(material: Material) -> Problem | None:
        front = _front(material)
        if isinstance(front, Problem):
            return front
        try:
            fault = outside(front.find(field), repr(field))
        except KeyError:
            return None
        return Problem(f"{material.name}:{front.line(field)}", fault) if fault else None

    return Check("numbers_within", in_text if field is None else in_field)


def speaks_to_no_judge() -> Check:
    """Nothing in the material speaks to its judge, as far as `withhold` can see."""

    def test(material: Material) -> Iterator[Problem]:
        for passage in withhold(material)[1]:
            yield Problem(passage.place, f"speaks to the judge: {passage.text:.80}")

    return Check("speaks_to_no_judge", test)


def _front(material: Material) -> markdown.FrontMatter | Problem:
    try:
        return markdown.front_matter(material.main)
    except Unreadable as error:
        return Problem(f"{material.name}:{error.line}", str(error))


def _in_markdown(material: Material, look: Callable[[str, str], Iterator[Problem]]) -> Iterator[Problem]:
    """What `look(name, text)` finds in the Markdown texts of the material; one that cannot be read is a problem.

    The main text is one whatever its name says, unless that makes it code.
    """
    for name, text in material.texts().items():
        code = posixpath.splitext(name)[1][1:].lower() in READERS
        if name.lower().endswith(markdown.SUFFIXES) or (name == material.name and not code):
            try:
                yield from look(name, text)
            except Unreadable as error:
                yield Problem(f"{name}:{error.line}", str(error))
