"""Estimates, which always come with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Bools, Floats, Ints
from sfumato.core import intervals
from sfumato.core.answers import Answers
from sfumato.core.domain import Label
from sfumato.core.guarantee import Guarantee
from sfumato.core.quantity import AMOUNT, SHARE, Quantity
from sfumato.errors import ConfigurationError, MismatchError

__all__ = [
    "LARGEST_LEVEL",
    "Covariance",
    "Estimate",
    "FrequencyEstimate",
    "Unfiltered",
    "checked_level",
]


LARGEST_LEVEL: Final = 1 - 1e-12
"""Levels above this are too close to 1 for quantiles and exact laws in floating point."""


@dataclass(frozen=True, eq=False)
class Covariance:
    """A covariance matrix kept as diag(diagonal) + factor @ core @ factor.T.

    A million items then need a few columns instead of a million squared entries. A dense matrix
    is the case of a zero diagonal and no factor (:meth:`dense`). Where only the variance of each
    value is known and not their covariances, ``joint`` is false, and the variance of a sum of
    several values is refused. A value of which nothing is known has variance nan or inf; it affects
    neither the other values nor sums in which it has weight zero.

    Examples
    --------
    >>> covariance = Covariance(np.array([2.0, 2.0]), np.ones((2, 1)), np.array([[-1.0]]))
    >>> covariance.matrix()
    array([[ 1., -1.],
           [-1.,  1.]])
    >>> float(covariance.variance_of([1, 1]))
    0.0

    """

    diagonal: Floats
    factor: Floats | None = None
    core: Floats | None = None
    joint: bool = True

    @classmethod
    def dense(cls, matrix: ArrayLike) -> Self:
        """Return the covariance for a full matrix."""
        core = np.asarray(matrix, dtype=np.float64)
        return cls(np.zeros(len(core)), None, core)

    @property
    def size(self) -> int:
        """The number of values."""
        return self.diagonal.size

    def variances(self) -> Floats:
        """Return the variance of each value, never below zero."""
        total = self.diagonal
        if self.core is not None and self.factor is None:
            total = total + np.diagonal(self.core)
        elif self.core is not None and self.factor is not None:
            total = total + np.einsum("ij,ij->i", self.factor @ self.core, self.factor)
        return np.maximum(total, 0.0)

    def variance_of(self, weights: ArrayLike) -> Floats:
        """Return the variance of the weighted sum of the values, one for each row of weights."""
        rows = np.asarray(weights, dtype=np.float64)
        if rows.shape[-1:] != (self.size,):
            raise MismatchError(
                f"weights have shape {rows.shape}; the last axis must have length {self.size}."
            )
        self._refuse_sums(rows)
        known = self._known
        total = (rows * rows) @ known.diagonal
        if known.core is not None:
            inner = rows if known.factor is None else rows @ known.factor
            total = total + np.einsum("...i,ij,...j->...", inner, known.core, inner)
        return np.where(self._touched(rows), np.nan, np.maximum(total, 0.0))

    @cached_property
    def _unknown(self) -> Bools:
        return ~np.isfinite(self.variances())

    @property
    def _known(self) -> Covariance:
        """The same covariance with zeros for unknown values, so that they add nothing to a sum."""
        if not self._unknown.any():
            return self
        core, factor = self.core, self.factor
        diagonal = np.where(self._unknown, 0.0, self.diagonal)
        if factor is not None:
            factor = np.where(self._unknown[:, None], 0.0, factor)
        elif core is not None:
            core = np.where(self._unknown[:, None] | self._unknown, 0.0, core)
        return Covariance(diagonal, factor, core, self.joint)

    def _touched(self, rows: Floats) -> Bools:
        """Return which rows give weight to an unknown value."""
        return np.asarray((rows != 0) @ self._unknown)

    def _refuse_sums(self, rows: Floats) -> None:
        if not self.joint and bool((np.count_nonzero(rows, axis=-1) > 1).any()):
            raise MismatchError(
                "the weights name several values, of which only each one's own variance is known; "
                "ask for them one at a time."
            )

    def matrix(self) -> Floats:
        """Return the full matrix."""
        if not self.joint:
            raise MismatchError("only the variance of each value is known, not the whole matrix.")
        full = np.diag(self.diagonal)
        if self.core is not None:
            inner = self.factor
            full = full + (self.core if inner is None else inner @ self.core @ inner.T)
        return full

    def only(self, indices: Sequence[int]) -> Covariance:
        """Return the covariance of the values with these indices."""
        index = np.asarray(indices, dtype=np.int64)
        factor, core = self.factor, self.core
        if factor is not None:
            factor = factor[index]
        elif core is not None:
            core = core[np.ix_(index, index)]
        return Covariance(self.diagonal[index], factor, core, self.joint)

    def mapped(self, weights: Floats) -> Covariance:
        """Return the covariance of ``weights @ values``."""
        self._refuse_sums(weights)
        known = self._known
        full = (weights * known.diagonal) @ weights.T
        if known.core is not None:
            inner = weights if known.factor is None else weights @ known.factor
            full = full + inner @ known.core @ inner.T
        touched = self._touched(weights)
        full[touched[:, None] | touched] = np.nan
        return Covariance.dense(full)


class Unfiltered(NamedTuple):
    """An unbiased answer, its variances, and how likely it was given all earlier ones."""

    values: Floats
    variances: Floats
    surprise: Floats


@dataclass(frozen=True, eq=False)
class Estimate:
    """Unbiased values, their covariance, and the guarantee under which they were collected.

    Parameters
    ----------
    values
        The estimates, one for each label.
    covariance
        The covariance of the estimates given the data: of the noise, not of who took part.
    labels
        The name of each value.
    n
        How many reports were used.
    guarantee
        What the people behind the reports were promised.
    quantity
        What the values are, and how they are printed.

    Examples
    --------
    >>> promise = Guarantee("local", "each report", 1.0)
    >>> e = Estimate(np.array([0.2, 0.8]), Covariance(np.full(2, 0.01)), ("a", "b"), 50, promise)
    >>> low, high = e.interval(0.95)
    >>> (high - low).round(3).tolist()
    [0.392, 0.392]
    >>> e.combine([[1, 1]], ["both"]).values.round(3).tolist()
    [1.0]

    """

    values: Floats
    covariance: Covariance
    labels: Sequence[Label]
    n: int
    guarantee: Guarantee
    quantity: Quantity = field(default=AMOUNT, kw_only=True)

    def __post_init__(self) -> None:
        """Raise MismatchError unless values, labels and covariance have the same length."""
        if not self.values.size == len(self.labels) == self.covariance.size:
            raise MismatchError(
                f"{self.values.size} values, {len(self.labels)} labels and a covariance of "
                f"{self.covariance.size} do not belong together."
            )

    @property
    def standard_errors(self) -> Floats:
        """The standard deviation of each value's noise."""
        return np.sqrt(self.covariance.variances())

    @property
    def unfiltered(self) -> Unfiltered | None:
        """The unbiased answer behind filtered values; None if values are not filtered."""
        return None

    def variance_of(self, weights: ArrayLike) -> Floats:
        """Return the variance of a weighted sum of the values, such as a range or a difference."""
        return self.covariance.variance_of(weights)

    def combine(self, weights: ArrayLike, labels: Sequence[Label]) -> Estimate:
        """Return weighted sums of the values (one for each row of weights) as an estimate."""
        rows = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        if rows.shape != (len(labels), self.values.size):
            raise MismatchError(
                f"weights have shape {rows.shape}; ({len(labels)}, {self.values.size}) is expected."
            )
        mapped = self.covariance.mapped(rows)
        unknown = np.isnan(self.values)
        sums = rows @ np.where(unknown, 0.0, self.values)
        sums[(rows != 0) @ unknown] = np.nan
        return Estimate(sums, mapped, tuple(labels), self.n, self.guarantee)

    def only(self, indices: Sequence[int]) -> Estimate:
        """Return an estimate of the values with these indices alone."""
        return Estimate(
            values=self.values[np.asarray(indices, dtype=np.int64)],
            covariance=self.covariance.only(indices),
            labels=tuple(self.labels[index] for index in indices),
            n=self.n,
            guarantee=self.guarantee,
            quantity=self.quantity,
        )

    def moved(self, values: Floats) -> Self:
        """Return the estimate with other values; intervals keep their widths and move along."""
        return replace(self, values=values)

    @property
    def published(self) -> bool:
        """Whether new reports were used; if not, an earlier release is repeated."""
        return True

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the two ends of each value's interval; ``level`` holds for each on its own."""
        reach = intervals.z_score(checked_level(level)) * self.standard_errors
        return self.values - reach, self.values + reach

    def scores(self, truth: float) -> Floats:
        """Return how many standard deviations each value is above a truth; nan if it has none.

        The interval of a level holds the truths at which this is below the level's quantile.
        """
        noisy = np.where(self.standard_errors > 0, self.standard_errors, np.nan)
        return np.asarray((self.values - truth) / noisy)

    def band(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of intervals that contain *all* truths at once with this probability.

        Šidák's inequality: jointly normal values stay in a box at least as often as independent
        ones would, whatever their correlation.
        """
        each = checked_level(level) ** (1 / self.values.size)
        if each > LARGEST_LEVEL:
            raise ConfigurationError(
                f"level is {level} for {self.values.size} values at once; fewer of them or a lower "
                "level is expected."
            )
        return self.interval(each)

    def answers(self, level: float = 0.95, *, band: bool = False) -> Answers:
        """Return the values with their intervals as a table.

        Parameters
        ----------
        level
            The probability that an interval contains the truth.
        band
            Whether the level holds for all intervals at once.

        """
        low, high = (self.band if band else self.interval)(level)
        return Answers(
            tuple(self.labels),
            self.values,
            low,
            high,
            self.n,
            self.guarantee,
            level,
            self.quantity,
            band=band,
        )

    def to_frame(self, backend: str = "pandas", level: float = 0.95) -> Any:
        """Return the values with their intervals as a pandas, polars or pyarrow table."""
        return self.answers(level).to_frame(backend)

    def __repr__(self) -> str:
        return repr(self.answers())

    def _repr_html_(self) -> str:
        return self.answers()._repr_html_()


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyEstimate(Estimate):
    """Shares of items from counts whose exact law is known, so intervals hold for small counts too.

    Parameters
    ----------
    counts, p, q
        How many reports support each item, and the probability that the report of somebody who
        holds it (p) and of somebody who does not (q) supports it.

    """

    counts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    p: float = 1.0
    q: float = 0.0
    quantity: Quantity = field(default=SHARE, kw_only=True)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return each share's interval, from the exact law of its count if the count is small."""
        low, high = intervals.shares(self.counts, self.n, self.p, self.q, checked_level(level))
        # With hardly any noise the exact interval is a single share, just beside the estimate.
        return np.minimum(low, self.values), np.maximum(high, self.values)


def checked_level(level: float) -> float:
    """Return the level of an interval if it is allowed; raise ConfigurationError otherwise."""
    if not 0 < level <= LARGEST_LEVEL:
        raise ConfigurationError(
            f"level is {level}; a share of truths covered, above 0 and up to {LARGEST_LEVEL}, is "
            "expected."
        )
    return level
