"""What a curator decides about the time axis of a stream that is published by time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sfumato.core.field_checks import check_one_of, check_whole
from sfumato.errors import ConfigurationError
from sfumato.streams.published.local_time import zone_of
from sfumato.streams.published.publishing_plan import TIMES
from sfumato.streams.published.time_grid import TimeGrid, seconds_in

__all__ = ["BY_POSITION", "TimeAxis"]


@dataclass(frozen=True)
class TimeAxis:
    """The time axis, where values are published by time.

    Parameters
    ----------
    time
        The column of times: ISO dates or timestamps, or those of a Parquet file. Then the sum of
        each period is published.
    every
        The length of a period, which divides a day: 15m, 1h, 6h, 1d.
    from_
        The first day, month or time of the grid of periods; it is public.
    until
        The last day, month or time of the grid, included; it is public.
    zone
        The time zone of days, and of times without an offset, such as Europe/Berlin.
    times
        Whether times are private, so that a value is protected wherever it falls, or public, so
        that values alone are.
    most_per_period
        With private times: how many values of a period count, the largest ones; all by default.

    Examples
    --------
    >>> axis = TimeAxis("at", every="1d", from_="2026-03", until="2026-03", zone="Europe/Berlin")
    >>> axis.grid("2026-03", "2026-03").periods
    31

    """

    time: str | None = None
    every: str = "1h"
    from_: str | None = None
    until: str | None = None
    zone: str = "UTC"
    times: Literal["private", "public"] = "private"
    most_per_period: int | None = None

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all fields are allowed."""
        seconds_in(self.every)
        zone_of(self.zone)
        check_one_of("times", self.times, TIMES)
        if self.most_per_period is not None:
            check_whole("most_per_period", self.most_per_period, 1)
            if self.times == "public":
                raise ConfigurationError(
                    f"most_per_period is {self.most_per_period}; where times are public, all "
                    "values of a period count."
                )
        if self.time is not None:
            self._check_ends()

    def _check_ends(self) -> None:
        if self.times == "private" and (self.from_ is None or self.until is None):
            raise ConfigurationError(
                f"{'from' if self.from_ is None else 'until'} is missing; where times are private, "
                "the first and the last day or time of the grid must be known before."
            )
        if self.from_ is not None and self.until is not None:
            self.grid(self.from_, self.until)

    def grid(self, first: str, last: str) -> TimeGrid:
        """Return the periods from one stretch of time to another."""
        return TimeGrid.spanning(first, last, seconds_in(self.every), self.zone)


BY_POSITION = TimeAxis()
"""No time axis: values are published in the order in which they come."""
