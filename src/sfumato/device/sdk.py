"""The device object that an app embeds: join a task, observe values, flush what is due.

The device keeps the promise. It checks a task against its owner's limits before it sees any data,
pays for it in full in one ledger over all tasks, sends at times that depend on the task only, and
saves every report before it leaves. A server that asks twice gets the same answer twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sfumato.accounting.ledger import Ledger
from sfumato.core.exact import is_finite_number
from sfumato.device.clock import DeviceClock
from sfumato.device.enrolment import enrol, ledger, plant
from sfumato.device.errands import Errand, Flushed
from sfumato.device.exchanges import Exchanges
from sfumato.device.journal import Joined, Journal
from sfumato.device.limits import Limits
from sfumato.device.living import Living
from sfumato.device.owner_log import lines_of
from sfumato.device.parts import Parts
from sfumato.device.taking_part import say_so
from sfumato.device.transport import Http, Transport, Unreachable
from sfumato.errors import ConfigurationError, InputError
from sfumato.randomness import Source, secure
from sfumato.wire.published import Published

__all__ = ["Device"]

LONGEST_FLUSH: Final = 30.0
"""The longest time of a flush in seconds, unless the app sets another."""


@dataclass
class Device:
    """One device: its journal, its owner's limits, and its transport.

    Examples
    --------
    >>> device = Device.open(":memory:", Limits(epsilon=2.0))
    >>> device.log()
    ['This device takes part in nothing. Epsilon 2 of 2 is left.']

    """

    journal: Journal
    limits: Limits
    transport: Transport = field(default_factory=Http)
    clock: Callable[[], float] = time.time
    rng: Source = field(default_factory=secure)

    def __post_init__(self) -> None:
        """Draw the secret of a new device, start its clock, and build the parts in its tasks."""
        plant(self.journal, self.rng)
        self._clock = DeviceClock(self.journal, self.clock)
        self.parts = Parts(self.journal)
        self._living = Living(self.journal, self.parts, self._clock)
        self._exchanges = Exchanges(self.journal, self.parts, self._clock, self.rng)
        self._took: dict[bytes, float] = {}

    @classmethod
    def open(
        cls,
        path: str | Path,
        limits: Limits,
        transport: Transport | None = None,
        clock: Callable[[], float] | None = None,
    ) -> Device:
        """Open the journal of a device, or start a new one."""
        journal = Journal(path)
        try:
            return cls(journal, limits, transport or Http(), clock or time.time)
        except BaseException:
            journal.close()
            raise

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()

    @property
    def now(self) -> float:
        """The time in seconds since 1970, which never goes back."""
        return self._clock.now

    @property
    def ledger(self) -> Ledger:
        """The payments for tasks, and the owner's limit."""
        return ledger(self.journal, self.limits)

    @property
    def left(self) -> float:
        """The epsilon that is left of the owner's limit."""
        return self.ledger.left

    # ---- taking part -----------------------------------------------------------------------

    def join(self, task: str | bytes | Published, tier: int = 0) -> str:
        """Join a task, given by its address or in its published form; return its id.

        All secrets of the task are drawn now, before any data, and the task is paid for in the same
        transaction. Joining again changes nothing.

        Parameters
        ----------
        task
            The published task, or its address.
        tier
            The window that the owner picks, if the task offers several: 0 is the task's own, and
            those of its ``tiers`` follow. It cannot be changed later.

        """
        published = self._published(task)
        if published.task_id in self.journal.task_ids():
            self.parts.renew(published)
        else:
            enrol(self.journal, self.parts, self.limits, published, tier, self.now)
        return published.task_id.hex()

    def _published(self, task: str | bytes | Published) -> Published:
        if isinstance(task, Published):
            task = task.encode()
        if isinstance(task, str):
            address, task = task, self._fetched(task)
            shuffler = Published.parse(task).addresses[0].rstrip("/")
            if shuffler and not address.startswith(f"{shuffler}/"):
                # Keys come from the shuffler, which gives the same ones to everybody.
                name = Published.parse(task).task_id
                task = self._fetched(f"{shuffler}/v1/tasks/{name.hex()}")
                if Published.parse(task).task_id != name:
                    raise InputError(f"the shuffler {shuffler[:80]!r} has sent another task.")
        return Published.parse(task)

    def _fetched(self, address: str) -> bytes:
        try:
            return self.transport.fetch(address)
        except Unreachable as error:
            raise InputError(f"the task cannot be fetched: {error}.") from error

    def observe(self, value: Any, task: str | None = None, *, strict: bool = False) -> None:
        """Observe the present value, which counts from this period on until the next value.

        A value that the task does not know is ignored, so that it never shows in what a device
        sends, or when. With ``strict`` it raises instead, which is meant for tests of an app.
        """
        self._living.observe(self._one(task), value, strict=strict)

    def flush(self, *, force: bool = False, limit: float = LONGEST_FLUSH) -> Flushed:
        """Send what is due; what cannot be sent now is kept, with a longer wait after each try.

        It returns whatever servers answer, and a problem of one task does not affect another: tasks
        have equal shares of the time, and of those that have used up theirs the slowest comes last
        the next time.

        Parameters
        ----------
        force
            Whether to retry at once what has failed recently.
        limit
            The time limit in seconds. A transport without its own limit (see ``Patient``) may take
            longer for an exchange that has begun.

        """
        if not is_finite_number(limit) or limit <= 0:
            raise InputError(f"limit is {limit!r}; a positive number of seconds is expected.")
        end = time.monotonic() + limit
        total = Flushed()
        self._clock.mark()
        tasks = sorted(self.journal.task_ids(), key=lambda task_id: self._took.get(task_id, 0.0))
        for index, task_id in enumerate(tasks):
            begun = time.monotonic()
            share = (end - begun) / (len(tasks) - index)
            errand = Errand(task_id, begun + share, force, self.transport)
            total += self._run(errand)
            self._took[task_id] = 0.0 if errand.left else time.monotonic() - begun
        if tasks:
            self.journal.settle_down()
        return total

    def _run(self, errand: Errand) -> Flushed:
        """Do all that is due for one task; any error becomes a sentence in the result."""
        total = Flushed()
        steps = (self._living.catch_up, self._say_so, self._exchanges.interview)
        for step in (*steps, self._exchanges.upload):
            try:
                total += step(errand)
            except Exception as error:  # noqa: BLE001 -- one task's trouble is no other's
                total += errand.trouble(error)
        return total

    def _say_so(self, errand: Errand) -> Flushed:
        """Say that the device takes part, if the task asks for it and it was not heard so far."""
        part = self.parts[errand.task_id]
        if part.stream.enrols and not part.was_ended(self.now):
            say_so(self.journal, part, self.journal.task(errand.task_id).ids, self.now)
        return Flushed()

    def leave(self, task: str | None = None) -> None:
        """Leave a task and erase everything about it; what was spent stays spent."""
        joined = self._one(task)
        with self.journal.transaction():
            self.journal.forget(joined.task_id, int(self.now))
        self.journal.settle_down()

    def erase(self) -> None:
        """Erase everything except the payments, so that nothing can be spent twice."""
        with self.journal.transaction():
            for joined in self.journal.tasks():
                self.journal.forget(joined.task_id, int(self.now))
        self.journal.settle_down()

    # ---- internal --------------------------------------------------------------------------

    def _one(self, task: str | None) -> Joined:
        if task is not None:
            try:
                task_id = bytes.fromhex(task)
            except ValueError:
                raise InputError(f"task is {task!r}; a task's id is expected.") from None
            return self.journal.task(task_id)
        tasks = self.journal.task_ids()
        if len(tasks) != 1:
            raise ConfigurationError(
                f"the device takes part in {len(tasks)} tasks; say which one by its id."
            )
        return self.journal.task(tasks[0])

    # ---- the owner's log -------------------------------------------------------------------

    def log(self) -> list[str]:
        """Return what this device has sent and spent, what that means, and how to stop."""
        lines = list(lines_of(self.journal, self.parts))
        left = f"Epsilon {self.left:g} of {self.limits.epsilon:g} is left."
        if not lines:
            return [f"This device takes part in nothing. {left}"]
        stop = "To stop, call leave() with the id of a task, or erase(): nothing more is sent then."
        return [*lines, f"{stop} Reports that have left stay blurred, wherever they are.", left]
