"""Generalized randomized response: send the item or, sometimes, any item at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.arrays import Array, Bools, Floats, Ints
from sfumato.core.estimate import Covariance
from sfumato.core.law import Law
from sfumato.core.occurrences import occurrences
from sfumato.core.tally import Tally
from sfumato.mechanisms.frequency.oracle import FrequencyOracle, kept_and_anywhere, kept_threshold
from sfumato.randomness import ONE, Source

__all__ = ["GRR"]


@dataclass(frozen=True)
class GRR(FrequencyOracle):
    """Generalized (k-ary) randomized response, for small domains.

    With probability k the item itself is sent, otherwise a uniform one of all d items:
    P[y | x] = k [y = x] + (1 - k)/d, with k = (e^epsilon - 1)/(e^epsilon - 1 + d) rounded down
    to 64 bits.

    Guarantee
    ---------
    epsilon-LDP: the item sent is at most e^epsilon times as likely under one value as under
    another, exactly over the integers used.

    Error
    -----
    n Var = (d - 2 + e^epsilon)/(e^epsilon - 1)^2 + f (d - 2)/(e^epsilon - 1) for a share f.

    Cost
    ----
    Device O(1), 1, 2 or 4 bytes, server O(1) per report.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> mechanism = GRR(epsilon=1.0, domain=("cat", "dog", "fish"))
    >>> pets = ["dog"] * 6000 + ["cat"] * 4000
    >>> estimate = mechanism.estimate(mechanism.tally(mechanism.randomize(pets, seeded(1))))
    >>> low, high = estimate.interval(0.95)
    >>> bool(low[1] < 0.6 < high[1])
    True

    References
    ----------
    Kairouz, Bonawitz, Ramage, "Discrete Distribution Estimation under Local Privacy" (2016).

    """

    name: ClassVar[str] = "grr"
    summary: ClassVar[str] = "send the item itself, or sometimes any item; best for few items"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 2)
        yield cls(1.0, 5)
        yield cls(0.5, ("red", "green", "blue"))
        yield cls(3.0, 8)

    @cached_property
    def kept(self) -> int:
        """The probability of sending the item itself for certain, in units of 2^-64."""
        return kept_threshold(self.epsilon, self.size)

    @cached_property
    def supports(self) -> tuple[Fraction, Fraction]:
        """The probabilities of sending the true item and of sending any other given item."""
        other = Fraction(ONE - self.kept, ONE * self.size)
        return other + Fraction(self.kept, ONE), other

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two inputs' probabilities of one report: P[x | x] / P[x | other]."""
        return self.supports[0] / self.supports[1]

    def meets(self, count: int) -> Fraction:
        """Return 1/d for one item and 0 for more, because a report never supports two items."""
        return Fraction(1, self.size) if count == 1 else Fraction(0)

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the exact law over all items."""
        del public
        code = int(self.encode([value])[0])
        outputs = np.empty(self.size, dtype=self.report_dtype)
        outputs["item"] = np.arange(self.size)
        numerators = [ONE - self.kept] * self.size
        numerators[code] += self.kept * self.size
        return Law(outputs, tuple(numerators), ONE * self.size)

    @cached_property
    def report_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report: the code of one item."""
        return np.dtype([("item", np.min_scalar_type(self.size - 1).newbyteorder("<"))])

    def _randomize(self, encoded: Array, rng: Source, reports: Array) -> None:
        kept = rng.bernoulli(self.kept, encoded.size)
        anything = rng.below(self.size, encoded.size)
        reports["item"] = np.where(kept, encoded, anything)

    def valid(self, reports: Array) -> Bools:
        """Return a mask of the reports that name an item of the domain."""
        return np.asarray(reports["item"] < self.size)

    @property
    def counted_at_once(self) -> int:
        """How many reports are added up at once."""
        return 1 << 17

    def _sums(self, reports: Array) -> Ints:
        return occurrences(reports["item"], self.size)

    def _covariance(self, share: Floats, n: int) -> Covariance:
        # A report never supports two items, so the covariance is minus the product of their
        # probabilities: q q, or p q if the person holds one of them.
        return self._covariance_of_pairs(share, n, -self.q * self.q, -self.q * self.gap)

    def sample_tally(self, histogram: Ints, rng: Source) -> Tally:
        """Return a tally drawn from its exact law: who keeps the item, then all other items."""
        kept, anywhere = kept_and_anywhere(histogram, self.kept, self.size, rng.simulator())
        return Tally(int(np.sum(histogram)), kept + anywhere)
