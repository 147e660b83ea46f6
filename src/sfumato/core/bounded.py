"""Estimates of values that have a smallest and a largest possible one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats
from sfumato.core.estimate import Estimate

__all__ = ["BoundedEstimate", "bounded", "possible"]


@dataclass(frozen=True, eq=False, repr=False)
class BoundedEstimate(Estimate):
    """Values whose intervals are cut to what is possible, see :func:`bounded`.

    Parameters
    ----------
    least, most
        The smallest and the largest possible value.

    Examples
    --------
    >>> from sfumato.core.estimate import Covariance
    >>> from sfumato.core.guarantee import Guarantee
    >>> promise, noise = Guarantee("local", "each report", 1.0), Covariance(np.full(1, 0.01))
    >>> share = BoundedEstimate(np.array([0.1]), noise, ("on",), 50, promise, least=0.0, most=1.0)
    >>> [side.round(3).tolist() for side in share.interval()]
    [[0.0], [0.296]]

    """

    least: float = field(kw_only=True)
    most: float = field(kw_only=True)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the two ends of each value's interval, as far as they are possible."""
        return bounded(self.values, *super().interval(level), self.least, self.most)

    def only(self, indices: Sequence[int]) -> BoundedEstimate:
        """Return an estimate of the values with these indices alone."""
        return replace(
            self,
            values=self.values[np.asarray(indices, dtype=np.int64)],
            covariance=self.covariance.only(indices),
            labels=tuple(self.labels[index] for index in indices),
        )


def bounded(
    values: Floats, low: Floats, high: Floats, least: float, most: float
) -> tuple[Floats, Floats]:
    """Return intervals cut to what is possible, which loses no truth.

    The interval of a value that is not possible reaches as far as that of the nearest possible one
    would, so that noise which moves a value far outside is not taken for certainty. An unknown
    value, which is nan, may be anything that is possible.

    Examples
    --------
    >>> values = np.array([0.4, 0.9, 1.5, np.nan])
    >>> [side.tolist() for side in bounded(values, values - 0.25, values + 0.25, 0.0, 1.0)]
    [[0.15000000000000002, 0.65, 0.75, 0.0], [0.65, 1.0, 1.0, 1.0]]

    """
    unknown = np.isnan(values)
    low, high = np.where(unknown, least, low), np.where(unknown, most, high)
    values = np.where(unknown, least, values)
    beyond = np.clip(values, least, most) - values
    low, high = low + np.minimum(beyond, 0.0), high + np.maximum(beyond, 0.0)
    return np.clip(low, least, most), np.clip(high, least, most)


def possible(weights: ArrayLike, lowest: float = 0.0) -> tuple[float, float]:
    """Return the smallest and largest weighted sums of values between ``lowest`` and 1.

    Examples
    --------
    >>> possible([1.0, 1.0]), possible([-1.0, 1.0])
    ((0.0, 2.0), (-1.0, 1.0))

    """
    own = np.asarray(weights, dtype=np.float64)
    ends = np.sort(np.outer([lowest, 1.0], own), axis=0)
    return float(ends[0].sum()), float(ends[1].sum())
