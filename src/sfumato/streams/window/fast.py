"""FAST: a few looks in a window, timed by a controller, and a filter in between.

Fan, Xiong, "An Adaptive Approach to Real-Time Aggregate Monitoring with Differential Privacy"
(2014), over windows instead of a horizon: a due look waits while the last w - 1 periods have used
up all looks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, exp
from typing import ClassVar, Final

import numpy as np

from sfumato.streams.window.curators import POSITIVE, SHARE, Step
from sfumato.streams.window.readings import Reading
from sfumato.streams.window.tracking import TrackingCurator

__all__ = ["FAST"]

LARGEST: Final = 50.0
"""Above this exponent the interval has its smallest value for any error."""


@dataclass(eq=False, repr=False, kw_only=True)
class FAST(TrackingCurator):
    """A curator with some looks in each window, which it takes when its filter errs.

    Parameters
    ----------
    looks
        The largest share of a window's periods that have a look.
    target
        The relative error at which the interval stays the same (xi).

    """

    memory: ClassVar[int] = 5
    """The number of remembered errors, and of first periods that all have a look."""
    looks: float = field(default=0.15, metadata=SHARE)
    target: float = field(default=0.1, metadata=POSITIVE)

    def __post_init__(self) -> None:
        """Divide the window into looks."""
        super().__post_init__()
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
        self.controller.schedule(
            period, 0 if period < self.memory else 1 - exp(min(LARGEST, excess))
        )
