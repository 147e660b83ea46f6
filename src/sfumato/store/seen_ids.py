"""The ids that this process has counted in each open period, so that none counts twice.

Only ids that this process has counted itself since it started are here: nothing is loaded from the
store. A copy that came through another process, or before a restart, is found when the period
settles (`sfumato.store.settling`).
"""

from __future__ import annotations

from typing import Final

from sfumato.arrays import Bools
from sfumato.errors import SfumatoError
from sfumato.store.id_set import IdSet, KeyedWords
from sfumato.store.word_table import Words

__all__ = ["MOST", "Full", "SeenIds"]

MOST: Final = 1 << 25
"""The largest number of ids of one task in memory; each takes 11 to 16 bytes."""


class Full(SfumatoError):
    """There is no room for more ids of a task until one of its periods closes."""


class SeenIds:
    """The ids of all open periods that this process has counted.

    Parameters
    ----------
    most
        The largest number of ids of one task in memory.

    Examples
    --------
    >>> seen = SeenIds(most=2)
    >>> words = seen.words(bytes(16) + bytes(range(16)))
    >>> seen.fresh(b"task", 1, words).tolist()
    [True, True]
    >>> seen.add(b"task", 1, words)
    >>> seen.fresh(b"task", 1, words).tolist(), len(seen)
    ([False, False], 2)
    >>> seen.refuse_full(b"task", 1)
    Traceback (most recent call last):
    ...
    sfumato.store.seen_ids.Full: 2 reports of open periods of this task were counted by this ...

    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._mixer = KeyedWords()
        self._sets: dict[bytes, dict[int, IdSet]] = {}

    def __len__(self) -> int:
        return sum(map(self.of_task, list(self._sets)))

    @property
    def nbytes(self) -> int:
        """The number of bytes that all ids take."""
        return sum(ids.nbytes for sets in self._sets.values() for ids in sets.values())

    def of_task(self, task_id: bytes) -> int:
        """Return the number of ids of a task."""
        return sum(map(len, list(self._sets.get(task_id, {}).values())))

    def refuse_full(self, task_id: bytes, n: int) -> None:
        """Raise Full if there is no room for ``n`` more ids of a task; any thread may ask."""
        counted = self.of_task(task_id)
        if counted + n > self._most:
            raise Full(
                f"{counted:,} reports of open periods of this task were counted by this process; "
                f"up to {self._most:,} are possible until a period closes."
            )

    def words(self, ids: bytes) -> Words:
        """Return the words that stand for ids here."""
        return self._mixer.words(ids)

    def fresh(self, task_id: bytes, period: int, words: Words) -> Bools:
        """Return a mask of the ids that are new, each at its first place; remember nothing."""
        return self._sets.get(task_id, {}).get(period, _NOTHING).fresh(words)

    def has(self, task_id: bytes, period: int, words: Words) -> Bools:
        """Return a mask of the ids that were counted."""
        return self._sets.get(task_id, {}).get(period, _NOTHING).has(words)

    def add(self, task_id: bytes, period: int, words: Words) -> None:
        """Remember ids that were new, after their reports have been counted."""
        sets = self._sets.setdefault(task_id, {})
        sets.setdefault(period, IdSet()).add(words)

    def forget(self, task_id: bytes, period: int | None = None) -> None:
        """Drop the ids of all periods up to one that has closed, or of all."""
        sets = self._sets.get(task_id, {})
        for over in [each for each in list(sets) if period is None or each <= period]:
            sets.pop(over, None)


_NOTHING: Final = IdSet()
