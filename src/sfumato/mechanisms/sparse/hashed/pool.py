"""A few hashes shared by many people: reports are counted by hash and bucket, then decoded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.arrays import Array, Floats, Ints
from sfumato.mechanisms.sparse.hashed.hash_family import HashFamily

__all__ = ["counted", "occupied", "supports"]


def counted(reports: Array, seeds: int, buckets: int) -> Ints:
    """Return how many reports have each seed (row) and each bucket (column)."""
    counts = np.zeros(seeds * buckets, dtype=np.int64)
    block = 1 << 20
    for start in range(0, len(reports), block):
        part = reports[start : start + block]
        cells = part["seed"].astype(np.int64) * buckets + part["bucket"]
        counts += np.bincount(cells, minlength=counts.size)
    return counts.reshape(seeds, buckets)


def supports(family: HashFamily, rows: int, indices: Sequence[Array], weights: Array) -> Array:
    """Return the total weight that supports each of the first ``rows`` symbols.

    Weights are given by seed (rows) and bucket (columns). The result has one row for each array in
    ``indices``, which holds, for each bucket, the hash that a symbol must have to be supported by
    it.
    """
    totals = np.zeros((len(indices), rows), dtype=weights.dtype)
    block, group = 1 << 12, 64  # temporary arrays stay in the cache
    for start in range(0, len(weights), block):
        part = weights[start : start + block]
        seeds = np.arange(start, start + len(part))
        firsts = family.buckets * np.arange(len(part))
        moved = [np.empty_like(part) for _ in indices]
        for to, index in zip(moved, indices, strict=True):
            to[:, index] = part
        for first in range(0, rows, group):
            last = min(first + group, rows)
            cells = family.table(last, seeds, first) + firsts
            for target, each in enumerate(moved):
                totals[target, first:last] += each.ravel()[cells].sum(axis=1)
    return totals


def occupied(balls: int, bins: int) -> Floats:
    """Return the probabilities that random balls hit 0, 1, ..., ``balls`` different bins.

    Examples
    --------
    >>> occupied(2, 4).tolist()
    [0.0, 0.25, 0.75]

    """
    chances = np.zeros(balls + 1)
    chances[0] = 1.0
    taken = np.minimum(np.arange(balls + 1) / bins, 1.0)
    for _ in range(balls):
        chances = chances * taken + np.append(0.0, (chances * (1 - taken))[:-1])
    return chances
