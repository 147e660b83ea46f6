"""RescueDP: looks timed by a controller, with more budget after longer waits, and a filter.

Wang, Zhang, Lu, Wang, Qin, Ren, "RescueDP: Real-Time Spatio-Temporal Crowd-Sourced Data Publishing
with Differential Privacy" (2016), in the form of LDP-IDS (2022, Alg. 5), corrected: an error is
compared with a standard deviation, not with a variance. The grouping of small regions is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from typing import Final

import numpy as np

from sfumato.streams.window.curators import POSITIVE, SHARE, Step, WindowCurator
from sfumato.streams.window.tracking import STEP, Controller, Tracker

__all__ = ["RescueDP"]

MEMORY: Final = 3
"""The number of errors that the controller remembers."""


@dataclass(eq=False, repr=False, kw_only=True)
class RescueDP(WindowCurator):
    """A curator that looks, corrects its filter, and decides when to look next.

    Parameters
    ----------
    scale
        The speed at which a look's share of the rest grows with the waiting time (phi).
    most_of_rest
        The largest share of the rest for one look (p_max).
    most_of_whole
        The largest share of the whole for one look.
    pace
        The speed at which the interval changes (theta).
    step
        The standard deviation of a curve's step, as a share of its range.

    """

    scale: float = field(default=0.2, metadata=POSITIVE)
    most_of_rest: float = field(default=0.6, metadata=SHARE)
    most_of_whole: float = field(default=0.2, metadata=SHARE)
    pace: float = field(default=10.0, metadata=POSITIVE)
    step: float = field(default=STEP, metadata=POSITIVE)

    def __post_init__(self) -> None:
        """Start with a look that is due at once."""
        super().__post_init__()
        self.tracker = Tracker.of(self.protocol, self.step)
        self.controller = Controller(self.pace, MEMORY)
        self.most = self.division.parts(self.most_of_whole, "a look")

    def release(self, period: int) -> Step:
        """Predict, and correct if a look is due and affordable."""
        self.tracker.predict()
        parts = self._offered(period) if period >= self.controller.due else 0
        reading = (yield from self.asked(parts)) if parts else None
        if reading is not None:
            before = self.tracker.mean
            self.tracker.correct(reading)
            moved = float(np.mean(np.abs(self.tracker.mean - before)))
            # The wait is shorter the more the curve has moved compared with the noise.
            trouble = self.controller.trouble(moved)
            noise = self.division.error(parts, reading)
            self.controller.schedule(period, 1 - trouble**2 / noise)
        return self.estimate(
            self.tracker.mean, self.tracker.variance, published=reading is not None
        )

    def _offered(self, period: int) -> int:
        """Return the parts for a look: a share of the rest that grows with the waiting time."""
        share = min(self.scale * log(self.controller.wait + 1), self.most_of_rest)
        return min(int(share * self.division.left(period)), self.most)
