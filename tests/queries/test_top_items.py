from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.guarantee import Guarantee
from sfumato.errors import ConfigurationError
from sfumato.queries import top

PROMISE = Guarantee("local", "each report", 1.0)


def noisy(values: Any) -> Estimate:
    array = np.asarray(values, dtype=float)
    return Estimate(array, Covariance(np.ones(array.size)), range(array.size), 9, PROMISE)


def test_the_largest_come_first_and_unknown_ones_never() -> None:
    found = top(noisy([1.0, np.nan, 5.0, 3.0]), 2)
    assert found.labels == (2, 3)
    assert found.values.tolist() == [5.0, 3.0]
    assert top(noisy([1.0, np.nan]), 7).labels == (0,)
    assert found.columns()["item"] == [2, 3]


def test_picked_intervals_hold_the_truth() -> None:
    """Twenty equal values: the largest one's own interval misses far too often, the band's not."""
    rng, trials = np.random.default_rng(1), 4000
    own = band = 0
    for _ in range(trials):
        estimate = noisy(rng.normal(0.0, 1.0, 20))
        found = top(estimate, 1)
        band += bool(found.low[0] <= 0 <= found.high[0])
        low, high = estimate.interval()
        own += bool(low[found.labels[0]] <= 0 <= high[found.labels[0]])  # type: ignore[index]
    assert band / trials > 0.95 - 5 * np.sqrt(0.05 * 0.95 / trials)  # false alarm 3e-7
    assert own / trials < 0.7


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_k_is_a_positive_whole_number(k: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"k is .*; a whole number from 1 on is expected"):
        top(noisy([1.0]), k)
