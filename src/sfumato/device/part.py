"""A device's part in one task: its stream, its calendar, and the form of its reports.

It is imported when a task is joined, so that an app without tasks does not import any stream.
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
"""The most that `observe` processes at once, in a few milliseconds; the rest is left to `flush`."""


@dataclass(frozen=True)
class Part:
    """A joined task, with its stream."""

    published: Published
    """The task as it was published."""
    stream: Stream
    """The stream of the task."""

    @classmethod
    def of(cls, published: Published) -> Part:
        """Return the part for a task; raise ConfigurationError if it is wrong or too costly."""
        return cls(published, admitted(published.spec))

    @property
    def is_asked(self) -> bool:
        """Whether devices answer questions; if not, they send at times that the task determines."""
        return self.stream.rounds > 0

    @cached_property
    def layout(self) -> Layout:
        """The sizes of the task's reports."""
        return Layout(self.published.spec["payload"], OVERHEAD if self.published.keys else 0)

    def ended(self, now: float) -> int:
        """Return the number of the task's periods that have ended by a time."""
        spec = self.published.spec
        ended = int((now - spec["start"]) // spec["period_seconds"])
        periods: int = spec["periods"]
        return max(0, min(ended, periods))

    def is_light(self, behind: int) -> bool:
        """Return whether ``behind`` periods can be processed while an app waits."""
        return behind <= FEW_PERIODS and self.stream.work <= FEW_ITEMS

    def expects(self, machine: StreamDevice) -> bool:
        """Return whether there may be a question that the device has not seen yet."""
        return bool(machine.period and machine.round + 1 < self.stream.rounds)

    def answer(self, machine: StreamDevice, question: Question, chain: Chain) -> Message | None:
        """Let a device answer a question; return the answer, or None for silence.

        A question about another period, of a round that was seen before, or of a round that the
        task does not have, changes nothing. Raises MismatchError if the task does not allow the
        question.
        """
        new = machine.round < question.round < self.stream.rounds
        if question.period != machine.period or not new:
            return None
        mechanism = self.stream.asked(question.mechanism)
        ask = Ask(mechanism, question.probability, question.tier, question.round)
        return machine.answer(ask, coins_for(question, chain))

    def report(self, ids: bytes, message: Message) -> Waiting:
        """Return a message as a finished report, with an id and, if the task has a key, sealed."""
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
    """Return a period's coins for a question.

    Different questions have independent coins: a copy of a device that is asked another question in
    the same round pays for it, but never reveals the coins of the first.
    """
    return chain.coins("ask " + hashlib.sha256(question.digest).hexdigest())
