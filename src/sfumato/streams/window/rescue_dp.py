"""RescueDP: looks when a controller says so, spends more the longer it has waited, and filters.

Wang, Zhang, Lu, Wang, Qin, Ren, "RescueDP: Real-Time Spatio-Temporal Crowd-Sourced Data Publishing
with Differential Privacy" (2016), in the form of LDP-IDS (2022, Alg. 5), corrected: an error is
compared with a deviation, not with a variance. The grouping of small regions is left out.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from sfumato.streams.window.divisions import Budget, Population, between
from sfumato.streams.window.readings import Reading
from sfumato.streams.window.tracking import STEP, Floats, Paced

if TYPE_CHECKING:
    from sfumato.streams.window.protocol import Window

__all__ = ["LBRescueDP", "LPRescueDP"]


MEMORY: Final = 3
"""How many errors the controller remembers."""


class _RescueDP(Paced):
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
        super().__init__(protocol, pace, step, MEMORY)
        self.scale = between("scale", scale, 0)
        self.most_of_rest = between("most_of_rest", most_of_rest, 0, 1)
        self.most = self.parts(between("most_of_whole", most_of_whole, 0, 1), "a look")
        self._released = protocol.nothing

    def offered(self, period: int) -> int:
        """Return a share of the rest that grows with the time waited."""
        rest = self.whole - self.spent.before(period)
        portion = min(self.scale * log(self.wait + 1), self.most_of_rest)
        return min(int(portion * rest), self.most)

    def waiting(self, period: int, reading: Reading, before: Floats, parts: int) -> float:
        """Return a shorter time the more the curve has moved, compared with the noise."""
        del before
        moved = float(np.mean(np.abs(self.tracker.mean - self._released)))
        self._released = self.tracker.mean
        trouble = self.controller.feed(period, moved)
        return self.wait + self.pace * (1 - trouble**2 / self.error(parts, reading))


class LBRescueDP(_RescueDP, Budget):
    """RescueDP by budget: a look has a share of the budget that the window has left."""

    name: ClassVar[str] = "lb-rescuedp"
    summary: ClassVar[str] = "looks when a controller says so, and filters, dividing budget"


class LPRescueDP(_RescueDP, Population):
    """RescueDP by population: a look has a share of the devices that are left."""

    name: ClassVar[str] = "lp-rescuedp"
    summary: ClassVar[str] = "looks when a controller says so, and filters, dividing devices"
