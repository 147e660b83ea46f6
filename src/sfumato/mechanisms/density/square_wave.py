"""The square wave mechanism: reports near the number are likely, and all positions are counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from sfumato.arrays import Array, Ints
from sfumato.core.exact import exp_below
from sfumato.core.occurrences import occurrences
from sfumato.core.tally import Tally
from sfumato.mechanisms.density.distribution import Distribution
from sfumato.mechanisms.frequency.oracle import kept_and_anywhere
from sfumato.mechanisms.mean.numeric import Moments
from sfumato.mechanisms.mean.sliding_law import SlidingWindow
from sfumato.randomness import Source

__all__ = ["SquareWave"]


@dataclass(frozen=True)
class SquareWave(SlidingWindow):
    """The square wave mechanism, for the whole distribution of a number.

    A number v of [0, 1] is reported as a number of [-b, 1 + b], with density
    p = e^epsilon/(2b e^epsilon + 1) within b of v and q = 1/(2b e^epsilon + 1) elsewhere, where
    b = (epsilon e^epsilon - e^epsilon + 1)/(2 e^epsilon (e^epsilon - 1 - epsilon)) makes a report
    most informative. On the grid the window has 2b of the grid's steps, rounded, and the law is the
    one of :class:`~sfumato.mechanisms.mean.sliding_law.SlidingWindow`, with the rounded b in all of
    this. The tally counts how often each position was reported.

    Parameters
    ----------
    grid
        Number of grid steps, which is the resolution of the distribution.

    Guarantee
    ---------
    epsilon-LDP, exactly over the integers used; no report is impossible under any number.

    Error
    -----
    The mean position of a report is 2b (p - q) v + q (1 + 2b)/2 on [0, 1], from which the mean is
    estimated without bias, with a larger variance than Piecewise has. The distribution has no
    closed form.

    Cost
    ----
    Device O(1), 2 bytes, server O(1) per report; 12 kB for a tally.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> mechanism = SquareWave(epsilon=1.0, low=0, high=10)
    >>> tally = mechanism.tally(mechanism.randomize(np.linspace(6, 8, 20_000), seeded(1)))
    >>> int(mechanism.distribution(tally).quantile(0.5).round())
    7

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Li, Škorić, "Estimating Numerical Distributions under Local
    Differential Privacy" (2020).

    """

    name: ClassVar[str] = "square_wave"
    summary: ClassVar[str] = "the whole distribution of a number, with its mean and quantiles"

    grid: int = 1024

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 0, 1, grid=8)
        yield cls(0.5, -20, 100, grid=64)
        yield cls(3.0, -5, 1, grid=16)

    @cached_property
    def width(self) -> int:
        """The number of positions in a window: 2b times the number of grid steps, rounded."""
        # The differences cancel up to 12 of the 50 digits.
        epsilon, e = Fraction(self.epsilon), exp_below(self.epsilon)
        return max(1, round(self.grid * (epsilon * e - e + 1) / (e * (e - 1 - epsilon))))

    # ---- the server's half -----------------------------------------------------------------

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """The shape of a tally: one count for each position."""
        return (self.size,)

    def _sums(self, reports: Array) -> Ints:
        return occurrences(reports["symbol"], self.size)

    def moments(self, tally: Tally) -> Moments:
        """Return the moments of the grid points, from sum and sum of squares of the positions."""
        indices = np.arange(self.size)
        return self.position_moments(
            tally.n, int(tally.sums @ indices), int(tally.sums @ indices**2)
        )

    def sample_tally(self, histogram: Ints, rng: Source) -> Tally:
        """Return a tally drawn from its exact law: who stays in the window, then all positions."""
        draw = rng.simulator()
        kept, sums = kept_and_anywhere(histogram, self.kept, self.size, draw)
        window = np.full(self.width, 1 / self.width)
        for point in np.flatnonzero(kept):
            sums[point : point + self.width] += draw.multinomial(kept[point], window)
        return Tally(int(np.sum(histogram)), sums)

    def distribution(
        self, tally: Tally, *, smooth: bool = True, buckets: int | None = None
    ) -> Distribution:
        """Return the distribution of the numbers, by maximum likelihood.

        The paper has expectation maximization, the binomial average of neighbours after each step,
        and the rule for stopping: when a step improves the log-likelihood by less than 0.001, or
        0.001 e^epsilon without smoothing. Added here are e^4 for any epsilon above 4, a limit of
        10,000 steps, the exact law of the grid, and steps that need no matrix.

        Parameters
        ----------
        tally
            The tally of this mechanism's reports.
        smooth
            Whether neighbours are averaged, which is right for densities that change slowly over a
            few steps of the grid. If not, the density is rough, and single numbers keep their
            share.
        buckets
            How many buckets to show the density in; a divisor of the grid, by default the grid
            itself. The fit always has the grid's steps.

        """
        return Distribution.of(self, tally, smooth=smooth, buckets=buckets)
