"""Devices whose streams are made in parts of some thousands, and recorded streams."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np

from sfumato.arrays import Array
from sfumato.core.fleet import Population
from sfumato.errors import ConfigurationError

__all__ = ["ByDevice", "Recorded", "Saying"]

CHUNK: Final = 1 << 15
"""The number of devices that are made together; streams do not depend on the order of requests."""


class Saying(Protocol):
    """A kind of values that can convert a code to what an app passes to a device."""

    def said(self, cell: Any) -> Any:
        """Return a coded value in the form in which an app passes it to a device."""


class ByDevice(Population):
    """Devices whose streams are made in parts of some thousands.

    Parameters
    ----------
    kind
        The kind of values, which converts codes; None if no conversion is needed.
    devices, periods
        The numbers of devices and of periods.

    """

    def __init__(self, kind: Saying | None, devices: int, periods: int) -> None:
        super().__init__(devices, periods)
        self.kind = kind
        self.parts = -(-devices // CHUNK)
        self._streams: Array | None = None

    @abstractmethod
    def rows(self, index: int) -> Array:
        """Return the streams of one part."""

    def part(self, index: int) -> Population:
        """Return the devices of one part."""
        return Recorded(self.rows(index), kind=self.kind)

    def streams(self) -> Array:
        """Return the streams of all devices at once."""
        if self._streams is None:
            self._streams = np.concatenate([self.rows(index) for index in range(self.parts)])
        return self._streams

    def said(self, cell: Any) -> Any:
        """Return a coded value in the form in which an app passes it to a device."""
        return cell if self.kind is None else self.kind.said(cell)

    def _size(self, index: int) -> int:
        return min(CHUNK, self.devices - index * CHUNK)


class Recorded(ByDevice):
    """Recorded streams: each once, or any number of them drawn with replacement.

    Parameters
    ----------
    recorded
        The values of each recorded device (rows) in each period (columns).
    devices
        The number of devices to draw; by default each recorded device is taken once.
    seed
        The seed of the draw.
    kind
        The kind of values, which converts codes.

    Examples
    --------
    >>> population = Recorded(np.array([[0, 1], [1, 1]]), devices=5)
    >>> population.devices, population.streams().shape
    (5, (5, 2))

    """

    def __init__(
        self,
        recorded: Array,
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

    def rows(self, index: int) -> Array:
        """Return the streams of one part."""
        return np.asarray(self._recorded[self._drawn(index)])

    def _drawn(self, index: int) -> Any:
        if self._seed is None:
            return slice(index * CHUNK, (index + 1) * CHUNK)
        rng = np.random.default_rng([self._seed, index])
        return rng.integers(len(self._recorded), size=self._size(index))

    @cached_property
    def _everybody(self) -> Any:
        if self._seed is None:
            return slice(None)
        return np.concatenate([self._drawn(index) for index in range(self.parts)])

    def values(self, period: int) -> Array:
        """Return the value of each device in a period."""
        return np.asarray(self._recorded[:, period - 1][self._everybody])
