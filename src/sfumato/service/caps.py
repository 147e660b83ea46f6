"""How many reports of a period count that come from one client, in tasks that limit it.

Room is reserved before a commit, so that workers that count reports of one client at the same
moment never count more than the cap together; what did not count is given back after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from types import TracebackType
from typing import Self

import numpy as np

from sfumato.arrays import Bools, Ints
from sfumato.core.tally import ENROLMENT
from sfumato.service.client_counts import ClientCounts, Demand, Period
from sfumato.service.first_door import ScreenedBatch
from sfumato.service.running_task import RunningTask
from sfumato.service.shared_counts import SharedCounts
from sfumato.store.word_table import Words

__all__ = ["Caps", "Reservation", "Room"]

Room = dict[int, int]
"""How many more reports of each client count."""


class Caps:
    """The caps of tasks, and how many reports of each client have been counted.

    Parameters
    ----------
    counts
        The counts; by default those of this process alone.

    Examples
    --------
    >>> words, room = np.array([1, 2, 2, 3, 4], dtype=np.uint64), {7: 2, 8: 2}
    >>> senders = np.array([7, 7, 8, 7, 8], dtype=np.uint64)
    >>> new, many = Caps.told_apart(words, np.zeros(5, dtype=bool), senders, room)
    >>> new.tolist(), many.tolist()
    ([True, True, False, False, True], [False, False, False, True, False])

    """

    def __init__(self, counts: ClientCounts | SharedCounts | None = None) -> None:
        self._counts = ClientCounts() if counts is None else counts

    @staticmethod
    def of(running: RunningTask) -> int | None:
        """Return how many reports of a client count in a period of a task; None if all."""
        cap: int | None = running.published.spec.get("cap")
        return cap

    def word(self, running: RunningTask, client: str) -> int:
        """Return a number that stands for a client; 0 for all clients of a task without a cap."""
        if self.of(running) is None:
            return 0
        digest = blake2b(client.encode(), digest_size=8, key=self._counts.key).digest()
        return int.from_bytes(digest, "little")

    @staticmethod
    def senders(entry: ScreenedBatch, rows: Ints) -> Words:
        """Return a number for the client of each report; it is another one for enrolments."""
        clients = np.array(entry.clients, dtype=np.uint64)[entry.owners[rows]]
        if entry.running.protocol.enrols and entry.running.opens:
            clients = np.where(entry.contents["span"][rows] == ENROLMENT, ~clients, clients)
        return clients

    def reserve(self, wanted: Mapping[Period, tuple[int, Sequence[Words]]]) -> Reservation:
        """Return room for reports of a commit, as far as there is some.

        Parameters
        ----------
        wanted
            For each period of a task the cap, and the clients of the reports that may count.

        """
        demands = []
        for period, (cap, senders) in wanted.items():
            clients, numbers = np.unique(np.concatenate(senders), return_counts=True)
            if len(clients):
                demands.append(Demand(*period, cap, clients, numbers.astype(np.uint64)))
        granted = self._counts.take(demands) if demands else []
        return Reservation(self._counts, demands, granted)

    @staticmethod
    def told_apart(words: Words, known: Bools, senders: Words, room: Room) -> tuple[Bools, Bools]:
        """Return masks of the reports that count and of those that are too many, in their order.

        What counts leaves less room. The others are known, or copies of what counts.
        """
        new, many = np.zeros(len(words), dtype=bool), np.zeros(len(words), dtype=bool)
        taken: set[int] = set()
        names, clients = words.tolist(), senders.tolist()
        for row in np.flatnonzero(~known).tolist():
            if names[row] in taken:
                continue
            if room[clients[row]] > 0:
                room[clients[row]] -= 1
                taken.add(names[row])
                new[row] = True
            else:
                many[row] = True
        return new, many

    def forget(self, task_id: bytes, period: int | None = None) -> None:
        """Drop what belongs to the periods of a task up to one that has closed, or to all."""
        self._counts.forget(task_id, period)


class Reservation:
    """Room for the reports of a commit; in the end, what has not counted is given back.

    Parameters
    ----------
    counts
        Where the room was reserved, and is given back.
    demands
        What was asked for.
    granted
        For how many reports of each client of each demand there is room.

    """

    def __init__(
        self,
        counts: ClientCounts | SharedCounts,
        demands: Sequence[Demand],
        granted: Sequence[Words],
    ) -> None:
        self._counts = counts
        self._demands = {(each.task_id, each.period): each for each in demands}
        self._left = {
            period: numbers.astype(np.int64)
            for period, numbers in zip(self._demands, granted, strict=True)
        }

    def rooms(self) -> dict[Period, Room]:
        """Return for each period how many reports of each client have room."""
        return {
            period: dict(zip(demand.clients.tolist(), self._left[period].tolist(), strict=True))
            for period, demand in self._demands.items()
        }

    def count(self, period: Period, senders: Words) -> None:
        """Note whose reports have been counted: they keep their room."""
        if period in self._demands:
            places = np.searchsorted(self._demands[period].clients, senders)
            np.subtract.at(self._left[period], places, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        unused = []
        for period, demand in self._demands.items():
            rows = np.flatnonzero(self._left[period])
            if len(rows):
                numbers = self._left[period][rows].astype(np.uint64)
                unused.append(Demand(*period, demand.cap, demand.clients[rows], numbers))
        if unused:
            self._counts.give_back(unused)
