"""RescueDP: looks when a controller says so, spends more the longer it has waited, and filters.

Wang, Zhang, Lu, Wang, Qin, Ren, "RescueDP: Real-Time Spatio-Temporal Crowd-Sourced Data Publishing
with Differential Privacy" (2016), in the form of LDP-IDS (2022, Alg. 5), corrected: an error is
compared with a deviation, not with a variance. The grouping of small regions is left out.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sfumato.streams.window.curators import Release, Step
from sfumato.streams.window.divisions import Budget, Divided, Population, Spent, between
from sfumato.streams.window.tracking import STEP, Controller, Tracker

if TYPE_CHECKING:
    from sfumato.streams.window.protocol import Window

__all__ = ["LBRescueDP", "LPRescueDP"]


class _RescueDP(Divided):
    """Look, correct the filter, and decide when to look next.

    Parameters
    ----------
    protocol
        The public design.
    scale
        How fast the share of what is left grows with the time waited (phi).
    most_of_rest
        The largest share of what is left that one look has (p_max).
    most_of_whole
        The largest share of the whole that one look has.
    pace
        How fast the interval changes (theta).
    step
        The deviation of a curve's step, as a share of its range.

    """

    def __init__(
        self,
        protocol: Window,
        *,
        scale: float = 0.2,
        most_of_rest: float = 0.6,
        most_of_whole: float = 0.2,
        pace: float = 10.0,
        step: float = STEP,
    ) -> None:
        super().__init__(protocol)
        self.scale = between("scale", scale, 0)
        self.most_of_rest = between("most_of_rest", most_of_rest, 0, 1)
        self.most = self.parts(between("most_of_whole", most_of_whole, 0, 1), "a look")
        self.pace = between("pace", pace, 0)
        low, high = protocol.interval or (0.0, 1.0)
        self.tracker = Tracker((between("step", step, 0) * (high - low)) ** 2)
        self.controller = Controller(0.9, 0.1, 0.0, memory=3)
        self.wait = 1.0
        self.due = 1
        self.spent = Spent(self.window)
        self._released = protocol.nothing

    def step(self, period: int) -> Step:
        """Predict; if a look is due, correct the prediction and choose the next time."""
        if self.tracker.started:
            self.tracker.predict()
        parts = self._offered(period)
        if period < self.due or parts < 1:
            return self._release(published=False)
        self.spent.add(period, parts)
        reading = yield from self.asked(parts)
        if reading is None:
            return self._release(published=False)
        self.tracker.correct(reading.values, reading.variance)
        moved = float(np.mean(np.abs(self.tracker.mean - self._released)))
        self._released = self.tracker.mean
        trouble = self.controller.feed(period, moved)
        self.wait = max(1.0, self.wait + self.pace * (1 - trouble**2 / self.error(parts, reading)))
        self.due = period + int(self.wait)
        return self._release(published=True)

    def _offered(self, period: int) -> int:
        rest = self.whole - self.spent.before(period)
        portion = min(self.scale * log(self.wait + 1), self.most_of_rest)
        return min(int(portion * rest), self.most)

    def _release(self, *, published: bool) -> Release:
        if not self.tracker.started:
            return self.repeat()
        return Release(self.period, self.tracker.mean, self.tracker.variance, published=published)


class LBRescueDP(_RescueDP, Budget):
    """RescueDP by budget: a look has a share of the budget that the window has left."""

    name: ClassVar[str] = "lb-rescuedp"
    summary: ClassVar[str] = "looks when a controller says so, and filters, dividing budget"


class LPRescueDP(_RescueDP, Population):
    """RescueDP by population: a look has a share of the devices that are left."""

    name: ClassVar[str] = "lp-rescuedp"
    summary: ClassVar[str] = "looks when a controller says so, and filters, dividing devices"
