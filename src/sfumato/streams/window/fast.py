"""FAST: a few looks in a window, at times that a controller chooses, and a filter in between.

Fan, Xiong, "An Adaptive Approach to Real-Time Aggregate Monitoring with Differential Privacy"
(2014), over windows instead of a horizon: a look that is due waits while the last w - 1 periods
have had their number of looks.
"""

from __future__ import annotations

from math import ceil, exp
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from sfumato.streams.window.divisions import Budget, Population, between
from sfumato.streams.window.readings import Reading
from sfumato.streams.window.tracking import STEP, Floats, Paced

if TYPE_CHECKING:
    from sfumato.streams.window.protocol import Window

__all__ = ["LBFAST", "LPFAST"]

MEMORY: Final = 5
"""How many errors the controller remembers; as many first periods are all looked at."""
LARGEST: Final = 50.0
"""Beyond this exponent the interval is at its least, whatever the error."""


class _FAST(Paced):
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
        super().__init__(protocol, pace, step, MEMORY)
        self.most = max(1, ceil(between("looks", looks, 0, 1) * self.window))
        self.each = self.parts(1 / self.most, "a look")
        self.target = between("target", target, 0)
        self.smallest = self.reach / self.devices

    def offered(self, period: int) -> int:
        """Return an equal part, as long as the window has a look left."""
        return self.each if self.spent.times(period) < self.most else 0

    def waiting(self, period: int, reading: Reading, before: Floats, parts: int) -> float:
        """Return a shorter time the more the relative error exceeds its target."""
        del reading, parts
        size = np.maximum(np.abs(self.tracker.mean), self.smallest)
        error = float(np.mean(np.abs(self.tracker.mean - before) / size))
        trouble = self.controller.feed(period, error)
        if period < MEMORY:
            return self.wait
        beyond = min(LARGEST, (trouble - self.target) / self.target)
        return self.wait + self.pace * (1 - exp(beyond))


class LBFAST(_FAST, Budget):
    """FAST by budget: a look has an equal part of the budget, from everybody."""

    name: ClassVar[str] = "lb-fast"
    summary: ClassVar[str] = "few looks, a controller and a filter, dividing budget"


class LPFAST(_FAST, Population):
    """FAST by population: a look has an equal part of the devices."""

    name: ClassVar[str] = "lp-fast"
    summary: ClassVar[str] = "few looks, a controller and a filter, dividing devices"
