from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from sfumato.accounting.shuffle.excess import excess


def _counts(kinds: int, n: int) -> list[tuple[int, ...]]:
    return [each for each in product(range(n + 1), repeat=kinds) if sum(each) <= n]


def _exact(values: list[float], chances: list[float], n: int) -> float:
    """Return E[S_+] by listing how often each value occurs."""
    rest = 1 - sum(chances)
    total = []
    for counts in _counts(len(values), n):
        value = math.fsum(count * x for count, x in zip(counts, values, strict=True))
        if value > 0:
            zeros = n - sum(counts)
            ways = math.factorial(n) // math.prod(map(math.factorial, (*counts, zeros)))
            powers = [w**count for w, count in zip(chances, counts, strict=True)]
            total.append(ways * math.prod(powers) * rest**zeros * value)
    return math.fsum(total)


@pytest.mark.parametrize("n", [1, 2, 7, 25])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.6, 0.99])
def test_the_exact_mean_lies_between_the_bounds(n: int, epsilon: float) -> None:
    e = math.exp(epsilon)
    values, chances = [math.e - e, 1 - e * math.e, 1 - e], [0.2, 0.2, 0.15]
    exact = _exact(values, chances, n)
    low, high = excess(np.array(values), np.array(chances), n)
    assert low <= exact <= high
    assert high - low <= 0.01 * exact


@pytest.mark.parametrize("n", [10**3, 10**6, 10**9, 10**12])
def test_bounds_are_close_whatever_the_number(n: int) -> None:
    e = math.exp(5 / math.sqrt(n))
    values = np.array([math.e - e, 1 - e * math.e, 1 - e])
    chances = np.array([0.2, 0.2, 0.15])
    low, high = excess(values, chances, n)
    finer = excess(values, chances, n, smoothing=0.01 / 8)
    assert low <= finer.low <= finer.high <= high
    assert high <= 1.0002 * low


def test_a_normal_sum_has_the_mean_it_should() -> None:
    n, shift = 10**8, 3.0
    step = shift / math.sqrt(n)
    low, high = excess(np.array([1 - step, -1 - step]), np.array([0.5, 0.5]), n)
    density = math.exp(-(shift**2) / 2) / math.sqrt(2 * math.pi)
    tail = math.erfc(shift / math.sqrt(2)) / 2
    expected = math.sqrt(n) * (density - shift * tail)
    assert low == pytest.approx(expected, rel=1e-3)
    assert high == pytest.approx(expected, rel=1e-3)


def test_a_sum_that_is_never_positive_has_no_excess() -> None:
    assert excess(np.array([-1.0, -0.5]), np.array([0.3, 0.3]), 1000) == (0.0, 0.0)


def test_what_is_too_small_for_a_float_is_not_zero() -> None:
    low, high = excess(np.array([1.0, -10.0]), np.array([0.01, 0.9]), 10**6)
    assert low == 0.0
    assert 0.0 < high < 1e-200
