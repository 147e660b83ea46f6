"""Optimized unary encoding: one bit for each item, flipped more often for the items not held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.arrays import Array, Bools, Ints
from sfumato.core.exact import exp_below
from sfumato.core.law import Law
from sfumato.mechanisms.frequency.oracle import FrequencyOracle, bit_counts
from sfumato.randomness import ONE, Source

__all__ = ["OUE"]


@dataclass(frozen=True)
class OUE(FrequencyOracle):
    """Optimized unary encoding, for any domain where d bits can be sent.

    The report has one bit for each item, all independent: the bit of the item held is a fair coin,
    every other bit is 1 with probability q = 1/(e^epsilon + 1), rounded up to 64 bits.

    Guarantee
    ---------
    epsilon-LDP: two values differ in two bits, whose ratios multiply to (1-q)/q <= e^epsilon.

    Error
    -----
    n Var = 4 e^epsilon/(e^epsilon - 1)^2 + f for a share f.

    Cost
    ----
    Device O(d), d/8 bytes, server O(d) per report.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> mechanism = OUE(epsilon=1.0, domain=100)
    >>> reports = mechanism.randomize([7] * 5000, seeded(1))
    >>> int(mechanism.estimate(mechanism.tally(reports)).values.argmax())
    7

    References
    ----------
    Wang, Blocki, Li, Jha, "Locally Differentially Private Protocols for Frequency Estimation"
    (2017).

    """

    name: ClassVar[str] = "oue"
    summary: ClassVar[str] = "one noisy bit for each item; error does not grow with the domain"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 2)
        yield cls(1.0, 5)
        yield cls(0.5, ("red", "green", "blue"))
        yield cls(3.0, 4)

    @cached_property
    def raised(self) -> int:
        """The probability that the bit of an item not held is 1, in units of 2^-64."""
        return ceil(ONE / (exp_below(self.epsilon) + 1))

    @cached_property
    def supports(self) -> tuple[Fraction, Fraction]:
        """The probabilities that the bit is 1 for the item held and for any other item."""
        return Fraction(1, 2), Fraction(self.raised, ONE)

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of a report's probabilities: (1/2)(1-q) against q(1/2)."""
        return Fraction(ONE - self.raised, self.raised)

    def meets(self, count: int) -> Fraction:
        """Return q^count, because the bits of items not held are independent."""
        return Fraction(self.raised, ONE) ** count

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the exact law over all 2^d bit vectors, for small domains only."""
        del public
        code = int(self.encode([value])[0])
        patterns = np.arange(1 << self.size, dtype="<u8")
        outputs = np.empty(patterns.size, dtype=self.report_dtype)
        outputs["bits"] = patterns.view("u1").reshape(-1, 8)[:, : self._bytes]
        chances = [(ONE - self.raised, self.raised)] * self.size
        chances[code] = (ONE // 2, ONE // 2)
        numerators = []
        for pattern in patterns.tolist():
            numerator = 1
            for item, chance in enumerate(chances):
                numerator *= chance[pattern >> item & 1]
            numerators.append(numerator)
        return Law(outputs, tuple(numerators), ONE**self.size)

    @property
    def _bytes(self) -> int:
        return (self.size + 7) // 8

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report: one bit for each item, eight to a byte, lowest first."""
        return np.dtype([("bits", "u1", (self._bytes,))])

    @property
    def chunk(self) -> int:
        """How many people are handled at once: about a megabyte of unpacked bits."""
        return max(8, (1 << 20) // self.size)

    def _randomize(self, encoded: Array, rng: Source, reports: Array) -> None:
        n = encoded.size
        lanes = rng.bernoulli_lanes(self.raised, self.size, n)
        # The bit of the item held becomes a fair coin.
        coins = rng.bits(n).astype(np.uint64)
        word, people = encoded >> 6, np.arange(n)
        bit = (encoded & 63).astype(np.uint64)
        lanes[word, people] = lanes[word, people] & ~(np.uint64(1) << bit) | coins << bit
        rows = np.ascontiguousarray(lanes.T).astype("<u8", copy=False)
        reports["bits"] = rows.view("u1")[:, : self._bytes]

    def valid(self, reports: Array) -> Bools:
        """Return a mask of the reports with no bit beyond the last item."""
        spare = self.size % 8
        last = reports["bits"][:, -1]
        return np.asarray(last >> spare == 0) if spare else np.ones(last.size, dtype=bool)

    def _sums(self, reports: Array) -> Ints:
        return bit_counts(reports["bits"], self.size)
