"""The single thread that writes: all batches since the last commit go into the next one."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Any, Final

from sfumato.errors import SfumatoError
from sfumato.service.collector import Collector, ScreenedBatch
from sfumato.service.metrics import CollectorMetrics

__all__ = ["GROUP", "Busy", "Writer"]

GROUP: Final = 64
"""The largest number of batches in one commit."""

WAITING: Final = 256
"""The largest number of batches that wait for a commit."""


class Busy(SfumatoError):
    """Too many batches are waiting already."""


class Writer:
    """Writes batches in groups, and runs other work between two groups.

    Parameters
    ----------
    collector
        The collector of the batches.
    metrics
        The metrics that count commits.
    waiting
        The largest number of batches that wait.

    """

    def __init__(
        self, collector: Collector, metrics: CollectorMetrics, waiting: int = WAITING
    ) -> None:
        self._collector = collector
        self._metrics = metrics
        self._queue: queue.SimpleQueue[tuple[Any, Future[Any]] | None] = queue.SimpleQueue()
        self._most = waiting
        self._thread = Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        """Start the writing thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write all waiting batches, then end the thread."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    @property
    def waiting(self) -> int:
        """The number of waiting batches."""
        return self._queue.qsize()

    @property
    def is_alive(self) -> bool:
        """Whether the writing thread is running."""
        return self._thread.is_alive()

    def submit(self, entry: ScreenedBatch) -> Future[None]:
        """Queue a batch for the next commit; raise Busy if too many wait."""
        if self.waiting >= self._most:
            raise Busy(f"{self._most} batches wait to be written; try again.")
        future: Future[None] = Future()
        self._queue.put((entry, future))
        return future

    def call(self, work: Callable[[], Any]) -> Future[Any]:
        """Queue a function to run between two commits; return a future of its result."""
        future: Future[Any] = Future()
        self._queue.put((work, future))
        return future

    def _run(self) -> None:
        stopping = False
        while not stopping:
            item = self._queue.get()
            group: list[tuple[ScreenedBatch, Future[Any]]] = []
            while True:
                if item is None:
                    stopping = True
                    break
                work, future = item
                if not future.set_running_or_notify_cancel():
                    pass  # the caller has gone, and got no response
                elif isinstance(work, ScreenedBatch):
                    group.append((work, future))
                else:
                    _settled([future], work)
                if len(group) >= GROUP:
                    break
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            if group:
                began = time.perf_counter()
                entries = [entry for entry, _ in group]
                _settled([future for _, future in group], partial(self._collector.settle, entries))
                self._metrics.committed(len(group), time.perf_counter() - began)


def _settled(futures: list[Future[Any]], work: Callable[[], Any]) -> None:
    try:
        done = work()
    except BaseException as error:  # noqa: BLE001 -- whoever waits is told
        for future in futures:
            future.set_exception(error)
    else:
        for future in futures:
            future.set_result(done)
