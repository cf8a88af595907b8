"""Algebra: equations, polynomials, optima and complex numbers."""

from __future__ import annotations

import random
from fractions import Fraction
from math import gcd

from .family import Family


def _draw_two_prices(rng: random.Random) -> dict[str, int | str]:
    a, b, c, d = rng.sample(range(2, 10), 4)
    while a * d == b * c:
        a, b, c, d = rng.sample(range(2, 10), 4)
    x, y = rng.randint(5, 60), rng.randint(5, 60)
    return {"a": a, "b": b, "p": a * x + b * y, "c": c, "d": d, "q": c * x + d * y}


def _check_two_prices(a: int, b: int, p: int, c: int, d: int, q: int) -> int:
    # Cramer's rule for x, y; both are whole by construction.
    return (p * d - b * q + a * q - p * c) // (a * d - b * c)


def _draw_mixture(rng: random.Random) -> dict[str, int | str]:
    c = rng.randint(5, 30)
    d = c + rng.randint(3, 25)
    a = d + rng.randint(3, 25)
    per_batch = (a - d) // gcd(a - d, d - c)
    return {"a": a, "b": per_batch * rng.randint(3, 25), "c": c, "d": d}


def _check_mixture(a: int, b: int, c: int, d: int) -> int:
    # What the added solution has too much makes up for what the other has too little.
    return b * (d - c) // (a - d)


def _draw_remainder(rng: random.Random) -> dict[str, int | str]:
    a, b, c, d = rng.randint(2, 9), rng.randint(2, 15), rng.randint(2, 20), rng.randint(1, 60)
    return {"a": a, "b": b, "c": c, "d": d, "r": rng.randint(2, 5)}


def _check_remainder(a: int, b: int, c: int, d: int, r: int) -> int:
    return ((a * r - b) * r + c) * r + d


def _draw_best_price(rng: random.Random) -> dict[str, int | str]:
    p, k, rises = rng.randint(5, 60), rng.randint(2, 12), rng.randint(2, 60)
    return {"n": k * (p + 2 * rises), "p": p, "k": k}


def _check_best_price(n: int, p: int, k: int) -> int:
    return max(range(p, p + n // k + 1), key=lambda price: price * (n - k * (price - p)))


def _draw_cubes_of_roots(rng: random.Random) -> dict[str, int | str]:
    return {"a": rng.randint(2, 14), "b": rng.randint(2, 40), "c": rng.randint(1, 60)}


def _check_cubes_of_roots(a: int, b: int, c: int) -> int:
    # Newton's identities.
    squares = a * a - 2 * b
    return a * squares - b * a + 3 * c


def _draw_workshop(rng: random.Random) -> dict[str, int | str]:
    a, b, c, d = (rng.randint(2, 9) for _ in range(4))
    p, q = rng.sample(range(11, 50), 2)
    m, n = rng.randint(30, 120), rng.randint(30, 120)
    return {"a": a, "b": b, "c": c, "d": d, "m": m, "n": n, "p": p, "q": q}


def _check_workshop(a: int, b: int, c: int, d: int, m: int, n: int, p: int, q: int) -> int:
    # For each number of chairs, as many tables as the hours left allow.
    chairs = range(min(m // a, n // c) + 1)
    return max(p * x + q * min((m - a * x) // b, (n - c * x) // d) for x in chairs)


def _draw_complex_power(rng: random.Random) -> dict[str, int | str]:
    a, b = rng.sample(range(2, 12), 2)
    return {"a": a, "b": b, "n": rng.randint(3, 12)}


def _check_complex_power(a: int, b: int, n: int) -> int:
    real, imaginary = 1, 0
    for _ in range(n):
        real, imaginary = a * real - b * imaginary, a * imaginary + b * real
    return (abs(real) + abs(imaginary)) % 1000


def _draw_mirrored_function(rng: random.Random) -> dict[str, int | str]:
    while True:
        a, b = rng.randint(3, 9), rng.randint(2, 8)
        c, k, n = rng.randint(2, 30), rng.randint(2, 12), rng.randint(2, 15)
        if a > b and c * (a * n * n - b * (k - n) ** 2) % (a * a - b * b) == 0:
            return {"a": a, "b": b, "k": k, "c": c, "n": n}


def _check_mirrored_function(a: int, b: int, k: int, c: int, n: int) -> int:
    # f(x) = u x² + v x + w, by comparing coefficients.
    u = Fraction(c, a + b)
    v = 2 * b * k * u / (a - b)
    w = -b * (u * k * k + v * k) / (a + b)
    return int(u * n * n + v * n + w)


FAMILIES: tuple[Family, ...] = (
    Family(
        name="two_prices",
        topic="algebra",
        level=1,
        seen=True,
        draw=_draw_two_prices,
        wordings=(
            "$a pens and $b pads cost $p cents, while $c pens and $d pads cost $q cents. How many cents do one pen and one pad cost together?",
            "Numbers x and y satisfy ${a}x + ${b}y = $p and ${c}x + ${d}y = $q. Find x + y.",
            "A family pays $p euros for $a adult and $b child tickets. Another pays $q euros for $c adult and $d child tickets. What do one adult and one child pay together, in euros?",
            "One crate weighs as much as any other crate, and one sack as any other sack. $c crates and $d sacks weigh $q kg; $a crates and $b sacks weigh $p kg. What is the weight of a crate plus a sack in kg?",
        ),
        program="""\
import sympy

x, y = sympy.symbols("x y")
s = sympy.solve([a * x + b * y - p, c * x + d * y - q], [x, y])
print(s[x] + s[y])""",
        check=_check_two_prices,
    ),
    Family(
        name="mixture",
        topic="algebra",
        level=2,
        seen=True,
        draw=_draw_mixture,
        wordings=(
            "How many litres of $a% salt solution must be added to $b litres of $c% salt solution to obtain a strength of $d%?",
            "A tank contains $b litres of juice with $c% pulp. How many litres of juice with $a% pulp must be poured in to raise the share of pulp to $d%?",
            "A chemist needs an acid of strength $d%. She has $b litres of strength $c% and wants to strengthen them with acid of strength $a%. How many litres of the stronger acid does she use?",
            "A jeweller melts $b grams of an alloy that is $c% silver together with some of an alloy that is $a% silver. The result is $d% silver. How many grams of the second alloy were there?",
        ),
        program="""\
import sympy

x = sympy.symbols("x")
print(sympy.solve(a * x + c * b - d * (x + b), x)[0])""",
        check=_check_mixture,
    ),
    Family(
        name="polynomial_remainder",
        topic="algebra",
        level=2,
        seen=True,
        draw=_draw_remainder,
        wordings=(
            "Find the remainder when ${a}x^3 - ${b}x^2 + ${c}x + $d is divided by x - $r.",
            "On division by x - $r, which constant remainder does the polynomial ${a}x^3 - ${b}x^2 + ${c}x + $d leave?",
            "Polynomial long division of P(x) = ${a}x^3 - ${b}x^2 + ${c}x + $d by x - $r gives a quotient Q(x) and a number R with P(x) = (x - $r)Q(x) + R. Find R.",
        ),
        program="""\
import sympy

x = sympy.symbols("x")
print(sympy.rem(a * x**3 - b * x**2 + c * x + d, x - r, x))""",
        check=_check_remainder,
    ),
    Family(
        name="best_price",
        topic="algebra",
        level=3,
        seen=True,
        draw=_draw_best_price,
        wordings=(
            "At $p euros each a theatre sells $n tickets. Each rise of the price by 1 euro loses $k buyers. Which price in euros brings in the most money?",
            "A baker sells $n cakes a week at a price of $p euros. For every euro that is added to the price, $k fewer cakes are sold. What price, in euros, makes the weekly revenue largest?",
            "For every 1 euro by which the owner of a boat raises the fare, $k fewer passengers come. At the present fare of $p euros there are $n passengers. At which fare, in euros, are the takings greatest?",
            "Demand for a lamp falls by $k pieces with each extra euro of its price; $n pieces are sold when it costs $p euros. Find the price in euros at which price times pieces sold is greatest.",
        ),
        program="""\
import sympy

x = sympy.symbols("x")
r = x * (n - k * (x - p))
print(sympy.solve(sympy.diff(r, x), x)[0])""",
        check=_check_best_price,
    ),
    Family(
        name="cubes_of_roots",
        topic="algebra",
        level=3,
        seen=True,
        draw=_draw_cubes_of_roots,
        wordings=(
            "Let r, s and t be the three complex roots, counted with multiplicity, of x^3 - ${a}x^2 + ${b}x - $c = 0. Find r^3 + s^3 + t^3.",
            "The polynomial x^3 - ${a}x^2 + ${b}x - $c factors over the complex numbers as (x - r)(x - s)(x - t). What is the sum of the cubes of r, s and t?",
            "Complex numbers r, s, t satisfy rst = $c, rs + st + tr = $b and r + s + t = $a. Find r^3 + s^3 + t^3.",
        ),
        program="""\
import numpy as np

r = np.roots([1, -a, b, -c])
print(round(np.sum(r**3).real))""",
        check=_check_cubes_of_roots,
    ),
    Family(
        name="workshop",
        topic="algebra",
        level=4,
        seen=True,
        draw=_draw_workshop,
        wordings=(
            "A chair takes $a hours of carving and $c hours of painting and earns $p euros; a table takes $b and $d hours, respectively, and earns $q euros. With $m hours of carving and $n hours of painting at hand, what is the greatest profit in euros? Only whole pieces count.",
            "A workshop has $m hours of carving and $n hours of painting. Each chair needs $a hours of carving and $c of painting, each table $b of carving and $d of painting. Chairs earn $p euros and tables $q euros apiece. Find the largest profit, in euros, from whole chairs and tables.",
            "Find the largest value of ${p}x + ${q}y over nonnegative integers x and y with ${a}x + ${b}y <= $m and ${c}x + ${d}y <= $n.",
            "A red robot uses $a kg of steel and $c batteries and is worth $p points; a blue one uses $b kg and $d batteries and is worth $q points. With $m kg of steel and $n batteries, how many points at most can the finished robots be worth together?",
        ),
        program="""\
import scipy.optimize

r = scipy.optimize.linprog([-p, -q], A_ub=[[a, b], [c, d]], b_ub=[m, n], integrality=1)
print(round(-r.fun))""",
        check=_check_workshop,
    ),
    Family(
        name="complex_power",
        topic="algebra",
        level=3,
        seen=False,
        draw=_draw_complex_power,
        wordings=(
            "Let p and q be the integers with ($a + ${b}i)^$n = p + qi, where i^2 = -1. Find the remainder when |p| + |q| is divided by 1000.",
            "The number $a + ${b}i is raised to the power $n, where i is the imaginary unit. Add the absolute values of the real and the imaginary part of the result, and give the sum modulo 1000.",
            "A complex number has real part $a and imaginary part $b. Raised to the power $n it has real part p and imaginary part q. What is the remainder of |p| + |q| on division by 1000?",
        ),
        program="""\
import sympy

z = sympy.expand((a + b * sympy.I) ** n)
print((abs(sympy.re(z)) + abs(sympy.im(z))) % 1000)""",
        check=_check_complex_power,
    ),
    Family(
        name="mirrored_function",
        topic="algebra",
        level=5,
        seen=False,
        draw=_draw_mirrored_function,
        wordings=(
            "A function f satisfies $a f(x) + $b f($k - x) = ${c}x^2 for all real numbers x. Find f($n).",
            "For every real x the function f obeys the rule that $a times f(x) plus $b times f($k - x) equals $c times the square of x. What is the value of f at $n?",
            "Determine f($n), if f is a real function such that ${c}x^2 = $b f($k - x) + $a f(x) holds for all real x.",
        ),
        program="""\
import sympy

m = k - n
u, v = sympy.symbols("u v")
s = sympy.solve([a * u + b * v - c * n**2, b * u + a * v - c * m**2], [u, v])
print(s[u])""",
        check=_check_mirrored_function,
    ),
)
