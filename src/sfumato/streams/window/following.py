"""What our own methods share: cohorts that do not depend on the data, and curves followed by them.

Everybody answers about the value itself, as in LPU, and what earlier periods said is not thrown
away. A release has the values that were followed (for shares: the nearest ones that are not
negative and sum to one), their posterior variances, and also the unbiased answers of the period
alone. ``surprise`` is the probability of each answer given all earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable
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


class Following:
    """The part of a curator that asks planned cohorts, and follows the curves of their answers.

    Parameters
    ----------
    curator
        The curator of which this is a part.

    """

    def __init__(self, curator: WindowCurator) -> None:
        self._curator = curator
        self.each = curator.division.even
        self.values: Floats | None = None
        """The last values; None before the first answer."""

    def release(self, size: float, follow: Callable[[Reading | None], Followed]) -> Step:
        """Ask the devices of a period, and release the curves that their answers are taken for.

        Parameters
        ----------
        size
            The number of devices that are asked.
        follow
            Returns what is known of a period from its answers, if any, and from earlier ones.

        """
        reading = yield from self._curator.asked(size)
        if reading is None and self.values is None:
            return self._curator.repeat()
        self.values, variance, tail = follow(reading)
        return self._curator.estimate(
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
        mechanism, _ = self._curator.division.question(self.each)
        if not isinstance(mechanism, FrequencyOracle):
            return reading.variance
        share = self.possible(reading.values) if self.values is None else self.values
        rare, always = mechanism.variance(0), mechanism.variance(1)  # and affine in between
        noise = (rare + share * (always - rare)) / reading.n
        people = self._curator.protocol.people
        return np.asarray(noise + sampling(reading.n, people) * share * (1 - share))

    def possible(self, mean: Floats) -> Floats:
        """Return the nearest possible values: shares that sum to one, or a number within bounds."""
        interval = self._curator.protocol.interval
        return simplex(mean) if interval is None else np.clip(mean, *interval)
