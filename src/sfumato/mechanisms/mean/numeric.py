"""The base of mechanisms for numbers: an interval, an integer grid on it, and the mean."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import frames
from sfumato.arrays import Array, Bools, Floats, Ints
from sfumato.core.contrast import Contrast, Contrasts
from sfumato.core.doubt import Doubt
from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.exact import is_whole_number
from sfumato.core.field_checks import check_number
from sfumato.core.intervals import z_score
from sfumato.core.law import Law
from sfumato.core.mechanism import Mechanism
from sfumato.core.quantity import MEAN
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, InputError
from sfumato.randomness import ONE, Source

__all__ = ["Moments", "NumericMechanism"]


LARGEST_GRID: Final = 1 << 14
NARROWEST: Final = 1e-100


class Moments(NamedTuple):
    """The mean and the mean square of the grid points behind some reports."""

    point: float
    spread: float


@dataclass(frozen=True)
class NumericMechanism(Mechanism):
    """A mechanism for a number in a public interval, on an integer grid.

    Floating-point noise reveals its input, because most floats can come from some inputs only. So
    the value is first rounded to one of the points 0..grid, up or down by a coin whose bias makes
    the rounding unbiased, and everything after that is integers. Rounding does not depend on the
    report, so a law that is private for grid points is private for all values between them.

    Parameters
    ----------
    low, high
        The public interval the numbers lie in.
    clip
        Whether numbers outside are clipped to the interval; by default they are refused.
    grid
        Number of grid steps.

    """

    low: float
    high: float
    clip: bool = False
    grid: int = 4096

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the interval and the grid are allowed."""
        super().__post_init__()
        for name in ("low", "high"):
            object.__setattr__(self, name, check_number(name, getattr(self, name)))
        if not self.low < self.high:
            raise ConfigurationError(
                f"the interval is [{self.low:g}, {self.high:g}]; low must be below high."
            )
        if not NARROWEST <= self.high - self.low <= 1 / NARROWEST:  # its square must be a number
            raise ConfigurationError(
                f"the interval is [{self.low:g}, {self.high:g}]; its width must lie in "
                f"{NARROWEST:g}..{1 / NARROWEST:g}."
            )
        self._check_flag("clip")
        if not is_whole_number(self.grid) or not 2 <= self.grid <= LARGEST_GRID or self.grid % 2:
            raise ConfigurationError(
                f"grid is {self.grid!r}; an even whole number in 2..{LARGEST_GRID} is expected."
            )
        object.__setattr__(self, "clip", bool(self.clip))
        object.__setattr__(self, "grid", int(self.grid))

    @property
    def step(self) -> float:
        """The distance between two grid points, in the unit of the values."""
        return (self.high - self.low) / self.grid

    # ---- values ----------------------------------------------------------------------------

    def inputs(self) -> Sequence[float]:
        """Return the grid points."""
        points = self.low + self.step * np.arange(self.grid + 1)
        points[-1] = self.high
        return [float(point) for point in points]

    def probes(self) -> Sequence[float]:
        """Return a few numbers that lie between grid points."""
        return [self.low + share * (self.high - self.low) for share in (0.01, 0.29, 0.5001, 0.9999)]

    def _contrasts_of_ends(self) -> tuple[Contrasts, ...]:
        """Return the contrast of the two ends of the grid.

        This is right for mechanisms under which no two points are further apart than the ends, and
        every report is least likely at one of the ends.
        """
        low, high, middle = (self.point_law(point) for point in (0, self.grid, self.grid // 2))
        columns = Counter(zip(low[0], high[0], middle[0], strict=True))
        wholes = (low[1], high[1], middle[1])
        bounding: defaultdict[tuple[Fraction, Fraction], Fraction] = defaultdict(Fraction)
        attained = [bounding.copy(), bounding.copy()]
        for column, count in columns.items():
            chances = [Fraction(n, whole) for n, whole in zip(column, wholes, strict=True)]
            least = min(chances)
            bounding[chances[0] / least, chances[1] / least] += count * least
            for kinds, other in zip(attained, (chances[0], chances[2]), strict=True):
                kinds[chances[0] / other, chances[1] / other] += count * other
        reached = tuple(Contrast.of(kinds) for kinds in attained)
        return (Contrasts((Contrast.of(bounding),), reached),)

    def truth(self, values: Any) -> Floats:
        """Return the mean of the people's values, clipped if the mechanism clips."""
        return np.array([self._numbers(values).mean()])

    def encode(self, values: Any) -> Floats:
        """Return the position of each value on the grid, a number in [0, grid]."""
        position = (self._numbers(values) - self.low) / (self.high - self.low) * self.grid
        return np.clip(position, 0.0, float(self.grid))

    def _numbers(self, values: Any) -> Floats:
        array = frames.column(values)
        if array.dtype.kind not in "iuf":
            raise InputError(
                f"values have dtype {array.dtype} (the first is {array[0]!r}); numbers in "
                f"[{self.low:g}, {self.high:g}] are expected."
            )
        numbers = array.astype(np.float64)
        if self.clip:
            return np.clip(numbers, self.low, self.high)
        outside = np.flatnonzero((numbers < self.low) | (numbers > self.high))
        if outside.size:
            raise InputError(
                f"values[{outside[0]}] is {numbers[outside[0]]:g}; it must lie in "
                f"[{self.low:g}, {self.high:g}], or set clip to cut values to it."
            )
        return numbers

    @staticmethod
    def _split(encoded: Floats) -> tuple[Ints, NDArray[np.uint64]]:
        """Return the grid point below each position, and the 2^-64 probability to round up."""
        below = encoded.astype(np.int64)
        # Scaling by a power of two is exact, so the coin has exactly the bias of the number.
        return below, ((encoded - below) * float(ONE)).astype(np.uint64)

    def _round(self, encoded: Floats, rng: Source) -> Ints:
        """Return a grid point for each position, rounded at random without bias."""
        below, up = self._split(encoded)
        return below + rng.bernoulli_each(up)

    # ---- the law ---------------------------------------------------------------------------

    @abstractmethod
    def point_law(self, point: int) -> tuple[list[int], int]:
        """Return the numerators and denominator of the law of a grid point."""

    @property
    @abstractmethod
    def symbols(self) -> int:
        """The number of different reports, which are called 0, 1, 2, ..."""

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the law of a value: that of its grid point, or a mixture of two points' laws."""
        del public
        below, up = (int(part[0]) for part in self._split(self.encode([value])))
        numerators, denominator = self.point_law(below)
        if up:
            above, _ = self.point_law(below + 1)
            pairs = zip(numerators, above, strict=True)
            numerators = [(ONE - up) * one + up * two for one, two in pairs]
            denominator *= ONE
        outputs = np.empty(self.symbols, dtype=self.report_dtype)
        outputs["symbol"] = np.arange(self.symbols)
        return Law(outputs, tuple(numerators), denominator)

    # ---- reports ---------------------------------------------------------------------------

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report: one symbol, in as few bytes as possible."""
        return np.dtype([("symbol", np.min_scalar_type(self.symbols - 1).newbyteorder("<"))])

    def valid(self, reports: Array) -> Bools:
        """Return a mask of the reports that name an existing symbol."""
        return np.asarray(reports["symbol"] < self.symbols)

    def _randomize(self, encoded: Array, rng: Source, reports: Array) -> None:
        reports["symbol"] = self.blur(self._round(encoded, rng), rng)

    @abstractmethod
    def blur(self, points: Ints, rng: Source) -> Ints:
        """Return a symbol for each grid point, drawn from its law."""

    # ---- the mean --------------------------------------------------------------------------

    def _estimate(self, tally: Tally) -> Estimate:
        point, spread = self.moments(tally)
        # Points in 0..grid cannot have a mean outside, nor a mean square that does not fit their
        # mean.
        held = min(max(point, 0.0), float(self.grid))
        spread = min(max(spread, held * held), held * self.grid)
        noise = self.second(held, spread) - spread
        return Estimate(
            values=np.array([self.low + self.step * point]),
            covariance=Covariance(np.array([self.step**2 * noise / tally.n])),
            labels=("mean",),
            n=tally.n,
            guarantee=self.guarantee,
            quantity=MEAN,
        )

    def doubt(self, tally: Tally) -> Doubt:
        """Return how improbable the mean is if all devices are honest."""
        values = self.estimate(tally).values
        span, reach = (self.low, self.high), self.influence + self.high - self.low
        return Doubt.of_means(values, tally.n, span, self.worst_variance, reach)

    @abstractmethod
    def moments(self, tally: Tally) -> Moments:
        """Return the unbiased mean of the points and, if reports tell it, their mean square."""

    @abstractmethod
    def second(self, point: float, spread: float) -> float:
        """Return the mean square of debiased reports, given the points' mean and mean square.

        Minus the mean square of the points, this is the variance of the noise. Intervals only cover
        the noise, so they are about the mean of those who reported.
        """

    def point_variance(self, point: int) -> float:
        """Return the variance of one debiased report of a grid point, in grid units."""
        return self.second(point, point * point) - point * point

    def variance(self, value: float) -> float:
        """Return n times the variance of the mean if everybody holds this value."""
        below, up = (int(part[0]) for part in self._split(self.encode([value])))
        if not up:
            return self.step**2 * self.point_variance(below)
        share = up / ONE
        mixed = (1 - share) * self.point_variance(below) + share * self.point_variance(below + 1)
        return self.step**2 * (mixed + share * (1 - share))

    def facts(self) -> dict[str, Any]:
        """Return the general facts, and the accuracy of the mean for 10,000 people."""
        middle = (self.low + self.high) / 2
        return super().facts() | {
            "variance_in_the_middle": self.variance(middle),
            "variance_at_the_ends": self.variance(self.high),
            "worst_variance": self.worst_variance,
            "half_width_at_10000": z_score(0.95) * sqrt(self.worst_variance / 10_000),
        }

    @property
    def mse(self) -> float:
        """n times the mean squared error of the mean, for the worst value."""
        return self.worst_variance

    @property
    def worst_variance(self) -> float:
        """The largest variance of one debiased report, over all values."""
        points = (0, self.grid // 2, self.grid)  # the variance is a parabola in the value
        return self.step**2 * (max(self.point_variance(point) for point in points) + 0.25)
