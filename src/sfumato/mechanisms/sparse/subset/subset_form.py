"""The bytes of a subset of entries: the shortest of three forms, all of fixed size.

*Dense*: every entry has a sign, one bit each. *Entries*: none, plus or minus for each entry in two
bits or, without signs, in or out in one bit. *Symbols*: the m symbols in increasing order, with a
number beyond the last symbol for each one that is a stub. A subset has only one form, so the order
of its parts reveals nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools, Ints
from sfumato.core.occurrences import occurrences
from sfumato.mechanisms.frequency.oracle import bit_counts

__all__ = ["FormedReports", "SubsetForm"]

Symbols = Array

LONGEST_NETWORK: Final = 64


@dataclass(frozen=True)
class SubsetForm:
    """The form of reports: subsets of ``size`` of the padded entries.

    A symbol is 2 * position, plus 1 for a minus sign; without signs it is the position.
    """

    dimension: int
    padded: int
    size: int
    signed: bool = True

    @property
    def kinds(self) -> int:
        """The number of symbols of an entry."""
        return 2 if self.signed else 1

    @property
    def absent(self) -> int:
        """The number for a symbol that is not sent, which is one above the last symbol."""
        return self.kinds * self.dimension

    @property
    def dense(self) -> bool:
        """Whether every entry has a sign."""
        return self.signed and self.size == self.padded

    @cached_property
    def listed(self) -> bool:
        """Whether a list of symbols is shorter than bits for all entries."""
        return not self.dense and self.size * self.symbol.itemsize < (self.bits + 7) // 8

    @property
    def symbol(self) -> np.dtype[Any]:
        """The dtype of a listed symbol."""
        return np.min_scalar_type(self.absent).newbyteorder("<")

    @property
    def bits(self) -> int:
        """The number of bits for all entries."""
        return self.dimension * (1 if self.dense else self.kinds)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report."""
        if self.listed:
            return np.dtype([("symbols", self.symbol, (self.size,))])
        return np.dtype([("packed", "u1", ((self.bits + 7) // 8,))])

    def write_symbols(self, symbols: Symbols, reports: Array) -> None:
        """Fill listed reports from columns of symbols; symbols of stubs become ``absent``."""
        kept = np.minimum(symbols, symbols.dtype.type(self.absent)).astype(self.symbol)
        if len(kept) > LONGEST_NETWORK:
            kept.sort(axis=0)
        else:
            _sort_columns(kept)
        reports["symbols"] = kept.T

    def of_signs(self, signs: Sequence[int]) -> Array:
        """Return the report of a vector of signs: -1, 0 (not sent) or 1 for each entry."""
        report, sent = np.zeros(1, dtype=self.dtype), np.asarray(signs)
        positions = np.flatnonzero(sent)
        symbols = self.kinds * positions + (sent[positions] < 0)
        if self.listed:
            column = np.full((self.size, 1), self.absent, dtype=np.int64)
            column[: symbols.size, 0] = symbols
            self.write_symbols(column, report)
            return report
        plus, minus = sent > 0, sent < 0
        bits = plus if self.bits == self.dimension else np.column_stack([plus, minus])
        report["packed"][0] = np.packbits(bits, bitorder="little")
        return report

    def signs(self, reports: Array) -> NDArray[np.int8]:
        """Return the signs in each report: -1, 0 (not sent) or 1 for each entry."""
        if self.listed:
            signs = np.zeros((len(reports), self.dimension + 1), dtype=np.int8)
            symbols = reports["symbols"].astype(np.int64)
            positions, minus = symbols // self.kinds, symbols % self.kinds
            np.put_along_axis(signs, positions, (1 - 2 * minus).astype(np.int8), axis=1)
            return signs[:, :-1]
        unpacked = np.unpackbits(reports["packed"], axis=1, count=self.bits, bitorder="little")
        bits = unpacked.view(np.int8)
        if self.dense:
            return 2 * bits - 1
        return bits[:, 0::2] - bits[:, 1::2] if self.signed else bits

    def valid(self, reports: Array) -> Bools:
        """Return a mask of the reports that are subsets of a possible size, in canonical form."""
        least = max(self.size - (self.padded - self.dimension), 0)  # all others are stubs
        if self.listed:
            return self._valid_symbols(np.ascontiguousarray(reports["symbols"].T), least)
        packed = reports["packed"]
        good = np.ones(len(reports), dtype=bool)
        if self.bits % 8:
            good &= packed[:, -1] >> self.bits % 8 == 0
        if self.dense:
            return good
        if self.signed:
            good &= ~(packed & packed >> 1 & 0x55).any(axis=1)
        sent = np.bitwise_count(packed).sum(axis=1, dtype=np.uint32)
        return np.asarray(good & (sent <= self.size) & (sent >= least))

    def _valid_symbols(self, columns: Symbols, least: int) -> Bools:
        """Return the columns with rising positions, in which absent symbols come last."""
        good = columns[-1] <= self.absent
        if least:
            good &= columns[least - 1] < self.absent
        for before, after in pairwise(columns):
            left_out = (after == self.absent) & (before <= self.absent)
            good &= (after // self.kinds > before // self.kinds) | left_out
        return np.asarray(good)

    def counts(self, reports: Array) -> Ints:
        """Return how often each entry is sent, as plus and as minus or, without signs, at all."""
        if self.listed:
            total = occurrences(reports["symbols"], self.absent + 1)[:-1]
        else:
            total = bit_counts(reports["packed"], self.bits)
        if self.dense:
            return np.stack([total, len(reports) - total])
        return np.ascontiguousarray(total.reshape(-1, 2).T) if self.signed else total


def _sort_columns(columns: Symbols) -> None:
    """Sort every column in place, comparing whole rows at a time."""
    for low, high in _network(len(columns)):
        least = np.minimum(columns[low], columns[high])
        np.maximum(columns[low], columns[high], out=columns[high])
        columns[low] = least


def _network(size: int) -> Iterator[tuple[int, int]]:
    """Yield the comparisons of Batcher's merge exchange, which sort any ``size`` numbers."""
    top = 1 << max(size - 1, 0).bit_length() >> 1
    p = top
    while p > 0:
        q, r, d = top, 0, p
        while d > 0:
            yield from ((i, i + d) for i in range(size - d) if i & p == r)
            d, q, r = q - p, q >> 1, p
        p >>= 1


class FormedReports(ABC):
    """Reports of a mechanism whose bytes have the form of a subset."""

    @property
    @abstractmethod
    def form(self) -> SubsetForm:
        """The form of a report's bytes."""

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report: the shortest of three forms; see :class:`SubsetForm`."""
        return self.form.dtype

    def valid(self, reports: Array) -> Bools:
        """Return a mask of the reports that are subsets of a possible size, in canonical form."""
        return self.form.valid(reports)

    def _sums(self, reports: Array) -> Ints:
        return self.form.counts(reports)
