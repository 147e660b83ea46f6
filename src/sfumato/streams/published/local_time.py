"""Local time in whole seconds: what a text says, and which moment a clock on the wall means.

A *wall time* is what the clock of a time zone shows, in seconds since 1970-01-01 00:00 on that same
clock; a *moment* is in seconds since 1970-01-01 00:00 UTC. Where clocks are put back, a wall time
that comes twice means the first of its two moments; where they are put forward, one that never
comes means the moment at which it would have come, had nobody touched the clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Ints
from sfumato.errors import ConfigurationError

__all__ = ["DAY", "LocalTime", "read_time", "zone_of"]

DAY: Final = 86_400
_STEP: Final = DAY // 2  # no zone changes its offset, and changes it back, within that time
_TIME: Final = re.compile(
    r"([1-9][0-9]{3}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([01][0-9]|2[0-3])(:[0-5][0-9])(?:(:[0-5][0-9])(?:\.[0-9]{1,9})?)?"
    r"(Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)


def read_time(text: str) -> tuple[int, bool] | None:
    """Return the time in an ISO text, rounded down to a second, and whether it is a wall time.

    A text without an offset is a wall time, and a date alone is its midnight. None if the text is
    neither.

    Examples
    --------
    >>> read_time("1970-01-02"), read_time("1970-01-01 01:00:00.9+01:00"), read_time("soon")
    ((86400, True), (0, False), None)

    """
    parts = _TIME.fullmatch(text)
    if parts is None:
        return None
    date, hour, minute, second, offset = parts.groups()
    try:
        time = datetime.fromisoformat(f"{date}T{hour or '00'}{minute or ':00'}{second or ''}")
    except ValueError:  # the 30th of February
        return None
    return int(time.replace(tzinfo=UTC).timestamp()) - _offset(offset or "Z"), offset is None


@lru_cache(maxsize=1024)
def _offset(text: str) -> int:
    """Return the seconds by which a clock is ahead of UTC."""
    digits = text[1:].replace(":", "").ljust(4, "0")
    seconds = 0 if text == "Z" else int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -seconds if text[0] == "-" else seconds


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone of a name; raise ConfigurationError if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ConfigurationError(
            f"zone is {name!r}; a time zone such as Europe/Berlin or UTC is expected."
        ) from None


class LocalTime:
    """The clock of a time zone, for arrays of times around a span.

    Parameters
    ----------
    zone
        The name of the zone.
    first, last
        The moments that the span goes from and to. Times more than a day outside of it are read
        with the offsets at its ends.

    Examples
    --------
    >>> clock = LocalTime("Europe/Berlin", 1774000000, 1775000000)
    >>> spring = 1774749600  # 2026-03-29 02:00 on the wall, which never came
    >>> clock.moments([spring - 1, spring, spring + 3600]).tolist()
    [1774745999, 1774746000, 1774746000]

    """

    def __init__(self, zone: str, first: int, last: int) -> None:
        self.zone = zone_of(zone)
        changes, offsets = [], [self._ahead(first - 2 * DAY)]
        for start in range(first - 2 * DAY, last + 2 * DAY, _STEP):
            if self._ahead(start + _STEP) != offsets[-1]:
                low, high = start, start + _STEP
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (
                        (middle, high) if self._ahead(middle) == offsets[-1] else (low, middle)
                    )
                changes.append(high)
                offsets.append(self._ahead(high))
        self.changes = np.array(changes, dtype=np.int64)
        self.offsets = np.array(offsets, dtype=np.int64)

    def moments(self, walls: ArrayLike, *, second: bool = False) -> Ints:
        """Return the moments of wall times; of those that come twice, the second one if asked."""
        times = np.asarray(walls, dtype=np.int64)
        ends = np.maximum if second is False else np.minimum
        until = self.changes + ends(self.offsets[:-1], self.offsets[1:])
        return np.asarray(times - self.offsets[np.searchsorted(until, times, side="right")])

    def walls(self, moments: ArrayLike) -> Ints:
        """Return what the clock shows at some moments."""
        times = np.asarray(moments, dtype=np.int64)
        return np.asarray(times + self.offsets[np.searchsorted(self.changes, times, side="right")])

    def text(self, moment: int) -> str:
        """Return a moment as an ISO text in local time, with its offset."""
        return datetime.fromtimestamp(moment, self.zone).isoformat()

    def _ahead(self, moment: int) -> int:
        offset = datetime.fromtimestamp(moment, self.zone).utcoffset()
        assert offset is not None  # noqa: S101 - the time has a zone
        return int(offset.total_seconds())
