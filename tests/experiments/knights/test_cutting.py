import pickle
import re

import pytest

from experiments.knights.cutting import Cut, CutError, cut, sentences
from experiments.knights.logic import Atom, Formula, Statement, solve
from experiments.knights.puzzles import PERTURBATIONS, generate
from experiments.knights.wording import ROLES, Roles

NAMES = ("Ava", "Bob", "Cy", "Ann", "Anna", "Mary-Ann", "D'Arcy", "James", "Will")
INTRO = (
    "On the isle of knaves and knights, knights tell the truth and a knave lies. "
    "You meet Ava, Bob, Cy, Ann, Anna, Mary-Ann, D'Arcy, James, and Will. "
)
QUESTION = " So who is a knight? Determine whether Ava is a knight or a knave."


def cut_in_puzzle(text):
    return cut(INTRO + text + QUESTION, NAMES, ROLES)


# Clauses are about Bob and Cy throughout, so that a table of wordings stays readable.
BOB, CY = "Bob is a knave", "Cy is a knight"
WORDINGS = [
    ("Ava says that Bob is a knave.", "Ava", "atom", BOB),
    ("Ava says Bob is a knave.", "Ava", "atom", BOB),
    ("Ava told us Bob is a knave.", "Ava", "atom", BOB),
    ("Ava: Bob is a knave.", "Ava", "atom", BOB),
    ("Bob is a knave, says Ava.", "Ava", "atom", BOB),
    ("I am a knave, says Ava.", "Ava", "atom", "Ava is a knave"),
    ('Ava was heard saying, "Bob is a knave".', "Ava", "atom", BOB),
    ("Bob is a knave — or so Ava says.", "Ava", "atom", BOB),
    ("In the opinion of Ava, Bob is a knave.", "Ava", "atom", BOB),
    ("When asked, Ava answered that Bob is a knave.", "Ava", "atom", BOB),
    ("Ava, smiling, insists that Bob is a knave.", "Ava", "atom", BOB),
    ("It is Ava's view that Bob is a knave.", "Ava", "atom", BOB),
    ("‘Bob isn’t a knave,’ muttered Ava.", "Ava", "atom", "Bob isn't a knave"),
    ("«Bob is a knave!» cried Ava.", "Ava", "atom", BOB),
    ("\"Bob is a knave!\" Ava cried out.", "Ava", "atom", BOB),
    ("James' words: 'Bob is a knave.'", "James", "atom", BOB),
    ("Will's message reads \"Bob is a knave\".", "Will", "atom", BOB),
    ("- Ava: \"Bob is a knave\"", "Ava", "atom", BOB),
    ("\"Bob is a knave\"\n— Ava\n", "Ava", "atom", BOB),
    ("Ava whispers,\n\"Bob is a knave.\"", "Ava", "atom", BOB),
    ("According to Ava, it is false that Bob is a knave.", "Ava", "atom", "it is false that Bob is a knave"),
    ("Ava says it is not the case that Bob is a knave.", "Ava", "atom", "it is not the case that Bob is a knave"),
    ("Mary-Ann says, \"Ann is no knave.\"", "Mary-Ann", "atom", "Ann is no knave"),
    ("Ann says, \"Anna is a knave.\"", "Ann", "atom", "Anna is a knave"),
    ("D’Arcy says, \"I’m not a knave.\"", "D'Arcy", "atom", "D'Arcy is not a knave"),
    ("Ava said, \"Bob is a knave, and I am a knight.\"", "Ava", "and", BOB, "Ava is a knight"),
    ("Ava said, \"Bob is a knave, but Cy is a knight.\"", "Ava", "and", BOB, CY),
    ("\"Bob is a knave,\" said Ava, \"and Cy is a knight.\"", "Ava", "and", BOB, CY),
    ("Ava says that both Bob is a knave and Cy is a knight.", "Ava", "and", BOB, CY),
    ("Ava: \"Bob is a knave, Cy is a knight and Ann is a knave.\"", "Ava", "and", BOB, CY, "Ann is a knave"),
    ("Ava: \"Bob is a knave, Cy is a knight, and Ann is a knave.\"", "Ava", "and", BOB, CY, "Ann is a knave"),
    ("Ava: \"Bob and Cy are both knights.\"", "Ava", "and", "Bob is a knight", CY),
    ("Ava: \"Bob, Cy, and I are knights.\"", "Ava", "and", "Bob is a knight", CY, "Ava is a knight"),
    ("Ava: \"Either Bob or Cy is a knight.\"", "Ava", "or", "Bob is a knight", CY),
    ("Ava says either Bob is a knave or Cy is a knight.", "Ava", "or", BOB, CY),
    ("Ava says, \"Bob is a knave, or Cy is a knight.\"", "Ava", "or", BOB, CY),
    ("Ava says that if Bob is a knave, then Cy is a knight.", "Ava", "if", BOB, CY),
    ("According to Ava, if Bob is a knave then Cy is a knight.", "Ava", "if", BOB, CY),
    ("Ava says, \"If Bob is a knave, Cy is a knight.\"", "Ava", "if", BOB, CY),
    ("Ava says, \"Cy is a knight if Bob is a knave.\"", "Ava", "if", BOB, CY),
    ("Ava says, \"Bob is a knave only if Cy is a knight.\"", "Ava", "if", BOB, CY),
    ("Ava says, \"Bob is a knave implies Cy is a knight.\"", "Ava", "if", BOB, CY),
    ("Ava says, \"Cy is a knight, provided that Bob is a knave.\"", "Ava", "if", BOB, CY),
    ("Ava says, \"If it is false that Bob is a knave, Cy is a knight.\"", "Ava", "if", "it is false that " + BOB, CY),
    ("Ava says, \"Bob is a knave if, and only if, Cy is a knight.\"", "Ava", "iff", BOB, CY),
    ("Ava says, \"Bob is a knave iff Cy is a knight.\"", "Ava", "iff", BOB, CY),
    ("Ava says that Bob is a knave exactly when Cy is a knight.", "Ava", "iff", BOB, CY),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "speaker", "form", "clauses"), [(t, s, f, tuple(c)) for t, s, f, *c in WORDINGS]
)
def test_wordings_that_the_generator_does_not_know(text, speaker, form, clauses):
    # A neighbour on either side, since a sentence must also end where it ends.
    (before, found, after) = cut_in_puzzle(
        f'Will said, "Cy is a knave." {text} \n"James is a knight!" shouted Anna.'
    )
    assert (before.speaker, after.speaker) == ("Will", "Anna")
    assert (found.speaker, found.form, found.clauses) == (speaker, form, clauses)


REFUSED = [
    ("Bob is a knave.", "no speaker"),
    ('"Bob is a knave." It was dark.', "no speaker"),
    ('Somebody shouts, "I am a knight."', "no speaker"),
    ("Ava and Bob are both knights.", "no speaker"),
    ("Unlike Ava, Bob is a knave.", "no speaker"),
    ("Ava, a friend of James, is a knave.", "no speaker"),
    ('Ava told Bob, "Cy is a knave."', "several possible speakers: Ava, Bob"),
    ("Ava and Bob said that Cy is a knave.", "several possible speakers: Ava, Bob"),
    ('Ava said "Bob is a knave" and Bob said "Ava is a knave".', "several possible speakers: Ava, Bob"),
    ("Ava denies that Bob is a knave.", "'denies' makes it no plain assertion"),
    ('Ava never said, "Bob is a knave."', "'never' makes it no plain assertion"),
    ("Ava heard that Bob is a knave.", "'heard' makes it no plain assertion"),
    ("Ava would tell you that Bob is a knave.", "'would' makes it no plain assertion"),
    ('If Ava says "Bob is a knave", stay.', "'If' makes it no plain assertion"),
    ('Ava, a knight, said, "Bob is a knave."', "outside of what is said"),
    ('Ava asked, "Is Bob a knave?"', "a question is no statement"),
    ('Ava said, "Bob is a knave.', "unbalanced quotation marks"),
    ('"Bob is a knave." Ava said "Cy is a knave."', "several quotations"),
    ("According to Ava, it is true, I say, that Bob is a knave.", "several ways"),
    ("Ava says that I am a knave.", "'I' in reported speech"),
    ("Ava says that Bob is lying.", "no role is mentioned"),
    ('Ava says, "Bob and Cy are alike."', "no role is mentioned"),
    ("Ava says that she is a knave.", "no people in 'she is a knave'"),
    ('Ava says, "We are both knaves."', "no people in"),
    ('Ava says, "Neither Bob nor Cy is a knave."', "2 people in"),
    ('Ava says, "Bob is a knave, Cy is a knight."', "2 people in"),
    ('Ava says, "If Bob is a knave and Cy is a knave then Ann is a knight."', "2 people in"),
    ('Ava says, "Bob is a knave and Cy is a knave or Ann is a knight."', "both 'and' and 'or'"),
    ('Ava says, "Bob is a knight or a knave."', "no people in 'a knave'"),
    ('Ava says, "Bob is a knight, not a knave."', "2 role words"),
    ('Ava says, "Bob is a knight and Cy a knave."', "no verb in 'Cy a knave'"),
    ('Ava says, "It is false that Bob is a knave and Cy is a knight."', "may govern more"),
    ('Ava says, "Exactly one of Bob and Cy is a knight."', "may govern more"),
    ('Ava says, "Bob is the only knight."', "'only' in"),
    ('Ava says, "Bob is a knight unless Cy is a knave."', "2 people in"),
    ("Ava's claim that Bob is a knave is right.", "a remark on a statement"),
    ('Ava says, "Bob would say he is a knave."', "'would' in"),
    ("Ava says, \"Bob's sister is a knight.\"", "a relation of somebody in"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_refuses_rather_than_guesses(text, reason):
    with pytest.raises(CutError) as caught:
        cut_in_puzzle(text)
    assert reason in caught.value.reason
    assert text in str(caught.value).replace("\\'", "'")


def test_people_may_speak_often_or_never():
    quiz = INTRO + 'Bob says, "I am a knight. Cy is not a knave!" Ava is quiet. Bob adds that Cy is a knave.'
    assert [(said.speaker, said.said) for said in sentences(quiz, NAMES, ROLES)] == [
        ("Bob", "Bob is a knight"),
        ("Bob", "Cy is not a knave"),
        ("Bob", "Cy is a knave"),
    ]
    assert cut(INTRO, NAMES, ROLES) == []


def test_an_introduction_may_mention_roles():
    quiz = "Here are Ava and Bob, each of whom is a knight or a knave. Ava says that Bob is a knave."
    assert [said.speaker for said in sentences(quiz, ("Ava", "Bob"), ROLES)] == ["Ava"]


def test_without_an_introduction_the_first_sentence_may_be_a_statement():
    assert cut('Ava: "Bob is a knave."', ("Ava", "Bob"), ROLES) == [
        Cut("Ava", "atom", ("Bob is a knave",), 'Ava: "Bob is a knave."')
    ]


def test_names_with_full_stops_roles_as_names_and_typographic_names():
    names, roles = ("St. John", "Angel", "O’Hara"), Roles("angel", "devil")
    quiz = (
        "Meet St. John, Angel, and O’Hara. O'Hara says that St. John is an angel. Angel: “O’Hara is a devil.”"
    )
    assert [(one.speaker, one.clauses) for one in cut(quiz, names, roles)] == [
        ("O’Hara", ("St. John is an angel",)),
        ("Angel", ("O'Hara is a devil",)),
    ]


def test_the_error_survives_a_process_boundary():
    error = pickle.loads(pickle.dumps(CutError("Ava is.", "no speaker")))
    assert (error.sentence, error.reason) == ("Ava is.", "no speaker")


def read(clause, puzzle):
    """A perfect reader of the generator's own clauses."""
    name = next(
        name for name in sorted(puzzle.names, key=len, reverse=True) if clause.startswith(f"{name} is ")
    )
    negation, role = re.fullmatch(r" is (not )?an? (\w+)", clause.removeprefix(name)).groups()
    return Atom(name, puzzle.roles.means_truthful(role) is not bool(negation))


@pytest.mark.parametrize("people", range(2, 9))
@pytest.mark.parametrize("perturb", PERTURBATIONS)
def test_with_perfect_reading_every_generated_puzzle_is_solved(people, perturb):
    for puzzle in generate(people, 2, 8 if people < 6 else 3, perturb):
        cuts = cut(puzzle.quiz, puzzle.names, puzzle.roles)
        gold = [
            (s.speaker, "atom" if s.formula.form == "not" else s.formula.form, len(s.formula.atoms))
            for s in puzzle.statements
        ]
        assert [(one.speaker, one.form, len(one.clauses)) for one in cuts] == gold
        assert all(one.text in puzzle.quiz.translate({0x201C: '"', 0x201D: '"'}) for one in cuts)
        read_back = [
            Statement(one.speaker, Formula(one.form, tuple(read(clause, puzzle) for clause in one.clauses)))
            for one in cuts
        ]
        assert solve(puzzle.names, read_back) == [dict(zip(puzzle.names, puzzle.solution, strict=True))]
