"""Numbers of keys, which never come again, and the times at which keys are renewed.

The number of a key is the second in which it was made, so that a collector that was brought back
from a backup never gives a new key the number of one that the backup does not know. A device that
has the lost key sees another number in its next receipt, and fetches the task again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

from sfumato.errors import ConfigurationError

__all__ = ["LARGEST", "fresh_number", "is_due", "made_at"]

LARGEST: Final = (1 << 32) - 1
"""The largest number of a key on the wire."""
COUNTED: Final = 1 << 16
"""The first number that is a time; smaller ones are those of keys that were counted from 1."""
LEAP: Final = 1 << 16
"""How far a number may leap over the last one where the clock has not gone on."""


def fresh_number(now: float, last: int = 0) -> int:
    """Return the number of a new key, larger than that of the last one.

    Where the clock has not gone on since the last key was made, the number leaps by a random
    amount: two copies of a store with such a clock still have different numbers.

    Examples
    --------
    >>> fresh_number(1_800_000_000.5, last=1)
    1800000000
    >>> 1_800_000_000 < fresh_number(1_700_000_000, last=1_800_000_000) <= 1_800_065_536
    True

    """
    number = max(int(now), COUNTED)
    if number <= last:
        number = last + 1 + secrets.randbelow(LEAP)
    if number > LARGEST:
        raise ConfigurationError(
            f"the next key would have the number {number:,}, of a time after the year 2105; is the "
            "clock right?"
        )
    return number


def is_due(spec: Mapping[str, Any], number: int, now: float) -> bool:
    """Return whether a key is to be renewed.

    It is once a multiple of ``renew`` seconds after the task's start has passed since it was made.

    Examples
    --------
    >>> spec = {"start": 1_000_000, "renew": 100}
    >>> [is_due(spec, 1_000_050, now) for now in (1_000_099, 1_000_100)]
    [False, True]
    >>> [is_due(spec, 2, now) for now in (1_000_199, 1_000_200)]
    [False, True]

    """
    if "renew" not in spec:
        return False
    start, every = spec["start"], spec["renew"]
    return bool((now - start) // every > max(0, made_at(spec, number) - start) // every)


def made_at(spec: Mapping[str, Any], number: int) -> int:
    """Return the time when a key was made, in seconds since 1970.

    Numbers that were counted from 1 do not tell it; their keys count as made on time, the first one
    at the task's start.

    Examples
    --------
    >>> spec = {"start": 1_000_000, "renew": 100}
    >>> made_at(spec, 999_950), made_at(spec, 2)
    (999950, 1000100)

    """
    if number >= COUNTED:
        return number
    return int(spec["start"] + (number - 1) * spec.get("renew", 0))
