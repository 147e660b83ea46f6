"""How many uploads a server joins: the more come, the less each of them pays for the round."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Final

__all__ = ["Rounds"]

STEPS: Final = 60
"""The number of steps in which the mean of a round is found; each at least halves the error."""


@dataclass(frozen=True)
class Rounds:
    """The rounds in which one process judges and commits uploads.

    A round begins with the first upload that waits, gathers others for a while, and is worked on;
    what comes meanwhile is in the next one. All times are in seconds.

    Parameters
    ----------
    fixed
        The processor time of a round, whatever is in it.
    upload
        The processor time of each upload, all of it.
    window
        For how long a round gathers uploads, by a clock on the wall.
    work
        For how long it works on each upload, while others wait for the next round.
    most
        The largest number of uploads that a round takes.
    wall
        For how long it works whatever is in it, while others wait for the next round.

    """

    fixed: float
    upload: float
    window: float
    work: float
    most: float = 256.0
    wall: float = 0.0

    @property
    def limit(self) -> float:
        """The rate of uploads that takes all of one core, in full rounds."""
        return 1.0 / (self.upload + self.fixed / self.most)

    def size(self, rate: float) -> float:
        """Return the mean number of uploads in a round, at a rate of uploads per second.

        It is what comes while a round gathers and the one before it is worked on and, unless
        another has come by then, the upload that begins the round. Where that would take more than
        a core, rounds grow until it does not.
        """
        if rate <= 0:
            return 1.0
        low, high = 1.0, self.most
        for _ in range(STEPS):
            middle = (low + high) / 2
            if middle < self._came(rate, middle):
                low = middle
            else:
                high = middle
        return low

    def _came(self, rate: float, size: float) -> float:
        """Return how many uploads come for the round after one of some size."""
        worked = rate * (self.wall + size * self.work)
        gathered = rate * self.window + worked + exp(-worked)
        return max(gathered, rate * (self.fixed + size * self.upload))

    def busy(self, rate: float) -> float:
        """Return the share of a core that uploads at a rate take, which is above 1 if too many."""
        return rate * (self.upload + self.fixed / self.size(rate))
