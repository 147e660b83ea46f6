"""The one thread that writes: whatever has come since the last commit goes into the next."""

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
"""Batches of one commit, at most."""

WAITING: Final = 256
"""Batches that may wait for one."""


class Busy(SfumatoError):
    """Too many batches wait already."""


class Writer:
    """Settles batches in groups, and everything else that must not happen meanwhile.

    Parameters
    ----------
    collector
        Whose batches these are.
    metrics
        Where commits are counted.
    waiting
        How many batches may wait.

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
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is waiting, and end."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    @property
    def waiting(self) -> int:
        """How many batches wait."""
        return self._queue.qsize()

    @property
    def is_alive(self) -> bool:
        """Whether anything will still be written."""
        return self._thread.is_alive()

    def submit(self, entry: ScreenedBatch) -> Future[None]:
        """Settle a batch with the next commit; raise Busy if too many wait."""
        if self.waiting >= self._most:
            raise Busy(f"{self._most} batches wait to be written; try again.")
        future: Future[None] = Future()
        self._queue.put((entry, future))
        return future

    def call(self, work: Callable[[], Any]) -> Future[Any]:
        """Do something between two commits."""
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
                    pass  # whoever asked has gone, and was told nothing
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
