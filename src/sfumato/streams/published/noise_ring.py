"""A ring of noise: every leaf has its own noise, and all are tied together by one long filter.

Ranges of random ends have a sum whose square has, at frequency k, a mean near 1/k^2; so the noisy
integers that serve them best look at frequency k with a precision near 1/k. Layers of a tree come
near to that, but only at their own edges. Here the leaves, arranged in a ring, are seen twice: each
with noise of its own, and through a filter whose weights fall with the root of the distance, whole
numbers all of them. Least squares puts the two together, by Fourier transforms.

A leaf is published as its noisy integer plus a correction that depends only on the differences
between what the filter shows and the filtered noisy leaves: integers in which true values cancel.
So the noise can be fitted in advance, as that of a tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats, Ints
from sfumato.core.field_checks import check_whole
from sfumato.core.noise import DrawnLaw, GaussianLaw
from sfumato.errors import ConfigurationError
from sfumato.randomness import Source

__all__ = ["MOST_RING_LEAVES", "Ring"]

MOST_RING_LEAVES: Final = 1 << 12
_FINE: Final = 1024  # the grid of the filter's weights
_OWN: Final = 0.98  # the precision that leaves have from noise of their own, at the finest scale
_LIMB: Final = 24  # bits of a number that are filtered at a time


@dataclass(frozen=True)
class Ring:
    """The shape of one ring; a stream is published as a sequence of rings.

    Parameters
    ----------
    leaves
        The number of leaves, a power of two.

    Examples
    --------
    >>> ring = Ring(1024)
    >>> [round(float(ring.changes * ring.mean_square(0, last)), 1) for last in (1, 32, 1024)]
    [3.2, 8.8, 8.8]

    """

    leaves: int

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the shape is allowed."""
        check_whole("leaves", self.leaves, 2, MOST_RING_LEAVES)
        if self.leaves & (self.leaves - 1):
            raise ConfigurationError(f"leaves is {self.leaves}; a power of two is expected.")

    def __str__(self) -> str:
        return f"ring of {self.leaves:,} leaves"

    @property
    def together(self) -> int:
        """The number of rings that are drawn at once, more than one if they are small."""
        return MOST_RING_LEAVES // self.leaves

    @cached_property
    def filter(self) -> Ints:
        """The weight with which leaves at each distance, going round, count in a node."""
        indices = np.arange(1, self.leaves)
        precision = np.empty(self.leaves)
        precision[1:] = 1 / np.sin(np.pi * indices / self.leaves)
        precision[0] = precision[1] * np.pi / math.sqrt(3)
        weights = np.fft.ifft(np.sqrt(precision - _OWN)).real
        return np.rint(_FINE * weights).astype(np.int64)

    @property
    def finest(self) -> int:
        """How many times less variance than that of a node the noise of a leaf has."""
        return round(_OWN * _FINE**2)

    @cached_property
    def changes(self) -> int:
        """The squared changes that one unit in a leaf makes, over the variance of the noise."""
        return self.finest + int(self.filter @ self.filter)

    # ---- from noise to leaves --------------------------------------------------------------

    def draw(self, law: DrawnLaw, rng: Source) -> list[Ints]:
        """Return the noise of all nodes of the filter, and that of all leaves."""
        assert isinstance(law, GaussianLaw)  # noqa: S101 - the plan of a ring has no other noise
        own = GaussianLaw(law.square / self.finest)
        return [each.draw(self.together * self.leaves, rng) for each in (law, own)]

    def leaf_sums(self, nodes: Sequence[Ints]) -> tuple[Ints, Floats]:
        """Return the leaves of noisy nodes: integers, and corrections to add."""
        seen, own = nodes
        rest = (seen.astype(object) - self._filtered(own)).astype(np.float64)
        spectrum = np.fft.rfft(self.filter.astype(np.float64)).real  # weights are symmetric
        fitted = np.fft.rfft(rest.reshape(-1, self.leaves)) * spectrum
        fitted /= self.finest + spectrum**2
        return own, np.fft.irfft(fitted, self.leaves).ravel()

    def _filtered(self, own: Ints) -> Ints:
        """Return what the filter makes of integers, exactly."""
        low = own & ((1 << _LIMB) - 1)
        total = np.zeros(own.size, dtype=object)
        for bits, part in ((0, low), (_LIMB, own >> _LIMB)):
            rings = part.reshape(-1, self.leaves)
            seen = np.zeros_like(rings)
            for distance, weight in enumerate(self.filter.tolist() if part.any() else []):
                seen += weight * np.roll(rings, distance, axis=1)
            total += seen.ravel().astype(object) << bits
        return total

    # ---- the law of ranges -----------------------------------------------------------------

    @cached_property
    def _variances(self) -> Floats:
        """The variance of the sum of 0, 1, ... leaves, the same from any leaf on."""
        spectrum = np.fft.rfft(self.filter.astype(np.float64)).real
        covariance = np.fft.irfft(1 / (self.finest + spectrum**2), self.leaves)
        grows = covariance[0] + 2 * np.concatenate([[0.0], np.cumsum(covariance[1:])])
        return np.concatenate([[0.0], np.cumsum(grows)])

    def mean_square(self, first: ArrayLike, last: ArrayLike) -> Floats:
        """Return the variance of ranges from first to last, in units of a node's noise variance.

        Positions are in leaves and may be fractional: a partly covered leaf counts in proportion.
        """
        x, y = np.asarray(first, dtype=np.float64), np.asarray(last, dtype=np.float64)
        start, end = np.floor(x / self.leaves), np.floor(y / self.leaves)
        x, y = x - start * self.leaves, y - end * self.leaves
        rest = self._between(x, np.full_like(x, self.leaves)) + self._between(np.zeros_like(y), y)
        rest += (end - start - 1) * self._variances[-1]
        return np.where(start == end, self._between(x, np.maximum(x, y)), rest)

    def _between(self, x: Floats, y: Floats) -> Floats:
        """Return the variance of ranges within a ring, from those of whole numbers of leaves.

        A sum up to a point within a leaf is a mean of the sums up to its two ends, and the variance
        of a mixture of sums follows from that of their differences.
        """
        low, high = np.floor(x), np.floor(y)
        part, over = x - low, y - high
        ends = [(low, part - 1), (low + 1, -part), (high, 1 - over), (high + 1, over)]
        total = np.zeros(np.broadcast(x, y).shape)
        for index, (one, weight) in enumerate(ends):
            for other, factor in ends[:index]:
                apart = np.minimum(np.abs(one - other), self.leaves).astype(np.int64)
                total -= weight * factor * self._variances[apart]
        return total
