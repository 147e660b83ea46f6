"""How values move, seen from published sums of blocks: post-processing without cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from sfumato.arrays import Floats
from sfumato.streams.published.noise_ring import Ring
from sfumato.streams.published.noise_tree import Tree

__all__ = ["BlockMotion"]

_FEWEST: Final = 5  # blocks
_MOST_PAIRS: Final = 128  # pairs of blocks whose noise is computed; trees repeat
_SLOWEST: Final = 0.98


@dataclass(frozen=True)
class BlockMotion:
    """The variance of block sums around their level: what is forgotten at once, and what lasts.

    If sums of t values have the variance V(t), the part u of a block of known sum varies by
    (1 - u) V(u) + u V(1 - u) - u (1 - u) V(1), with t counted in blocks. What is forgotten within
    few values has V(t) = ``fleeting`` t. What fades by the factor ``memory`` from block to block
    has V(t) = ``lasting`` (x t - 1 + e^(-x t)) with x = -ln(memory): a random walk if nothing
    fades.

    Examples
    --------
    >>> BlockMotion(fleeting=9.0).hidden(0.5)
    2.25

    """

    fleeting: float = 0.0
    lasting: float = 0.0
    memory: float = _SLOWEST

    @classmethod
    def of(cls, sums: Floats, tree: Tree | Ring, variance: float) -> Self:
        """Return the motion that noisy sums show.

        Squared differences of blocks grow with their distance by as much as what lasts fades; the
        rest of what neighbours differ by, at the long end of what noise leaves open, is fleeting.

        Parameters
        ----------
        sums
            The published sums of neighbouring blocks of equal length, from the first leaf on.
        tree
            The tree of their noise.
        variance
            The noise variance of one node.

        """
        if sums.size < _FEWEST:
            return cls()
        near, far, farther = (_beyond_noise(sums, tree, variance, lag) for lag in (1, 2, 3))
        error, grown = _standard_error(near), far - near[: far.size]
        growth = float(grown.mean())
        neighbours = float(near.mean()) + error
        if growth <= 0:
            return cls(max(0.0, neighbours) / 2)
        fades = float((farther - far[: farther.size]).mean() / grown.mean())
        memory = min(max(fades, 0.01), _SLOWEST)
        lasts = cls(0.0, growth / (1 - memory) ** 3, memory)
        covariance = growth / (2 * (1 - memory))
        rest = neighbours / 2 - (lasts.variance(1.0) - covariance)
        return cls(max(0.0, rest), lasts.lasting, memory)

    def variance(self, blocks: float) -> float:
        """Return the variance of the sum of some blocks, or of a part of one."""
        faded = -math.log(self.memory) * blocks
        return self.fleeting * blocks + self.lasting * (faded + math.expm1(-faded))

    def hidden(self, share: float) -> float:
        """Return the variance of the part of a block whose sum is known."""
        part, rest = self.variance(share), self.variance(1 - share)
        return (1 - share) * part + share * rest - share * (1 - share) * self.variance(1.0)


def _beyond_noise(sums: Floats, tree: Tree | Ring, variance: float, lag: int) -> Floats:
    """Return the squares by which blocks at some distance differ, each less that of their noise."""
    squares = (sums[lag:] - sums[:-lag]) ** 2
    at = np.unique(np.linspace(0, squares.size - 1, _MOST_PAIRS).astype(np.int64))
    ends = at + lag
    # Twice the covariance of the two follows from sums that begin or end with one of them.
    twice = tree.mean_square(at, ends + 1) - tree.mean_square(at, ends)
    twice -= tree.mean_square(at + 1, ends + 1)
    if lag > 1:
        twice += tree.mean_square(at + 1, ends)
    noise = tree.mean_square(at, at + 1) + tree.mean_square(ends, ends + 1) - twice
    return np.asarray(squares - variance * noise.mean())


def _standard_error(squares: Floats) -> float:
    """Return the standard error of a mean; neighbours share a block, so they count for less."""
    return float(squares.std()) * math.sqrt(1.5 / squares.size)
