"""The ids of the reports that each open period has, so that none counts twice.

The ids of an open period are read from the store into memory when its first report comes, and
dropped when it closes. Their total number is limited.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sfumato.arrays import Bools
from sfumato.errors import SfumatoError
from sfumato.store.interface import Store

__all__ = ["Buckets", "Full"]

ID_BYTES: Final = 16
MOST: Final = 4_000_000
"""The largest number of ids in memory; each takes about 130 bytes."""


class Full(SfumatoError):
    """There is no room for more ids until a period closes."""


class Buckets:
    """The ids of all open periods.

    Parameters
    ----------
    store
        The store that has the reports.
    most
        The largest number of ids in memory.

    """

    def __init__(self, store: Store, most: int = MOST) -> None:
        self._store = store
        self._most = most
        self._seen: dict[tuple[bytes, int], set[bytes]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._seen.values()))

    def fresh(self, task_id: bytes, period: int, ids: bytes) -> Bools:
        """Return a mask of the ids that are new, and remember them; raise Full if too many."""
        bucket = self._bucket(task_id, period)
        names = [ids[place : place + ID_BYTES] for place in range(0, len(ids), ID_BYTES)]
        if len(self) + len(names) > self._most:
            raise Full(
                f"{len(self):,} ids of open periods are in memory; up to {self._most:,} are "
                "possible until a period closes."
            )
        new = np.ones(len(names), dtype=bool)
        before = len(bucket)
        if bucket.isdisjoint(names):
            bucket.update(names)
            if len(bucket) == before + len(names):
                return new
            bucket.difference_update(names)
        for place, one in enumerate(names):
            new[place] = one not in bucket
            bucket.add(one)
        return new

    def remove(self, task_id: bytes, period: int, ids: bytes) -> None:
        """Forget ids that were new, of reports that were refused after all."""
        names = (ids[place : place + ID_BYTES] for place in range(0, len(ids), ID_BYTES))
        self._bucket(task_id, period).difference_update(names)

    def forget(self, task_id: bytes, period: int) -> None:
        """Drop the ids of a period that has closed, or whose ids did not all reach the disk."""
        self._seen.pop((task_id, period), None)

    def _bucket(self, task_id: bytes, period: int) -> set[bytes]:
        key = (task_id, period)
        if key not in self._seen:
            self._seen[key] = {
                blob[place : place + ID_BYTES]
                for blob in self._store.ids(task_id, period)
                for place in range(0, len(blob), ID_BYTES)
            }
        return self._seen[key]
