"""How many reports of a period count that come from one client, in tasks that limit it.

Counts are of this process and in memory only, under numbers that stand for clients here and nowhere
else; they are dropped when the period closes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Final

import numpy as np

from sfumato.arrays import Bools, Ints
from sfumato.service.first_door import ScreenedBatch

__all__ = ["Caps"]

Period = tuple[bytes, int]
"""A task's id and one of its periods."""


class Caps:
    """The reports of each client that were counted, by open period.

    Examples
    --------
    >>> caps = Caps()
    >>> caps.fitting([7, 7, 8, 7], 2, Counter(), (b"task", 1)).tolist()
    [True, True, True, False]

    """

    def __init__(self) -> None:
        self._counted: dict[Period, Counter[Hashable]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._counted.values()))

    @staticmethod
    def limits(entry: ScreenedBatch) -> bool:
        """Return whether the task of some reports limits those of a client."""
        return "cap" in entry.running.published.spec

    def within(
        self, entry: ScreenedBatch, period: int, rows: Ints, pending: Counter[Hashable]
    ) -> Bools:
        """Return a mask of the reports that count, in their order, and add them to the pending.

        ``pending`` has what counts in this commit already.
        """
        most = entry.running.published.spec.get("cap")
        if most is None:
            return np.ones(len(rows), dtype=bool)
        senders = [entry.clients[owner] for owner in entry.owners[rows].tolist()]
        return self.fitting(senders, most, pending, (entry.running.task_id, period))

    def fitting(
        self, senders: list[int], most: int, pending: Counter[Hashable], of: Period
    ) -> Bools:
        """Return a mask of the reports of these senders that count, with ``most`` of each."""
        counted = self._counted.get(of, _NOBODY)
        fits = np.zeros(len(senders), dtype=bool)
        for place, sender in enumerate(senders):
            if counted.get(sender, 0) + pending[sender] < most:
                pending[sender] += 1
                fits[place] = True
        return fits

    def add(self, entry: ScreenedBatch, period: int, rows: Ints) -> None:
        """Remember whose reports have been counted."""
        if not self.limits(entry):
            return
        counted = self._counted.setdefault((entry.running.task_id, period), Counter())
        counted.update(entry.clients[owner] for owner in entry.owners[rows].tolist())

    def forget(self, task_id: bytes, period: int | None = None) -> None:
        """Drop what belongs to the periods up to one that has closed, or to all."""
        for own, one in list(self._counted):
            if own == task_id and (period is None or one <= period):
                self._counted.pop((own, one), None)


_NOBODY: Final[Counter[Hashable]] = Counter()
