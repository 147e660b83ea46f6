"""The collector without its network: it takes batches, returns receipts and closes periods.

A batch passes two doors. At the first door any thread decodes, opens and checks it. At the second
door the single writing thread counts it, together with all other waiting batches; the receipt is
given when it is on disk.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from sfumato.service.caps import Caps
from sfumato.service.closing import PATIENCE, Closer
from sfumato.service.first_door import ScreenedBatch, TooFew, Upload, screen
from sfumato.service.running_task import RunningTask
from sfumato.service.second_door import SecondDoor
from sfumato.service.task_desk import OVERLAP, TaskDesk
from sfumato.store import Release, Store
from sfumato.store.key_wrapping import KeyWrapping
from sfumato.store.seen_ids import MOST
from sfumato.wire.receipts import Receipt
from sfumato.wire.task import Task

__all__ = ["Collector", "ScreenedBatch", "TooFew"]


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
        The largest number of ids of open periods that are in memory for one task.
    wrapping
        The way in which the store keeps private keys: as they are, unless there is a secret.
    caps
        How many reports of each client have been counted, in tasks that limit it.

    """

    def __init__(
        self,
        store: Store,
        base: str = "",
        clock: Callable[[], float] = time.time,
        most_ids: int = MOST,
        wrapping: KeyWrapping | None = None,
        caps: Caps | None = None,
    ) -> None:
        self.store = store
        self.base = base
        self.desk = TaskDesk(store, base, clock, wrapping)
        self.running_tasks = self.desk.running_tasks
        self._caps = Caps() if caps is None else caps
        self._second_door = SecondDoor(store, most_ids, self._caps)
        self._closer = Closer(self.desk, self._second_door, store)

    @property
    def clock(self) -> Callable[[], float]:
        """The function that returns the time in seconds since 1970."""
        return self.desk.clock

    @clock.setter
    def clock(self, clock: Callable[[], float]) -> None:
        self.desk.clock = clock

    @property
    def ids_in_memory(self) -> int:
        """The number of ids of open periods in memory."""
        return self._second_door.ids_in_memory

    def publish(
        self,
        task: Task,
        start: int | None = None,
        *,
        grace: int | None = None,
        sealed: bool = True,
        public: bool = False,
        endpoint: str = "",
        wanted: Callable[[], bool] = lambda: True,
    ) -> RunningTask:
        """Publish a task; by default its first period starts at the next multiple of its length.

        Devices send to the address in the task or, if it has none, to this collector; the address
        becomes part of the task. Publishing the same task again changes nothing. Nothing is
        published, and InputError raised, if it is not wanted any more once it has been designed.
        """
        return self.desk.publish(
            task,
            start,
            grace=grace,
            sealed=sealed,
            public=public,
            endpoint=endpoint,
            wanted=wanted,
        )

    def rotate(self, running: RunningTask, overlap: int = OVERLAP) -> int:
        """Give a task a new key; return its number, which no key of it has ever had.

        Reports sealed to the previous key can still be opened if their period has begun or is among
        the next ``overlap`` periods; after that the key is erased. Only the writing thread may call
        this.
        """
        return self.desk.rotate(running, overlap)

    def end(self, running: RunningTask) -> int:
        """End a task with the last period that has ended, and return that period.

        Only the writing thread may call this. What the task has lost is erased by
        ``store.erase_left``, as after `archive` and `delete`, or by `close_due` some time later.
        """
        self._closer.look_for_left()
        return self.desk.end(running)

    def archive(self, running: RunningTask) -> None:
        """Let a task have nothing but its tallies and releases.

        Only the writing thread may call this. Raises ConfigurationError if the task is not over.
        """
        self._closer.look_for_left()
        self.desk.archive(running)

    def delete(self, running: RunningTask) -> None:
        """Delete a task; only the writing thread may call this."""
        self.running_tasks.pop(running.task_id, None)
        try:
            self.store.delete_task(running.task_id)
        finally:  # it may be gone even if this process was not told so
            self.running_tasks.pop(running.task_id, None)  # somebody has just asked for it
            self._closer.forget(running.task_id)

    def running_task(self, name: str) -> RunningTask:
        """Return a task by its id in hexadecimal digits; raise InputError if there is none.

        The store is read for it if this process does not know the task.
        """
        return self.desk.running_task(name)

    def known_task(self, name: str) -> RunningTask:
        """Return the same without reading the store, as an event loop needs it."""
        return self.desk.known_task(name)

    def admit(
        self, running: RunningTask, body: bytes, *, mixed: bool = False, client: str = ""
    ) -> Upload:
        """Return the upload in these bytes, which is not screened yet; any thread may call this.

        Raises ReportError if they are no batch. If the task's reports must be shuffled, only
        shuffled (``mixed``) batches count, and TooFew is raised if one has fewer reports of some
        period than the task's promise needs.
        """
        self._second_door.refuse_full(running)
        sender = self._caps.word(running, client)
        return Upload.of(running, body, mixed=mixed, client=sender)

    def screen(self, uploads: Sequence[Upload], most: int | None = None) -> list[ScreenedBatch]:
        """Return the valid reports of uploads, or of the next ``most`` reports of each.

        The store may be read for it, so that this is no work for an event loop.
        """
        self._catch_up(uploads)
        return screen(uploads, self.clock(), most)

    def receive(self, running: RunningTask, body: bytes, *, mixed: bool = False) -> ScreenedBatch:
        """Return the valid reports of a batch that comes alone; raise ReportError if it is none."""
        (entry,) = self.screen([self.admit(running, body, mixed=mixed)])
        return entry

    def _catch_up(self, uploads: Sequence[Upload]) -> None:
        """Look at the store if uploads may know of a key or a question that this process does not.

        Another process may have renewed the key or closed the round a moment ago.
        """
        behind: set[bytes] = set()
        for upload in uploads:
            running = upload.running
            has_new_key = running.keys and upload.batch.key_id not in running.keys
            if has_new_key or (running.is_interactive and self.clock() >= running.next_at):
                behind.add(running.task_id)
        for task_id in behind:
            self.desk.look_again(task_id)

    def settle(self, entries: Sequence[ScreenedBatch]) -> None:
        """Count the new reports of some batches and fill in their receipts, in one transaction.

        Only one thread may call this at a time. If it raises, nothing has been counted.
        """
        self._second_door.settle(entries)

    def close_due(
        self, patience: float = PATIENCE, *, now: float | None = None, open_for: float = math.inf
    ) -> list[tuple[RunningTask, Release]]:
        """Close the periods that are due.

        Parameters
        ----------
        patience
            After how many seconds the rest is left for the next call.
        now
            The time, in seconds since 1970; by default the clock's.
        open_for
            For how many seconds reports could be uploaded without a break. A task's periods close
            only after its grace.

        """
        return self._closer.close_due(self.clock() if now is None else now, open_for, patience)

    def drop_deleted(self) -> None:
        """Drop the tasks that another process has deleted, also while periods close."""
        self._closer.drop_deleted()

    def take(self, running: RunningTask, body: bytes, *, mixed: bool = False) -> Receipt:
        """Pass a batch through both doors, in a collector with a single thread."""
        entry = self.receive(running, body, mixed=mixed)
        self.settle([entry])
        return entry.receipt
