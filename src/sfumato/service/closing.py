"""Closing: the periods of all tasks that are due, of which no task can stop another."""

from __future__ import annotations

import math
import time
from threading import Lock
from typing import Final

from sfumato.service.running_task import RunningTask
from sfumato.service.second_door import SecondDoor
from sfumato.service.task_desk import TaskDesk
from sfumato.store import Release, Store, StoredTask
from sfumato.store.store_addresses import DatabaseAway

__all__ = ["PATIENCE", "Closed", "Closer"]

PATIENCE: Final = 0.5
"""The longest time, in seconds, for which periods are closed before others have their turn."""
LONGEST_PAUSE: Final = 60.0
"""The longest pause, in seconds, before a task that could not close is tried again."""
OTHERS: Final = 60.0
"""For how many seconds it is left to others to erase what a task has lost."""

Closed = list[tuple[RunningTask, Release]]


class Closer:
    """Closes the periods of all tasks, or takes over what another process has closed.

    Any number of processes may have one store; whoever takes its closing lock closes. A task that
    cannot close is left for later, and the others go on.

    Parameters
    ----------
    desk
        The tasks.
    door
        The second door, which forgets the ids of closed periods.
    store
        The store.

    """

    def __init__(self, desk: TaskDesk, door: SecondDoor, store: Store) -> None:
        self._desk = desk
        self._door = door
        self._store = store
        self._lock = Lock()
        self._versions: dict[bytes, int] = {}
        self._packed: set[bytes] = set()
        """The tasks without contents of earlier periods that are still to be packed."""
        self._erased: dict[bytes, int] = {}
        """The last period of each task whose contents have been erased."""
        self._failures: dict[bytes, tuple[int, float]] = {}
        """How often each task could not close, and when it is tried again."""
        self._next_turn: bytes | None = None
        """The task that closes first the next time, because there was no time left for it."""
        self._looks_at = 0.0
        """When it is looked for what tasks have lost and nobody has erased, as after a kill."""

    def close_due(self, now: float, open_for: float, patience: float) -> Closed:
        """Close the periods that are due at a time.

        Parameters
        ----------
        now
            The time, in seconds since 1970.
        open_for
            For how many seconds reports could be uploaded without a break; a task needs its grace.
        patience
            After how many seconds the rest is left for the next call.

        """
        with self._lock:
            return self._close_due(now, open_for, time.monotonic() + patience)

    def _close_due(self, now: float, open_for: float, end: float) -> Closed:
        self._desk.make_room()
        closed = self.follow()
        with self._store.closing() as ours:
            if not ours:
                return closed
            closed += self.follow()
            for count, running in enumerate(self._in_turn()):
                if count and time.monotonic() > end:
                    self._next_turn = running.task_id
                    break
                if not self._pauses(running.task_id):
                    closed += self._tried(running, now, open_for, end)
            self._erase_left(end)
        return closed

    def _in_turn(self) -> list[RunningTask]:
        """Return all tasks, first those that have waited since the last time."""
        running_tasks = list(self._desk.running_tasks.values())
        names = [running.task_id for running in running_tasks]
        first = names.index(self._next_turn) if self._next_turn in names else 0
        self._next_turn = None
        return running_tasks[first:] + running_tasks[:first]

    def _pauses(self, task_id: bytes) -> bool:
        """Return whether it is too early to try again what has failed."""
        return self._failures.get(task_id, (0, 0.0))[1] > time.monotonic()

    def follow(self) -> Closed:
        """Take over what other processes have changed; return what they have released."""
        versions = self.drop_deleted()
        changed = {
            task_id for task_id, number in versions.items() if self._is_news(task_id, number)
        }
        for stored in self._store.tasks() if changed else []:
            if stored.task_id in changed and not self._pauses(stored.task_id):
                self._take_over(stored, versions[stored.task_id])
        closed: Closed = []
        while self._desk.news:
            closed.append(self._desk.news.pop(0))
        for running, _ in closed:
            self._forget(running)
        return closed

    def drop_deleted(self) -> dict[bytes, int]:
        """Drop the tasks that another process has deleted; return the versions of all others.

        Any thread may call this, also while periods close.
        """
        known = list(self._desk.running_tasks)  # what is published from here on is not gone
        versions = self._store.versions()
        for task_id in known:
            if task_id not in versions:
                self._desk.running_tasks.pop(task_id, None)
                self.forget(task_id)
        return versions

    def _take_over(self, stored: StoredTask, version: int) -> None:
        """Take over what the store has of a task; if it makes no sense, the others go on."""
        try:
            self._forget(self._desk.take_over(stored))
            if stored.archived or stored.last_period is not None:
                self.look_for_left()
        except DatabaseAway:
            raise
        except Exception as error:  # noqa: BLE001 -- such as a key that another secret has wrapped
            self._failed(stored.task_id, stored.closed + 1, error)
        else:
            self._versions[stored.task_id] = version

    def forget(self, task_id: bytes) -> None:
        """Drop from memory all that belongs to a deleted task."""
        self.look_for_left()
        self._door.forget(task_id)
        self._packed.discard(task_id)
        for known in (self._versions, self._erased, self._failures):
            known.pop(task_id, None)

    def _forget(self, running: RunningTask) -> None:
        """Drop from memory what belongs to the periods of a task that take no more reports."""
        self._door.forget_closed(running)

    def _is_news(self, task_id: bytes, number: int) -> bool:
        return task_id not in self._desk.running_tasks or self._versions.get(task_id) != number

    def _tried(self, running: RunningTask, now: float, open_for: float, end: float) -> Closed:
        """Close what is due of a task; if it fails, say so and leave it for later."""
        closed: Closed = []
        try:
            self._desk.renew_due(running, now)
            self._pack(running, end)
            while not running.is_over and running.next_at <= now and open_for >= running.grace:
                release = running.close_next()
                if release is not None:
                    closed.append((running, release))
                self._forget(running)
                if time.monotonic() > end:
                    break
            closed += [(running, release) for release in running.release_counted()]
            self._erase(running, now)
        except Exception as error:  # noqa: BLE001 -- the other tasks go on
            if running.task_id in self._desk.running_tasks:  # it was not deleted meanwhile
                self._failed(running.task_id, running.driver.period, error)
        else:
            self._failures.pop(running.task_id, None)
        return closed

    def _pack(self, running: RunningTask, end: float) -> None:
        """Pack the periods that were closed by an earlier version, or before a kill."""
        if running.task_id in self._packed:
            return
        for period in self._store.unpacked(running.task_id):
            running.driver.pack(period, keeps=running.keeps_contents)
            if time.monotonic() > end:
                return
        self._packed.add(running.task_id)

    def _erase(self, running: RunningTask, now: float) -> None:
        """Erase contents that the task keeps no longer."""
        until = running.erased_at(now)
        if until > self._erased.get(running.task_id, 0):
            self._store.erase_contents(running.task_id, until)
            self._erased[running.task_id] = until

    def look_for_left(self) -> None:
        """Look some time from now for what a task has lost, if nobody has erased it by then."""
        self._looks_at = min(self._looks_at, time.monotonic() + OTHERS)

    def _erase_left(self, end: float) -> None:
        """Erase what tasks have lost and nobody has erased; the rest is left for the next time."""
        if time.monotonic() < self._looks_at:
            return
        self._looks_at = math.inf
        try:
            for task_id in self._store.left():
                if not self._store.erase_left(task_id, end - time.monotonic()):
                    self._looks_at = 0.0
                    break
        except Exception as error:  # noqa: BLE001 -- periods close all the same
            self.look_for_left()
            _log_error("what tasks have lost is not erased yet", error)

    def _failed(self, task_id: bytes, period: int, error: Exception) -> None:
        before, _ = self._failures.get(task_id, (0, 0.0))
        pause = min(math.ldexp(1.0, before - 1), LONGEST_PAUSE) if before else 0.0
        self._failures[task_id] = (min(before + 1, 60), time.monotonic() + pause)
        _log_error("period does not close", error, task=task_id.hex(), period=period)


def _log_error(event: str, error: Exception, **more: object) -> None:
    from sfumato.web.logs import log  # noqa: PLC0415 -- a collector without a network needs none

    log().error(event, **more, kind=type(error).__name__, problem=str(error)[:200])
