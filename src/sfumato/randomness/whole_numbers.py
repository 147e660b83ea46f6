"""Uniform whole numbers and orders, without bias, by multiplication or by rejection."""

from __future__ import annotations

import math
from typing import Any, Final, Literal, cast

import numpy as np

from sfumato.arrays import Array, Ints
from sfumato.errors import ConfigurationError
from sfumato.randomness.words import ONE, Words

__all__ = ["BLOCK", "Coins", "WholeNumbers"]

BLOCK: Final = 32
"""The number of bytes that are taken at a time for single numbers."""
_SHORT = 64
_WIDTHS: Final[tuple[Literal[8, 16, 32, 64], ...]] = (8, 16, 32, 64)


class WholeNumbers(Words):
    """Uniform whole numbers below a bound, and uniform orders."""

    def below(self, k: int, n: int, dtype: Any = np.int64) -> Array:
        """Return n uniform integers in [0, k), without bias, for k up to 2^64 that dtype holds."""
        if not 1 <= k <= (ONE if dtype is np.uint64 else ONE >> 1):
            raise ConfigurationError(
                f"k is {k}; a uniform integer below k needs k in 1..2^63, or 2^64 if unsigned."
            )
        if k & (k - 1) == 0:
            return self._below_power_of_two(k, n, dtype)
        # Lemire's multiply-and-shift; a product whose low half is under 2^32 mod k is redrawn.
        # Larger k use plain rejection under the next power of two.
        if k > 1 << 24:
            return self._below_by_rejection(k, n).astype(dtype)
        scaled = self.words(n, 32).astype(np.uint64)
        scaled *= np.uint64(k)
        biased = (1 << 32) % k
        low = scaled & np.uint64((1 << 32) - 1)
        again = np.flatnonzero(low < np.uint64(biased))
        scaled >>= np.uint64(32)
        result = scaled.astype(dtype)
        if again.size:
            result[again] = self.below(k, again.size, dtype)
        return result

    def _below_power_of_two(self, k: int, n: int, dtype: Any) -> Array:
        bits = k.bit_length() - 1
        width = next(w for w in _WIDTHS if bits <= w)
        words = self.words(n, width)
        words &= words.dtype.type(k - 1)
        return words.astype(dtype, copy=False)

    def _below_by_rejection(self, k: int, n: int) -> Ints:
        result = self._below_power_of_two(1 << k.bit_length(), n, np.int64)
        again = np.flatnonzero(result >= k)
        if again.size:
            result[again] = self._below_by_rejection(k, again.size)
        return result

    def below_each(self, sizes: Array, least: int, most: int) -> Ints:
        """Return a uniform integer below each of the sizes, which lie in least..most.

        The number of coins depends on least and most alone, so the sizes may be secret. If
        all possible sizes divide one short number, a uniform number below that one is divided. If
        not, a number below ``most`` is drawn, then one below that number, and so on until one is
        below ``least``; the first of them that is below a size is uniform below it.
        """
        if not 1 <= least <= most <= 1 << 24:
            raise ConfigurationError(
                f"sizes lie in {least}..{most}; whole numbers in 1..2^24 are expected."
            )
        multiple = math.lcm(*range(least, most + 1)) if most < _SHORT else ONE
        if multiple <= 1 << 24:
            return cast("Ints", self.below(multiple, sizes.size) % sizes)
        drawn = self.below(most, sizes.size)
        open_ = np.flatnonzero(drawn >= least)
        last = drawn[open_]
        while open_.size:
            last = self._below_sizes(last)
            wanted = drawn[open_] >= sizes[open_]
            drawn[open_[wanted]] = last[wanted]
            goes_on = last >= least
            open_, last = open_[goes_on], last[goes_on]
        return drawn

    def _below_sizes(self, sizes: Ints) -> Ints:
        """Return a uniform integer below each of the sizes, up to 2^24, by Lemire's method."""
        scaled = self.words(sizes.size, 32).astype(np.int64) * sizes
        again = np.flatnonzero(scaled & ((1 << 32) - 1) < (1 << 32) % sizes)
        scaled >>= 32
        if again.size:
            scaled[again] = self._below_sizes(sizes[again])
        return scaled

    def permutation(self, k: int) -> Ints:
        """Return a uniform order of 0..k-1: the order of k distinct random keys."""
        while True:
            keys = self.words(k)
            order = np.argsort(keys, kind="stable")
            ranked = keys[order]
            # If all keys differ, every order is equally likely; after a tie all keys are drawn
            # again.
            if k < 2 or bool(np.all(ranked[1:] != ranked[:-1])):
                return order


class Coins:
    """A source of single whole numbers, for code that handles one value at a time.

    Bits are taken from the source in blocks; unused bits are never saved, so code that saves its
    state and continues later uses new ones.
    """

    def __init__(self, source: Words) -> None:
        self._source = source
        self._bits = 0
        self._left = 0

    def below(self, k: int) -> int:
        """Return a uniform integer in [0, k), by rejection under the next power of two."""
        width = (k - 1).bit_length()
        while True:
            if self._left < width:
                self._bits = int.from_bytes(self._source.take(BLOCK), "little")
                self._left = 8 * BLOCK
            drawn = self._bits & ((1 << width) - 1)
            self._bits >>= width
            self._left -= width
            if drawn < k:
                return drawn
