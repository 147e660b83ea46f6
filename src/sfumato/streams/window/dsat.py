"""DSAT_w: at most C publications in a window, when the truth is beyond a threshold that adapts.

Li, Xiong, Jiang, Liu, "Differentially Private Histogram Publication for Dynamic Datasets: an
Adaptive Sampling Approach" (2015), in the form of LDP-IDS (2022, Alg. 4), repaired: every period
looks, so each look has a w-th and not a C-th of its part (the pool would run empty); publications
are counted against the periods that the count is about; the threshold is a squared distance.
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
    """A threshold that falls while there are too few publications, and rises with too many.

    Parameters
    ----------
    share
        Which share of the whole goes into looking for changes.
    publications
        How many there are in a window, at most (C); 15% of it if left out.
    threshold
        The first squared distance that is published at, in units of a publication's variance.
    pace
        How fast the threshold moves (theta), in the same units.
    slack
        How far the rate of publications may be off without a faster move (sigma).

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
        # Two histograms are at most sqrt(2) apart, two means as far as the interval is long.
        furthest = (2 if self.protocol.domain is not None else 1) * self.protocol.reach**2
        self.ceiling = furthest / self.protocol.width
        self.published = Spent(self.window)

    def release(self, period: int) -> Step:
        """Look, move the threshold, publish beyond it."""
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
