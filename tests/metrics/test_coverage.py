"""How often a 95 % interval holds what it is said to hold: 10,000 draws each, at n = 10, 30 and 100."""

from functools import cache

import numpy as np
import pytest

from loopkit.metrics import accuracy, bootstrap, clustered, mcnemar, mean

DRAWS = 10_000


def wilson(rng, n):
    # At one fixed rate the coverage of any interval of counts swings with the rate, so rates are drawn as well.
    rate = rng.uniform()
    return rate, once(accuracy, int(rng.binomial(n, rate)), n)


def students(rng, n):
    return 0, mean(rng.normal(size=n))


def clusters(rng, n):
    """`n` items of four values that correlate by one half."""
    values = rng.normal(size=(n, 1)) + rng.normal(size=(n, 4))
    return 0, mean(values.ravel(), np.repeat(range(n), 4))


def bootstrapped(rng, n):
    return 0, bootstrap(rng.normal(size=n), seed=int(rng.integers(2**32)))


def newcombe(rng, n):
    shares = rng.dirichlet([1, 1, 1, 1])
    return shares[1] - shares[2], once(from_table, *map(int, rng.multinomial(n, shares)))


def korn_graubard(rng, n):
    """`n` items of four trials; an item's own rate is a beta variable around a rate that is drawn, too."""
    rate, correlation = rng.uniform(), rng.uniform(0, 0.6)
    spread = 1 / correlation - 1
    own = rng.beta(rate * spread, (1 - rate) * spread, size=(n, 1))
    return rate, clustered((rng.uniform(size=(n, 4)) < own).ravel(), np.repeat(range(n), 4))


@cache
def once(interval, *counts):
    return interval(*counts)


def from_table(both, only_first, only_second, neither):
    second = [True] * both + [False] * only_first + [True] * only_second + [False] * neither
    return mcnemar([True] * (both + only_first) + [False] * (only_second + neither), second)


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize("draw", [wilson, students, clusters, bootstrapped, newcombe, korn_graubard])
def test_95_percent_intervals_cover_93_to_97_percent(draw, n):
    rng = np.random.default_rng(n)
    drawn = (draw(rng, n) for _ in range(DRAWS))
    covered = sum(found.low <= truth <= found.high for truth, found in drawn) / DRAWS
    assert covered >= 0.93
    # That of `clustered` takes no more than its items for independent: trials that correlate little are worth more.
    assert covered <= (1 if draw is korn_graubard else 0.97)
