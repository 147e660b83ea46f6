"""The collector without its network: it takes batches, returns receipts and closes periods.

A batch passes two doors. At the first door any thread decodes, opens and checks it. At the second
door the single writing thread counts it, together with all other waiting batches; the receipt is
given when it is on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato import catalog
from sfumato.arrays import Array, Bools, Ints
from sfumato.errors import ConfigurationError, InputError, ReportError
from sfumato.service.running_task import Key, RunningTask
from sfumato.service.unkept_tasks import mixer_of, refuse_unkept, refuse_unmixable
from sfumato.store import Buckets, Filled, Release, Store
from sfumato.store.buckets import MOST
from sfumato.streams.amplification import TOO_FEW, kept_among
from sfumato.streams.registry import spec_of
from sfumato.wire.published import Published
from sfumato.wire.receipts import Receipt
from sfumato.wire.reports import Batch
from sfumato.wire.sealing import new_key
from sfumato.wire.task import Task
from sfumato.wire.unsealing import open_sealed

__all__ = ["Collector", "ScreenedBatch", "TooFew"]

PATIENCE: Final = 0.5
"""The longest time, in seconds, for which periods are closed before reports have their turn."""

OVERLAP: Final = 1
"""The number of periods after the present one whose reports a replaced key still opens."""


class TooFew(ReportError):
    """A batch of shuffled reports is so small that the promise about them could not be kept."""


@dataclass(frozen=True, eq=False)
class ScreenedBatch:
    """A batch that has passed the first door: its valid reports, and the receipt to fill in."""

    running: RunningTask
    key_id: int
    places: Ints
    ids: Array
    periods: Array
    contents: Array
    receipt: Receipt


Bucket = tuple[bytes, int, int]
"""The task id, key id and period that a tally belongs to."""

Share = tuple[ScreenedBatch, Ints]
"""A batch, and the indices of some of its reports."""


class Collector:
    """The tasks of one store, with their reports and releases.

    Parameters
    ----------
    store
        The store that keeps all data.
    base
        The collector's own address, which devices send to.
    clock
        A function that returns the time in seconds since 1970.
    most_ids
        The largest number of ids of open periods in memory.

    """

    def __init__(
        self,
        store: Store,
        base: str = "",
        clock: Callable[[], float] = time.time,
        most_ids: int = MOST,
    ) -> None:
        self.store = store
        self.base = base
        self.clock = clock
        self.running_tasks = {
            task.task_id: RunningTask(task, store, base) for task in store.tasks()
        }
        self._buckets = Buckets(store, most_ids)

    @property
    def ids_in_memory(self) -> int:
        """The number of ids of open periods in memory."""
        return len(self._buckets)

    # ---- tasks -------------------------------------------------------------------------------

    def publish(
        self,
        task: Task,
        start: int | None = None,
        *,
        grace: int | None = None,
        sealed: bool = True,
        public: bool = False,
        endpoint: str = "",
    ) -> RunningTask:
        """Publish a task; by default its first period starts at the next multiple of its length.

        Devices send to the address in the task or, if it has none, to this collector; the address
        becomes part of the task. Publishing the same task again changes nothing.
        """
        refuse_unkept(task, sealed=sealed)
        length = task.period_seconds
        if start is None:
            start = (int(self.clock()) // length + 1) * length
        grace = length if grace is None else grace
        stream = catalog.stream(task)
        if stream.rounds and not 1 <= grace <= length:
            raise ConfigurationError(
                f"grace is {grace}; the questions about a period are over before the next one "
                f"ends, so 1..{length} seconds are expected."
            )
        mixer = mixer_of(task, endpoint)
        where = endpoint or f"{mixer or self.base}/v1/tasks/{{task}}/reports"
        spec = spec_of(task, stream, start, grace=grace, sealed=sealed, endpoint=where)
        if mixer:
            spec["collector"] = self.base
        refuse_unmixable(spec)
        private = {1: new_key()} if sealed else {}
        keys = {name: key.public_key().public_bytes_raw() for name, key in private.items()}
        published = Published.of(spec, keys)
        secret = {name: key.private_bytes_raw() for name, key in private.items()}
        self.store.add_task(published.task_id, published.encode(), secret, public=public)
        if published.task_id not in self.running_tasks:
            (stored,) = (t for t in self.store.tasks() if t.task_id == published.task_id)
            self.running_tasks[published.task_id] = RunningTask(stored, self.store, self.base)
        return self.running_tasks[published.task_id]

    def _renew_due(self, running: RunningTask, now: float) -> None:
        """Give a task a new key if one is due: the n-th after n - 1 times ``renew`` seconds.

        Keys that were renewed on request are counted as well.
        """
        spec = running.published.spec
        if "renew" not in spec or not running.keys or running.is_over:
            return
        due = 1 + int((now - spec["start"]) // spec["renew"])
        if due > max(running.keys):
            self.rotate(running, key_id=due)

    def rotate(
        self, running: RunningTask, overlap: int = OVERLAP, key_id: int | None = None
    ) -> int:
        """Give a task a new key, by default with the next number; return its number.

        Reports sealed to the previous key can still be opened if their period has begun or is among
        the next ``overlap`` periods; after that the key is erased. Only the writing thread may call
        this.
        """
        if not running.keys:
            raise ConfigurationError("the task's reports are not sealed; there is no key to renew.")
        key_id, key = key_id or max(running.keys) + 1, new_key()
        public = {key_id: key.public_key().public_bytes_raw()}
        published = Published(running.published.spec, public, running.elsewhere).encode()
        until = max(running.period_at(self.clock()), running.closed + 1) + overlap
        private = key.private_bytes_raw()
        self.store.replace_key(running.task_id, key_id, private, published, until)
        (stored,) = (t for t in self.store.tasks() if t.task_id == running.task_id)
        running.renew(stored)
        return key_id

    def running_task(self, name: str) -> RunningTask:
        """Return a task by its id in hexadecimal digits; raise InputError if there is none."""
        try:
            return self.running_tasks[bytes.fromhex(name)]
        except (KeyError, ValueError):
            raise InputError("there is no task of this id.") from None

    # ---- first door --------------------------------------------------------------------------

    def receive(self, running: RunningTask, body: bytes, *, mixed: bool = False) -> ScreenedBatch:
        """Return the valid reports of a batch; raise ReportError if it is malformed.

        If the task's reports must be shuffled, only shuffled (``mixed``) batches count, and
        TooFew is raised if one has fewer reports of some period than the task's promise needs.
        """
        batch = Batch.decode(body, running.layout)
        reports = batch.reports
        if mixed:
            _refuse_few(running, reports["period"])
        keys, until = running.keys, running.until  # keys may be renewed at the same time
        receipt = Receipt(key_id=running.published.key_id)
        alive = np.ones(len(reports), dtype=bool)

        def refuse(which: Bools, reason: str) -> None:
            gone = alive & which
            receipt.refused += [(int(place), reason) for place in np.flatnonzero(gone)]
            alive[gone] = False

        refuse(np.full(len(reports), batch.task_id != running.task_id), "wrong_task")
        refuse(np.full(len(reports), running.is_mixed and not mixed), "direct")
        sealed = running.layout.overhead > 0
        known = batch.key_id in keys if sealed else batch.key_id == 0
        refuse(np.full(len(reports), not known), "unknown_key")
        periods = reports["period"]
        refuse((periods < 1) | (periods > running.periods), "invalid")
        refuse(periods > running.last_begun(self.clock()), "future")
        refuse(periods <= running.closed, "stale")
        refuse(periods > until.get(batch.key_id, running.periods), "unknown_key")
        if sealed and alive.any():
            contents, opened = _opened(running, keys[batch.key_id], reports, alive)
            refuse(~opened, "unopened")
        elif sealed:
            contents = np.zeros(len(reports), dtype=running.layout.content_dtype)
        else:
            contents = np.ascontiguousarray(reports["sealed"]).view(running.layout.content_dtype)
        refuse(~running.judge.well_formed(contents), "malformed")
        refuse(running.is_late(periods, contents), "stale")
        rows = np.flatnonzero(alive)
        if len(rows) < len(reports):
            reports, contents, periods = reports[rows], contents[rows], periods[rows]
        valid = running.judge.valid(periods, contents)
        if not valid.all():
            receipt.refused += [(int(place), "invalid") for place in rows[~valid]]
            rows, contents, periods = rows[valid], contents[valid], periods[valid]
            reports = reports[valid]
        return ScreenedBatch(running, batch.key_id, rows, reports["id"], periods, contents, receipt)

    # ---- second door -------------------------------------------------------------------------

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
                self.store.commit(filled)
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

    def close_due(self, patience: float = PATIENCE) -> list[tuple[RunningTask, Release]]:
        """Close the periods that are due; only the writing thread may call this.

        After ``patience`` seconds the rest is left for the next call, so that reports do not wait.
        """
        closed = []
        now, end = self.clock(), time.monotonic() + patience
        for running in list(self.running_tasks.values()):
            self._renew_due(running, now)
            while not running.is_over and running.next_at <= now:
                release = running.close_next()
                if release is not None:
                    closed.append((running, release))
                    self._buckets.forget(running.task_id, release.period)
                if time.monotonic() > end:
                    return closed
        return closed

    def take(self, running: RunningTask, body: bytes, *, mixed: bool = False) -> Receipt:
        """Pass a batch through both doors, in a collector with a single thread."""
        entry = self.receive(running, body, mixed=mixed)
        self.settle([entry])
        return entry.receipt


def _refuse_few(running: RunningTask, periods: Array) -> None:
    """Raise TooFew if a shuffled batch has too few reports of a period."""
    required = running.required
    if required is None:
        return
    for period, n in zip(*np.unique(periods, return_counts=True), strict=True):
        if n < required.min_batch:
            epsilon = kept_among(running.shuffled, required, int(n))
            raise TooFew(
                f"the batch has {n:,} reports of period {period}, {TOO_FEW}: at least "
                f"{required.min_batch:,} are expected, and among {n:,} only epsilon {epsilon:.4g}, "
                f"delta {required.delta:g} could be kept."
            )


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


def _opened(running: RunningTask, key: Key, reports: Array, alive: Bools) -> tuple[Array, Bools]:
    """Return the contents of sealed reports, and a mask of those that could be opened."""
    size = running.layout.content_dtype.itemsize
    private, context = key.private, key.context
    nothing = bytes(size)
    opened = np.zeros(len(reports), dtype=bool)
    contents = []
    sealed = reports["sealed"].tolist()
    names, periods = reports["id"].tolist(), reports["period"].tolist()
    for place in range(len(reports)):
        content = nothing
        if alive[place]:
            try:
                content = open_sealed(sealed[place], private, context, names[place], periods[place])
                opened[place] = True
            except ReportError:
                pass
        contents.append(content)
    return running.layout.contents(b"".join(contents)), opened
