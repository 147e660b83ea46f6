"""What an app embeds: join a task, observe values, flush what is due.

The device keeps the promise. It checks a task against its owner's limits before it sees any data,
pays for it in full in one ledger over all tasks, sends at times that depend on the task only, and
saves what it has drawn before it leaves. A server that asks twice gets the same answer twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sfumato.accounting.ledger import UNITS, Ledger, units
from sfumato.core.exact import is_finite_number
from sfumato.device.errands import Errand, Flushed
from sfumato.device.journal import Joined, Journal, Waiting
from sfumato.device.journal_values import plain_value
from sfumato.device.keys import FORMAT, Chain, Root
from sfumato.device.limits import Limits
from sfumato.device.transport import Http, Patient, Transport, Unreachable
from sfumato.errors import (
    ConfigurationError,
    InputError,
    SfumatoError,
)
from sfumato.randomness import Source, secure
from sfumato.wire import questions
from sfumato.wire.published import Published
from sfumato.wire.reports import Batch
from sfumato.wire.sqlite_tables import Damaged

if TYPE_CHECKING:  # an app that has not joined a task yet does not pay for any protocol
    from sfumato.device.part import Part

__all__ = ["Device"]

FINAL: Final = ("stale", "invalid", "malformed", "unopened", "wrong_task", "unknown_key")
"""Reasons of refusal after which trying again is of no use."""
FIRST_WAIT: Final = 2.0
LONGEST_WAIT: Final = 3600.0
LONGEST_FLUSH: Final = 30.0
"""Seconds that a flush takes, at most, unless the app says otherwise."""
TOGETHER: Final = 64
"""How many periods are lived through in one transaction."""
LARGEST_BATCH: Final = 1 << 20
MOST_UNTAKEN: Final = 64
"""How many answers may wait before further questions are left alone."""
ROOT: Final = "root 2"
ROOT_OF_FORMAT_1: Final = "root"
"""Facts of a journal: what the keys of its tasks hang on, today and in format 1 (see keys.py)."""
BOUNDED: Final = (
    "A copy of this journal that sees other values shows that they differ, and costs as much again."
)
UNBOUNDED: Final = (
    "Do not run a copy of this journal: if it sees other values, its reports together with these "
    "can show the values themselves."
)
BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
"""Another one after each start of the machine, where there is one."""


@dataclass
class Device:
    """One device: its journal, its limits, and how it talks to the world.

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
    _parts: dict[bytes, Part] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the secret of a new device; start the clock."""
        if self.journal.fact(ROOT) is None:
            self._plant()
        # Within a run time is monotonic; a restart may trust the wall clock, but not backwards.
        seen = self.journal.moment("now")
        self._offset = max(self.clock(), seen) - time.monotonic()
        self._boot = _boot() if self.clock is time.time else ""
        self._slept = self._trusted_sleep()
        self._opened = self.now
        self._awake: set[bytes] = set()
        self._patience: dict[bytes, float] = {}
        self._took: dict[bytes, float] = {}
        self._broken: dict[bytes, SfumatoError] = {}
        for joined in self.journal.tasks():  # so that no observation has to wait for it
            self._load(joined)

    def _plant(self) -> None:
        """Write the root that tasks hang on: a new one, or the one after that of format 1."""
        before = self.journal.fact(ROOT_OF_FORMAT_1)
        if before is None:
            if self.journal.payments():  # with another root, what was paid would be drawn anew
                raise Damaged(self.journal.path, "it has paid for tasks and has no root")
            root = Root.fresh(bytes(self.rng.take(32)))
        else:
            try:
                root = Root.decode(before).renewed(row[0] for row in self.journal.payments())
            except SfumatoError as error:
                raise Damaged(self.journal.path, str(error).removesuffix(".")) from error
        with self.journal.transaction():
            self.journal.set_fact(ROOT, root.encode())
            self.journal.forget_fact(ROOT_OF_FORMAT_1)
        if before is not None:
            self.journal.settle_down()

    def _trusted_sleep(self) -> float:
        """Return for how long nobody had the journal, as far as no wall clock is needed to know."""
        steady = self.journal.moment("steady")
        boot = (self.journal.fact("steady") or b"").partition(b" ")[0]
        same = bool(boot) and boot == self._boot.encode()
        return max(0.0, time.monotonic() - steady) if same else 0.0

    @classmethod
    def open(
        cls,
        path: str | Path,
        limits: Limits,
        transport: Transport | None = None,
        clock: Callable[[], float] | None = None,
    ) -> Device:
        """Open (or begin) the journal of a device."""
        journal = Journal(path)
        try:
            return cls(journal, limits, transport or Http(), clock or time.time)
        except BaseException:
            journal.close()
            raise

    def close(self) -> None:
        """Let go of the journal."""
        self.journal.close()

    @property
    def now(self) -> float:
        """Seconds since 1970, never going back."""
        if self.clock is time.time:
            return self._offset + time.monotonic()
        return self.clock()

    @property
    def ledger(self) -> Ledger:
        """What was spent on each task, and the owner's limit."""
        return Ledger.of(self.limits.epsilon, (row[:2] for row in self.journal.payments()))

    @property
    def left(self) -> float:
        """The epsilon that is left of the owner's limit."""
        return self.ledger.left

    # ---- taking part -----------------------------------------------------------------------

    def join(self, task: str | bytes | Published, tier: int = 0) -> str:
        """Take part in a task, given by its address or as it was published; return its id.

        Everything that must be drawn is drawn now, before any data; the task is paid for in the
        same transaction. Joining again changes nothing.

        Parameters
        ----------
        task
            The task, or its address.
        tier
            Which of the task's windows the owner picks, if it offers several: 0 is its own, and
            those of its ``tiers`` follow. It stays; another one costs nothing less.

        """
        published = self._published(task)
        task_id = published.task_id
        if task_id in self.journal.task_ids():
            self._renew(task_id, published)
            return task_id.hex()
        part = _part_of(published)
        guarantee = part.stream.offer(tier)
        self.limits.check(published, guarantee)
        paid = self.ledger.paid(task_id, guarantee.epsilon)
        root = Root.decode(self.journal.fact(ROOT) or b"")
        task_key, rest = root.take(task_id)
        ids, coins, chain = Chain.start(task_key)
        machine = part.stream.device(coins, tier)
        part.layout.fits(machine.message_bytes)
        title = str(published.spec.get("title", ""))[:200]
        with self.journal.transaction():
            self.journal.set_fact(ROOT, rest.encode())
            if len(paid.entries) > len(self.ledger.entries):
                price = units(guarantee.epsilon)
                self.journal.pay(task_id, price, title, int(self.now), guarantee.promise)
            self.journal.add(
                Joined(task_id, published.encode(), machine.save(), ids, chain.key, None)
            )
        self._parts[task_id] = part
        return task_id.hex()

    def _renew(self, task_id: bytes, published: Published) -> None:
        """Take over a task's new key and address; what waits stays as it was sealed."""
        part = self._part(task_id)
        before = part.published
        # The spec stays the one that was judged: 8 and 8.0 have one hash.
        published = replace(before, keys=published.keys, endpoint=published.endpoint)
        if published == before or bool(published.keys) != bool(before.keys):
            return
        with self.journal.transaction():
            self.journal.set_published(task_id, published.encode())
        self._parts[task_id] = replace(part, published=published)

    def _published(self, task: str | bytes | Published) -> Published:
        if isinstance(task, Published):
            task = task.encode()
        if isinstance(task, str):
            try:
                task = self.transport.fetch(task)
            except Unreachable as error:
                raise InputError(f"the task cannot be fetched: {error}.") from error
        return Published.parse(task)

    def observe(self, value: Any, task: str | None = None, *, strict: bool = False) -> None:
        """Take in the present value; it counts for this period and all after, until the next.

        A value that the task does not know is no news, so that what a device sends, and when, never
        tells of it; ``strict`` raises instead, for an app under test.
        """
        joined = self._one(task)
        try:
            part = self._part(joined.task_id)
            period = part.ended(self.now) + 1
            caught_up = self._advanced(joined, part)
            plain = plain_value(value)
            part.stream.check(plain)
        except SfumatoError:
            if strict:
                raise
            return
        with self.journal.transaction():
            if caught_up:
                self.journal.set_value(joined.task_id, plain)
                self.journal.drop_postponed(joined.task_id, period)
            elif period <= part.published.spec["periods"]:
                self.journal.postpone(joined.task_id, period, plain)
                if part.is_asked:  # it answers for the period that has ended last, and no other
                    self.journal.drop_overtaken(joined.task_id, period)

    def _advanced(self, joined: Joined, part: Part) -> bool:
        """Take in the periods that have ended if that is little work; return whether it is done.

        The clock of a part that is asked decides what its window affords, so only flush moves it:
        an app may observe just when something has changed, and that must not tell.
        """
        behind = part.ended(self.now) - joined.state["period"]
        if part.is_asked or (behind > 0 and not part.is_light(behind)):
            return False
        try:
            return self._live(joined, part, math.inf)
        except Exception:  # noqa: BLE001 -- whatever it is, the value counts, and flush tells of it
            return False

    def flush(self, *, force: bool = False, limit: float = LONGEST_FLUSH) -> Flushed:
        """Send what is due; what cannot be sent now waits, longer with each try.

        Whatever servers answer, this returns, and no task's trouble is another's: tasks have even
        shares of the time, and of those that have used theirs up the slowest comes last the next
        time.

        Parameters
        ----------
        force
            Whether to try again at once what has failed a moment ago.
        limit
            How many seconds it may take. A transport that cannot be told (see ``Patient``) may take
            longer for an exchange that has begun.

        """
        if not is_finite_number(limit) or limit <= 0:
            raise InputError(f"limit is {limit!r}; a positive number of seconds is expected.")
        end = time.monotonic() + limit
        total = Flushed()
        self._mark_time()
        tasks = sorted(self.journal.task_ids(), key=lambda task_id: self._took.get(task_id, 0.0))
        for place, task_id in enumerate(tasks):
            begun = time.monotonic()
            errand = Errand(task_id, begun + (end - begun) / (len(tasks) - place), force)
            total += self._run(errand)
            self._took[task_id] = 0.0 if errand.left else time.monotonic() - begun
        if tasks:
            self.journal.settle_down()
        return total

    def _run(self, errand: Errand) -> Flushed:
        """Do all that is due for one task; whatever goes wrong is a sentence."""
        total = Flushed()
        for step in (self._catch_up, self._interview, self._upload):
            try:
                total += step(errand)
            except Exception as error:  # noqa: BLE001 -- one task's trouble is no other's
                total += errand.trouble(error)
        return total

    def leave(self, task: str | None = None) -> None:
        """Stop taking part and erase all of the task; what was spent stays spent."""
        joined = self._one(task)
        with self.journal.transaction():
            self.journal.forget(joined.task_id, int(self.now))
        self.journal.settle_down()

    def erase(self) -> None:
        """Erase everything but what was spent, which must not be spent again."""
        with self.journal.transaction():
            for joined in self.journal.tasks():
                self.journal.forget(joined.task_id, int(self.now))
        self.journal.settle_down()

    # ---- inside ----------------------------------------------------------------------------

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

    def _load(self, joined: Joined) -> None:
        """Build a task's part, once in a run; one that cannot be built is told of by flush."""
        try:
            self._parts[joined.task_id] = self._restored(joined)
        except SfumatoError as error:
            self._broken[joined.task_id] = error

    def _restored(self, joined: Joined) -> Part:
        """Return a task's part, once the journal has proved to be of this very task."""
        try:
            published = Published.parse(joined.published)
            if published.task_id != joined.task_id:
                raise InputError("a task is not the one that was joined")
            part = _part_of(published)
            part.stream.restore(joined.state)
        except SfumatoError as error:
            raise Damaged(self.journal.path, str(error).removesuffix(".")) from error
        return part

    def _part(self, task_id: bytes) -> Part:
        if task_id in self._broken:
            raise self._broken[task_id].with_traceback(None)
        return self._parts[task_id]

    def _catch_up(self, errand: Errand) -> Flushed:
        """Take in the periods that have ended, as far as half of the time allows."""
        part = self._part(errand.task_id)
        joined = self.journal.task(errand.task_id)
        if self._live(joined, part, errand.end - errand.left / 2):
            self._awake.add(errand.task_id)
            return Flushed()
        return errand.trouble(Unreachable("there was no time left to live through all periods"))

    def _live(self, joined: Joined, part: Part, end: float) -> bool:
        """Live through the periods that have ended, a few in each transaction.

        Returns whether that was all of them before the time was up.
        """
        last = part.ended(self.now)
        passed = last - joined.state["period"]
        if passed <= 0:
            return True
        machine, chain, value = part.stream.restore(joined.state), joined.keys, joined.value
        later = self.journal.postponed(joined.task_id)
        unsure = passed - self._ticks(joined, part, passed) if part.is_asked else 0
        if unsure:
            machine.miss(unsure)
            chain = chain.after(unsure)
            missed = (later[period] for period in sorted(later) if period <= machine.period)
            value = [value, *missed][-1] if part.stream.lasts else None
        news = value
        while machine.period < last and time.monotonic() < end:
            reports = []
            for period in range(machine.period + 1, min(last, machine.period + TOGETHER) + 1):
                if period in later:
                    news = value = later[period]
                coins, chain = chain.next()
                message = machine.observe(news, coins)
                news = None  # what stays as it was is no news
                if not part.stream.lasts:
                    value = None
                if message is not None:
                    reports.append(part.report(joined.ids, message))
                if time.monotonic() >= end:
                    break
            with self.journal.transaction():
                self.journal.step(joined.task_id, machine.save(), chain.key)
                self._keep(joined.task_id, value, machine.period, later, last)
                for report in reports:
                    self.journal.put(joined.task_id, report)
        return machine.period >= last

    def _keep(
        self, task_id: bytes, value: Any, period: int, later: Mapping[int, Any], last: int
    ) -> None:
        """Write which value counts from here on; once all is taken in, it is the latest one."""
        if period == last:
            value = later.get(last + 1, value)
            period += 1
        self.journal.set_value(task_id, value)
        self.journal.drop_postponed(task_id, period)

    def _ticks(self, joined: Joined, part: Part, passed: int) -> int:
        """Return how many of the periods that have passed are surely over.

        A restart may trust the wall clock for one period; for more only without it. What has passed
        since this process has the journal is known, whether or not the app has observed anything.
        """
        if joined.task_id in self._awake:
            return passed
        ended = part.ended(self._opened) - joined.state["period"]
        asleep = max(0, min(ended, passed))
        counted = int(self._slept // part.published.spec["period_seconds"])
        return int(min(asleep, max(1, counted)) + passed - asleep)

    def _mark_time(self) -> None:
        """Write down what time it is; flush alone does, as a restart reckons with it."""
        with self.journal.transaction():
            self.journal.set_fact("now", repr(self.now).encode())
            if self._boot:
                self.journal.set_fact("steady", f"{self._boot} {time.monotonic()!r}".encode())

    def _within(self, errand: Errand) -> Transport:
        """Return the transport, told how long it may take."""
        if not errand.left:
            raise Unreachable("there was no time left for it")
        if isinstance(self.transport, Patient):
            return self.transport.within(errand.left)
        return self.transport

    def _interview(self, errand: Errand) -> Flushed:
        """Look whether anything is asked, and put the answer to what waits."""
        part = self._part(errand.task_id)
        if not part.is_asked:
            return Flushed()
        joined = self.journal.task(errand.task_id)
        machine = part.stream.restore(joined.state)
        patient = errand.force or self.now >= self._patience.get(joined.task_id, 0.0)
        if not patient or not part.expects(machine):
            return Flushed()
        if self.journal.count_waiting(joined.task_id) >= MOST_UNTAKEN:
            return Flushed()  # who does not take what was answered is not answered more
        try:
            said = self._within(errand).fetch(questions.address(part.published.endpoint))
        except Unreachable as error:
            self._wait(joined.task_id, 0)
            return errand.trouble(error)
        question = questions.Question.parse(said)
        if question is None:
            return Flushed()
        message = part.answer(machine, question, joined.keys)
        state = machine.save()
        if state != joined.state:
            answers = [] if message is None else [part.report(joined.ids, message)]
            with self.journal.transaction():
                self.journal.step(joined.task_id, state, joined.keys.key)
                for answer in answers:
                    self.journal.put(joined.task_id, answer)
        return Flushed()

    def _upload(self, errand: Errand) -> Flushed:
        waiting = self.journal.waiting(errand.task_id)
        if not waiting:
            return Flushed()
        if not errand.force and self.now < self._patience.get(errand.task_id, 0.0):
            return Flushed(waiting=len(waiting))
        part = self._part(errand.task_id)
        total = Flushed()
        for key_id, group in groupby(sorted(waiting, key=_key_id), key=_key_id):
            for batch in _batches(list(group)):
                total += self._send(errand, part, key_id, batch)
                if total.problems:  # the rest waits with it
                    done = total.sent + total.refused
                    return replace(total, waiting=len(waiting) - done)
        return total

    def _send(self, errand: Errand, part: Part, key_id: int, waiting: list[Waiting]) -> Flushed:
        """Send what waits under one key."""
        published, task_id = part.published, part.published.task_id
        form = part.layout.report_dtype
        if any(report.body is None or len(report.body) != form.itemsize for report in waiting):
            raise Damaged(self.journal.path, "a report that waits is not whole")
        reports = np.frombuffer(b"".join(report.body for report in waiting), dtype=form)
        batch = Batch(task_id, key_id, reports).encode()
        try:
            outcome = self._within(errand).send(published.endpoint, batch)
        except Unreachable as error:
            with self.journal.transaction():
                self.journal.tried(task_id)
            self._wait(task_id, waiting[0].tries)
            return errand.trouble(error, len(waiting))
        self._patience.pop(task_id, None)
        sent = refused = kept = 0
        with self.journal.transaction():
            for place, report in enumerate(waiting):
                reason = outcome.refused.get(place)
                if reason is not None and reason not in FINAL:
                    kept += 1  # too early, or not now
                    continue
                sent, refused = sent + (reason is None), refused + (reason is not None)
                self.journal.settle(task_id, report, reason or "sent", int(self.now))
        if outcome.key_id not in (None, published.key_id):
            self._pick_up(errand, published)
        return Flushed(sent, refused, kept)

    def _pick_up(self, errand: Errand, published: Published) -> None:
        """Ask for a task's new key; it seals what is still to come, and nothing else changes."""
        try:
            said = self._within(errand).fetch(published.endpoint.rpartition("/")[0])
            found = Published.parse(said)
        except (Unreachable, SfumatoError):
            return  # until the next time
        if found.task_id == published.task_id:
            self._renew(found.task_id, replace(found, endpoint=published.endpoint))

    def _wait(self, task_id: bytes, tries: int) -> None:
        """Wait twice as long after each try, give or take a half drawn for this alone."""
        longest = min(FIRST_WAIT * 2 ** min(tries, 16), LONGEST_WAIT)
        share = int.from_bytes(self.rng.take(4), "little") / 2**32
        self._patience[task_id] = self.now + longest * (0.5 + share)

    # ---- telling the owner -----------------------------------------------------------------

    def log(self) -> list[str]:
        """Return what this device has sent and spent, in sentences."""
        left = f"Epsilon {self.left:g} of {self.limits.epsilon:g} is left."
        payments = self.journal.payments()
        if not payments:
            return [f"This device takes part in nothing. {left}"]
        lines = []
        joined = {task.task_id: task for task in self.journal.tasks()}
        for task_id, paid, title, at, left_at, promise in payments:
            lines.append(
                f"{_day(at)}: joined {title!r} ({bytes(task_id).hex()[:12]}), which costs epsilon "
                f"{paid / UNITS:g} {promise}."
            )
            if bytes(task_id) in self._parts and bytes(task_id) in joined:
                lines.append(self._of_copies(joined[bytes(task_id)]))
            lines += list(self._told(bytes(task_id)))
            if left_at is not None:
                lines.append(f"{_day(left_at)}: left {title!r} and erased it; its cost stays.")
        return [*lines, left]

    def _of_copies(self, joined: Joined) -> str:
        machine = self._part(joined.task_id).stream.restore(joined.state)
        bounded = joined.format == FORMAT and machine.bounds_copies
        return f"  {BOUNDED if bounded else UNBOUNDED}"

    def _told(self, task_id: bytes) -> Iterator[str]:
        for period, outcome, at in self.journal.outcomes(task_id):
            if outcome is None:
                yield f"  Period {period}: one blurred report waits to be sent."
            elif outcome == "sent":
                yield f"  Period {period}: one blurred report was sent on {_day(at or 0)}."
            else:
                yield f"  Period {period}: one blurred report was refused ({outcome})."


def _part_of(published: Published) -> Part:
    from sfumato.device.part import Part  # noqa: PLC0415 -- see above

    return Part.of(published)


def _key_id(report: Waiting) -> int:
    return report.key_id


def _batches(waiting: list[Waiting]) -> Iterator[list[Waiting]]:
    """Yield the reports in batches that a collector takes at once."""
    together = max(1, LARGEST_BATCH // len(waiting[0].body))
    for start in range(0, len(waiting), together):
        yield waiting[start : start + together]


def _boot() -> str:
    try:
        return BOOT.read_text().strip()
    except OSError:
        return ""


def _day(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))
