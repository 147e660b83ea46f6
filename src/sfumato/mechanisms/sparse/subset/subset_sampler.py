"""The sampler of all mechanisms that send a subset of the entries, with or without signs.

A subset of m of the d' entries (stubs included) weighs 1 if the input accepts it and e^-epsilon
if not. Only the input's s non-zeros matter for this, so the number K of them in the subset is drawn
first, by its exact integer weights; then these K non-zeros and the m - K zeros are drawn uniformly.
K does not depend on the data, but it is secret: whoever knows K can read the data off the report.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools, Ints
from sfumato.core.law import Law
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse import lanes
from sfumato.mechanisms.sparse.sparse_mechanism import SparseInput, weight_above
from sfumato.mechanisms.sparse.subset.subset_form import FormedReports, SubsetForm
from sfumato.randomness import ONE, Source, Wheel

__all__ = ["LARGEST_DIMENSION", "FavouredSubsets", "SubsetSampler"]

LARGEST_DIMENSION: Final = 1 << 24
LARGEST_WEIGHTS: Final = 1 << 34  # the largest number of bits of all weights of a draw

Rows = Array


class SubsetSampler(FormedReports, SparseInput):
    """A mechanism that sends a random subset of the entries, which favours the input's.

    Parameters
    ----------
    subset_size
        The size m of a subset; by default the one of least exact error.
    most_bytes
        The largest number of bytes of a report; m is the best size that fits. None for no limit.

    """

    subset_size: int | None
    most_bytes: int | None

    signed: ClassVar[bool]
    """Whether the entries of a subset have signs."""

    # ---- what the mechanism defines --------------------------------------------------------

    def _check_bytes(self) -> None:
        """Raise ConfigurationError if reports would be longer than ``most_bytes``."""
        if self.most_bytes is None:
            return
        self._check_whole("most_bytes", 1, 1 << 31)
        if self.subset_size is not None and not self._fits(self.subset_size):
            raise ConfigurationError(
                f"subset_size is {self.subset_size}; such a report takes "
                f"{self._form(self.subset_size).dtype.itemsize} bytes, more than {self.most_bytes}."
            )
        if not self._fits(1):  # no other list is shorter, and a bit for each entry is longer
            raise ConfigurationError(
                f"most_bytes is {self.most_bytes}; a report takes "
                f"{self._form(1).dtype.itemsize} or more."
            )

    def _fits(self, size: int) -> bool:
        return self.most_bytes is None or self._form(size).dtype.itemsize <= self.most_bytes

    def _form(self, size: int) -> SubsetForm:
        return SubsetForm(self.dimension, self.padded_dimension, size, self.signed)

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of positions in a subset."""

    @abstractmethod
    def _weight(self, agree: int, oppose: int) -> int:
        """Return the whole weight of a subset with these numbers of agreeing, opposite symbols."""

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the exact law of what is sent, by listing all subsets of a small dimension."""
        del public
        encoded = self.encode(np.asarray([value]))[0]
        held = dict(zip(encoded["position"].tolist(), encoded["sign"].tolist(), strict=True))
        total: dict[tuple[int, ...], int] = {}
        for positions in combinations(range(self.padded_dimension), self.size):
            for signs in product((1, -1) if self.signed else (1,), repeat=self.size):
                agree = sum(held.get(p) == s for p, s in zip(positions, signs, strict=True))
                oppose = sum(held.get(p) == -s for p, s in zip(positions, signs, strict=True))
                sent = [0] * self.dimension
                for position, sign in zip(positions, signs, strict=True):
                    if position < self.dimension:
                        sent[position] = sign
                total[tuple(sent)] = total.get(tuple(sent), 0) + self._weight(agree, oppose)
        kinds = sorted(total)
        outputs = np.concatenate([self.form.of_signs(kind) for kind in kinds])
        return Law(outputs, tuple(total[kind] for kind in kinds), sum(total.values()))

    # ---- reports ---------------------------------------------------------------------------

    @cached_property
    def form(self) -> SubsetForm:
        """The form of a report's bytes."""
        return self._form(self.size)

    @property
    def chunk(self) -> int:
        """How many people are handled at once: a few megabytes."""
        if self.form.listed:
            people = (1 << 20) // (self.size + self.sparsity)
        else:
            people = (1 << 23) // (self.padded_dimension + 64 * self.sparsity)
        return min(max(people, 16), 1 << 15)

    # ---- the secret draw -------------------------------------------------------------------

    @property
    def zeros(self) -> int:
        """The number of zeros among the entries and stubs of a padded input."""
        return self.padded_dimension - self.sparsity

    @property
    def _hit_range(self) -> range:
        """The possible numbers of non-zeros in a subset."""
        return range(max(0, self.size - self.zeros), min(self.sparsity, self.size) + 1)

    def hit_weights(self) -> Iterator[int]:
        """Yield the weight of each possible number of non-zeros in a subset, in rising order."""
        first, last = self._hit_range[0], self._hit_range[-1]
        # C(s, k) C(d' - s, m - k): neighbours have the ratio up/down. Multiplied by all factors
        # ``down`` the first one is a whole number, and so is every one after it.
        down = [(k + 1) * (self.zeros - self.size + k + 1) for k in range(first, last)]
        ways = prod(down)
        for k in self._hit_range:
            yield ways * self._favour(k) << (last - k if self.signed else 0)
            if k < last:
                ways = ways * (self.sparsity - k) * (self.size - k) // down[k - first]

    @abstractmethod
    def _favour(self, hits: int) -> int:
        """Return the total weight of all sign patterns on ``hits`` non-zeros."""

    @abstractmethod
    def _agreeing(self, hits: int, n: int, rng: Source) -> Array:
        """Return the number of agreeing signs of each of n subsets with ``hits`` non-zeros."""

    @cached_property
    def _hit_wheel(self) -> Wheel:
        cells = len(self._hit_range)
        if cells * cells * 2 * self.padded_dimension.bit_length() > LARGEST_WEIGHTS:
            raise ConfigurationError(
                f"sparsity is {self.sparsity} and subset_size {self.size}; subsets that can hit "
                f"{self._hit_range[-1]} non-zeros are too many to draw from, smaller ones are not."
            )
        return Wheel(self.hit_weights)

    def _hits(self, n: int, rng: Source) -> NDArray[np.int32]:
        """Return the number of non-zeros in each of n subsets."""
        return rng.spin(self._hit_wheel, n).astype(np.int32) + np.int32(self._hit_range[0])

    def secret(self, rng: Source) -> tuple[int, int]:
        """Return the numbers of non-zeros that one subset agrees with and opposes."""
        hits = int(self._hits(1, rng)[0])
        agree = int(self._agreeing(hits, 1, rng)[0])
        return agree, hits - agree

    def marks(self, n: int, rng: Source) -> NDArray[np.int8]:
        """Return the mark of each non-zero: 1 (agree), -1 (oppose) or 0 (not in the subset).

        There is one column for each of n subsets. The marks must be kept secret.
        """
        return self._marks(self._hits(n, rng), rng)

    def _marks(self, hits: NDArray[np.int32], rng: Source) -> NDArray[np.int8]:
        left, agree = hits.copy(), np.zeros_like(hits)
        for count, people in _groups(hits):
            agree[people] = self._agreeing(count, people.size, rng)
        marks = np.zeros((self.sparsity, hits.size), dtype=np.int8)
        for rank in range(self.sparsity):
            drawn = rng.below(self.sparsity - rank, hits.size, np.int32)
            hit, agrees = drawn < left, drawn < agree
            np.subtract(2 * agrees.view(np.int8), hit.view(np.int8), out=marks[rank])
            left -= hit
            agree -= agrees
        return marks

    # ---- the device ------------------------------------------------------------------------

    def _randomize(self, encoded: Array, rng: Source, reports: Array) -> None:
        small = np.min_scalar_type(self.padded_dimension)
        positions = np.ascontiguousarray(encoded["position"].T).astype(small, copy=False)
        signs = np.ascontiguousarray(encoded["sign"].T)
        hits = self._hits(len(encoded), rng)
        if self.form.listed:
            self.form.write_symbols(self._listed(positions, signs, hits, rng), reports)
        else:
            reports["packed"] = self._packed(positions, signs, hits, rng)

    def _listed(self, positions: Rows, signs: Rows, hits: NDArray[np.int32], rng: Source) -> Array:
        """Return the symbols of the subsets, one column for each person."""
        n, most = hits.size, self._hit_range[-1]
        # A non-zero is drawn as d' plus its rank, so that it comes after all zeros.
        last = self.padded_dimension + 2 * self.sparsity
        chosen = np.empty((self.size, n), dtype=np.min_scalar_type(last))
        opposed = np.zeros((most, n), dtype=bool)
        for count, people in _groups(hits):
            drawn = np.empty((self.size, people.size), dtype=chosen.dtype)
            drawn[:count] = rng.subset_columns(self.sparsity, count, people.size)
            drawn[:count] += chosen.dtype.type(self.padded_dimension)
            drawn[count:] = rng.subset_columns(self.zeros, self.size - count, people.size)
            chosen[:, people] = drawn
            if self.signed and count:
                opposed[:count, people] = self._opposed(count, people.size, rng)
        for position in positions:  # in order: step over each non-zero
            chosen += chosen >= position
        symbols = chosen.astype(np.min_scalar_type(self.form.kinds * last))
        if self.signed:
            symbols <<= 1
            symbols |= rng.bits(symbols.size).reshape(symbols.shape)
        behind = self.padded_dimension + self.sparsity
        for row in range(most):
            people = np.flatnonzero(hits > row)
            rank = chosen[row, people] - chosen.dtype.type(behind)
            symbol = positions[rank, people].astype(symbols.dtype)
            if self.signed:
                minus = (signs[rank, people] < 0) ^ opposed[row, people]
                symbol = (symbol << 1) + minus
            symbols[row, people] = symbol
        return symbols

    def _opposed(self, hits: int, n: int, rng: Source) -> Bools:
        """Return which of the ``hits`` non-zeros in it each of n subsets opposes."""
        agree = self._agreeing(hits, n, rng).astype(np.int32)
        opposed = np.empty((hits, n), dtype=bool)
        for row in range(hits):
            agrees = rng.below(hits - row, n, np.int32) < agree
            agree -= agrees
            opposed[row] = ~agrees
        return opposed

    def _packed(
        self, positions: Rows, signs: Rows, hits: NDArray[np.int32], rng: Source
    ) -> NDArray[np.uint8]:
        """Return the bits of the subsets, one row of bytes for each person."""
        marks = self._marks(hits, rng)
        words = (self.dimension + 63) // 64
        if not self.signed:
            inside = self._chosen(positions, marks, words, rng, hits)
            return lanes.rows(inside, self.dimension)
        plus = rng.bit_lanes(self.dimension, hits.size)
        for position, sign, mark in zip(positions, signs, marks, strict=True):
            lanes.put(plus, position, mark == sign)
        if not self.form.dense:
            inside = self._chosen(positions, marks, words, rng, hits)
            plus = lanes.interleaved(inside & plus, inside & ~plus)
        return lanes.rows(plus, self.form.bits)

    def _chosen(
        self,
        positions: Rows,
        marks: NDArray[np.int8],
        words: int,
        rng: Source,
        hits: NDArray[np.int32],
    ) -> NDArray[np.uint64]:
        """Return which entries are in each subset.

        The zeros of an input are drawn as if they were the first d' - s entries. A non-zero among
        these takes the place of a zero after them; with stubs, of one that is never sent.
        """
        inside = np.zeros((words, hits.size), dtype=np.uint64)
        for count, people in _groups(hits):
            drawn = rng.subset_lanes(self.zeros, self.size - count, people.size)
            inside[: len(drawn), people] = drawn
        if self.exact_sparsity:
            self._make_room(inside, positions)
        for position, mark in zip(positions, marks, strict=True):
            lanes.put(inside, position, mark != 0)
        return inside

    def _make_room(self, inside: NDArray[np.uint64], positions: Rows) -> None:
        """Move draws for the positions of non-zeros to the zeros after the first d' - s entries."""
        for rank, position in enumerate(positions):
            free = np.full(position.size, self.zeros + rank, dtype=np.int64)
            for other in positions[rank:]:  # in order: step over each non-zero
                free += (other >= self.zeros) & (free >= other)
            moved = position < self.zeros
            nowhere = 64 * len(inside)
            lanes.put(inside, np.where(moved, free, nowhere), lanes.read(inside, position))


class FavouredSubsets(SubsetSampler):
    """A mechanism whose subsets have two weights: 1 if the input favours them, else e^-epsilon."""

    @abstractmethod
    def _accepts(self, agree: int, oppose: int) -> bool:
        """Return whether a subset with these numbers of agreeing, opposite symbols is favoured."""

    @cached_property
    def refused_weight(self) -> int:
        """The weight e^-epsilon of a subset that is not favoured, in units of 2^-64, rounded up."""
        return weight_above(-Fraction(self.epsilon))

    def _weight(self, agree: int, oppose: int) -> int:
        return ONE if self._accepts(agree, oppose) else self.refused_weight

    @property
    def worst_ratio(self) -> Fraction:
        """The ratio of the weights of a favoured subset and of any other."""
        return Fraction(ONE, self.refused_weight)


def _groups(hits: NDArray[np.int32]) -> Iterator[tuple[int, Ints]]:
    """Yield each number of hits with the indices of the people who have it."""
    for count in np.flatnonzero(np.bincount(hits)).tolist():
        yield count, np.flatnonzero(hits == count)
