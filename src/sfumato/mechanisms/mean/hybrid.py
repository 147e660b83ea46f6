"""The hybrid mechanism: a coin chooses the piecewise mechanism or stochastic rounding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final, Self

import numpy as np

from sfumato.arrays import Array, Ints
from sfumato.core.contrast import Contrasts
from sfumato.core.exact import exp_below
from sfumato.core.tally import Tally
from sfumato.mechanisms.mean.numeric import Moments, NumericMechanism
from sfumato.mechanisms.mean.piecewise import Piecewise
from sfumato.mechanisms.mean.stochastic_rounding import StochasticRounding
from sfumato.randomness import ONE, Source

__all__ = ["Hybrid"]

# Below this epsilon, stochastic rounding alone has the smaller worst variance.
_ROUNDING_ONLY: Final = 0.6094


@dataclass(frozen=True)
class Hybrid(NumericMechanism):
    """The hybrid mechanism: the best of its two parts at any epsilon, and the default for means.

    Above epsilon 0.61 a public coin chooses the piecewise mechanism with probability
    1 - e^(-epsilon/2), otherwise (and always below) stochastic rounding. The report reveals which,
    and each part uses the whole epsilon, so the hybrid does too.

    Guarantee
    ---------
    epsilon-LDP, exactly over the integers used.

    Error
    -----
    With h = e^(epsilon/2), n Var = (((e^epsilon+1)/(e^epsilon-1))^2 + (h+3)/(3(h-1)))/h on [-1, 1]
    above epsilon 0.61, for every number; below, that of stochastic rounding.

    Cost
    ----
    Device O(1), 2 bytes, server O(1) per report.

    Examples
    --------
    >>> mechanism = Hybrid(epsilon=2.0, low=-1, high=1)
    >>> [round(each.mse, 2) for each in (mechanism.piecewise, mechanism.rounding, mechanism)]
    [1.23, 1.72, 1.04]

    References
    ----------
    Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu, "Collecting and Analyzing Multidimensional Data
    with Local Differential Privacy" (2019).

    """

    name: ClassVar[str] = "hybrid"
    summary: ClassVar[str] = "the mean; the better of piecewise and rounding at any epsilon"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(0.5, -1, 1, grid=8)
        yield cls(1.0, 0, 100, grid=16)
        yield cls(3.0, -5, 1, grid=6)

    @cached_property
    def piecewise(self) -> Piecewise:
        """The piecewise part, which sends a position."""
        return Piecewise(self.epsilon, self.low, self.high, self.clip, self.grid)

    @cached_property
    def rounding(self) -> StochasticRounding:
        """The rounding part, which sends a bit."""
        return StochasticRounding(self.epsilon, self.low, self.high, self.clip, self.grid)

    @cached_property
    def placed(self) -> int:
        """The probability of the piecewise part, in units of 2^-64."""
        if self.epsilon <= _ROUNDING_ONLY:
            return 0
        return int(ONE * (1 - exp_below(Fraction(-self.epsilon) / 2)))

    @cached_property
    def _positions(self) -> int:
        """The number of reports that are positions; two more reports are the bits."""
        return self.piecewise.size if self.placed else 0

    @property
    def _used(self) -> tuple[NumericMechanism, ...]:
        return (self.rounding, self.piecewise) if self.placed else (self.rounding,)

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two inputs' probabilities of a report, over the parts in use."""
        return max(part.worst_ratio for part in self._used)

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrasts of the two ends, which are furthest apart under both parts."""
        return self._contrasts_of_ends()

    @property
    def symbols(self) -> int:
        """The number of different reports: the positions, then the two bits."""
        return self._positions + 2

    def point_law(self, point: int) -> tuple[list[int], int]:
        """Return the law of a grid point: the laws of the two parts side by side."""
        bits, bit_whole = self.rounding.point_law(point)
        if not self.placed:
            return bits, bit_whole
        positions, position_whole = self.piecewise.point_law(point)
        numerators = [self.placed * bit_whole * position for position in positions]
        numerators += [(ONE - self.placed) * position_whole * bit for bit in bits]
        return numerators, ONE * bit_whole * position_whole

    def blur(self, points: Ints, rng: Source) -> Ints:
        """Return a random position or bit for each grid point."""
        bits = self._positions + self.rounding.blur(points, rng)
        if not self.placed:
            return bits
        positions = self.piecewise.blur(points, rng)
        return np.where(rng.bernoulli(self.placed, points.size), positions, bits)

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """The shape of a tally: number, sum and sum of squares of the positions; number of ones."""
        return (4,)

    def _sums(self, reports: Array) -> Ints:
        symbols = reports["symbol"].astype(np.int64)
        ones = np.count_nonzero(symbols == self._positions + 1)
        positions = symbols[symbols < self._positions]
        return np.array([positions.size, positions.sum(), positions @ positions, ones])

    def moments(self, tally: Tally) -> Moments:
        """Return the mean over both kinds of reports, and the mean square from the positions."""
        placed, total, squares, ones = (int(value) for value in tally.sums)
        bits = tally.n - placed
        parts = []
        if bits:
            parts.append((bits, self.rounding.moments(Tally(bits, np.array([ones])))))
        if placed:
            parts.append((placed, self.piecewise.position_moments(placed, total, squares)))
        point = sum(n * part.point for n, part in parts) / tally.n
        return Moments(point, parts[-1][1].spread)

    def second(self, point: float, spread: float) -> float:
        """Return the mean square over both kinds of debiased reports."""
        bits = self.rounding.second(point, spread)
        if not self.placed:
            return bits
        share = self.placed / ONE
        return share * self.piecewise.second(point, spread) + (1 - share) * bits

    @property
    def influence(self) -> float:
        """The most by which one report can change an estimated total, over the parts in use."""
        return max(part.influence for part in self._used)
