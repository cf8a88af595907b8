"""What may count as evidence, and what in a material speaks to its judge instead of its reader.

Both work on `plain` text: compatibility forms are unified and invisible characters removed, so that less can be hidden
from the eye of a person and shown to a model. Letters of other alphabets that look alike are not seen through.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

from loopkit.judges.material import Material

SHORTEST, LONGEST = 12, 300
"""Characters that a quote has at least ("the" is in any material and says nothing), and at most."""
WITHHELD = "[a passage that spoke to the judge was withheld]"

_JUDGE = r"(?:evaluators?|judges?|graders?|assessors?|raters?|avaliador(?:es|a)?|juiz|ju[íi]zes)"
_WORK = r"(?:this|it|me|us|(?:the|this|my|our) (?:\w+ )?(?:skill|text|work|file|document|candidate|submission|answer|package))"
_TOP = (
    r"(?:1\.0+|1 (?:out )?of 1|10(?:\.0)?\s?/\s?10|100\s?%|(?:full|top) (?:marks?|scores?|points|credit)"
    r"|(?:the |a )?(?:highest|maximum|max|perfect|best)(?: possible)? (?:score|mark|grade|rating)|nota (?:m[áa]xima|10|1[.,]0))"
)
_SPEAKS = re.compile(
    "|".join(
        (
            rf"\b(?:notes?|messages?|instructions?|reminders?|hints?|attention|nota|recado|aviso)[ ,:]+(?:to|for|ao|[àa]|para [oa]s?) (?:the |any |all |every )?(?:\w+ )?{_JUDGE}\b",
            rf"\b{_JUDGE}\b[^.!?\n]{{0,60}}\b(?:must|should|shall|please|will|deve)\b[^.!?\n]{{0,60}}\b(?:scores?|grades?|marks?|ratings?|accept|approve|nota)\b",
            rf"\b(?:you are|act as) (?:now )?(?:an? |the )?{_JUDGE}\b|\bas (?:an?|the) {_JUDGE},? you\b",
            rf"\b(?:give|award|assign|rate|score|grade|mark|d[êe]|atribua) {_WORK}\b[^.!?\n]{{0,50}}?\b{_TOP}",
            rf"\b(?:give|award|assign|d[êe]|atribua|(?:answer|respond)[^.!?\n]{{0,40}}? with) (?:an? |the )?(?:score of )?{_TOP}",
            rf"\b(?:score|grade|rating|mark|nota) (?:is|was|must be|should be|[ée]) (?:{_TOP}|the (?:maximum|highest|best))",
            rf"\b(?:deserves?|merits?|earns?|(?:must|should) (?:be (?:given|awarded|rated|scored|graded)|receive|get|score))\b[^.!?\n]{{0,40}}?{_TOP}",
            r"\b(?:ignore|disregard|forget|override|desconsidere)\b[^.!?\n]{0,30}\b(?:previous|prior|above|earlier|preceding|anteriores|the (?:rubric|scale|anchors|criteria|instructions))\b",
            r"""\b(?:answer|verdict|assessment|overall|final|total)\b[^.!?\n]{0,20}["']?\b(?:score|grade|rating)["']?\s*(?:[:=]|is)\s*["']?(?:1(?:\.0+)?|0?\.9\d*)\b""",
        )
    ).replace(" ", r"\s+"),
    re.IGNORECASE,
)
# Joiners, variation selectors and Hangul fillers: no format characters, and as invisible.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
# A passage ends where its sentence does; a dot inside of a number or a file name ends nothing.
_BOUNDARY = re.compile(r"[.!?](?=\s|$)|\n\s*\n|\n(?=\s*[-*#>|])")


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A passage that speaks to the judge."""

    place: str
    """The file and the line, such as `SKILL.md:7`."""
    text: str


def plain(text: str) -> str:
    """`text` with compatibility forms unified (NFKC) and without characters that cannot be seen."""
    text = _UNSEEN.sub("", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)))
    return "".join(character for character in text if unicodedata.category(character) != "Cf")


def quote_problem(quote: str, material: Material) -> str | None:
    """Why `quote` is no evidence from the material, or None if it is.

    It must stand in the main text or in one of the files, word for word but for white space.
    """
    wanted = " ".join(plain(quote).split())
    if len(wanted) < SHORTEST or sum(map(str.isalnum, wanted)) < SHORTEST // 2:
        return f"quote too short to be evidence: {quote!r:.80}"
    texts = (plain(text).replace(WITHHELD, "\0") for text in material.texts().values())
    if any(wanted in " ".join(text.split()) for text in texts):
        return None
    return f"quote not in the material: {quote!r:.80}"


def passages(material: Material) -> list[str]:
    """The lines of the main text and the files that could be quoted, in order, each once."""
    lines = (line.strip() for text in material.texts().values() for line in plain(text).splitlines())
    found = dict.fromkeys(line[:LONGEST] for line in lines if WITHHELD not in line)
    return [line for line in found if quote_problem(line, material) is None]


def withhold(material: Material) -> tuple[Material, tuple[Passage, ...]]:
    """The material as a judge may see it, and the passages that were withheld because they speak to the judge.

    They are found by patterns ("note to the evaluator", "give this 1.0", "ignore the above", a ready-made score, in
    English and Portuguese), so others may go unseen: how far a judge obeys those is what `calibrate` measures.
    """
    found: list[Passage] = []

    def clean(name: str, text: str) -> str:
        text, kept, end = plain(text), [], 0
        for start, stop in _passages(text):
            line = text.count("\n", 0, start) + 1
            found.append(Passage(place=f"{name}:{line}", text=" ".join(text[start:stop].split())))
            kept += [text[end:start], WITHHELD]
            end = stop
        return "".join([*kept, text[end:]])

    names = {name: clean("the name of a file", name) for name in (material.name, *material.files)}
    shown = replace(
        material,
        name=names[material.name],
        main=clean(material.name, material.main),
        files={names[name]: clean(name, text) for name, text in material.files.items()},
        goal=clean("goal", material.goal),
        plan=clean("plan", material.plan),
        notes=clean("notes", material.notes),
    )
    return shown, tuple(found)


def _passages(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence that speaks to the judge; those that touch are one."""
    start = stop = 0
    for match in _SPEAKS.finditer(re.sub(r"(?<!\n)\n(?!\n)", " ", text)):  # a line's end hides nothing
        if match.start() < stop:
            continue
        if stop:
            yield start, stop
        before = [boundary.end() for boundary in _BOUNDARY.finditer(text, stop, match.start())]
        start = before[-1] if before else stop
        after = _BOUNDARY.search(text, match.end())
        stop = after.end() if after else len(text)
        start += len(text[start:stop]) - len(text[start:stop].lstrip())
    if stop:
        yield start, stop
