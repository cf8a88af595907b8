"""Geometry: lengths, angles, areas and volumes."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import chain, permutations
from math import hypot, isqrt

from .family import Family


def _draw_longest_side(rng: random.Random) -> dict[str, int | str]:
    while True:
        a, b, c = rng.sample(range(2, 15), 3)
        if 2 * max(a, b, c) < a + b + c:
            return {"p": (a + b + c) * rng.randint(2, 40), "a": a, "b": b, "c": c}


def _check_longest_side(p: int, a: int, b: int, c: int) -> int:
    scale = next(scale for scale in range(1, p) if a * scale + b * scale + c * scale == p)
    return sorted((a, b, c))[-1] * scale


def _draw_box_diagonal(rng: random.Random) -> dict[str, int | str]:
    return {edge: rng.randint(2, 18) for edge in "abc"}


def _check_box_diagonal(a: int, b: int, c: int) -> int:
    return round(hypot(hypot(a, b), c) ** 2)


def _cross(p: tuple[int, int], q: tuple[int, int], r: tuple[int, int]) -> int:
    """Twice the area of the triangle pqr, negative if it turns right."""
    return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])


def _draw_triangle_corners(rng: random.Random) -> dict[str, int | str]:
    while True:
        a, b, c, d, e, f = (rng.randint(-12, 12) for _ in range(6))
        if _cross((a, b), (c, d), (e, f)) != 0:
            return {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}


def _check_triangle_corners(a: int, b: int, c: int, d: int, e: int, f: int) -> int:
    # Pick's theorem: twice the area is 2 * inner + border - 2 lattice points.
    inner = border = 0
    for x in range(min(a, c, e), max(a, c, e) + 1):
        for y in range(min(b, d, f), max(b, d, f) + 1):
            turns = (
                _cross((a, b), (c, d), (x, y)),
                _cross((c, d), (e, f), (x, y)),
                _cross((e, f), (a, b), (x, y)),
            )
            if min(turns) >= 0 or max(turns) <= 0:
                if 0 in turns:
                    border += 1
                else:
                    inner += 1
    return 2 * inner + border - 2


def _draw_circle_through(rng: random.Random) -> dict[str, int | str]:
    h, k = rng.randint(2, 20), rng.randint(2, 20)
    u, v = rng.sample(range(1, 16), 2)
    around = [(s * x, t * y) for x, y in ((u, v), (v, u)) for s in (1, -1) for t in (1, -1)]
    (a, b), (c, d), (e, f) = ((h + x, k + y) for x, y in rng.sample(around, 3))
    return {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}


def _check_circle_through(a: int, b: int, c: int, d: int, e: int, f: int) -> int:
    # The centre is equally far from the first point and from each of the others: two linear equations.
    p, q, m = 2 * (c - a), 2 * (d - b), c * c + d * d - a * a - b * b
    r, s, n = 2 * (e - a), 2 * (f - b), e * e + f * f - a * a - b * b
    x = Fraction(m * s - q * n, p * s - q * r)
    y = Fraction(p * n - m * r, p * s - q * r)
    return int(x + y + (x - a) ** 2 + (y - b) ** 2)


def _draw_shortest_route(rng: random.Random) -> dict[str, int | str]:
    return {"a": rng.randint(2, 12), "b": rng.randint(2, 12), "d": rng.randint(3, 28)}


def _check_shortest_route(a: int, b: int, d: int) -> int:
    # Mirror one end in the line: the route unfolds into a straight one.
    return d * d + (a + b) ** 2


def _draw_corner_tetrahedron(rng: random.Random) -> dict[str, int | str]:
    a, b, c = (rng.randint(2, 12) for _ in range(3))
    return {"a": a, "b": b, "c": c, "n": rng.randint(5, 40)}


def _check_corner_tetrahedron(a: int, b: int, c: int, n: int) -> int:
    # The slice at height z is a right triangle of quadratic area, so Simpson's rule is exact.
    height = Fraction(n, c)
    slices = [(n - c * z) ** 2 / (2 * a * b) for z in (0 * height, height / 2, height)]
    volume = height * (slices[0] + 4 * slices[1] + slices[2]) / 6
    return volume.numerator + volume.denominator


def _draw_area_of_sides(rng: random.Random) -> dict[str, int | str]:
    while True:
        a, b, c = sorted(rng.randint(3, 20) for _ in range(3))
        if a + b > c and (a + b + c) % 2 == 0:
            return {"a": a, "b": b, "c": c}


def _check_area_of_sides(a: int, b: int, c: int) -> int:
    # Side c lies on the x-axis; the third corner is at x and has the height that Pythagoras gives.
    x = Fraction(b * b + c * c - a * a, 2 * c)
    square = int((b * b - x * x) * c * c / 4)
    root = max(m for m in range(1, isqrt(square) + 1) if square % m**2 == 0)
    return root + square // root**2


def _draw_rubber_band(rng: random.Random) -> dict[str, int | str]:
    # No three nails in line.
    while True:
        nails = [(rng.randint(0, 25), rng.randint(0, 25)) for _ in range(5)]
        if all(_cross(*three) for three in permutations(nails, 3)):
            return dict(zip("abcdefghij", chain.from_iterable(nails), strict=True))


def _check_rubber_band(**coordinates: int) -> int:
    # A side of the hull has all other nails to its left.
    numbers = [coordinates[name] for name in "abcdefghij"]
    nails = list(zip(numbers[::2], numbers[1::2], strict=True))
    twice = 0
    for p, q in permutations(nails, 2):
        if all(_cross(p, q, r) > 0 for r in nails if r not in (p, q)):
            twice += p[0] * q[1] - q[0] * p[1]
    return twice


FAMILIES: tuple[Family, ...] = (
    Family(
        name="longest_side",
        topic="geometry",
        level=1,
        seen=True,
        draw=_draw_longest_side,
        wordings=(
            "The sides of a triangle are in the ratio $a : $b : $c, and its perimeter is $p. Find the length of its longest side.",
            "A wire of $p cm is bent into a triangle whose sides are in the ratio $a : $b : $c. How many cm long is the longest side?",
            "One triangle has sides of length $a, $b and $c. A triangle similar to it has perimeter $p. What is the longest side of this second triangle?",
            "It takes $p metres of fence to enclose a triangular field. The lengths of its sides are to one another as $a, $b and $c. Find the length of the longest side in metres.",
        ),
        program="""\
import numpy as np

r = np.array([a, b, c])
print(p * r.max() // r.sum())""",
        check=_check_longest_side,
    ),
    Family(
        name="box_diagonal",
        topic="geometry",
        level=1,
        seen=True,
        draw=_draw_box_diagonal,
        wordings=(
            "A rectangular box measures $a by $b by $c. Its space diagonal has length √N. Find N.",
            "Find the square of the distance between two opposite corners of a rectangular block with edges $a, $b and $c.",
            "A room is $a metres long, $b metres wide and $c metres high and has four lamps. A straight string from a corner of the floor to the opposite corner of the ceiling is √N metres long. What is N?",
            "In space a point moves $a units east, then $b units north, then $c units up. What is the square of its distance from where it started?",
        ),
        program="""\
import numpy as np

v = np.array([a, b, c])
print(v @ v)""",
        check=_check_box_diagonal,
    ),
    Family(
        name="triangle_corners",
        topic="geometry",
        level=2,
        seen=True,
        draw=_draw_triangle_corners,
        wordings=(
            "A triangle has its corners at ($a, $b), ($c, $d) and ($e, $f), and its area is K. Find 2K.",
            "In the coordinate plane A = ($a, $b), B = ($c, $d) and C = ($e, $f). What is twice the area of triangle ABC?",
            "Two sides of a parallelogram run from the corner ($a, $b) to its neighbours ($c, $d) and ($e, $f). Find the area of the parallelogram.",
        ),
        program="""\
import sympy

t = sympy.Polygon((a, b), (c, d), (e, f))
print(2 * abs(t.area))""",
        check=_check_triangle_corners,
    ),
    Family(
        name="circle_through",
        topic="geometry",
        level=3,
        seen=True,
        draw=_draw_circle_through,
        wordings=(
            "The circle through ($a, $b), ($c, $d) and ($e, $f) has centre (h, k) and radius r. Find h + k + r^2.",
            "A = ($a, $b), B = ($c, $d) and C = ($e, $f) lie on a circle of radius r around the point (h, k). What is the value of r^2 + h + k?",
            "The points ($a, $b), ($c, $d) and ($e, $f) satisfy (x - h)^2 + (y - k)^2 = s for some constants h, k and s. Find h + k + s.",
        ),
        program="""\
import sympy

k = sympy.Circle(sympy.Point(a, b), sympy.Point(c, d), sympy.Point(e, f))
print(k.center.x + k.center.y + k.radius**2)""",
        check=_check_circle_through,
    ),
    Family(
        name="shortest_route",
        topic="geometry",
        level=4,
        seen=True,
        draw=_draw_shortest_route,
        wordings=(
            "A hut is $a km and a farm $b km from a straight river, both on the same side. The points of the river nearest to them are $d km apart. The shortest walk from the hut to the river and on to the farm is √N km long. Find N.",
            "In the plane A = (0, $a) and B = ($d, $b), and P is any point of the x-axis. The least possible value of AP + PB is √N. Find N.",
            "The feet of two vertical poles are $d m apart on level ground; the poles are $a m and $b m high. A rope runs straight from the top of one to a peg on the ground and straight on to the top of the other. The least possible length of the rope is √N m. What is N?",
        ),
        program="""\
import math
import scipy.optimize

r = scipy.optimize.minimize_scalar(lambda x: math.hypot(x, a) + math.hypot(d - x, b))
print(round(r.fun**2))""",
        check=_check_shortest_route,
    ),
    Family(
        name="corner_tetrahedron",
        topic="geometry",
        level=2,
        seen=False,
        draw=_draw_corner_tetrahedron,
        wordings=(
            "The plane ${a}x + ${b}y + ${c}z = $n and the three coordinate planes bound a tetrahedron. Its volume is p/q, where p and q are relatively prime positive integers. Find p + q.",
            "A solid consists of all points with x, y, z >= 0 and ${a}x + ${b}y + ${c}z <= $n. Write its volume as a fraction p/q in lowest terms and give p + q.",
            "The plane ${a}x + ${b}y + ${c}z = $n meets the coordinate axes at A, B and C, and O is the origin. The volume of the pyramid OABC is p/q with p and q positive and coprime. What is p + q?",
        ),
        program="""\
import sympy

v = sympy.Rational(n**3, 6 * a * b * c)
print(v.p + v.q)""",
        check=_check_corner_tetrahedron,
    ),
    Family(
        name="area_of_sides",
        topic="geometry",
        level=4,
        seen=False,
        draw=_draw_area_of_sides,
        wordings=(
            "A triangle has sides of length $a, $b and $c. Its area is m√n, where m and n are positive integers and n is not divisible by the square of any prime. Find m + n.",
            "In triangle ABC, AB = $a, BC = $b and CA = $c. The area of the triangle can be written as m√n with positive integers m and n, n having no square factor above 1. What is m + n?",
            "Three straight fences of $a, $b and $c metres enclose a triangular garden of m√n square metres, where m and n are positive integers with n squarefree. Find the sum of m and n.",
        ),
        program="""\
import sympy

s = (a + b + c) // 2
m, r = sympy.sqrt(s * (s - a) * (s - b) * (s - c)).as_coeff_Mul()
print(m + r**2)""",
        check=_check_area_of_sides,
    ),
    Family(
        name="rubber_band",
        topic="geometry",
        level=4,
        seen=False,
        draw=_draw_rubber_band,
        wordings=(
            "Nails stand at ($a, $b), ($c, $d), ($e, $f), ($g, $h) and ($i, $j). A rubber band is stretched around all of them and pulled tight. Find twice the area that it encloses.",
            "Let K be the area of the smallest convex polygon that contains the points ($a, $b), ($c, $d), ($e, $f), ($g, $h) and ($i, $j). Find 2K.",
            "A field is the convex hull of five posts at ($a, $b), ($c, $d), ($e, $f), ($g, $h) and ($i, $j). What is twice the area of the field?",
        ),
        program="""\
import scipy.spatial

hull = scipy.spatial.ConvexHull([[a, b], [c, d], [e, f], [g, h], [i, j]])
print(round(2 * hull.volume))""",
        check=_check_rubber_band,
    ),
)
