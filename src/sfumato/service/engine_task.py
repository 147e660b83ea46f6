"""A running task whose reports an engine opens and counts; the collector only keeps them.

A period ends in two steps. When it closes, its reports go into the log as they were sent, and wait.
Once an engine has acknowledged all rows of the period, what they add up to is released, and the
reports are erased.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from sfumato.arrays import Array, Bools
from sfumato.core.tally import Place, Tallies
from sfumato.service.engine_lag import EngineLag
from sfumato.service.running_task import RunningTask
from sfumato.store import Release, Store, StoredTask
from sfumato.store.key_wrapping import KeyWrapping
from sfumato.streams.judging import Judge
from sfumato.wire.published import Published

__all__ = ["EngineTask", "resumed"]


class _Unread(Judge):
    """Takes every content, and counts none, as an engine does both."""

    def well_formed(self, contents: Array) -> Bools:
        """Return a mask of all contents."""
        return np.ones(len(contents), dtype=bool)

    def valid(self, periods: Array, contents: Array) -> Bools:  # noqa: ARG002 -- unread
        """Return a mask of all contents."""
        return np.ones(len(periods), dtype=bool)

    def count(
        self,
        period: int,  # noqa: ARG002 -- unread
        contents: Array | bytes,  # noqa: ARG002
    ) -> Tallies[Place]:
        """Return no tallies."""
        return Tallies()


class EngineTask(RunningTask):
    """A published task that an engine counts, and its state."""

    opens: ClassVar[bool] = False

    def __init__(
        self,
        stored: StoredTask,
        store: Store,
        base: str = "",
        wrapping: KeyWrapping | None = None,
    ) -> None:
        super().__init__(stored, store, base, wrapping)
        self.judge = _Unread(self.protocol, self.layout)
        self._look()

    def _look(self) -> None:
        """Read how far the task is sealed and counted."""
        self._sealed = max(self._store.packed(self.task_id), self.closed)
        self.progress = self._store.progress(self.task_id)

    @property
    def sealed(self) -> int:
        """The last period that takes no more reports."""
        return self._sealed

    @property
    def lag(self) -> EngineLag | None:
        """The periods that have closed and are not counted yet."""
        first, last = self.closed + 1, self._sealed
        return EngineLag(first, last, self.closes_at(first)) if first <= last else None

    @property
    def next_at(self) -> float:
        """The time when the next period closes."""
        following = self._sealed + 1
        return self.closes_at(following) if following <= self.published.periods else math.inf

    def last_ended(self, now: float) -> int:
        """Return the last period that has ended at a time, or has closed."""
        return max(super().last_ended(now), self._sealed)

    def erased_at(self, now: float) -> int:  # noqa: ARG002 -- whenever it is
        """Return the last period whose reports are kept no longer: those that were counted."""
        return self.closed

    def participation(self) -> dict[int, int]:
        """Return the number of reports of each period: of those that count, once they are."""
        waiting = self._store.uncounted(self.task_id)
        open_ = {period: n for period, n in waiting.items() if period > self.closed}
        return self._store.participation(self.task_id) | open_

    def close_next(self) -> Release | None:
        """Close the next period: let its reports wait in the log, each of them once."""
        with self._moving:
            period = self._sealed + 1
            self._store.end_round(self.task_id, period, 0)
            self._store.settle(self.task_id, period, self.judge.count)
            self._store.pack(self.task_id, period, with_ids=self.layout.overhead > 0)
            self._sealed = period
            return None

    def release_counted(self) -> list[Release]:
        """Return what the periods release that an engine has counted since."""
        released: list[Release] = []
        with self._moving:
            while self.lag is not None and self._store.is_counted(self.task_id, self.closed + 1):
                self._refuse_few(self.closed + 1)
                release = self.driver.release_counted()
                self.releases.append(release)
                self._drop_keys()
                released.append(release)
        return released

    def _refuse_few(self, period: int) -> None:
        """Count nothing of a period that has fewer shuffled reports than the promise needs."""
        counted = sum(each.n for each in self._store.tallies(self.task_id, period).values())
        if 0 < counted < self.fewest_counted:
            self._store.drop_tallies(self.task_id, period)

    def follow(self) -> list[Release]:
        """Take over what other processes have closed or counted; return what was released."""
        with self._moving:
            new = super().follow()
            self._look()
            return new


def resumed(
    stored: StoredTask, store: Store, base: str = "", wrapping: KeyWrapping | None = None
) -> RunningTask:
    """Return a stored task as a running one, by who counts it.

    Parameters
    ----------
    stored, store, base, wrapping
        As for :class:`~sfumato.service.running_task.RunningTask`.

    """
    by_engine = Published.parse(stored.published).spec.get("counts") == "engine"
    return (EngineTask if by_engine else RunningTask)(stored, store, base, wrapping)
