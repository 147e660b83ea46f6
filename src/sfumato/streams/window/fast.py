"""FAST: a few looks in a window, timed by a controller, and a filter in between.

Fan, Xiong, "An Adaptive Approach to Real-Time Aggregate Monitoring with Differential Privacy"
(2014), over windows instead of a horizon: a due look waits while the last w - 1 periods have used
up all looks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, exp
from typing import Final

import numpy as np

from sfumato.streams.window.curators import POSITIVE, SHARE, Step, WindowCurator
from sfumato.streams.window.readings import Reading
from sfumato.streams.window.tracking import STEP, Controller, Tracker

__all__ = ["FAST"]

MEMORY: Final = 5
"""The number of errors that the controller remembers, and of first periods that all have a look."""
LARGEST: Final = 50.0
"""Above this exponent the interval has its smallest value for any error."""


@dataclass(eq=False, repr=False, kw_only=True)
class FAST(WindowCurator):
    """A curator that looks, corrects its filter, and decides when to look next.

    Parameters
    ----------
    looks
        The largest share of a window's periods that have a look.
    target
        The relative error at which the interval stays the same (xi).
    pace
        The speed at which the interval changes (theta).
    step
        The standard deviation of a curve's step, as a share of its range.

    """

    looks: float = field(default=0.15, metadata=SHARE)
    target: float = field(default=0.1, metadata=POSITIVE)
    pace: float = field(default=5.0, metadata=POSITIVE)
    step: float = field(default=STEP, metadata=POSITIVE)

    def __post_init__(self) -> None:
        """Divide the window into looks."""
        super().__post_init__()
        self.tracker = Tracker.of(self.protocol, self.step)
        self.controller = Controller(self.pace, MEMORY)
        self.most = max(1, ceil(self.looks * self.window))
        self.each = self.division.parts(1 / self.most, "a look")

    def release(self, period: int) -> Step:
        """Predict, and correct if a look is due and the window has one left."""
        self.tracker.predict()
        due = period >= self.controller.due and self.division.spent.times(period) < self.most
        reading = (yield from self.asked(self.each)) if due else None
        if reading is not None:
            self._correct(period, reading)
        return self.estimate(
            self.tracker.mean, self.tracker.variance, published=reading is not None
        )

    def _correct(self, period: int, reading: Reading) -> None:
        """Correct the filter, and wait for less time the more the error exceeds its target."""
        expected = self.tracker.mean if self.tracker.started else reading.values
        self.tracker.correct(reading)
        size = np.maximum(np.abs(self.tracker.mean), self.protocol.reach / self.protocol.devices)
        error = float(np.mean(np.abs(self.tracker.mean - expected) / size))
        excess = (self.controller.trouble(error) - self.target) / self.target
        self.controller.schedule(period, 0 if period < MEMORY else 1 - exp(min(LARGEST, excess)))
