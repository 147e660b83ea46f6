"""A public grid of periods: the time axis of a stream that is published by time."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from sfumato.arrays import Bools, Ints
from sfumato.core.duration import length
from sfumato.errors import ConfigurationError, InputError
from sfumato.streams.published.local_time import DAY, LocalTime, read_time, zone_of

__all__ = ["MOST_PERIODS", "TimeGrid", "seconds_in"]

MOST_PERIODS: Final = 1 << 20
_EVERY: Final = re.compile(r"([1-9][0-9]{0,5})(s|min|m|h|d)")
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": DAY}
_YEARS: Final = (1000, 9998)  # a year beyond either has no neighbour, or no four digits


def seconds_in(every: str) -> int:
    """Return the length of a period in seconds; it must divide a day.

    Examples
    --------
    >>> seconds_in("15m"), seconds_in("1h"), seconds_in("1d")
    (900, 3600, 86400)
    >>> seconds_in("7h")
    Traceback (most recent call last):
    ...
    sfumato.errors.ConfigurationError: every is '7h'; a length that divides a day is expected, such
    as 15m, 1h, 6h or 1d.

    """
    parts = _EVERY.fullmatch(every)
    seconds = int(parts[1]) * _SECONDS[parts[2]] if parts else 0
    if not seconds or DAY % seconds:
        raise ConfigurationError(
            f"every is {every!r}; a length that divides a day is expected, such as 15m, 1h, 6h "
            "or 1d."
        )
    return seconds


@dataclass(frozen=True)
class TimeGrid:
    """Periods that begin whenever the clock of a zone shows a multiple of their length.

    A day on which clocks are changed has 23 or 25 periods of an hour, and is one period of a day.
    Where clocks are put back, periods that come twice are two if they fit into what is repeated
    (hours, quarters of an hour), and one longer period if they do not (six hours).

    Parameters
    ----------
    start, end
        The moments at which the first period begins and the last one ends, in seconds since
        1970-01-01 00:00 UTC.
    every
        The length of a period in seconds; it divides a day.
    zone
        The name of the time zone.

    Examples
    --------
    >>> grid = TimeGrid.spanning("2026-03-28", "2026-03-29", 3600, "Europe/Berlin")
    >>> grid.periods
    47
    >>> grid.range_of("2026-03-29", "2026-03-29")  # the day on which clocks were put forward
    (25, 47)

    """

    start: int
    end: int
    every: int
    zone: str

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the grid begins and ends where periods do."""
        zone_of(self.zone)
        if not 0 < self.every <= DAY or DAY % self.every:
            raise ConfigurationError(f"every is {self.every} seconds, which do not divide a day.")
        if self.end - self.start > MOST_PERIODS * self.every:
            raise ConfigurationError(
                f"there are about {(self.end - self.start) // self.every:,} periods of "
                f"{length(self.every)}; {MOST_PERIODS:,} are the most."
            )
        ends = self.edges[[0, -1]].tolist() if self.edges.size > 1 else []
        if ends != [self.start, self.end]:
            raise ConfigurationError("the grid does not begin and end where periods do.")

    @classmethod
    def spanning(cls, first: str, last: str, every: int, zone: str) -> TimeGrid:
        """Return the grid from the first period of one stretch of time to the last of another.

        Parameters
        ----------
        first, last
            A year, a month, a day, or a time, which stands for the period that it lies in.
        every, zone
            As for the grid itself.

        """
        start, _ = _stretch("from", first, zone)
        _, end = _stretch("until", last, zone)
        if not start < end:
            raise ConfigurationError(
                f"until is {last!r}, which is before from, {first!r}; a later time is expected."
            )
        if end - start > MOST_PERIODS * every:
            return cls(start, end, every, zone)  # which says how many these would be
        near = _edges(LocalTime(zone, start - 2 * DAY, end + 2 * DAY), start, end, every, 2 * DAY)
        begin = int(near[np.searchsorted(near, start, side="right") - 1])
        return cls(begin, int(near[np.searchsorted(near, end)]), every, zone)

    @cached_property
    def clock(self) -> LocalTime:
        """The clock of the zone."""
        return LocalTime(self.zone, self.start, self.end)

    @cached_property
    def edges(self) -> Ints:
        """The moments at which periods begin, and at last the one at which the last one ends."""
        return _edges(self.clock, self.start, self.end, self.every)

    @property
    def periods(self) -> int:
        """The number of periods."""
        return self.edges.size - 1

    def periods_of(self, times: Ints, are_walls: Bools) -> Ints:
        """Return the index of the period that each time lies in; -1 outside of the grid."""
        moments = np.where(are_walls, self.clock.moments(times), times)
        indices = np.searchsorted(self.edges, moments, side="right") - 1
        return np.where(indices < self.periods, indices, -1)

    def range_of(self, first: str, last: str) -> tuple[int, int]:
        """Return the numbers, from 1 on, of the first and last period of a range of time."""
        start, end = _stretch("first", first, self.zone)[0], _stretch("last", last, self.zone)[1]
        if not start < end:
            raise InputError(f"the range is {first} to {last}; its first time must not be later.")
        if start < self.start or end > self.end:
            text = self.clock.text
            raise InputError(
                f"the range is {first} to {last}; published are the times from {text(self.start)} "
                f"until {text(self.end)}."
            )
        indices = np.searchsorted(self.edges, [start, end - 1], side="right").tolist()
        return indices[0], indices[1]

    def plain(self) -> dict[str, Any]:
        """Return the grid as plain data."""
        return asdict(self)


def _edges(clock: LocalTime, start: int, end: int, every: int, margin: int = 0) -> Ints:
    """Return the moments between two others, both included, at which periods begin."""
    first, last = start - margin, end + margin
    low, high = (clock.walls([first, last]) // every * every).tolist()
    walls = np.arange(low - DAY, high + DAY + 1, every)
    once, again = clock.moments(walls), clock.moments(walls, second=True)
    twice = (again > once) & ((again - once) % every == 0)
    never = again < once  # these periods begin when clocks are put forward
    once[never] = clock.changes[np.searchsorted(clock.changes, again[never], side="right")]
    edges = np.unique(np.concatenate([once, again[twice]]))
    return np.asarray(edges[(edges >= first) & (edges <= last)])


def _stretch(name: str, text: str, zone: str) -> tuple[int, int]:
    """Return the moments at which a year, month, day or second begins and ends."""
    parts = re.fullmatch(r"([1-9][0-9]{3})(?:-(0[1-9]|1[0-2]))?", text.strip())
    if parts is not None and _YEARS[0] < int(parts[1]) <= _YEARS[1]:
        year, month = int(parts[1]), int(parts[2] or 1)
        after = divmod(year * 12 + month - 1 + (1 if parts[2] else 12), 12)
        dates = (f"{year}-{month:02}-01", f"{after[0]}-{after[1] + 1:02}-01")
        read = [read_time(date) for date in dates]
        ends = [time[0] for time in read if time is not None]
        are_walls = True
    else:
        time = read_time(text.strip())
        if time is None or not _YEARS[0] < int(text.strip()[:4]) <= _YEARS[1]:
            raise ConfigurationError(
                f"{name} is {text!r}; a time such as 2026-03-01, 2026-03, 2026-03-01T12:00 or "
                "2026-03-01T12:00+01:00 is expected."
            )
        ends = [time[0], time[0] + (DAY if len(text.strip()) == len("2026-03-01") else 1)]
        are_walls = time[1]
    if not are_walls:
        return ends[0], ends[1]
    clock = LocalTime(zone, ends[0] - DAY, ends[1] + DAY)
    start, end = clock.moments(ends).tolist()
    return start, max(end, start + 1)
