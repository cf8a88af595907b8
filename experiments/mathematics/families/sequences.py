"""Sequences: progressions, recurrences, series."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations

from .family import Family

_TOPIC = "sequences"


def _draw_geometric_series(rng: random.Random) -> dict[str, int | str]:
    while True:
        q = rng.randint(3, 30)
        p = rng.randint(1, q - 1)
        if Fraction(p, q).denominator == q:
            return {"a": rng.randint(2, 60), "p": p, "q": q}


def _check_geometric_series(a: int, p: int, q: int) -> int:
    """1000 terms come so close to the sum that no other fraction of that denominator can be meant."""
    total, term = 0.0, float(a)
    for _ in range(1000):
        total, term = total + term, term * p / q
    total = Fraction(total).limit_denominator(q)
    return total.numerator + total.denominator


geometric_series = Family(
    name="geometric_series",
    topic=_TOPIC,
    level=1,
    seen=True,
    draw=_draw_geometric_series,
    wordings=(
        "The infinite geometric series with first term $a and common ratio $p/$q has the sum m/n, where m and n are relatively prime positive integers. Find m + n.",
        "In an infinite geometric series every term is $p/$q times the term before it, and the first term is $a. Its sum is m/n in lowest terms. Find m + n.",
        "A sequence starts with $a, and each further term is the previous one multiplied by $p/$q. All its infinitely many terms add up to m/n for relatively prime positive integers m and n. What is m + n?",
    ),
    program="""\
import sympy

s = a / (1 - sympy.Rational(p, q))
print(s.p + s.q)""",
    check=_check_geometric_series,
)


def _draw_linear_recurrence(rng: random.Random) -> dict[str, int | str]:
    p, q = rng.sample(range(2, 10), 2)
    return {"a": rng.randint(1, 20), "b": rng.randint(1, 20), "p": p, "q": q, "k": rng.randint(10, 90)}


def _check_linear_recurrence(a: int, b: int, p: int, q: int, k: int) -> int:
    """Squaring the matrix of the recurrence, as (upper left, upper right, lower left, lower right)."""

    def times(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
        return (
            (x[0] * y[0] + x[1] * y[2]) % 1000,
            (x[0] * y[1] + x[1] * y[3]) % 1000,
            (x[2] * y[0] + x[3] * y[2]) % 1000,
            (x[2] * y[1] + x[3] * y[3]) % 1000,
        )

    power, square, exponent = (1, 0, 0, 1), (p, q, 1, 0), k - 2
    while exponent:
        if exponent % 2:
            power = times(power, square)
        square, exponent = times(square, square), exponent // 2
    return (power[0] * b + power[1] * a) % 1000


linear_recurrence = Family(
    name="linear_recurrence",
    topic=_TOPIC,
    level=2,
    seen=True,
    draw=_draw_linear_recurrence,
    wordings=(
        "A sequence has x_1 = $a, x_2 = $b, and x_n = ${p}x_(n-1) + ${q}x_(n-2) for all n > 2. Find the remainder when x_$k is divided by 1000.",
        "The first two terms of a sequence are $a and $b, in this order. From the third on, each term is $p times the previous term plus $q times the term before that. Find the remainder when term number $k is divided by 1000.",
        "Find the remainder when x_$k is divided by 1000, given that x_(n+2) = ${q}x_n + ${p}x_(n+1) for all n >= 1, x_1 = $a and x_2 = $b.",
    ),
    program="""\
for n in range(k - 2):
    a, b = b, p * b + q * a
print(b % 1000)""",
    check=_check_linear_recurrence,
)


def _draw_reciprocal_products(rng: random.Random) -> dict[str, int | str]:
    return {"a": rng.randint(1, 12), "d": rng.randint(2, 9), "n": rng.randint(5, 60)}


def _check_reciprocal_products(a: int, d: int, n: int) -> int:
    """1/xy = (1/x - 1/y) / d where y - x = d, so that all but two of the terms cancel."""
    total = (Fraction(1, a) - Fraction(1, a + n * d)) / d
    return total.numerator + total.denominator


reciprocal_products = Family(
    name="reciprocal_products",
    topic=_TOPIC,
    level=3,
    seen=True,
    draw=_draw_reciprocal_products,
    wordings=(
        "The arithmetic sequence a_1, a_2, a_3, ... has first term $a and common difference $d. The sum of 1/(a_k * a_(k+1)) over k = 1, 2, ..., $n equals p/q, where p and q are relatively prime positive integers. Find p + q.",
        "Let a_1 = $a and a_(k+1) = a_k + $d for k >= 1. The first $n of the fractions 1/(a_1 * a_2), 1/(a_2 * a_3), 1/(a_3 * a_4), ... add up to p/q in lowest terms. Find p + q.",
        "Consecutive terms of an arithmetic sequence differ by $d, each term being larger than the one before, and the first term is $a. Each of the first $n terms is multiplied by the next term, and the reciprocals of these $n products add up to p/q in lowest terms. Find p + q.",
    ),
    program="""\
import sympy

s = sum(sympy.Rational(1, (a + k * d) * (a + k * d + d)) for k in range(n))
print(s.p + s.q)""",
    check=_check_reciprocal_products,
)


def _draw_growing_blocks(rng: random.Random) -> dict[str, int | str]:
    return {"c": rng.randint(1, 12), "n": rng.randint(100, 3000)}


def _check_growing_blocks(c: int, n: int) -> int:
    """Whole blocks first, then the part of a block that is left."""
    total, left, k = 0, n, 1
    while left > k + c:
        total, left, k = total + k * (k + c), left - k - c, k + 1
    return (total + left * k) % 1000


growing_blocks = Family(
    name="growing_blocks",
    topic=_TOPIC,
    level=3,
    seen=True,
    draw=_draw_growing_blocks,
    wordings=(
        "A nondecreasing sequence consists of positive integers, and each positive integer k appears in it exactly k + $c times. Find the remainder when the sum of its first $n terms is divided by 1000.",
        "Find the remainder when the sum of the first $n terms of a sequence is divided by 1000, if the sequence lists the positive integers in increasing order, each integer k being repeated so that it occurs k + $c times in a row.",
        "In increasing order, k + $c copies of the number k are written down for k = 1, 2, and so on without end. Let S be the sum of the first $n numbers written. Find the remainder when S is divided by 1000.",
    ),
    program="""\
import numpy as np

k = np.arange(1, 100)
print(np.repeat(k, k + c)[:n].sum() % 1000)""",
    check=_check_growing_blocks,
)


def _draw_rational_recurrence(rng: random.Random) -> dict[str, int | str]:
    k = rng.randint(2, 9)
    return {
        "a": rng.randint(2, 40),
        "b": rng.randint(2, 40),
        "k": k,
        "n": 5 * rng.randint(20, 420) + rng.randint(3, 5),  # the other terms are a and b, whatever k is
    }


def _check_rational_recurrence(a: int, b: int, k: int, n: int) -> int:
    """k times the terms are x, y, (y + 1)/x, (x + y + 1)/xy, (x + 1)/y, and then again x, y, ..."""
    x, y = k * a, k * b
    period = Fraction(x), Fraction(y), Fraction(y + 1, x), Fraction(x + y + 1, x * y), Fraction(x + 1, y)
    term = period[(n - 1) % 5] / k
    return term.numerator + term.denominator


rational_recurrence = Family(
    name="rational_recurrence",
    topic=_TOPIC,
    level=4,
    seen=True,
    draw=_draw_rational_recurrence,
    wordings=(
        "A sequence has t_1 = $a, t_2 = $b, and t_m = ($k*t_(m-1) + 1)/($k^2*t_(m-2)) for all m > 2. Write t_$n as p/q with relatively prime positive integers p and q. Find p + q.",
        "Let t_1 = $a and t_2 = $b. For m > 2 the term t_m is obtained by adding 1 to $k times t_(m-1) and dividing the result by $k^2 times t_(m-2). In lowest terms t_$n = p/q. Find p + q.",
        "Find p + q, where p/q in lowest terms is the term t_$n of the sequence given by t_(m+2) = (1 + $k*t_(m+1))/($k^2*t_m) for all m >= 1, with t_2 = $b and t_1 = $a.",
    ),
    program="""\
import sympy

x = sympy.Rational(a)
y = sympy.Rational(b)
for m in range(n - 2):
    x, y = y, (k * y + 1) / (k**2 * x)
print(y.p + y.q)""",
    check=_check_rational_recurrence,
)


def _draw_constant_differences(rng: random.Random) -> dict[str, int | str]:
    first, second, third = rng.randint(-3, 9), rng.randint(-3, 7), rng.randint(1, 5)
    a = rng.randint(1, 30)
    b, c, d = a + first, a + 2 * first + second, a + 3 * first + 3 * second + third
    return {"a": a, "b": b, "c": c, "d": d, "k": rng.randint(7, 13)}


def _check_constant_differences(a: int, b: int, c: int, d: int, k: int) -> int:
    """Addition alone: from each term to the next by its first, second and third difference."""
    first, second, third = b - a, c - 2 * b + a, d - 3 * c + 3 * b - a
    term = a
    for _ in range(k - 1):
        term, first, second = term + first, first + second, second + third
    return term


constant_differences = Family(
    name="constant_differences",
    topic=_TOPIC,
    level=3,
    seen=False,
    draw=_draw_constant_differences,
    wordings=(
        "A polynomial P of degree three or less has P(1) = $a, P(2) = $b, P(3) = $c and P(4) = $d. Find P($k).",
        "A sequence begins $a, $b, $c, $d, and its third differences are all equal. Find term number $k of the sequence, the number $a being term number 1.",
        "Find a_$k if a_n is a polynomial in n of degree three or less and a_4 = $d, a_3 = $c, a_2 = $b, a_1 = $a.",
    ),
    program="""\
import sympy

print(sympy.interpolate([a, b, c, d], k))""",
    check=_check_constant_differences,
)


def _draw_distinct_powers(rng: random.Random) -> dict[str, int | str]:
    b = rng.choice([b for b in range(3, 20) if b != 10])  # in base 10 nothing is left to do
    return {"b": b, "n": rng.randint(20, 500)}


def _check_distinct_powers(b: int, n: int) -> int:
    powers = [b**e for e in range(n.bit_length())]
    sums = sorted(sum(some) for size in range(1, len(powers) + 1) for some in combinations(powers, size))
    return sums[n - 1] % 1000


distinct_powers = Family(
    name="distinct_powers",
    topic=_TOPIC,
    level=4,
    seen=False,
    draw=_draw_distinct_powers,
    wordings=(
        "The increasing sequence of all positive integers that are powers of $b or sums of distinct powers of $b begins with 1, $b, $b + 1, where 1 counts as a power of $b. Find the remainder when term number $n is divided by 1000.",
        "Write down, in increasing order, every positive integer that is a sum of one or more different numbers from the list 1, $b, $b^2, ... of powers. Find the remainder when the number in place $n is divided by 1000.",
        "Let T be the set of positive integers all of whose digits in base $b are 0 or 1. The elements of T are listed from the smallest upwards. Find the remainder when the one in place $n is divided by 1000.",
    ),
    program='print(int(format(n, "b"), b) % 1000)',
    check=_check_distinct_powers,
)


FAMILIES: tuple[Family, ...] = (
    geometric_series,
    linear_recurrence,
    reciprocal_products,
    growing_blocks,
    rational_recurrence,
    constant_differences,
    distinct_powers,
)
