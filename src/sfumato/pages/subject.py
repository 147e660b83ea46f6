"""What a page shows: a task of a collector, or a released stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sfumato.arrays import Floats, Ints
from sfumato.core.answers import Answers
from sfumato.core.quantity import Quantity

__all__ = [
    "Axis",
    "Columns",
    "Flag",
    "LastKnown",
    "PageState",
    "PageSubject",
    "Promise",
    "Range",
    "Way",
]


@dataclass(frozen=True)
class Axis:
    """When, or where in a stream, periods begin and end."""

    start: int
    """The beginning of the first period: a moment in seconds since 1970, or a position."""
    step: int
    """The length of a period."""
    periods: int
    """The number of periods; of a stream without an end, the number so far."""
    in_time: bool = True
    """Whether periods are stretches of time; if not, they are runs of values."""
    edges: tuple[int, ...] = ()
    """Where each period begins and the last one ends, if not all are equally long."""
    zone: str = ""
    """The time zone that the subject itself speaks of; by default that of the reader."""

    def begin(self, period: int) -> int:
        """Return where a period begins."""
        return self.edges[period - 1] if self.edges else self.start + (period - 1) * self.step

    def end(self, period: int) -> int:
        """Return where a period ends."""
        return self.begin(period + 1)

    def plain(self) -> dict[str, Any]:
        """Return the axis as plain data."""
        about: dict[str, Any] = {"start": self.start, "step": self.step, "periods": self.periods}
        about |= {"inTime": self.in_time, "zone": self.zone}
        return about | ({"edges": list(self.edges)} if self.edges else {})


class Columns(NamedTuple):
    """Some items (columns) in each closed period (rows); nan where nothing is known."""

    values: Floats
    low: Floats
    high: Floats


class LastKnown(NamedTuple):
    """The last known value of each item, and the period it is of (0 if there never was one)."""

    answers: Answers
    periods: Ints


@dataclass(frozen=True)
class PageState:
    """What can be said of a subject as a whole: one word for scripts, one sentence for people."""

    name: str
    """One of empty, live, few, stale, waiting, uncounted, over, archived and still."""
    sentence: str
    """The sentence, as HTML."""
    next_at: float | None = None
    """When there should be news, in seconds since 1970, so that a page can look again."""


class Promise(NamedTuple):
    """A question that people have about the promise, and its answer."""

    question: str
    answer: str


class Flag(NamedTuple):
    """Something in the reports that honest devices would not send."""

    period: int
    """The period in which it was seen."""
    sentence: str
    """What is odd, and what it may be."""
    advice: str
    """What to do about it."""


class Range(NamedTuple):
    """The answer about a range of periods: the average, and the change from first to last."""

    average: Answers
    change: Answers | None


class Way(NamedTuple):
    """A way to look at a subject: its fields in an address, its name, and itself in one line."""

    fields: dict[str, str | None]
    name: str
    line: str
    group: str


class PageSubject(ABC):
    """What a page shows."""

    address: str
    """The address of its page."""
    title: str
    measured: str
    """What is measured, in one sentence."""
    quantity: Quantity
    labels: tuple[str, ...]
    axis: Axis
    closed: int
    """The number of periods of which something is known."""
    n: int
    """The number of reports, or values, so far."""
    counted: str = "reports"
    """What is counted."""
    asked: str = "Averages"
    """What is answered about a range."""
    level: float = 0.95
    is_live: bool = False
    """Whether more periods will come while somebody looks."""
    listens_at: str = ""
    """The address that tells of each new period; empty if there is none."""

    @abstractmethod
    def columns(self, items: Sequence[int], periods: slice = slice(None)) -> Columns:
        """Return some items in the closed periods, or in some of these, with their intervals."""

    @abstractmethod
    def last_known(self) -> LastKnown:
        """Return the last known value of each item."""

    @abstractmethod
    def between(self, first: int, last: int, items: Sequence[int]) -> Range | str:
        """Return the answer about a range of periods, or a sentence that says why there is none."""

    @abstractmethod
    def state(self, now: float) -> PageState:
        """Return the state at a time."""

    @property
    @abstractmethod
    def promises(self) -> tuple[str, ...]:
        """The guarantees in their exact words."""

    @property
    @abstractmethod
    def explained(self) -> tuple[Promise, ...]:
        """What the guarantees mean, for people."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences below the guarantees."""
        return ()

    @property
    def offers(self) -> str:
        """What is said before several guarantees."""
        return "The owner of a device picks one of these promises:"

    @property
    def ways(self) -> tuple[tuple[Way, bool], ...]:
        """The ways to look at the subject, each with whether it is the present one."""
        return ()

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What honest devices would not send, latest first."""
        return ()

    @property
    def participation(self) -> dict[int, int] | None:
        """The number of reports of each period; None if nobody takes part."""
        return None

    @property
    def refused(self) -> str:
        """The refused reports in words."""
        return "none"

    @property
    def problems(self) -> dict[int, str]:
        """The closed periods without a number, each with its reason."""
        return {}

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """Addresses and names of further pages."""
        return ()
