"""Server-sent events: what a period has released, as soon as it closes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from sfumato.core.answers import SIDES, Answers
from sfumato.core.estimate import Covariance, Estimate
from sfumato.service.running_task import RunningTask
from sfumato.store import Release

__all__ = ["Bell", "answers", "stream", "told"]

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


def answers(running: RunningTask, release: Release, places: Sequence[int] | None = None) -> Answers:
    """Return what a period has released as answers; only some of its entries, if places are named.

    Parameters
    ----------
    running
        The task.
    release
        What one of its periods has released.
    places
        The entries that are wanted, all by default.

    """
    chosen = slice(None) if places is None else np.asarray(places, dtype=np.int64)
    labels = running.labels if places is None else tuple(running.labels[place] for place in places)
    stream = running.protocol
    # How entries vary together is not kept.
    spread = Covariance(release.variances[chosen], joint=False)
    estimate = Estimate(
        release.values[chosen],
        spread,
        labels,
        release.n,
        stream.guarantee,
        quantity=stream.quantity,
    )
    return replace(estimate.answers(LEVEL), as_of=release.period)


def told(answers: Answers, reports: int) -> dict[str, Any]:
    """Return what a period has released as plain columns, one entry for each label of the task."""
    columns = zip(SIDES, zip(*answers.known(), strict=True), strict=True)
    about = {"period": answers.as_of, "reports": reports, "n": answers.n, "level": answers.level}
    return about | dict(columns)


async def stream(running: RunningTask, bell: Bell, since: int) -> AsyncIterator[str]:
    """Yield an event for each period after one, and go on until all have closed."""
    bell.listeners += 1
    try:
        yield "retry: 2000\n\n"
        while not bell.stopping:
            rung = bell.next_ring()
            if since < running.closed:
                reports = await asyncio.to_thread(running.participation)
                for release in running.releases[since : running.closed]:
                    data = json.dumps(
                        told(answers(running, release), reports.get(release.period, 0))
                    )
                    yield f"id: {release.period}\nevent: period\ndata: {data}\n\n"
                    since = release.period
            if running.is_over:
                yield "event: over\ndata: {}\n\n"
                return
            try:
                await asyncio.wait_for(rung.wait(), BREATH)
            except TimeoutError:
                yield ": all is well\n\n"
    finally:
        bell.listeners -= 1
