"""A whole distribution from randomized reports: density, moments and quantiles, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato import frames
from sfumato.arrays import Array, Floats, Ints
from sfumato.core.estimate import checked_level
from sfumato.core.exact import is_whole_number
from sfumato.core.guarantee import Guarantee
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.mechanisms.density.em import Band, fit
from sfumato.mechanisms.density.quantile_bounds import quantile_bounds
from sfumato.mechanisms.mean.sliding_law import SlidingWindow
from sfumato.randomness import ONE, Source, seeded

__all__ = ["Distribution", "Statistic"]


TOLERANCE: Final = 1e-3
_NAMED: Final = ("mean", "variance", "density")
_BLOCK: Final = 16  # rounds that are fitted together, so that temporary arrays stay in the cache


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distribution of people's numbers, estimated from their reports.

    It is computed from the tally alone, so any number of questions costs no privacy. Numbers are
    assumed to be spread evenly within each bucket.

    Parameters
    ----------
    mechanism
        The mechanism of the reports.
    tally
        The tally of the reports, with the number of reports of each position.
    shares
        The estimated share of people in each step of the grid.
    smooth
        Whether neighbouring shares were averaged while fitting.
    buckets
        The number of buckets that the density is shown in.
    log_likelihood
        The log-likelihood of the reports under these shares.
    iterations
        The number of steps that the fit took.

    """

    mechanism: SlidingWindow
    tally: Tally
    shares: Floats
    smooth: bool
    buckets: int
    log_likelihood: float
    iterations: int

    @classmethod
    def of(
        cls, mechanism: SlidingWindow, tally: Tally, *, smooth: bool, buckets: int | None
    ) -> Self:
        """Return the distribution with the highest likelihood for a tally of positions."""
        shown = mechanism.grid if buckets is None else buckets
        if not is_whole_number(shown) or shown < 1 or mechanism.grid % shown:
            raise ConfigurationError(
                f"buckets is {buckets!r}; a number that divides the grid's {mechanism.grid} steps "
                "is expected."
            )
        if tally.sums.shape != (mechanism.size,) or tally.n < 1 or tally.sums.sum() != tally.n:
            raise MismatchError(
                f"the tally has n = {tally.n} and shape {tally.sums.shape}; how often each of "
                f"{mechanism.size} positions was reported, at least once, is expected."
            )
        counts = tally.sums[None].astype(np.float64)
        fitted = fit(band(mechanism), counts, tolerance(mechanism, smooth=smooth), smooth=smooth)
        return cls(
            mechanism,
            tally,
            fitted.shares[0],
            smooth,
            int(shown),
            float(fitted.log_likelihood[0]),
            int(fitted.iterations[0]),
        )

    @property
    def guarantee(self) -> Guarantee:
        """What was promised to the people who sent the reports."""
        return self.mechanism.guarantee

    # ---- what it is ------------------------------------------------------------------------

    @property
    def points(self) -> Floats:
        """The end points of the grid's steps."""
        return np.array(self.mechanism.inputs())

    @property
    def edges(self) -> Floats:
        """The end points of the buckets."""
        return self.points[:: self.mechanism.grid // self.buckets]

    @property
    def masses(self) -> Floats:
        """The share of people in each bucket."""
        return np.asarray(self.shares.reshape(self.buckets, -1).sum(axis=1))

    @property
    def density(self) -> Floats:
        """The density in each bucket: share of people per unit of the numbers."""
        return self.masses / np.diff(self.edges)

    @property
    def mean(self) -> float:
        """The estimated mean of the numbers."""
        points = self.points
        return float(self.shares @ (points[1:] + points[:-1]) / 2)

    @property
    def variance(self) -> float:
        """The estimated variance of the numbers."""
        points = self.points - self.mean
        # The mean square of numbers spread evenly from a to b is (a^2 + ab + b^2) / 3.
        squares = points[1:] ** 2 + points[1:] * points[:-1] + points[:-1] ** 2
        return float(self.shares @ squares / 3)

    def cdf(self, values: ArrayLike) -> Floats:
        """Return the share of numbers at or below each value."""
        return np.asarray(np.interp(np.asarray(values, dtype=np.float64), self.points, self._below))

    def quantile(self, shares: ArrayLike) -> Floats:
        """Return the value below which each of these shares of the numbers lies."""
        return np.asarray(np.interp(_inside(shares), self._below, self.points))

    @property
    def _below(self) -> Floats:
        below = np.concatenate([[0.0], np.cumsum(self.shares)])
        return np.asarray(below / below[-1])

    # ---- its uncertainty -------------------------------------------------------------------

    def interval(
        self,
        statistic: Statistic,
        level: float = 0.95,
        rounds: int = 200,
        rng: Source | None = None,
    ) -> tuple[Floats, Floats]:
        """Return an interval for any statistic of the distribution, by the bootstrap.

        The reports are resampled and the statistic is computed again; the interval leaves out equal
        shares of the results on both sides. The mean and the variance are computed from the moments
        of the reports, without bias. Everything else needs a new fit, and the interval is widened
        by the change that a second smoothing makes to this fit; it is right for densities that
        change slowly over a few steps of the grid. :meth:`bounds` also holds for jumps and for
        narrower peaks.

        Parameters
        ----------
        statistic
            "mean", "variance", "density", or a function of a distribution:
            ``lambda it: it.quantile([0.1, 0.5, 0.9])``.
        level
            The probability that such an interval contains the truth.
        rounds
            How many times the reports are resampled.
        rng
            The source of the draws; by default always the same, because no privacy depends on it.

        """
        if not callable(statistic) and statistic not in _NAMED:
            raise ConfigurationError(
                f"statistic is {statistic!r}; {', '.join(_NAMED)} or a function is expected."
            )
        least = math.ceil(round(2 / (1 - checked_level(level)), 6))
        if rounds < least:
            raise ConfigurationError(
                f"rounds is {rounds}; a level of {level} needs at least {least}."
            )
        n, draw = self.tally.n, (rng or seeded(0)).simulator()
        tallies = draw.multinomial(n, self.tally.sums / n, size=rounds)
        # On average, the k-th smallest of m results lies above a share k/(m+1) of all possible
        # results.
        ends = partial(np.quantile, q=[(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
        if not callable(statistic) and statistic != "density":
            low, high = ends([self._moments(sums)[statistic] for sums in tallies])
            return low, high
        measure = statistic if callable(statistic) else _density
        low, high = ends([measure(again) for again in self._fitted(tallies, start=self.shares)])
        drift = np.abs(self._drift(measure)) if self.smooth else 0.0
        low, high = low - drift, high + drift
        return low if callable(statistic) else np.maximum(low, 0.0), high

    def _drift(self, measure: Callable[[Distribution], ArrayLike]) -> Floats:
        """Return the change that smoothing makes to a statistic when there is no noise.

        These shares are smoothed already. Fitting them again, from the exact counts that they
        predict, changes them about as much as the first fit changed the true shares.
        """
        counts = self.tally.n * band(self.mechanism).positions(self.shares)
        (again,) = self._fitted(counts[None], start=None)
        drift: Floats = np.asarray(measure(again)) - np.asarray(measure(self))
        return drift

    def _moments(self, sums: Ints) -> dict[str, float]:
        """Return the unbiased mean and variance of the numbers, from counts of positions."""
        mechanism, indices = self.mechanism, np.arange(self.mechanism.size)
        total, squares = int(sums @ indices), int(sums @ indices**2)
        point, spread = mechanism.position_moments(self.tally.n, total, squares)
        # Rounding adds a sixth of a squared step to the variance of evenly spread numbers.
        variance = spread - point**2 - 1 / 6
        step = mechanism.step
        return {"mean": mechanism.low + step * point, "variance": step**2 * variance}

    def _fitted(self, counts: Array, start: Floats | None) -> list[Self]:
        """Return a distribution for each row of counts of positions, fitted like this one."""
        law, within = band(self.mechanism), tolerance(self.mechanism, smooth=self.smooth)
        fits = [
            fit(
                law,
                counts[first : first + _BLOCK].astype(np.float64),
                within,
                smooth=self.smooth,
                start=start,
                accelerate=True,
            )
            for first in range(0, len(counts), _BLOCK)
        ]
        return [replace(self, shares=shares) for each in fits for shares in each.shares]

    def bounds(self, shares: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return an interval for each quantile that holds for every distribution.

        It assumes only that cumulative shares never fall. It is two to three times as wide as
        :meth:`interval` for smooth densities, but also right for peaks, gaps, jumps and numbers
        that many people share.

        Parameters
        ----------
        shares
            The quantiles, between 0 and 1; 0.5 is the median.
        level
            The least probability that such an interval contains the truth.

        """
        wanted = _inside(shares)
        low, high = quantile_bounds(
            band(self.mechanism), self.tally.sums, self.shares, wanted.ravel(), checked_level(level)
        )
        points = self.points
        return points[low].reshape(wanted.shape), points[high].reshape(wanted.shape)

    # ---- as a table ------------------------------------------------------------------------

    def columns(self) -> dict[str, Any]:
        """Return the buckets as plain columns."""
        edges = self.edges.tolist()
        return {
            "from": edges[:-1],
            "to": edges[1:],
            "share": self.masses.tolist(),
            "density": self.density.tolist(),
        }

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return the buckets as a pandas, polars or pyarrow table."""
        return frames.table(self.columns(), backend)

    def __repr__(self) -> str:
        low, middle, high = self.quantile([0.25, 0.5, 0.75])
        return (
            f"mean {self.mean:.4g}, quartiles {low:.4g}, {middle:.4g}, {high:.4g}\n"
            f"n = {self.tally.n}, {self.buckets} buckets. {self.guarantee}"
        )


Statistic = str | Callable[[Distribution], ArrayLike]


def band(mechanism: SlidingWindow) -> Band:
    """Return the law of reports for numbers in each bucket of a mechanism's grid."""
    floor = (ONE - mechanism.kept) / (ONE * mechanism.size)
    rise = mechanism.kept / (ONE * mechanism.width)
    return Band(mechanism.grid, mechanism.width, floor, rise)


def tolerance(mechanism: SlidingWindow, *, smooth: bool) -> float:
    """Return the change of the log-likelihood at which a fit ends.

    The factor e^epsilon comes from the paper; above epsilon 4 it would end a fit too early, so
    epsilon is cut to 4 here.
    """
    return TOLERANCE if smooth else TOLERANCE * math.exp(min(mechanism.epsilon, 4.0))


def _density(distribution: Distribution) -> Floats:
    return distribution.density


def _inside(shares: ArrayLike) -> Floats:
    wanted = np.asarray(shares, dtype=np.float64)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise InputError(f"shares are {shares!r}; numbers in 0..1 are expected.")
    return wanted
