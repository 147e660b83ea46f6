"""Exact draws from a finite law that is given by whole-number weights."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import accumulate
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools
from sfumato.errors import ConfigurationError
from sfumato.randomness.words import BITS, Words

__all__ = ["Wheel"]

_FEW_DRAWS: Final = 1 << 12  # below this number no table is made


class Wheel:
    """Draws exactly from a finite law given by whole-number weights of any length.

    A table of sixteen bits decides most draws, and sixty-four bits decide all but one in 2^64 for
    each weight; the remaining ones are decided by the weights themselves, with as many further bits
    as needed.

    Parameters
    ----------
    weights
        A function that returns the weights, the same each time; they are not stored, because they
        may be long.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> wheel = Wheel(lambda: [1, 0, 3])
    >>> np.bincount(seeded(1).spin(wheel, 8_000), minlength=3).tolist()
    [2034, 0, 5966]

    """

    def __init__(self, weights: Callable[[], Iterable[int]]) -> None:
        self.weights = weights
        self._total = sum(weights())
        if self._total < 1:
            raise ConfigurationError(f"the weights sum to {self._total}; 1 or more is expected.")
        self._words = np.array(self._edges(BITS), dtype=np.uint64)
        self._dtype: np.dtype[Any] = np.min_scalar_type(self._words.size)

    def _edges(self, bits: int) -> list[int]:
        """Return the end of each outcome except the last, in whole steps of 2^-bits."""
        ends = accumulate(self.weights())
        return [(end << bits) // self._total for end in ends if end < self._total]

    @cached_property
    def _table(self) -> tuple[Array, Bools]:
        """The outcome for each first 16 bits, and whether an edge lies among numbers with them."""
        starts = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
        outcomes = np.searchsorted(self._words, starts, side="right").astype(self._dtype)
        split = np.zeros(1 << 16, dtype=bool)
        split[(self._words >> np.uint64(48)).astype(np.int64)] = True
        return outcomes, split

    def read(self, n: int, rng: Words) -> Array:
        """Return n outcomes from the words of a source, as indices of the weights."""
        if n < _FEW_DRAWS:
            return self._find(rng.words(n), rng)
        table, split = self._table
        first = rng.words(n, 16)
        outcomes: Array = table[first]
        open_ = np.flatnonzero(split[first])
        if open_.size:
            rest = rng.words(open_.size) >> np.uint64(16)
            outcomes[open_] = self._find(
                first[open_].astype(np.uint64) << np.uint64(48) | rest, rng
            )
        return outcomes

    def _find(self, words: NDArray[np.uint64], rng: Words) -> Array:
        outcomes = np.searchsorted(self._words, words, side="right").astype(self._dtype)
        for index in np.flatnonzero(np.isin(words, self._words)):
            outcomes[index] = self._beyond(int(words[index]), rng)
        return outcomes

    def _beyond(self, drawn: int, rng: Words) -> int:
        """Return the outcome of a draw whose first bits equal those of an edge."""
        bits = BITS
        while True:
            drawn, bits = drawn << BITS | int(rng.words(1)[0]), bits + BITS
            edges = self._edges(bits)
            if drawn not in edges:
                return bisect_right(edges, drawn)
