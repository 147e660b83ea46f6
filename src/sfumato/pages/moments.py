"""Moments and positions, in words and as elements that a script turns into local time."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from html import escape
from zoneinfo import ZoneInfo

from sfumato.pages.subject import Axis

__all__ = ["clock", "element", "fineness", "moment", "span_words"]


def clock(at: float) -> str:
    """Return a moment in words.

    Examples
    --------
    >>> clock(1_000_000)
    '1970-01-12 13:46:40 UTC'

    """
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def moment(axis: Axis, at: int) -> str:
    """Return a place on an axis in a few words, as finely as its periods need."""
    if not axis.in_time:
        return f"{at:,}"
    zone = ZoneInfo(axis.zone) if axis.zone else UTC
    when = datetime.fromtimestamp(at, zone)
    if axis.step >= 86_400:
        return when.strftime("%d %b %Y")
    return when.strftime("%d %b %H:%M" if axis.step >= 60 else "%H:%M:%S")


def element(at: float, style: str = "full") -> str:
    """Return a moment as an element; a script shows it in the time of the reader.

    Parameters
    ----------
    at
        The moment in seconds since 1970.
    style
        How the script shows it: full, fine (with seconds), or ago (as the time that has passed).

    """
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    return f'<time datetime="{stamp}" data-at="{at:.3f}" data-style="{style}">{clock(at)}</time>'


def fineness(axis: Axis) -> str:
    """Return how finely the moments of an axis are shown."""
    return "fine" if axis.step < 60 else "full"


def span_words(axis: Axis, first: int, last: int) -> str:
    """Return a range of periods in words, as HTML: from its begin to its end."""
    begin, end = axis.begin(first), axis.end(last)
    if axis.in_time and not axis.zone:
        style = fineness(axis)
        ends = f"{element(begin, style)} and {element(end, style)}"
    elif axis.in_time:
        zone = escape(axis.zone)
        ends = f"{moment(axis, begin)} and {moment(axis, end)} ({zone})"
    else:
        return f"From value {begin + 1:,} to value {end:,}"
    return f"Between {ends}"
