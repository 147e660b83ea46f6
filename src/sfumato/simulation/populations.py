"""Devices whose streams are made some thousands at a time, and recorded ones among them."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.core.fleet import Population
from sfumato.errors import ConfigurationError

__all__ = ["ByDevice", "Recorded", "Saying"]

CHUNK: Final = 1 << 15
"""Devices that are made together; their streams do not depend on how they are asked for."""


class Saying(Protocol):
    """A kind of values that knows how a device is told one."""

    def said(self, cell: Any) -> Any:
        """Return what a device holds, as an app says it to a device."""


class ByDevice(Population):
    """Devices whose streams are made some thousands at a time.

    Parameters
    ----------
    kind
        How a device is told a value; None if no device will be told.
    devices, periods
        How many devices there are, and for how many periods they live.

    """

    def __init__(self, kind: Saying | None, devices: int, periods: int) -> None:
        super().__init__(devices, periods)
        self.kind = kind
        self.parts = -(-devices // CHUNK)
        self._streams: NDArray[Any] | None = None

    @abstractmethod
    def rows(self, place: int) -> NDArray[Any]:
        """Return the streams of one part."""

    def part(self, place: int) -> Population:
        """Return the devices of one part."""
        return Recorded(self.rows(place), kind=self.kind)

    def streams(self) -> NDArray[Any]:
        """Return the streams of all devices at once."""
        if self._streams is None:
            self._streams = np.concatenate([self.rows(place) for place in range(self.parts)])
        return self._streams

    def said(self, cell: Any) -> Any:
        """Return what a device holds, as an app says it to a device."""
        return cell if self.kind is None else self.kind.said(cell)

    def _size(self, place: int) -> int:
        return min(CHUNK, self.devices - place * CHUNK)


class Recorded(ByDevice):
    """Recorded streams: each once, or as many as are wanted, drawn with replacement.

    Parameters
    ----------
    recorded
        What each recorded device (rows) holds in each period (columns).
    devices
        How many to draw; each is taken once, if left out.
    seed
        What the draw follows from.
    kind
        How a device is told a value.

    Examples
    --------
    >>> population = Recorded(np.array([[0, 1], [1, 1]]), devices=5)
    >>> population.devices, population.streams().shape
    (5, (5, 2))

    """

    def __init__(
        self,
        recorded: NDArray[Any],
        devices: int | None = None,
        seed: int = 1,
        kind: Saying | None = None,
    ) -> None:
        if not len(recorded):
            raise ConfigurationError("there are no recorded streams; at least one is expected.")
        many = len(recorded) if devices is None else devices
        super().__init__(kind, many, recorded.shape[1])
        self._recorded = recorded
        self._seed = None if devices is None else seed

    def rows(self, place: int) -> NDArray[Any]:
        """Return the streams of one part."""
        return np.asarray(self._recorded[self._drawn(place)])

    def _drawn(self, place: int) -> Any:
        if self._seed is None:
            return slice(place * CHUNK, (place + 1) * CHUNK)
        rng = np.random.default_rng([self._seed, place])
        return rng.integers(len(self._recorded), size=self._size(place))

    @cached_property
    def _everybody(self) -> Any:
        if self._seed is None:
            return slice(None)
        return np.concatenate([self._drawn(place) for place in range(self.parts)])

    def values(self, period: int) -> NDArray[Any]:
        """Return what each device holds in a period."""
        return np.asarray(self._recorded[:, period - 1][self._everybody])
