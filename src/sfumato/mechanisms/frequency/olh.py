"""Optimized local hashing: hash the item into a few buckets, send the bucket or a random one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import exp
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools, Ints
from sfumato.core.law import Law
from sfumato.core.size_ranges import SizeRange
from sfumato.mechanisms.frequency.hash_counts import counts_by_item
from sfumato.mechanisms.frequency.oracle import FrequencyOracle, kept_threshold
from sfumato.randomness import ONE, Source

__all__ = ["OLH"]

_LARGEST_RANGE: Final = 1 << 15
_COUNTED: Final = 30
_EXPANDED: Final = 15
"""The costs of counting one report and of expanding one cell, in lookups of one table entry."""
_MOST_CELLS: Final = 1 << 22


@dataclass(frozen=True)
class OLH(FrequencyOracle):
    """Optimized local hashing, for large domains and short reports.

    Each report draws a hash of the domain into g buckets and sends it together with the bucket of
    the item, the latter through randomized response: P[y | x, hash] = k [y = hash(x)] + (1-k)/g.
    It supports the items in bucket y: the item held with probability p = k + (1-k)/g, any other
    with 1/g.

    The hash of an item with binary digits x_i is (b + sum_i a_i x_i) mod g, with b and all a_i
    uniform in 0..g-1. For any three different items the differences of their digits contain a
    2 x 2 minor of 1 or -1, so their buckets are independent and uniform for *every* g: exactly what
    the values of p, q = 1/g and the variance, and covariances of zero, require. The whole table of
    buckets is made by doubling (the items from 2^i on repeat those before, shifted by a_i), so
    decoding is fast, and a hash takes only a few bits.

    Parameters
    ----------
    hash_range
        The number of buckets g; by default the one of least variance, about e^epsilon + 1.

    Guarantee
    ---------
    epsilon-LDP for every hash: the hash is drawn without looking at the item.

    Error
    -----
    n Var = (e^epsilon - 1 + g)^2/((e^epsilon - 1)^2 (g - 1)) for an item nobody holds:
    4 e^epsilon/(e^epsilon - 1)^2 at the best g.

    Cost
    ----
    Device O(log d), about (2 + log2 d) log2 g bits, server O(d) per report; among many reports,
    equal hashes are counted together first.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> mechanism = OLH(epsilon=1.0, domain=1000)
    >>> mechanism.buckets, mechanism.report_bytes
    (4, 3)
    >>> reports = mechanism.randomize([700] * 5000, seeded(1))
    >>> int(mechanism.estimate(mechanism.tally(reports)).values.argmax())
    700

    References
    ----------
    Wang, Blocki, Li, Jha, "Locally Differentially Private Protocols for Frequency Estimation"
    (2017). The hash family is this project's.

    """

    hash_range: int | None = None

    name: ClassVar[str] = "olh"
    summary: ClassVar[str] = "a few bytes whatever the domain; decoding takes time"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the hash range is allowed."""
        super().__post_init__()
        if self.hash_range is not None:
            self._check_whole("hash_range", 2, _LARGEST_RANGE)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 4)
        yield cls(0.5, ("red", "green", "blue"))
        yield cls(1.0, 6, hash_range=2)
        yield cls(1.5, 4, hash_range=6)

    @cached_property
    def buckets(self) -> int:
        """The number of buckets: as given, or that neighbour of e^epsilon + 1 of less variance."""
        if self.hash_range is not None:
            return self.hash_range
        gain = exp(self.epsilon) - 1
        floor = max(2, min(int(gain + 2), _LARGEST_RANGE - 1))
        return min((floor, floor + 1), key=lambda g: (gain + g) ** 2 / (g - 1))

    def sizes(self) -> Iterator[SizeRange]:
        """Yield the numbers of buckets, unless one was given."""
        if self.hash_range is None:
            yield SizeRange("hash_range", 2, _LARGEST_RANGE)

    @cached_property
    def kept(self) -> int:
        """The probability of sending the true bucket for certain, in units of 2^-64."""
        return kept_threshold(self.epsilon, self.buckets)

    @cached_property
    def supports(self) -> tuple[Fraction, Fraction]:
        """The probabilities that the bucket sent is the item's, for a holder and for others."""
        blur = Fraction(ONE - self.kept, ONE * self.buckets)
        return blur + Fraction(self.kept, ONE), Fraction(1, self.buckets)

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of a report's probabilities: the true bucket against any other."""
        return self.supports[0] / Fraction(ONE - self.kept, ONE * self.buckets)

    def meets(self, count: int) -> Fraction:
        """Return g^-count, for up to three items, because their buckets are independent."""
        return Fraction(1, self.buckets**count)

    @property
    def meets_all(self) -> Fraction:
        """The probability that all shifts a_i are zero, which puts all items in one bucket."""
        return Fraction(1, self.buckets ** (1 + self._digits))

    @cached_property
    def _digits(self) -> int:
        """The number of binary digits of an item."""
        return (self.size - 1).bit_length()

    @cached_property
    def _symbol_bits(self) -> int:
        return (self.buckets - 1).bit_length()

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report: y, b, a_0, ..., each in the bits that g needs."""
        bits = (2 + self._digits) * self._symbol_bits
        return np.dtype([("packed", "u1", ((bits + 7) // 8,))])

    @cached_property
    def _word(self) -> np.dtype[Any] | None:
        """The shortest unsigned integer that holds a report; None if a report is too long."""
        bits = (2 + self._digits) * self._symbol_bits
        return next((np.dtype(f"<u{size}") for size in (4, 8) if bits <= 8 * size), None)

    def _pack(self, numbers: NDArray[np.uint16], reports: Array) -> None:
        """Fill the reports from rows y, b, a_0, ... with one column for each report."""
        size = self.report_bytes
        if self._word is not None:
            words = np.zeros(numbers.shape[1], dtype=self._word)
            for row, number in enumerate(numbers):
                words |= number.astype(self._word) << self._word.type(row * self._symbol_bits)
            self._write(words, reports)
            return
        packed = np.zeros((size, numbers.shape[1]), dtype=np.uint8)
        for row, number in enumerate(numbers):
            byte, bit = divmod(row * self._symbol_bits, 8)
            shifted = number.astype(np.uint32) << np.uint32(bit)
            # At most 15 + 7 bits, which lie in three bytes.
            for index in range(byte, min(byte + 3, size)):
                packed[index] |= shifted.astype(np.uint8)
                shifted >>= np.uint32(8)
        reports["packed"] = packed.T

    def _unpack(self, reports: Array) -> NDArray[np.uint16]:
        """Return rows y, b, a_0, ... with one column for each report."""
        count, width = 2 + self._digits, self._symbol_bits
        numbers = np.empty((count, len(reports)), dtype=np.uint16)
        if self._word is not None:
            words, kind = self._words(reports), self._word.type
            for row in range(count):
                numbers[row] = words >> kind(row * width) & kind((1 << width) - 1)
            return numbers
        packed = np.ascontiguousarray(reports["packed"].T)
        for row in range(count):
            byte, bit = divmod(row * width, 8)
            held = packed[byte].astype(np.uint32)
            for more, index in enumerate(range(byte + 1, min(byte + 3, len(packed))), start=1):
                held |= packed[index].astype(np.uint32) << np.uint32(8 * more)
            numbers[row] = held >> np.uint32(bit) & np.uint32((1 << width) - 1)
        return numbers

    def _words(self, reports: Array) -> Array:
        """Return each report as one unsigned integer."""
        words = np.zeros(len(reports), dtype=self._word)
        parts, packed = words.view(np.uint8).reshape(words.size, -1), reports["packed"]
        for byte in range(
            self.report_bytes
        ):  # a loop over reports is far longer than one over bytes
            parts[:, byte] = packed[:, byte]
        return words

    def _write(self, words: Array, reports: Array) -> None:
        """Fill the reports from one unsigned integer each."""
        parts, packed = words.view(np.uint8).reshape(words.size, -1), reports["packed"]
        for byte in range(self.report_bytes):
            packed[:, byte] = parts[:, byte]

    def publics(self) -> Sequence[Any]:
        """Return all hashes as tuples (b, a_0, a_1, ...)."""
        return list(product(range(self.buckets), repeat=1 + self._digits))

    def bucket(self, code: int, public: Sequence[int]) -> int:
        """Return the bucket of an item under a hash."""
        offset, *shifts = public
        held = (shift for index, shift in enumerate(shifts) if code >> index & 1)
        return (offset + sum(held)) % self.buckets

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the exact law over the buckets, given a hash (by default the one of zeros)."""
        code = int(self.encode([value])[0])
        seed = tuple(public) if public is not None else (0,) * (1 + self._digits)
        outputs = np.empty(self.buckets, dtype=self.report_dtype)
        rows = np.array([(y, *seed) for y in range(self.buckets)], dtype=np.uint16)
        self._pack(rows.T, outputs)
        numerators = [ONE - self.kept] * self.buckets
        numerators[self.bucket(code, seed)] += self.kept * self.buckets
        return Law(outputs, tuple(numerators), ONE * self.buckets)

    @property
    def chunk(self) -> int:
        """How many people are handled at once; each needs a few dozen words of memory."""
        return 1 << 13

    @cached_property
    def _lane(self) -> np.dtype[Any]:
        """The shortest integer that holds the sum of a bucket before it is taken modulo g."""
        most = (1 + self._digits) * (self.buckets - 1)
        return np.min_scalar_type(most)

    @cached_property
    def _binary(self) -> bool:
        """Whether all numbers of a report are whole bits of one word."""
        return self._word is not None and self.buckets & (self.buckets - 1) == 0

    def _randomize(self, encoded: Array, rng: Source, reports: Array) -> None:
        if self._binary:
            self._randomize_bits(encoded, rng, reports)
            return
        n, g, lane = encoded.size, self.buckets, self._lane
        numbers = np.empty((2 + self._digits, n), dtype=lane)
        numbers[1:] = rng.below(g, n * (1 + self._digits), lane).reshape(-1, n)
        hashed, codes = numbers[1].copy(), encoded.astype(np.min_scalar_type(self.size))
        for index, shift in enumerate(numbers[2:]):
            hashed += shift * (codes >> index & 1).astype(lane)
        hashed %= lane.type(g)
        kept = rng.bernoulli(self.kept, n)
        numbers[0] = np.where(kept, hashed, rng.below(g, n, lane))
        self._pack(numbers, reports)

    def _randomize_bits(self, encoded: Array, rng: Source, reports: Array) -> None:
        """Fill the reports from random words: their bits are a hash and a random bucket."""
        word: Any = self._word
        kind, width = word.type, self._symbol_bits
        words = rng.below(1 << (2 + self._digits) * width, encoded.size, kind)
        codes = encoded.astype(word)
        hashed, shift = words >> kind(width), np.empty_like(words)
        for index in range(self._digits):
            # Only the lowest bits count in the end, and higher ones never reach them.
            np.right_shift(words, kind((2 + index) * width), out=shift)
            shift *= codes & kind(1)
            hashed += shift
            codes >>= kind(1)
        # The random bucket makes way for the item's own.
        hashed ^= words
        hashed &= kind(self.buckets - 1)
        hashed *= rng.bernoulli(self.kept, encoded.size)
        words ^= hashed
        self._write(words, reports)

    def valid(self, reports: Array) -> Bools:
        """Return a mask of the reports whose numbers are all below g and that set no other bit."""
        used = (2 + self._digits) * self._symbol_bits
        good = np.ones(len(reports), dtype=bool)
        if used % 8:
            good &= reports["packed"][:, -1] >> used % 8 == 0
        if self.buckets & (self.buckets - 1):
            good &= (self._unpack(reports) < self.buckets).all(axis=0)
        return good

    @property
    def counted_at_once(self) -> int:
        """How many reports are added up at once: many, so that more of them share a hash."""
        return 1 << 20

    def _sums(self, reports: Array) -> Ints:
        shared = self.shared_digits(len(reports))
        sums = np.zeros(self.size, dtype=np.int64)
        if shared:
            return self._expanded(reports, shared)
        # The table of buckets takes about a megabyte; for the largest domains about a hundred.
        block = max(8, min(64, (1 << 27) // self.size), (1 << 20) // self.size)
        for first in range(0, len(reports), self.chunk):
            numbers = self._unpack(reports[first : first + self.chunk])
            for start in range(0, numbers.shape[1], block):
                sums += self._supported(numbers[:, start : start + block])
        return sums

    def shared_digits(self, n: int) -> int:
        """Return for how many of an item's lowest digits equal hashes are counted together.

        Reports with the same shifts for these digits and the same remaining bucket form one of
        g^(digits + 1) cells. A cell costs about half as much as a report, and both are visited once
        for each value of the other digits. The result is 0 if counting report by report is cheaper.
        """
        each = {
            shared: (_COUNTED * n + _EXPANDED * self.buckets ** (shared + 1))
            * 2 ** (self._digits - shared)
            for shared in range(1, self._digits + 1)
            if self.buckets ** (shared + 1) <= _MOST_CELLS
        }
        best = min(each, key=each.__getitem__, default=0)
        return best if best and each[best] < n * self.size else 0

    def _expanded(self, reports: Array, shared: int) -> Ints:
        """Return the number of supporting reports for each item, from counts of equal hashes."""
        g, cells, above = self.buckets, self.buckets**shared, self._digits - shared
        key = np.zeros(len(reports), dtype=np.int32)
        shifts = np.empty((above, len(reports)), dtype=np.int16)
        # The bucket that remains when the shifts of the higher digits are subtracted.
        left = [np.empty(len(reports), dtype=np.int16)]
        for start in range(0, len(reports), self.chunk):
            part = slice(start, start + self.chunk)
            if self._binary:
                words, bits = self._words(reports[part]), self._symbol_bits
                key[part] = words >> 2 * bits & cells - 1
                left[0][part] = words - (words >> bits) & g - 1
                for row in range(above):
                    shifts[row, part] = words >> (2 + shared + row) * bits & g - 1
                continue
            numbers = self._unpack(reports[part])
            for shift in numbers[2 : 2 + shared][::-1]:
                key[part] *= g
                key[part] += shift
            shifts[:, part] = numbers[2 + shared :]
            left[0][part] = (numbers[0] + np.uint16(g) - numbers[1]) % np.uint16(g)
        sums = np.empty(1 << self._digits, dtype=np.int64)
        for prefix in range(((self.size - 1) >> shared) + 1):
            # Prefixes come in order, so each one reuses what it shares with the one before.
            same = above - (prefix ^ (prefix - 1)).bit_length() if prefix else 0
            del left[same + 1 :]
            for index in reversed(range(above - same)):
                rest = left[-1]
                if prefix >> index & 1:
                    rest = rest - shifts[index]
                    rest += (rest < 0) * np.int16(g)
                left.append(rest)
            counts = np.bincount(left[-1] * np.int32(cells) + key, minlength=g * cells)
            sums[prefix << shared : (prefix + 1) << shared] = counts_by_item(counts, g, shared)
        return sums[: self.size]

    def _supported(self, numbers: NDArray[np.uint16]) -> Ints:
        """Return the number of supporting reports for each item, report by report."""
        g = self.buckets
        lane = np.uint8 if g <= 128 else np.uint16  # the sum of two buckets stays in range
        symbol, offset, shifts = numbers[0], numbers[1], numbers[2:].astype(lane)
        whole = g & (g - 1) == 0  # powers of two may wrap around and are masked at the end
        # hash(item) - y modulo g. Loops run along the longer side, and few reports are counted in
        # bytes.
        few = symbol.size < min(256, self.size)
        table = np.empty((self.size, symbol.size), dtype=lane, order="F" if few else "C")
        table[0] = (offset + np.uint16(g) - symbol) % np.uint16(g)
        for index, shift in enumerate(shifts):
            known = 1 << index
            block = table[known : 2 * known]
            np.add(table[: len(block)], shift, out=block)
            if not whole:
                # What is below g wraps around to a large number.
                np.minimum(block, block - lane(g), out=block)
        if whole:
            table &= lane(g - 1)
        if few:
            equal = (table == 0).view(np.uint8)
            return np.asarray(equal.sum(axis=1, dtype=np.uint8), dtype=np.int64)
        supported = np.packbits(table == 0, axis=1)
        return np.asarray(np.bitwise_count(supported).sum(axis=1, dtype=np.int64))
