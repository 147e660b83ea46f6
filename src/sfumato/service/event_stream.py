"""Server-sent events: what a period has released, sent as soon as it closes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol, Self, TypeVar

import numpy as np

from sfumato.core.answers import REMARKS, SIDES, Answers
from sfumato.core.estimate import Covariance, Estimate
from sfumato.errors import SfumatoError
from sfumato.service.lane import NotBegun
from sfumato.service.running_task import RunningTask
from sfumato.service.task_driving import LEVEL
from sfumato.store import Release
from sfumato.streams.amplification import TOO_FEW

__all__ = ["Bell", "answers", "stream", "told"]

T = TypeVar("T")

MOST_AT_ONCE: Final = 64
MOST_NUMBERS: Final = 1 << 14
"""The largest numbers of events, and of items in them, that are built in one piece."""

BREATH: Final = 15.0
"""The number of seconds without an event after which a comment is sent to listeners."""


class Build(Protocol):
    """Lets a thread do some work, once for all who ask for the same."""

    def __call__(self, work: Callable[[], T], key: Hashable) -> Awaitable[T]:
        """Return the result of some work, which the key says; raise NotBegun at the end of all."""


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


@dataclass(frozen=True)
class _Beside:
    """What is known of closed periods beside their releases, read once for many of them."""

    reports: Mapping[int, int]
    """The number of reports of each period."""
    incomplete: frozenset[int]
    """The periods that may lack reports."""
    flagged: frozenset[int]
    """The periods in which honest devices have not sent all."""

    @classmethod
    def of(cls, running: RunningTask) -> Self:
        """Return what is known of a task's closed periods now."""
        return cls(
            running.participation(),
            frozenset(running.incomplete()),
            frozenset(running.suspicions()),
        )

    def event(self, running: RunningTask, release: Release) -> str:
        """Return the event of a period."""
        released, own = answers(running, release), (release.period,)
        if release.period in self.incomplete:
            released = replace(released, incomplete=own)
        if release.period in self.flagged:
            released = replace(released, flagged=own)
        counted = self.reports.get(release.period, 0)
        data = json.dumps(told(released, counted, is_mixed=running.is_mixed))
        return f"id: {release.period}\nevent: period\ndata: {data}\n\n"

    def events(self, running: RunningTask, since: int, last: int) -> list[str]:
        """Return the events of the periods after ``since``, up to the last one."""
        return [self.event(running, release) for release in running.releases[since:last]]


def _last_of_piece(running: RunningTask, since: int, closed: int) -> int:
    """Return the last period of the next piece of events after ``since``.

    Pieces begin and end where those of other listeners do, so that they are built once for all.
    """
    each = max(1, min(MOST_AT_ONCE, MOST_NUMBERS // len(running.labels)))
    return min(closed, (since // each + 1) * each)


async def _news(running: RunningTask, since: int, build: Build) -> AsyncIterator[tuple[int, str]]:
    """Yield the periods after ``since`` that have closed by now, each with its event.

    They are built in pieces elsewhere, so that whoever else waits here does not wait for them.
    """
    closed = running.closed
    key = ("news", running.name, closed)
    beside = await build(partial(_Beside.of, running), key)
    while since < closed:
        last = _last_of_piece(running, since, closed)
        events = await build(partial(beside.events, running, since, last), (*key, since, last))
        for period, event in enumerate(events, since + 1):
            yield period, event
        since = last


async def _always() -> bool:
    return True


async def stream(
    running: RunningTask,
    bell: Bell,
    since: int,
    leave: Callable[[], None],
    build: Build,
    *,
    bare: bool = False,
    is_for_listener: Callable[[], Awaitable[bool]] = _always,
) -> AsyncIterator[str]:
    """Yield an event for each period after ``since``, until all periods have closed.

    Parameters
    ----------
    running
        The task.
    bell
        The bell that rings when a period has closed.
    since
        The last period that the listener knows.
    leave
        A function that is called when nobody listens any more, whatever happens.
    build
        A function that lets a thread do some work, once for all who ask for the same.
    bare
        Whether events only say that a period has closed, for pages that fetch what they show.
    is_for_listener
        Returns whether the task is there and the listener may still read it; if not, this ends.

    """
    try:
        yield "retry: 2000\n\n"
        while not bell.stopping and await is_for_listener():
            rung = bell.next_ring()
            if bare and since < running.closed:
                since = running.closed
                yield f"id: {since}\nevent: period\ndata: {{}}\n\n"
            if since < running.closed:
                try:
                    async for period, event in _news(running, since, build):
                        yield event
                        since = period
                        if bell.stopping:
                            return
                except (SfumatoError, NotBegun):
                    return  # the listener comes again, when the store may be there again
            if since < running.closed:  # closed meanwhile
                continue
            if running.is_over:
                yield "event: over\ndata: {}\n\n"
                return
            try:
                await asyncio.wait_for(rung.wait(), BREATH)
            except TimeoutError:
                yield ": all is well\n\n"
    finally:
        leave()
