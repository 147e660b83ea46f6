"""The single thread that writes: all that was screened since the last commit goes into the next."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Final

from sfumato.errors import SfumatoError
from sfumato.service.collector import Collector
from sfumato.service.fair_line import WaitingUpload
from sfumato.service.first_door import ScreenedBatch
from sfumato.service.health import Health
from sfumato.service.metrics import CollectorMetrics
from sfumato.store import Full
from sfumato.web.logs import log

__all__ = ["GROUP", "Screened", "Unwritten", "Writer"]

GROUP: Final = 1 << 17
"""The number of reports from which on a commit waits for no others."""


class Unwritten(SfumatoError):
    """Nothing can be written, so that nothing was counted."""


@dataclass(frozen=True, eq=False)
class Screened:
    """What has passed the first door in one round.

    Parameters
    ----------
    entries
        The reports to count.
    done
        The uploads that get their receipts after that.
    finish
        A function that is called with these uploads when each has its outcome.

    """

    entries: Sequence[ScreenedBatch]
    done: Sequence[WaitingUpload]
    finish: Callable[[Sequence[WaitingUpload]], None]


class Writer:
    """Writes batches in groups, and runs other work between two groups.

    Parameters
    ----------
    collector
        The collector of the batches.
    metrics
        The metrics that count commits.
    store_file
        The file of the store, if it is one: only what is on it is acknowledged.

    """

    def __init__(
        self, collector: Collector, metrics: CollectorMetrics, store_file: Path | None = None
    ) -> None:
        self._collector = collector
        self._metrics = metrics
        self.health = Health(store_file, lambda: self.busy_since, probe=collector.store.unwritable)
        self._queue: queue.SimpleQueue[Screened | tuple[Any, Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = Thread(target=self._run, name="writer", daemon=True)
        self.busy_since: float | None = None
        """When the work began that goes on now, by a clock that only goes forward."""
        self.failures = 0
        """The number of commits that have failed."""

    def start(self) -> None:
        """Start the writing thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write all that waits, then end the thread."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether the writing thread is running."""
        return self._thread.is_alive()

    @property
    def is_free(self) -> bool:
        """Whether a commit could begin now."""
        return self.busy_since is None and self._queue.empty()

    def submit(self, screened: Screened) -> None:
        """Queue what has passed the first door for the next commit."""
        self._queue.put(screened)

    def call(self, work: Callable[[], Any]) -> Future[Any]:
        """Queue a function to run between two commits; return a future of its result."""
        future: Future[Any] = Future()
        self._queue.put((work, future))
        return future

    def _run(self) -> None:
        stopping = False
        while not stopping:
            item = self._queue.get()
            self.busy_since = time.monotonic()
            group: list[Screened] = []
            size = 0
            while True:
                if item is None:
                    stopping = True
                elif isinstance(item, Screened):
                    group.append(item)
                    size += sum(len(entry.ids) for entry in item.entries)
                else:
                    _run_between(*item)
                if stopping or size >= GROUP:
                    break
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            if group:
                self._write(group)
            self.busy_since = None

    def _write(self, group: Sequence[Screened]) -> None:
        """Count a group; whatever happens, all who wait learn of it and the next group comes."""
        try:
            self._count(group)
        except Exception as error:  # noqa: BLE001 -- whoever waits learns of it
            unwritten = self._failed(error)
            for screened in group:
                for waiting in screened.done:
                    waiting.outcome = unwritten
                screened.finish(screened.done)

    def _count(self, group: Sequence[Screened]) -> None:
        """Count a group in one commit, and give each of its uploads its outcome."""
        began = time.perf_counter()
        entries = [entry for screened in group for entry in screened.entries]
        failed = self._settle(entries)
        self._metrics.committed(sum(len(s.done) for s in group), time.perf_counter() - began)
        for entry in entries:
            counted = (receipt for receipt in entry.receipts if id(receipt) not in failed)
            self._metrics.received(entry.running, counted)
        for screened in group:
            for waiting in screened.done:
                error = failed.get(id(waiting.upload.receipt))
                if not isinstance(waiting.outcome, Exception):
                    waiting.outcome = error or waiting.upload.receipt.encode()
            screened.finish(screened.done)
        now = time.monotonic()
        self._metrics.waited(now - each.came for screened in group for each in screened.done)

    def _settle(self, entries: Sequence[ScreenedBatch]) -> dict[int, Exception]:
        """Count what has passed the first door; return what went wrong, by receipt."""
        try:
            if any(len(entry.ids) for entry in entries):
                self._collector.settle(entries)
                self.health.committed()
        except Full as error:
            if len(entries) == 1:
                return {id(receipt): error for receipt in entries[0].receipts}
            # One task that has no room left must not trouble the others.
            failed: dict[int, Exception] = {}
            for entry in entries:
                failed |= self._settle([entry])
            return failed
        except Exception as error:  # noqa: BLE001 -- whoever waits learns of it
            unwritten = self._failed(error)
            return {id(receipt): unwritten for entry in entries for receipt in entry.receipts}
        return {}

    def _failed(self, error: Exception) -> Unwritten:
        """Note that a commit failed; return what those learn who wait for it."""
        self.failures += 1
        log().error("commit failed", kind=type(error).__name__, problem=str(error)[:200])
        self.health.failed("the last commit", error)
        return Unwritten("Nothing can be written now; try again.")


def _run_between(work: Callable[[], Any], future: Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return  # the caller has gone
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 -- whoever waits learns of it
        future.set_exception(error)
    else:
        future.set_result(result)
