"""Cutting a quiz into who says what, and what is said into clauses.

The harness cuts, the model reads: nothing here decides whom a clause is about, which role it names, or
whether it is negated. What cannot be cut for certain is refused with a CutError, never guessed. Texts are
those of the quiz, with quotation marks, apostrophes and dashes in one typography.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .logic import Form
from .wording import Mentions, Roles, straight


@dataclass(frozen=True)
class Said:
    """What one person says in one go. `said` calls the speaker by name, `text` is the sentence it is from."""

    speaker: str
    said: str
    text: str


@dataclass(frozen=True)
class Cut:
    """One statement in clauses, ordered as Formula wants its atoms.

    A lone clause has the form "atom": whether it is a negation is for the reader of the clause.
    """

    speaker: str
    form: Form
    clauses: tuple[str, ...]
    text: str


class CutError(ValueError):
    """A sentence that cannot be cut without guessing."""

    def __init__(self, sentence: str, reason: str) -> None:
        super().__init__(sentence, reason)
        self.sentence = sentence
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason}: {self.sentence!r}"


def sentences(quiz: str, names: Sequence[str], roles: Roles) -> list[Said]:
    """Who says what, in the order of the quiz; introductions and questions are passed over.

    Raises CutError for a statement without exactly one possible speaker, one that is not plainly asserted
    ("Ava denies that …"), and a sentence on somebody's honesty that mentions no role.
    """
    puzzle = Mentions(tuple(names), roles)
    found: list[Said] = []
    introduced = False
    for text in _split_sentences(straight(quiz), puzzle):
        if puzzle.people(text):
            if (introduced or not _introduces(text, puzzle)) and not _is_question(text, puzzle):
                found += _attribute(text, puzzle)
            introduced = True
        elif introduced and _quotations(text, puzzle):
            raise CutError(text, "no speaker")
    return found


def cut(quiz: str, names: Sequence[str], roles: Roles) -> list[Cut]:
    """Every statement of the quiz in clauses, in order.

    Raises CutError where `sentences` does, and for what is not one connective over plain clauses.
    """
    puzzle = Mentions(tuple(names), roles)
    return [Cut(said.speaker, *_clauses(said, puzzle), said.text) for said in sentences(quiz, names, roles)]


def _quotations(text: str, puzzle: Mentions) -> list[re.Match[str]]:
    """The quoted parts that mention a role; other quotation marks are decoration."""
    return [quoted for quoted in _QUOTED.finditer(text) if puzzle.role_words(quoted[0])]


def _introduces(text: str, puzzle: Mentions) -> bool:
    """Whether this first sentence with names merely lists everybody."""
    listed = re.search(rf"(?:{puzzle.name.pattern}(?:,? and |, )?){{{len(puzzle.names)}}}", text)
    kinds = {word.lower() for word in puzzle.role_words(text)}
    return bool(listed) and len(kinds) != 1 and not _quotations(text, puzzle)


# An apostrophe between letters (isn't, D'Arcy) neither opens nor closes; after a letter (James') none opens.
_QUOTED = re.compile(r"""  "[^"]*"  |  (?<!\w)'(?=\S) (?:[^']|(?<=\w)'(?=\w))* '(?!\w)  """, re.VERBOSE)
_END = re.compile(
    r"""
    [.!?…]+["')*]*(?=\s|$)          # full stop, perhaps within a quotation that ends with it
    | \n{2,}                        # end of a paragraph
    | (?<![,:;])\n(?=[^a-z—])       # end of a line, unless the sentence visibly goes on
    """,
    re.VERBOSE,
)


def _split_sentences(quiz: str, puzzle: Mentions) -> Iterator[str]:
    quiz = re.sub(r"[ \t\r]*\n[ \t]*", "\n", quiz.strip())
    # Full stops within names and quotations end no sentence, save the last one of a quotation.
    masked = puzzle.name.sub(lambda name: "N" * len(name[0]), quiz)
    masked = _QUOTED.sub(_mask, masked)
    start = 0
    for end in _END.finditer(masked):
        # '"…!" Ava cried.' goes on: a quotation alone still lacks its speaker.
        complete = re.search(r"\w", _QUOTED.sub("", masked[start : end.end()]))
        goes_on = masked[end.end() :].lstrip()[:1].islower()
        if end[0].startswith("\n\n") or (complete and not goes_on):
            yield _balanced(quiz[start : end.end()].strip())
            start = end.end()
    if quiz[start:].strip():
        yield _balanced(quiz[start:].strip())


def _mask(quoted: re.Match[str]) -> str:
    mark, inside = quoted[0][0], quoted[0][1:-1]
    last = re.search(r"[.!?…]?\s*$", inside)[0]
    return mark + "x" * (len(inside) - len(last)) + last + mark


def _balanced(text: str) -> str:
    if '"' in _QUOTED.sub("", text):
        raise CutError(text, "unbalanced quotation marks")
    return text


_SPEECH = (
    r"\b(?:[Aa]ccording to|sa(?:y|ys|id|ying)|tells?|told|words?|opinion|view|put it|swears?|swore"
    r"|(?:claim|insist|assert|remark|comment|mention|express|answer|add)(?:s|ed|ing)?"
    r"|(?:stat|declar|announc|not)(?:es|ed|ing)|repl(?:ies|ied))\b"
)
# With any of these around it, what is said is denied, merely thought, or made conditional.
_UNASSERTED = re.compile(
    r"\b(?:not?|never|none|nobody|cannot|den(?:y|ies|ied|ying)|doubt\w*|disagree\w*|refus\w+|false\w*|untrue"
    r"|wrong\w*|impossible|unlikely|lie[sd]?|lying|knows?|knew|think\w*|thought|believ\w+|suspect\w*|wonder\w*"
    r"|(?<!was )hear[sd]?|read|learn\w*|discover\w*|see[sn]?|saw|notic\w+|reali[sz]\w+|fear\w*|hop(?:es|ed)"
    r"|wish\w*|pretend\w*|would|could|might|if|whether|unless)\b|n't\b",
    re.IGNORECASE,
)
_HONESTY = re.compile(r"\b(?:lie[sd]?|liars?|lying|truth\w*|honest\w*|same|different)\b", re.IGNORECASE)
_TASK = re.compile(
    r"(?:\W|\b(?:so|now|then|please)\b)*"
    r"(?:determine|find out|figure out|decide|deduce|identify|work out|say|name|tell|state|solve)\b",
    re.IGNORECASE,
)


def _is_question(text: str, puzzle: Mentions) -> bool:
    if _quotations(text, puzzle):
        return False
    return bool(_TASK.match(text)) or (text.endswith("?") and not re.search(_SPEECH, text))


def _attribute(text: str, puzzle: Mentions) -> list[Said]:
    """What is said in a sentence that mentions people; nothing if it is neither on roles nor on honesty."""
    if not puzzle.role_words(text):
        if _HONESTY.search(puzzle.without_names(text)) or _QUOTED.search(text):
            raise CutError(text, "no role is mentioned")
        return []
    quotations = _quotations(text, puzzle)
    if not quotations:
        return [_attribute_unquoted(text, puzzle)]
    frame = text
    for quoted in quotations:
        frame = frame.replace(quoted[0], " … ")
    speaker = _speaker(frame, text, puzzle)
    parts = [quoted[0][1:-1].strip() for quoted in quotations]
    for part, following in pairwise(parts):
        if part[-1] in ".!?…" or not following[0].islower():
            raise CutError(text, "several quotations that do not continue each other")
    found = []
    for said in re.split(r"(?<=[.!?…])\s+", " ".join(parts)):
        if said.endswith("?"):
            raise CutError(text, "a question is no statement")
        if not puzzle.role_words(said):
            raise CutError(text, f"no role is mentioned in {said!r}")
        found.append(Said(speaker, _by_name(said, speaker), text))
    return found


def _attribute_unquoted(text: str, puzzle: Mentions) -> Said:
    refusal = CutError(text, "no speaker apart from what is said")
    for splits in _splits(text, puzzle):
        options = set()
        for frame, said in splits:
            if puzzle.role_words(said):
                try:
                    options.add((_speaker(frame, text, puzzle), frame, said))
                except CutError as error:
                    refusal = error
        if len(options) > 1:
            raise CutError(text, "several ways to tell what is said from who says it")
        for speaker, frame, said in options:
            set_off = re.search(r"^[:—,-]|[:—,-]$", frame.strip())
            if re.search(r"\bI\b", said) and not set_off:
                raise CutError(text, "'I' in reported speech may be the narrator")
            return Said(speaker, _by_name(said, speaker), text)
    raise refusal


def _splits(text: str, puzzle: Mentions) -> Iterator[list[tuple[str, str]]]:
    """The ways to part a frame from what is said, as (frame, said): at a mark; else where speech begins."""
    marked = []
    for mark in re.finditer(r"\bthat\b|[:—,]|\s-\s", text):
        before, after = text[: mark.end()], text[mark.end() :]
        marked.append((before, after))
        if mark[0] != "that":
            marked.append((text[mark.start() :], text[: mark.start()]))
        if mark[0] == ",":
            # A comma sets off much else ('Unlike Ava, …'), so here the frame must speak of speaking.
            marked[-2:] = [split for split in marked[-2:] if re.search(_SPEECH, split[0])]
    yield marked
    begins = rf"(?:{puzzle.name.pattern}|\b(?:if|either|both|it|I)\b)"
    plain = re.match(rf"(.*?{_SPEECH}(?:\s+(?:you|us|me))?)\s+({begins}.*)", text, re.DOTALL)
    yield [(plain[1], plain[2])] if plain else []


def _speaker(frame: str, text: str, puzzle: Mentions) -> str:
    """The one person outside of what is said."""
    people = sorted(set(puzzle.people(frame)))
    if puzzle.role_words(frame):
        raise CutError(text, "a role is mentioned outside of what is said")
    if len(people) != 1:
        raise CutError(text, f"several possible speakers: {', '.join(people)}" if people else "no speaker")
    if doubt := _UNASSERTED.search(puzzle.without_names(frame)):
        raise CutError(text, f"{doubt[0]!r} makes it no plain assertion")
    return people[0]


def _by_name(said: str, speaker: str) -> str:
    """`said` without the punctuation around it, and with the speaker's name for 'I'."""
    said = re.sub(r"\bI(?:\s+am|'m)\b", f"{straight(speaker)} is", said)
    return re.sub(r"\bI\b", straight(speaker), said).strip(" .!…,;:—-\n")


_CONDITIONAL = r"(?:if|whenever|provided(?:\s+that)?)"
_EXACTLY_WHEN = r"(?:if,?\s+and\s+only\s+if,?|iff|(?:exactly|precisely)\s+(?:when|if)|just\s+in\s+case)"
# `a` is the first atom of the formula, `b` the second. The order matters: 'only if' holds an 'if'.
_CONNECTIVES: tuple[tuple[Form, str], ...] = (
    ("iff", rf"(?P<a>.+?),?\s+{_EXACTLY_WHEN}\s+(?P<b>.+)"),
    ("if", rf"{_CONDITIONAL}\s+(?P<a>.+?),?\s+then\s+(?P<b>.+)"),
    ("if", rf"{_CONDITIONAL}\s+(?P<a>.+?),\s+(?P<b>.+)"),
    ("if", r"(?P<a>.+?),?\s+only\s+if\s+(?P<b>.+)"),
    ("if", rf"(?P<b>.+?),?\s+{_CONDITIONAL}\s+(?P<a>.+)"),
    ("if", r"(?P<a>.+?)\s+implies\s+(?:that\s+)?(?P<b>.+)"),
)
# Words that a plain clause on one person and one role has no use for: logic, quantities, pronouns, moods.
_BEYOND = re.compile(
    r"""\b(?: and | or | but | if | iff | then | when | whenever | provided | implies | unless | nor | neither
    | either | both | only | else | otherwise | than | rather | whereas | while | because | except | same
    | exactly | precisely | least | most | every | everyone | all | each | one | two | none | nobody | other
    | others | who | am | we | us | our | he | she | they | his | her | their | you | would | could | might
    | maybe | perhaps | probably )\b""",
    re.VERBOSE | re.IGNORECASE,
)


def _clauses(said: Said, puzzle: Mentions) -> tuple[Form, tuple[str, ...]]:
    form, clauses = _divide(said, puzzle)
    clauses = tuple(clause.strip(" ,;\n") for clause in clauses)
    for clause in clauses:
        if reason := _objection(clause, puzzle):
            raise CutError(said.text, f"{reason} in {clause!r}")
    return form, clauses


def _divide(said: Said, puzzle: Mentions) -> tuple[Form, tuple[str, ...]]:
    for form, pattern in _CONNECTIVES:
        if parts := re.fullmatch(pattern, said.said, re.IGNORECASE | re.DOTALL):
            if not re.match(_CONDITIONAL, said.said, re.IGNORECASE):
                _begin_with_person(said.said, said, puzzle)
            return form, (parts["a"], parts["b"])
    junctions = {word.lower() for word in re.findall(r"\b(?:and|or|but)\b", said.said, re.IGNORECASE)}
    if not junctions:
        return "atom", (said.said,)
    if "or" in junctions and len(junctions) > 1:
        raise CutError(said.text, "both 'and' and 'or'")
    form: Form = "or" if "or" in junctions else "and"
    body = re.sub(r"^either\s+" if form == "or" else r"^both\s+", "", said.said, flags=re.IGNORECASE)
    _begin_with_person(body, said, puzzle)
    junction = r"(?:\s*,\s*(?:(?:and|or|but)\s+)?|\s+(?:and|or|but)\s+)"
    return form, _shared_predicate(form, body, junction, puzzle) or tuple(re.split(junction, body))


def _begin_with_person(text: str, said: Said, puzzle: Mentions) -> None:
    """What precedes the first clause ('It is false that A and B') may govern both."""
    if not puzzle.name.match(text):
        raise CutError(said.text, "its beginning may govern more than the first clause")


def _shared_predicate(form: Form, body: str, junction: str, puzzle: Mentions) -> tuple[str, ...] | None:
    """'A and B are both knights' or 'A or B is a knight', as one clause for each person."""
    verb = r"are(?:\s+(?:both|all|each))?" if form == "and" else "is"
    people = rf"{puzzle.name.pattern}(?:{junction}{puzzle.name.pattern})+"
    shared = re.fullmatch(rf"({people})\s+{verb}\s+(?:an?\s+)?((?i:{puzzle.role.pattern}))", body)
    if not shared:
        return None
    role = puzzle.roles.a(puzzle.roles.means_truthful(shared[2]))
    return tuple(f"{name} is {role}" for name in puzzle.name.findall(shared[1]))


def _objection(clause: str, puzzle: Mentions) -> str | None:
    """Why this is not a plain clause on one person and one role."""
    people, others = puzzle.people(clause), puzzle.without_names(clause)
    if len(people) != 1:
        return f"{len(people) or 'no'} people"
    if len(puzzle.role_words(clause)) != 1:
        return f"{len(puzzle.role_words(clause)) or 'no'} role words"
    if word := _BEYOND.search(others) or re.search(_SPEECH, others):
        return f"{word[0]!r}"
    if not re.search(r"\b(?:is|isn't|was|wasn't|be|being)\b|'s\b", others):
        return "no verb"
    if re.search(rf"{puzzle.role.pattern}.*\b(?:is|was|isn't|wasn't)\b", others, re.IGNORECASE):
        return "a remark on a statement"
    if re.search(r"_'s\b.*\b(?:is|are|was|isn)\b", others):
        return "a relation of somebody"
    return None
