"""The base of our own methods: cohorts that do not depend on the data, and curves followed by them.

Everybody answers about the value itself, as in LPU, and what earlier periods said is not thrown
away. A release has the values that were followed (for shares: the nearest ones that are not
negative and sum to one), their posterior variances, and also the unbiased answers of the period
alone. ``surprise`` is the probability of each answer given all earlier ones.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.projections import simplex
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.streams.window.curators import Step, WindowCurator
from sfumato.streams.window.readings import Reading, sampling

__all__ = ["Followed", "Following"]


class Followed(NamedTuple):
    """The values of a period, their variances, and how likely its answers were beforehand."""

    values: Floats
    variance: Floats
    tail: Floats


@dataclass(eq=False, repr=False, kw_only=True)
class Following(WindowCurator):
    """A curator that asks a planned number of devices, and follows the curves of their answers."""

    def __post_init__(self) -> None:
        """Raise ConfigurationError if the window has too little for each period."""
        super().__post_init__()
        self.each = self.division.even
        self.values: Floats | None = None
        """The last values; None before the first answer."""

    @abstractmethod
    def follow(self, reading: Reading | None) -> Followed:
        """Return what is known of a period from its answers, if any, and from earlier ones."""

    def size(self, period: int) -> float:
        """Return how many devices a period asks: a w-th of all."""
        del period
        return self.each

    def release(self, period: int) -> Step:
        """Ask the devices of a period, and follow the curves of their answers."""
        reading = yield from self.asked(self.size(period))
        if reading is None and self.values is None:
            return self.repeat()
        self.values, variance, tail = self.follow(reading)
        return self.estimate(
            self.values,
            variance,
            published=reading is not None,
            raw=None if reading is None else reading.values,
            raw_variance=None if reading is None else reading.variance,
            surprise=tail,
        )

    def noise(self, reading: Reading) -> Floats:
        """Return the variance of each answer; that of shares is taken at the last values.

        At the observed share, an answer that came out too low would also have too small a variance.
        """
        mechanism, _ = self.division.question(self.each)
        if not isinstance(mechanism, FrequencyOracle):
            return reading.variance
        share = self.possible(reading.values) if self.values is None else self.values
        rare, always = mechanism.variance(0), mechanism.variance(1)  # and affine in between
        noise = (rare + share * (always - rare)) / reading.n
        return np.asarray(noise + sampling(reading.n, self.protocol.people) * share * (1 - share))

    def possible(self, mean: Floats) -> Floats:
        """Return the nearest possible values: shares that sum to one, or a number within bounds."""
        if self.protocol.interval is not None:
            return np.clip(mean, *self.protocol.interval)
        return simplex(mean)
