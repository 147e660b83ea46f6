"""Closing: the periods of all tasks that are due."""

from __future__ import annotations

import time
from typing import Final

from sfumato.service.running_task import RunningTask
from sfumato.service.second_door import SecondDoor
from sfumato.service.task_desk import TaskDesk
from sfumato.store import Release

__all__ = ["PATIENCE", "close_due"]

PATIENCE: Final = 0.5
"""The longest time, in seconds, for which periods are closed before reports have their turn."""


def close_due(
    desk: TaskDesk, door: SecondDoor, patience: float = PATIENCE
) -> list[tuple[RunningTask, Release]]:
    """Close the periods that are due; only the writing thread may call this.

    After ``patience`` seconds the rest is left for the next call, so that reports do not wait.
    """
    closed = []
    now, end = desk.clock(), time.monotonic() + patience
    for running in list(desk.running_tasks.values()):
        desk.renew_due(running, now)
        while not running.is_over and running.next_at <= now:
            release = running.close_next()
            if release is not None:
                closed.append((running, release))
                door.forget(running.task_id, release.period)
            if time.monotonic() > end:
                return closed
    return closed
