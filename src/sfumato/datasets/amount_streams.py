"""Streams of amounts whose truth is known: fares and purchases, real or made up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from sfumato import extras
from sfumato.arrays import Floats, Ints
from sfumato.errors import InputError
from sfumato.randomness import Source, seeded

__all__ = ["KnownStream", "amount_streams", "amounts_in", "example_amounts"]


@dataclass(frozen=True, eq=False)
class KnownStream:
    """A stream of whole amounts whose truth is known, and their public bound."""

    name: str
    values: Ints
    bound: int


RECORDED: Final = {
    "POS": ("pos.parquet", "value", 1, 1657),
    "fares, 10 cents": ("nyc_taxi_2023_01.parquet", "fare_cents", 10, 30_000),
    "fares, cents": ("nyc_taxi_2023_01.parquet", "fare_cents", 1, 30_000),
}
"""The file and the column of each recorded stream, its unit there, and its bound in units."""


def amount_streams(folder: Path | None) -> list[KnownStream]:
    """Return the streams in a folder; without a folder, two made-up ones that resemble them.

    Fares come twice: in cents with a bound of 300 dollars, and in steps of ten cents with a bound
    of 30,000 steps, which is how large values and bound are in the paper's table.
    """
    if folder is None:
        draw = seeded(2021).simulator()
        items = np.minimum(1 + draw.negative_binomial(1.1, 0.145, 500_000), 1657)
        fares = np.minimum(300 + draw.gamma(1.3, 1200, 1_000_000), 30_000)
        return [
            KnownStream("items", items, 1657),
            KnownStream("fares", fares.astype(np.int64), 30_000),
        ]
    pq = extras.module("pyarrow.parquet")
    there = []
    for name in amounts_in(folder):
        file, column, unit, bound = RECORDED[name]
        table = pq.read_table(folder / file, columns=[column])
        values = table[column].to_numpy().astype(np.int64)
        there.append(KnownStream(name, np.clip((values + unit // 2) // unit, 0, bound), bound))
    if not there:
        raise InputError(f"{folder} has neither pos.parquet nor nyc_taxi_2023_01.parquet.")
    return there


def amounts_in(folder: Path) -> list[str]:
    """Return the names of the recorded streams whose files are in a folder."""
    return [name for name, (file, *_) in RECORDED.items() if (folder / file).is_file()]


def example_amounts(n: int, rng: Source) -> Floats:
    """Return a made-up stream of amounts with days, weeks and a long tail, for pictures."""
    draw = rng.simulator()
    day = np.arange(n) / 30_000 * 2 * np.pi
    level = 18 + 4 * np.sin(day) + 3 * np.sin(day / 7)
    return np.asarray(np.round(np.minimum(level * draw.gamma(1.5, 1 / 1.5, n), 300), 2))
