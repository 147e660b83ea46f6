"""A hash family onto any number of buckets under which several symbols are exactly independent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Ints
from sfumato.mechanisms.sparse.hashed.hash_family import HashFamily, StretchedHash

__all__ = ["LinearHash", "family_for"]


@dataclass(frozen=True)
class LinearHash(HashFamily):
    """The hash of symbol x is row x of a fixed matrix times a random vector a, modulo t.

    Any ``strength`` rows are linearly independent modulo every prime factor p of t, so with a
    uniform in Z_t^m the buckets of any ``strength`` symbols are exactly independent and uniform,
    for *every* t. Modulo p the rows are (1, x, x^2, ...), with x in the smallest field of
    characteristic p that has all symbols as elements; the powers x^(ip) follow from x^i and are
    left out (as in the parity checks of a BCH code). The rows for several primes are joined by the
    Chinese remainder theorem. For few symbols the matrix is the identity, and every function is a
    hash.

    A seed is the number of a hash, so independence is exact and not assumed.

    Parameters
    ----------
    strength
        How many symbols have independent buckets.

    Examples
    --------
    >>> family = LinearHash(symbols=9, buckets=6, strength=3)
    >>> family.length, family.seeds == 6**5
    (5, True)
    >>> LinearHash(symbols=256, buckets=30, strength=9).length
    37

    """

    strength: int = 2

    @cached_property
    def _primes(self) -> tuple[int, ...]:
        rest, primes, p = self.buckets, [], 2
        while rest > 1:
            if p * p > rest:
                p = rest
            if rest % p == 0:
                primes.append(p)
                while rest % p == 0:
                    rest //= p
            p += 1
        return tuple(primes)

    def _powers(self, p: int) -> Iterator[int]:
        return (i for i in range(1, self.strength) if i % p)

    @cached_property
    def length(self) -> int:
        """m, the length of the vector a."""
        needed = (1 + _degree(p, self.symbols) * len([*self._powers(p)]) for p in self._primes)
        return min(self.symbols, max(needed))

    @cached_property
    def seeds(self) -> int:
        """The number of seeds."""
        return int(self.buckets**self.length)

    def fits(self, bits: int) -> bool:
        """Return whether a seed has at most ``bits`` bits."""
        return self.length <= bits and self.seeds <= 1 << bits

    @cached_property
    def matrix(self) -> NDArray[np.floating[Any]]:
        """The matrix with one row for each symbol: whole numbers as floats, with exact products."""
        if self.length == self.symbols:
            joined = np.eye(self.symbols, dtype=np.int64)
        else:
            joined = np.zeros((self.symbols, self.length), dtype=np.int64)
            radical = 1
            for p in self._primes:
                # Adds a multiple of the earlier primes' product, so that the rows also agree with
                # those of p.
                joined += radical * ((self._rows(p) - joined) * pow(radical, -1, p) % p)
                radical *= p
        largest = int(joined.max()) * (self.buckets - 1) * self.length + 2 * self.buckets
        return joined.astype(np.float32 if largest < 1 << 22 else np.float64)

    def _rows(self, p: int) -> Ints:
        """Return the digits of 1, x, x^2, ... modulo p, for all symbols x."""
        degree = _degree(p, self.symbols)
        x = np.arange(self.symbols)[:, None] // p ** np.arange(degree) % p
        modulus = np.array(_irreducible(p, degree), dtype=np.int64)
        power, columns = x, [np.ones((self.symbols, 1), dtype=np.int64)]
        for i in range(1, self.strength):
            if i % p:
                columns.append(power)
            if i + 1 < self.strength:
                power = _times(power, x, modulus, p)
        rows = np.concatenate(columns, axis=1)
        return np.pad(rows, ((0, 0), (0, self.length - rows.shape[1])))

    def _vectors(self, seeds: Array) -> NDArray[np.floating[Any]]:
        """Return the vector a of each seed, one in each row."""
        numbers = np.empty((seeds.size, self.length), dtype=self.matrix.dtype)
        rest, t = seeds.astype(np.uint64), np.uint64(self.buckets)
        for column in range(self.length):
            numbers[:, column] = rest % t
            rest //= t
        return numbers

    def hash(self, symbols: Array, seeds: Array) -> NDArray[np.uint16]:
        """Return the buckets of symbols (rows) under the hashes of these seeds (columns)."""
        hashed = np.empty(symbols.shape, dtype=np.int64)
        vectors = self._vectors(seeds)
        for row, column in zip(hashed, symbols, strict=True):
            row[:] = np.einsum("nm,nm->n", self.matrix[column], vectors)
        return (hashed % self.buckets).astype(np.uint16)

    def counts(self, rows: int, seeds: Array, buckets: Sequence[Array]) -> Ints:
        """Return how many seeds hash each of the first symbols to the seed's own bucket."""
        counts = np.zeros((len(buckets), rows), dtype=np.int64)
        block = max(16, (1 << 18) // rows)  # temporary arrays stay in the cache
        for start in range(0, seeds.size, block):
            products = self.matrix[:rows] @ self._vectors(seeds[start : start + block]).T
            for target, each in enumerate(buckets):
                counts[target] += self._zeros(products - each[start : start + block])
        return counts

    def _zeros(self, numbers: NDArray[np.floating[Any]]) -> Ints:
        """Return how many numbers in each row are multiples of t."""
        turns = numbers * numbers.dtype.type(1 / self.buckets)
        np.rint(turns, out=turns)
        turns *= numbers.dtype.type(self.buckets)
        return np.asarray(np.count_nonzero(turns == numbers, axis=1))


def family_for(symbols: int, buckets: int, strength: int, seed_bits: int) -> HashFamily:
    """Return the exactly independent family if its seeds are short enough, else a fast one."""
    exact = LinearHash(symbols, buckets, strength)
    if exact.fits(min(seed_bits, 63)):
        return exact
    return StretchedHash(symbols, buckets, seed_bits)


# ---- finite fields ----------------------------------------------------------------------------


def _degree(p: int, size: int) -> int:
    """Return the degree of the smallest field of characteristic p that has ``size`` elements."""
    degree, held = 1, p
    while held < size:
        degree, held = degree + 1, held * p
    return degree


def _irreducible(p: int, degree: int) -> tuple[int, ...]:
    """Return the lower coefficients of a monic irreducible polynomial, lowest first."""
    for lower in product(range(p), repeat=degree):
        candidate = (*lower[::-1], 1)
        divisors = (
            (*low, 1) for d in range(1, degree // 2 + 1) for low in product(range(p), repeat=d)
        )
        if not any(_divides(divisor, candidate, p) for divisor in divisors):
            return candidate[:-1]
    raise AssertionError  # there is an irreducible polynomial of every degree


def _divides(divisor: tuple[int, ...], polynomial: tuple[int, ...], p: int) -> bool:
    rest = list(polynomial)
    while len(rest) >= len(divisor):
        lead, shift = rest.pop(), len(rest) + 1 - len(divisor)
        for index, coefficient in enumerate(divisor[:-1]):
            rest[shift + index] = (rest[shift + index] - lead * coefficient) % p
    return not any(rest)


def _times(left: Ints, right: Ints, modulus: Ints, p: int) -> Ints:
    """Return the products of field elements, row by row, with their lowest digits first."""
    total = np.zeros_like(left)
    for index in range(modulus.size - 1, -1, -1):
        carry = total[:, -1:].copy()
        total[:, 1:] = total[:, :-1].copy()
        total[:, :1] = 0
        total += right[:, index : index + 1] * left - carry * modulus
        total %= p
    return total
