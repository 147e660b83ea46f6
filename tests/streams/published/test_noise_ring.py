"""A ring of noise: exact least squares, exact variances, and true values that cancel."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.noise import GaussianLaw
from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded
from sfumato.streams.published.noise_ring import MOST_RING_LEAVES, Ring
from sfumato.streams.published.noise_tree import Tree


def filter_of(ring: Ring) -> NDArray[np.int64]:
    """Return the filter as a matrix."""
    return np.array([np.roll(ring.filter, place) for place in range(ring.leaves)])


def covariance_of(ring: Ring) -> NDArray[np.float64]:
    """Return the covariance of the leaves' noise, in units of a node's variance."""
    seen = filter_of(ring)
    return np.asarray(np.linalg.inv(ring.finest * np.eye(ring.leaves) + seen.T @ seen))


@pytest.mark.parametrize("leaves", [2, 8, 64])
@pytest.mark.parametrize("size", [10**3, 10**14])
def test_published_leaves_are_least_squares_of_noisy_integers(leaves: int, size: int) -> None:
    """And to the last bit a function of them: true values cancel in all but the leaf itself."""
    ring = Ring(leaves)
    draw = seeded(3).simulator()
    noise = [draw.integers(-size, size, leaves) for _ in range(2)]
    true = draw.integers(0, 10**6, leaves)
    seen = filter_of(ring)
    noisy = [noise[0] + seen @ true, noise[1] + true]
    integers, corrections = ring.leaf_sums(noise)
    after, same = ring.leaf_sums(noisy)
    assert corrections.tolist() == same.tolist()
    assert (integers + true).tolist() == after.tolist()
    floats = [level.astype(np.float64) for level in noisy]
    fitted = covariance_of(ring) @ (ring.finest * floats[1] + seen.T @ floats[0])
    assert integers + true + corrections == pytest.approx(fitted, rel=1e-6, abs=size * 1e-6)


@pytest.mark.parametrize("leaves", [2, 16, 128])
def test_ranges_have_the_variance_of_least_squares(leaves: int) -> None:
    ring = Ring(leaves)
    covariance = covariance_of(ring)
    for first, last in ((0, leaves), (0, 1), (0.25, 0.75), (0.5, leaves - 0.125), (1, 2)):
        edges = np.arange(leaves)
        covered = np.clip(last - edges, 0, 1) - np.clip(first - edges, 0, 1)
        assert ring.mean_square(first, last) == pytest.approx(covered @ covariance @ covered)
    one = ring.mean_square(leaves - 1, leaves) + ring.mean_square(0, leaves)
    assert ring.mean_square(leaves - 1, 2 * leaves + 0.5) == pytest.approx(
        one + ring.mean_square(0, 0.5)
    )


@pytest.mark.parametrize("leaves", [2, 32, 4096])
def test_a_unit_changes_the_nodes_by_what_is_stated(leaves: int) -> None:
    ring = Ring(leaves)
    moved = ring._filtered(np.eye(1, leaves, dtype=np.int64)[0])  # noqa: SLF001
    assert sum(int(change) ** 2 for change in moved) + ring.finest == ring.changes
    assert ring.filter[1:].tolist() == ring.filter[:0:-1].tolist()  # symmetric


def test_noise_of_ranges_has_the_stated_variance() -> None:
    """Two thousand rings tell the variance of half a ring from half as much again."""
    ring, law = Ring(16), GaussianLaw(Fraction(10**8))
    sums = []
    for seed in range(8):
        integers, corrections = ring.leaf_sums(ring.draw(law, seeded(seed)))
        sums.append((integers + corrections).reshape(ring.together, 16)[:, 3:11].sum(axis=1))
    ratio = np.var(np.concatenate(sums)) / (law.variance * float(ring.mean_square(3, 11)))
    assert abs(ratio - 1) < 6 * np.sqrt(2 / 2048)
    assert abs(ratio / 1.5 - 1) > 6 * np.sqrt(2 / 2048)


@pytest.mark.parametrize("leaves", [1 << size for size in range(1, 13)])
def test_filters_are_the_same_everywhere(leaves: int) -> None:
    """No weight is so near to a half that another machine might round it to the other side."""
    places = np.arange(1, leaves)
    precision = np.append(0.0, 1 / np.sin(np.pi * places / leaves))
    precision[0] = precision[1] * np.pi / 3**0.5
    weights = 1024 * np.fft.ifft(np.sqrt(precision - 0.98)).real
    assert np.rint(weights).tolist() == Ring(leaves).filter.tolist()
    assert np.abs(np.abs(weights - np.floor(weights)) - 0.5).min() > 1e-7


def test_a_ring_hides_random_ranges_better_than_any_tree_of_its_size() -> None:
    ends = np.sort(seeded(1).simulator().random((2, 400)) * 1024, axis=0)
    ring = Ring(1024)
    trees = [Tree(2, 11), Tree(2, 9), Tree(4, 6), Tree(4, 5), Tree(32, 3), Tree(1024, 1)]
    best = min(tree.changes * tree.mean_square(*ends).mean() for tree in trees)
    assert ring.changes * ring.mean_square(*ends).mean() < 0.7 * best


@pytest.mark.parametrize("leaves", [0, 1, 3, 2 * MOST_RING_LEAVES])
def test_a_ring_that_cannot_be_is_refused(leaves: int) -> None:
    with pytest.raises(ConfigurationError, match=f"leaves is {leaves}; "):
        Ring(leaves)
