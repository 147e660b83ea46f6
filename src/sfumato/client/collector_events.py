"""What a collector tells as it happens: a line of server-sent events for each period."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any, Final

from sfumato.errors import InputError

__all__ = ["periods"]

SILENCE: Final = 20.0
"""The seconds of silence after which a collector is gone; a living one sends something sooner."""


def periods(task: str, since: int) -> Iterator[dict[str, Any]]:
    """Yield the release of each period after ``since``, as it closes, until all have closed."""
    try:
        with urllib.request.urlopen(f"{task}/events?since={since}", timeout=SILENCE) as lines:  # noqa: S310 -- our own collector
            name = ""
            for raw in lines:
                field, _, value = raw.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data" and name == "period":
                    yield json.loads(value)
                elif field:
                    continue
                elif value:  # it breathes; whoever follows may look around
                    return
                else:
                    name = ""
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        raise InputError(f"{task} tells no more ({error}).") from None
