"""The contract of a stream: who is asked what, and when.

A protocol carries its :class:`Guarantee`, makes devices (small state machines that are saved and
restored) and a curator. A curator is deterministic and draws nothing; its ``timestep(period)`` is
a generator that yields what it needs and returns what it releases, so that a simulation, an HTTP
collector and a cluster drive the same code, and replaying the tallies restores it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import MismatchError
from sfumato.randomness import Source

__all__ = ["Ask", "Curator", "Due", "Protocol", "replay"]


@dataclass(frozen=True)
class Due:
    """Send me the tallies of the reports that were due in a period (a standing question)."""

    period: int


@dataclass(frozen=True)
class Ask:
    """Ask every device that is free: it answers with this probability, by its own coin."""

    mechanism: Mechanism
    probability: float


class Curator(ABC):
    """What the server does with the tallies, period by period."""

    @abstractmethod
    def timestep(self, period: int) -> Generator[Due | Ask, Tallies[Any] | Tally, Any]:
        """Yield what is needed in a period; return what is released."""


class Protocol(ABC):
    """A stream of values under one guarantee."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised to a device over the whole stream."""

    @abstractmethod
    def device(self, rng: Source) -> Any:
        """Return a new device; what it draws at the start, it draws before it sees any data."""

    @abstractmethod
    def curator(self) -> Curator:
        """Return a new curator."""


def replay(curator: Curator, tallies: Any, periods: int) -> list[Any]:
    """Drive a curator of standing questions through recorded tallies, one mapping per period."""
    released = []
    for period in range(1, periods + 1):
        step = curator.timestep(period)
        next(step)
        try:
            asked = step.send(tallies[period - 1])
        except StopIteration as done:
            released.append(done.value)
        else:
            raise MismatchError(f"period {period} has a second question, {asked}; one is replayed.")
    return released
