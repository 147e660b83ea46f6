"""What an app embeds: join a task, observe values, flush what is due.

The device keeps the promise. It checks a task against its owner's limits before it sees any data,
pays for it in full in one ledger over all tasks, sends at times that depend on the task only, and
saves what it has drawn before it leaves. A server that asks twice gets the same answer twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from sfumato.accounting.ledger import UNITS, Ledger, units
from sfumato.device.journal import Joined, Journal
from sfumato.device.keys import Chain, Root
from sfumato.device.transport import Http, Transport, Unreachable
from sfumato.errors import BudgetError, ConfigurationError, InputError
from sfumato.randomness import Source, secure
from sfumato.streams.flat import Flat, FlatDevice
from sfumato.streams.specs import protocol_of
from sfumato.streams.weave.device import Message, WeaveDevice
from sfumato.streams.weave.protocol import Weave
from sfumato.wire.published import Published
from sfumato.wire.reports import Batch, Layout, report_id
from sfumato.wire.sealing import OVERHEAD, seal

__all__ = ["Device", "Flushed", "Limits"]

FINAL: Final = ("stale", "invalid", "malformed", "unopened", "wrong_task", "unknown_key")
"""Reasons of refusal after which trying again is of no use."""
FIRST_WAIT: Final = 2.0
LONGEST_WAIT: Final = 3600.0
LATEST: Final = 1 << 40


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

    """

    epsilon: float
    kinds: frozenset[str] | None = None
    unsealed: bool = False

    def check(self, published: Published) -> None:
        """Raise BudgetError if a task is not allowed."""
        kind = published.spec["values"]["kind"]
        if self.kinds is not None and kind not in self.kinds:
            raise BudgetError(
                f"the task asks for values of kind {kind!r}; the owner allows "
                f"{', '.join(sorted(self.kinds)) or 'none'}."
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
    _protocols: dict[bytes, tuple[Published, Weave | Flat]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the secret of a new device; start the clock."""
        if self.journal.fact("root") is None:
            with self.journal.transaction():
                self.journal.set_fact("root", Root.fresh(bytes(self.rng.take(32))).encode())
        # Within a run time is monotonic; a restart may trust the wall clock, but not backwards.
        seen = float((self.journal.fact("now") or b"0").decode())
        self._offset = max(self.clock(), seen) - time.monotonic()
        self._patience: dict[bytes, float] = {}

    @classmethod
    def open(
        cls,
        path: str | Path,
        limits: Limits,
        transport: Transport | None = None,
        clock: Callable[[], float] | None = None,
    ) -> Device:
        """Open (or begin) the journal of a device."""
        return cls(Journal(path), limits, transport or Http(), clock or time.time)

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
        if any(joined.task_id == task_id for joined in self.journal.tasks()):
            return task_id.hex()
        protocol = protocol_of(published.spec)
        _check_numbers(published.spec)
        self.limits.check(published)
        paid = self.ledger.paid(task_id, protocol.epsilon)
        root = Root.decode(self.journal.fact("root") or b"")
        task_key, rest = root.take(task_id)
        ids, coins, chain = Chain.start(task_key)
        machine = protocol.device(coins)
        self._layout(published).fits(machine.message_bytes)
        state = machine.save()
        title = str(published.spec.get("title", ""))[:200]
        with self.journal.transaction():
            self.journal.set_fact("root", rest.encode())
            if len(paid.entries) > len(self.ledger.entries):
                self.journal.pay(task_id, units(protocol.epsilon), title, int(self.now))
            self.journal.add(Joined(task_id, published.encode(), state, ids, chain.key, None))
        self._protocols[task_id] = (published, protocol)
        return task_id.hex()

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
        _, protocol = self._protocol(joined)
        self._advance(joined)
        try:
            plain = _plain(value)
            if isinstance(protocol, Flat):
                protocol.moves(plain)
            else:
                protocol.values.encode(plain)
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
            done = self._upload(joined, force=force)
            total = Flushed(
                total.sent + done.sent,
                total.refused + done.refused,
                total.waiting + done.waiting,
                total.problem or done.problem,
            )
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

    def _protocol(self, joined: Joined) -> tuple[Published, Weave | Flat]:
        if joined.task_id not in self._protocols:
            published = Published.parse(joined.published)
            self._protocols[joined.task_id] = (published, protocol_of(published.spec))
        return self._protocols[joined.task_id]

    def _advance(self, joined: Joined) -> None:
        """Take in the periods that have ended, each in a transaction of its own."""
        published, protocol = self._protocol(joined)
        seconds = published.spec["period_seconds"]
        ended = int((self.now - published.spec["start"]) // seconds)
        last = min(ended, protocol.periods)
        state, chain, value = joined.state, Chain(joined.chain), self._value(protocol, joined)
        while state["period"] < last:
            if isinstance(protocol, Flat):
                machine: Any = FlatDevice.restore(protocol, state)
            else:
                machine = WeaveDevice.restore(protocol, state)
            coins, chain = chain.next()
            message = machine.observe(value, coins)
            state = machine.save()
            if isinstance(protocol, Flat):
                value = None  # a move is of one period
            with self.journal.transaction():
                self.journal.step(joined.task_id, state, chain.key)
                self.journal.set_fact("now", repr(self.now).encode())
                if isinstance(protocol, Flat):
                    self.journal.set_value(joined.task_id, None)
                if message is not None:
                    body = self._sealed(published, joined.ids, message)
                    self.journal.put(joined.task_id, message.period, body)

    @staticmethod
    def _value(protocol: Weave | Flat, joined: Joined) -> Any:
        if joined.value is not None or isinstance(protocol, Flat):
            return joined.value
        if protocol.values.always_there and not any(joined.state["value"]):
            # Before the first value: a public default, as silence would tell.
            return protocol.values.default
        return None

    @staticmethod
    def _layout(published: Published) -> Layout:
        return Layout(published.spec["payload"], OVERHEAD if published.keys else 0)

    @staticmethod
    def _sealed(published: Published, ids: bytes, message: Message) -> bytes:
        layout = Device._layout(published)
        content = layout.content(message.span, message.block, message.payload)
        name = report_id(ids, published.task_id, message.period)
        key = published.public_key
        if key is not None:
            content = seal(content, key, published.context, name, message.period)
        report = np.zeros(1, dtype=layout.report_dtype)
        report["id"], report["period"], report["sealed"] = name, message.period, content
        return report.tobytes()

    def _upload(self, joined: Joined, *, force: bool) -> Flushed:
        waiting = self.journal.waiting(joined.task_id)
        if not waiting:
            return Flushed()
        if not force and self.now < self._patience.get(joined.task_id, 0.0):
            return Flushed(waiting=len(waiting))
        published, _ = self._protocol(joined)
        layout = self._layout(published)
        bodies = b"".join(report.body for report in waiting)
        reports = np.frombuffer(bodies, dtype=layout.report_dtype)
        batch = Batch(published.task_id, published.key_id, reports).encode()
        try:
            outcome = self.transport.send(published.endpoint, batch)
        except Unreachable as error:
            with self.journal.transaction():
                self.journal.tried(joined.task_id)
            self._wait(joined.task_id, waiting[0].tries)
            return Flushed(waiting=len(waiting), problem=str(error))
        self._patience.pop(joined.task_id, None)
        sent = refused = kept = 0
        with self.journal.transaction():
            for place, report in enumerate(waiting):
                reason = outcome.refused.get(place)
                if reason is not None and reason not in FINAL:
                    kept += 1  # too early, or not now
                    continue
                sent, refused = sent + (reason is None), refused + (reason is not None)
                self.journal.settle(joined.task_id, report.period, reason or "sent", int(self.now))
        return Flushed(sent, refused, kept)

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
        for task_id, paid, title, at, left_at in payments:
            lines.append(
                f"{_day(at)}: joined {title!r} ({bytes(task_id).hex()[:12]}), which costs epsilon "
                f"{paid / UNITS:g} for everything it will ever send."
            )
            lines += list(self._told(bytes(task_id)))
            if left_at is not None:
                lines.append(f"{_day(left_at)}: left {title!r} and erased it; its cost stays.")
        return [*lines, left]

    def _told(self, task_id: bytes) -> Iterator[str]:
        for period, outcome, at in self.journal.outcomes(task_id):
            if outcome is None:
                yield f"  Period {period}: one blurred report waits to be sent."
            elif outcome == "sent":
                yield f"  Period {period}: one blurred report was sent on {_day(at or 0)}."
            else:
                yield f"  Period {period}: one blurred report was refused ({outcome})."


def _day(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))


def _check_numbers(spec: Mapping[str, Any]) -> None:
    """Refuse a task whose clock would stop the device later on."""
    for name, least in (("start", 0), ("period_seconds", 1), ("payload", 1)):
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
