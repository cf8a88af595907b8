"""The words of a puzzle: what roles are called, who people are, how they are introduced and reported.

`Mentions` is the way back: it finds the people and the roles of a puzzle in a text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Roles:
    """The two role words, singular and in lower case; whoever is `truthful` always tells the truth."""

    truthful: str = "knight"
    lying: str = "knave"

    def __post_init__(self) -> None:
        for word in (self.truthful, self.lying):
            if not isinstance(word, str) or not word.strip():
                raise ValueError(f"a role must be a word, got {word!r}")
        if self.truthful == self.lying:
            raise ValueError(f"the two roles must differ, got {self.truthful!r} twice")

    def word(self, truthful: bool) -> str:
        return self.truthful if truthful else self.lying

    def a(self, truthful: bool) -> str:
        """With its article, chosen by the first letter: 'a hero', 'an angel'."""
        word = self.word(truthful)
        return f"{'an' if word[0].lower() in 'aeiou' else 'a'} {word}"

    def plural(self, truthful: bool) -> str:
        return plural(self.word(truthful))

    def means_truthful(self, word: str) -> bool:
        """Whether `word`, in any case and number, is the truth-teller's; ValueError if it is neither's."""
        for truthful in (True, False):
            if word.lower() in (self.word(truthful), self.plural(truthful)):
                return truthful
        raise ValueError(f"not a role: {word!r}")

    def flipped(self) -> Roles:
        """The same words with their jobs swapped."""
        return Roles(self.lying, self.truthful)


def plural(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if re.search(r"([sxz]|[cs]h|[^aeiou]o)$", word) else "s")


ROLES = Roles()
OTHER_ROLES = (
    Roles("saint", "sinner"),
    Roles("pioneer", "laggard"),
    Roles("hero", "villain"),
    Roles("angel", "devil"),
    Roles("altruist", "egoist"),
    Roles("sage", "fool"),
    Roles("oracle", "impostor"),
    Roles("scout", "spy"),
    Roles("guardian", "rogue"),
)


def _listed(words: str) -> tuple[str, ...]:
    return tuple(words.split())


# Some are words, or begin other names: a reader of the text must match whole names, in their case.
COMMON_NAMES = _listed("""
    Abigail Adam Al Alan Alice Amy Ann Anna Anne Art Ava Beth Bob Carl Carla Chloe Claire Clara Dan Daniel
    David Dean Ella Emma Eric Erica Eva Evan Frank George Grace Hope Ian Jack Jackson James Jane Jean
    Joe John Jo Joy Julia Kate Lily Lucas Lucy Luke Marco Maria Mark Mary Max Mia Noah Nora Olive Oliver
    Owen Paul Paula Rob Robin Rose Sam Samuel Sophia Theo Victor Will William Zoey
""")
UNCOMMON_NAMES = _listed("""
    Aelwyn Ahmose Anaïs Anne-Marie Astrid Björk Calixte Céleste Cosmin D'Angelo D'Arcy Drusilla Eirlys
    Eudora Fenwick Françoise Gwendal Hatshepsut Hiroto Ignatius Isolde Jean-Luc Jörg Kenji Kwabena Leocadia
    Mary-Lou Mbali Ngozi Núria O'Brien Oluwaseun Özlem Peregrine Quetzal Rasputin Siobhán T'Pau Tomasz
    Ulrike Vasilisa Wilhelmina Xiomara Yevgenia Zarathustra Zebedee Zoë Þóra
""")

INTROS = (
    "On a remote island everyone is either {a} or {b}: {as_} always tell the truth, and {bs} always lie.",
    "Two kinds of people live in a valley, {as_} and {bs}. {As_} always tell the truth, and {bs} always lie.",
    "Each member of a club is {a} or {b}, never both. {Bs} always lie, while {as_} always tell the truth.",
    "In the town of Halfway, {as_} always tell the truth and {bs} always lie, and there is nobody else.",
)
MEETING = "You meet {count} of them: {names}."
QUESTIONS = (
    "Who is {a}, and who is {b}?",
    "Which of them are {as_}, and which are {bs}?",
    "What is each of them, {a} or {b}?",
)
# `{Said}` opens a sentence of its own, `{said}` continues one.
WORDINGS = (
    '{name} said, "{Said}."',
    "{name} said that {said}.",
    '{name} remarked, "{Said}".',
    "{name} expressed that {said}.",
    "{name} told you that {said}.",
    "{name} stated that {said}.",
    '{name} asserted: "{Said}."',
    '{name}: "{Said}".',
    '{name} — "{Said}."',
    "{name} says: '{Said}.'",
    "{name} let it be known that {said}.",
    "It is the word of {name} that {said}.",
    'According to {name}, "{Said}".',
    "According to {name}, {said}.",
    'In {name}\'s words: "{Said}".',
    'As {name} put it, "{Said}."',
    "The words of {name} were “{Said}”.",
    '"{Said}," {name} claimed.',
    '"{Said}", declared {name}.',
    '"{Said}!" exclaimed {name}.',
    '"{Said}" - {name}.',
    '"{Said}." - {name}.',
    "“{Said},” {name} replied.",
    '"{Said}" is what {name} had to say.',
)
CONNECTED = {"and": "{} and {}", "or": "{} or {}", "if": "if {} then {}", "iff": "{} if and only if {}"}

# Escapes, since in print one cannot tell these characters from others.
_TYPOGRAPHY = str.maketrans("\u2018\u2019\u201c\u201d\u00ab\u00bb\u2013", '\'\'""""\u2014')


def straight(text: str) -> str:
    """The text, no longer or shorter, with one kind of apostrophe, quotation mark and dash."""
    return text.translate(_TYPOGRAPHY)


@dataclass(frozen=True)
class Mentions:
    """Where a `straight` text mentions the people and the roles of one puzzle."""

    names: tuple[str, ...]
    roles: Roles

    @cached_property
    def given(self) -> dict[str, str]:
        """The names as given, by how a straight text spells them."""
        return {straight(name): name for name in self.names}

    @cached_property
    def name(self) -> re.Pattern[str]:
        """Whole names, the longest first: not the Ann of Anna, Mary-Ann or D'Ann, but that of Ann's."""
        any_name = "|".join(map(re.escape, sorted(self.given, key=len, reverse=True)))
        return re.compile(rf"(?<!\w)(?<!\w[-'])(?:{any_name})(?!\w)(?!-\w)")

    @cached_property
    def role(self) -> re.Pattern[str]:
        """Either role, singular or plural, in any case."""
        singular = [self.roles.word(truthful) for truthful in (True, False)]
        words = "|".join(map(re.escape, [*map(plural, singular), *singular]))
        return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)

    def people(self, text: str) -> list[str]:
        """Everybody mentioned, once for each mention."""
        return [self.given[mention] for mention in self.name.findall(text)]

    def without_names(self, text: str) -> str:
        """For looking at the other words: a person may be called Angel, Hope or Will."""
        return self.name.sub("_", text)

    def role_words(self, text: str) -> list[str]:
        return self.role.findall(self.without_names(text))
