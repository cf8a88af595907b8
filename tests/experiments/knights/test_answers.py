import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.knights.answers import AnswerError, parse
from experiments.knights.wording import COMMON_NAMES, OTHER_ROLES, ROLES, UNCOMMON_NAMES, Roles

NAMES = ("Zoey", "Oliver")
SAINTS = Roles("saint", "sinner")

# Each means that Zoey is a knight and Oliver is a knave.
ANSWERS = [
    "Zoey is a knight. Oliver is a knave.",
    "Zoey is a knight and Oliver is a knave.",
    "Zoey is a Knight, and Oliver is a KNAVE",
    "Zoey is a knight and Oliver a knave.",
    "(1) Zoey is a knight\n(2) Oliver is a knave",
    "1. Zoey is a knight\n2. Oliver is a knave",
    "- **Zoey**: Knight\n- **Oliver**: Knave",
    "* Zoey: knight\n* Oliver: knave",
    "Zoey = knight, Oliver = knave",
    "Zoey: knight\nOliver: knave",
    "Zoey: knight; Oliver: knave",
    "Zoey - knight, Oliver - knave",
    "Zoey – knight\nOliver — knave",
    "Zoey -> knight, Oliver -> knave",
    "Zoey → knight\nOliver → knave",
    "Zoey (knight), Oliver (knave)",
    "Zoey knight, Oliver knave",
    '{"Zoey": "knight", "Oliver": "knave"}',
    "{'Zoey': 'a knight', 'Oliver': 'a knave'}",
    '{\n  "Zoey": "knight",\n  "Oliver": "knave"\n}',
    '```json\n[{"name": "Zoey", "role": "knight"}, {"name": "Oliver", "role": "knave"}]\n```',
    '{"knights": ["Zoey"], "knaves": ["Oliver"]}',
    '{"answer": {"Zoey": "knight", "Oliver": "knave"}}',
    '{"answer": "Zoey is a knight, Oliver is a knave"}',
    "| Name | Role |\n|---|---|\n| Zoey | Knight |\n| Oliver | Knave |",
    "Knights: Zoey. Knaves: Oliver",
    "Knights: Zoey\nKnaves: Oliver",
    "Knight: Zoey, Knave: Oliver",
    "**Knights:**\n- Zoey\n\n**Knaves:**\n- Oliver\n",
    "The knight is Zoey and the knave is Oliver.",
    "The knave is Oliver; the knight is Zoey.",
    "Here are the knights and knaves: Zoey is a knight, Oliver is a knave.",
    "Zoey and Oliver are a knight and a knave, respectively.",
    "Zoey is not a knave. Oliver is not a knight.",
    "Zoey isn't a knave, Oliver isn’t a knight.",
    "Zoey cannot be a knave, so Oliver can't be a knight.",
    "Zoey must be a knight, and Oliver must therefore be a knave. Oliver is indeed a knave.",
    "Zoey's role is knight and Oliver's role is knave.",
    "Zoey's a knight, Oliver's a knave.",
    "Answer: Zoey is a knight, Oliver is a knave.",
    'Answer: "Zoey is a knight, Oliver is a knave."',
    "Let us see. Oliver is a knight.\n\n**Final Answer:** Zoey: knight, Oliver: knave",
    "Conclusion:\nZoey is a knight\nOliver is a knave",
    "In conclusion, Zoey is a knight and Oliver is a knave.",
    "The answer is: Zoey is a knight, Oliver is a knave",
    "<answer>Zoey: knight, Oliver: knave</answer>",
    r"\boxed{Zoey: knight, Oliver: knave}",
    r"\boxed{\text{Zoey is a knight and Oliver is a knave}}",
    r"$\text{Zoey} = \text{knight}$, $\text{Oliver} = \text{knave}$",
    # A later answer replaces an earlier one, and the last complete one counts.
    "Zoey is a knave.\nOliver is a knave.\nNo, wait.\nZoey is a knight.",
    "Answer: Zoey is a knave, Oliver is a knight.\nLet me check.\nAnswer: Zoey is a knight, Oliver is a knave.",
    "Answer: Zoey: knave, Oliver: knight. Wait, it is Zoey: knight, Oliver: knave.",
    "Zoey is a knight, Oliver is a knave. That is my final answer.",
    # Neither of these is an assertion.
    'Zoey is a knight. Oliver is a knave. (Oliver said, "Zoey is a knave and Oliver is a knight.")',
    "Zoey is a knight.\nOliver is a knave.\nIf Zoey is a knave, then Oliver is a knight.",
    "Zoey is a knight.\nOliver is a knave.\nSuppose Zoey is a knave. Then Oliver is a knight.",
    "Zoey is a knight.\nOliver is a knave.\nAssuming Zoey is a knave fails.",
    "Zoey is a knight.\nOliver is a knave.\nIs Zoey a knave? Perhaps Oliver is a knight?",
    "Zoey is a knight.\nOliver says that Zoey is a knave, so Oliver is a knave.",
    "According to Oliver, Zoey is a knave. Zoey is a knight, therefore Oliver is a knave.",
    "Zoey is a knight.\nOliver is a knave.\nEach is a knight or a knave. Oliver is a knight or a knave.",
    "All knights tell the truth and all knaves lie. Zoey is a knight. Oliver is a knave.",
    "Zoey is a knight and Oliver is a knave. Zoey and Oliver are not both knights.",
]


@pytest.mark.parametrize("text", ANSWERS)
def test_one_of_each(text):
    assert parse(text, NAMES, ROLES) == {"Zoey": True, "Oliver": False}


@pytest.mark.parametrize(
    "text",
    [
        "Zoey and Oliver are knaves.",
        "Zoey and Oliver are both knaves",
        "Both Zoey and Oliver are knaves.",
        "Both are knaves.",
        "both of them are knaves",
        "They are both knaves.",
        "Neither is a knight.",
        "Neither Zoey nor Oliver is a knight.",
        "Zoey and Oliver are not knights.",
        "All of them are knaves.",
        "Everyone is a knave.",
        "None of them is a knight.",
        "Knights: none. Knaves: Zoey, Oliver",
        "Knaves: Zoey & Oliver",
        "Zoey, Oliver: knaves",
    ],
)
def test_both_alike(text):
    assert parse(text, NAMES, ROLES) == {"Zoey": False, "Oliver": False}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I do not know.", "no role for Zoey, Oliver"),
        ("Zoey is a knight.", "no role for Oliver"),
        ("Answer: Zoey is a knight.", "no role for Oliver"),
        ("Zoe is a knight. Oliver is a knave.", "no role for Zoey"),
        ("Zoey is a saint. Oliver is a sinner.", "no role for"),
        ("Zoey is a knight or a knave. Oliver: knight/knave", "no role for"),
        ("If Zoey is a knight, Oliver is a knave.", "no role for"),
        ("Zoey is a knight and a knave. Oliver is a knave.", "Zoey is given both"),
        ("Knights: Zoey, Oliver\nKnaves: Oliver", "Oliver is given both"),
        ("Answer: Zoey is a knight. Zoey is a knave. Oliver is a knave.", "Zoey is given both"),
        ("Three of them are knights and knaves: Zoey, Oliver.", "no role for"),
        ('"Zoey is a knight, Oliver is a knave" is what I was told.', "no role for"),
    ],
)
def test_malformed(text, reason):
    with pytest.raises(AnswerError, match=reason) as caught:
        parse(text, NAMES, ROLES)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_empty(text):
    with pytest.raises(AnswerError) as caught:
        parse(text, NAMES, ROLES)
    assert caught.value.kind == "empty"


def test_names_within_names_and_odd_names():
    names = ("Ann", "Anna", "D'Arcy", "Anne-Marie", "Anne", "Will")
    text = (
        "Anna is a saint. Ann is a sinner, D’Arcy: saint. Anne-Marie: sinner. Anne = saint; Will is no saint."
    )
    expected = dict(zip(names, [False, True, True, False, True, False], strict=True))
    assert parse(text, names, SAINTS) == expected


def test_a_role_may_also_be_a_name():
    assert parse("Angel is a devil. Bob is an angel.", ("Angel", "Bob"), Roles("angel", "devil")) == {
        "Angel": False,
        "Bob": True,
    }


def test_both_is_no_answer_about_three():
    with pytest.raises(AnswerError, match="no role for Cy"):
        parse("Ava is a knight. Bob is a knight. Both are knaves.", ("Ava", "Bob", "Cy"), ROLES)


def _listed(answer, roles):
    groups = {truthful: [name for name in answer if answer[name] is truthful] for truthful in (True, False)}
    return "\n".join(f"{roles.plural(t).capitalize()}: {', '.join(g) or 'none'}" for t, g in groups.items())


def _numbered(answer, roles):
    return "\n".join(f"({n}) {name} is {roles.a(answer[name])}." for n, name in enumerate(answer, start=1))


def _negated(answer, roles):
    return " ".join(f"{name} is not {roles.a(not answer[name])}." for name in answer)


RENDERINGS = [
    _listed,
    _numbered,
    _negated,
    lambda answer, roles: "Answer: " + ", ".join(f"{name} is {roles.a(answer[name])}" for name in answer),
    lambda answer, roles: "\n".join(f"- **{name}**: {roles.word(answer[name]).title()}" for name in answer),
    lambda answer, roles: ", ".join(f"{name} = {roles.word(answer[name])}" for name in answer),
    lambda answer, roles: json.dumps({name: roles.word(answer[name]) for name in answer}, ensure_ascii=False),
    lambda answer, roles: r"\boxed{" + "; ".join(f"{n}: {roles.word(answer[n])}" for n in answer) + "}",
]


@given(
    st.lists(st.sampled_from(COMMON_NAMES + UNCOMMON_NAMES), min_size=1, max_size=8, unique=True),
    st.integers(0, 255),
    st.sampled_from((ROLES, ROLES.flipped(), *OTHER_ROLES)),
    st.sampled_from(RENDERINGS),
    st.sampled_from(["", "Let me think.\n\n", "If {0} is {1}, we get nowhere.\n", "Suppose {0} is {1}.\n"]),
)
def test_reads_what_was_rendered(names, bits, roles, render, before):
    answer = {name: bool(bits >> i & 1) for i, name in enumerate(names)}
    text = before.format(names[0], roles.a(not answer[names[0]])) + render(answer, roles)
    assert parse(text, names, roles) == answer


@pytest.mark.parametrize("order", list(itertools.permutations(("Ava", "Bob", "Cy"))))
def test_people_come_in_the_order_asked_for(order):
    answer = {"Ava": True, "Bob": False, "Cy": True}
    text = _numbered({name: answer[name] for name in order}, ROLES)
    assert list(parse(text, list(answer), ROLES).items()) == list(answer.items())
