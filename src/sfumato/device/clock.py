"""The clock of a device, and how many periods are certainly over."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sfumato.device.journal import Joined, Journal

if TYPE_CHECKING:  # an app that has joined no task does not import any stream
    from sfumato.device.part import Part

__all__ = ["DeviceClock"]

BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
"""A file with an id that changes at each start of the machine; only Linux has it."""


class DeviceClock:
    """A clock that never goes back, and that does not follow jumps of the wall clock.

    Within a run it follows the monotonic clock. At a restart it may follow the wall clock, but
    never backwards.

    Parameters
    ----------
    journal
        The device's journal, which has the time of the last flush.
    wall
        A function that returns the seconds since 1970. Any clock other than ``time.time`` is
        trusted.

    """

    def __init__(self, journal: Journal, wall: Callable[[], float]) -> None:
        self._journal, self._wall = journal, wall
        self._offset = max(wall(), journal.moment("now")) - time.monotonic()
        self._boot = _boot() if wall is time.time else ""
        self._slept = self._trusted_sleep()
        self._opened = self.now
        self._awake: set[bytes] = set()

    def _trusted_sleep(self) -> float:
        """Return how long the journal was closed, as far as the monotonic clock tells."""
        steady = self._journal.moment("steady")
        boot = (self._journal.fact("steady") or b"").partition(b" ")[0]
        same = bool(boot) and boot == self._boot.encode()
        return max(0.0, time.monotonic() - steady) if same else 0.0

    @property
    def now(self) -> float:
        """The time in seconds since 1970, which never goes back."""
        return self._offset + time.monotonic() if self._wall is time.time else self._wall()

    def mark(self) -> None:
        """Record the time for the next restart; only flush does this."""
        with self._journal.transaction():
            self._journal.set_fact("now", repr(self.now).encode())
            if self._boot:
                self._journal.set_fact("steady", f"{self._boot} {time.monotonic()!r}".encode())

    def wake(self, task_id: bytes) -> None:
        """Count every further period of a task, as this process has reached the present one."""
        self._awake.add(task_id)

    def surely_over(self, joined: Joined, part: Part, passed: int) -> int:
        """Return how many of the periods that have passed are certainly over.

        A restart may trust the wall clock for one period only; further periods must be confirmed by
        the monotonic clock. The time since this process opened the journal is known, even if the
        app has observed nothing.
        """
        if joined.task_id in self._awake:
            return passed
        ended = part.ended(self._opened) - joined.state["period"]
        asleep = max(0, min(ended, passed))
        counted = int(self._slept // part.published.spec["period_seconds"])
        return int(min(asleep, max(1, counted)) + passed - asleep)


def _boot() -> str:
    """Return an id of the machine's current start; empty if there is none."""
    try:
        return BOOT.read_text().strip()
    except OSError:
        return ""
