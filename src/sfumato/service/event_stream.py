"""Server-sent events: what a period has released, sent as soon as it closes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from sfumato.core.answers import REMARKS, SIDES, Answers
from sfumato.core.estimate import Covariance, Estimate
from sfumato.errors import SfumatoError
from sfumato.service.running_task import RunningTask
from sfumato.service.task_driving import LEVEL
from sfumato.store import Release
from sfumato.streams.amplification import TOO_FEW

__all__ = ["Bell", "answers", "stream", "told"]

BREATH: Final = 15.0
"""The number of seconds without an event after which a comment is sent to listeners."""


class Bell:
    """Wakes all tasks that wait for a period to close."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.stopping = False

    def ring(self, *, stop: bool = False) -> None:
        """Wake all listeners; with ``stop``, for the last time."""
        self.stopping = self.stopping or stop
        event, self._event = self._event, asyncio.Event()
        event.set()

    def stop(self, wake: bool) -> None:  # noqa: FBT001 -- as a server calls it
        """Let no listener wait any more; wake those that do, unless a signal has just come."""
        self.stopping = True
        if wake:
            self.ring()

    def next_ring(self) -> asyncio.Event:
        """Return the event of the next ring; fetch it before looking for news to miss no ring."""
        return self._event


def answers(running: RunningTask, release: Release, places: Sequence[int] | None = None) -> Answers:
    """Return the release of a period as answers, for all entries or for some.

    Parameters
    ----------
    running
        The task.
    release
        The release of one of its periods.
    places
        The indices of the entries; all by default.

    """
    chosen = slice(None) if places is None else np.asarray(places, dtype=np.int64)
    labels = running.labels if places is None else tuple(running.labels[place] for place in places)
    stream = running.protocol
    # The covariance of entries is not stored.
    spread = Covariance(release.variances[chosen], joint=False)
    estimate = Estimate(
        release.values[chosen],
        spread,
        labels,
        release.n,
        stream.guarantee,
        quantity=stream.quantity,
    )
    answers = replace(estimate.answers(LEVEL), as_of=release.period)
    if release.ends is None:
        return answers
    return replace(answers, low=release.ends[0][chosen], high=release.ends[1][chosen])


def told(answers: Answers, reports: int, *, is_mixed: bool) -> dict[str, Any]:
    """Return the release of a period as plain columns, with one number for each label."""
    columns = zip(SIDES, zip(*answers.known(), strict=True), strict=True)
    about = {"period": answers.as_of, "reports": reports, "n": answers.n, "level": answers.level}
    few = {"problem": TOO_FEW} if is_mixed and not reports else {}
    remarks = {name: True for name in REMARKS if getattr(answers, name)}
    return about | few | remarks | dict(columns)


async def stream(
    running: RunningTask, bell: Bell, since: int, leave: Callable[[], None], *, bare: bool = False
) -> AsyncIterator[str]:
    """Yield an event for each period after ``since``, until all periods have closed.

    Whatever happens, ``leave`` is called when nobody listens any more. With ``bare``, events only
    say that a period has closed, for pages that fetch what they show.
    """
    try:
        yield "retry: 2000\n\n"
        while not bell.stopping:
            rung = bell.next_ring()
            if bare and since < running.closed:
                since = running.closed
                yield f"id: {since}\nevent: period\ndata: {{}}\n\n"
            if since < running.closed:
                try:
                    reports = await asyncio.to_thread(running.participation)
                except SfumatoError:
                    return  # the listener comes again, when the store may be there again
                for release in running.releases[since : running.closed]:
                    released = answers(running, release)
                    counted = reports.get(release.period, 0)
                    own = (release.period,)
                    if release.period in running.incomplete():
                        released = replace(released, incomplete=own)
                    if release.period in running.suspicions():
                        released = replace(released, flagged=own)
                    data = json.dumps(told(released, counted, is_mixed=running.is_mixed))
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
        leave()
