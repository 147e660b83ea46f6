"""The piecewise mechanism: a report near the number is more likely than one far from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from sfumato.arrays import Array, Ints
from sfumato.core.exact import exp_below
from sfumato.core.tally import Tally
from sfumato.mechanisms.mean.numeric import Moments
from sfumato.mechanisms.mean.sliding_law import SlidingWindow

__all__ = ["Piecewise"]


@dataclass(frozen=True)
class Piecewise(SlidingWindow):
    """The piecewise mechanism, for larger epsilon.

    With h = e^(epsilon/2) and C = (h+1)/(h-1) a number v of [-1, 1] is reported as a number of
    [-C, C], with density e^epsilon times higher on a window of width C - 1 that slides with v.
    On the grid the window has the share 1/h of the grid's steps, rounded, and the law is the one
    of :class:`~sfumato.mechanisms.mean.sliding_law.SlidingWindow`: exactly unbiased in spite of the
    rounding.

    Parameters
    ----------
    grid
        Number of grid steps; the default keeps the variance within 1% of the continuous one up to
        epsilon 8.

    Guarantee
    ---------
    epsilon-LDP, exactly over the integers used; no report is impossible under any number.

    Error
    -----
    n Var = v^2/(h - 1) + (h + 3)/(3 (h - 1)^2) on [-1, 1], largest at the ends.

    Cost
    ----
    Device O(1), 2 bytes, server O(1) per report.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> mechanism = Piecewise(epsilon=4.0, low=0, high=10)
    >>> mechanism.randomize([7, 7, 7, 0], seeded(1))["symbol"].tolist()
    [3109, 2989, 3032, 263]
    >>> mechanism.width, mechanism.size
    (554, 4650)

    References
    ----------
    Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu, "Collecting and Analyzing Multidimensional Data
    with Local Differential Privacy" (2019).

    """

    name: ClassVar[str] = "piecewise"
    summary: ClassVar[str] = "the mean from a blurred number; best for large epsilon"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, -1, 1, grid=8)
        yield cls(0.5, 0, 100, grid=64)
        yield cls(3.0, -5, 1, grid=6)

    @cached_property
    def width(self) -> int:
        """The number of positions in a window: a share of e^(-epsilon/2) of the grid."""
        return max(1, round(self.grid * exp_below(Fraction(-self.epsilon) / 2)))

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """The shape of a tally: the sum and the sum of squares of the positions."""
        return (2,)

    def _sums(self, reports: Array) -> Ints:
        positions = reports["symbol"].astype(np.int64)
        return np.array([positions.sum(), positions @ positions])

    def moments(self, tally: Tally) -> Moments:
        """Return the moments of the grid points, from the sum and sum of squares of positions."""
        return self.position_moments(tally.n, *map(int, tally.sums))
