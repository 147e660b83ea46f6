"""DSAT_w: at most C publications in a window, at distances above an adaptive threshold.

Li, Xiong, Jiang, Liu, "Differentially Private Histogram Publication for Dynamic Datasets: an
Adaptive Sampling Approach" (2015), in the form of LDP-IDS (2022, Alg. 4), corrected: every period
looks, so each look has a w-th and not a C-th of its part (or the pool would run empty);
publications are counted over the right periods; and the threshold is a squared distance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from sfumato.errors import ConfigurationError
from sfumato.streams.window.curators import POSITIVE, SHARE, Step, WindowCurator
from sfumato.streams.window.divisions import Spent

__all__ = ["DSAT"]


@dataclass(eq=False, repr=False, kw_only=True)
class DSAT(WindowCurator):
    """A curator whose threshold falls with too few publications and rises with too many.

    Parameters
    ----------
    share
        The share of the window that is spent on looking for changes.
    publications
        The largest number of publications in a window (C); by default 15% of its periods.
    threshold
        The first threshold, a squared distance in units of a publication's variance.
    pace
        The speed at which the threshold changes (theta), in the same units.
    slack
        The deviation of the publication rate up to which the threshold changes slowly (sigma).

    """

    share: float = field(default=0.5, metadata=SHARE)
    publications: int = 0
    threshold: float = field(default=1.0, metadata=POSITIVE)
    pace: float = field(default=0.5, metadata=POSITIVE)
    slack: float = field(default=0.05, metadata=POSITIVE)

    rounds: ClassVar[int] = 2

    def __post_init__(self) -> None:
        """Divide the window into looks and publications."""
        super().__post_init__()
        self.most = self.publications or max(1, round(0.15 * self.window))
        if not isinstance(self.most, int) or not 1 <= self.most <= self.window:
            raise ConfigurationError(
                f"publications is {self.publications!r}; a window of {self.window} periods has "
                f"1..{self.window} of them."
            )
        self.look = self.division.parts(self.share / self.window, "a look")
        self.each = self.division.parts((1 - self.share) / self.most, "a publication")
        unit = self.division.error(self.each)
        self.threshold *= unit
        self.pace *= unit
        # Two histograms are at most sqrt(2) apart, two means at most the length of the interval.
        furthest = (2 if self.protocol.domain is not None else 1) * self.protocol.reach**2
        self.ceiling = furthest / self.protocol.width
        self.published = Spent(self.window)

    def release(self, period: int) -> Step:
        """Look, adapt the threshold, and publish if the distance is above it."""
        count = self.published.times(period)
        if count >= self.most:
            return self.repeat()
        reading = yield from self.asked(self.look)
        surplus = count / min(period, self.window) - self.most / self.window
        move = self.pace * abs(abs(surplus) - self.slack) / self.slack
        if surplus <= 0:
            self.threshold = max(0.0, self.threshold - move)
        else:
            self.threshold = min(self.ceiling, self.threshold + move)
        if reading is None:
            return self.repeat()
        distance = self.dissimilarity(reading)
        if distance < self.threshold:
            return self.repeat(distance)
        self.published.add(period, self.each)
        return self.publish((yield from self.asked(self.each)))
