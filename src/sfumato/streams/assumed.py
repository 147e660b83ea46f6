"""The streams that a plan assumes: every device makes all allowed changes, at random times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values

__all__ = ["assumed_streams"]


def assumed_streams(
    values: Values, periods: int, changes: int, people: int, rng: np.random.Generator
) -> Array:
    """Return the streams of ``people`` people, in the form that ``values.encode_streams`` takes.

    A binary value is off before the first period and changes in random periods. A category has a
    random item from the first period on and changes to others, and so does each attribute. Sets are
    empty at first, and random items are added and removed.

    Examples
    --------
    >>> streams = assumed_streams(Binary(), 6, 2, 3, np.random.default_rng(1))
    >>> np.abs(np.diff(streams, prepend=0)).sum(axis=1).tolist()
    [2, 2, 2]

    """
    if isinstance(values, Binary):
        flips = _places(people, periods, changes, rng)
        return np.cumsum(flips, axis=1, dtype=np.int64).astype(np.int8) & 1
    if isinstance(values, Category):
        return _moving(values.width, periods, (changes - 1) // 2, people, rng)
    if isinstance(values, Attributes):
        return _attributes(values, periods, changes, people, rng)
    if isinstance(values, Items):
        return _sets(values, periods, changes, people, rng)
    raise TypeError(f"values is {values!r}; no streams of that kind are known.")


def _places(people: int, size: int, count: int, rng: np.random.Generator) -> Bools:
    """Return rows with ``count`` random entries that are true (all, if there are fewer)."""
    if count >= size:
        return np.ones((people, size), dtype=bool)
    order = rng.random((people, size), dtype=np.float32)
    chosen = np.argpartition(order, count, axis=1)[:, :count]
    rows = np.zeros((people, size), dtype=bool)
    np.put_along_axis(rows, chosen, values=True, axis=1)
    return rows


def _moving(
    items: int, periods: int, moves: int, people: int, rng: np.random.Generator
) -> NDArray[np.int16]:
    """Return items with ``moves`` changes; each adds 1..items-1 to the code, modulo items."""
    steps = np.zeros((people, periods), dtype=np.int64)
    moved = _places(people, periods - 1, moves, rng)
    steps[:, 1:][moved] = rng.integers(1, items, int(moved.sum()))
    steps[:, 0] = rng.integers(0, items, people)
    return (np.cumsum(steps, axis=1) % items).astype(np.int16)


def _attributes(
    values: Attributes, periods: int, changes: int, people: int, rng: np.random.Generator
) -> NDArray[np.int16]:
    """Return the codes of all attributes; each change is one of a random attribute."""
    count = len(values.categories)
    moved = _places(people, (periods - 1) * count, (changes - count) // 2, rng)
    moved = moved.reshape(people, periods - 1, count)
    codes = np.empty((people, periods, count), dtype=np.int16)
    for index, (_, category) in enumerate(values.categories):
        steps = np.zeros((people, periods), dtype=np.int64)
        here = moved[:, :, index]
        steps[:, 1:][here] = rng.integers(1, category.width, int(here.sum()))
        steps[:, 0] = rng.integers(0, category.width, people)
        codes[:, :, index] = np.cumsum(steps, axis=1) % category.width
    return codes


def _sets(
    values: Items, periods: int, changes: int, people: int, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Return sets to which random items are added; from a full set one is removed instead."""
    if values.largest == values.width:
        flips = _places(people, periods * values.width, changes, rng)
        bits = np.cumsum(flips.reshape(people, periods, values.width), axis=1, dtype=np.int64)
        return (bits & 1).astype(np.int8)
    flips = np.zeros((people, periods, values.width), dtype=np.int8)
    held = np.zeros((people, values.width), dtype=bool)
    everyone = np.arange(people)
    when = np.sort(rng.integers(0, periods, (people, changes)), axis=1)
    for step in range(changes):
        wish = rng.random((people, values.width), dtype=np.float32)
        full = held.sum(axis=1) == values.largest
        wish[full[:, None] & ~held] = -1
        item = wish.argmax(axis=1)
        held[everyone, item] ^= True
        flips[everyone, when[:, step], item] ^= 1
    return np.cumsum(flips, axis=1, dtype=np.int64).astype(np.int8) & 1
