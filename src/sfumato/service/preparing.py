"""Preparing: what questions need is read as soon as a period has closed, before anybody asks.

After a start it is what the pages of tasks open with, as nothing is known of what people ask for.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final

from sfumato.service.rereading import opened_by
from sfumato.service.running_task import RunningTask
from sfumato.web.logs import log

__all__ = ["Preparation"]

SHARE: Final = 0.1
"""The largest share of a task's time that is spent on preparing its answers."""

FIRST: Final = 10.0
"""The number of seconds after a start in which preparing a task may begin before it is asked."""


class Preparation:
    """Prepares the answers of tasks whose periods close, in a thread of its own.

    Only tasks that were asked something since their last period closed are prepared, and after a
    start as many as there is time for: what nobody asks for costs next to nothing.

    Examples
    --------
    >>> preparation = Preparation()
    >>> preparation.is_idle
    True
    >>> preparation.stop()

    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "preparing")
        self._lock = Lock()
        self._begun: set[str] = set()
        self._took: dict[str, float] = {}
        """How long it took to prepare each task, in seconds."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being prepared, or about to be."""
        return not self._begun

    def stop(self) -> None:
        """Begin nothing new."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def begin(self, running: RunningTask) -> None:
        """Begin to prepare a task's answers, unless that would take too much of its time."""
        most = SHARE * running.published.spec["period_seconds"]
        with self._lock:
            if running.name in self._begun or self._took.get(running.name, 0.0) > most:
                return
            self._begun.add(running.name)
        self._pool.submit(self._prepare, running)

    def begin_all(self, tasks: Iterable[RunningTask]) -> None:
        """Begin to prepare what the pages of tasks open with, one after the other."""
        end = time.monotonic() + FIRST
        for running in tasks:
            if running.closed and running.protocol.decodes:
                with self._lock:
                    self._begun.add(running.name)
                self._pool.submit(self._prepare_unasked, running, end)

    def _prepare_unasked(self, running: RunningTask, end: float) -> None:
        if time.monotonic() < end:
            self._prepare(running, opened_by(running))
        else:
            with self._lock:
                self._begun.discard(running.name)

    def _prepare(self, running: RunningTask, unasked: Iterable[str] = ()) -> None:
        began = time.monotonic()
        try:
            for decoder in unasked:
                running.history(decoder)
            running.prepare()
        except Exception as error:  # noqa: BLE001 -- whoever asks is told
            log().error("answers", task=running.name, kind=type(error).__name__)
        finally:
            with self._lock:
                self._begun.discard(running.name)
                self._took[running.name] = time.monotonic() - began
