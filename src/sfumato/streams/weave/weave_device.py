"""The device's half of Weave: a small state machine that looks, randomizes and sends.

It observes one value in each period and returns the message that is due, if any. When it sends
depends on its thread only, never on the values. After as many changes as the task allows, the
observed value is frozen for difference threads; snapshots show the value as it is.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sfumato.core.stream import Message, Place, StreamDevice
from sfumato.errors import InputError, MismatchError
from sfumato.mechanisms.sparse.entry_streams import EntryStream
from sfumato.randomness import Source
from sfumato.streams.weave import saved
from sfumato.streams.weave.threads import SNAPSHOT, Thread

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["WeaveDevice"]


@dataclass
class WeaveDevice(StreamDevice):
    """One device on one thread.

    Parameters
    ----------
    protocol
        The stream.
    thread
        The thread, which is drawn before any data.
    stream
        The secret counters of its difference mechanism; None on a snapshot thread.
    period
        The last period that the device has lived through.
    value
        The entries as difference threads see them, frozen after the last allowed change.
    sent
        The entries at the last look.
    used
        The number of changes so far.
    frozen
        Whether further changes are ignored.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> from sfumato.streams.kinds import Binary
    >>> from sfumato.streams.weave import Weave
    >>> protocol = Weave(Binary(), 4, 2, 1.0, spans=(1,), shares=(1.0,))
    >>> device = protocol.device(seeded(1))
    >>> messages = [device.observe(bit, seeded(t)) for t, bit in enumerate((0, 1, 1, 0))]
    >>> [message.place.period for message in messages]
    [1, 2, 3, 4]

    """

    protocol: Weave
    thread: Thread
    stream: EntryStream | None
    period: int = 0
    value: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    used: int = 0
    frozen: bool = False

    @classmethod
    def join(cls, protocol: Weave, rng: Source) -> Self:
        """Draw a thread and the secrets of its mechanism, before any data."""
        return cls.on(protocol, protocol.draw(rng), rng)

    @classmethod
    def on(cls, protocol: Weave, thread: Thread, rng: Source) -> Self:
        """Return a new device on a given thread."""
        empty = [0] * protocol.values.width
        stream = None
        if not thread.is_snapshot:
            stream = protocol.strand(thread).mechanism.stream(rng)
        return cls(protocol, thread, stream, value=empty, sent=list(empty))

    @property
    def message_bytes(self) -> int:
        """The number of bytes of each message."""
        if self.thread.is_snapshot:
            return self.protocol.snapshots[self.thread.block].mechanism.report_bytes
        return self.protocol.difference(self.thread).dtype.itemsize

    @property
    def bounds_copies(self) -> bool:
        """Whether copies are bounded: for snapshots only, as other threads use secret counts."""
        return self.thread.is_snapshot

    def observe(self, value: Any, coins: Source) -> Message | None:
        """Observe the value of the next period; return the message that is due, if any.

        None means no news: the device repeats its last value or, before the first one, the public
        default of its kind. A value that the task does not know is no news either, so that the form
        and time of messages do not change. Save the state before a message leaves: after a restore
        a message may be lost, but none is sent twice.
        """
        if self.period == self.protocol.periods:
            raise MismatchError(f"all {self.period} periods have been observed; join a new task.")
        news = self._entries(value)
        self.period += 1
        if news is not None and self.thread.is_snapshot:
            self.value = news
        elif news is not None:
            self._follow(news)
        if not self.thread.looks_at(self.period):
            return None
        return self._snapshot(coins) if self.thread.is_snapshot else self._difference(coins)

    def _entries(self, value: Any) -> list[int] | None:
        """Return the entries of a value, or of the default before the first; None for no news."""
        values = self.protocol.values
        if value is not None:
            with suppress(InputError):
                return list(values.encode(value).tolist())
        if values.always_there and not any(self.value):
            return list(values.encode(values.default).tolist())
        return None

    def skip(self, periods: int, rng: Source) -> list[Message]:
        """Live through ``periods`` periods without a value; return the messages that were due."""
        due = (self.observe(None, rng) for _ in range(periods))
        return [message for message in due if message is not None]

    def _follow(self, seen: list[int]) -> None:
        """Store a new value, unless it would exceed the number of changes."""
        moved = sum(a != b for a, b in zip(seen, self.value, strict=True))
        if not self.frozen and self.used + moved > self.protocol.changes:
            self.frozen = True
        if not self.frozen:
            self.used += moved
            self.value = seen

    def _snapshot(self, rng: Source) -> Message:
        block = self.thread.block
        look = self.protocol.snapshots[block]
        bits = np.array([self.value], dtype=np.int8)[:, self.protocol.values.blocks[block]]
        report = look.mechanism.randomize(look.encode(bits), rng.bound(bits[0].tolist()))
        return Message(Place(SNAPSHOT, self.period, block), report.tobytes())

    def _difference(self, rng: Source) -> Message | None:
        before, self.sent = self.sent, list(self.value)
        if self.stream is None or (self.protocol.anchored and self.period == self.thread.first):
            return None
        moves = [now - then for now, then in zip(self.value, before, strict=True)]
        coins = rng.bound(moves).coins()
        signs = [self.stream.observe(move, coins) for move in moves]
        message = self.protocol.difference(self.thread).write(np.array([signs], dtype=np.int8))
        return Message(Place(self.thread.span, self.period), message.tobytes())

    # ---- saving ----------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return the state as plain data, which is as secret as the stream itself."""
        return {
            "design": self.protocol.fingerprint,
            "thread": [self.thread.span, self.thread.offset, self.thread.block],
            "stream": None if self.stream is None else list(self.stream.save()),
            "period": self.period,
            "value": list(self.value),
            "sent": list(self.sent),
            "used": self.used,
            "frozen": self.frozen,
        }

    @classmethod
    def restore(cls, protocol: Weave, state: Any) -> Self:
        """Return the device of a saved state; MismatchError if no device can have saved it."""
        saved.check(protocol, state)
        thread = Thread(*state["thread"])
        stream: EntryStream | None = None
        if state["stream"] is not None:
            stream = protocol.strand(thread).mechanism.resumed(state["stream"])
        return cls(
            protocol,
            thread,
            stream,
            state["period"],
            list(state["value"]),
            list(state["sent"]),
            state["used"],
            state["frozen"],
        )
