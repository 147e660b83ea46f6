"""The watch on the clock: periods close in a thread of their own, so that reports need not wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

from sfumato.service.closing import PATIENCE, Closed
from sfumato.service.collector import Collector
from sfumato.service.crew import Crew
from sfumato.service.event_stream import Bell
from sfumato.service.metrics import CollectorMetrics
from sfumato.service.preparing import Preparation
from sfumato.service.steady_clock import OpenTime, SteadyClock
from sfumato.service.writer import Writer
from sfumato.web.logs import log

__all__ = ["ClosingWatch"]

LONGEST: Final = 0.25
"""The longest time between two looks at the clock, in seconds."""
SHORTEST: Final = 0.005
"""The shortest time between two looks at the clock, in seconds."""
PART: Final = 1 / 16
"""The part of the time for which something has been due after which it is looked at again."""
NEVER: Final = -1.0
"""Stands for no time in which reports could be uploaded, so that no grace is over."""


class ClosingWatch:
    """Closes periods when they are due, also after errors.

    Parameters
    ----------
    collector
        The collector whose periods close.
    writer
        The writer; while it cannot write, no period closes.
    metrics
        The metrics that count closed periods.
    bell
        The bell that rings when a period has closed.
    preparation
        What reads the tasks whose periods have closed, for those who will ask.
    crew
        The workers, which take over at once what has closed.

    """

    def __init__(
        self,
        collector: Collector,
        writer: Writer,
        metrics: CollectorMetrics,
        bell: Bell,
        preparation: Preparation,
        crew: Crew,
    ) -> None:
        self._collector = collector
        self._writer = writer
        self._metrics = metrics
        self._bell = bell
        self._preparation = preparation
        self._crew = crew
        self._clock = SteadyClock(lambda: collector.clock())  # noqa: PLW0108 -- it may be replaced
        self._open = OpenTime()
        self._failures = 0
        self._waiting: dict[bytes, int] = {}
        """The period of each task of which the log says that it waits for a grace."""
        self._thread = ThreadPoolExecutor(1, "closer")
        self._beside = ThreadPoolExecutor(1, "beside-closer")

    async def run(self) -> None:
        """Look at the clock until this is cancelled."""
        while True:
            try:
                pause = await self._close()
            except Exception as error:  # noqa: BLE001 -- the clock must go on
                self._open.interrupted()
                self._writer.health.failed("the last look at what has to close", error)
                log().error("clock", kind=type(error).__name__, problem=str(error)[:200])
                pause = 1.0
            await asyncio.sleep(pause)

    async def look(self) -> None:
        """Take over at once what another process has changed."""
        await self._close()

    def stop(self) -> None:
        """Wait until what is closing now has closed."""
        self._beside.shutdown(wait=False, cancel_futures=True)
        self._thread.shutdown(cancel_futures=True)

    async def _close(self) -> float:
        """Close what is due, and say so; return after how many seconds to look again."""
        at, open_for = self._clock(), self._time_to_upload()
        began = time.monotonic()
        work = partial(self._collector.close_due, now=at, open_for=open_for)
        closed = await self._closed(work)
        took = time.monotonic() - began
        self._writer.health.tick()
        if closed:
            self._say(closed, took)
        if closed or took > PATIENCE:  # there may be more
            return SHORTEST
        self._say_what_waits(at, max(open_for, 0.0))
        return min(max(self._soonest(at, open_for) - took, SHORTEST), LONGEST)

    def _say(self, closed: Closed, took: float) -> None:
        """Say which periods have closed, and have their answers prepared."""
        self._metrics.closed(len(closed), took)
        self._bell.ring()
        self._crew.wake()
        for running, release in closed:
            for odd in running.suspicions().get(release.period, ())[:1]:
                log().warning(
                    "reports are not what honest devices send",
                    task=running.name,
                    period=release.period,
                    odd=odd.sentence,
                )
            lacks = {"may_lack_reports": True} if release.period in running.incomplete() else {}
            log().info(
                "period closed", task=running.name, period=release.period, n=release.n, **lacks
            )
            self._preparation.begin(running)

    def _say_what_waits(self, at: float, open_for: float) -> None:
        """Say once which periods are due and wait until uploads have been possible for a grace."""
        for running in list(self._collector.running_tasks.values()):
            period, missing = running.sealed + 1, running.grace - open_for
            due = not running.is_over and running.next_at <= at
            if due and missing > 0 and self._waiting.get(running.task_id) != period:
                self._waiting[running.task_id] = period
                log().info(
                    "period waits for a grace without a break",
                    task=running.name,
                    period=period,
                    seconds=round(missing, 1),
                )

    async def _closed(self, work: Callable[[], Closed]) -> Closed:
        """Return what some work in the closing thread has closed, which may take minutes.

        Meanwhile reports are uploaded, tasks are deleted, and the thread gives signs of life.
        """
        loop = asyncio.get_running_loop()
        closing = loop.run_in_executor(self._thread, work)
        dropped: asyncio.Future[None] | None = None
        signs = self._collector.store.signs
        try:
            while not closing.done():
                before = signs.count
                await asyncio.wait([closing], timeout=LONGEST)
                self._time_to_upload()
                if signs.count != before:
                    self._writer.health.tick()
                if not closing.done() and (dropped is None or dropped.done()):
                    dropped = loop.run_in_executor(self._beside, self._drop_deleted)
        finally:
            closing.cancel()
        return closing.result()

    def _drop_deleted(self) -> None:
        with suppress(Exception):  # if the store cannot be read, the closing thread says so
            self._collector.drop_deleted()

    def _time_to_upload(self) -> float:
        """Return for how many seconds reports could be uploaded without a break; NEVER if not."""
        if self._writer.failures != self._failures or self._writer.health.troubles:
            self._failures = self._writer.failures
            self._open.interrupted()  # nothing was taken, so that devices need their grace again
        return NEVER if self._writer.health.troubles else self._open.look()

    def _soonest(self, at: float, open_for: float) -> float:
        """Return after how many seconds it is worth to look again.

        What was due at the last look and has not closed is about to be closed by another process,
        or cannot be; the longer that lasts, the less often it is looked at.
        """
        tasks = list(self._collector.running_tasks.values())
        going_on = (each for each in tasks if not each.is_over)
        waits = (max(each.next_at - at, each.grace - open_for) for each in going_on)
        return min((wait if wait > 0 else -PART * wait for wait in waits), default=LONGEST)
