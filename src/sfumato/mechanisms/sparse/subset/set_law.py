"""Exact probabilities of subsets without signs, accepted if they hit the set (PrivSet)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, inf

import numpy as np

__all__ = ["SetLaw", "set_law"]


@dataclass(frozen=True)
class SetLaw:
    """The law of a subset without signs, for one item.

    Parameters
    ----------
    dimension, sparsity
        The number of items and stubs, and how many of them are in the padded set.
    size
        The number of members of the subset.
    p_true, p_false
        The probability that an item is in the subset if it is held, and if it is not.
    gap
        p_true - p_false, computed without cancellation.
    pair_held, pair_free
        The probability that two items are both in the subset if at least one of them is held, and
        if none is.

    """

    dimension: int
    sparsity: int
    size: int
    p_true: float
    p_false: float
    gap: float
    pair_held: float
    pair_free: float

    def variances(self) -> tuple[float, float]:
        """Return the variance of one report's estimate for an item not held, and for one held."""
        p, q, scale = self.p_true, self.p_false, self.gap**2
        if scale <= 0:
            return inf, inf
        return q * (1 - q) / scale, p * (1 - p) / scale

    def mse(self, items: int) -> float:
        """Return the total variance over ``items`` real items, s of which are held."""
        absent, present = self.variances()
        return (items - self.sparsity) * absent + self.sparsity * present


@lru_cache(maxsize=1 << 14)
def set_law(epsilon: float, dimension: int, sparsity: int, size: int) -> SetLaw:
    """Return the law of subsets without signs of this size, accepted if they hit the set."""
    share = size / dimension
    both = share * (size - 1) / max(dimension - 1, 1)
    # Subsets with a held item are accepted; of the others, those that miss the set are not.
    norm = _weight(epsilon, dimension, sparsity, size)
    free = _weight(epsilon, dimension - 1, sparsity, size - 1)
    neither = _weight(epsilon, dimension - 2, sparsity, size - 2) if both else 1.0
    missed = exp(_log_missed(dimension - 1, sparsity, size - 1))
    return SetLaw(
        dimension=dimension,
        sparsity=sparsity,
        size=size,
        p_true=share / norm,
        p_false=share * free / norm,
        gap=-share * expm1(-epsilon) * missed / norm,
        pair_held=both / norm,
        pair_free=both * neither / norm,
    )


def _weight(epsilon: float, dimension: int, sparsity: int, size: int) -> float:
    """Return the mean weight of a uniform subset: 1, or e^-epsilon if it misses the set."""
    log_missed = _log_missed(dimension, sparsity, size)
    return -expm1(log_missed) + exp(log_missed - epsilon)


def _log_missed(dimension: int, sparsity: int, size: int) -> float:
    """Return log C(dimension - sparsity, size)/C(dimension, size), the log-chance of a miss."""
    fewer, more = sorted((size, sparsity))
    if fewer + more > dimension:
        return -inf
    return float(np.log1p(-more / (dimension - np.arange(fewer))).sum())
