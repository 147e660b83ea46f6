"""DSAT_w: at most C publications in a window, when the truth is beyond a threshold that adapts.

Li, Xiong, Jiang, Liu, "Differentially Private Histogram Publication for Dynamic Datasets: an
Adaptive Sampling Approach" (2015), in the form of LDP-IDS (2022, Alg. 4), repaired: every period
looks, so each look has a w-th and not a C-th of its part (the pool would run empty); publications
are counted against the periods that the count is about; the threshold is a squared distance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sfumato.errors import ConfigurationError
from sfumato.streams.window.curators import Step
from sfumato.streams.window.divisions import Budget, Divided, Population, Spent, between

if TYPE_CHECKING:
    from sfumato.streams.window.protocol import Window

__all__ = ["LBDSAT", "LPDSAT"]


class _DSAT(Divided):
    """A threshold that falls while there are too few publications, and rises with too many.

    Parameters
    ----------
    protocol
        The public design.
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

    rounds: ClassVar[int] = 2

    def __init__(
        self,
        protocol: Window,
        *,
        share: float = 0.5,
        publications: int = 0,
        threshold: float = 1.0,
        pace: float = 0.5,
        slack: float = 0.05,
    ) -> None:
        super().__init__(protocol)
        between("share", share, 0, 1)
        self.slack = between("slack", slack, 0)
        most = publications or max(1, round(0.15 * self.window))
        if not isinstance(most, int) or not 1 <= most <= self.window:
            raise ConfigurationError(
                f"publications is {publications!r}; a window of {self.window} periods has "
                f"1..{self.window} of them."
            )
        self.most = most
        self.look = self.parts(share / self.window, "a look")
        self.each = self.parts((1 - share) / most, "a publication")
        unit = self.error(self.each)
        self.threshold = between("threshold", threshold, 0) * unit
        self.pace = between("pace", pace, 0) * unit
        low, high = protocol.interval or (0.0, 1.0)
        # Two histograms are at most sqrt(2) apart, two means as far as the interval is long.
        self.ceiling = (2 if protocol.domain is not None else 1) * (high - low) ** 2
        self.ceiling /= protocol.width
        self.spent = Spent(self.window)

    def step(self, period: int) -> Step:
        """Look, move the threshold, publish beyond it."""
        count = self.spent.times(period)
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
        self.spent.add(period, self.each)
        return self.publish((yield from self.asked(self.each)))


class LBDSAT(_DSAT, Budget):
    """DSAT_w by budget: a look has a w-th of half the budget, a publication a C-th of the rest."""

    name: ClassVar[str] = "lb-dsat"
    summary: ClassVar[str] = "publishes beyond a threshold that adapts, dividing budget"


class LPDSAT(_DSAT, Population):
    """DSAT_w by population: the same of the devices."""

    name: ClassVar[str] = "lp-dsat"
    summary: ClassVar[str] = "publishes beyond a threshold that adapts, dividing devices"
