"""Reading who is what from a model's free text.

The text is taken apart into assertions ('Ava is a knight'), leaving out what is quoted, supposed, conditional,
asked or reported. What follows the last marker of an answer counts first; failing that, the last word on each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from .wording import Mentions, Roles, straight

AnswerErrorKind = Literal["empty", "malformed"]


class AnswerError(ValueError):
    """No answer can be read: `kind` says whether there was any text, `detail` what is wrong with it."""

    def __init__(self, kind: AnswerErrorKind, detail: str) -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


def parse(text: str, names: Sequence[str], roles: Roles) -> dict[str, bool]:
    """Who tells the truth according to the final answer in `text`: every one of `names`, in their order.

    After a marker ('Answer:', 'Conclusion:', 'final answer', boxed) the last complete assignment counts; without
    one, the last assertion on each person. Raises AnswerError for blank text, for somebody left out, and for
    somebody given both roles, be it in one breath or before the assignment after a marker is complete.
    """
    if not text.strip():
        raise AnswerError("empty", "no text")
    puzzle = Mentions(tuple(names), roles)
    plain = _plain(text, puzzle)
    for marker in reversed(list(_MARKER.finditer(plain))):
        # An answer may be quoted as a whole, unlike anything else that counts.
        tail = re.sub(r'^"?[\s:=]*"([^"\n]*)"', r" \1", plain[marker.end() :])
        if answer := _last_complete(_assertions(tail, puzzle), len(names)):
            return {name: answer[name] for name in names}
    last = _last_words(list(_assertions(plain, puzzle)))
    if missing := [name for name in names if name not in last]:
        raise AnswerError("malformed", f"no role for {', '.join(missing)}")
    return {name: last[name] for name in names}


@dataclass(frozen=True)
class _Assertion:
    person: str
    truthful: bool
    breath: int
    """The sentence it is from; 'Knights: …' and the 'Knaves: …' that follows are one."""


def _last_complete(assertions: Iterator[_Assertion], people: int) -> dict[str, bool] | None:
    """The last assignment of everybody, where each begins after the one before is complete."""
    complete: dict[str, bool] | None = None
    current: dict[str, bool] = {}
    for said in assertions:
        if current.get(said.person, said.truthful) is not said.truthful:
            if complete is None:
                raise AnswerError("malformed", f"{said.person} is given both roles")
            current = {}
        current[said.person] = said.truthful
        if len(current) == people:
            complete, current = current, {}
    return complete


def _last_words(assertions: Sequence[_Assertion]) -> dict[str, bool]:
    last = {said.person: said for said in assertions}
    for said in assertions:
        final = last[said.person]
        if said.breath == final.breath and said.truthful is not final.truthful:
            raise AnswerError("malformed", f"{said.person} is given both roles")
    return {person: said.truthful for person, said in last.items()}


_MARKER = re.compile(
    r"final\s+answer|\\boxed|<answer>|\bin\s+conclusion\b|\b(?:answer|conclusion)\b(?=\"?\s*(?:is\b|[:=\n]))",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"""  "[^"\n]*"  |  (?<!\w)'(?=\S) (?:[^'\n]|(?<=\w)'(?=\w))* '(?!\w)  """, re.VERBOSE)
_SUPPOSED = re.compile(
    r"\b(?:iff?|suppos\w*|assum\w*|imagin\w*|would|whether|unless|contradict\w*|case\s+\w+:)(?!\w)|^\W*then\b|\?$",
    re.IGNORECASE,
)
# From the verb to the conclusion drawn from it.
_REPORTED = re.compile(
    r"\b(?:says|said|claims|claimed|states|stated|asserts|asserted|according\s+to)\b"
    r".*?(?=\b(?:so|therefore|thus|hence|means)\b|$)",
    re.IGNORECASE,
)


def _plain(text: str, puzzle: Mentions) -> str:
    """Without mark-up, and with a list of names below a heading on the line of the heading."""
    text = re.sub(r"\\(?:text|math)\w*\{([^{}]*)\}", r"\1", straight(text))
    text = re.sub(r"[*`#$]|__", "", text)
    return re.sub(rf"\s*\n\s*(?:[-•+]|\d+[.)])?\s*(?={puzzle.name.pattern}[,;.]?\s*(?:\n|$))", ", ", text)


def _assertions(text: str, puzzle: Mentions) -> Iterator[_Assertion]:
    pattern = _assertion_pattern(puzzle)
    breath, listing = 0, False
    for sentence in re.split(
        r"\n|(?<=[.!?;])\s+", _QUOTED.sub(lambda quoted: _unquoted(quoted, puzzle), text)
    ):
        if not sentence.strip() or _SUPPOSED.search(sentence.strip()):
            continue
        found = list(pattern.finditer(_REPORTED.sub("", sentence)))
        lists = any(match["label"] for match in found)
        breath += not (lists and listing)
        listing = lists
        for match in found:
            for person, truthful in _read(match, puzzle):
                yield _Assertion(person, truthful, breath)


def _unquoted(quoted: re.Match[str], puzzle: Mentions) -> str:
    """Nothing for a quoted statement, which restates the puzzle; the word for a quoted word, as in JSON."""
    inside = quoted[0][1:-1]
    states = puzzle.role_words(inside) and (puzzle.people(inside) or re.search(r"\b(?:I|[Ww]e)\b", inside))
    return "" if states else inside


def _assertion_pattern(puzzle: Mentions) -> re.Pattern[str]:
    """'A and B are knights', 'both are knights', 'The knights are A and B'; of these, whatever comes first."""
    name, role = f"(?-i:{puzzle.name.pattern})", puzzle.role.pattern
    people = rf"(?>{name}(?:(?:\s*[,&/]\s*(?:and\s+)?|\s+(?:and|nor)\s+){name})*)"
    glue = (
        r"(?:[\s:=|(>→—\-&]|,?\s*\b(?:role|type|identity)\b|'s\b|'re\b|\b(?:is|are|was|were|an?|the|both|all"
        r"|each|indeed|also|thus|therefore|then|must\s+be|has\s+to\s+be|have\s+to\s+be|in\s+fact|[a-z]+ly"
        r"|not|no|isn't|aren't|cannot\s+be|can't\s+be)\b)*"
    )
    # A second role belongs to the first, unless it opens a list of its own ('…, knaves: Bob').
    second = rf"(?:\s*(?:,|/|\bor\b|\band\b)\s*)+(?:an?\s+)?{role}(?!\s*(?:[:=—\-]|is\b|are\b|{name}))"
    roles = rf"{role}(?:{second})*"
    group = r"both|all|everyone|everybody|neither|none|nobody|no\s+one"
    members = r"(?:\s+(?:of\s+(?:them|the\s+\w+)|the|two|three|four|five|six|seven|eight|\d|people))*"
    return re.compile(
        rf"(?P<neither>\bneither\s+)?(?P<people>{people})(?P<glue>{glue})(?P<roles>{roles})"
        r"(?P<respectively>,?\s+respectively)?"
        rf"|(?<!not )\b(?P<group>(?:they\s+are\s+)?(?:{group})){members}(?P<verb>{glue})(?P<shared>{roles})"
        # 'knights and knaves: …' names a subject and opens no list.
        rf"|{role}\s*(?:\band\b|\bor\b|[&/])\s*(?:an?\s+|the\s+)?{role}"
        rf"|(?P<label>{role})(?:\s*\(\w+\))?\s*(?:[:=—\-]|\bis\b|\bare\b)[\s>\[(,]*"
        rf"(?P<listed>{people})(?!\s*(?:[:=]|is\b|are\b))",
        re.IGNORECASE,
    )


def _read(match: re.Match[str], puzzle: Mentions) -> list[tuple[str, bool]]:
    """The people and whether they tell the truth; nothing where the wording leaves it open."""
    if match["label"]:
        truthful = puzzle.roles.means_truthful(match["label"])
        return [(person, truthful) for person in puzzle.people(match["listed"])]
    if match["people"]:
        people, glue, words = puzzle.people(match["people"]), match["glue"], match["roles"]
        negated = bool(match["neither"])
    elif match["group"]:
        group, glue, words = match["group"].lower(), match["verb"], match["shared"]
        of_two = group.endswith(("both", "neither"))
        # 'All knights tell the truth' says nothing of anybody here.
        if not re.search(r"\b(?:is|are)\b|[:=]", group + glue) or (of_two and len(puzzle.names) != 2):
            return []
        people, negated = list(puzzle.names), group.startswith(("ne", "no"))
    else:
        return []
    if re.search(r"(?:\bnot|n't)\s+(?:both|all)\b", glue) or re.search(r"/|\bor\b", words):
        return []
    negated ^= bool(re.search(r"\b(?:not|no|cannot)\b|n't\b", glue))
    meant = [puzzle.roles.means_truthful(word) is not negated for word in puzzle.role.findall(words)]
    if match["respectively"] and len(meant) == len(people):
        return list(zip(people, meant, strict=True))
    return [(person, truthful) for person in people for truthful in meant]
