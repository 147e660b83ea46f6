"""A device's part in one task: its stream, its calendar, and the form of its reports.

It is imported when a task is joined, so that an app without tasks does not import any stream.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from sfumato.core.stream import Ask, Message, Stream, StreamDevice
from sfumato.device.door import admitted, refuse_false_promise
from sfumato.device.journal import Waiting
from sfumato.device.keys import Chain
from sfumato.randomness import Source
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reports import ID_BYTES, Layout, report_id
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

    def refuse_false_promise(self) -> None:
        """Raise ConfigurationError if what the task promises about shuffled reports is not so."""
        refuse_false_promise(self.published.spec, self.stream)

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
        return max(0, min(ended, self.published.periods))

    def was_ended(self, now: float, grace: float = 0.0) -> bool:
        """Return whether the task was ended before its time, so that nothing more is observed.

        With its ``grace``, nothing more is asked either.
        """
        last = self.published.last_period
        return last is not None and self.ended(now - grace) >= last

    @property
    def grace(self) -> float:
        """The time, in seconds, in which reports of a period are taken after its end."""
        return float(self.published.spec.get("grace", 0.0))

    def begins(self, period: int) -> float:
        """Return the time at which a period begins, in seconds since 1970."""
        spec = self.published.spec
        return float(spec["start"] + (period - 1) * spec["period_seconds"])

    def is_open(self, period: int, now: float) -> bool:
        """Return whether a period that has ended surely takes reports: half its grace is left."""
        return now <= self.begins(period + 1) + self.grace / 2

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

    def report(self, ids: bytes, message: Message, beside: int = 0) -> Waiting:
        """Return a message as a finished report, with an id and, if the task has a key, sealed.

        ``beside`` numbers the meaningless messages of a period; each has an id and a seal of its
        own, so that nothing links it to the others.
        """
        span, period, part = message.place
        content = self.layout.content(span, part, message.payload)
        number = part if self.is_asked else beside
        name = report_id(ids, self.published.task_id, period, number)
        body = self._body(name, period, content)
        key_id = self.published.key_id
        return Waiting(period, number, key_id, body, content=content if key_id else None)

    def is_whole(self, report: Waiting) -> bool:
        """Return whether a report from the journal has the sizes that the task demands."""
        body, content = report.body, report.content
        sizes = self.layout.report_dtype.itemsize, self.layout.content_dtype.itemsize
        whole = body is not None and len(body) == sizes[0]
        return whole and (content is None or len(content) == sizes[1])

    def resealed(self, report: Waiting) -> Waiting:
        """Return a report that waits, sealed to the task's present key; it can be done once."""
        assert report.content is not None  # noqa: S101 -- nobody asks for it twice
        body = self._body(report.body[:ID_BYTES], report.period, report.content)
        return replace(report, key_id=self.published.key_id, body=body, content=None)

    def _body(self, name: bytes, period: int, content: bytes) -> bytes:
        """Return a report as it is sent, sealed if the task has a key."""
        key = self.published.public_key
        if key is not None:
            content = seal(content, key, self.published.context, name, period)
        report = np.zeros(1, dtype=self.layout.report_dtype)
        report["id"], report["period"], report["sealed"] = name, period, content
        return report.tobytes()


def coins_for(question: Question, chain: Chain) -> Source:
    """Return a period's coins for a question.

    Different questions have independent coins: a copy of a device that is asked another question in
    the same round pays for it, but never reveals the coins of the first.
    """
    return chain.coins("ask " + hashlib.sha256(question.digest).hexdigest())
