"""Threads that work for clients, who take turns, so that nobody waits for all that another asks.

Whatever one client asks for, the next thread that is free works for the client that has the fewest
threads and has waited for the longest. The same work is done once for all who ask for it, and is
not begun if all of them have left.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, TypeVar

__all__ = ["Lane", "NotBegun"]

T = TypeVar("T")


def _stays() -> bool:
    return False


@dataclass(eq=False)
class _Job:
    """Some work, and who waits for it."""

    key: Hashable
    work: Callable[[], Any]
    waiting: list[tuple[Future[Any], Callable[[], bool]]] = field(default_factory=list)
    """What each asker looks at, with a function that says whether that asker has left."""
    clients: set[str] = field(default_factory=set)
    is_begun: bool = False

    @property
    def is_vain(self) -> bool:
        """Whether nobody waits for the result any more."""
        return all(future.cancelled() or has_left() for future, has_left in self.waiting)

    def futures(self) -> Iterator[Future[Any]]:
        """Yield what those look at who still wait."""
        for future, _ in self.waiting:
            if future.set_running_or_notify_cancel():
                yield future


class NotBegun(Exception):
    """Some work will not be done, because the lane has stopped or its client has left."""


class Lane:
    """Some threads, and the lines of the clients that wait for one.

    Parameters
    ----------
    threads
        The number of threads.
    name
        The name of the threads.

    Examples
    --------
    >>> lane = Lane(1, "example")
    >>> both = [lane.submit(client, lambda: 6 * 7, key="product") for client in ("a", "b")]
    >>> [future.result() for future in both]
    [42, 42]
    >>> lane.stop()

    """

    def __init__(self, threads: int, name: str) -> None:
        self._pool: Final = ThreadPoolExecutor(threads, name)
        self._lock = Lock()
        self._lines: OrderedDict[str, deque[_Job]] = OrderedDict()
        """The jobs of each client in their order; the client that is served next comes first."""
        self._busy: dict[str, int] = {}
        """The number of threads that work for each client."""
        self._jobs: dict[Hashable, _Job] = {}
        """The jobs that wait or are being done, by what they are."""
        self._is_stopped = False

    def submit(
        self,
        client: str,
        work: Callable[[], T],
        key: Hashable = None,
        has_left: Callable[[], bool] = _stays,
    ) -> Future[T]:
        """Return the future result of some work, which stands at the end of the client's line.

        It is cancelled if the work will not be done.

        Parameters
        ----------
        client
            The client that asks.
        work
            The function that does the work.
        key
            What the work is, if others may ask for the same; None if nobody else can.
        has_left
            A function that says whether the client has left.

        """
        future: Future[T] = Future()
        with self._lock:
            if self._is_stopped:
                future.cancel()
                return future
            job = self._jobs.get(key) if key is not None else None
            if job is None:
                job = _Job(key, work)
                if key is not None:
                    self._jobs[key] = job
            job.waiting.append((future, has_left))
            if job.is_begun or client in job.clients:
                return future
            job.clients.add(client)
            self._lines.setdefault(client, deque()).append(job)
            self._pool.submit(self._serve)
        return future

    async def ask(
        self,
        client: str,
        work: Callable[[], T],
        key: Hashable = None,
        has_left: Callable[[], bool] = _stays,
    ) -> T:
        """Return the result of some work; raise NotBegun if the lane has stopped before it began.

        The parameters are those of :meth:`submit`.
        """
        try:
            return await asyncio.wrap_future(self.submit(client, work, key, has_left))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise NotBegun from None

    def stop(self) -> None:
        """Begin nothing new; whoever waits for what has not begun is told that it is cancelled."""
        with self._lock:
            self._is_stopped = True
            every = (job for line in self._lines.values() for job in line)
            waiting = dict.fromkeys(every)  # one that several clients wait for is in several lines
            self._lines.clear()
            for job in waiting:
                self._forget(job)
        self._pool.shutdown(wait=False, cancel_futures=True)
        _cancel(waiting)

    def _serve(self) -> None:
        """Do the next job, if there is one that somebody waits for."""
        vain: list[_Job] = []
        with self._lock:
            client, job = self._next(vain)
            if job is not None:
                job.is_begun = True
                self._busy[client] = self._busy.get(client, 0) + 1
        _cancel(vain)
        if job is None:
            return
        try:
            result, error = job.work(), None
        except BaseException as caught:  # noqa: BLE001 -- whoever asked is told
            result, error = None, caught
        with self._lock:
            self._busy[client] -= 1
            if not self._busy[client]:
                del self._busy[client]
            self._forget(job)
        for future in job.futures():
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

    def _next(self, vain: list[_Job]) -> tuple[str, _Job | None]:
        """Return the next job and its client; what nobody waits for leaves, and is vain."""
        while self._lines:
            client = min(self._lines, key=lambda each: self._busy.get(each, 0))
            job = self._lines[client][0]
            self._leave(job)
            if job.is_vain:
                self._forget(job)
                vain.append(job)
                continue
            if client in self._lines:
                self._lines.move_to_end(client)
            return client, job
        return "", None

    def _leave(self, job: _Job) -> None:
        """Take a job out of the lines of all who wait for it, who may be thousands."""
        for client in job.clients:
            line = self._lines[client]
            line.remove(job)
            if not line:
                del self._lines[client]

    def _forget(self, job: _Job) -> None:
        if self._jobs.get(job.key) is job:
            del self._jobs[job.key]


def _cancel(jobs: Iterable[_Job]) -> None:
    """Tell whoever waits that these jobs are not done; outside of the lock, as others may ask."""
    for job in jobs:
        for future, _ in job.waiting:
            future.cancel()
            future.set_running_or_notify_cancel()
