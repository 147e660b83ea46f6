"""The integer law of Piecewise and Square Wave: a window that slides with the number.

Of grid + width outputs (positions), the ``width`` ones from the grid point on are more likely than
all others: with probability k the report is uniform in the window, otherwise uniform over
everything. All moments are closed forms in the point, so the debiased mean is exact.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.arrays import Ints
from sfumato.core.contrast import Contrasts
from sfumato.mechanisms.frequency.oracle import kept_threshold
from sfumato.mechanisms.mean.numeric import Moments, NumericMechanism
from sfumato.randomness import ONE, Source

__all__ = ["SlidingWindow"]


@dataclass(frozen=True)
class SlidingWindow(NumericMechanism):
    """A numeric mechanism whose report most likely lies in a window that starts at the number."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of outputs in a window."""

    @cached_property
    def size(self) -> int:
        """The number of all outputs."""
        return self.grid + self.width

    @cached_property
    def kept(self) -> int:
        """The probability of drawing the report from the window alone, in units of 2^-64."""
        # The ratio of inside to outside is 1 + (k/width) / ((1-k)/size) <= e^epsilon.
        return kept_threshold(self.epsilon, Fraction(self.size, self.width))

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of a report's probabilities: inside of the window against outside."""
        return 1 + Fraction(self.kept * self.size, (ONE - self.kept) * self.width)

    def point_law(self, point: int) -> tuple[list[int], int]:
        """Return the numerators and the denominator of the law of a grid point."""
        outside = (ONE - self.kept) * self.width
        numerators = [outside] * self.size
        inside = outside + self.kept * self.size
        numerators[point : point + self.width] = [inside] * self.width
        return numerators, ONE * self.size * self.width

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrasts of the two ends; no two windows overlap less than theirs."""
        return self._contrasts_of_ends()

    @property
    def symbols(self) -> int:
        """The number of different reports, one for each position."""
        return self.size

    def blur(self, points: Ints, rng: Source) -> Ints:
        """Return a random position for each grid point."""
        kept = rng.bernoulli(self.kept, points.size)
        near = points + rng.below(self.width, points.size)
        return np.where(kept, near, rng.below(self.size, points.size))

    # ---- moments ---------------------------------------------------------------------------

    @cached_property
    def slope(self) -> Fraction:
        """The change of the mean position for each grid step, which is the probability k."""
        return Fraction(self.kept, ONE)

    @cached_property
    def offset(self) -> Fraction:
        """The mean position of a report of grid point 0."""
        near, anywhere = Fraction(self.width - 1, 2), Fraction(self.size - 1, 2)
        return self.slope * near + (1 - self.slope) * anywhere

    def _position_square(self, point: float, spread: float) -> float:
        """Return the mean square of positions, given the points' mean and mean square."""
        width, size, slope = self.width, self.size, float(self.slope)
        near = spread + point * (width - 1) + (width - 1) * (2 * width - 1) / 6
        return slope * near + (1 - slope) * (size - 1) * (2 * size - 1) / 6

    def position_moments(self, n: int, total: int, squares: int) -> Moments:
        """Return the moments of the points, given the sum and sum of squares of n positions."""
        slope = float(self.slope)
        point = (total / n - float(self.offset)) / slope
        # The mean square of positions is affine in that of the points, and solved for the latter.
        return Moments(point, (squares / n - self._position_square(point, 0.0)) / slope)

    def second(self, point: float, spread: float) -> float:
        """Return the mean square of debiased positions, given the points' mean and mean square."""
        slope, offset = float(self.slope), float(self.offset)
        position = slope * point + offset
        return (self._position_square(point, spread) - offset * (2 * position - offset)) / slope**2

    @property
    def influence(self) -> float:
        """The change of the estimated total from the first position to the last."""
        return self.step * float((self.size - 1) / self.slope)
