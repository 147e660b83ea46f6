"""Limits on what a stranger's task may cost a device, checked before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sfumato.errors import ConfigurationError
from sfumato.wire.reports import LARGEST_PAYLOAD
from sfumato.wire.values import TaskValues

__all__ = ["MOST_ASKED", "MOST_ITEMS", "refuse_heavy", "refuse_many_hits", "refuse_wide"]

MOST_ITEMS: Final = 1 << 16
"""The largest number of entries of a value over a horizon; a device processes all of them."""
MOST_ASKED: Final = 8 * LARGEST_PAYLOAD
"""The largest number of items of any value; the longest report has one bit for each."""
MOST_ATTRIBUTES: Final = 256
MOST_HITS: Final = 1 << 10
"""The largest number of non-zeros that a secret subset may hit; each number is weighed exactly."""
MOST_KEPT: Final = 1 << 24
"""The largest number of payload bytes that a device may have to keep unsent."""


def refuse_heavy(spec: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if a report in each period would be too much to keep."""
    if spec["payload"] * spec["periods"] > MOST_KEPT:
        raise ConfigurationError(
            f"payload is {spec['payload']} for {spec['periods']} periods; up to {MOST_KEPT:,} "
            "bytes in all are expected."
        )


def refuse_wide(spec: Mapping[str, Any], most: int) -> None:
    """Raise ConfigurationError if values have too many attributes or more than ``most`` items."""
    values = TaskValues.of_spec(spec)
    if len(values.attributes) > MOST_ATTRIBUTES:
        raise ConfigurationError(
            f"values has {len(values.attributes):,} attributes; a device takes up to "
            f"{MOST_ATTRIBUTES}."
        )
    if values.width > most:
        raise ConfigurationError(
            f"values has {values.width:,} items; a device takes up to {most:,}."
        )


def refuse_many_hits(hits: int) -> None:
    """Raise ConfigurationError if a task's subsets can hit too many entries to draw from."""
    if hits > MOST_HITS:
        raise ConfigurationError(
            f"changes or size lets a subset hit {hits:,} entries; a device draws from up to "
            f"{MOST_HITS:,}."
        )
