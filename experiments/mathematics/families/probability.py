"""Probability: dice, urns, coins, walks. Where the answer is a fraction, its two terms are added."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

from .family import Family

_TOPIC = "probability"


def _terms(fraction: Fraction) -> int:
    return fraction.numerator + fraction.denominator


def _draw_two_dice(rng: random.Random) -> dict[str, int | str]:
    a, b = rng.sample(range(4, 25), 2)
    return {"a": a, "b": b, "s": rng.randint(4, a + b - 2)}


def _check_two_dice(a: int, b: int, s: int) -> int:
    """For each result of the first die, how many of the second one's suffice."""
    good = sum(min(b, max(0, b - (s - x) + 1)) for x in range(1, a + 1))
    return _terms(Fraction(good, a * b))


two_dice = Family(
    name="two_dice",
    topic=_TOPIC,
    level=1,
    seen=True,
    draw=_draw_two_dice,
    wordings=(
        "One fair die has $a faces numbered 1 to $a, another has $b faces numbered 1 to $b. Both are rolled. The probability that the sum is at least $s is m/n, where m and n are relatively prime positive integers. Find m + n.",
        "Two fair dice are rolled; one has its faces numbered from 1 to $a, the other from 1 to $b. In lowest terms, the total is $s or more with probability m/n. Find m + n.",
        "Ann picks an integer from 1 to $a and Bob an integer from 1 to $b, independently and uniformly at random. Their numbers have a sum not less than $s with probability m/n in lowest terms. Find m + n.",
        "What is m + n, if m/n in lowest terms is the probability of a total of at least $s when two fair dice, one numbered 1 to $b and the other 1 to $a, are rolled together?",
    ),
    program="""\
import sympy

sums = [x + y for x in range(1, a + 1) for y in range(1, b + 1)]
p = sympy.Rational(sum(t >= s for t in sums), len(sums))
print(p.p + p.q)""",
    check=_check_two_dice,
)


def _draw_urn(rng: random.Random) -> dict[str, int | str]:
    k = rng.randint(3, 6)
    return {"red": rng.randint(k, 14), "blue": rng.randint(k, 14), "k": k, "j": rng.randint(2, k - 1)}


def _check_urn(red: int, blue: int, k: int, j: int) -> int:
    """Ball by ball: the chance of each number of red ones so far."""
    chance = {0: Fraction(1)}
    for drawn in range(k):
        after: dict[int, Fraction] = {}
        for reds, p in chance.items():
            of_red = Fraction(red - reds, red + blue - drawn)
            after[reds + 1] = after.get(reds + 1, Fraction()) + p * of_red
            after[reds] = after.get(reds, Fraction()) + p * (1 - of_red)
        chance = after
    return _terms(chance[j])


urn = Family(
    name="urn",
    topic=_TOPIC,
    level=2,
    seen=True,
    draw=_draw_urn,
    wordings=(
        "An urn holds $red red and $blue blue balls. At random, $k balls are drawn without replacement. The probability that exactly $j of them are red is m/n, where m and n are relatively prime positive integers. Find m + n.",
        "From a bag with $blue blue marbles and $red red marbles, a random set of $k marbles is taken. It contains exactly $j red with probability m/n in lowest terms. Find m + n.",
        "A committee of $k is chosen at random from $red women and $blue men. In lowest terms, the probability that it has exactly $j women among its members is m/n. What is m + n?",
    ),
    program="""\
import sympy

p = sympy.binomial(red, j) * sympy.binomial(blue, k - j) / sympy.binomial(red + blue, k)
print(p.p + p.q)""",
    check=_check_urn,
)


def _draw_collector(rng: random.Random) -> dict[str, int | str]:
    n = rng.randint(6, 30)
    c = rng.randint(2, n - 2)
    return {"n": n, "c": c, "d": min(n, c + rng.randint(2, 4))}


def _check_collector(n: int, c: int, d: int) -> int:
    """The order statistics of the new cards' first appearances, by minima of ever smaller sets of cards.

    The first of any i given cards appears after n/i boxes on average.
    """
    new, wanted = n - c, d - c
    mean = Fraction()
    for i in range(new - wanted + 1, new + 1):
        sign = (-1) ** (i - new + wanted - 1)
        mean += sign * comb(i - 1, new - wanted) * comb(new, i) * Fraction(n, i)
    return _terms(mean)


collector = Family(
    name="collector",
    topic=_TOPIC,
    level=3,
    seen=True,
    draw=_draw_collector,
    wordings=(
        "Every box of cereal holds one of $n different cards, each equally likely and independent of the other boxes. Zoe already owns $c different cards. The expected number of boxes that she still has to buy until she owns $d different cards is p/q in lowest terms. Find p + q.",
        "Tom wants $d different stickers, no matter which, and already has $c. Each packet holds one sticker, chosen uniformly at random from $n kinds. On average he will open p/q further packets until he has as many as he wants, where p and q are relatively prime positive integers. Find p + q.",
        "A random generator yields integers from 1 to $n, all equally likely. So far $c different values have appeared. In lowest terms, p/q is the expected number of further draws until $d different values have appeared in all. Find p + q.",
    ),
    program="""\
import sympy

e = sum(sympy.Rational(n, n - i) for i in range(c, d))
print(e.p + e.q)""",
    check=_check_collector,
)


def _draw_no_two_heads(rng: random.Random) -> dict[str, int | str]:
    while True:
        q = rng.randint(2, 12)
        p = rng.randint(1, q - 1)
        if Fraction(p, q).denominator == q:
            return {"p": p, "q": q, "n": rng.randint(4, 20)}


def _check_no_two_heads(p: int, q: int, n: int) -> int:
    """k heads leave n - k tails, with n - k + 1 gaps of which each takes one head at most."""
    heads = Fraction(p, q)
    chance = sum(comb(n - k + 1, k) * heads**k * (1 - heads) ** (n - k) for k in range((n + 1) // 2 + 1))
    return _terms(Fraction(chance)) % 1000


no_two_heads = Family(
    name="no_two_heads",
    topic=_TOPIC,
    level=4,
    seen=True,
    draw=_draw_no_two_heads,
    wordings=(
        "A coin lands heads with probability $p/$q and is tossed $n times. The probability that no two consecutive tosses are both heads is u/v, where u and v are relatively prime positive integers. Find the remainder when u + v is divided by 1000.",
        "In $n independent games a player wins each with probability $p/$q. In lowest terms, u/v is the probability that she never wins two games in a row. Find the remainder when u + v is divided by 1000.",
        "Each of $n lamps in a row is lit with probability $p/$q, independently of the others. In lowest terms, the probability that no two neighbouring lamps are both lit is u/v. What is the remainder when u + v is divided by 1000?",
    ),
    program="""\
import sympy

p = sympy.Rational(p, q)
a, b = 1, 0
for i in range(n):
    a, b = (a + b) * (1 - p), a * p
s = a + b
print((s.p + s.q) % 1000)""",
    check=_check_no_two_heads,
)


def _draw_ruin(rng: random.Random) -> dict[str, int | str]:
    while True:
        q = rng.randint(3, 12)
        p = rng.randint(1, q - 1)
        if Fraction(p, q).denominator == q:
            return {"p": p, "q": q, "a": rng.randint(2, 9), "b": rng.randint(2, 9)}


def _check_ruin(p: int, q: int, a: int, b: int) -> int:
    """Elimination: the chance of ending on top from i chips is some multiple of that from i + 1 chips."""
    win = Fraction(p, q)
    from_here, ratio = Fraction(1), Fraction(0)
    for chips in range(1, a + b):
        ratio = win / (1 - (1 - win) * ratio)
        if chips >= a:
            from_here *= ratio
    return _terms(from_here) % 1000


ruin = Family(
    name="ruin",
    topic=_TOPIC,
    level=5,
    seen=True,
    draw=_draw_ruin,
    wordings=(
        "Ann has $a chips and Bob has $b. In each independent round Ann wins a chip from Bob with probability $p/$q, and otherwise Bob wins one from Ann. They play until somebody has all the chips, which is Ann with probability u/v in lowest terms. Find the remainder when u + v is divided by 1000.",
        "A particle starts at 0 on the number line. Each step is independently +1 with probability $p/$q and otherwise -1, and it stops on reaching $b or -$a. In lowest terms, u/v is the probability that it stops at $b. Find the remainder when u + v is divided by 1000.",
        "Rita starts with $a dollars and plays independent games, each of which wins her 1 dollar with probability $p/$q and otherwise loses her 1 dollar. She stops when she has gained $b dollars or has none left. In lowest terms, u/v is the probability that she gains $b dollars. Find the remainder when u + v is divided by 1000.",
    ),
    program="""\
import sympy

p = sympy.Rational(p, q)
r = (1 - p) / p
s = (1 - r**a) / (1 - r ** (a + b))
print((s.p + s.q) % 1000)""",
    check=_check_ruin,
)


def _draw_faulty_part(rng: random.Random) -> dict[str, int | str]:
    p, q = rng.sample(range(1, 26), 2)
    return {"a": rng.choice([a for a in range(5, 96, 5) if a != 50]), "p": p, "q": q}


def _check_faulty_part(a: int, p: int, q: int) -> int:
    """10,000 parts, one by one: 100 batches of 100."""
    faulty = [batch < a for batch in range(100) for part in range(100) if part < (p if batch < a else q)]
    return _terms(Fraction(sum(faulty), len(faulty)))


faulty_part = Family(
    name="faulty_part",
    topic=_TOPIC,
    level=2,
    seen=False,
    draw=_draw_faulty_part,
    wordings=(
        "Machine A makes $a percent of a factory's parts and machine B makes all others. Of the parts from A $p percent are faulty, of those from B $q percent. A part chosen at random is faulty. It was made by A with probability m/n in lowest terms. Find m + n.",
        "In a town $q percent of the adults and $p percent of the children have a cold, and children are $a percent of the population. A random inhabitant turns out to have a cold. In lowest terms, m/n is the probability that it is a child. Find m + n.",
        "A filter looks at messages of which $a percent are spam. It flags $p percent of the spam and $q percent of the other messages. Given that a random message is flagged, the probability that it is spam is m/n with relatively prime positive integers m and n. Find m + n.",
    ),
    program="""\
import sympy

x = a * p
y = (100 - a) * q
s = sympy.Rational(x, x + y)
print(s.p + s.q)""",
    check=_check_faulty_part,
)


def _draw_polygon_walk(rng: random.Random) -> dict[str, int | str]:
    while True:
        n, k = rng.randint(4, 15), rng.randint(4, 24)
        d = rng.randint(1, n // 2)
        # The vertex is d moves away, or n - d round the other side; moves to spare must cancel in pairs.
        if any(k >= way and (k - way) % 2 == 0 for way in (d, n - d)):
            return {"n": n, "k": k, "d": d}


def _check_polygon_walk(n: int, k: int, d: int) -> int:
    """j steps the one way and k - j the other way end 2j - k vertices on."""
    ways = sum(comb(k, j) for j in range(k + 1) if (2 * j - k - d) % n == 0)
    return _terms(Fraction(ways, 2**k)) % 1000


polygon_walk = Family(
    name="polygon_walk",
    topic=_TOPIC,
    level=4,
    seen=False,
    draw=_draw_polygon_walk,
    wordings=(
        "A bug starts at vertex 0 of a regular polygon with $n vertices numbered 0, 1, 2, ... in order. Each move takes it to one of the two neighbouring vertices, equally likely. After $k moves it is at vertex $d with probability u/v in lowest terms. Find the remainder when u + v is divided by 1000.",
        "A counter starts on field 0 and makes $k moves around a circle of $n fields, numbered 0, 1, 2, ... in order. Every move is one field forward or one back, decided by a fair coin. In lowest terms, it ends on field $d with probability u/v. Find the remainder when u + v is divided by 1000.",
        "Let X be the sum of $k independent numbers that are 1 or -1 with probability 1/2 each. The probability that X - $d is a multiple of $n is u/v in lowest terms. Find the remainder when u + v is divided by 1000.",
    ),
    program="""\
import numpy as np
import sympy

step = np.roll(np.eye(n, dtype=int), 1, axis=0)
ways = np.linalg.matrix_power(step + step.T, k)[0, d]
p = sympy.Rational(int(ways), 2**k)
print((p.p + p.q) % 1000)""",
    check=_check_polygon_walk,
)


FAMILIES: tuple[Family, ...] = (
    two_dice,
    urn,
    collector,
    no_two_heads,
    ruin,
    faulty_part,
    polygon_walk,
)
