"""The number of non-zeros of a vector that are in a random subset of its entries."""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Floats

__all__ = ["hits_law"]


def hits_law(dimension: int, sparsity: int, size: int) -> tuple[int, Floats]:
    """Return the smallest possible number of non-zeros in a subset, and the law from there on."""
    first, last = max(0, size - (dimension - sparsity)), min(sparsity, size)
    k = np.arange(first, last, dtype=np.float64)
    up = (sparsity - k) * (size - k) / ((k + 1) * (dimension - sparsity - size + k + 1))
    mode = int(np.searchsorted(-up, -1.0))
    chances = np.ones(last - first + 1)
    chances[mode + 1 :] = np.cumprod(up[mode:])
    chances[:mode] = np.cumprod(1 / up[:mode][::-1])[::-1]
    return first, chances / chances.sum()
