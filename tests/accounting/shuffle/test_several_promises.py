"""What several promises add up to, against every way to keep each of them."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from sfumato.accounting.shuffle import together


def _pair(epsilon: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the two laws that are as far apart as the promise allows."""
    up = math.exp(epsilon) / (1 + math.exp(epsilon))
    first = np.array([delta, 0.0, (1 - delta) * up, (1 - delta) * (1 - up)])
    return first, first[[1, 0, 3, 2]]


@pytest.mark.parametrize(
    ("promises", "spare"),
    [
        ([(0.5, 1e-3)], 1e-2),
        ([(0.5, 1e-3), (0.25, 1e-2)], 2e-2),
        ([(0.3, 1e-4)] * 5, 5e-2),
        ([(1.0, 0.0), (0.2, 1e-3), (0.7, 1e-3)], 0.1),
    ],
)
def test_no_sequence_of_answers_tells_more(
    promises: list[tuple[float, float]], spare: float
) -> None:
    epsilon, delta = together(promises, spare)
    pairs = [_pair(*promise) for promise in promises]
    told = 0.0
    for outcome in product(range(4), repeat=len(pairs)):
        one, two = (
            math.prod(float(pair[side][index]) for pair, index in zip(pairs, outcome, strict=True))
            for side in (0, 1)
        )
        told += max(one - math.exp(epsilon) * two, 0.0)
    assert told <= delta
    assert epsilon <= sum(each for each, _ in promises)


def test_it_is_close_to_what_can_be_told_and_never_above_the_sum() -> None:
    many = together([(0.1, 0.0)] * 200, 1e-6)
    assert 5 < many[0] < 9
    assert many[1] == pytest.approx(1e-6)
    assert together([(0.1, 0.0)] * 3, 0.0)[0] == pytest.approx(0.3)
    assert together([], 1e-6) == (0.0, 0.0)
    assert together([(400.0, 0.1), (400.0, 0.0)], 1e-6)[0] == 800.0
