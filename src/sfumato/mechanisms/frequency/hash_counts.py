"""Counts of equal hashes, expanded into the support of each item."""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Ints

__all__ = ["counts_by_item"]


def counts_by_item(counts: Ints, g: int, digits: int) -> Ints:
    """Return the number of reports that support each item, from the counts of hashes.

    The axes of ``counts`` are the remaining bucket and the shifts a_(digits-1), ..., a_0. For items
    whose highest digit is 0, all shifts of that digit are added up; for items whose highest digit
    is 1, they are added up along the buckets that they lead to. Then the next digit follows.
    """
    table = counts.reshape(1, g, -1)
    for _ in range(digits):
        # Axes: items, buckets, shifts, the other shifts.
        shifted = table.reshape(len(table), g, g, -1)
        halves = np.empty((len(table), 2, g, shifted.shape[3]), dtype=np.int64)
        shifted.sum(axis=2, out=halves[:, 0])
        for bucket in range(g):
            np.copyto(halves[:, 1, bucket], shifted[:, bucket, 0])
            for shift in range(1, g):
                halves[:, 1, bucket] += shifted[:, (bucket + shift) % g, shift]
        table = halves.reshape(2 * len(table), g, -1)
    return table[:, 0, 0]
