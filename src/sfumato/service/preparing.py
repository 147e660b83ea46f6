"""Preparing: what questions need is read as soon as a period has closed, before anybody asks."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final

from sfumato.service.running_task import RunningTask
from sfumato.web.logs import log

__all__ = ["Preparation"]

SHARE: Final = 0.1
"""The largest share of a task's time that is spent on preparing its answers."""


class Preparation:
    """Prepares the answers of tasks whose periods close, in a thread of its own.

    Only tasks that were asked something since their last period closed are prepared: what nobody
    asks for costs nothing.

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

    def _prepare(self, running: RunningTask) -> None:
        began = time.monotonic()
        try:
            running.prepare()
        except Exception as error:  # noqa: BLE001 -- whoever asks is told
            log().error("answers", task=running.name, kind=type(error).__name__)
        finally:
            with self._lock:
                self._begun.discard(running.name)
                self._took[running.name] = time.monotonic() - began
