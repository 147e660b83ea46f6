"""What has been read of a task's closed periods, and is kept for the next question."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from threading import Lock
from typing import Final

from sfumato.core.decoded import ONLINE
from sfumato.errors import MismatchError
from sfumato.queries.history import History

__all__ = ["MOST_KEPT", "KeptHistory", "forget_all_but_the_latest"]

MOST_KEPT: Final = 8
"""The largest number of tasks whose histories are kept; each can take tens of megabytes."""


class KeptHistory:
    """The history of a task, read when somebody asks for it.

    It is kept until another period has closed, or until so many other tasks have been asked for
    since that there is no room for it.

    Parameters
    ----------
    read
        A function that returns the history up to a closed period.

    """

    def __init__(self, read: Callable[[int], History]) -> None:
        self._read = read
        self._kept: tuple[int, History] | None = None
        self._decoders: set[str] = set()
        """The decoders that somebody has asked for since answers were prepared."""
        self._lock = Lock()
        self._asked_at = 0.0

    @property
    def asked_at(self) -> float | None:
        """When it was asked for last, by a monotonic clock; None if nothing is kept."""
        return None if self._kept is None else self._asked_at

    def ask(self, closed: int, decoder: str = ONLINE) -> History:
        """Return the history up to a period; raise MismatchError if that is none.

        The decoder is the one that will be asked for; its answers are prepared from then on.
        """
        if not closed:
            raise MismatchError("no period has closed yet; the first answer comes when one does.")
        history = self._up_to(closed)
        if decoder in history.decoded.decoders:
            self._decoders.add(decoder)
        return history

    def is_ready(self, closed: int, decoder: str, asked: Collection[int]) -> bool:
        """Return whether a question can be answered from what is kept.

        Parameters
        ----------
        closed
            The last period that has closed.
        decoder
            The decoder that is asked for.
        asked
            The periods that are asked about; none for curves.

        """
        kept = self._kept
        return kept is not None and kept[0] == closed and kept[1].decoded.is_ready(decoder, asked)

    def prepare(self, closed: int) -> None:
        """Read what questions need, if any was asked since the last time; else forget it."""
        decoders, self._decoders = self._decoders, set()
        if decoders:
            self._up_to(closed).decoded.prepare(decoders)
        else:
            self.forget()

    def forget(self) -> None:
        """Keep nothing until somebody asks again."""
        self._kept = None

    def _up_to(self, closed: int) -> History:
        with self._lock:
            self._asked_at = time.monotonic()
            kept = self._kept
            if kept is None or kept[0] != closed:
                self._kept = None  # there is no room for both
                self._kept = kept = (closed, self._read(closed))
            return kept[1]


def forget_all_but_the_latest(histories: Iterable[KeptHistory]) -> None:
    """Forget the histories that were asked for longest ago, if there are too many."""
    kept = [(asked_at, each) for each in histories if (asked_at := each.asked_at) is not None]
    if len(kept) > MOST_KEPT:
        kept.sort(key=lambda pair: pair[0])
        for _, history in kept[:-MOST_KEPT]:
            history.forget()
