"""Our own method for weak answers: items learn from each other, curves may rest and may jump.

The cohorts are those of :mod:`sfumato.streams.window.filtered`, but for a larger first one. Their
answers are followed by a bank that knows jumps (:mod:`sfumato.streams.window.jumping`), and shares
of several items are also drawn to each other (:mod:`sfumato.streams.window.shares`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.field_checks import check_number
from sfumato.core.intervals import z_score
from sfumato.streams.window.curators import POSITIVE, Step, WindowCurator
from sfumato.streams.window.following import Followed, Following
from sfumato.streams.window.jumping import HAZARD, JumpingBank
from sfumato.streams.window.readings import Reading
from sfumato.streams.window.shares import ShareMixture

__all__ = ["FIRST", "Pooled"]

UNLIKELY: Final = 0.42
"""The probability of an answer below which its interval reaches as far as a jump might have gone.

That is 0.8 deviations. Jumps of less than about two and a half deviations of an answer cannot be
told from noise in time, and their intervals hold less often.
"""
REACH: Final = 1.6
"""The number of deviations beyond the answer that such an interval reaches."""
LEVEL: Final = 0.95
"""The level of the intervals for which this holds; others are in proportion."""

FIRST: Final = 0.3
"""The share of the devices that the first period asks beyond its even part."""


@dataclass(eq=False, repr=False, kw_only=True)
class Pooled(WindowCurator):
    """The method LPU, with priors for curves that move, rest or jump, and that are alike.

    Parameters
    ----------
    switch
        The probability that a curve changes its law of motion in a period.
    hazard
        The probability that a curve which jumps at all does so in a period.
    doubt
        The factor of posterior variances.
    first
        The share of the devices that the first period asks beyond its even part. They are free
        again when their window is over, and answer in turn like all others.

    """

    switch: float = 0.003
    hazard: float = HAZARD
    doubt: float = field(default=1.2, metadata=POSITIVE)
    first: float = FIRST

    def __post_init__(self) -> None:
        """Start a bank that has seen nothing."""
        super().__post_init__()
        self.following = Following(self)
        for name in ("switch", "hazard", "first"):
            check_number(name, getattr(self, name), least=0, below=1)
        width = self.protocol.width
        self.bank = JumpingBank(width, self.switch, self.hazard, self.protocol.reach)
        several = self.protocol.interval is None and width > 2
        self.mixture = ShareMixture() if several else None

    def size(self, period: int) -> float:
        """Return how many devices a period asks; the first window shares what period 1 leaves."""
        if period > self.window:
            return self.following.each
        later = (1 - self.first) * self.following.each
        return later if period > 1 else later + self.first * self.division.whole

    def release(self, period: int) -> Step:
        """Ask the devices of a period, and follow the curves of their answers."""
        return self.following.release(self.size(period), self._followed)

    def _followed(self, reading: Reading | None) -> Followed:
        """Update the bank with the answers of a period."""
        noise = None if reading is None else self.following.noise(reading)
        mean, variance = self.bank.close(None if reading is None else reading.values, noise)
        if self.mixture is not None:
            mean, variance = self.mixture.posterior(mean, variance)
        values, tail = self.following.possible(mean), self.bank.tail
        variance = self.doubt * self.bank.wary * variance + (values - mean) ** 2
        if reading is not None and noise is not None:
            variance = np.maximum(variance, self._jumped(reading.values - values, noise, tail))
        return Followed(values, variance, tail)

    def _jumped(self, apart: Floats, noise: Floats, tail: Floats) -> Floats:
        """Return the variance whose interval reaches beyond an answer that was not expected."""
        reach = np.abs(apart) + REACH * np.sqrt(noise)
        return np.where(tail < UNLIKELY, (reach / z_score(LEVEL)) ** 2, 0.0)
