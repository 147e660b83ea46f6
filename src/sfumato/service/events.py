"""Server-sent events: what a period has released, as soon as it closes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.core.intervals import z_score
from sfumato.service.desk import Desk
from sfumato.service.questions import known
from sfumato.store import Release

__all__ = ["Bell", "plain", "released", "sides", "stream"]

Floats = NDArray[np.float64]

BREATH: Final = 15.0
"""Seconds of silence after which a listener is told that all is well."""

LEVEL: Final = 0.95


class Bell:
    """Wakes everybody who waits for a period to close."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.stopping = False
        self.listeners = 0

    def ring(self, *, stop: bool = False) -> None:
        """Wake all; if this is the end, for the last time."""
        self.stopping = self.stopping or stop
        event, self._event = self._event, asyncio.Event()
        event.set()

    def next_ring(self) -> asyncio.Event:
        """Return what is set when the bell rings next; taken before a look, no ring is missed."""
        return self._event


def sides(values: Floats, variances: Floats) -> tuple[Floats, Floats, Floats]:
    """Return values and the ends of their intervals."""
    reach = z_score(LEVEL) * np.sqrt(np.maximum(variances, 0.0))  # a damaged store may have less
    return values, values - reach, values + reach


def released(release: Release, reports: int) -> dict[str, Any]:
    """Return what a period has released as plain data; None where nothing is known."""
    return plain(release, reports, sides(release.values, release.variances))


def plain(release: Release, reports: int, entries: tuple[Floats, Floats, Floats]) -> dict[str, Any]:
    """Return a release with some entries' values and ends of their intervals as plain data."""
    values, low, high = zip(*known(*entries), strict=True)
    return {
        "period": release.period,
        "reports": reports,
        "n": release.n,
        "level": LEVEL,
        "values": values,
        "low": low,
        "high": high,
    }


async def stream(desk: Desk, bell: Bell, since: int) -> AsyncIterator[str]:
    """Yield an event for each period after one, and go on until all have closed."""
    bell.listeners += 1
    try:
        yield "retry: 2000\n\n"
        while not bell.stopping:
            rung = bell.next_ring()
            if since < desk.closed:
                reports = await asyncio.to_thread(desk.participation)
                for release in desk.releases[since : desk.closed]:
                    data = json.dumps(released(release, reports.get(release.period, 0)))
                    yield f"id: {release.period}\nevent: period\ndata: {data}\n\n"
                    since = release.period
            if desk.is_over:
                yield "event: over\ndata: {}\n\n"
                return
            try:
                await asyncio.wait_for(rung.wait(), BREATH)
            except TimeoutError:
                yield ": all is well\n\n"
    finally:
        bell.listeners -= 1
