"""How many reports of a period count that come from one client, in tasks that limit it.

Counts are of this process and in memory only, under numbers that stand for clients here and nowhere
else; they are dropped when the period closes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sfumato.arrays import Bools, Ints
from sfumato.core.tally import ENROLMENT
from sfumato.service.first_door import ScreenedBatch
from sfumato.store.id_set import IdSet, KeyedWords, Words

__all__ = ["Caps"]

Period = tuple[bytes, int]
"""A task's id and one of its periods."""

Room = dict[int, int]
"""How many more reports of each client count."""


class Caps:
    """The reports of each client that were counted, by open period.

    The first report that counts of a client, the second, and so on are words in a set, as the ids
    of reports are: 11 to 16 bytes for each report, however many clients there are.

    Examples
    --------
    >>> caps, room = Caps(), {7: 2, 8: 2}
    >>> words, senders = np.array([1, 2, 2, 3, 4], dtype=np.uint64), np.array([7, 7, 8, 7, 8])
    >>> new, many = caps.told_apart(words, np.zeros(5, dtype=bool), senders, room)
    >>> new.tolist(), many.tolist()
    ([True, True, False, False, True], [False, False, False, True, False])

    """

    def __init__(self) -> None:
        self._mixer = KeyedWords()
        self._counted: dict[Period, IdSet] = {}

    def __len__(self) -> int:
        return sum(map(len, self._counted.values()))

    @staticmethod
    def of(entry: ScreenedBatch) -> int | None:
        """Return how many reports of a client count in the task of some reports; None if all."""
        cap: int | None = entry.running.published.spec.get("cap")
        return cap

    @staticmethod
    def senders(entry: ScreenedBatch, rows: Ints) -> Ints:
        """Return a number for the client of each report; it is another one for enrolments."""
        clients = np.array(entry.clients, dtype=np.int64)[entry.owners[rows]]
        if entry.running.protocol.enrols and entry.running.opens:
            clients = np.where(entry.contents["span"][rows] == ENROLMENT, ~clients, clients)
        return clients

    def look_up(self, entry: ScreenedBatch, period: int, senders: Ints, room: Room) -> None:
        """Add to the room that of the clients which are not there yet."""
        most = self.of(entry)
        strangers = np.array(sorted({*senders.tolist()} - room.keys()), dtype=np.int64)
        if most is not None and len(strangers):
            left = most - self._counts((entry.running.task_id, period), strangers, most)
            room.update(zip(strangers.tolist(), left.tolist(), strict=True))

    def _counts(self, of: Period, clients: Ints, most: int) -> Ints:
        """Return how many reports of different clients were counted, each found by bisection."""
        seen, counts = self._counted.get(of, _NOTHING), np.zeros(len(clients), dtype=np.int64)
        step = 1 << (most.bit_length() - 1)
        while step:
            more = counts + step
            counts = np.where(seen.has(self._words(clients, more)), more, counts)
            step >>= 1
        return counts

    def _words(self, clients: Ints, numbers: Ints) -> Words:
        """Return the words of reports of clients, which are counted from 1."""
        return self._mixer.words(np.stack([clients, numbers], axis=1).astype("<i8").tobytes())

    @staticmethod
    def told_apart(words: Words, known: Bools, senders: Ints, room: Room) -> tuple[Bools, Bools]:
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

    def add(self, entry: ScreenedBatch, period: int, rows: Ints) -> None:
        """Remember whose reports have been counted."""
        most, of = self.of(entry), (entry.running.task_id, period)
        if most is None:
            return
        clients, counts = np.unique(self.senders(entry, rows), return_counts=True)
        first = np.repeat(self._counts(of, clients, most), counts)
        numbers = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
        words = self._words(np.repeat(clients, counts), first + numbers)
        self._counted.setdefault(of, IdSet()).add(words)

    def forget(self, task_id: bytes, period: int | None = None) -> None:
        """Drop what belongs to the periods up to one that has closed, or to all."""
        for own, one in list(self._counted):
            if own == task_id and (period is None or one <= period):
                self._counted.pop((own, one), None)


_NOTHING: Final = IdSet()
