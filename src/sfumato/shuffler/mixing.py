"""The shuffler without its network: it takes sealed reports, and makes mixed batches of them.

A report waits in the bucket of its task, key and period until no more reports of the period are
taken. Then all reports of the bucket are put in random order, and leave in batches of at least
``min_batch``. A bucket with fewer reports expires: it is erased and counted, and nothing of it ever
leaves.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np

from sfumato.randomness import Source, secure
from sfumato.shuffler.holding import Bucket, Holding
from sfumato.shuffler.mixed_task import MixedTask
from sfumato.wire.published import Published
from sfumato.wire.receipts import Receipt
from sfumato.wire.reports import ID_BYTES, Batch

__all__ = ["Shuffler", "Taken"]

MOST_IDS: Final = 8_000_000
"""The largest number of ids of open periods in memory."""


_FRONT: Final = ID_BYTES + 4
"""The number of bytes of a report before its sealed content: the id and the period."""


class Taken(Receipt):
    """An upload that has been read: its task, key and reports, and the receipt to fill in."""

    __slots__ = ("reports", "sealed_to", "task")

    def __init__(self, task: MixedTask, sealed_to: int, reports: list[bytes]) -> None:
        self.accepted = self.repeated = 0
        self.refused, self.key_id = [], task.key_id
        self.last_period = task.published.last_period
        self.task, self.sealed_to, self.reports = task, sealed_to, reports


_Marks = tuple[bytes, int, bytes]
"""What the reports of a bucket have in common: task, number of the key, and period as encoded."""


class _Arrived(NamedTuple):
    """What came for a bucket: why it is not taken, the ids so far, and the new reports."""

    bucket: Bucket
    reason: str
    seen: set[bytes]
    reports: list[bytes]


_ByMarks = dict[_Marks, _Arrived]


class Shuffler:
    """The tasks and reports of one shuffler.

    Parameters
    ----------
    holding
        The store.
    here, collector
        The addresses of this shuffler, as devices know it, and of the collector.
    clock
        A function that returns the time in seconds since 1970.
    rng
        The source of the random orders.
    most_ids
        The largest number of ids of open periods in memory; one task may have half of those that
        others leave.

    """

    def __init__(
        self,
        holding: Holding,
        here: str,
        collector: str,
        clock: Callable[[], float] = time.time,
        rng: Source | None = None,
        most_ids: int = MOST_IDS,
    ) -> None:
        self.holding, self.here, self.collector = holding, here, collector
        self.clock = clock
        self._rng = rng or secure()
        self._most_ids = most_ids
        self._seen: dict[tuple[bytes, int], set[bytes]] = {}
        self.tasks: dict[bytes, MixedTask] = {}
        self._keys: dict[bytes, set[int]] = {}
        self._learning = Lock()
        self._over = holding.over()
        for task_id, encoded in holding.tasks().items():
            task = MixedTask.of(Published.parse(encoded), here, collector)
            self.tasks[task_id], self._keys[task_id] = task, {task.key_id}

    def learn(self, published: Published) -> MixedTask:
        """Take over a task, or its newer key, from the collector; raise InputError if it is bad."""
        with self._learning:
            known = self.tasks.get(published.task_id)
            if known is None:
                task = MixedTask.of(published, self.here, self.collector)
            else:
                task = known.renewed(published)
            if known is None or task.published != known.published:
                self.holding.keep_task(task.task_id, task.published.encode())
                self._keys.setdefault(task.task_id, set()).add(task.key_id)
                self.tasks[task.task_id] = task
        return task

    # ---- taking ------------------------------------------------------------------------------

    def read(self, task: MixedTask, body: bytes) -> Taken:
        """Return the reports of an upload; raise ReportError if it is malformed."""
        task_id, key_id, reports = Batch.records(body, task.report_bytes)
        taken = Taken(task, key_id, reports)
        # An earlier key may still be in use, and is a bucket of its own; the collector decides.
        # Another number would be a bucket of one; after a restart devices seal anew.
        if task_id == task.task_id and key_id in self._keys[task_id]:
            return taken
        wrong = "unknown_key" if task_id == task.task_id else "wrong_task"
        taken.refused += [(index, wrong) for index in range(len(reports))]
        return taken

    def hold(self, uploads: Sequence[Taken]) -> set[bytes]:
        """Store the new reports of some uploads and fill in their receipts, in one transaction.

        Only one thread may call this at a time. If it raises, nothing has been stored. It returns
        the tasks for whose reports there is no room until a period is over; nothing of theirs has
        been stored.
        """
        arrived: _ByMarks = {}
        now = self.clock()
        full = self._full(uploads)
        for taken in uploads:
            if not taken.refused and taken.task.task_id not in full:
                self._sort_in(taken, arrived, now)
        try:
            new = {each.bucket: each.reports for each in arrived.values() if each.reports}
            if new:
                self.holding.add({bucket: _packed(reports) for bucket, reports in new.items()})
        except BaseException:
            for each in arrived.values():
                each.seen.difference_update(report[:ID_BYTES] for report in each.reports)
            raise
        return full

    def _full(self, uploads: Sequence[Taken]) -> set[bytes]:
        """Return the tasks that would have more than half of the room that others leave.

        However many tasks take all they can, there is always room for one more.
        """
        new = sum([len(taken.reports) for taken in uploads])
        if 2 * new + 3 * len(self) <= self._most_ids:
            return set()  # as it nearly always is: so many fit whatever tasks they are of
        came: Counter[bytes] = Counter()
        for taken in uploads:
            came[taken.task.task_id] += len(taken.reports)
        held: Counter[bytes] = Counter()
        for (task_id, _), ids in self._seen.items():
            held[task_id] += len(ids)
        full: set[bytes] = set()
        for task_id, new in came.items():
            others = held.total() - held[task_id]
            if held[task_id] + new > (self._most_ids - others) // 2:
                full.add(task_id)
            else:
                held[task_id] += new
        return full

    def __len__(self) -> int:
        """Return the number of ids of open periods in memory."""
        return sum(map(len, self._seen.values()))

    def told(self) -> dict[str, Any]:
        """Return what its operator may know of each task: what became of how many reports."""
        waiting, leaving, now = self.holding.waiting(), self.holding.leaving(), self.clock()
        held: Counter[bytes] = Counter()
        for bucket, n in waiting.items():
            held[bucket.task_id] += n
        return {
            task_id.hex(): {
                "title": task.title,
                "period": task.begun(now),
                "periods": task.periods,
                "min_batch": task.min_batch,
                "waiting": held[task_id],
                "leaving": leaving[task_id],
                "counts": self.holding.counts(task_id),
            }
            for task_id, task in list(self.tasks.items())
        }

    def _sort_in(self, taken: Taken, arrived: _ByMarks, now: float) -> None:
        """Put the new reports of an upload into their buckets, and fill in its receipt."""
        task_id, key_id, accepted = taken.task.task_id, taken.sealed_to, 0
        for index, report in enumerate(taken.reports):
            marks = (task_id, key_id, report[ID_BYTES:_FRONT])
            there = arrived.get(marks)
            if there is None:
                there = arrived[marks] = self._begun(taken.task, marks, now)
            if there.reason:
                taken.refused.append((index, there.reason))
                continue
            name = report[:ID_BYTES]
            if name not in there.seen:
                there.seen.add(name)
                there.reports.append(report)
                accepted += 1
        taken.accepted = accepted
        taken.repeated = len(taken.reports) - accepted - len(taken.refused)

    def _begun(self, task: MixedTask, marks: _Marks, now: float) -> _Arrived:
        """Return what has come for a bucket so far: nothing new."""
        bucket = Bucket(*marks[:2], int.from_bytes(marks[2], "little"))
        reason = self._refusal(task, bucket.period, now)
        return _Arrived(bucket, reason, set() if reason else self._ids(task, bucket.period), [])

    def _ids(self, task: MixedTask, period: int) -> set[bytes]:
        """Return the ids of a period's reports so far, read from the store the first time."""
        key = (task.task_id, period)
        if key not in self._seen:
            self._seen[key] = {
                blob[at : at + ID_BYTES]
                for blob in self.holding.came(*key)
                for at in range(0, len(blob), task.report_bytes)
            }
        return self._seen[key]

    # ---- mixing ------------------------------------------------------------------------------

    def mix_due(self) -> None:
        """Mix the buckets of periods that are over; expire those that have stayed too small.

        Only the thread that holds reports may call this.
        """
        now = self.clock()
        for bucket, n in self.holding.waiting().items():
            task = self.tasks[bucket.task_id]
            if not self._is_over(task, bucket.period, now):
                continue
            self._over[task.task_id] = max(bucket.period, self._over.get(task.task_id, 0))
            if n < task.min_batch:
                self.holding.expire(bucket, n)
            else:
                self.holding.batch(bucket, self._mixed(task, self.holding.reports(bucket)))
        for key in list(self._seen):  # reports of these periods are refused now
            if self._is_over(self.tasks[key[0]], key[1], now):
                del self._seen[key]

    def _is_over(self, task: MixedTask, period: int, now: float) -> bool:
        """Return whether no reports of a period are taken any more.

        It stays over when the clock is set back. If it did not, those who sent in time and those
        who came late could leave together in a second batch, which tells them apart.
        """
        return period <= max(task.over(now), self._over.get(task.task_id, 0))

    def _refusal(self, task: MixedTask, period: int, now: float) -> str:
        """Return why reports of a period are not taken now; empty if they are."""
        if not 1 <= period <= task.periods:
            return "invalid"
        if period > task.published.periods:
            return "stale"
        if period > task.begun(now):
            return "future"
        return "stale" if self._is_over(task, period, now) else ""

    def _mixed(self, task: MixedTask, reports: bytes) -> list[tuple[int, bytes]]:
        """Return reports in random order, cut into as few batches as possible, alike in size."""
        held = np.frombuffer(reports, dtype=task.layout.report_dtype)
        mixed = held[self._rng.permutation(len(held))]
        parts = np.array_split(mixed, -(-len(mixed) // task.most_together))
        return [(len(part), part.tobytes()) for part in parts]


def _packed(reports: list[bytes]) -> tuple[bytes, int]:
    """Return the reports of a bucket, sorted by id, and their number."""
    return b"".join(sorted(reports)), len(reports)
