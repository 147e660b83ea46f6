"""The server's half of a stream: the curator, and the one loop that runs it.

A curator is deterministic and draws nothing; its ``timestep(period)`` is a generator that yields
what it needs and returns an estimate, so that a simulation, a collector and a cluster drive the
same code, and replaying the recorded tallies restores it. :func:`drive` and :class:`Timestep` are
the only code that steps a curator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfumato.core.estimate import Estimate
from sfumato.core.mechanism import Mechanism
from sfumato.core.tally import Place, Tallies, Tally
from sfumato.errors import MismatchError

__all__ = ["Ask", "Curator", "Due", "Question", "Steps", "Timestep", "drive", "replay"]


@dataclass(frozen=True)
class Due:
    """A standing question: the curator needs the tallies of everything devices send in a period."""

    period: int


@dataclass(frozen=True)
class Ask:
    """A question to all free devices; each answers with this probability, by its own coin."""

    mechanism: Mechanism
    """The mechanism that an answer is randomized with."""
    probability: float
    """The probability with which a free device answers."""
    tier: int = 0
    """The tier that is asked, counted from 0; most tasks have only one."""
    round: int = 0
    """The number of this question within its period, counted from 0. A curator leaves it at 0, and
    :class:`Timestep` fills it in."""


Question = Due | Ask
Steps = Generator[Question, Any, Estimate]
"""A generator that yields questions, is sent tallies, and returns an estimate.

:class:`Due` is answered with the period's :class:`Tallies`, :class:`Ask` with one :class:`Tally`.
"""


class Curator(ABC):
    """The server's half of a stream: it turns tallies into estimates, period by period."""

    @abstractmethod
    def timestep(self, period: int) -> Steps:
        """Yield the questions of a period one after another; return the estimate it releases."""


class Timestep:
    """One period of a curator: it holds the open question and goes on when that is answered.

    Parameters
    ----------
    curator
        The curator; it must have been led through all earlier periods.
    period
        The period to go through.

    """

    def __init__(self, curator: Curator, period: int) -> None:
        self._steps = curator.timestep(period)
        self.period = period
        self.round = 0
        self.question: Question | None = None
        """The open question; None once the period is done, or if nothing is asked in it."""
        self._estimate: Estimate | None = None
        self._go_on(None)

    @property
    def done(self) -> Estimate:
        """The estimate that the period releases; MismatchError while a question is still open."""
        if self._estimate is None:
            raise MismatchError(f"period {self.period} has a question that was not answered.")
        return self._estimate

    @property
    def place(self) -> Place:
        """The place that answers to the open question belong to."""
        return Place.answer(self.period, self.round)

    def brought(self, tallies: Tallies[Any]) -> Tallies[Any] | Tally:
        """Return the tallies (or the one tally) that answer the open question."""
        if not isinstance(self.question, Ask):
            return tallies
        return tallies.get(self.place, Tally.zero(self.question.mechanism.tally_shape))

    def answer(self, brought: Tallies[Any] | Tally) -> Estimate | None:
        """Hand over the tallies for the open question; return the estimate if it was the last."""
        if self.question is not None:
            self.round += 1
            self._go_on(brought)
        return self._estimate

    def _go_on(self, brought: Tallies[Any] | Tally | None) -> None:
        try:
            question = self._steps.send(brought)
        except StopIteration as done:
            self.question, self._estimate = None, done.value
        else:
            if isinstance(question, Ask):
                question = replace(question, round=self.round)
            self.question = question


def drive(
    curator: Curator, period: int, answer: Callable[[Question], Tallies[Any] | Tally]
) -> Estimate:
    """Lead a curator through a period; ``answer`` returns the tallies for each question."""
    step = Timestep(curator, period)
    while step.question is not None:
        step.answer(answer(step.question))
    return step.done


def replay(curator: Curator, recorded: Sequence[Tallies[Any]]) -> list[Estimate]:
    """Lead a new curator through recorded tallies, one mapping for each period from the first on.

    Questions are answered with the tallies that were recorded for their round.
    """
    released = []
    for period, tallies in enumerate(recorded, 1):
        step = Timestep(curator, period)
        while step.question is not None:
            step.answer(step.brought(tallies))
        released.append(step.done)
    return released
