"""The contract of a stream: what devices send when, and what is estimated from it.

A stream carries its :class:`Guarantee`, makes devices (small state machines that are saved and
restored) and a curator (see :mod:`sfumato.core.curator`), and says how the reports of each
:class:`Place` are read. Devices, collectors and simulations use a stream through this contract
alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.curator import Ask, Curator, Due, Question, Steps, Timestep, drive, replay
from sfumato.core.decoded import Decoded, ReleasedPeriods
from sfumato.core.device import Message, StreamDevice
from sfumato.core.domain import Label
from sfumato.core.fleet import DeviceFleet, Fleet, Population
from sfumato.core.form import Form
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.core.outlook import Notice, Outlook, Sent
from sfumato.core.quantity import SHARE, Quantity
from sfumato.core.stream_doubts import StreamDoubts
from sfumato.core.tally import Place, Tallies, Tally
from sfumato.errors import ConfigurationError, MismatchError, ReportError
from sfumato.randomness import Source, seeded

__all__ = [
    "Ask",
    "Curator",
    "Due",
    "Form",
    "Message",
    "Place",
    "Question",
    "Steps",
    "Stream",
    "StreamDevice",
    "Timestep",
    "drive",
    "replay",
]

_LIVED: Final = 1024
"""The number of periods, over all devices, that are simulated to count messages."""


class Stream(StreamDoubts):
    """A way to estimate statistics of devices' values over time, under one guarantee."""

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
        """The names of the entries of an estimate."""

    @property
    def offers(self) -> tuple[Guarantee, ...]:
        """The guarantee of each tier; an owner picks a tier before there are any data."""
        return (self.guarantee,)

    @property
    def picks(self) -> tuple[float, ...]:
        """The share of devices that is expected to pick each tier."""
        return (1.0,)

    def offer(self, tier: int) -> Guarantee:
        """Return the guarantee of a tier; raise ConfigurationError if there is no such tier."""
        there = range(len(self.offers))
        if isinstance(tier, bool) or not isinstance(tier, int) or tier not in there:
            known = ", ".join(map(str, there))
            verb = "is" if len(there) == 1 else "are"
            raise ConfigurationError(f"tier is {tier!r}; {known} {verb} there.")
        return self.offers[tier]

    @property
    def horizon(self) -> int | None:
        """How many periods the stream has; None if it has no end."""
        return None

    @property
    def wholes(self) -> tuple[slice, ...]:
        """The groups of entries of which each device holds exactly one: shares sum to one."""
        return ()

    @property
    def decodes(self) -> bool:
        """Whether reports allow better estimates than those released as periods close."""
        return False

    @property
    def separate(self) -> bool:
        """Whether the errors of different periods' releases are uncorrelated."""
        return False

    @property
    def rounds(self) -> int:
        """The largest number of questions in a period; 0 if devices send without being asked."""
        return 0

    @property
    @abstractmethod
    def payload(self) -> int:
        """The number of bytes of the longest payload that a device sends."""

    @property
    @abstractmethod
    def tracks(self) -> Sequence[tuple[int, int]]:
        """The pairs of span and part that places have; see :class:`Place`."""

    @abstractmethod
    def form(self, place: Place, ask: Ask | None = None) -> Form | None:
        """Return the form of the payloads of a place; None if no device sends any there.

        Parameters
        ----------
        place
            The place that the payloads belong to.
        ask
            The question that the payloads answer, if devices are asked.

        """

    def tallies(
        self, messages: Iterable[Message], asked: Mapping[Place, Ask] | None = None
    ) -> Tallies[Place]:
        """Return the tallies of messages; raise ReportError for one that no device sends.

        Parameters
        ----------
        messages
            The messages that devices have sent.
        asked
            The questions that the messages answer, by place, if devices are asked.

        """
        payloads: dict[Place, list[bytes]] = {}
        for message in messages:
            payloads.setdefault(message.place, []).append(message.payload)
        tallies: dict[Place, Tally] = {}
        for place, parts in payloads.items():
            form = self.form(place, (asked or {}).get(place))
            if form is None:
                raise ReportError(f"a message belongs to {place}; no device sends any there.")
            wrong = [len(part) for part in parts if len(part) != form.dtype.itemsize]
            if wrong:
                raise ReportError(
                    f"a message of span {place.span}, period {place.period} has {wrong[0]} bytes; "
                    f"{form.dtype.itemsize} are expected."
                )
            tallies[place] = form.tally(np.frombuffer(b"".join(parts), dtype=form.dtype))
        return Tallies(tallies)

    @classmethod
    def chosen(cls, task: Mapping[str, Any]) -> Stream:
        """Return the stream for a task in plain data, choosing whatever the task leaves open."""
        return cls.of(task)

    @classmethod
    def admit(cls, spec: Mapping[str, Any]) -> Stream:
        """Return the stream of a published task that comes from a stranger.

        Raises ConfigurationError, with one sentence and before anything large is built, if the
        stream would cost a device too much time, memory or bytes.
        """
        return cls.of(spec)

    @classmethod
    def outlook(
        cls,
        task: Mapping[str, Any],
        devices: int | None = None,
        pilot: Any = None,
        notice: Notice = lambda _: None,
    ) -> Outlook:
        """Return what to expect of a task before any device takes part.

        Parameters
        ----------
        task
            The task as plain data.
        devices
            How many devices will take part; by default as many as the task says.
        pilot
            Prior knowledge of people's streams; None unless the stream :attr:`takes_pilots`.
        notice
            Called with a sentence on what is being computed.

        """
        del pilot
        return cls.outlook_class(task, cls.chosen(task), devices, notice)

    # ---- the device's half -----------------------------------------------------------------

    @abstractmethod
    def inputs(self) -> Sequence[Any]:
        """Return values that a device can hold, for checks: all of them if they are few."""

    @abstractmethod
    def check(self, value: Any) -> None:
        """Raise InputError unless a value is one that the stream knows."""

    @property
    def default(self) -> Any:
        """The value of a device before its first observation: public, and the same for all."""
        return None

    @property
    def lasts(self) -> bool:
        """Whether a value stays until the next one; if not, it belongs to one period only."""
        return True

    @property
    def work(self) -> int:
        """The number of entries that a device processes in each period."""
        return len(self.labels)

    @abstractmethod
    def device(self, coins: Source, tier: int = 0) -> StreamDevice:
        """Return a new device; its first random draws are made before it sees any data.

        Parameters
        ----------
        coins
            The source of the random draws.
        tier
            The index in :attr:`offers` that its owner has picked.

        """

    @abstractmethod
    def restore(self, state: Any) -> StreamDevice:
        """Return the device that goes on from a saved state.

        Raises MismatchError if no device of this stream can have saved it; the message does not
        quote any observed value.
        """

    def asked(self, configuration: Mapping[str, Any]) -> Mechanism:
        """Return the mechanism that a question, perhaps from a stranger, describes.

        Raises MismatchError, before anything is built, if devices of this stream do not answer such
        a question.

        Parameters
        ----------
        configuration
            A mechanism as plain data; see :meth:`Mechanism.configuration`.

        """
        raise MismatchError(
            f"the question is asked with {str(configuration.get('mechanism'))[:40]!r}; devices of "
            "this stream answer nothing."
        )

    # ---- what is estimated -----------------------------------------------------------------

    @property
    def crowd(self) -> tuple[int, ...]:
        """The number of devices of each tier that the curator expects; empty if it expects none."""
        return () if self.counts_on is None else (self.counts_on,)

    def truth(
        self, held: Sequence[Any], counts: Sequence[int], ask: Ask | None = None
    ) -> Floats | None:
        """Return the true values that a period's release estimates; None if the estimate is biased.

        Parameters
        ----------
        held
            The values that devices hold in the period, within the limits of the stream.
        counts
            The number of devices that hold each of these values.
        ask
            The last question of the period, if there was one.

        """
        del held, counts, ask
        return None

    # ---- the server's half -----------------------------------------------------------------

    @property
    def counts_on(self) -> int | None:
        """The number of devices that the curator expects; None if it makes no difference."""
        return None

    def expecting(self, devices: int) -> Stream:
        """Return the same stream for another number of devices."""
        del devices
        return self

    def facts(self) -> dict[str, Any]:
        """Return the choices made for this stream, as plain data for people to read."""
        return {}

    @property
    def sent(self) -> Sent:
        """What a device sends over the horizon or, if there is none, in one period.

        If devices are not asked, this is counted on a few devices, because what they send does not
        depend on what they observe. If they are asked, it is the most that they can answer.
        """
        if self.rounds or self.horizon is None:
            messages = float(max(self.rounds, 1) * (self.horizon or 1))
            return Sent(messages, messages * self.payload, messages)
        coins, counts = seeded(1), []
        for _ in range(max(4, _LIVED // self.horizon)):
            device = self.device(coins)
            sent = (device.observe(None, coins) for _ in range(self.horizon))
            counts.append(sum(message is not None for message in sent))
        messages = float(np.mean(counts))
        return Sent(messages, messages * self.payload, float(max(counts)))

    def planned_variance(self, devices: int) -> float | None:
        """Return the variance of a value in a typical period, as intervals use it.

        It is None if it depends on the data; see also :meth:`outlook`.
        """
        del devices
        return None

    def influence(self, devices: int) -> float | None:
        """Return the most that one forged device can change an answer; None if unknown."""
        del devices
        return None

    @property
    def averages(self) -> bool:
        """Whether an estimate is a mean over devices; if not, it is a sum over them."""
        return True

    def fleet(self, population: Population, rng: Source) -> Fleet:
        """Return many simulated devices, which hold the values of a population.

        By default these are real devices, one by one; a stream may draw all tallies at once
        instead.

        Parameters
        ----------
        population
            What each device holds in each period.
        rng
            The source of all devices' coins.

        """
        return DeviceFleet(self, population, rng)

    @abstractmethod
    def curator(self) -> Curator:
        """Return a new curator."""

    def decoded(
        self, tallies: Tallies[Any], closed: int, enrolled: Sequence[int] | None = None
    ) -> Decoded:
        """Return the closed periods, to be read with the stream's decoders.

        Parameters
        ----------
        tallies
            The tallies of all reports so far, by place.
        closed
            The last period that has closed.
        enrolled
            The number of devices in each period, for streams that use it as a weight.

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

    def released(self, values: Floats, variances: Floats, n: Sequence[int]) -> ReleasedPeriods:
        """Return closed periods from their released values, variances and numbers of reports."""
        return ReleasedPeriods(
            self.labels, values, variances, tuple(n), self.guarantee, self.separate
        )
