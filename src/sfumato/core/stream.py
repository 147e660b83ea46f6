"""The contract of a stream: who is asked what, when, and what comes of it.

A stream carries its :class:`Guarantee`, makes devices (small state machines that are saved and
restored) and a curator (see :mod:`sfumato.core.curator`), and says how the reports of each
:class:`Place` are read. Whoever runs a stream, on a device, in a collector or in a simulation,
knows this contract only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
from sfumato.core.stream_design import StreamDesign
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
"""How many periods are lived through to count what devices send."""


class Stream(StreamDesign):
    """A stream of values under one guarantee."""

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
    def offers(self) -> tuple[Guarantee, ...]:
        """What is promised to a device, by tier: its owner picks one before there are any data."""
        return (self.guarantee,)

    @property
    def picks(self) -> tuple[float, ...]:
        """The share of the devices that is expected to pick each of the offers."""
        return (1.0,)

    def offer(self, tier: int) -> Guarantee:
        """Return what is promised to a device of a tier; raise if there is no such tier."""
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

    def tallies(
        self, messages: Iterable[Message], asked: Mapping[Place, Ask] | None = None
    ) -> Tallies[Place]:
        """Return what messages add up to; raise ReportError on one that no device sends.

        Parameters
        ----------
        messages
            What devices have sent.
        asked
            The questions that they answer, if devices are asked, by place.

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
        """Return the stream for a task, as plain data; what the task leaves open is chosen here."""
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
        """Return what to expect of a task, before any device takes part.

        Parameters
        ----------
        task
            The task as plain data.
        devices
            How many devices will take part; as many as the task says, if left out.
        pilot
            What is known of people's streams; None unless the stream :attr:`takes_pilots`.
        notice
            Is told what is being looked into.

        """
        del pilot
        return Outlook(task, cls.chosen(task), devices, notice)

    # ---- the device's half -----------------------------------------------------------------

    @abstractmethod
    def inputs(self) -> Sequence[Any]:
        """Return values that a device can hold, for checks: all of them where they are few."""

    @abstractmethod
    def check(self, value: Any) -> None:
        """Raise InputError if the stream knows no such value."""

    @property
    def default(self) -> Any:
        """What a device holds before its first value: public, and the same for all."""
        return None

    @property
    def lasts(self) -> bool:
        """Whether a value stays until the next one; else it is of one period."""
        return True

    @property
    def work(self) -> int:
        """How many entries a device goes through in each period."""
        return len(self.labels)

    @abstractmethod
    def device(self, coins: Source, tier: int = 0) -> StreamDevice:
        """Return a new device; what it draws at the start, it draws before it sees any data.

        Parameters
        ----------
        coins
            What is drawn from.
        tier
            Which of :attr:`offers` its owner has picked.

        """

    @abstractmethod
    def restore(self, state: Any) -> StreamDevice:
        """Return the device that goes on from a saved state.

        Raises MismatchError if no device of this stream can have saved it; the sentence does not
        quote what was observed.
        """

    def asked(self, configuration: Mapping[str, Any]) -> Mechanism:
        """Return the mechanism that a question of a stranger describes.

        Raises MismatchError, before anything is built of it, if the stream's devices do not let
        themselves be asked so.

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
        """How many devices of each tier the curator counts on; empty if any number will do."""
        return () if self.counts_on is None else (self.counts_on,)

    def truth(
        self, held: Sequence[Any], counts: Sequence[int], ask: Ask | None = None
    ) -> NDArray[np.float64] | None:
        """Return what the release of a period estimates without bias; None if it is biased.

        Parameters
        ----------
        held
            The values that devices hold in the period, within what the stream is made for.
        counts
            How many devices hold each of them.
        ask
            The last question of the period, if there was one.

        """
        del held, counts, ask
        return None

    # ---- the server's half -----------------------------------------------------------------

    @property
    def counts_on(self) -> int | None:
        """How many devices the curator counts on; None if any number will do."""
        return None

    def expecting(self, devices: int) -> Stream:
        """Return the same stream for another number of devices."""
        del devices
        return self

    def facts(self) -> dict[str, Any]:
        """Return what was chosen for the stream, as plain data for people."""
        return {}

    @property
    def sent(self) -> Sent:
        """What a device sends over the horizon or, without an end, in a period.

        By default counted on a few devices if they are not asked: what they send, and when, does
        not depend on what they see. Of those that are asked, the most that they can answer.
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
        """Return the variance of a value in a typical period, as intervals count on it.

        None where it depends on the data; :meth:`outlook` says more.
        """
        del devices
        return None

    def influence(self, devices: int) -> float | None:
        """Return how far one forged device can move an answer about a period; None if unknown."""
        del devices
        return None

    @property
    def averages(self) -> bool:
        """Whether an estimate is a mean over devices; else it is a sum over them."""
        return True

    def fleet(self, population: Population, rng: Source) -> Fleet:
        """Return many simulated devices, which hold what a population holds.

        By default real ones, one by one; a stream may draw their tallies all at once instead.

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
