"""Stochastic rounding: one bit, which is 1 the more often the larger the number is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import ClassVar, Self

import numpy as np

from sfumato.arrays import Array, Floats, Ints
from sfumato.core.contrast import Contrasts
from sfumato.core.estimate import Estimate, checked_level
from sfumato.core.exact import exp_below
from sfumato.core.intervals import wilson
from sfumato.core.tally import Tally
from sfumato.mechanisms.mean.numeric import Moments, NumericMechanism
from sfumato.randomness import ONE, Source

__all__ = ["StochasticRounding"]


@dataclass(frozen=True, eq=False, repr=False)
class BitEstimate(Estimate):
    """A mean estimated from bits; its intervals use the number of ones and hold for few bits too.

    Parameters
    ----------
    ones
        How many bits are 1.
    zero, one
        The estimated mean if all bits are 0, and if all bits are 1.

    """

    ones: int = 0
    zero: float = 0.0
    one: float = 1.0

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return Wilson's interval of the share of ones, converted to numbers."""
        ends = wilson(np.array([self.ones]), self.n, checked_level(level))
        low, high = (self.zero + end * (self.one - self.zero) for end in ends)
        return low, high


@dataclass(frozen=True)
class StochasticRounding(NumericMechanism):
    """Duchi, Jordan and Wainwright's mechanism for one bounded number, for small epsilon.

    The report is one bit. For a number at v of [-1, 1] it is 1 with probability
    1/2 + v (e^epsilon - 1)/(2 (e^epsilon + 1)); the debiased report is
    (e^epsilon + 1)/(e^epsilon - 1) times its sign. On the grid the probability is
    (first + slope * point) / 2^64, exactly linear.

    Guarantee
    ---------
    epsilon-LDP: the ends of the interval have the largest ratio, (2^64 - first)/first.

    Error
    -----
    n Var = ((e^epsilon + 1)/(e^epsilon - 1))^2 - v^2 on [-1, 1]. Bits do not reveal how spread out
    the numbers are, so the interval (Wilson's, of the share of ones) assumes that all are equal: it
    covers more often than its level if numbers are spread out and epsilon is above 1.

    Cost
    ----
    Device O(1), 1 byte, server O(1) per report.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> mechanism = StochasticRounding(epsilon=0.5, low=0, high=10)
    >>> estimate = mechanism.estimate(mechanism.tally(mechanism.randomize([7] * 9000, seeded(1))))
    >>> low, high = estimate.interval(0.95)
    >>> bool(low[0] < 7 < high[0])
    True

    References
    ----------
    Duchi, Jordan, Wainwright, "Minimax Optimal Procedures for Locally Private Estimation" (2018).

    """

    name: ClassVar[str] = "stochastic_rounding"
    summary: ClassVar[str] = "the mean from one bit each; best for small epsilon"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, -1, 1, grid=8)
        yield cls(0.5, 0, 100, grid=64)
        yield cls(3.0, -5, 1, clip=False, grid=6)

    @cached_property
    def slope(self) -> int:
        """The increase of the probability of a 1 for each grid step, in units of 2^-64."""
        return (ONE - 2 * ceil(ONE / (exp_below(self.epsilon) + 1))) // self.grid

    @cached_property
    def first(self) -> int:
        """The probability that the lowest number sends a 1, in units of 2^-64."""
        return (ONE - self.slope * self.grid) // 2

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of a report's probabilities: the highest number against the lowest."""
        return Fraction(ONE - self.first, self.first)

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrasts of the two ends; all other numbers' laws lie between theirs."""
        return self._contrasts_of_ends()

    @property
    def symbols(self) -> int:
        """The number of different reports, which is 2 because a report is one bit."""
        return 2

    def point_law(self, point: int) -> tuple[list[int], int]:
        """Return the numerators and the denominator of the law of a grid point."""
        raised = self.first + point * self.slope
        return [ONE - raised, raised], ONE

    def blur(self, points: Ints, rng: Source) -> Ints:
        """Return a random bit for each grid point."""
        raised = np.uint64(self.first) + points.astype(np.uint64) * np.uint64(self.slope)
        return rng.bernoulli_each(raised).astype(np.int64)

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """The shape of a tally: the number of ones."""
        return (1,)

    def _sums(self, reports: Array) -> Ints:
        return np.array([np.count_nonzero(reports["symbol"])])

    def _estimate(self, tally: Tally) -> Estimate:
        mean = super()._estimate(tally)
        zero, one = (self.low + self.step * (self._zero + x * ONE / self.slope) for x in (0, 1))
        return BitEstimate(**vars(mean), ones=int(tally.sums[0]), zero=zero, one=one)

    @cached_property
    def _zero(self) -> float:
        """The debiased grid point of a 0; that of a 1 lies 2^64/slope above."""
        return -self.first / self.slope

    def moments(self, tally: Tally) -> Moments:
        """Return the mean; bits do not tell the mean square, which is returned as 0."""
        point = self._zero + int(tally.sums[0]) / tally.n * (ONE / self.slope)
        return Moments(point, 0.0)

    def second(self, point: float, spread: float) -> float:
        """Return the mean square of the debiased grid points of the bits."""
        del spread
        share, one = (self.first + self.slope * point) / ONE, self._zero + ONE / self.slope
        return (1 - share) * self._zero**2 + share * one**2

    @property
    def influence(self) -> float:
        """The change of the estimated total when one bit is flipped."""
        return self.step * ONE / self.slope
