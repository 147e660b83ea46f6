"""The second door: one thread counts what has passed the first, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.arrays import Ints
from sfumato.service.first_door import ScreenedBatch
from sfumato.store import Buckets, Filled, Store
from sfumato.wire.receipts import Receipt

__all__ = ["SecondDoor"]

Bucket = tuple[bytes, int, int]
"""The task id, key id and period that a tally belongs to."""

Share = tuple[ScreenedBatch, Ints]
"""A batch, and the indices of some of its reports."""


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
        parts = _by_bucket(entries)
        filled: list[Filled] = []
        counts: list[tuple[Receipt, int, int]] = []
        try:
            for bucket, shares in parts.items():
                fresh = self._fresh(bucket, shares, counts)
                if fresh is not None:
                    filled.append(fresh)
            if filled:
                self._store.commit(filled)
        except BaseException:
            for task_id, _, period in parts:
                self._buckets.forget(task_id, period)
            raise
        for receipt, accepted, repeated in counts:
            receipt.accepted += accepted
            receipt.repeated += repeated

    def _fresh(
        self, bucket: Bucket, shares: Sequence[Share], found: list[tuple[Receipt, int, int]]
    ) -> Filled | None:
        """Return the new reports of a bucket, and note how many of each batch are new."""
        task_id, key_id, period = bucket
        ids = b"".join(entry.ids[rows].tobytes() for entry, rows in shares)
        fresh = self._buckets.fresh(task_id, period, ids)
        ends = np.cumsum([len(rows) for _, rows in shares])
        for (entry, rows), own in zip(shares, np.split(fresh, ends[:-1]), strict=True):
            new = int(np.count_nonzero(own))
            repeated = len(rows) - new
            if 0 < new < entry.running.fewest_counted:
                # The rest of the batch did not count, so that these would stand out.
                few = rows[own]
                self._buckets.remove(task_id, period, entry.ids[few].tobytes())
                entry.receipt.refused += [(int(entry.places[row]), "too_few") for row in few]
                own[:], new = False, 0
            found.append((entry.receipt, new, repeated))
        if not fresh.any():
            return None
        contents = np.concatenate([entry.contents[rows] for entry, rows in shares])
        if not fresh.all():
            contents, ids = contents[fresh], np.frombuffer(ids, "V16")[fresh].tobytes()
        tallies = shares[0][0].running.judge.count(period, contents)
        return Filled(task_id, key_id, period, len(contents), ids, contents.tobytes(), tallies)


def _by_bucket(entries: Sequence[ScreenedBatch]) -> dict[Bucket, list[Share]]:
    """Return the rows of the batches that belong to each bucket; refuse those that are too late."""
    parts: dict[Bucket, list[Share]] = {}
    for entry in entries:
        # A period may have closed while the batch was waiting.
        late = entry.running.is_late(entry.periods, entry.contents)
        entry.receipt.refused += [(int(entry.places[row]), "stale") for row in np.flatnonzero(late)]
        for period in np.unique(entry.periods[~late]).tolist():
            rows = np.flatnonzero((entry.periods == period) & ~late)
            bucket = (entry.running.task_id, entry.key_id, period)
            parts.setdefault(bucket, []).append((entry, rows))
    return parts
