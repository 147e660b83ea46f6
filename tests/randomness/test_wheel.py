"""A wheel follows its weights exactly."""

from __future__ import annotations

import numpy as np
import pytest
from tests.randomness.walking import Scripted

from sfumato.errors import ConfigurationError
from sfumato.randomness import (
    ONE,
    Wheel,
    seeded,
)

WEIGHTS = [[1], [1, 2], [3, 0, 1], [0, 5, 0], [1, 1 << 70, 1], [1 << 200, 3 << 199, 1, 7]]


def ends(weights: list[int], bits: int) -> list[int]:
    return [(sum(weights[: place + 1]) << bits) // sum(weights) for place in range(len(weights))]


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_words_beside_an_edge_fall_on_its_sides(weights: list[int]) -> None:
    edges = sorted({edge for edge in ends(weights, 64)[:-1] if 0 < edge < ONE})
    beside = [word for edge in edges for word in (edge - 1, edge + 1) if word < ONE]
    beside = [word for word in [0, *beside, ONE - 1] if word not in ends(weights, 64)]
    if not beside:
        return
    drawn = Scripted((beside, "<u8")).spin(Wheel(lambda: weights), len(beside))
    exact = [
        next(place for place, end in enumerate(ends(weights, 64)) if word < end) for word in beside
    ]
    assert drawn.tolist() == exact


def test_a_word_on_an_edge_is_decided_by_the_bits_behind_it() -> None:
    for behind in (-1, 0, 1):
        (edge, *_), (longer, *_) = ends([1, 2], 64), ends([1, 2], 128)
        second = (longer + behind) & (ONE - 1)
        script = [edge, second] + [7] * (behind == 0)  # a second tie takes a third word
        source = Scripted((script, "<u8"))
        assert source.spin(Wheel(lambda: [1, 2]), 1).tolist() == [int(behind > 0)]
        assert not source.left


@pytest.mark.parametrize("n", [4_000, 40_000])
@pytest.mark.parametrize("weights", [*WEIGHTS, list(range(1, 300))], ids=lambda w: str(w)[:12])
def test_few_and_many_draws_follow_the_weights(weights: list[int], n: int) -> None:
    counts = np.bincount(seeded(n).spin(Wheel(lambda: weights), n), minlength=len(weights))
    assert counts.sum() == n
    for weight, count in zip(weights, counts.tolist(), strict=True):
        expected = n * weight / sum(weights)
        assert count == 0 if not weight else abs(count - expected) < 6.5 * (expected + 1) ** 0.5


def test_sixteen_bits_decide_what_they_can() -> None:
    # The edges are at a quarter and three quarters; two words begin with an edge's bits.
    source = Scripted((np.arange(1 << 16), "<u2"), ([1 << 16] * 2, "<u8"))
    drawn = source.spin(Wheel(lambda: [1, 2, 1]), 1 << 16)
    assert np.flatnonzero(np.diff(drawn)).tolist() == [(1 << 14) - 1, (3 << 14) - 1]


def test_weights_that_are_all_zero_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="sum to 0"):
        Wheel(lambda: [0, 0])
