"""What time it is for a device, and how many periods are surely over."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sfumato.device.journal import Joined, Journal

if TYPE_CHECKING:  # an app that has not joined a task yet does not pay for any stream
    from sfumato.device.part import Part

__all__ = ["DeviceClock"]

BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
"""Another one after each start of the machine; only Linux has it."""


class DeviceClock:
    """A clock that never goes back, and that a jump of the wall clock does not hurry.

    Within a run time is monotonic. A restart may trust the wall clock, but not backwards.

    Parameters
    ----------
    journal
        The device's journal, which keeps the time of the last flush.
    wall
        Returns the seconds since 1970. A clock other than ``time.time`` is believed as it is.

    """

    def __init__(self, journal: Journal, wall: Callable[[], float]) -> None:
        self._journal, self._wall = journal, wall
        self._offset = max(wall(), journal.moment("now")) - time.monotonic()
        self._boot = _boot() if wall is time.time else ""
        self._slept = self._trusted_sleep()
        self._opened = self.now
        self._awake: set[bytes] = set()

    def _trusted_sleep(self) -> float:
        """Return for how long nobody had the journal, as far as no wall clock is needed to know."""
        steady = self._journal.moment("steady")
        boot = (self._journal.fact("steady") or b"").partition(b" ")[0]
        same = bool(boot) and boot == self._boot.encode()
        return max(0.0, time.monotonic() - steady) if same else 0.0

    @property
    def now(self) -> float:
        """The seconds since 1970, never going back."""
        return self._offset + time.monotonic() if self._wall is time.time else self._wall()

    def mark(self) -> None:
        """Write down what time it is; flush alone does, as a restart reckons with it."""
        with self._journal.transaction():
            self._journal.set_fact("now", repr(self.now).encode())
            if self._boot:
                self._journal.set_fact("steady", f"{self._boot} {time.monotonic()!r}".encode())

    def wake(self, task_id: bytes) -> None:
        """Count every further period of a task, as this process has lived up to the present one."""
        self._awake.add(task_id)

    def surely_over(self, joined: Joined, part: Part, passed: int) -> int:
        """Return how many of the periods that have passed are surely over.

        A restart may trust the wall clock for one period; for more only without it. What has passed
        since this process has the journal is known, whether or not the app has observed anything.
        """
        if joined.task_id in self._awake:
            return passed
        ended = part.ended(self._opened) - joined.state["period"]
        asleep = max(0, min(ended, passed))
        counted = int(self._slept // part.published.spec["period_seconds"])
        return int(min(asleep, max(1, counted)) + passed - asleep)


def _boot() -> str:
    """Return what tells one start of the machine from another; empty where nothing does."""
    try:
        return BOOT.read_text().strip()
    except OSError:
        return ""
