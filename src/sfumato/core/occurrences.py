"""How often each of some codes occurs: the inner loop of most tallies."""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Array, Ints

__all__ = ["occurrences"]


def occurrences(codes: Array, size: int) -> Ints:
    """Return how often each code occurs; all of them must be below ``size``.

    Many codes of a byte are counted in pairs, which takes half as many steps: a pair of codes of
    ``bits`` bits each is a cell of a table, whose margins are the counts of either code.

    Examples
    --------
    >>> occurrences(np.array([2, 0, 2], np.uint8), 4)
    array([1, 0, 2, 0])

    """
    flat = codes.ravel()
    bits = max(size - 1, 1).bit_length()
    if flat.dtype != np.uint8 or flat.size < 4 << 2 * bits:
        return np.bincount(flat, minlength=size)
    low = (1 << bits) - 1
    both = flat[: flat.size & ~1].view("<u2")
    pairs = (both & low) | ((both >> (8 - bits)) & (low << bits))
    table = np.bincount(pairs, minlength=1 << 2 * bits).reshape(1 << bits, 1 << bits)
    counts: Ints = (table.sum(axis=0) + table.sum(axis=1))[:size]
    counts[flat[flat.size & ~1 :]] += 1
    return counts
