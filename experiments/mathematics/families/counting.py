"""Counting: arrangements, selections and shares."""

from __future__ import annotations

import random
from itertools import combinations
from math import comb, factorial, gcd

from .family import Family


def _draw_group_games(rng: random.Random) -> dict[str, int | str]:
    return {"g": rng.randint(2, 12), "n": rng.randint(3, 10), "k": rng.randint(2, 6)}


def _check_group_games(g: int, n: int, k: int) -> int:
    return sum(1 for _group in range(g) for _pair in combinations(range(n), 2) for _game in range(k))


def _draw_committee(rng: random.Random) -> dict[str, int | str]:
    s, w = rng.randint(3, 6), rng.randint(3, 10)
    return {"w": w, "m": rng.randint(4, 10), "s": s, "k": rng.randint(2, min(w, s - 1))}


def _check_committee(w: int, m: int, s: int, k: int) -> int:
    return sum(sum(person < w for person in people) >= k for people in combinations(range(w + m), s))


def _draw_coins(rng: random.Random) -> dict[str, int | str]:
    a, b, c = sorted(rng.sample(range(2, 13), 3))
    while gcd(a, b, c) > 1:
        a, b, c = sorted(rng.sample(range(2, 13), 3))
    return {"n": rng.randint(60, 160), "a": a, "b": b, "c": c}


def _check_coins(n: int, a: int, b: int, c: int) -> int:
    ways = [1] + [0] * n
    for coin in (a, b, c):
        for total in range(coin, n + 1):
            ways[total] += ways[total - coin]
    return ways[n]


def _draw_spaced_chairs(rng: random.Random) -> dict[str, int | str]:
    k, g = rng.randint(3, 10), rng.randint(2, 6)
    tightest = k + g * (k - 1)
    return {"n": tightest + rng.randint(3, 15), "k": k, "g": g}


def _check_spaced_chairs(n: int, k: int, g: int) -> int:
    # ways[i]: choices among the first i chairs, of as many chairs as there were passes.
    ways = [1] * (n + 1)
    for _ in range(k):
        longer = [0] * (n + 1)
        for i in range(1, n + 1):
            longer[i] = longer[i - 1] + ways[max(i - 1 - g, 0)]
        ways = longer
    return ways[n] % 1000


def _draw_subset_sums(rng: random.Random) -> dict[str, int | str]:
    return {"k": rng.randint(3, 5), "n": rng.randint(8, 18), "m": rng.randint(3, 11)}


def _check_subset_sums(k: int, n: int, m: int) -> int:
    # ways[j][r]: subsets of j elements whose sum leaves the remainder r.
    ways = [[0] * m for _ in range(k + 1)]
    ways[0][0] = 1
    for element in range(1, n + 1):
        for j in range(k, 0, -1):
            for r in range(m):
                ways[j][(r + element) % m] += ways[j - 1][r]
    return ways[k][0]


def _draw_bounded_shares(rng: random.Random) -> dict[str, int | str]:
    k, m = rng.randint(3, 6), rng.randint(4, 20)
    return {"n": rng.randint(m + 1, k * m - 3), "k": k, "m": m}


def _check_bounded_shares(n: int, k: int, m: int) -> int:
    # Inclusion and exclusion over the children who got more than m.
    over = range(min(k, n // (m + 1)) + 1)
    return sum((-1) ** j * comb(k, j) * comb(n - j * (m + 1) + k - 1, k - 1) for j in over)


def _draw_place_in_list(rng: random.Random) -> dict[str, int | str]:
    return {"n": int("".join(rng.sample("123456789", 6)))}


def _check_place_in_list(n: int) -> int:
    digits = str(n)
    place = 1
    for i, digit in enumerate(digits):
        place += sum(later < digit for later in digits[i:]) * factorial(len(digits) - 1 - i)
    return place


def _draw_necklaces(rng: random.Random) -> dict[str, int | str]:
    return {"n": rng.randint(5, 24), "k": rng.randint(2, 15)}


def _check_necklaces(n: int, k: int) -> int:
    # A necklace repeats a block of some length d that is itself no repetition; d turns of it look different.
    primitive: dict[int, int] = {}
    for d in (d for d in range(1, n + 1) if n % d == 0):
        primitive[d] = k**d - sum(count for e, count in primitive.items() if d % e == 0)
    return sum(count // d for d, count in primitive.items()) % 1000


FAMILIES: tuple[Family, ...] = (
    Family(
        name="group_games",
        topic="counting",
        level=1,
        seen=True,
        draw=_draw_group_games,
        wordings=(
            "A tournament starts with $g groups of $n teams each. Within each group every two teams play each other exactly $k times, and teams of different groups do not meet. How many games are played?",
            "The $n teams of a group all play one another, each pair meeting exactly $k times. How many games are played in $g such groups altogether?",
            "In a youth cup every pair of teams in the same group meets exactly $k times; teams of different groups never meet. There are $g groups with $n teams in each. Find the total number of matches.",
            "A chess club splits its members into $g sections of $n players. Any two players of the same section play $k games against each other, and there are no other games. How many games does the club see?",
        ),
        program="""\
import math

print(g * k * math.comb(n, 2))""",
        check=_check_group_games,
    ),
    Family(
        name="committee_at_least",
        topic="counting",
        level=2,
        seen=True,
        draw=_draw_committee,
        wordings=(
            "A club has $w women and $m men. In how many ways can a committee of $s members with at least $k women be chosen?",
            "From $m men and $w women a jury of $s people is selected. How many different juries contain $k or more women?",
            "A committee of $s people must include at least $k women. How many different committees can be formed from a staff of $w women and $m men?",
            "A box holds $w red and $m blue balls, and all the balls carry different labels. How many sets of $s balls from the box contain at least $k red ones?",
        ),
        program="""\
import sympy

print(sum(sympy.binomial(w, i) * sympy.binomial(m, s - i) for i in range(k, s + 1)))""",
        check=_check_committee,
    ),
    Family(
        name="coins_for_a_sum",
        topic="counting",
        level=2,
        seen=True,
        draw=_draw_coins,
        wordings=(
            "In how many ways can exactly $n cents be paid with coins of $a, $b and $c cents? There are plenty of coins of each kind, a kind may be left out, and the order of the coins does not matter.",
            "A machine sells stamps of $a, $b and $c cents only. How many different collections of stamps are worth exactly $n cents in all, if not every kind has to be used?",
            "Find the number of triples (x, y, z) of nonnegative integers with ${a}x + ${b}y + ${c}z = $n.",
            "Rods of $a, $b and $c cm are laid end to end to make a length of exactly $n cm. In how many ways can the numbers of rods of the three kinds, possibly 0, be chosen?",
        ),
        program="""\
import constraint

p = constraint.Problem()
p.addVariables("xyz", range(n + 1))
p.addConstraint(constraint.ExactSumConstraint(n, [a, b, c]), "xyz")
print(len(p.getSolutions()))""",
        check=_check_coins,
    ),
    Family(
        name="spaced_chairs",
        topic="counting",
        level=3,
        seen=True,
        draw=_draw_spaced_chairs,
        wordings=(
            "A row has $n numbered chairs. Let N be the number of ways to choose $k of them with at least $g other chairs between any two chosen ones. Find the remainder when N is divided by 1000.",
            "Along a straight road stand $n lamp posts. In how many ways can $k of the posts be painted so that any two painted posts have at least $g other posts between them? Give the remainder on division by 1000.",
            "An usher wants at least $g empty chairs between any two guests. In how many ways can she pick $k chairs for the guests from a row of $n chairs? Give the answer modulo 1000.",
            "Find the last three digits, read as an integer, of the number of $k-element subsets of {1, 2, ..., $n} in which any two elements differ by more than $g.",
        ),
        program="""\
import sympy

print(sympy.binomial(n - g * (k - 1), k) % 1000)""",
        check=_check_spaced_chairs,
    ),
    Family(
        name="subset_sums",
        topic="counting",
        level=3,
        seen=True,
        draw=_draw_subset_sums,
        wordings=(
            "How many $k-element subsets of {1, 2, ..., $n} have a sum that is divisible by $m?",
            "Cards numbered from 1 to $n lie on a table. In how many ways can $k of them be picked up, the order being irrelevant, so that their sum is a multiple of $m?",
            "The sum of $k different integers from 1 to $n is divisible by $m. How many such sets of integers are there?",
            "Find the number of sets of $k distinct positive integers, none of them above $n, whose sum leaves no remainder on division by $m.",
        ),
        program="""\
import itertools

print(sum(sum(c) % m == 0 for c in itertools.combinations(range(1, n + 1), k)))""",
        check=_check_subset_sums,
    ),
    Family(
        name="bounded_shares",
        topic="counting",
        level=4,
        seen=True,
        draw=_draw_bounded_shares,
        wordings=(
            "In how many ways can $n identical marbles be shared among $k children so that no child gets more than $m? Some children may get none.",
            "No child may receive more than $m sweets, but a child may receive none. In how many ways can $n identical sweets be handed out to $k children?",
            "Each of $k different boxes holds at most $m balls, and boxes may stay empty. In how many ways can $n identical balls be put into the boxes?",
            "How many ordered lists of $k integers, each from 0 to $m inclusive, have the sum $n?",
        ),
        program="""\
import sympy

x = sympy.symbols("x")
p = sympy.Poly(sum(x**i for i in range(m + 1)), x)
print((p**k).coeff_monomial(x**n))""",
        check=_check_bounded_shares,
    ),
    Family(
        name="place_in_list",
        topic="counting",
        level=2,
        seen=False,
        draw=_draw_place_in_list,
        wordings=(
            "All numbers that can be made by rearranging the digits of $n, including $n itself, are listed in increasing order. At which place of the list, counted from 1, does $n stand?",
            "The digits of $n are written in every possible order, and the numbers so obtained, $n among them, are sorted from smallest to largest. The smallest has rank 1. What is the rank of $n?",
            "How many of the numbers that use exactly the same digits as $n, each of them once, are less than or equal to $n?",
        ),
        program="""\
import itertools

s = str(n)
print(sorted(itertools.permutations(s)).index(tuple(s)) + 1)""",
        check=_check_place_in_list,
    ),
    Family(
        name="necklaces",
        topic="counting",
        level=5,
        seen=False,
        draw=_draw_necklaces,
        wordings=(
            "A necklace is a circle of $n beads, each in one of $k colours; not all colours have to occur. Two necklaces are the same if a rotation (not a reflection) takes one to the other. Find the remainder when the number of different necklaces is divided by 1000.",
            "Each of the $n equal sectors of a wheel of fortune is painted in one of $k available colours. Paintings that differ by a rotation count as one. How many different wheels are there? Give the remainder on division by 1000.",
            "There are $k colours of pearl, with enough pearls of each. Rings of $n pearls are made, and two rings are alike if one can be turned, but not flipped, into the other. Find the number of different rings modulo 1000.",
        ),
        program="""\
import sympy

print(sum(sympy.totient(d) * k ** (n // d) for d in sympy.divisors(n)) // n % 1000)""",
        check=_check_necklaces,
    ),
)
