"""Following the logs of a running collector: what waits there is counted and acknowledged.

The collector keeps reports in its log until an epoch that has them is acknowledged. A follower can
be killed at any time, and started again anywhere: it goes on after the last row that was
acknowledged, and an epoch that comes twice counts once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from multiprocessing import get_context
from typing import Final, Protocol

from sfumato.engines.log_counting import CountedRows, LogCounter
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.store import Epoch, LogRow, Store, StoredTask
from sfumato.store.key_wrapping import KeyWrapping
from sfumato.store.store_addresses import DatabaseAway
from sfumato.wire.published import Published

__all__ = ["PAUSE", "AcknowledgedEpoch", "EpochFollower", "LogFollower", "followed"]

_Counting = Callable[[Iterable[LogRow]], Iterator[CountedRows]]

PAUSE: Final = 1.0
"""The number of seconds between two looks into a log."""
ROWS: Final = 16
"""The largest number of rows in an epoch of the local follower."""


@dataclass(frozen=True)
class AcknowledgedEpoch:
    """An epoch that was acknowledged.

    Parameters
    ----------
    task_id
        The id of the task.
    title
        The title of the task.
    first, last
        The numbers of the first and the last row.
    counted, refused
        The number of reports that count, and of those that do not.

    """

    task_id: str
    title: str
    first: int
    last: int
    counted: int
    refused: int

    @classmethod
    def of(cls, task: Published, epoch: Epoch) -> AcknowledgedEpoch:
        """Return what is said of an epoch of a task."""
        counted = sum(tally.n for tally in epoch.tallies.values())
        refused = sum(epoch.refused.values())
        title = str(task.spec["title"])
        return cls(task.task_id.hex(), title, epoch.first, epoch.last, counted, refused)


def followed(store: Store, task_id: bytes | None = None) -> list[StoredTask]:
    """Return the tasks of a store that an engine counts, or one of them.

    Raises ConfigurationError if the one that is asked for is not there, or its collector counts it.
    """
    tasks = {
        task.task_id: task
        for task in store.tasks()
        if Published.parse(task.published).spec.get("counts") == "engine"
    }
    if task_id is None:
        return list(tasks.values())
    if task_id not in tasks:
        listed = ", ".join(each.hex() for each in list(tasks)[:4]) or "none"
        raise ConfigurationError(
            f'task is {task_id.hex()}; a task of this store that says counts = "engine" is '
            f"expected, and there is {listed}."
        )
    return [tasks[task_id]]


class EpochFollower(Protocol):
    """Whatever counts what waits in the logs of a store, and acknowledges it in epochs."""

    def catch_up(self, task_id: bytes | None = None) -> Iterator[AcknowledgedEpoch]:
        """Count and acknowledge what waits now, and yield each epoch that was acknowledged.

        Raises MismatchError for rows that cannot be counted, after all other tasks had their turn.
        """

    def follow(
        self, task_id: bytes | None = None, pause: float = PAUSE
    ) -> Iterator[AcknowledgedEpoch | DatabaseAway | MismatchError]:
        """Count what waits and what comes, for ever; yield each epoch that was acknowledged.

        A database that is away is waited for, and a task whose rows cannot be counted stops no
        other; the error that says so is yielded as well.
        """


class LogFollower:
    """Counts what waits in the logs of a store, in this process or in several.

    Parameters
    ----------
    store
        The store of a collector, which may be running.
    wrapping
        The way in which the store keeps private keys.
    processes
        The number of processes that open seals; with 1, it is done in this one.

    """

    def __init__(
        self, store: Store, wrapping: KeyWrapping | None = None, processes: int = 1
    ) -> None:
        if type(processes) is not int or processes < 1:
            raise ConfigurationError(f"processes is {processes!r}; 1 or more are expected.")
        self._store = store
        self._wrapping = wrapping or KeyWrapping()
        self._processes = processes

    def catch_up(self, task_id: bytes | None = None) -> Iterator[AcknowledgedEpoch]:
        """Count and acknowledge what waits now, and yield each epoch when it is acknowledged."""
        failed: MismatchError | None = None
        for stored in followed(self._store, task_id):
            try:
                yield from self._caught_up(stored)
            except MismatchError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def follow(
        self, task_id: bytes | None = None, pause: float = PAUSE
    ) -> Iterator[AcknowledgedEpoch | DatabaseAway | MismatchError]:
        """Count what waits and what comes, for ever; yield each epoch when it is acknowledged."""
        while True:
            try:
                yield from self.catch_up(task_id)
            except (DatabaseAway, MismatchError) as error:
                yield error
            time.sleep(pause)

    def _caught_up(self, stored: StoredTask) -> Iterator[AcknowledgedEpoch]:
        store, task = self._store, Published.parse(stored.published)
        keys = self._wrapping.unwrapped(stored.task_id, stored.keys)
        after = store.progress(stored.task_id).sequence
        log = store.log(stored.task_id, after)
        first = list(islice(log, ROWS))
        if not first:
            return
        with self._counting(task, keys) as count:
            rows = first
            while rows:
                counted = sum(count(rows), CountedRows())
                epoch = Epoch(after + 1, rows[-1].sequence, counted.tallies, counted.refused)
                if store.acknowledge(stored.task_id, epoch):
                    yield AcknowledgedEpoch.of(task, epoch)
                after = epoch.last
                rows = list(islice(log, ROWS))

    @contextmanager
    def _counting(self, task: Published, keys: dict[int, bytes]) -> Iterator[_Counting]:
        """Give a function that counts rows; its processes end with the context."""
        if self._processes == 1:
            yield partial(map, LogCounter(task, keys).count)
            return
        about = (task.encode(), keys)
        with ProcessPoolExecutor(self._processes, get_context("spawn"), _remember, about) as pool:
            yield lambda rows: map(CountedRows.decode, pool.map(_count, rows))


@cache
def _memory() -> dict[str, LogCounter]:
    return {}


def _remember(task: bytes, keys: dict[int, bytes]) -> None:
    _memory()["counter"] = LogCounter(Published.parse(task), keys)


def _count(row: LogRow) -> bytes:
    return _memory()["counter"].count(row).encode()
