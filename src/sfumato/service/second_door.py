"""The second door: one thread counts what has passed the first, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sfumato.arrays import Ints
from sfumato.service.first_door import ScreenedBatch
from sfumato.store import Buckets, Filled, Store

__all__ = ["SecondDoor"]

Bucket = tuple[bytes, int, int]
"""The task id, key id and period that a tally belongs to."""

Share = tuple[ScreenedBatch, Ints]
"""Uploads that came together, and the indices of some of their reports."""


class SecondDoor:
    """The counting of reports that have passed the first door.

    Parameters
    ----------
    store
        The store that keeps ids and tallies.
    most_ids
        The largest number of ids of open periods in memory.

    """

    def __init__(self, store: Store, most_ids: int) -> None:
        self._store = store
        self._buckets = Buckets(store, most_ids)

    @property
    def ids_in_memory(self) -> int:
        """The number of ids of open periods in memory."""
        return len(self._buckets)

    def forget(self, task_id: bytes, period: int) -> None:
        """Forget the ids of a period."""
        self._buckets.forget(task_id, period)

    def settle(self, entries: Sequence[ScreenedBatch]) -> None:
        """Count the new reports of some batches and fill in their receipts, in one transaction.

        Only one thread may call this at a time. If it raises, nothing has been counted.
        """
        parts: dict[Bucket, list[Share]] = {}
        counts: list[tuple[ScreenedBatch, Ints, Ints]] = []
        entered: set[tuple[bytes, int]] = set()
        try:
            for entry in entries:
                task_id = entry.running.task_id
                for period, rows in _by_period(entry):
                    entered.add((task_id, period))
                    new, repeated = self._told_apart(entry, period, rows)
                    counts.append((entry, new, repeated))
                    if len(new):
                        parts.setdefault((task_id, entry.key_id, period), []).append((entry, new))
            if parts:
                self._store.commit([_filled(bucket, shares) for bucket, shares in parts.items()])
        except BaseException:
            for task_id, period in entered:
                self._buckets.forget(task_id, period)
            raise
        for entry, new, repeated in counts:
            _acknowledge(entry, new, repeated)

    def _told_apart(self, entry: ScreenedBatch, period: int, rows: Ints) -> tuple[Ints, Ints]:
        """Return the indices of the new reports among those of a period, and of the repeated."""
        task_id, fewest = entry.running.task_id, entry.running.fewest_counted
        if fewest <= 1:
            fresh = self._buckets.fresh(task_id, period, entry.ids[rows].tobytes())
            return rows[fresh], rows[~fresh]
        news, repeats = [], []
        for owner in np.unique(entry.owners[rows]):
            own = rows[entry.owners[rows] == owner]
            fresh = self._buckets.fresh(task_id, period, entry.ids[own].tobytes())
            new = own[fresh]
            if 0 < len(new) < fewest:
                # The rest of the upload did not count, so that these would stand out.
                self._buckets.remove(task_id, period, entry.ids[new].tobytes())
                entry.refuse(new, "too_few")
                new = new[:0]
            news.append(new)
            repeats.append(own[~fresh])
        return np.concatenate(news), np.concatenate(repeats)


def _by_period(entry: ScreenedBatch) -> Iterator[tuple[int, Ints]]:
    """Yield the indices of the reports of each period; refuse those that are too late."""
    # A period may have closed while the uploads were waiting.
    late = entry.running.is_late(entry.periods, entry.contents)
    entry.refuse(np.flatnonzero(late), "stale")
    for period in np.unique(entry.periods[~late]).tolist():
        yield period, np.flatnonzero((entry.periods == period) & ~late)


def _filled(bucket: Bucket, shares: Sequence[Share]) -> Filled:
    """Return the new reports of a bucket as they are stored, with their tallies."""
    task_id, key_id, period = bucket
    ids = b"".join(entry.ids[rows].tobytes() for entry, rows in shares)
    contents = np.concatenate([entry.contents[rows] for entry, rows in shares])
    tallies = shares[0][0].running.judge.count(period, contents)
    return Filled(task_id, key_id, period, len(contents), ids, contents.tobytes(), tallies)


def _acknowledge(entry: ScreenedBatch, new: Ints, repeated: Ints) -> None:
    """Add the counted and the repeated reports to the receipts of their uploads."""
    for owner, n in zip(*np.unique(entry.owners[new], return_counts=True), strict=True):
        entry.receipts[owner].accepted += int(n)
    for owner, n in zip(*np.unique(entry.owners[repeated], return_counts=True), strict=True):
        entry.receipts[owner].repeated += int(n)
