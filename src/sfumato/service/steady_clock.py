"""A clock for closing periods, which a wall clock that jumps cannot hurry.

What closes is closed for ever. So periods close by the wall clock only as far as a monotonic clock,
which nobody can set, agrees that so much time has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

__all__ = ["OpenTime", "SteadyClock", "monotonic"]

CATCH_UP: Final = 0.1
"""By how much faster than time itself a clock goes that has fallen behind the wall clock."""
BEHIND: Final = 60.0
"""The number of seconds after which a wall clock that was set back is believed."""
LONGEST_GAP: Final = 5.0
"""The longest time, in seconds, between two looks at the clock of a process that runs."""


def monotonic() -> float:
    """Return seconds that nobody can set, with those in which the machine slept if possible."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class SteadyClock:
    """A wall clock that goes at most a tenth faster than a monotonic one.

    It starts with the wall clock. If that jumps forward, this one follows it slowly; if it jumps
    back, this one is never ahead of it.

    Parameters
    ----------
    wall
        A function that returns seconds since 1970.
    steady
        A function that returns seconds that nobody can set.

    Examples
    --------
    >>> now = {"wall": 1000.0, "steady": 0.0}
    >>> clock = SteadyClock(lambda: now["wall"], lambda: now["steady"])
    >>> now.update(wall=37_002.0, steady=2.0)  # two seconds later, ten hours ahead
    >>> clock()
    1002.2

    """

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = monotonic
    ) -> None:
        self._wall, self._steady = wall, steady
        self._last = steady()
        self._time = wall()
        self._behind_since: float | None = None

    def __call__(self) -> float:
        """Return the time in seconds since 1970."""
        wall, now = self._wall(), self._steady()
        passed, self._last = now - self._last, now
        lead = wall - (self._time + passed)
        if lead >= 0:
            self._behind_since = None
            self._time += passed + min(lead, CATCH_UP * passed)
            return self._time
        self._time += passed
        if self._behind_since is None:
            self._behind_since = now
        if now - self._behind_since >= BEHIND:
            self._time = wall
        return wall


class OpenTime:
    """For how long reports could be uploaded without a break.

    Parameters
    ----------
    steady
        A function that returns seconds that nobody can set.

    Examples
    --------
    >>> now = [0.0]
    >>> open_time = OpenTime(lambda: now[0])
    >>> now[0] = 4.0
    >>> open_time.look()
    4.0
    >>> open_time.interrupted()
    >>> open_time.look()
    0.0

    """

    def __init__(self, steady: Callable[[], float] = monotonic) -> None:
        self._steady = steady
        self._since = self._last = steady()

    def look(self) -> float:
        """Return the number of seconds; a process that was stopped meanwhile begins anew."""
        now = self._steady()
        if now - self._last > LONGEST_GAP:
            self._since = now
        self._last = now
        return now - self._since

    def interrupted(self) -> None:
        """Begin anew, because something could not be written."""
        self._since = self._steady()
