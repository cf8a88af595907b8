"""What the model is shown. None of these examples is of a family that the problems come from."""

from __future__ import annotations

from .problems import Problem

REASONING_INSTRUCTIONS = (
    "Solve the problem step by step, briefly. End with a line that reads: Answer: and then the answer alone."
)
REASONING_EXAMPLES = (
    (
        "Find the sum of the first 12 positive odd numbers.",
        "The sum of the first n positive odd numbers is n squared. With n = 12 that is 144.\nAnswer: 144",
    ),
    (
        "A square has a perimeter of 52. What is its area?",
        "Each side is 52/4 = 13, so the area is 13 * 13 = 169.\nAnswer: 169",
    ),
    (
        "How many three-letter words, with or without meaning, can be made of the letters A, B, C and D, if no letter "
        "may come twice?",
        "There are 4 choices for the first letter, 3 for the second and 2 for the third: 4 * 3 * 2 = 24.\nAnswer: 24",
    ),
)

CODE_INSTRUCTIONS = (
    "Write a Python program that solves the problem and prints the answer, and nothing else. "
    "sympy, numpy, scipy and constraint are installed. Answer with the program alone."
)
CODE_EXAMPLES = (
    (
        "Find the sum of the first 12 positive odd numbers.",
        "n = 12\nprint(sum(2 * k + 1 for k in range(n)))",
    ),
    (
        "A square has a perimeter of 52. What is its area?",
        'from sympy import solve, symbols\n\np = 52\ns = symbols("s")\nprint(solve(4 * s - p, s)[0] ** 2)',
    ),
    (
        "How many three-letter words, with or without meaning, can be made of the letters A, B, C and D, if no letter "
        "may come twice?",
        'from itertools import permutations\n\nletters = "ABCD"\nprint(len(list(permutations(letters, 3))))',
    ),
)


def solved(examples: list[Problem]) -> tuple[tuple[str, str], ...]:
    """Solved examples as turns of a conversation."""
    return tuple((one.problem, one.program) for one in examples)


def code_instructions(blocking: tuple[str, ...]) -> str:
    """What to do, and what was wrong with the program before."""
    told = f" An earlier program was no good: {'; '.join(blocking)}." if blocking else ""
    return CODE_INSTRUCTIONS + told
