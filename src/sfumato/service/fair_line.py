"""The line before the first door, in which the clients take turns.

A round gives each client the same share of the work, and within it each upload in turn; so a
report that comes alone waits for one round, whatever others have brought.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sfumato.service.first_door import Upload

__all__ = ["FairLine", "Turn", "WaitingUpload"]

ROUND: Final = 1024
"""The number of sealed reports that are opened in a round: about 60 ms of work."""

LEAST: Final = 8
"""The smallest number of reports of one client in a round, however many clients there are."""

PLAIN: Final = 64
"""The number of reports without a seal that are as much work as one with a seal."""


@dataclass(eq=False, slots=True)
class WaitingUpload:
    """An upload that waits for its receipt.

    Parameters
    ----------
    upload
        The upload.
    client
        The client that sent it.
    came
        When it came, by a clock that only goes forward.
    future
        The future that is resolved with the receipt as JSON, or with an error.
    connection
        The connection that the receipt goes to, which knows whether its client has left; None if
        the sender always waits.

    """

    upload: Upload
    client: str
    came: float
    future: Any = None
    connection: Any = None
    parts: Any = ()
    outcome: bytes | Exception = b""

    @property
    def is_vain(self) -> bool:
        """Whether nobody waits for the receipt any more."""
        return self.connection is not None and self.connection.has_left


@dataclass(frozen=True, slots=True)
class Turn:
    """The next reports of one upload: all that are left, or as many as ``most``."""

    waiting: WaitingUpload
    most: int


class FairLine:
    """Uploads that wait, by client."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, _OwnLine] = OrderedDict()
        self.work = 0
        """How much work waits, in sealed reports."""

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, waiting: WaitingUpload) -> None:
        """Let an upload stand at the end of its client's line."""
        line = self._lines.get(waiting.client)
        if line is None:
            line = self._lines[waiting.client] = _OwnLine()
        line.waiting.append(waiting)
        work = _work(waiting.upload, waiting.upload.rest)
        line.work += work
        self.work += work

    def round(self) -> list[Turn]:
        """Return the turns of one round; uploads whose last turn it is leave the line.

        No upload has two turns in a round.
        """
        turns: list[Turn] = []
        share, left = self._share(), ROUND
        for client in list(self._lines):
            line = self._lines.pop(client)
            before = line.work
            turns += line.turns(share)
            left -= before - line.work
            if line.waiting:
                self._lines[client] = line  # behind the others
                self.work -= before - line.work
            else:
                self.work -= before
            if left <= 0:
                break
        return turns

    def give_up(self) -> list[WaitingUpload]:
        """Return the uploads whose clients have left; they leave the line as well.

        Nothing of them was acknowledged. Without this, what an attack has left behind would have to
        be opened after its end.
        """
        vain: list[WaitingUpload] = []
        for client, line in list(self._lines.items()):
            left = [waiting for waiting in line.waiting if waiting.is_vain]
            if not left:
                continue
            vain += left
            self.work -= line.work
            line.keep_only([waiting for waiting in line.waiting if not waiting.is_vain])
            self.work += line.work
            if not line.waiting:
                del self._lines[client]
        return vain

    def leave(self) -> list[WaitingUpload]:
        """Return all uploads that wait, none of which waits any more."""
        left = [waiting for line in self._lines.values() for waiting in line.waiting]
        self._lines.clear()
        self.work = 0
        return left

    def _share(self) -> int:
        """Return the work that each client may bring to a round, so that all of it is used."""
        left, clients = ROUND, len(self._lines)
        for work in sorted(line.work for line in self._lines.values()):
            if work * clients >= left:
                return max(LEAST, left // clients)
            left, clients = left - work, clients - 1
        return ROUND


class _OwnLine:
    """The uploads of one client that wait, and how much work they are."""

    def __init__(self) -> None:
        self.waiting: deque[WaitingUpload] = deque()
        self.work = 0

    def keep_only(self, waiting: Iterable[WaitingUpload]) -> None:
        """Let only these uploads wait."""
        self.waiting = deque(waiting)
        self.work = sum(_work(each.upload, each.upload.rest) for each in self.waiting)

    def turns(self, share: int) -> Iterator[Turn]:
        """Yield turns that are about so much work, at most one for each upload."""
        for _ in range(len(self.waiting)):
            if share <= 0:
                return
            waiting = self.waiting.popleft()
            upload = waiting.upload
            rest = upload.rest
            # Each upload gets its part, so that a large one does not hold up those behind it.
            part = max(LEAST, share // (len(self.waiting) + 1))
            most = part if upload.is_work else part * PLAIN
            work = _work(upload, min(most, rest))
            share, self.work = share - work, self.work - work
            yield Turn(waiting, most)
            if rest > most:
                self.waiting.append(waiting)


def _work(upload: Upload, reports: int) -> int:
    """Return how much work some reports of an upload are, in sealed reports."""
    return reports if upload.is_work else -(-reports // PLAIN)
