"""Guesses for unfinished blocks: causal, and what each formula says."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded
from sfumato.streams.published.smoothers import SMOOTHERS, smoother, spread

MEANS = np.array([4.0, 10.0, 1.0, 7.0, 3.0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recent", [4, 10, 1, 7, 3]),
        ("mean", [(6 + 4) / 2, 20 / 3, 21 / 4, 28 / 5, 31 / 6]),
        ("median", [5, 6, 5, 6, 5]),
        ("moving", [10 / 2, 20 / 3, 21 / 4, 28 / 5, 31 / 6]),
        ("exponential", [5, 7.5, 4.25, 5.625, 4.3125]),
    ],
)
def test_each_smoother_follows_its_formula(name: str, expected: list[float]) -> None:
    """The start, half a threshold of 12, belongs to the past of each."""
    made = smoother(name, 12)
    assert made.rate == 6
    assert made.push(MEANS).tolist() == pytest.approx(expected)
    assert made.rate == pytest.approx(expected[-1])


@pytest.mark.parametrize("name", SMOOTHERS)
def test_pieces_give_to_the_bit_what_the_whole_gives(name: str) -> None:
    """Else a published guess would tell in which pieces the values were read."""
    means = seeded(1).simulator().exponential(1 / 3, 400)
    whole, parts = smoother(name, 12), smoother(name, 12)
    pieces = np.split(means, [0, 1, 2, 30, 31, 200])
    assert (
        np.concatenate([parts.push(piece) for piece in pieces]).tolist()
        == whole.push(means).tolist()
    )
    assert parts.rate == whole.rate


def test_the_moving_average_forgets() -> None:
    made = smoother("moving", 10)
    made.push(np.arange(20.0))
    assert made.rate == pytest.approx(np.arange(10, 20).mean())


@pytest.mark.parametrize("name", SMOOTHERS)
def test_a_guess_depends_on_earlier_blocks_only(name: str) -> None:
    """The papers' formulas use the block's own sum, which is not known yet."""
    first = smoother(name, 12).push(MEANS)
    changed = MEANS.copy()
    changed[3] += 100
    second = smoother(name, 12).push(changed)
    assert first[:3].tolist() == second[:3].tolist()


def test_a_block_adds_up_to_its_sum() -> None:
    values = spread(np.array([10.0, 3.0]), np.array([2.0, 5.0]), 4)
    assert values.reshape(2, 4).sum(axis=1).tolist() == [10, 3]
    assert values.tolist() == [2, 2, 2, 4, 5, 5, 5, -12]


def test_an_unknown_smoother_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="smoother is 'magic'; recent, mean"):
        smoother("magic", 1)
