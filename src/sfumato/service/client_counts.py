"""How many reports of each client have been counted in each open period, in tasks with a cap.

Counts are in memory only, under words that stand for clients here and nowhere else, and are dropped
when the period closes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.randomness import secure
from sfumato.store.seen_ids import MOST
from sfumato.store.word_table import Words, WordTable

__all__ = ["ClientCounts", "Demand", "Period"]

Period = tuple[bytes, int]
"""A task's id and one of its periods."""

LARGEST: Final = (1 << 32) - 1
"""The largest number of reports of one client that can be counted."""


@dataclass(frozen=True, eq=False)
class Demand:
    """Numbers of reports of some clients of a period: to be counted, or not counted after all.

    Parameters
    ----------
    task_id
        The task.
    period
        The period.
    cap
        How many reports of one client count in the period.
    clients
        The words of different clients.
    numbers
        The number of reports of each client.

    """

    task_id: bytes
    period: int
    cap: int
    clients: Words
    numbers: Words


class ClientCounts:
    """The reports of each client that were counted, or are being counted, by open period.

    A client takes 11 to 16 bytes in each period in which it sends. If a task has so many clients
    that there is no room for more, no reports of new ones count until one of its periods closes.
    Any thread may call this.

    Parameters
    ----------
    most
        The largest number of clients of one task in memory, summed over its open periods.

    Examples
    --------
    >>> counts = ClientCounts()
    >>> clients = np.array([1 << 62, 1 << 63], np.uint64)
    >>> numbers = np.array([2, 9], np.uint64)
    >>> demand = Demand(b"task", 1, 5, clients, numbers)
    >>> [granted.tolist() for granted in counts.take([demand])]
    [[2, 5]]
    >>> [granted.tolist() for granted in counts.take([demand, demand])]
    [[2, 0], [1, 0]]

    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = Lock()
        self._tables: dict[bytes, dict[int, _ClientTable]] = {}
        self.key = secure().words(4).tobytes()
        """The key of the hashes that stand for clients."""

    def __len__(self) -> int:
        with self._lock:
            return sum(map(self._clients, self._tables))

    @property
    def nbytes(self) -> int:
        """The number of bytes that all counts take."""
        with self._lock:
            tables = [table for each in self._tables.values() for table in each.values()]
        return sum(table.nbytes for table in tables)

    def _clients(self, task_id: bytes) -> int:
        """Return the number of clients of a task, summed over its open periods."""
        return sum(map(len, self._tables.get(task_id, {}).values()))

    def take(self, demands: Sequence[Demand]) -> list[Words]:
        """Count as many of the reports as the cap allows; return that number for each client."""
        with self._lock:
            return [self._taken(demand) for demand in demands]

    def _taken(self, demand: Demand) -> Words:
        room = self._most - self._clients(demand.task_id)
        tables = self._tables.setdefault(demand.task_id, {})
        table = tables.get(demand.period)
        if table is None:
            table = tables[demand.period] = _ClientTable(demand.cap)
        return table.take(demand.clients, demand.numbers, room)

    def give_back(self, demands: Sequence[Demand]) -> None:
        """Take reports from the counts that were counted there, and do not count after all."""
        with self._lock:
            for demand in demands:
                table = self._tables.get(demand.task_id, {}).get(demand.period)
                if table is not None:
                    table.give_back(demand.clients, demand.numbers)

    def forget(self, task_id: bytes, period: int | None = None) -> None:
        """Drop the counts of the periods of a task up to one that has closed, or of all."""
        with self._lock:
            tables = self._tables.get(task_id, {})
            for one in [one for one in tables if period is None or one <= period]:
                del tables[one]
            if not tables:
                self._tables.pop(task_id, None)


class _ClientTable(WordTable):
    """The counts of one period: the low bits of a cell are a count, the others are the client.

    Two clients that differ only in the low bits share one count; the key of their words makes that
    as rare as chance, and nobody can bring it about.

    Parameters
    ----------
    cap
        How many reports of one client count.

    """

    def __init__(self, cap: int) -> None:
        super().__init__()
        self._cap = np.uint64(min(cap, LARGEST))
        self._low = np.uint64((1 << int(self._cap).bit_length()) - 1)

    def take(self, clients: Words, numbers: Words, room: int) -> Words:
        """Count as many reports of each client as count; ``room`` is how many clients are added."""
        names, places = self._looked_up(clients)
        cells = self._cells[places]
        granted: Words = np.minimum(numbers, self._cap - (cells & self._low))
        strangers = np.flatnonzero((cells == 0) & (granted > 0))
        granted[strangers[max(room, 0) :]] = 0
        strangers = strangers[: max(room, 0)]
        self._cells[places] = np.where(cells == 0, cells, cells + granted)
        self.add(names[strangers] | granted[strangers])
        return granted

    def give_back(self, clients: Words, numbers: Words) -> None:
        """Count so many reports of each client no longer."""
        _, places = self._looked_up(clients)
        cells = self._cells[places]
        self._cells[places] = cells - np.minimum(numbers, cells & self._low)

    def _looked_up(self, clients: Words) -> tuple[Words, NDArray[np.intp]]:
        """Return the upper bits of clients, and the cell of each: an empty one if it has none."""
        names = clients & ~self._low
        names[names == 0] = self._low + np.uint64(1)
        places, rows = self._home(names), np.arange(len(names))
        while len(rows):
            held = self._cells[places[rows]]
            rows = rows[(held != 0) & (held & ~self._low != names[rows])]
            places[rows] += 1
        return names, places
