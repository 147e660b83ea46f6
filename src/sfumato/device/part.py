"""A device's part in one task: its stream, its calendar, and how its reports are written.

Loaded when a task is joined, so that an app that has joined none does not pay for any stream.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from sfumato.core.stream import Ask, Message, Stream, StreamDevice
from sfumato.device.door import admitted
from sfumato.device.journal import Waiting
from sfumato.device.keys import Chain
from sfumato.randomness import Source
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import Layout, report_id
from sfumato.wire.sealing import OVERHEAD, seal

__all__ = ["Part"]

FEW_PERIODS: Final = 16
FEW_ITEMS: Final = 256
"""What `observe` may go through at once, in a few milliseconds; anything more waits for `flush`."""


@dataclass(frozen=True)
class Part:
    """What a device knows of a task that it takes part in.

    Parameters
    ----------
    published
        The task as it was published.
    stream
        What it runs.

    """

    published: Published
    stream: Stream

    @classmethod
    def of(cls, published: Published) -> Part:
        """Return the part that a task asks for; raise if it makes no sense or costs too much."""
        return cls(published, admitted(published.spec))

    @property
    def is_asked(self) -> bool:
        """Whether a device answers questions; else it sends at times that follow from the task."""
        return self.stream.rounds > 0

    @cached_property
    def layout(self) -> Layout:
        """The sizes of its reports."""
        return Layout(self.published.spec["payload"], OVERHEAD if self.published.keys else 0)

    def ended(self, now: float) -> int:
        """Return how many periods of the task have ended by a time."""
        spec = self.published.spec
        ended = int((now - spec["start"]) // spec["period_seconds"])
        periods: int = spec["periods"]
        return max(0, min(ended, periods))

    def is_light(self, behind: int) -> bool:
        """Return whether so many periods can be lived through while an app waits."""
        return behind <= FEW_PERIODS and self.stream.work <= FEW_ITEMS

    def expects(self, machine: StreamDevice) -> bool:
        """Return whether there may be a question that was not looked at."""
        return bool(machine.period and machine.round + 1 < self.stream.rounds)

    def answer(self, machine: StreamDevice, question: Question, chain: Chain) -> Message | None:
        """Let a device answer a question; return the answer if there is one.

        A question of another period, of a round that was looked at, or of one that the task does
        not have, changes nothing. Raises if it is asked in a way that the task does not allow.
        """
        new = machine.round < question.round < self.stream.rounds
        if question.period != machine.period or not new:
            return None
        mechanism = self.stream.asked(question.mechanism)
        ask = Ask(mechanism, question.probability, question.tier, question.round)
        return machine.answer(ask, coins_for(question, chain))

    def report(self, ids: bytes, message: Message) -> Waiting:
        """Return a message as it is sent: under a name of its own, and sealed."""
        span, period, part = message.place
        content = self.layout.content(span, part, message.payload)
        number = part if self.is_asked else 0
        published = self.published
        name = report_id(ids, published.task_id, period, number)
        key = published.public_key
        if key is not None:
            content = seal(content, key, published.context, name, period)
        report = np.zeros(1, dtype=self.layout.report_dtype)
        report["id"], report["period"], report["sealed"] = name, period, content
        return Waiting(period, number, published.key_id, report.tobytes())


def coins_for(question: Question, chain: Chain) -> Source:
    """Return the coins that a period has for a question.

    Other questions get other coins: a copy of a device that is asked another one in the same place
    pays for it, but never gives away its coins.
    """
    return chain.coins("ask " + hashlib.sha256(question.digest).hexdigest())
