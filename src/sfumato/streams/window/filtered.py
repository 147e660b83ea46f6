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

from sfumato.core.estimate import Covariance
from sfumato.core.field_checks import check_number
from sfumato.streams.bank import MOTIONS, SWITCH, Bank
from sfumato.streams.smoother import smoothed
from sfumato.streams.window.curators import POSITIVE, Step, WindowCurator, WindowEstimate
from sfumato.streams.window.following import Followed, Following
from sfumato.streams.window.readings import Reading

__all__ = ["Filtered", "history"]


DOUBT: Final = 1.2
"""The factor of posterior variances.

A bank that learns how a curve moves from few noisy answers has slightly too small variances:
without this factor, 95% intervals cover 92-94% of a random walk that fits the bank exactly.
"""


@dataclass(eq=False, repr=False, kw_only=True)
class Filtered(WindowCurator):
    """The method LPU, with a prior that curves move slowly.

    Parameters
    ----------
    switch
        The probability that a curve changes its law of motion in a period.
    restart
        The probability below which an answer restarts its item.
    doubt
        The factor of posterior variances.

    """

    switch: float = SWITCH
    restart: float = 1e-6
    doubt: float = field(default=DOUBT, metadata=POSITIVE)

    def __post_init__(self) -> None:
        """Start a bank that has seen nothing."""
        super().__post_init__()
        self.following = Following(self)
        check_number("restart", self.restart, least=0, below=1)
        self.bank = Bank(
            self.protocol.width,
            motions=MOTIONS,
            switch=self.switch,
            apart=True,
            surprise=self.restart,
        )

    def release(self, period: int) -> Step:
        """Ask a w-th of all devices, and follow the curves of their answers."""
        del period
        return self.following.release(self.following.each, self._followed)

    def _followed(self, reading: Reading | None) -> Followed:
        """Update the bank with the answers of a period."""
        if reading is None:
            seen = noise = np.zeros((0, self.protocol.width))
        else:
            seen, noise = reading.values[None], self.following.noise(reading)[None]
        mean, variance = self.bank.close(np.zeros(len(seen), dtype=np.int64), seen, noise)
        return Followed(self.following.possible(mean), self.doubt * variance, self.bank.tail)


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
