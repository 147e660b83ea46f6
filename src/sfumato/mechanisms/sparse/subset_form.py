"""The bytes of a signed subset: whichever of three forms is shortest, all of fixed size.

*Dense*: every entry carries a sign, one bit each. *Entries*: none, plus or minus for each entry in
two bits. *Symbols*: the m symbols in increasing order, with a number behind the last one for each
that fell on a stub. A subset has one form only, so the order of its parts tells nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SubsetForm"]

Symbols = NDArray[np.int64]


@dataclass(frozen=True)
class SubsetForm:
    """How subsets of so many of the (padded) entries are written.

    A symbol is 2 * position, plus 1 for a minus.
    """

    dimension: int
    padded: int
    size: int

    @property
    def dense(self) -> bool:
        """Whether every entry carries a sign."""
        return self.size == self.padded

    @cached_property
    def listed(self) -> bool:
        """Whether a list of symbols is shorter than all entries."""
        return not self.dense and self.size * self._symbol.itemsize < (self.dimension + 3) // 4

    @property
    def _symbol(self) -> np.dtype[Any]:
        return np.min_scalar_type(2 * self.dimension).newbyteorder("<")

    @property
    def _bits(self) -> int:
        return self.dimension * (1 if self.dense else 2)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report."""
        if self.listed:
            return np.dtype([("symbols", self._symbol, (self.size,))])
        return np.dtype([("packed", "u1", ((self._bits + 7) // 8,))])

    def write(self, symbols: Symbols, reports: NDArray[Any]) -> None:
        """Fill reports from symbols, a column for each; what is not of an entry is left out."""
        if self.listed:
            kept = np.minimum(symbols, 2 * self.dimension).astype(self._symbol).T
            reports["symbols"] = np.sort(kept, axis=1)[:, : self.size]
            return
        bits = np.zeros((symbols.shape[1], 2 * self.dimension + 1), dtype=bool)
        places = np.minimum(symbols, 2 * self.dimension).T.astype(np.int64)
        np.put_along_axis(bits, places, values=True, axis=1)
        used = bits[:, 0:-1:2] if self.dense else bits[:, :-1]
        reports["packed"] = np.packbits(used, axis=1, bitorder="little")

    def of_signs(self, signs: Sequence[int]) -> NDArray[Any]:
        """Return the report of one vector of what is sent: -1, 0 or 1 for each entry."""
        symbols = [2 * place + (sign < 0) for place, sign in enumerate(signs) if sign]
        absent = [2 * self.dimension] * max(self.size - len(symbols), 0)
        report = np.empty(1, dtype=self.dtype)
        self.write(np.array([symbols + absent], dtype=np.int64).T, report)
        return report

    def signs(self, reports: NDArray[Any]) -> NDArray[np.int8]:
        """Return what each report sends: -1, 0 or 1 for each entry."""
        if self.listed:
            signs = np.zeros((len(reports), self.dimension + 1), dtype=np.int8)
            symbols = reports["symbols"].astype(np.int64)
            np.put_along_axis(signs, symbols >> 1, 1 - 2 * (symbols & 1), axis=1)
            return signs[:, :-1]
        bits = self._unpacked(reports).view(np.int8)
        return 2 * bits - 1 if self.dense else bits[:, 0::2] - bits[:, 1::2]

    def _unpacked(self, reports: NDArray[Any]) -> NDArray[np.uint8]:
        return np.unpackbits(reports["packed"], axis=1, count=self._bits, bitorder="little")

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which reports are a subset of a possible size, written as it should be."""
        stubs = self.padded - self.dimension
        if self.listed:
            symbols = reports["symbols"]
            sent = symbols < 2 * self.dimension
            good = (symbols <= 2 * self.dimension).all(axis=1)
            # Positions increase, so no entry is there twice, up to the ones left out at the end.
            rising = (symbols[:, 1:] >> 1 > symbols[:, :-1] >> 1) | ~sent[:, 1:]
            enough = np.count_nonzero(sent, axis=1) >= self.size - stubs
            return np.asarray(good & rising.all(axis=1) & enough)
        good = np.ones(len(reports), dtype=bool)
        if self._bits % 8:
            good &= reports["packed"][:, -1] >> self._bits % 8 == 0
        if not self.dense:
            bits = self._unpacked(reports)
            good &= ~(bits[:, 0::2] & bits[:, 1::2]).any(axis=1)
            sent = bits.sum(axis=1)
            good &= (sent <= self.size) & (sent >= self.size - stubs)
        return good

    def counts(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Return how often each entry is sent as plus and as minus."""
        if self.listed:
            total = np.bincount(reports["symbols"].ravel(), minlength=2 * self.dimension + 1)
            return np.ascontiguousarray(total[:-1].reshape(-1, 2).T)
        bits = self._unpacked(reports)
        total = np.zeros(self._bits, dtype=np.int64)
        for start in range(0, len(bits), 255):  # what a byte can count
            total += np.add.reduce(bits[start : start + 255], axis=0, dtype=np.uint8)
        if self.dense:
            return np.stack([total, len(reports) - total])
        return np.ascontiguousarray(total.reshape(-1, 2).T)
