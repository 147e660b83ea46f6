"""The contract of a stream: who is asked what, when, and what comes of it.

A stream carries its :class:`Guarantee`, makes devices (small state machines that are saved and
restored) and a curator, and says how the reports of each :class:`Place` are read. A curator is
deterministic and draws nothing; its ``timestep(period)`` is a generator that yields what it needs
and returns an estimate, so that a simulation, a collector and a cluster drive the same code, and
replaying the recorded tallies restores it. :func:`drive` and :class:`Timestep` are the only code
that steps a curator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.core.decoded import Decoded, ReleasedPeriods
from sfumato.core.domain import Label
from sfumato.core.estimate import Estimate
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.core.quantity import SHARE, Quantity
from sfumato.core.tally import Place, Tallies, Tally
from sfumato.errors import MismatchError
from sfumato.randomness import Source

__all__ = [
    "Ask",
    "Curator",
    "Due",
    "Form",
    "Place",
    "Question",
    "Steps",
    "Stream",
    "Timestep",
    "drive",
    "replay",
]


@dataclass(frozen=True)
class Due:
    """A standing question: the curator wants the tallies of what devices send in a period."""

    period: int


@dataclass(frozen=True)
class Ask:
    """A question to every device that is free: it answers with this probability, by its own coin.

    Parameters
    ----------
    mechanism
        What an answer is blurred with.
    probability
        How likely a device that is free answers.
    tier
        Which of a task's tiers is asked, counted from 0; most tasks have one.

    """

    mechanism: Mechanism
    probability: float
    tier: int = 0


Question = Due | Ask
Steps = Generator[Question, Any, Estimate]
"""Questions out, tallies in, and an estimate at the end.

:class:`Due` is answered with the period's :class:`Tallies`, :class:`Ask` with one :class:`Tally`.
"""


@dataclass(frozen=True)
class Form:
    """How the payloads of one place are judged and counted.

    Parameters
    ----------
    dtype
        The numpy dtype of a payload without its padding.
    valid
        Tells which payloads a device can have sent.
    tally
        Counts payloads; those that are not valid are refused.

    """

    dtype: np.dtype[Any]
    valid: Callable[[NDArray[Any]], NDArray[np.bool_]]
    tally: Callable[[NDArray[Any]], Tally]

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self:
        """Return how the reports of a mechanism are read."""
        return cls(mechanism.report_dtype, mechanism.valid, mechanism.tally)

    def read(self, payloads: NDArray[np.uint8]) -> NDArray[Any]:
        """Return rows of bytes without their padding, as payloads."""
        cut = np.ascontiguousarray(payloads[:, : self.dtype.itemsize])
        return cut.reshape(-1).view(self.dtype)


class Curator(ABC):
    """What the server does with the tallies, period by period."""

    @abstractmethod
    def timestep(self, period: int) -> Steps:
        """Yield what is needed in a period; return what is released."""


class Stream(ABC):
    """A stream of values under one guarantee."""

    needed: ClassVar[Mapping[str, str]] = {}
    """Fields that a task of this stream must have, each with what is expected, in words."""
    optional: ClassVar[tuple[str, ...]] = ()
    """Fields that a task of this stream may have."""
    fewest_periods: ClassVar[int] = 1
    """How many periods a task of this stream has at least."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised to a device over the whole stream."""

    @property
    def quantity(self) -> Quantity:
        """What the values of a release are, and how they are printed."""
        return SHARE

    @property
    @abstractmethod
    def labels(self) -> tuple[Label, ...]:
        """What the entries of an estimate are called."""

    @property
    def horizon(self) -> int | None:
        """How many periods the stream has; None if it has no end."""
        return None

    @property
    def wholes(self) -> tuple[slice, ...]:
        """The entries of which each device has exactly one: their shares sum to one."""
        return ()

    @property
    def decodes(self) -> bool:
        """Whether the reports say more than what was released when each period closed."""
        return False

    @property
    def separate(self) -> bool:
        """Whether the errors of what is released in different periods are uncorrelated."""
        return False

    @property
    def rounds(self) -> int:
        """How many questions a period has, at most; 0 if devices send without being asked."""
        return 0

    @property
    @abstractmethod
    def payload(self) -> int:
        """The bytes of the longest payload that a device sends."""

    @property
    @abstractmethod
    def tracks(self) -> Sequence[tuple[int, int]]:
        """The pairs of span and part that places have; see :class:`Place`."""

    @abstractmethod
    def form(self, place: Place, ask: Ask | None = None) -> Form | None:
        """Return how the payloads of a place are read; None if no device sends any there.

        Parameters
        ----------
        place
            Where the payloads belong.
        ask
            The question that they answer, if devices are asked.

        """

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """Return what the stream fixes of a published task, as plain data."""

    @classmethod
    @abstractmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream of a published task, as plain data; nothing is chosen."""

    @classmethod
    def fields(cls, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the stream's own fields of a task, checked and with their defaults, as plain data.

        What is wrong is raised as a :class:`sfumato.wire.fields.Problem`, which names the field.
        What this returns is taken again as it is.

        Parameters
        ----------
        task
            What all tasks have (``title``, ``values``, ``epsilon``, ``periods``,
            ``period_seconds``), checked and as plain data; and the fields that are named in
            ``needed`` and ``optional``, as they stand in the task's file.

        """
        return {name: task[name] for name in (*cls.needed, *cls.optional) if name in task}

    @classmethod
    def chosen(cls, task: Mapping[str, Any]) -> Stream:
        """Return the stream for a task, as plain data; what the task leaves open is chosen here."""
        return cls.of(task)

    @abstractmethod
    def device(self, rng: Source) -> Any:
        """Return a new device; what it draws at the start, it draws before it sees any data."""

    @abstractmethod
    def curator(self) -> Curator:
        """Return a new curator."""

    def decoded(
        self, tallies: Tallies[Any], closed: int, enrolled: Sequence[int] | None = None
    ) -> Decoded:
        """Return the periods that have closed, as the stream's decoders read its reports.

        Parameters
        ----------
        tallies
            What all reports so far add up to, by place.
        closed
            The last period that has closed.
        enrolled
            How many devices there are in each period, for streams that weigh by it.

        """
        del enrolled
        recorded = [
            Tallies({place: tally for place, tally in tallies.items() if place[1] == period})
            for period in range(1, closed + 1)
        ]
        estimates = replay(self.curator(), recorded)
        counts = tuple(sum(tally.n for tally in period.values()) for period in recorded)
        variances = np.array([estimate.covariance.variances() for estimate in estimates])
        values = np.array([estimate.values for estimate in estimates])
        known = np.isfinite(variances)
        return self.released(np.where(known, values, np.nan), variances, counts)

    def released(
        self, values: NDArray[np.float64], variances: NDArray[np.float64], n: Sequence[int]
    ) -> ReleasedPeriods:
        """Return closed periods by what was released of them and on how many reports."""
        return ReleasedPeriods(
            self.labels, values, variances, tuple(n), self.guarantee, self.separate
        )


class Timestep:
    """A curator on its way through one period: the question that is open, and the next one.

    Parameters
    ----------
    curator
        It must have been led through all periods before.
    period
        The period to go through.

    """

    def __init__(self, curator: Curator, period: int) -> None:
        self._steps = curator.timestep(period)
        self.period = period
        self.round = 0
        self.question: Question | None = None
        """What is asked now; None once the period is done, at once if nothing is asked in it."""
        self._estimate: Estimate | None = None
        self._go_on(None)

    @property
    def done(self) -> Estimate:
        """What the period releases; it must have been led to its end."""
        if self._estimate is None:
            raise MismatchError(f"period {self.period} has a question that was not answered.")
        return self._estimate

    @property
    def place(self) -> Place:
        """Where the answers to the open question belong."""
        return Place.answer(self.period, self.round)

    def brought(self, tallies: Tallies[Any]) -> Tallies[Any] | Tally:
        """Return what the open question has brought, out of all tallies of the period."""
        if not isinstance(self.question, Ask):
            return tallies
        return tallies.get(self.place, Tally.zero(self.question.mechanism.tally_shape))

    def answer(self, brought: Tallies[Any] | Tally) -> Estimate | None:
        """Hand over what the open question has brought; return the estimate if it was the last."""
        if self.question is not None:
            self.round += 1
            self._go_on(brought)
        return self._estimate

    def _go_on(self, brought: Tallies[Any] | Tally | None) -> None:
        try:
            self.question = self._steps.send(brought)
        except StopIteration as done:
            self.question, self._estimate = None, done.value


def drive(
    curator: Curator, period: int, answer: Callable[[Question], Tallies[Any] | Tally]
) -> Estimate:
    """Lead a curator through a period; ``answer`` returns what each of its questions brings."""
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
