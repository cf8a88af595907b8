"""Number theory: remainders, divisors, primes, digits."""

from __future__ import annotations

import random
from math import gcd, isqrt, lcm, prod

from .family import Family

_TOPIC = "number theory"
_PRIMES = (2, 3, 5, 7, 11, 13)


def _draw_power_remainder(rng: random.Random) -> dict[str, int | str]:
    return {"a": rng.randint(3, 99), "b": rng.randint(50, 2000), "m": rng.randint(101, 1000)}


def _check_power_remainder(a: int, b: int, m: int) -> int:
    remainder = 1
    for _ in range(b):
        remainder = remainder * a % m
    return remainder


power_remainder = Family(
    name="power_remainder",
    topic=_TOPIC,
    level=1,
    seen=True,
    draw=_draw_power_remainder,
    wordings=(
        "Find the remainder when $a^$b is divided by $m.",
        "Dividing by $m, what remainder does the number $a^$b leave?",
        "Let N be the product of $b factors, each of them equal to $a. Find the remainder when N is divided by $m.",
        "Find the integer r with 0 <= r < $m such that $a^$b - r is a multiple of $m.",
    ),
    program="print(pow(a, b, m))",
    check=_check_power_remainder,
)


def _draw_primes_in_class(rng: random.Random) -> dict[str, int | str]:
    m = rng.randint(3, 12)
    low = rng.randint(20, 400)
    r = rng.choice([r for r in range(1, m) if gcd(r, m) == 1])
    return {"low": low, "high": low + rng.randint(200, 4000), "m": m, "r": r}


def _check_primes_in_class(low: int, high: int, m: int, r: int) -> int:
    candidates = range(low + (r - low) % m, high, m)
    return sum(all(n % d for d in range(2, isqrt(n) + 1)) for n in candidates)


primes_in_class = Family(
    name="primes_in_class",
    topic=_TOPIC,
    level=1,
    seen=True,
    draw=_draw_primes_in_class,
    wordings=(
        "How many prime numbers p with $low <= p < $high leave remainder $r when divided by $m?",
        "Find the number of primes that leave a remainder of $r on division by $m and are at least $low but less than $high.",
        "Of all the prime numbers less than $high and not less than $low, how many are $r more than a multiple of $m?",
    ),
    program="""\
import sympy

print(len([p for p in sympy.primerange(low, high) if p % m == r]))""",
    check=_check_primes_in_class,
)


def _draw_divisors_above(rng: random.Random) -> dict[str, int | str]:
    while True:
        n = prod(p ** rng.randint(0, most) for p, most in zip(_PRIMES, (6, 4, 2, 2, 1, 1), strict=True))
        if 2_000 <= n <= 200_000:
            return {"n": n, "k": rng.randint(2, isqrt(n))}


def _check_divisors_above(n: int, k: int) -> int:
    return sum(n % d == 0 for d in range(k + 1, n + 1))


divisors_above = Family(
    name="divisors_above",
    topic=_TOPIC,
    level=2,
    seen=True,
    draw=_draw_divisors_above,
    wordings=(
        "How many positive divisors of $n are greater than $k?",
        "Find the number of integers greater than $k that divide $n.",
        "How many ordered pairs (x, y) of positive integers satisfy xy = $n and x > $k?",
        "A positive integer is larger than $k and is a factor of $n. How many values can it have?",
    ),
    program="""\
import sympy

print(len([d for d in sympy.divisors(n) if d > k]))""",
    check=_check_divisors_above,
)


def _draw_three_remainders(rng: random.Random) -> dict[str, int | str]:
    while True:
        m1, m2, m3 = rng.sample(range(4, 20), 3)
        if lcm(m1, m2, m3) == m1 * m2 * m3 <= 1500:
            r1, r2, r3 = (rng.randint(1, m - 1) for m in (m1, m2, m3))
            return {"m1": m1, "m2": m2, "m3": m3, "r1": r1, "r2": r2, "r3": r3}


def _check_three_remainders(m1: int, m2: int, m3: int, r1: int, r2: int, r3: int) -> int:
    return next(n for n in range(1, m1 * m2 * m3 + 1) if (n % m1, n % m2, n % m3) == (r1, r2, r3))


three_remainders = Family(
    name="three_remainders",
    topic=_TOPIC,
    level=2,
    seen=True,
    draw=_draw_three_remainders,
    wordings=(
        "Find the smallest positive integer that leaves remainder $r1 when divided by $m1, remainder $r2 when divided by $m2, and remainder $r3 when divided by $m3.",
        "When the positive integer n is divided by $m1, $m2 and $m3, the remainders are $r1, $r2 and $r3, respectively. Find the least possible value of n.",
        "Packed in bags of $m1, a heap of marbles leaves $r1 over; packed in bags of $m2, it leaves $r2 over; packed in bags of $m3, it leaves $r3 over. What is the least possible number of marbles?",
    ),
    program="""\
import sympy

n, m = sympy.ntheory.modular.crt([m1, m2, m3], [r1, r2, r3])
print(n)""",
    check=_check_three_remainders,
)


def _draw_power_digits(rng: random.Random) -> dict[str, int | str]:
    while True:
        a, base = rng.randint(3, 99), rng.randint(3, 16)
        if base != 10 and gcd(a, base) == 1:  # a common factor may leave many zeros
            return {"a": a, "b": rng.randint(10, 80), "base": base}


def _check_power_digits(a: int, b: int, base: int) -> int:
    digits = [1]  # the lowest first
    for _ in range(b):
        carry = 0
        for place, digit in enumerate(digits):
            carry, digits[place] = divmod(digit * a + carry, base)
        while carry:
            carry, digit = divmod(carry, base)
            digits.append(digit)
    return sum(digits)


power_digits = Family(
    name="power_digits",
    topic=_TOPIC,
    level=2,
    seen=True,
    draw=_draw_power_digits,
    wordings=(
        "The number $a^$b is written in base $base. Find the sum of its digits, expressed as an ordinary decimal number.",
        "What is the sum, as an ordinary decimal number, of the digits of the base-$base representation of $a^$b?",
        "In base $base, let S be the sum of the digits of N, where N = $a^$b. Write S as a decimal number.",
    ),
    program="""\
import sympy

print(sum(sympy.ntheory.digits(a**b, base)[1:]))""",
    check=_check_power_digits,
)


def _draw_factorial_powers(rng: random.Random) -> dict[str, int | str]:
    return {"n": rng.randint(30, 1500), "b": rng.randint(6, 60)}


def _check_factorial_powers(n: int, b: int) -> int:
    """Legendre's formula for each prime of b."""
    found, rest, p = [], b, 2
    while rest > 1:
        wanted = 0
        while rest % p == 0:
            rest, wanted = rest // p, wanted + 1
        if wanted:
            there, power = 0, p
            while power <= n:
                there, power = there + n // power, power * p
            found.append(there // wanted)
        p += 1
    return min(found)


factorial_powers = Family(
    name="factorial_powers",
    topic=_TOPIC,
    level=3,
    seen=True,
    draw=_draw_factorial_powers,
    wordings=(
        "Find the largest integer k such that $b^k divides $n!.",
        "The number $n! is written in base $b. With how many zeros does it end?",
        "Let N be the product of all positive integers from 1 to $n. What is the greatest k for which N is divisible by the k-th power of $b?",
    ),
    program="""\
import sympy

print(sympy.multiplicity(b, sympy.factorial(n)))""",
    check=_check_factorial_powers,
)


def _draw_divisors_of_square(rng: random.Random) -> dict[str, int | str]:
    p, q = sorted(rng.sample(_PRIMES, 2))
    return {"p": p, "q": q, "a": rng.randint(3, 31), "b": rng.randint(3, 31)}


def _check_divisors_of_square(p: int, q: int, a: int, b: int) -> int:
    """Divisors of n^2 other than n come in pairs about n, and a divisor of n is never above it."""
    below = ((2 * a + 1) * (2 * b + 1) - 1) // 2
    return below - ((a + 1) * (b + 1) - 1)


divisors_of_square = Family(
    name="divisors_of_square",
    topic=_TOPIC,
    level=5,
    seen=True,
    draw=_draw_divisors_of_square,
    wordings=(
        "Let n = $p^$a * $q^$b. How many positive divisors of n^2 are less than n but do not divide n?",
        "How many positive integers smaller than n = $p^$a * $q^$b divide n^2 without dividing n?",
        "Let n = $q^$b * $p^$a. A positive divisor of n^2 is called fresh if it is less than n and is not a divisor of n. Find the number of fresh divisors.",
    ),
    program="""\
import sympy

n = p**a * q**b
print(len([d for d in sympy.divisors(n**2) if d < n and n % d != 0]))""",
    check=_check_divisors_of_square,
)


def _draw_same_remainder(rng: random.Random) -> dict[str, int | str]:
    d = rng.randint(12, 900)
    r = rng.randrange(d)
    a, b, c = (d * k + r for k in rng.sample(range(2, 14), 3))
    return {"a": a, "b": b, "c": c}


def _check_same_remainder(a: int, b: int, c: int) -> int:
    return next(d for d in range(max(a, b, c), 0, -1) if a % d == b % d == c % d)


same_remainder = Family(
    name="same_remainder",
    topic=_TOPIC,
    level=2,
    seen=False,
    draw=_draw_same_remainder,
    wordings=(
        "Find the largest positive integer d such that $a, $b and $c all leave the same remainder when divided by d.",
        "Dividing $a, $b and $c by the positive integer d gives three equal remainders. What is the greatest possible value of d?",
        "Three buckets hold $c, $a and $b beads. From each bucket as many full bags of d beads as possible are packed, and the number of beads left over is the same every time. Find the greatest possible d.",
    ),
    program="""\
import math

print(math.gcd(a - b, b - c))""",
    check=_check_same_remainder,
)


def _draw_unpayable_amount(rng: random.Random) -> dict[str, int | str]:
    while True:
        a, b, c = sorted(rng.sample(range(5, 45), 3))
        if gcd(a, b, c) == 1:
            return {"a": a, "b": b, "c": c}


def _check_unpayable_amount(a: int, b: int, c: int) -> int:
    """The least payable amount of each class modulo a; the worst class ends a below its own."""
    least = [
        min(y * b + z * c for y in range(a) for z in range(a) if (y * b + z * c) % a == r) for r in range(a)
    ]
    return max(least) - a


unpayable_amount = Family(
    name="unpayable_amount",
    topic=_TOPIC,
    level=3,
    seen=False,
    draw=_draw_unpayable_amount,
    wordings=(
        "A post office sells stamps of $a, $b and $c cents only, as many of each as one likes. What is the largest whole number of cents that cannot be made up exactly?",
        "Find the greatest integer that cannot be written as ${a}x + ${b}y + ${c}z with nonnegative integers x, y and z.",
        "Screws come in packs of $c, packs of $b and packs of $a, and packs are never opened. Find the largest number of screws that nobody can buy exactly.",
    ),
    program="""\
paid = {0}
for n in range(1, 2000):
    if paid & {n - a, n - b, n - c}:
        paid.add(n)
print(max(set(range(2000)) - paid))""",
    check=_check_unpayable_amount,
)


def _draw_square_values(rng: random.Random) -> dict[str, int | str]:
    while True:
        a, b = rng.randint(3, 40), rng.randint(3, 400)
        gap = a * a - 4 * b
        # No integer root, so that the square 0 does not come up. The last solution is below |gap| / 4 + a.
        if abs(gap) <= 3000 and (gap < 0 or isqrt(gap) ** 2 != gap):
            if _check_square_values(a, b) > 0:
                return {"a": a, "b": b}


def _check_square_values(a: int, b: int) -> int:
    """With y^2 the value, (2y + 2n - a)(2y - 2n + a) = 4b - a^2."""
    product = 4 * b - a * a
    found = set()
    for u in range(-abs(product), abs(product) + 1):
        if u and product % u == 0:
            v = product // u
            if u + v >= 0 and (u + v) % 4 == 0 and (u - v + 2 * a) % 4 == 0:
                found.add((u - v + 2 * a) // 4)
    return sum(n for n in found if n > 0)


square_values = Family(
    name="square_values",
    topic=_TOPIC,
    level=4,
    seen=False,
    draw=_draw_square_values,
    wordings=(
        "Find the sum of all positive integers n for which n^2 - ${a}n + $b is a perfect square.",
        "Find the sum of all positive integers n such that $b - ${a}n + n^2 is the square of an integer.",
        "For each positive integer n let f(n) = n(n - $a) + $b. Find the sum of all n for which f(n) is a perfect square.",
    ),
    program="""\
import sympy

print(sum(n for n in range(1, 1000) if sympy.ntheory.primetest.is_square(n**2 - a * n + b)))""",
    check=_check_square_values,
)


FAMILIES: tuple[Family, ...] = (
    power_remainder,
    primes_in_class,
    divisors_above,
    three_remainders,
    power_digits,
    factorial_powers,
    divisors_of_square,
    same_remainder,
    unpayable_amount,
    square_values,
)
