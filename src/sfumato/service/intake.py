"""The way of an upload through both doors: in turn, joined with others, and back with a receipt.

The event loop hands uploads to one thread, which screens them in rounds, and that one to the thread
that writes. Receipts of a whole group come back to the event loop at once.
"""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Sequence
from threading import Thread
from typing import Any, Final

from sfumato.errors import SfumatoError
from sfumato.service.collector import Collector
from sfumato.service.fair_line import FairLine, Turn, WaitingUpload
from sfumato.service.first_door import ScreenedBatch, Upload
from sfumato.service.writer import Screened, Writer
from sfumato.web.clients import Room
from sfumato.web.logs import log

__all__ = ["MOST_REPORTS", "Busy", "Intake"]

MOST_REPORTS: Final = 1 << 20
"""The largest number of reports that wait for their receipts."""


MODEST: Final = 1000
"""The number of reports that a client may always have waiting, as far as there is any room."""

ENOUGH: Final = 256
"""The work, in sealed reports, from which on a round waits for no others."""

GATHER: Final = 0.003
"""The time in seconds for which a smaller round waits for others to join it."""

LONGEST_GATHER: Final = 0.1
"""The same while a commit is going on, which the round would wait for anyway."""


class Busy(SfumatoError):
    """Too many reports are waiting already."""


class Intake:
    """Takes uploads and returns receipts.

    Parameters
    ----------
    collector
        The collector of the uploads.
    writer
        The thread behind the second door.
    most
        The largest number of reports that wait; a client, and a task, may have no more waiting than
        there is room left over.

    """

    def __init__(self, collector: Collector, writer: Writer, most: int = MOST_REPORTS) -> None:
        self._collector = collector
        self._writer = writer
        self._by_client, self._by_task = Room(most), Room(most)
        self._line = FairLine()
        self._queue: queue.SimpleQueue[WaitingUpload | None] = queue.SimpleQueue()
        self._thread = Thread(target=self._run, name="first-door", daemon=True)
        self._loop: Any = None

    @property
    def waiting(self) -> int:
        """The number of reports that wait for their receipts."""
        return self._by_client.held

    @property
    def is_alive(self) -> bool:
        """Whether the thread of the first door is running."""
        return self._thread.is_alive()

    @property
    def troubles(self) -> list[str]:
        """What is wrong, so that nothing may be acknowledged."""
        return self._writer.health.troubles

    def start(self) -> None:
        """Start the thread; to be called in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the present round; what waits then will be sent again."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    async def take(
        self, upload: Upload, client: str, weight: int = 1, connection: Any = None
    ) -> bytes:
        """Return the receipt of an upload as JSON, when its reports are on disk.

        Raises Busy if too many reports wait, and what went wrong if nothing could be counted. If
        the client of the connection leaves before the upload's turn, nothing of it is counted.
        """
        n, task_id = len(upload), upload.running.task_id
        if not self._by_client.take(client, n, weight):
            raise Busy("too many reports wait to be counted; try again.")
        # However many wait of a task, a few reports of a client that has no others find room.
        is_modest = n <= MODEST and self._by_client.held_by(client) == n
        if not is_modest and not self._by_task.take(task_id, n, weight):
            self._by_client.give_back(client, n)
            raise Busy("too many reports of this task wait to be counted; try again.")
        waiting = WaitingUpload(
            upload, client, time.monotonic(), self._loop.create_future(), connection
        )
        try:
            self._queue.put(waiting)
            receipt: bytes = await waiting.future
            return receipt
        finally:
            self._by_client.give_back(client, n)
            if not is_modest:
                self._by_task.give_back(task_id, n)

    # ---- the thread of the first door --------------------------------------------------------

    def _run(self) -> None:
        while not self._collect(wait=not self._line):
            began, stopping = time.monotonic(), False
            while not stopping and self._line.work < ENOUGH:
                waited = time.monotonic() - began
                if waited > LONGEST_GATHER or (waited > GATHER and self._writer.is_free):
                    break
                time.sleep(GATHER)
                stopping = self._collect(wait=False)
            self._refuse(self._line.give_up(), "nobody waits for the receipt.")
            turns = self._line.round()
            if turns:
                self._pass(turns)
            if stopping:
                break
        # Nothing of the rest was acknowledged, so that all of it will be sent again.
        self._refuse(self._line.leave(), "the collector stops; try again.")

    def _collect(self, *, wait: bool) -> bool:
        """Let new uploads stand in line; return whether no more will come."""
        try:
            waiting = self._queue.get(block=wait)
            while waiting is not None:
                self._line.add(waiting)
                waiting = self._queue.get_nowait()
        except queue.Empty:
            return False
        return True

    def _pass(self, turns: Sequence[Turn]) -> None:
        """Hand on what passes the first door in a round; whatever happens, the next one comes."""
        try:
            self._writer.submit(self._screened(turns))
        except Exception as error:  # noqa: BLE001 -- whoever waits learns of it
            log().error("round failed", kind=type(error).__name__, problem=str(error)[:200])
            self._refuse([turn.waiting for turn in turns], "something went wrong; try again.")

    def _screened(self, turns: Sequence[Turn]) -> Screened:
        """Return what has passed the first door in a round."""
        whole = [turn.waiting for turn in turns if _is_whole(turn)]
        done, entries = [], []
        for joined in (whole, *([turn.waiting] for turn in turns if not _is_whole(turn))):
            most = None if joined is whole else _most(turns, joined[0])
            try:
                screened = self._collector.screen([waiting.upload for waiting in joined], most)
            except Exception as error:  # noqa: BLE001 -- a report must not stop those of others
                if len(joined) == 1:
                    joined[0].outcome = error
                    done += joined
                    continue
                screened = self._one_by_one(joined)
            if joined is whole:
                done += whole
                entries += screened
                continue
            (part,) = joined
            part.parts = (*part.parts, *screened)
            if not part.upload.rest:
                done.append(part)
                entries.append(ScreenedBatch.merged(part.parts))
        return Screened(entries, done, self._finish)

    def _one_by_one(self, joined: Sequence[WaitingUpload]) -> list[ScreenedBatch]:
        """Return what passes of uploads of which one cannot be screened with others."""
        entries: list[ScreenedBatch] = []
        for waiting in joined:
            whole = waiting.upload
            fresh = Upload(whole.running, whole.batch, whole.mixed, whole.client)
            waiting.upload = fresh
            try:
                entries += self._collector.screen([fresh])
            except Exception as error:  # noqa: BLE001 -- it is the one
                waiting.outcome = error
        return entries

    # ---- the way back ------------------------------------------------------------------------

    def _refuse(self, left: Sequence[WaitingUpload], why: str) -> None:
        """Give uploads that have left the line their outcome: none of them was counted."""
        for waiting in left:
            waiting.outcome = Busy(why)
        self._finish(left)

    def _finish(self, done: Sequence[WaitingUpload]) -> None:
        """Resolve the futures of a group, in the event loop."""
        if done and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_resolve, done)


def _is_whole(turn: Turn) -> bool:
    upload = turn.waiting.upload
    return not upload.begun and upload.rest <= turn.most


def _most(turns: Sequence[Turn], waiting: WaitingUpload) -> int:
    return next(turn.most for turn in turns if turn.waiting is waiting)


def _resolve(done: Sequence[WaitingUpload]) -> None:
    for waiting in done:
        if waiting.future.done():
            continue  # the sender has gone, and gets no response
        if isinstance(waiting.outcome, Exception):
            waiting.future.set_exception(waiting.outcome)
        else:
            waiting.future.set_result(waiting.outcome)
