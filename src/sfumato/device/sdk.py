"""What an app embeds: join a task, observe values, flush what is due.

The device keeps the promise. It checks a task against its owner's limits before it sees any data,
pays for it in full in one ledger over all tasks, sends at times that depend on the task only, and
saves what it has drawn before it leaves. A server that asks twice gets the same answer twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sfumato.accounting.ledger import UNITS, Ledger, units
from sfumato.device.journal import Joined, Journal, Waiting
from sfumato.device.keys import FORMAT, Chain, Root
from sfumato.device.transport import Http, Transport, Unreachable
from sfumato.errors import BudgetError, ConfigurationError, InputError, SfumatoError
from sfumato.randomness import Source, secure
from sfumato.wire import questions
from sfumato.wire.published import Published
from sfumato.wire.reports import Batch, Layout, report_id
from sfumato.wire.sealing import OVERHEAD, seal
from sfumato.wire.tables import Damaged

if TYPE_CHECKING:  # an app that has not joined a task yet does not pay for any protocol
    from sfumato.device.parts import Asked, Message, Part, Standing

__all__ = ["Device", "Flushed", "Limits"]

FINAL: Final = ("stale", "invalid", "malformed", "unopened", "wrong_task", "unknown_key")
"""Reasons of refusal after which trying again is of no use."""
FIRST_WAIT: Final = 2.0
LONGEST_WAIT: Final = 3600.0
LATEST: Final = 1 << 40
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


@dataclass(frozen=True)
class Limits:
    """What the owner of a device allows.

    Parameters
    ----------
    epsilon
        The total over all tasks, for ever.
    kinds
        Which kinds of values may be asked for; all, by default.
    unsealed
        Whether reports may travel without a seal.
    windows
        Whether tasks may be joined that have no horizon. They promise their epsilon for any so many
        consecutive periods, not for ever; so then does the total, for any stretch of time that no
        task's window is shorter than.

    """

    epsilon: float
    kinds: frozenset[str] | None = None
    unsealed: bool = False
    windows: bool = False

    def check(self, published: Published) -> None:
        """Raise BudgetError if a task is not allowed."""
        kind = published.spec["values"]["kind"]
        if self.kinds is not None and kind not in self.kinds:
            raise BudgetError(
                f"the task asks for values of kind {kind!r}; the owner allows "
                f"{', '.join(sorted(self.kinds)) or 'none'}."
            )
        if published.spec["kind"] == "window" and not self.windows:
            raise BudgetError(
                "the task promises its epsilon for a window of time only; the owner asks for one "
                "that promises it for ever."
            )
        if not published.keys and not self.unsealed:
            raise BudgetError("the task has no key to seal reports with; the owner asks for one.")


@dataclass(frozen=True)
class Flushed:
    """What became of the reports that were due."""

    sent: int = 0
    refused: int = 0
    waiting: int = 0
    problem: str = ""

    def __add__(self, other: Flushed) -> Flushed:
        return Flushed(
            self.sent + other.sent,
            self.refused + other.refused,
            self.waiting + other.waiting,
            self.problem or other.problem,
        )


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
    _parts: dict[bytes, tuple[Published, Part]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the secret of a new device; start the clock."""
        if self.journal.fact(ROOT) is None:
            self._plant()
        # Within a run time is monotonic; a restart may trust the wall clock, but not backwards.
        seen = self.journal.moment("now")
        self._offset = max(self.clock(), seen) - time.monotonic()
        self._boot = _boot() if self.clock is time.time else ""
        self._slept = self._trusted_sleep()
        self._awake: set[bytes] = set()
        self._patience: dict[bytes, float] = {}

    def _plant(self) -> None:
        """Write the root that tasks hang on: a new one, or the one after that of format 1."""
        before = self.journal.fact(ROOT_OF_FORMAT_1)
        if before is None:
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
        """What was spent."""
        return Ledger.of(self.limits.epsilon, (row[:2] for row in self.journal.payments()))

    @property
    def left(self) -> float:
        """The epsilon that is left of the owner's limit."""
        return self.ledger.left

    # ---- taking part -----------------------------------------------------------------------

    def join(self, task: str | bytes | Published) -> str:
        """Take part in a task, given by its address or as it was published; return its id.

        Everything that must be drawn is drawn now, before any data; the task is paid for in the
        same transaction. Joining again changes nothing.
        """
        published = self._published(task)
        task_id = published.task_id
        for joined in self.journal.tasks():
            if joined.task_id == task_id:
                self._renew(joined, published)
                return task_id.hex()
        _check_numbers(published.spec)
        part = _part_of(published)
        self.limits.check(published)
        paid = self.ledger.paid(task_id, part.epsilon)
        root = Root.decode(self.journal.fact(ROOT) or b"")
        task_key, rest = root.take(task_id)
        ids, coins, chain = Chain.start(task_key)
        state, size = part.begin(coins)
        self._layout(published).fits(size)
        title = str(published.spec.get("title", ""))[:200]
        with self.journal.transaction():
            self.journal.set_fact(ROOT, rest.encode())
            if len(paid.entries) > len(self.ledger.entries):
                price = units(part.epsilon)
                self.journal.pay(task_id, price, title, int(self.now), part.promise)
            self.journal.add(Joined(task_id, published.encode(), state, ids, chain.key, None))
        self._parts[task_id] = (published, part)
        return task_id.hex()

    def _renew(self, joined: Joined, published: Published) -> None:
        """Take over a task's new key and address; what waits stays as it was sealed."""
        before, part = self._part(joined)
        if published == before or bool(published.keys) != bool(before.keys):
            return
        with self.journal.transaction():
            self.journal.set_published(joined.task_id, published.encode())
        self._parts[joined.task_id] = (published, part)

    def _published(self, task: str | bytes | Published) -> Published:
        if isinstance(task, Published):
            return task
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
        _, part = self._part(joined)
        self._advance(joined)
        try:
            plain = _plain(value)
            part.check(plain)
        except InputError:
            if strict:
                raise
            return
        with self.journal.transaction():
            self.journal.set_value(joined.task_id, plain)

    def flush(self, *, force: bool = False) -> Flushed:
        """Send what is due; what cannot be sent now waits, longer with each try."""
        total = Flushed()
        tasks = self.journal.tasks()
        for joined in tasks:
            self._advance(joined)
            total += self._interview(joined, force=force)
            total += self._upload(joined, force=force)
        if tasks:
            self.journal.settle_down()
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
        joined = self.journal.tasks()
        if len(joined) != 1:
            raise ConfigurationError(
                f"the device takes part in {len(joined)} tasks; say which one by its id."
            )
        return joined[0]

    def _part(self, joined: Joined) -> tuple[Published, Part]:
        if joined.task_id not in self._parts:
            self._parts[joined.task_id] = self._restored(joined)
        return self._parts[joined.task_id]

    def _restored(self, joined: Joined) -> tuple[Published, Part]:
        """Return a task's part, once the journal has proved to be of this very task."""
        try:
            published = Published.parse(joined.published)
            if published.task_id != joined.task_id:
                raise InputError("a task is not the one that was joined")
            _check_numbers(published.spec)
            part = _part_of(published)
            part.check_state(joined.state)
        except SfumatoError as error:
            raise Damaged(self.journal.path, str(error).removesuffix(".")) from error
        return published, part

    def _advance(self, joined: Joined) -> None:
        """Take in the periods that have ended."""
        published, part = self._part(joined)
        ended = int((self.now - published.spec["start"]) // published.spec["period_seconds"])
        last = max(0, min(ended, published.spec["periods"]))
        if part.is_asked:
            self._move(joined, published, part, last)
        else:
            self._live(joined, published, part, last)

    def _live(self, joined: Joined, published: Published, part: Standing, last: int) -> None:
        """Live through the periods up to the last that ended, each in a transaction of its own."""
        state, chain = joined.state, joined.keys
        value = part.present(joined.value, state)
        while state["period"] < last:
            coins, chain = chain.next()
            state, message = part.step(state, value, coins)
            with self.journal.transaction():
                self._save(joined, state, chain)
                if not part.lasts:
                    value = None
                    self.journal.set_value(joined.task_id, None)
                if message is not None:
                    self.journal.put(joined.task_id, self._report(published, joined.ids, message))

    def _move(self, joined: Joined, published: Published, part: Asked, last: int) -> None:
        """Go on to the last period that has ended, with the value that was held then."""
        passed = last - joined.state["period"]
        if passed > 0:
            ticks = passed
            if joined.task_id not in self._awake:
                # A restart may trust the wall clock for one period; more only without it.
                ticks = min(passed, max(1, int(self._slept // published.spec["period_seconds"])))
            state = part.moved(joined.state, last, joined.value, ticks)
            with self.journal.transaction():
                self._save(joined, state, joined.keys.after(passed))
        self._awake.add(joined.task_id)

    def _save(self, joined: Joined, state: dict[str, Any], chain: Chain) -> None:
        self.journal.step(joined.task_id, state, chain.key)
        self.journal.set_fact("now", repr(self.now).encode())
        if self._boot:
            self.journal.set_fact("steady", f"{self._boot} {time.monotonic()!r}".encode())

    def _interview(self, joined: Joined, *, force: bool) -> Flushed:
        """Look whether anything is asked, and put the answer to what waits."""
        published, part = self._part(joined)
        if not part.is_asked:
            return Flushed()
        joined = self.journal.task(joined.task_id)
        patient = force or self.now >= self._patience.get(joined.task_id, 0.0)
        if not patient or not part.expects(joined.state):
            return Flushed()
        try:
            said = self.transport.fetch(questions.address(published.endpoint))
            question = questions.Question.parse(said)
            if question is None:
                return Flushed()
            chain = joined.keys
            state, message = part.answer(joined.state, question, chain)
        except Unreachable as error:
            self._wait(joined.task_id, 0)
            return Flushed(problem=str(error))
        except SfumatoError as error:  # whatever a server asks, an app that flushes is not stopped
            return Flushed(problem=str(error))
        if state != joined.state:
            with self.journal.transaction():
                self._save(joined, state, chain)
                if message is not None:
                    self.journal.put(joined.task_id, self._report(published, joined.ids, message))
        return Flushed()

    @staticmethod
    def _layout(published: Published) -> Layout:
        return Layout(published.spec["payload"], OVERHEAD if published.keys else 0)

    @staticmethod
    def _report(published: Published, ids: bytes, message: Message) -> Waiting:
        layout = Device._layout(published)
        content = layout.content(message.span, message.block, message.payload)
        number = message.block if published.spec["kind"] == "window" else 0
        name = report_id(ids, published.task_id, message.period, number)
        key = published.public_key
        if key is not None:
            content = seal(content, key, published.context, name, message.period)
        report = np.zeros(1, dtype=layout.report_dtype)
        report["id"], report["period"], report["sealed"] = name, message.period, content
        return Waiting(message.period, number, published.key_id, report.tobytes())

    def _upload(self, joined: Joined, *, force: bool) -> Flushed:
        waiting = self.journal.waiting(joined.task_id)
        if not waiting:
            return Flushed()
        if not force and self.now < self._patience.get(joined.task_id, 0.0):
            return Flushed(waiting=len(waiting))
        published, _ = self._part(joined)
        total = Flushed()
        for key_id, group in groupby(sorted(waiting, key=_key_id), key=_key_id):
            total += self._send(published, key_id, list(group))
        return total

    def _send(self, published: Published, key_id: int, waiting: list[Waiting]) -> Flushed:
        """Send what waits under one key."""
        task_id = published.task_id
        form = self._layout(published).report_dtype
        if any(report.body is None or len(report.body) != form.itemsize for report in waiting):
            raise Damaged(self.journal.path, "a report that waits is not whole")
        reports = np.frombuffer(b"".join(report.body for report in waiting), dtype=form)
        batch = Batch(task_id, key_id, reports).encode()
        try:
            outcome = self.transport.send(published.endpoint, batch)
        except Unreachable as error:
            with self.journal.transaction():
                self.journal.tried(task_id)
            self._wait(task_id, waiting[0].tries)
            return Flushed(waiting=len(waiting), problem=str(error))
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
            self._pick_up(published)
        return Flushed(sent, refused, kept)

    def _pick_up(self, published: Published) -> None:
        """Ask for a task's new key; it seals what is still to come, and nothing else changes."""
        try:
            found = Published.parse(self.transport.fetch(published.endpoint.rpartition("/")[0]))
        except (Unreachable, SfumatoError):
            return  # until the next time
        if found.task_id == published.task_id:
            joined = self.journal.task(published.task_id)
            self._renew(joined, replace(found, endpoint=published.endpoint))

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
            if bytes(task_id) in joined:
                lines.append(self._of_copies(joined[bytes(task_id)]))
            lines += list(self._told(bytes(task_id)))
            if left_at is not None:
                lines.append(f"{_day(left_at)}: left {title!r} and erased it; its cost stays.")
        return [*lines, left]

    def _of_copies(self, joined: Joined) -> str:
        _, part = self._part(joined)
        bounded = joined.format == FORMAT and part.bounds_copies(joined.state)
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
    from sfumato.device.parts import part_of  # noqa: PLC0415 -- see above

    return part_of(published)


def _key_id(report: Waiting) -> int:
    return report.key_id


def _boot() -> str:
    try:
        return BOOT.read_text().strip()
    except OSError:
        return ""


def _day(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))


def _check_numbers(spec: Mapping[str, Any]) -> None:
    """Refuse a task whose clock would stop the device later on."""
    for name, least in (("start", 0), ("period_seconds", 1), ("payload", 1), ("periods", 1)):
        value = spec.get(name)
        if type(value) is not int or not least <= value <= LATEST:
            raise ConfigurationError(
                f"{name} is {str(value)[:40]!r}; a whole number in {least}..{LATEST} is expected."
            )


def _plain(value: Any) -> Any:
    """Return a value as JSON can keep it."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise InputError(f"value is {value!r}; plain values are expected.")
