"""Our own method: uniform cohorts, and a bank of filters that learns how slowly curves move.

Adaptive methods spend half of their devices on the question whether anything changed, and then
publish one cohort alone or repeat an old answer. Here every device answers about the value itself,
as in LPU, and answers of earlier periods are not thrown away: each item's share is followed by a
bank of Kalman filters (:mod:`sfumato.streams.bank`), with the exact variance of each cohort's
answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.estimate import Covariance
from sfumato.core.projections import simplex
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.streams.bank import MOTIONS, STILL, SWITCH, Bank
from sfumato.streams.smoother import smoothed
from sfumato.streams.window.curators import POSITIVE, Step, WindowCurator, WindowEstimate
from sfumato.streams.window.readings import Reading, sampling

__all__ = ["Filtered", "history"]


DOUBT: Final = 1.2
"""The factor of posterior variances.

A bank that learns how a curve moves from few noisy answers has slightly too small variances:
without this factor, 95% intervals cover 92-94% of a random walk that fits the bank exactly.
"""
POOLED_DOUBT: Final = 1.4
"""The factor of posterior variances where items learn from each other.

Their variances are smaller, and slightly too small for curves that jump: with 1.2, 95% intervals
cover 93-94% there.
"""
FIRST: Final = 0.1
"""The share of the devices that the first period of ``pooled`` asks beyond its even part."""


@dataclass(eq=False, repr=False, kw_only=True)
class Filtered(WindowCurator):
    """The method LPU, with a prior that curves move slowly.

    A release has the posterior means (for shares: the nearest ones that are not negative and sum to
    one), their posterior variances, and also the unbiased answers of the period alone. ``surprise``
    is the probability of each answer given all earlier ones.

    Parameters
    ----------
    switch
        The probability that a curve changes its law of motion in a period.
    restart
        The probability below which an answer restarts its item.
    doubt
        The factor of posterior variances.
    first
        The share of the devices that the first period asks beyond its even part. They are free
        again when their window is over, and answer in turn like all others.
    pooled
        Whether items learn from each other how they move, and may stand still.

    """

    switch: float = SWITCH
    restart: float = 1e-6
    doubt: float = field(default=DOUBT, metadata=POSITIVE)
    first: float = 0.0
    pooled: bool = False

    def __post_init__(self) -> None:
        """Raise ConfigurationError if the window has too little for each period."""
        super().__post_init__()
        self.each = self.division.even
        for name in ("restart", "first"):
            if not 0 <= (value := getattr(self, name)) < 1:
                raise ConfigurationError(f"{name} is {value!r}; a number from 0 on, below 1.")
        self.bank = Bank(
            self.protocol.width,
            motions=(*STILL, *MOTIONS) if self.pooled else MOTIONS,
            switch=self.switch,
            apart=True,
            surprise=self.restart,
            pooled=self.pooled,
            unit=self.size(1) / self.each,
        )
        self._mean: Floats | None = None

    def release(self, period: int) -> Step:
        """Ask the devices of a period, and update the bank with their answers."""
        reading = yield from self.asked(self.size(period))
        if reading is None:
            seen = noise = np.zeros((0, self.protocol.width))
        else:
            seen, noise = reading.values[None], self._noise(reading)[None]
        mean, variance = self.bank.close(np.zeros(len(seen), dtype=np.int64), seen, noise)
        if reading is None and self._mean is None:
            return self.repeat()
        self._mean = mean
        return self.estimate(
            self._possible(mean),
            self.doubt * variance,
            published=reading is not None,
            raw=None if reading is None else reading.values,
            raw_variance=None if reading is None else reading.variance,
            surprise=self.bank.tail,
        )

    def size(self, period: int) -> float:
        """Return how many devices a period asks; the first window shares what period 1 leaves."""
        if period > self.window:
            return self.each
        later = (1 - self.first) * self.each
        return later if period > 1 else later + self.first * self.division.whole

    def _noise(self, reading: Reading) -> Floats:
        """Return the variance of each answer; that of shares is taken at the posterior mean.

        At the observed share, an answer that came out too low would also have too small a variance.
        """
        mechanism, _ = self.division.question(self.each)
        if not isinstance(mechanism, FrequencyOracle):
            return reading.variance
        share = self._possible(reading.values if self._mean is None else self._mean)
        rare, always = mechanism.variance(0), mechanism.variance(1)  # and affine in between
        noise = (rare + share * (always - rare)) / reading.n
        return np.asarray(noise + sampling(reading.n, self.protocol.people) * share * (1 - share))

    def _possible(self, mean: Floats) -> Floats:
        if self.protocol.interval is not None:
            return np.clip(mean, *self.protocol.interval)
        return simplex(mean)


def history(releases: Sequence[WindowEstimate]) -> list[WindowEstimate]:
    """Return all releases of a filtered stream again, updated with later answers.

    Their ``as_of`` is the period of the last release; online releases are final when their period
    closes, and these are different answers.

    Parameters
    ----------
    releases
        The releases, with the unbiased answers beside the filtered ones.

    """
    answered = [release.raw is not None for release in releases]
    if not any(answered):
        return list(releases)
    first = answered.index(True)
    later = releases[first:]
    nothing = np.full(later[0].values.size, np.nan)
    seen = [nothing if each.raw is None else each.raw for each in later]
    noise = [nothing if each.raw_variance is None else each.raw_variance for each in later]
    smooth = list(releases[:first])
    for each, mean, variance in zip(later, *smoothed(np.array(seen), np.array(noise)), strict=True):
        covariance = Covariance(DOUBT * variance, joint=False)
        as_of = releases[-1].period
        smooth.append(replace(each, values=mean, covariance=covariance, surprise=None, as_of=as_of))
    return smooth
