"""Many simulated devices at once: what they hold, and what they answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.curator import Ask, Question
from sfumato.core.tally import Place, Tallies, Tally
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.randomness import Source

if TYPE_CHECKING:  # a stream makes its fleets
    from sfumato.core.stream import Message, Stream

__all__ = ["DeviceFleet", "Fleet", "Population", "summed"]


class Population(ABC):
    """What many simulated devices hold, period by period; periods count from 1.

    What a device holds is a row of codes: of an item its place, of a set or of moves one number for
    each item, of attributes the place of each one's item; or it is a number.

    A population makes its values by period or by device: a subclass has :meth:`values` or
    :meth:`streams`, and each follows from the other.

    Parameters
    ----------
    devices
        How many devices there are.
    periods
        For how many periods they live.

    """

    parts: int = 1
    """In how many parts the devices come, where they are made by device."""

    def __init__(self, devices: int, periods: int) -> None:
        if devices < 1:
            raise ConfigurationError(f"devices is {devices}; at least 1 is expected.")
        if periods < 1:
            raise ConfigurationError(f"periods is {periods}; at least 1 is expected.")
        self.devices = devices
        self.periods = periods

    def values(self, period: int) -> NDArray[Any]:
        """Return what each device holds in a period, one row for each."""
        return np.asarray(self.streams()[:, period - 1])

    def streams(self) -> NDArray[Any]:
        """Return what each device (rows) holds in each period (columns)."""
        return np.stack([self.values(t) for t in range(1, self.periods + 1)], axis=1)

    def part(self, place: int) -> Population:
        """Return some of the devices, the same whoever asks; places count from 0."""
        del place
        return self

    @abstractmethod
    def said(self, cell: Any) -> Any:
        """Return what a device holds, as an app says it to a device."""


class Fleet(ABC):
    """Many simulated devices of one stream, which hold what a population holds.

    A simulation may have several, each of some devices: what they answer and their totals add up.
    Periods come in order, and the questions of each in the order in which the curator asks them.
    """

    @abstractmethod
    def answer(self, period: int, question: Question) -> Tallies[Any] | Tally:
        """Return what a question of a period brings: a tally for each place, or of the answers."""

    @abstractmethod
    def totals(self, period: int) -> NDArray[Any]:
        """Return the sum over all devices of each entry that the stream estimates."""

    def seen(self, period: int) -> NDArray[Any]:
        """Return the same as far as devices may tell it; less, if a stream leaves something out."""
        return self.totals(period)


class DeviceFleet(Fleet):
    """Real devices of a stream, one by one: slow, and good for any stream.

    Parameters
    ----------
    stream
        The public design. If owners pick from several offers, each is picked by as many devices.
    population
        What the devices hold.
    rng
        The source of all devices' coins.

    """

    def __init__(self, stream: Stream, population: Population, rng: Source) -> None:
        self._stream, self._population, self._rng = stream, population, rng
        offers = len(stream.offers)
        self._devices = [stream.device(rng, place % offers) for place in range(population.devices)]
        self._period = 0
        self._due: list[Message] = []

    def answer(self, period: int, question: Question) -> Tallies[Any] | Tally:
        """Return what devices send in a period, or answer."""
        self._live_through(period)
        if not isinstance(question, Ask):
            places: dict[Place, list[Message]] = {}
            for message in self._due:
                places.setdefault(message.place, []).append(message)
            return Tallies({place: self._counted(sent) for place, sent in places.items()})
        said = (device.answer(question, self._rng) for device in self._devices)
        sent = [message for message in said if message is not None]
        return self._counted(sent, question) if sent else Tally.zero(question.mechanism.tally_shape)

    def _live_through(self, period: int) -> None:
        """Let all devices observe what they hold in the periods up to this one."""
        while self._period < period:
            self._period += 1
            held = self._population.values(self._period)
            said = (
                device.observe(self._population.said(cell), self._rng)
                for device, cell in zip(self._devices, held, strict=True)
            )
            self._due = [message for message in said if message is not None]

    def _counted(self, sent: list[Message], ask: Ask | None = None) -> Tally:
        """Return the tally of messages of one place, read as a server reads them."""
        form = self._stream.form(sent[0].place, ask)
        if form is None:
            raise MismatchError(f"a device has sent something at {sent[0].place}; none is due.")
        payloads = b"".join(message.payload for message in sent)
        return form.tally(np.frombuffer(payloads, dtype=form.dtype))

    def totals(self, period: int) -> NDArray[Any]:
        """Return how many devices hold each entry, or the sum of their numbers."""
        return summed(self._population.values(period), len(self._stream.labels))


def summed(held: NDArray[Any], width: int) -> NDArray[Any]:
    """Return the sum over all devices of each of so many entries.

    Examples
    --------
    >>> summed(np.array([0, 2, 2]), width=3), summed(np.array([0.5, 1.0]), width=1)
    (array([1, 0, 2]), array([1.5]))

    """
    if held.ndim == 1 and width > 1:
        return np.bincount(held, minlength=width)
    return np.asarray(held.reshape(len(held), -1).sum(axis=0))
