"""What a stream lets a stranger's task cost a device: judged before anything is built of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sfumato.errors import ConfigurationError
from sfumato.wire.reports import LARGEST_PAYLOAD
from sfumato.wire.values import TaskValues

__all__ = ["MOST_ASKED", "MOST_ITEMS", "refuse_heavy", "refuse_many_hits", "refuse_wide"]

MOST_ITEMS: Final = 1 << 16
"""How many entries a value over a horizon may have: a device goes through all of them."""
MOST_ASKED: Final = 8 * LARGEST_PAYLOAD
"""How many items any value may have: a bit for each is the longest report."""
MOST_ATTRIBUTES: Final = 256
MOST_HITS: Final = 1 << 10
"""How many non-zeros a secret subset may hit: all their numbers are weighed, exactly."""
MOST_KEPT: Final = 1 << 24
"""How many bytes of payload a device may have to keep, if nobody takes its reports."""


def refuse_heavy(spec: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if a report in each period would be more than a device can keep."""
    if spec["payload"] * spec["periods"] > MOST_KEPT:
        raise ConfigurationError(
            f"payload is {spec['payload']} for {spec['periods']} periods; up to {MOST_KEPT:,} "
            "bytes in all are expected."
        )


def refuse_wide(spec: Mapping[str, Any], most: int) -> None:
    """Raise ConfigurationError if a task's values have more attributes or items than so many."""
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
    """Raise ConfigurationError if a subset of a task can hit too many entries to draw from."""
    if hits > MOST_HITS:
        raise ConfigurationError(
            f"changes or size lets a subset hit {hits:,} entries; a device draws from up to "
            f"{MOST_HITS:,}."
        )
