"""Intervals for sums of shares whose noise depends on the shares themselves.

An answer is a weighted sum of observations. Some of them are *looks* (snapshots) of a share: one
report of a look at a share f has the variance base + tilt f - f^2, so the noise of an answer
depends on the truth. A value a0 is in the interval if the answer a is within z standard deviations
*under a0*: Wilson's idea, for fused estimates. If the truth differs from the answer by delta, each
observed share is assumed to differ from its estimate by slope x delta, clipped to 0..1; the slope
is the regression of its estimate on the answer.

Small counts are also skewed. For the share of a single period the third moment K of the answer
shifts the middle of the interval by (z^2 - 1) / 6 x K / variance (Cornish and Fisher, 1938). At
levels below z = 1, where that would move the interval off its own answer, there is no shift.

Unknown periods may add any possible value to an answer, and its interval is widened by that. All
intervals are clipped to what is possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final, Self

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.answers import Answers
from sfumato.core.estimate import Estimate, checked_level
from sfumato.core.intervals import z_score
from sfumato.core.quantity import SHARE, Quantity

__all__ = ["Looks", "ScoredEstimate"]


ROUNDS: Final = 12
"""The number of rounds; each about halves the distance to an interval's end."""


@dataclass(frozen=True, eq=False)
class Looks:
    """The role of looks in the noise of answers: one row for each look, one column for each answer.

    Parameters
    ----------
    shares
        The estimate of the observed share.
    slopes
        The change of that share for each unit that the answer changes.
    squares
        The squared weight of the look in the answer, divided by its number of reports.
    cubes
        The third power of the weight, divided by the squared number of reports; zero if the third
        moment is not used.
    base, tilt
        The coefficients of each answer: one report has the variance base + tilt f - f^2 at a share
        f.

    """

    shares: Floats
    slopes: Floats
    squares: Floats
    cubes: Floats
    base: Floats
    tilt: Floats

    @classmethod
    def none(cls, answers: int) -> Self:
        """Return the looks of answers that have none."""
        empty = np.zeros((0, answers))
        return cls(empty, empty, empty, empty, np.zeros(answers), np.zeros(answers))

    @classmethod
    def beside(cls, parts: Sequence[Looks]) -> Self:
        """Return the looks of several groups of answers, side by side."""
        longest = max(len(part.shares) for part in parts)
        columns = []
        for part in fields(cls):
            arrays = [getattr(each, part.name) for each in parts]
            if part.name not in ("base", "tilt"):
                arrays = [np.pad(array, ((0, longest - len(array)), (0, 0))) for array in arrays]
            columns.append(np.concatenate(arrays, axis=-1))
        return cls(*columns)

    def only(self, indices: Any) -> Looks:
        """Return the looks of some of the answers, by index."""
        return Looks(*(getattr(self, part.name)[..., indices] for part in fields(self)))

    def moments(self, delta: Floats) -> tuple[Floats, Floats]:
        """Return the variance that a distance of the truth adds, and the third moment there."""
        share = self.slopes * delta
        share += self.shares
        np.clip(share, 0.0, 1.0, out=share)
        slope = self.tilt - 2 * share
        one = (self.tilt - share) * share
        added = np.einsum("ij,ij->j", self.squares, one) - self._bent
        # Of a coin with variance v(f) the third moment is v(f) v'(f).
        one += self.base
        one *= slope
        return added, np.einsum("ij,ij->j", self.cubes, one)

    @cached_property
    def _bent(self) -> Floats:
        """The part of each answer's variance that depends on shares, at the estimated ones."""
        seen = np.clip(self.shares, 0.0, 1.0)
        return np.asarray((self.squares * (self.tilt - seen) * seen).sum(axis=0))

    def quadratic(self, variances: Floats, z: float) -> tuple[Floats, Floats]:
        """Return the distances to both ends of intervals if shares are not clipped to 0..1."""
        linear = (self.squares * self.slopes * (self.tilt - 2 * self.shares)).sum(axis=0)
        square = 1 + z * z * (self.squares * self.slopes**2).sum(axis=0)
        middle = z * z * linear / 2
        reach = np.sqrt(np.maximum(middle**2 + square * z * z * variances, 0.0))
        return (middle - reach) / square, (middle + reach) / square


@dataclass(frozen=True, eq=False, repr=False)
class ScoredEstimate(Estimate):
    """Sums of shares over periods, with intervals from the noise under each possible truth.

    Parameters
    ----------
    looks
        The part of the noise that depends on the truth.
    known, noise
        For each answer, the sum over the known periods, and its variance if its estimate were true.
    least, most
        The smallest and the largest possible value.
    spare
        The least and the most that unknown periods may add.
    interpolated
        The unknown periods, whose part of the values is interpolated between the periods beside
        them.

    Examples
    --------
    >>> from sfumato.core.estimate import Covariance
    >>> from sfumato.core.guarantee import Guarantee
    >>> promise = Guarantee("local", "each report", 1.0)
    >>> one = np.ones((1, 1))
    >>> looks = Looks(0.0 * one, one, one / 20, 0.0 * one, np.zeros(1), np.ones(1))
    >>> nobody = ScoredEstimate(
    ...     np.zeros(1), Covariance(np.zeros(1)), ("on",), 20, promise, looks=looks,
    ...     known=np.zeros(1), noise=np.zeros(1), least=np.zeros(1), most=np.ones(1),
    ...     spare=(np.zeros(1), np.zeros(1)),
    ... )
    >>> [side.round(3).tolist() for side in nobody.interval()]  # none of twenty: Wilson's interval
    [[0.0], [0.161]]

    """

    looks: Looks = field(kw_only=True)
    known: Floats = field(kw_only=True)
    noise: Floats = field(kw_only=True)
    least: Floats = field(kw_only=True)
    most: Floats = field(kw_only=True)
    spare: tuple[Floats, Floats] = field(kw_only=True)
    interpolated: tuple[int, ...] = field(default=(), kw_only=True)
    quantity: Quantity = field(default=SHARE, kw_only=True)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return each value's interval, from the noise under each possible truth."""
        z = z_score(checked_level(level))
        return self._end(z, -1), self._end(z, 1)

    def _end(self, z: float, side: int) -> Floats:
        delta = self.looks.quadratic(self.noise, z)[(side + 1) // 2]
        for _ in range(ROUNDS if self.looks.shares.size else 0):
            added, third = self.looks.moments(delta)
            variance = np.maximum(self.noise + added, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                shift = np.where(variance > 0, max(z * z - 1, 0.0) / 6 * third / variance, 0.0)
            delta = (delta + side * z * np.sqrt(variance) - shift) / 2
        delta = np.maximum(delta, 0.0) if side > 0 else np.minimum(delta, 0.0)  # holds its estimate
        return np.clip(self.known + delta + self.spare[(side + 1) // 2], self.least, self.most)

    def scores(self, truth: float) -> Floats:
        """Return how many standard deviations, *under* a possible truth, each value is above it.

        Skewness is counted as in intervals: z solves z + (z^2 - 1) skew = distance / deviation.
        """
        added, third = self.looks.moments(truth - self.known)
        variance = self.noise + added
        deviation = np.sqrt(np.where(variance > 0, variance, np.nan))
        plain, skew = (self.values - truth) / deviation, third / deviation**3 / 6
        root = np.sqrt(np.maximum(1 + 4 * skew * (skew + plain), 0.0))
        return np.where(np.abs(plain) > 1, 2 * (skew + plain) / (1 + root), plain)

    def moved(self, values: Floats) -> Self:
        """Return the estimate with other values; intervals keep their widths and move along."""
        return replace(self, values=values, known=self.known + np.nan_to_num(values - self.values))

    def only(self, indices: Sequence[int]) -> ScoredEstimate:
        """Return an estimate of the values with these indices alone."""
        kept = np.asarray(indices, dtype=np.int64)
        sides = ("known", "noise", "least", "most")
        return replace(
            self,
            values=self.values[kept],
            covariance=self.covariance.only(indices),
            labels=tuple(self.labels[index] for index in indices),
            looks=self.looks.only(kept),
            spare=(self.spare[0][kept], self.spare[1][kept]),
            **{side: getattr(self, side)[kept] for side in sides},
        )

    def answers(self, level: float = 0.95, *, band: bool = False) -> Answers:
        """Return the values with their intervals as a table, with the interpolated periods."""
        return replace(super().answers(level, band=band), interpolated=self.interpolated)
