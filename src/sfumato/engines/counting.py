"""What every engine shares: how packed rows become tallies, and what goes to other machines.

A counter has all that counting needs: which rows it takes, how their contents are judged, and which
tallies they add up to. It is rebuilt on another machine from bytes, which are the task and its
questions as they were published, or the configuration of a mechanism; objects are never pickled.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from sfumato import catalog
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Place
from sfumato.core.tally import Tallies, Tally
from sfumato.engines.rows import Row
from sfumato.errors import InputError, MismatchError, ReportError
from sfumato.streams.amplification import TOO_FEW, fewest_counted
from sfumato.streams.judging import Judge
from sfumato.streams.registry import stream_of
from sfumato.wire.canonical import canonical
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.reading import read_json
from sfumato.wire.reports import Layout

__all__ = ["ONCE", "MechanismCounter", "RowCounter", "TaskCounter", "counter_of"]

FORMAT: Final = 1
ONCE: Final = Place.answer(0, 0)
"""The place of reports of a plain mechanism, which belong to no period of any task."""


class RowCounter(ABC):
    """Counts packed rows of one task, wherever they are read."""

    @property
    @abstractmethod
    def task_id(self) -> bytes:
        """The id of the task, 32 bytes; of a plain mechanism, the hash of its configuration."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of bytes that a row has for each report."""

    @abstractmethod
    def judged(self, row: Row) -> Tallies[Place]:
        """Return the tallies of a row's reports; raise ReportError if one of them is not valid."""

    @abstractmethod
    def settled(self, totals: Tallies[Place]) -> Tallies[Place]:
        """Return the tallies of all rows; raise MismatchError if they must not be counted."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """Return everything that counting needs as plain data."""

    def count(self, row: Row) -> Tallies[Place]:
        """Return the tallies of a row.

        Raises MismatchError for a row of another task, and ReportError for contents that no device
        of this task can have sent.
        """
        if row.task_id != self.task_id:
            raise MismatchError(
                f"row {row.sequence} is of task {row.task_id.hex()[:12]}; rows of task "
                f"{self.task_id.hex()[:12]} are expected."
            )
        if not row.contents or len(row.contents) % self.size:
            raise ReportError(
                f"row {row.sequence} has {len(row.contents)} bytes; contents of {self.size} bytes "
                "each are expected."
            )
        return self.judged(row)

    def joined(self, other: RowCounter) -> RowCounter:
        """Return what counts the rows of both counters; raise MismatchError if it cannot be."""
        if other.task_id != self.task_id:
            raise MismatchError(
                f"rows are of task {other.task_id.hex()[:12]}; rows of task "
                f"{self.task_id.hex()[:12]} are expected."
            )
        return self

    def encode(self) -> bytes:
        """Return the counter as JSON, which engines send to other machines."""
        return json.dumps({"format": FORMAT} | self.plain()).encode()

    @staticmethod
    def decode(data: bytes) -> RowCounter:
        """Return the counter in these bytes; raise InputError if they are none.

        Examples
        --------
        >>> from sfumato import GRR
        >>> counter = counter_of(GRR(1.0, 3))
        >>> RowCounter.decode(counter.encode()).task_id == counter.task_id
        True

        """
        plain = read_json(data, "the counter")
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise InputError(f"the counter has no format {FORMAT}, which is the one known here.")
        return RowCounter.of(plain)

    @staticmethod
    def of(plain: Mapping[str, Any]) -> RowCounter:
        """Return the counter that plain data describe; raise InputError if they are none."""
        if isinstance(plain.get("mechanism"), dict):
            return MechanismCounter(catalog.from_configuration(plain["mechanism"]))
        task = Published.parse(json.dumps(plain.get("task")).encode())
        return TaskCounter(task, questions_of(plain.get("questions")))


class TaskCounter(RowCounter):
    """Counts the reports of a published task, with the judge that its collector uses.

    Parameters
    ----------
    task
        The task as it was published.
    asked
        All questions of the task, by the place of their answers; needed if devices are asked.

    """

    def __init__(self, task: Published, asked: Mapping[Place, Ask] | None = None) -> None:
        self.task = task
        self.asked = asked
        self.stream = stream_of(task.spec)
        if self.stream.rounds and asked is None:
            raise MismatchError("devices of this task are asked; its questions are expected, too.")
        self._layout = Layout(self.stream.payload)
        self._judge = Judge(self.stream, self._layout, asked)

    @property
    def task_id(self) -> bytes:
        """The id of the task."""
        return self.task.task_id

    @cached_property
    def size(self) -> int:
        """The number of bytes of the content of a report."""
        return self._layout.content_dtype.itemsize

    def judged(self, row: Row) -> Tallies[Place]:
        """Return the tallies of a row's reports, by place."""
        return self._judge.checked(row.period, self._layout.contents(row.contents))

    def settled(self, totals: Tallies[Place]) -> Tallies[Place]:
        """Return the tallies, unless shuffled reports of a period are too few to be counted."""
        fewest = fewest_counted(self.task.spec)
        counts: Counter[int] = Counter()
        for place, each in totals.items():
            counts[place.period] += each.n
        for period, n in counts.items():
            if n < fewest:
                raise MismatchError(
                    f"period {period} has {n:,} reports, {TOO_FEW}; at least {fewest:,} are "
                    "expected."
                )
        return totals

    def joined(self, other: RowCounter) -> RowCounter:
        """Return what also counts answers to the other's questions."""
        super().joined(other)
        if not isinstance(other, TaskCounter) or not other.asked or other.asked == self.asked:
            return self
        asked = dict(self.asked or {})
        for place, ask in other.asked.items():
            if asked.setdefault(place, ask) != ask:
                raise MismatchError(f"there are two different questions for {place}.")
        return TaskCounter(self.task, asked)

    def plain(self) -> dict[str, Any]:
        """Return the task and its questions as they were published."""
        about: dict[str, Any] = {"task": json.loads(self.task.encode())}
        if self.asked is not None:
            about["questions"] = plain_questions(self.asked)
        return about


class MechanismCounter(RowCounter):
    """Counts the reports of a plain mechanism, all of them at one place.

    Parameters
    ----------
    mechanism
        The mechanism.

    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    @cached_property
    def task_id(self) -> bytes:
        """The hash of the mechanism's configuration."""
        return hashlib.sha256(canonical(self.mechanism.configuration())).digest()

    @property
    def size(self) -> int:
        """The number of bytes of a report."""
        return self.mechanism.report_bytes

    def judged(self, row: Row) -> Tallies[Place]:
        """Return the tally of a row's reports."""
        return Tallies({ONCE: self.mechanism.counted(self.mechanism.decode(row.contents))})

    def settled(self, totals: Tallies[Place]) -> Tallies[Place]:
        """Return the tally, which is there even if no report is."""
        return totals or Tallies({ONCE: Tally.zero(self.mechanism.tally_shape)})

    def plain(self) -> dict[str, Any]:
        """Return the mechanism's configuration."""
        return {"mechanism": self.mechanism.configuration()}


def counter_of(
    task: Published | Mechanism | RowCounter, asked: Mapping[Place, Ask] | None = None
) -> RowCounter:
    """Return what counts the rows of a task or of a plain mechanism.

    Parameters
    ----------
    task
        The task as it was published, a mechanism, or a counter, which is returned as it is.
    asked
        All questions of the task, by the place of their answers; needed if devices are asked.

    """
    if isinstance(task, RowCounter):
        return task
    return MechanismCounter(task) if isinstance(task, Mechanism) else TaskCounter(task, asked)


def plain_questions(asked: Mapping[Place, Ask]) -> list[Any]:
    """Return the questions of a task as plain data, in order."""
    ordered = sorted(asked.items())
    return [json.loads(Question.of(place.period, ask).encode()) for place, ask in ordered]


def questions_of(plain: Any) -> dict[Place, Ask] | None:
    """Return the questions in plain data, by the place of their answers; None if there are none."""
    if plain is None:
        return None
    if not isinstance(plain, list):
        raise InputError(f"questions are {plain!r}; a list is expected.")
    return dict(map(_ask, plain))


def _ask(plain: Any) -> tuple[Place, Ask]:
    question = Question.parse(json.dumps(plain).encode())
    if question is None:
        raise InputError("one of the questions asks nothing.")
    mechanism = catalog.from_configuration(question.mechanism)
    ask = Ask(mechanism, question.probability, question.tier, question.round)
    return Place.answer(question.period, question.round), ask
