"""Lengths of time in words, in the largest unit that fits."""

from __future__ import annotations

from typing import Final

__all__ = ["ago", "length", "rounded"]

UNITS: Final = (("week", 604_800), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))


def length(seconds: int) -> str:
    """Return a whole number of seconds in words, exactly.

    Examples
    --------
    >>> length(3600), length(5400), length(1)
    ('1 hour', '90 minutes', '1 second')

    """
    return next(_many(seconds // size, name) for name, size in UNITS if seconds % size == 0)


def ago(seconds: float) -> str:
    """Return how long ago something was in words, rounded down to one unit.

    Examples
    --------
    >>> ago(0.4), ago(59.7), ago(2834), ago(100_000), ago(-3)
    ('just now', '59 seconds ago', '47 minutes ago', '27 hours ago', 'just now')

    """
    for name, size in UNITS:
        least = 2 * size if size > 1 else 1
        if seconds >= least:
            return f"{_many(int(seconds // size), name)} ago"
    return "just now"


def rounded(seconds: float) -> str:
    """Return a length of time in words, in one unit of which there are two or more.

    Examples
    --------
    >>> rounded(86_400 * 3.2), rounded(5400), rounded(0.4)
    ('3 days', '90 minutes', 'less than a second')

    """
    for name, size in UNITS:
        if seconds >= (2 * size if size > 1 else 1):
            return _many(round(seconds / size), name)
    return "less than a second"


def _many(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"
