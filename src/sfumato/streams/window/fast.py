"""FAST: a few looks in a window, at times that a controller chooses, and a filter in between.

Fan, Xiong, "An Adaptive Approach to Real-Time Aggregate Monitoring with Differential Privacy"
(2014), over windows instead of a horizon: a look that is due waits while the last w - 1 periods
have had their number of looks.
"""

from __future__ import annotations

from math import ceil, exp
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from sfumato.streams.window.curators import Release, Step
from sfumato.streams.window.divisions import Budget, Divided, Population, Spent, between
from sfumato.streams.window.tracking import STEP, Controller, Tracker

if TYPE_CHECKING:
    from sfumato.streams.window.protocol import Window

__all__ = ["LBFAST", "LPFAST"]

MEMORY: Final = 5
"""How many errors the controller remembers; as many first periods are all looked at."""
LARGEST: Final = 50.0
"""Beyond this exponent the interval is at its least, whatever the error."""


class _FAST(Divided):
    """Look, correct the filter, and decide when to look next.

    Parameters
    ----------
    protocol
        The public design.
    looks
        The share of a window's periods that are looked at, at most.
    target
        The relative error that leaves the interval as it is (xi).
    pace
        How fast the interval changes (theta).
    step
        The deviation of a curve's step, as a share of its range.

    """

    def __init__(
        self,
        protocol: Window,
        *,
        looks: float = 0.15,
        target: float = 0.1,
        pace: float = 5.0,
        step: float = STEP,
    ) -> None:
        super().__init__(protocol)
        self.most = max(1, ceil(between("looks", looks, 0, 1) * self.window))
        self.each = self.parts(1 / self.most, "a look")
        self.target = between("target", target, 0)
        self.pace = between("pace", pace, 0)
        low, high = protocol.interval or (0.0, 1.0)
        self.tracker = Tracker((between("step", step, 0) * (high - low)) ** 2)
        self.smallest = (high - low) / self.devices
        self.controller = Controller(0.9, 0.1, 0.0, memory=MEMORY)
        self.wait = 1.0
        self.due = 1
        self.spent = Spent(self.window)

    def step(self, period: int) -> Step:
        """Predict; if a look is due and there is one left, correct and choose the next time."""
        if self.tracker.started:
            self.tracker.predict()
        if period < self.due or self.spent.times(period) >= self.most:
            return self._release(published=False)
        self.spent.add(period, self.each)
        reading = yield from self.asked(self.each)
        if reading is None:
            return self._release(published=False)
        before = self.tracker.mean if self.tracker.started else reading.values
        self.tracker.correct(reading.values, reading.variance)
        size = np.maximum(np.abs(self.tracker.mean), self.smallest)
        error = float(np.mean(np.abs(self.tracker.mean - before) / size))
        trouble = self.controller.feed(period, error)
        if period >= MEMORY:
            beyond = min(LARGEST, (trouble - self.target) / self.target)
            self.wait = max(1.0, self.wait + self.pace * (1 - exp(beyond)))
        self.due = period + int(self.wait)
        return self._release(published=True)

    def _release(self, *, published: bool) -> Release:
        if not self.tracker.started:
            return self.repeat()
        return Release(self.period, self.tracker.mean, self.tracker.variance, published=published)


class LBFAST(_FAST, Budget):
    """FAST by budget: a look has an equal part of the budget, from everybody."""

    name: ClassVar[str] = "lb-fast"
    summary: ClassVar[str] = "few looks, a controller and a filter, dividing budget"


class LPFAST(_FAST, Population):
    """FAST by population: a look has an equal part of the devices."""

    name: ClassVar[str] = "lp-fast"
    summary: ClassVar[str] = "few looks, a controller and a filter, dividing devices"
