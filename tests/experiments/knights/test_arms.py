"""The arms: how each ends under models that know everything or nothing, and what a model gets to see."""

import asyncio
import json
import re
from dataclasses import replace

import pytest
from pydantic import ValidationError
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models.wrapper import WrapperModel

from experiments.knights import Params, grade, prompts, puzzles
from experiments.knights.arms import (
    ARMS,
    Reading,
    Solved,
    judge,
    make,
    program_in,
    run_program,
    solve_readings,
)
from experiments.knights.logic import Atom, Formula, Statement
from experiments.knights.puzzles import Puzzle, generate, save
from experiments.knights.wording import ROLES
from loopkit import Failure, resolve
from loopkit.models.simulated import POLICIES
from loopkit.sandbox import run_python

from .test_logic import brute_force


async def play(arm, puzzle, model, max_iterations=3):
    """The outcome and its grade."""
    model = resolve(model)
    outcome = await make(arm, puzzle, model, max_iterations=max_iterations, max_tokens=250).run(puzzle.quiz)
    return outcome, grade(outcome, puzzle)


class Spy(WrapperModel):
    """Notes everything that a model is sent."""

    def __init__(self, wrapped):
        super().__init__(resolve(wrapped))
        self.sent = []

    async def request(self, messages, model_settings, model_request_parameters):
        self.sent.append((messages, model_settings, model_request_parameters))
        return await self.wrapped.request(messages, model_settings, model_request_parameters)

    @property
    def said(self):
        """Per request all there was to read: turns, instructions, settings and the shape of the answer."""
        return [
            (
                [part.content for message in messages for part in message.parts],
                [message.instructions for message in messages if isinstance(message, ModelRequest)],
                dict(settings),
                repr(params.output_object),
            )
            for messages, settings, params in self.sent
        ]


# --- how the arms end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("arm", ARMS)
async def test_a_model_that_knows_everything_is_always_right(arm):
    for people in (2, 3, 5):
        for puzzle in generate(people, 3, 2, "names"):
            outcome, result = await play(arm, puzzle, "simulated:oracle")
            assert result.result == "correct", (result, puzzle.quiz)
            assert (len(outcome.history), outcome.stopped_by.gate) == (1, "Threshold")


async def test_a_model_that_knows_nothing_is_hardly_ever_right_under_clauses():
    right = total = 0
    for people in (2, 3, 4, 5):
        for puzzle in generate(people, 8, 25):
            _, result = await play("clauses", puzzle, "simulated:random", max_iterations=1)
            right, total = right + (result.result == "correct"), total + 1
            assert result.result in ("correct", "wrong", "failed")
    assert total == 100 and right <= 5


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("policy", ["empty", "truncated", "malformed"])
async def test_a_useless_answer_is_a_typed_failure_and_never_a_wrong_one(arm, policy):
    outcome, result = await play(arm, generate(3, 4, 1)[0], f"simulated:{policy}")
    assert (result.result, result.kind) == ("failed", policy)
    assert all(turn.error.typed for turn in outcome.history)
    assert len(outcome.history) == (3 if arm == "clauses" else 1)


@pytest.mark.parametrize("arm", ["sentence", "clauses"])
async def test_a_puzzle_that_cannot_be_cut_is_a_failure(arm):
    quiz = "A knight always tells the truth, a knave always lies. You meet Ava and Bob. Ava denies that Bob is a knave."
    puzzle = Puzzle(quiz, ("Ava", "Bob"), (True, True))
    _, result = await play(arm, puzzle, "simulated:random")
    assert (result.result, result.kind) == ("failed", "uncut")


async def test_trouble_that_is_not_the_models_is_an_error():
    puzzle = replace(generate(2, 4, 1)[0], statements=None)
    _, result = await play("clauses", puzzle, "simulated:oracle")  # nobody told it the answer
    assert (result.result, result.kind) == ("error", "UserError")


def test_an_unknown_arm_is_refused():
    with pytest.raises(ValueError, match="reasoning, program, sentence, clauses, got 'guess'"):
        make("guess", generate(2, 4, 1)[0], resolve("simulated:random"), max_iterations=1, max_tokens=1)


# --- what a model gets to see -------------------------------------------------------------------------------


def opposite(atom):
    return Atom(atom.person, not atom.truthful)


@pytest.mark.parametrize("arm", ARMS)
async def test_the_truth_never_reaches_a_model(arm):
    # The same text with another truth: whatever a model is sent must be the same to the letter.
    puzzle = generate(4, 6, 1)[0]
    other = replace(
        puzzle,
        solution=tuple(not truthful for truthful in puzzle.solution),
        statements=tuple(
            Statement(said.speaker, replace(said.formula, atoms=tuple(map(opposite, said.formula.atoms))))
            for said in puzzle.statements
        ),
        meta={},
    )
    spies = [Spy("simulated:random"), Spy("simulated:random")]
    for spy, told in zip(spies, (puzzle, other), strict=True):
        await play(arm, told, spy, max_iterations=2)
    assert spies[0].said == spies[1].said != []
    text = json.dumps(spies[0].said)
    told = [f"{n} is {puzzle.roles.a(t)}." for n, t in zip(puzzle.names, puzzle.solution, strict=True)]
    assert " ".join(told) not in text
    assert str(dict(zip(puzzle.names, puzzle.solution, strict=True))) not in text


async def test_a_clause_misread_is_read_again_with_the_judges_words(monkeypatch):
    asked = []

    def scripted(request):
        asked.append(request.prompt)
        answer = request.expected
        if len(asked) == 1:  # about somebody else
            options = request.schema["properties"]["response"]["enum"]
            answer = next(option for option in options if option.split(" is ")[0] not in request.prompt)
        return json.dumps({"response": answer})

    monkeypatch.setitem(POLICIES, "scripted", scripted)
    puzzle, spy = generate(3, 2, 1)[0], Spy("simulated:scripted")
    outcome, result = await play("clauses", puzzle, spy)
    assert result.result == "correct"
    assert [turn.decision for turn in outcome.history] == ["keep", "keep"]
    first, second = outcome.history
    assert first.score < 1 == second.score
    assert first.verdict.feedback.blocking
    half = len(spy.said) // 2
    assert sorted(asked[:half]) == sorted(asked[half:])  # everything is read again
    for turns, instructions, _, _ in spy.said[:half]:
        assert set(instructions) <= {prompts.CLAUSE_INSTRUCTIONS, None}
        assert turns[:-1] == [text for example in prompts.CLAUSE_EXAMPLES for text in example]
    for turns, instructions, _, _ in spy.said[half:]:
        assert all(words in instructions[-1] for words in first.verdict.feedback.blocking)
        assert sorted(turns[:-1]) == sorted(text for example in prompts.CLAUSE_EXAMPLES for text in example)


async def test_clauses_give_up_after_the_turns_they_have():
    puzzle = generate(5, 2, 1)[0]
    outcome, result = await play("clauses", puzzle, "simulated:random", max_iterations=2)
    assert (result.result, len(outcome.history), outcome.stopped_by.gate) == ("failed", 2, "MaxIterations")


# --- judge and grade ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solutions", "astray", "score", "asks"),
    [
        (1, (), 1.0, 0),
        (0, (), 0.0, 1),
        (4, (), 0.25, 1),
        (1, ("x",), 0.75, 1),
        (2, ("x", "y"), 0.25, 3),
    ],
)
def test_full_marks_for_one_solution_with_every_statement_accounted_for(solutions, astray, score, asks):
    verdict = judge(None, Solved(solutions=({},) * solutions, statements=4, astray=astray))
    assert verdict.score == pytest.approx(score)
    assert len(verdict.feedback.blocking) == asks
    assert all(any(text in line for line in verdict.feedback.blocking) for text in astray)


def test_readings_are_solved_as_logic_says():
    names = ("Ava", "Bob")
    puzzle = Puzzle("quiz", names, (True, False))

    def reading(speaker, form, *lines):
        return Reading(text=f"{speaker} spoke", speaker=speaker, form=form, clauses=lines, lines=lines)

    readings = [
        reading("Ava", "atom", "Bob is not a knight"),
        reading("Bob", "and", "Bob is a knight", "Ava is a knave"),
    ]
    meant = [
        Statement("Ava", Formula("atom", (Atom("Bob", False),))),
        Statement("Bob", Formula("and", (Atom("Bob", True), Atom("Ava", False)))),
    ]
    solved = solve_readings(readings, puzzle)
    assert [dict(found) for found in solved.solutions] == brute_force(names, meant)
    assert (solved.statements, solved.astray) == (2, ())
    strayed = replace(readings[0], clauses=("Ava is not a knight",))
    assert solve_readings([strayed, readings[1]], puzzle).astray == ("Ava spoke",)


def test_a_person_is_mentioned_by_the_whole_name_in_any_typography():
    def read(names, clause, line):
        reading = Reading(text="said", speaker=names[0], form="atom", clauses=(clause,), lines=(line,))
        return solve_readings([reading], Puzzle("quiz", names, (True, True))).astray

    assert read(("Ann", "Anna"), "Anna is a knight", "Ann is a knight") == ("said",)
    assert read(("Ann", "Anna"), "Anna is a knight", "Anna is a knight") == ()
    assert read(("Anne-Marie", "Anne"), "Anne-Marie is a knave", "Anne is a knave") == ("said",)
    for name in ("D\u2019Angelo", "D'Angelo"):
        # Clauses come in one typography, whatever the puzzle's.
        assert read((name, "Bob"), "D'Angelo is a knight", f"{name} is a knight") == ()
        assert read((name, "Bob"), "Bob is a knight", f"{name} is a knight") == ("said",)


async def test_a_curly_apostrophe_in_a_name_leads_nobody_astray():
    quiz = "A knight always tells the truth, a knave always lies. You meet D\u2019Angelo and Bob. D\u2019Angelo said, \u201cBob is a knight and D\u2019Angelo is a knight.\u201d Bob said that D\u2019Angelo is a knave."
    names = ("D\u2019Angelo", "Bob")
    said = (
        Statement(names[0], Formula("and", (Atom("Bob", True), Atom(names[0], True)))),
        Statement("Bob", Formula("atom", (Atom(names[0], False),))),
    )
    _, result = await play("clauses", Puzzle(quiz, names, (False, True), statements=said), "simulated:oracle")
    assert result.result == "correct", result


@pytest.mark.parametrize("atoms", [1, 3])
async def test_gold_readings_of_other_sentences_change_nothing(atoms):
    puzzle = next(
        puzzle
        for puzzle in generate(3, 5, 20)
        if {len(statement.formula.atoms) for statement in puzzle.statements} == {1, 2}
    )
    form = "atom" if atoms == 1 else "and"
    wrong = Statement(puzzle.names[0], Formula(form, (Atom(puzzle.names[0], True),) * atoms))
    alien = replace(puzzle, statements=(wrong,) * len(puzzle.statements))
    spies, readings = [], []
    for told in (replace(puzzle, statements=None), alien):
        spies.append(Spy("simulated:random"))
        outcome, _ = await play("clauses", told, spies[-1], max_iterations=1)
        readings.append(outcome.history[0].candidate)
    assert spies[0].said == spies[1].said
    assert readings[0] == readings[1]
    assert all(len(reading.lines) == len(reading.clauses) for reading in readings[1])
    assert {len(reading.lines) for reading in readings[1]} == {1, 2}


# --- prompts ------------------------------------------------------------------------------------------------


def test_the_worked_examples_have_one_solution_and_their_programs_print_it():
    assert len(prompts.PROGRAM_EXAMPLES) >= 2
    for quiz, program in prompts.PROGRAM_EXAMPLES:
        words = dict(prompts.REASONING_EXAMPLES)[quiz]
        run = asyncio.run(run_program(program_in(program)))
        (solution,) = run.solutions
        # The roles as the quiz has them: '<truthful>s, who always tell the truth' or '<Truthful>s always tell …'.
        truthful, lying = (
            re.search(pattern, quiz)[1].lower()
            for pattern in (r"(\w+)s(?:, who)? always tell the truth", r"(\w+)s(?:, who)? always lie")
        )
        told = " ".join(
            f"{n} is a {truthful if solution[n] else lying}."
            for n in re.findall(r"(\w+) is a", words.split("Answer: ")[1])
        )
        assert words.split("Answer: ")[1] == told


def test_every_solved_example_in_words_is_the_one_solution_of_its_statements():
    for quiz, names, statements, words in prompts._SOLVED:
        (solution,) = brute_force(names, statements)
        answers = re.findall(r"(\w+) is an? (\w+)\.", words.split("Answer: ")[1])
        assert [name for name, _ in answers] == list(names)
        truthful = {role for name, role in answers if solution[name]}
        lying = {role for name, role in answers if not solution[name]}
        assert len(truthful) <= 1 and len(lying) <= 1 and not truthful & lying
        for role in truthful:
            assert re.search(rf"\b{role}s(, who)? always tell the truth", quiz, re.IGNORECASE)


def test_examples_name_nobody_whom_a_puzzle_names():
    from experiments.knights.wording import COMMON_NAMES, OTHER_ROLES, UNCOMMON_NAMES

    shown = " ".join(
        text for examples in (prompts.CLAUSE_EXAMPLES, prompts.SENTENCE_EXAMPLES, prompts.PROGRAM_EXAMPLES, prompts.REASONING_EXAMPLES)
        for example in examples for text in example
    )  # fmt: skip
    words = set(re.findall(r"[\w'-]+", shown))
    assert not words & {*COMMON_NAMES, *UNCOMMON_NAMES}
    assert not {word.lower() for word in words} & {
        role.word(t) for role in (ROLES, *OTHER_ROLES) for t in (True, False)
    }


def test_every_line_has_one_meaning():
    meaning = prompts.literals(("Ava", "Bob"), ROLES)
    assert len(meaning) == 8
    for line, atom in meaning.items():
        assert line.startswith(f"{atom.person} is ")
        assert atom.truthful == (("not" in line.split()) == ("knave" in line))


async def test_programs_for_names_that_are_no_python_names():
    puzzle = Puzzle("q", ("Anne-Marie", "O'Brien"), (True, False))
    said = [Statement("Anne-Marie", Formula("and", (Atom("O'Brien", False), Atom("Anne-Marie", True))))]
    said.append(Statement("O'Brien", Formula("not", (Atom("Anne-Marie", True),))))
    solved = await run_program(prompts.program(puzzle.names, said))
    assert sorted(map(str, map(dict, solved.solutions))) == sorted(map(str, brute_force(puzzle.names, said)))


# --- programs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "program"),
    [
        ("print(1)", "print(1)"),
        ("```python\nprint(1)\n```", "print(1)\n"),
        ("Here it is:\n```\nprint(1)\n```\nDone, I hope.", "print(1)\n"),
        ("```Python\nprint(1)\n```\n```python\nprint(2)\n```", "print(1)\n"),
        ("```python\nprint(1)", "print(1)"),
        ("```py\nprint(1)\n```", "print(1)\n"),
        ("```python3 title=x\nprint(1)\n```", "print(1)\n"),
        ("First:\n```bash\npip install x\n```\nThen:\n```python\nprint(1)\n```", "print(1)\n"),
        ("```\nprint(1)\n```\n```text\n[]\n```", "print(1)\n"),
    ],
)
def test_the_program_in_an_answer(answer, program):
    assert program_in(answer) == program


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("I do not know.", "malformed"),
        ("print(1", "malformed"),
        ("print(1)\0", "malformed"),
        ("x = '\ud800'", "malformed"),
        ("```python\nnot Python at all\n```", "malformed"),
        ("```python\n\n```", "empty"),
        ("```", "malformed"),
        ("-" * 100_000 + "1", "malformed"),
        ("x" + ".a" * 100_000, "malformed"),
        ("```bash\npip install x\n```", "malformed"),
    ],
    ids=lambda text: text[:20],
)
def test_an_answer_without_a_program_is_a_failure(answer, kind):
    with pytest.raises(Failure) as caught:
        program_in(answer)
    assert caught.value.kind == kind
    assert kind == "empty" or caught.value.answer == answer


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("pass", "no answer"),
        ("print('no idea')", "no answer"),
        ("print({'Ava': True})", "no answer"),
        ("print([{'Ava': 1}])", "no answer"),
        ("print([{1: True}])", "no answer"),
        ("print('{[1]: 2}')", "no answer"),
        ("print([{'Ava': True}]); print('done')", "no answer"),
        ("raise KeyError('Ava')", "crashed"),
        ("import no_such_module", "crashed"),
    ],
)
async def test_a_program_that_gives_no_answer_fails_by_its_kind(code, kind):
    with pytest.raises(Failure) as caught:
        await run_program(code)
    assert caught.value.kind == kind


async def test_a_program_without_end_is_a_timeout(monkeypatch):
    async def briefly(code, timeout):
        return await run_python(code, timeout=0.3)

    monkeypatch.setattr("experiments.knights.arms.run_python", briefly)
    with pytest.raises(Failure) as caught:
        await run_program("while True: pass")
    assert caught.value.kind == "timeout"


async def test_what_a_program_printed_last_is_its_answer():
    solved = await run_program("print('thinking'); print([{'Ava': True, 'Bob': False}])")
    assert solved == Solved(solutions=({"Ava": True, "Bob": False},))
    assert (await run_program("print([])")).solutions == ()


# --- parameters ---------------------------------------------------------------------------------------------

FREE = {"model": "simulated:random"}


@pytest.mark.parametrize(("people", "sizes"), [("2-5", [2, 3, 4, 5]), ("3", [3]), (4, [4]), ("8-8", [8])])
def test_people_is_a_number_or_a_range(people, sizes):
    params = Params(people=people, count=2, **FREE)
    assert list(params.sizes) == sizes
    assert [len(puzzle.names) for puzzle in puzzles(params)] == [size for size in sizes for _ in range(2)]


@pytest.mark.parametrize(
    "bad",
    [
        *[{"people": people} for people in ("5-2", "1", "9", "2-9", "two", "", "2-", True, 1)],
        {"count": 0}, {"count": True}, {"seed": -1}, {"seed": True}, {"max_iterations": 0}, {"max_iterations": 21}, {"max_tokens": 0},
        {"arm": "guess"}, {"perturb": "odd"}, {"unknown": 1},
        {"model": "simulated:nobody"}, {"model": "nonsense"}, {"data": "no/such/file.jsonl"}, {"data": "."},
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_by_name(bad):
    with pytest.raises(ValidationError) as caught:
        Params(**FREE | bad)
    ((name, value),) = bad.items()
    (error,) = caught.value.errors()
    assert error["loc"] in ((name,), ())  # () where the whole is at fault
    assert name in str(caught.value)
    if name in ("model", "data"):
        assert value in str(caught.value)


def test_a_data_file_is_used_whole(tmp_path):
    given = generate(2, 1, 3)
    save(given, tmp_path / "some.jsonl")
    assert puzzles(Params(data=str(tmp_path / "some.jsonl"), people="5", count=1, **FREE)) == given
