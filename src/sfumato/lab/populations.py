"""Populations of an endless task: made up, a curve of the literature, planes, or a table."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.lab import flights
from sfumato.lab.endless import CURVES, Binary, Drifting, Recorded, Stream, flights_by_day
from sfumato.lab.fleets import read_streams
from sfumato.lab.observed import Numbers
from sfumato.streams.kinds import Category
from sfumato.streams.window import Tiers, Window

__all__ = ["KNOWN", "Levels", "RecordedNumbers", "known", "recorded"]

Floats = NDArray[np.float64]

FLIGHTS: Final = "flights"
SYNTHETIC: Final = "synthetic"
KNOWN: Final = (SYNTHETIC, FLIGHTS, *CURVES)
"""Names of populations that need no file."""


class Levels(Stream):
    """Numbers of an interval, spread about a level that drifts like a tide.

    Parameters
    ----------
    interval
        Where they lie.
    devices, periods, seed
        As of any stream.

    Examples
    --------
    >>> Levels((0.0, 10.0), devices=1000, periods=5).truth(1).round().tolist()
    [5.0]

    """

    def __init__(
        self, interval: tuple[float, float], devices: int, periods: int, seed: int = 1
    ) -> None:
        super().__init__(devices, periods, seed)
        self.interval = interval
        drift = np.cumsum(np.random.default_rng([seed, 0]).normal(0, 0.01, periods))
        self.level = 0.5 + 0.25 * np.sin(2 * np.pi * drift)

    def _values(self, period: int, rng: np.random.Generator) -> NDArray[Any]:
        low, high = self.interval or (0.0, 1.0)
        place = np.clip(rng.normal(self.level[period - 1], 0.15, self.devices), 0.0, 1.0)
        return np.asarray(low + (high - low) * place)


class RecordedNumbers(Stream):
    """Recorded numbers: each device once, or as many as wanted, with replacement.

    Parameters
    ----------
    streams
        A number for each recorded device (rows) and period (columns).
    interval
        Where they lie.
    devices
        How many to draw; each once if left out.
    seed
        Of the draw.

    """

    def __init__(
        self,
        streams: Floats,
        interval: tuple[float, float],
        devices: int | None = None,
        seed: int = 1,
    ) -> None:
        super().__init__(len(streams) if devices is None else devices, streams.shape[1], seed)
        self.interval = interval
        self._streams = streams
        rng = np.random.default_rng([seed, 0])
        self._drawn = None if devices is None else rng.integers(len(streams), size=devices)

    def _values(self, period: int, rng: np.random.Generator) -> NDArray[Any]:
        del rng
        column = self._streams[:, period - 1]
        return column if self._drawn is None else column[self._drawn]


def known(
    name: str, protocol: Window | Tiers, periods: int, devices: int | None, seed: int
) -> Stream:
    """Return a population by its name, fit for a protocol.

    Parameters
    ----------
    name
        One of :data:`KNOWN`.
    protocol
        What is asked.
    periods, devices, seed
        For how long, how many (as many as the protocol expects if left out), and of all of it.

    """
    one = protocol.tiers[0]
    many = protocol.devices if devices is None else devices
    if name == FLIGHTS:
        if one.labels != flights.PLACES or periods > flights.DAYS:
            raise InputError(
                f"the task has {one.width} items and {periods} periods; the planes have "
                f"{len(flights.PLACES)} and {flights.DAYS} days."
            )
        return _first(flights_by_day(many, seed), periods)
    if name in CURVES:
        if one.width != 2:
            raise InputError(
                f"the task has {one.width} item(s); the curve {name!r} is of two, no and yes."
            )
        return Binary(name, many, periods, seed)
    if name != SYNTHETIC:
        raise InputError(f"data is {name!r}; {', '.join(KNOWN)} or a table is expected.")
    if one.interval is not None:
        return Levels(one.interval, many, periods, seed)
    return Drifting(one.width, many, periods, seed)


def _first(stream: Stream, periods: int) -> Stream:
    stream.periods = min(stream.periods, periods)
    return stream


def recorded(
    table: Any, protocol: Window | Tiers, periods: int, devices: int | None, seed: int
) -> Stream:
    """Return the population of a table with the columns device, period and value."""
    one = protocol.tiers[0]
    if one.interval is None:
        labels = one.labels
        return Recorded(read_streams(Category(labels), periods, table), labels, devices, seed)
    numbers = Numbers(*one.interval, one.clip, periods).read(table)
    return RecordedNumbers(numbers, one.interval, devices, seed)
