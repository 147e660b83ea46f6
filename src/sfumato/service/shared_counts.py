"""One count of each client for all workers: the process that listens keeps it and answers them.

Only that process writes to the counts, so that a worker may be killed at any moment: there is no
lock that it could hold, and nothing that it could leave half written. Each worker has a line of its
own, and a thread that answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from struct import Struct
from threading import Lock, Thread
from typing import Final

import numpy as np

from sfumato.errors import SfumatoError
from sfumato.service.client_counts import ClientCounts, Demand
from sfumato.store.word_table import Words

__all__ = ["CountsAway", "SharedCounts", "answered_line"]


class CountsAway(SfumatoError):
    """The process that counts the reports of clients does not answer."""


_TAKE, _GIVE_BACK, _FORGET = b"t", b"g", b"f"
"""What a message asks for, in its first byte."""

_HEAD: Final = Struct("<32sQQQ")
"""A demand begins with its task, period, cap and number of clients; words and numbers follow."""

_EVER: Final = (1 << 64) - 1
"""A period that is later than all of any task."""


def answered_line(counts: ClientCounts) -> Connection:
    """Return a worker's end of a new line, at whose other end a thread answers from the counts.

    What a worker had taken when its line breaks stays counted: it may have been written.
    """
    ours, theirs = Pipe()
    ours.send_bytes(counts.key)
    Thread(target=_answer_all, args=(counts, ours), name="counts", daemon=True).start()
    return theirs


def _answer_all(counts: ClientCounts, line: Connection) -> None:
    """Answer what comes through a line until it breaks."""
    from sfumato.web.logs import log  # noqa: PLC0415 -- a collector without a network needs none

    with line, suppress(EOFError, OSError):
        while True:
            message = line.recv_bytes()
            try:
                answer = _answer(counts, message[:1], list(_demands(message)))
            except Exception as error:  # noqa: BLE001 -- the worker learns of it, for its line breaks
                log().error("counts failed", kind=type(error).__name__, problem=str(error)[:200])
                return
            line.send_bytes(answer)


def _answer(counts: ClientCounts, verb: bytes, demands: Sequence[Demand]) -> bytes:
    """Do what a message asks for; return how many reports of each client are counted now."""
    if verb == _TAKE:
        return b"".join(granted.tobytes() for granted in counts.take(demands))
    if verb == _GIVE_BACK:
        counts.give_back(demands)
    for demand in demands if verb == _FORGET else ():
        counts.forget(demand.task_id, demand.period)
    return b""


def _encoded(demand: Demand) -> bytes:
    head = _HEAD.pack(demand.task_id, demand.period, demand.cap, len(demand.clients))
    return head + demand.clients.tobytes() + demand.numbers.tobytes()


def _demands(message: bytes) -> Iterator[Demand]:
    """Yield the demands of a message."""
    at = 1
    while at < len(message):
        task_id, period, cap, n = _HEAD.unpack_from(message, at)
        columns = np.frombuffer(message, np.uint64, 2 * n, at + _HEAD.size).reshape(2, n)
        yield Demand(task_id, period, cap, *columns)
        at += _HEAD.size + columns.nbytes


class SharedCounts:
    """The counts that another process keeps, with the methods of `ClientCounts`.

    Each of them raises CountsAway if the line breaks, so that nothing is counted.

    Parameters
    ----------
    line
        This worker's end of its line.
    broken
        Called when the line has broken, which is not mended: a new worker has a new one.

    """

    def __init__(self, line: Connection, broken: Callable[[], None]) -> None:
        self._line = line
        self._broken = broken
        self._lock = Lock()
        self.key = line.recv_bytes()
        """The key of the hashes that stand for clients, the same in all workers."""

    def take(self, demands: Sequence[Demand]) -> list[Words]:
        """Count as many of the reports as the cap allows; return that number for each client."""
        granted = np.frombuffer(self._ask(_TAKE, demands), np.uint64)
        ends = np.cumsum([len(demand.clients) for demand in demands])
        return np.split(granted, ends[:-1])

    def give_back(self, demands: Sequence[Demand]) -> None:
        """Take reports from the counts that were counted there, and do not count after all."""
        self._ask(_GIVE_BACK, demands)

    def forget(self, task_id: bytes, period: int | None = None) -> None:
        """Drop the counts of the periods of a task up to one that has closed, or of all."""
        nobody = np.zeros(0, np.uint64)
        until = _EVER if period is None else period
        self._ask(_FORGET, [Demand(task_id, until, 0, nobody, nobody)])

    def _ask(self, verb: bytes, demands: Sequence[Demand]) -> bytes:
        message = verb + b"".join(map(_encoded, demands))
        with self._lock:
            try:
                self._line.send_bytes(message)
                return self._line.recv_bytes()
            except BaseException as error:
                # An answer that was not read to its end would be taken for that to the next one.
                if not self._line.closed:
                    self._line.close()
                    self._broken()
                raise CountsAway("the counts of clients cannot be asked; try again.") from error
