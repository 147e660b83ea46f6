"""The tasks of a collector: publishes them, finds them by name and renews their keys."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from sfumato import catalog
from sfumato.errors import ConfigurationError, InputError, SfumatoError
from sfumato.service.engine_task import resumed
from sfumato.service.kept_history import forget_all_but_the_latest
from sfumato.service.key_numbers import fresh_number, is_due
from sfumato.service.running_task import RunningTask
from sfumato.service.unkept_tasks import (
    mixer_of,
    refuse_asking,
    refuse_unkept,
    refuse_unmixable,
)
from sfumato.store import Release, Store, StoredTask
from sfumato.store.key_wrapping import KeyWrapping
from sfumato.streams.registry import spec_of
from sfumato.wire.published import Published
from sfumato.wire.sealing import new_key
from sfumato.wire.task import Task

__all__ = ["OVERLAP", "TaskDesk"]

OVERLAP: Final = 1
"""The number of periods after the present one whose reports a replaced key still opens."""
PAUSE: Final = 0.05
"""The shortest time, in seconds, between two looks at what other processes have changed."""
LONG_PAUSE: Final = 5.0
"""The same after a look that has failed."""


class TaskDesk:
    """The running tasks of one store.

    Parameters
    ----------
    store
        The store that keeps the tasks.
    base
        The collector's own address, which devices send to.
    clock
        A function that returns the time in seconds since 1970.
    wrapping
        The way in which the store keeps private keys.

    """

    def __init__(
        self,
        store: Store,
        base: str,
        clock: Callable[[], float],
        wrapping: KeyWrapping | None = None,
    ) -> None:
        self.store = store
        self.base = base
        self.clock = clock
        self.wrapping = wrapping or KeyWrapping()
        for task in store.tasks():
            if changed := self.wrapping.rewrapped(task.task_id, task.keys):
                store.rewrap_keys(task.task_id, changed)
        self.running_tasks = {task.task_id: self._running(task) for task in store.tasks()}
        self.news: list[tuple[RunningTask, Release]] = []
        """What other processes have released, until the closer asks."""
        self._next_look = 0.0
        self._next_looks: dict[bytes, float] = {}

    def _running(self, stored: StoredTask) -> RunningTask:
        return resumed(stored, self.store, self.base, self.wrapping)

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
        """Publish a task; see :meth:`sfumato.service.collector.Collector.publish`."""
        refuse_unkept(task, sealed=sealed)
        length = task.period_seconds
        grace = length if grace is None else grace
        stream = catalog.stream(task)  # may take long
        if not wanted():
            raise InputError("nobody waits for the task any more, so that it is not published.")
        if start is None:
            start = (int(self.clock()) // length + 1) * length
        refuse_asking(task, stream.rounds)
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
        if task.counts is None:  # what an engine counts waits for it
            spec.setdefault("keep", 0)
        refuse_unmixable(spec)
        private = {fresh_number(self.clock()): new_key()} if sealed else {}
        keys = {name: key.public_key().public_bytes_raw() for name, key in private.items()}
        published = Published.of(spec, keys)
        kept = {name: self._kept(published.task_id, name, key) for name, key in private.items()}
        self.store.add_task(published.task_id, published.encode(), kept, public=public)
        if published.task_id not in self.running_tasks:
            (stored,) = (t for t in self.store.tasks() if t.task_id == published.task_id)
            self.running_tasks[published.task_id] = self._running(stored)
        return self.running_tasks[published.task_id]

    def _kept(self, task_id: bytes, number: int, key: X25519PrivateKey) -> bytes:
        """Return a private key as the store keeps it."""
        return self.wrapping.wrap(task_id, number, key.private_bytes_raw())

    def take_over(self, stored: StoredTask) -> RunningTask:
        """Take over what the store has of a task now, as another process may have changed it."""
        running = self.running_tasks.get(stored.task_id)
        if running is None:
            running = self.running_tasks.setdefault(stored.task_id, self._running(stored))
        running.renew(stored)
        self.news += [(running, release) for release in running.follow()]
        return running

    def look_again(self, task_id: bytes) -> None:
        """Take over a task that may have changed, some times a second at most."""
        now = time.monotonic()
        if now < self._next_looks.get(task_id, 0.0):
            return
        self._next_looks[task_id] = now + PAUSE
        for stored in self.store.tasks():
            if stored.task_id == task_id:
                self.take_over(stored)

    def make_room(self) -> None:
        """Forget what was read of tasks that nobody has asked for since others were."""
        running_tasks = list(self.running_tasks.values())
        forget_all_but_the_latest(running.kept_history for running in running_tasks)

    def renew_due(self, running: RunningTask, now: float) -> None:
        """Give a task a new key if one is due, once every ``renew`` seconds from its start on.

        A key that was renewed on request is as good for the time that it was made in.
        """
        if running.is_over or not running.keys:
            return
        if is_due(running.published.spec, max(running.keys), now):
            self.rotate(running)

    def rotate(self, running: RunningTask, overlap: int = OVERLAP) -> int:
        """Give a task a new key; return its number, which no key of it has ever had.

        Reports sealed to the previous key can still be opened if their period has begun or is among
        the next ``overlap`` periods; after that the key is erased. Only the writing thread may call
        this.
        """
        if not running.keys:
            raise ConfigurationError("the task's reports are not sealed; there is no key to renew.")
        key_id, key = fresh_number(self.clock(), max(running.keys)), new_key()
        public = {key_id: key.public_key().public_bytes_raw()}
        published = Published(running.published.spec, public, running.elsewhere).encode()
        until = max(running.period_at(self.clock()), running.closed + 1) + overlap
        private = self._kept(running.task_id, key_id, key)
        self.store.replace_key(running.task_id, key_id, private, published, until)
        self._again(running)
        return key_id

    def end(self, running: RunningTask) -> int:
        """End a task; return its last period.

        The periods that have ended by now still close, each after its grace; the present one and
        all later ones never do. A task that was ended, or is over, stays as it is.
        """
        if not running.is_over and not running.was_ended:
            self.store.end_task(running.task_id, running.last_ended(self.clock()))
            self._again(running)
        return running.published.periods

    def archive(self, running: RunningTask) -> None:
        """Let a task have nothing but what follows from its reports: tallies and releases."""
        if not running.is_over:
            raise ConfigurationError(
                f"the task goes on; its period {running.closed + 1:,} has not closed yet. End it, "
                "and archive it when its last period has closed."
            )
        if not running.is_archived:
            self.store.archive_task(running.task_id)
            self._again(running)

    def _again(self, running: RunningTask) -> None:
        """Take over what has been changed of a task."""
        (stored,) = (t for t in self.store.tasks() if t.task_id == running.task_id)
        running.renew(stored)

    def known_task(self, name: str) -> RunningTask:
        """Return a task by its id in hexadecimal digits; raise InputError if there is none."""
        try:
            task_id = bytes.fromhex(name)
        except ValueError:
            raise InputError("there is no task of this id.") from None
        running = self.running_tasks.get(task_id)
        if running is None:
            raise InputError("there is no task of this id.")
        return running

    def running_task(self, name: str) -> RunningTask:
        """Return the same, also if another process has published it a moment ago."""
        try:
            return self.known_task(name)
        except InputError:
            self.look_for_new()
            return self.known_task(name)

    def look_for_new(self) -> None:
        """Look whether another process has published tasks, some times a second at most."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + PAUSE
        try:
            versions = self.store.versions()
        except SfumatoError:
            self._next_look = now + LONG_PAUSE  # a database that is away must not hold up others
            return
        if versions.keys() - self.running_tasks.keys():
            for stored in self.store.tasks():
                if stored.task_id not in self.running_tasks:
                    self.take_over(stored)
