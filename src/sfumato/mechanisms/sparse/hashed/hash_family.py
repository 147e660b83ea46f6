"""Hash families onto any number of buckets: their base, and a fast one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Ints
from sfumato.compiled import WORTH_COMPILING, available, compiled
from sfumato.errors import ConfigurationError
from sfumato.randomness import Source

__all__ = ["HashFamily", "StretchedHash"]

Words = NDArray[np.uint64]

_GOLDEN: Final = 0x9E3779B97F4A7C15
_MIXERS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
_ONE, _FIVE, _HALF = np.uint64(1), np.uint64(5), np.uint64(32)
_LOW: Final = np.uint64((1 << 32) - 1)


@dataclass(frozen=True)
class HashFamily(ABC):
    """Functions from symbols to buckets, each identified by its seed.

    Parameters
    ----------
    symbols
        The number of symbols.
    buckets
        The number of buckets t, two or more.

    """

    symbols: int
    buckets: int

    @property
    @abstractmethod
    def seeds(self) -> int:
        """The number of seeds."""

    @cached_property
    def seed_dtype(self) -> np.dtype[Any]:
        """The shortest unsigned integer that holds a seed."""
        return np.min_scalar_type(self.seeds - 1).newbyteorder("<")

    def listed(self, most: int) -> range:
        """Return all seeds; raise ConfigurationError if there are more than ``most``."""
        if self.seeds > most:
            raise ConfigurationError(f"there are {self.seeds} seeds; they are listed up to {most}.")
        return range(self.seeds)

    def draw(self, n: int, rng: Source) -> Words:
        """Return n uniform seeds."""
        return rng.below(self.seeds, n, np.uint64)

    @abstractmethod
    def hash(self, symbols: Array, seeds: Array) -> NDArray[np.uint16]:
        """Return the buckets of symbols (rows) under the hashes of these seeds (columns)."""

    @abstractmethod
    def counts(self, rows: int, seeds: Array, buckets: Sequence[Array]) -> Ints:
        """Return how many seeds hash each of the first ``rows`` symbols to the seed's own bucket.

        ``buckets`` has one bucket for each seed, in one or several arrays; the result has one row
        for each array and one column for each symbol.
        """

    def table(self, rows: int, seeds: Array, start: int = 0) -> NDArray[np.uint16]:
        """Return the buckets of symbols ``start`` to ``rows`` - 1 under each seed (columns)."""
        symbols = np.arange(start, rows)[:, None]
        return self.hash(np.broadcast_to(symbols, (len(symbols), seeds.size)), seeds)


@dataclass(frozen=True)
class StretchedHash(HashFamily):
    """The hash of symbol x is number x of the generator SplitMix64, started from the seed.

    Every word of 64 bits is two numbers h of 32 bits, and h is in bucket floor(h t / 2^32). Over
    all seeds of 64 bits every word is exactly uniform, so a bucket has probability 1/t to within
    2^-32; how independent the buckets of several symbols are depends on that generator, which
    passes the usual batteries of tests. A pool of few seeds behaves like that number of random
    hashes.

    Hashing a symbol takes a few instructions, for any number of symbols. Decoding computes no
    bucket at all, because the numbers h of a bucket form an interval.

    Parameters
    ----------
    seed_bits
        The number of bits of a seed.

    Examples
    --------
    >>> family = StretchedHash(symbols=256, buckets=30, seed_bits=64)
    >>> family.table(4, np.array([0, 1], dtype=np.uint64)).T.tolist()
    [[14, 26, 18, 12], [25, 22, 15, 11]]

    """

    seed_bits: int = 64

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return 1 << self.seed_bits

    def hash(self, symbols: Array, seeds: Array) -> NDArray[np.uint16]:
        """Return the buckets of symbols (rows) under the hashes of these seeds (columns)."""
        hashed = np.empty(symbols.shape, dtype=np.uint16)
        states, t = _mixed(seeds.astype(np.uint64)), np.uint64(self.buckets)
        # One row at a time stays in the cache.
        for row, column in zip(hashed, symbols, strict=True):
            indices = column.astype(np.uint64)
            words = _stretched(states, indices >> _ONE)
            words >>= (indices & _ONE) << _FIVE  # the lower half or the upper half
            words &= _LOW
            words *= t
            words >>= _HALF
            row[:] = words
        return hashed

    def counts(self, rows: int, seeds: Array, buckets: Sequence[Array]) -> Ints:
        """Return how many seeds hash each of the first symbols to the seed's own bucket."""
        edges = np.array([-(-(b << 32) // self.buckets) for b in range(self.buckets + 1)])
        first, wide = edges[:-1].astype(np.uint32), np.diff(edges).astype(np.uint32)
        words = (rows + 1) // 2
        counts = np.zeros((len(buckets), 2, words), dtype=np.int64)
        quick = seeds.size * words >= WORTH_COMPILING and available()
        # Temporary arrays stay in the cache.
        block = 1 << 14 if quick else max(1, (1 << 15) // words)
        for start in range(0, seeds.size, block):
            states = _mixed(seeds[start : start + block].astype(np.uint64))
            here = [each[start : start + block] for each in buckets]
            firsts, widths = (np.stack([kind[each] for each in here]) for kind in (first, wide))
            (_count_quickly if quick else _count)(states, firsts, widths, counts)
        return counts.transpose(0, 2, 1).reshape(len(buckets), -1)[:, :rows]


def _mixed(words: Words) -> Words:
    """Return SplitMix64's finalizer of each word: a permutation that looks random."""
    words = words ^ words >> _SHIFTS[0]
    words *= _MIXERS[0]
    words ^= words >> _SHIFTS[1]
    words *= _MIXERS[1]
    words ^= words >> _SHIFTS[2]
    return words


def _stretched(states: Words, indices: NDArray[np.uint64]) -> Words:
    """Return the words at these positions (rows) of generators in these states (columns)."""
    return _mixed(states + (indices + _ONE) * np.uint64(_GOLDEN))


def _count(
    states: Words, firsts: NDArray[np.uint32], widths: NDArray[np.uint32], found: Ints
) -> None:
    """Add to ``found`` how many half words lie in the interval that belongs to each state."""
    indices = np.arange(found.shape[2], dtype=np.uint64)
    # Loops are fast along the longer side: over words, or over states.
    if indices.size > states.size:
        states, firsts, widths, axis = states[:, None], firsts[..., None], widths[..., None], 0
    else:
        indices, axis = indices[:, None], 1
    words = _stretched(states, indices)
    for half, numbers in enumerate((words.astype(np.uint32), (words >> _HALF).astype(np.uint32))):
        for target, (first, width) in enumerate(zip(firsts, widths, strict=True)):
            found[target, half] += np.count_nonzero(numbers - first < width, axis=axis)


@compiled
def _count_quickly(
    states: Words, firsts: NDArray[np.uint32], widths: NDArray[np.uint32], found: Ints
) -> None:
    """Add the same counts as :func:`_count`, word by word, compiled."""
    words = np.empty(found.shape[2], dtype=np.uint64)
    for person in range(states.size):
        step = states[person]
        for index in range(words.size):
            step += np.uint64(_GOLDEN)
            word = step
            word = (word ^ (word >> _SHIFTS[0])) * _MIXERS[0]
            word = (word ^ (word >> _SHIFTS[1])) * _MIXERS[1]
            words[index] = word ^ (word >> _SHIFTS[2])
        for target in range(firsts.shape[0]):
            first, width = firsts[target, person], widths[target, person]
            for index in range(words.size):
                word = words[index]
                found[target, 0, index] += np.uint32(np.uint32(word) - first) < width
                found[target, 1, index] += np.uint32(np.uint32(word >> _HALF) - first) < width
