"""What has happened: changes that noise does not explain, and periods above a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.intervals import z_score
from sfumato.pages.subject import Columns

__all__ = ["CHANCE", "Alarm", "Happening", "alarms", "happenings"]

CHANCE: Final = 0.05
"""The probability that noise alone has any change listed, over all items and periods."""


@dataclass(frozen=True)
class Happening:
    """A change of an item that is larger than noise explains."""

    item: int
    since: int
    """The period that it is compared with."""
    period: int
    """The first period in which the change is beyond noise."""
    before: float
    after: float


@dataclass(frozen=True)
class Alarm:
    """Consecutive periods in which the interval of an item is above a threshold."""

    item: int
    first: int
    last: int


def happenings(columns: Columns, items: Sequence[int], level: float) -> list[Happening]:
    """Return the changes of some items, in the order of time.

    All intervals are made so wide that they hold together except with probability ``CHANCE``. Two
    of an item that do not meet are then a change, however the errors of periods are related. The
    next change is looked for from there on.

    Parameters
    ----------
    columns
        The items in each period.
    items
        What the items are called.
    level
        The level of the given intervals.

    """
    changes = [
        Happening(item, since + 1, row + 1, float(column[0][since]), float(column[0][row]))
        for item, *column in zip(items, *(side.T for side in _widened(columns, level)), strict=True)
        for since, row in _jumps(*column)
    ]
    return sorted(changes, key=lambda change: change.period)


def _jumps(values: Floats, low: Floats, high: Floats) -> Iterator[tuple[int, int]]:
    """Yield pairs of periods whose intervals do not meet, each as soon after the last as can be."""
    rows = np.flatnonzero(np.isfinite(values) & np.isfinite(low) & np.isfinite(high))
    at = 0
    while at < rows.size:
        since, after = rows[at], rows[at + 1 :]
        apart = (low[after] > high[since]) | (high[after] < low[since])
        if not apart.any():
            return
        at += 1 + int(np.argmax(apart))
        yield int(since), int(rows[at])


def _widened(columns: Columns, level: float) -> tuple[Floats, Floats, Floats]:
    """Return values inside of their intervals, and intervals that hold all at once."""
    values = np.clip(columns.values, columns.low, columns.high)
    many = max(1, values.size)
    wider = z_score(max(level, 1 - CHANCE / many)) / z_score(level)
    low = values - wider * (values - columns.low)
    high = values + wider * (columns.high - values)
    return values, low, high


def alarms(columns: Columns, items: Sequence[int], above: float) -> list[Alarm]:
    """Return the stretches of periods in which an item's whole interval is above a threshold."""
    stretches: list[Alarm] = []
    for item, low in zip(items, columns.low.T, strict=True):
        high = np.concatenate([[False], low > above, [False]])
        starts, ends = np.flatnonzero(np.diff(high.astype(np.int8))).reshape(-1, 2).T
        stretches += [
            Alarm(item, int(start) + 1, int(end)) for start, end in zip(starts, ends, strict=True)
        ]
    return sorted(stretches, key=lambda each: (each.first, each.item))
