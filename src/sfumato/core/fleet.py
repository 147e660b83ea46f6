"""Many simulated devices at once: the values they hold, and the answers they give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.arrays import Array
from sfumato.core.curator import Ask, Question
from sfumato.core.field_checks import check_whole
from sfumato.core.tally import Place, Tallies, Tally
from sfumato.errors import MismatchError
from sfumato.randomness import Source

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.core.stream import Message, Stream

__all__ = ["DeviceFleet", "Fleet", "Population", "summed"]


class Population(ABC):
    """The values that many simulated devices hold, period by period, counted from 1.

    The value of a device is a number or a row of codes: the index of an item, one number for each
    item of a set or of moves, or the index of each attribute's item.

    A subclass defines :meth:`values` (by period) or :meth:`streams` (by device); each of the two is
    derived from the other.

    Parameters
    ----------
    devices
        How many devices there are.
    periods
        For how many periods they live.

    """

    parts: int = 1
    """The number of parts that the devices are made in, if values are made by device."""

    def __init__(self, devices: int, periods: int) -> None:
        check_whole("devices", devices, 1)
        check_whole("periods", periods, 1)
        self.devices = devices
        self.periods = periods

    def values(self, period: int) -> Array:
        """Return the value of each device in a period, one row for each device."""
        return np.asarray(self.streams()[:, period - 1])

    def streams(self) -> Array:
        """Return the value of each device (rows) in each period (columns)."""
        return np.stack([self.values(t) for t in range(1, self.periods + 1)], axis=1)

    def part(self, index: int) -> Population:
        """Return the devices of one part, counted from 0; the same ones at every call."""
        del index
        return self

    @abstractmethod
    def said(self, cell: Any) -> Any:
        """Return a coded value in the form in which an app passes it to a device."""


class Fleet(ABC):
    """Many simulated devices of one stream, which hold the values of a population.

    A simulation may have several fleets; their tallies and totals are added up.
    Periods must come in order, and so must the questions within each period.
    """

    @abstractmethod
    def answer(self, period: int, question: Question) -> Tallies[Any] | Tally:
        """Return a period's tallies by place or, if devices are asked, one tally of answers."""

    @abstractmethod
    def totals(self, period: int) -> Array:
        """Return the true sum over all devices, for each entry that the stream estimates."""

    def seen(self, period: int) -> Array:
        """Return the same sums, counting only what the stream lets devices report."""
        return self.totals(period)


class DeviceFleet(Fleet):
    """Real device objects, run one by one: slow, but right for every stream.

    Parameters
    ----------
    stream
        The stream. If it has several offers, each is picked by an equal number of devices.
    population
        The values that the devices hold.
    rng
        The source of all devices' coins.

    """

    def __init__(self, stream: Stream, population: Population, rng: Source) -> None:
        self._stream, self._population, self._rng = stream, population, rng
        offers = len(stream.offers)
        self._devices = [stream.device(rng, index % offers) for index in range(population.devices)]
        self._period = 0
        self._due: list[Message] = []

    def answer(self, period: int, question: Question) -> Tallies[Any] | Tally:
        """Return the tallies of all messages of a period, or of all answers to a question."""
        self._live_through(period)
        if not isinstance(question, Ask):
            places: dict[Place, list[Message]] = {}
            for message in self._due:
                places.setdefault(message.place, []).append(message)
            return Tallies({place: self._counted(sent) for place, sent in places.items()})
        answers = (device.answer(question, self._rng) for device in self._devices)
        sent = [message for message in answers if message is not None]
        return self._counted(sent, question) if sent else Tally.zero(question.mechanism.tally_shape)

    def _live_through(self, period: int) -> None:
        """Let all devices observe their values in the periods up to and including this one."""
        while self._period < period:
            self._period += 1
            held = self._population.values(self._period)
            messages = (
                device.observe(self._population.said(cell), self._rng)
                for device, cell in zip(self._devices, held, strict=True)
            )
            self._due = [message for message in messages if message is not None]

    def _counted(self, sent: list[Message], ask: Ask | None = None) -> Tally:
        """Return the tally of messages that belong to one place, read as a server reads them."""
        form = self._stream.form(sent[0].place, ask)
        if form is None:
            raise MismatchError(f"a device has sent something at {sent[0].place}; none is due.")
        payloads = b"".join(message.payload for message in sent)
        return form.tally(np.frombuffer(payloads, dtype=form.dtype))

    def totals(self, period: int) -> Array:
        """Return the number of devices that hold each entry, or the sum of their numbers."""
        return summed(self._population.values(period), len(self._stream.labels))


def summed(held: Array, width: int) -> Array:
    """Return the sum over all devices for each of ``width`` entries.

    Examples
    --------
    >>> summed(np.array([0, 2, 2]), width=3), summed(np.array([0.5, 1.0]), width=1)
    (array([1, 0, 2]), array([1.5]))

    """
    if held.ndim == 1 and width > 1:
        return np.bincount(held, minlength=width)
    return np.asarray(held.reshape(len(held), -1).sum(axis=0))
