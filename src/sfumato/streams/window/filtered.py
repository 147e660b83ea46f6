"""Ours: uniform cohorts, and a bank of filters that knows how slowly the curve moves.

Adaptive methods spend half of their devices on the question whether anything changed, and then
publish one cohort alone or repeat an old answer. Here every device answers about the value itself,
as in LPU, and what earlier periods said is not thrown away: each item's share is followed by a bank
of Kalman filters (:mod:`sfumato.streams.bank`), with the exact variance of each cohort's answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.core.estimate import Covariance
from sfumato.core.mechanism import Mechanism
from sfumato.core.projections import simplex
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.streams.bank import MOTIONS, SWITCH, Bank
from sfumato.streams.smoother import smoothed
from sfumato.streams.window.curators import Step, WindowCurator, WindowEstimate
from sfumato.streams.window.divisions import between
from sfumato.streams.window.readings import Reading, sampling

if TYPE_CHECKING:
    from sfumato.streams.window.protocol import Window

__all__ = ["Filtered", "history"]

Floats = NDArray[np.float64]

DOUBT: Final = 1.2
"""What posterior variances are multiplied with. A bank that finds out how a curve moves from few
noisy answers is a little too sure of it: without this, 95% intervals cover 92-94% of a random walk,
of which every step is as the bank expects it."""


class Filtered(WindowCurator):
    """LPU, decoded with a prior that curves move slowly.

    A release has the posterior means (of shares: moved to the nearest ones that are not negative
    and sum to one), their posterior variances, and beside them the unbiased answers of the period
    alone. ``surprise`` says how unlikely each answer was, given all before.

    Parameters
    ----------
    protocol
        The public design.
    switch
        How likely a curve is to change its ways in a period.
    restart
        How unlikely an answer must be for its item to start afresh.
    doubt
        What posterior variances are multiplied with.

    """

    name: ClassVar[str] = "filtered"
    summary: ClassVar[str] = "a w-th of the devices in each period, and a bank of filters (ours)"
    divides: ClassVar[str] = "population"

    def __init__(
        self,
        protocol: Window,
        *,
        switch: float = SWITCH,
        restart: float = 1e-6,
        doubt: float = DOUBT,
    ) -> None:
        super().__init__(protocol)
        self.needs_devices(self.window)
        if not 0 <= restart < 1:
            raise ConfigurationError(f"restart is {restart!r}; a number from 0 on, below 1.")
        self.doubt = between("doubt", doubt, 0)
        self.bank = Bank(
            protocol.width, motions=MOTIONS, switch=switch, apart=True, surprise=restart
        )
        self._mean: Floats | None = None

    def step(self, period: int) -> Step:
        """Ask a w-th of the devices; let the bank make the best of it."""
        del period
        mechanism = self.oracle()
        tally = yield self.ask(mechanism, self.devices / self.window)
        reading = self.read(mechanism, tally)
        if reading is None:
            mean, variance = self.bank.close(
                np.zeros(0, dtype=np.int64), np.zeros((0, self.protocol.width)), np.zeros((0, 1))
            )
            if self._mean is None:
                return self.repeat()
        else:
            noise = self._noise(mechanism, reading)
            mean, variance = self.bank.close(
                np.zeros(1, dtype=np.int64), reading.values[None], noise[None]
            )
        self._mean = mean
        return self.estimate(
            self._possible(mean),
            self.doubt * variance,
            published=reading is not None,
            raw=None if reading is None else reading.values,
            raw_variance=None if reading is None else reading.variance,
            surprise=self.bank.tail,
        )

    def _noise(self, mechanism: Mechanism, reading: Reading) -> Floats:
        """Return the variance of each answer: of shares at what is known of them, not as seen now.

        A share that came out too low would otherwise claim too small a variance, too.
        """
        if not isinstance(mechanism, FrequencyOracle):
            return reading.variance
        share = self._possible(reading.values if self._mean is None else self._mean)
        rare, always = mechanism.variance(0), mechanism.variance(1)  # and affine in between
        noise = (rare + share * (always - rare)) / reading.n
        return np.asarray(noise + sampling(reading.n, self.population) * share * (1 - share))

    def _possible(self, mean: Floats) -> Floats:
        if self.protocol.interval is not None:
            return np.clip(mean, *self.protocol.interval)
        return simplex(mean)


def history(releases: Sequence[WindowEstimate]) -> list[WindowEstimate]:
    """Return all releases of a filtered stream once more, with what came later taken in.

    They carry the period of the last release as ``as_of``: an online release is final when its
    period closes, and this is another answer.

    Parameters
    ----------
    releases
        With the unbiased answers beside the filtered ones.

    """
    heard = [release for release in releases if release.raw is not None]
    if not heard:
        return list(releases)
    width = heard[0].values.size
    nothing = np.full(width, np.nan)
    seen = np.array([nothing if each.raw is None else each.raw for each in releases])
    noise = np.array(
        [nothing if each.raw_variance is None else each.raw_variance for each in releases]
    )
    first = int(np.argmax(np.isfinite(seen).all(axis=1)))
    means, variances = smoothed(seen[first:], noise[first:])
    return [
        *releases[:first],
        *(
            replace(
                each,
                values=mean,
                covariance=Covariance(DOUBT * variance, joint=False),
                surprise=None,
                as_of=releases[-1].period,
            )
            for each, mean, variance in zip(releases[first:], means, variances, strict=True)
        ),
    ]
