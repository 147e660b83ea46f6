"""Uniform subsets of a given size, as lists of members or as bits."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools, Ints
from sfumato.errors import ConfigurationError
from sfumato.randomness.whole_numbers import WholeNumbers
from sfumato.randomness.words import ONE

__all__ = ["Subsets", "holds", "members"]


def _check_subset(k: int, m: int) -> None:
    if not 0 <= m <= k:
        raise ConfigurationError(f"m is {m}; a subset of {k} has 0..{k} members.")


def _sizes(lanes: NDArray[np.uint64]) -> Ints:
    """Return the number of members of each subset."""
    small = np.uint16 if len(lanes) < 1 << 10 else np.int64  # sixteen bits are much faster
    return cast("Ints", np.bitwise_count(lanes).sum(axis=0, dtype=small).astype(np.int64))


def members(lanes: NDArray[np.uint64]) -> Ints:
    """Return the members of subsets given as lanes, one subset per row, in increasing order.

    All subsets must have the same size, as those of :meth:`Source.subset_lanes` have.

    Examples
    --------
    >>> members(np.array([[0b1010, 0b0110]], dtype=np.uint64)).tolist()
    [[1, 3], [1, 2]]

    """
    words, n = lanes.shape
    rows = np.ascontiguousarray(lanes.T).astype("<u8", copy=False).view(np.uint8)
    bits = np.unpackbits(rows, bitorder="little").view(np.bool_)
    items = np.flatnonzero(bits).reshape(n, -1)
    items -= np.arange(n)[:, None] * (64 * words)
    return items


def holds(lanes: NDArray[np.uint64], items: Ints, columns: Ints) -> Bools:
    """Return whether the subset in each of these columns contains its item."""
    words = lanes[items >> 6, columns] >> (items & 63).astype(np.uint64)
    return np.asarray(words & np.uint64(1), dtype=np.bool_)


class Subsets(WholeNumbers):
    """Uniform subsets of 0..k-1 that have m members."""

    def subsets(self, k: int, m: int, n: int) -> Ints:
        """Return n uniform m-subsets of 0..k-1, one per row, in no particular order."""
        return np.ascontiguousarray(self.subset_columns(k, m, n).T, dtype=np.int64)

    def subset_columns(self, k: int, m: int, n: int) -> Array:
        """Return n uniform m-subsets of 0..k-1, one per column, in the smallest dtype."""
        _check_subset(k, m)
        chosen = np.empty((m, n), dtype=np.min_scalar_type(max(k - 1, 0)))
        few = m <= 64 or m * m <= k
        block = 1 << 14 if few else max(1, (1 << 22) // k)  # temporary arrays stay in the cache
        for start in range(0, n, block):
            columns = chosen[:, start : start + block]
            if few:
                columns[:] = self._few_of_many(k, m, columns.shape[1])
            else:
                columns[:] = members(self.subset_lanes(k, m, columns.shape[1])).T
        return chosen

    def _few_of_many(self, k: int, m: int, n: int) -> Array:
        """Return n uniform m-subsets of 0..k-1, one in each column, by Floyd's algorithm."""
        chosen = np.empty((m, n), dtype=np.min_scalar_type(max(k - 1, 0)))
        for row, top in enumerate(range(k - m, k)):
            pick = self.below(top + 1, n, chosen.dtype)
            taken = (chosen[:row] == pick).any(axis=0)
            chosen[row] = np.where(taken, chosen.dtype.type(top), pick)
        return chosen

    def subset_lanes(self, k: int, m: int, n: int) -> NDArray[np.uint64]:
        """Return n uniform m-subsets of 0..k-1 as bits: item i of j is bit i % 64 of [i // 64, j].

        Every item draws a number, bit by bit and 64 items at a time, and the m smallest make up
        the subset: of the items still open those with a 0 join if there is room for all of them,
        otherwise only they stay open. Once few are open, it is cheaper to drop them and to toggle
        uniform items that bring the size closer to m. No step distinguishes items, so renaming the
        items only renames the subset: all m-subsets are equally likely. If few items of many are in
        (or out), these are drawn one by one instead.
        """
        _check_subset(k, m)
        chosen = np.zeros(((k + 63) // 64, n), dtype=np.uint64)
        open_ = np.full_like(chosen, ONE - 1)
        if k % 64:
            open_[-1] = (1 << k % 64) - 1
        few = min(m, k - m)
        if few <= min(8 + k // 32, 64):
            columns = np.arange(n)
            for item in self._few_of_many(k, few, n).astype(np.uint64):
                chosen[item >> 6, columns] |= np.uint64(1) << (item & 63)
            return chosen if m == few else chosen ^ open_
        short = np.full(n, m, dtype=np.int64)
        for _ in range(min(k.bit_length() - 2, 12)):  # about four items remain open
            zeros = self.words(chosen.size).reshape(chosen.shape)
            zeros &= open_
            count = _sizes(zeros)
            fits = count <= short
            short -= count * fits
            all_or_none = (-fits.astype(np.int64)).view(np.uint64)
            open_ &= all_or_none
            open_ ^= zeros
            zeros &= all_or_none
            chosen |= zeros
        # All open items may join if removing the surplus again is the shorter way: a uniform item
        # is a member with probability m/k, and not one with (k-m)/k.
        count = _sizes(open_)
        fits = (count - short) * (k - m) < short * m
        short -= count * fits
        chosen |= open_ & (-fits.astype(np.int64)).view(np.uint64)
        self._toggle(chosen, short, k)
        return chosen

    def _toggle(self, lanes: NDArray[np.uint64], short: Ints, k: int) -> None:
        """Toggle uniform items until each subset, which lacks ``short`` members, has its size."""
        flat, n = lanes.reshape(-1), lanes.shape[1]
        rows = np.flatnonzero(short)
        short = short[rows]
        while rows.size:
            item = self.below(k, rows.size)
            index = (item >> 6) * n + rows
            bit = np.uint64(1) << (item & 63).astype(np.uint64)
            word = flat[index]
            nearer = ((word & bit) != 0) == (short < 0)
            flat[index] = word ^ bit * nearer
            short -= np.sign(short) * nearer
            unfinished = short != 0
            rows, short = rows[unfinished], short[unfinished]

    def outside(self, lanes: NDArray[np.uint64], k: int) -> Ints:
        """Return a uniform item of 0..k-1 outside of each subset; no subset may be whole."""
        columns = np.arange(lanes.shape[1])
        items = self.below(k, columns.size)
        again = columns
        while (again := again[holds(lanes, items[again], again)]).size:
            items[again] = self.below(k, again.size)
        return items
