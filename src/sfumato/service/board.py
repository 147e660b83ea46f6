"""The board of a worker: memory in which it says how it is, for the processes beside it.

A worker writes only on its own board and reads those of the others, so that nobody waits for
anybody. What stands on a board outlives the worker: its successor goes on from there.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from typing import Final

__all__ = ["Board"]

HALF: Final = 8 << 20
"""The largest number of bytes of what a worker says; pages that are not used take no memory."""
HEAD: Final = 4096

_EDITION, _BEAT, _ENDED, _LOOKED = range(4)


class Board:
    """A board in memory that processes share.

    A page is written beside the one that is valid and then takes its place, so that a worker that
    is killed while it writes leaves the page from before.

    Parameters
    ----------
    descriptor
        The file of the board, which another process has passed on; a new one by default.

    Examples
    --------
    >>> board = Board()
    >>> another = Board(os.dup(board.descriptor))
    >>> board.read(), board.write(b"all is well"), another.read()
    (b'', None, b'all is well')

    """

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = _memory() if descriptor is None else descriptor
        self._map = mmap.mmap(self.descriptor, HEAD + 2 * HALF)
        self._words = memoryview(self._map)[:HEAD].cast("Q")

    @property
    def edition(self) -> int:
        """The number of pages that have been written."""
        return self._words[_EDITION]

    @property
    def looks(self) -> int:
        """How often the worker has looked at what others have changed."""
        return self._words[_LOOKED]

    @property
    def beats(self) -> int:
        """A number that grows while the worker lives; 0 until it is ready."""
        return self._words[_BEAT]

    @property
    def ended(self) -> int:
        """The number of connections that have ended since the worker was started."""
        return self._words[_ENDED]

    @property
    def silence(self) -> float:
        """For how many seconds the worker has given no sign of life."""
        return (time.monotonic_ns() - self._words[_BEAT]) / 1e9

    def start(self) -> None:
        """Prepare the board for a new worker."""
        self._words[_BEAT] = self._words[_ENDED] = 0

    def beat(self) -> None:
        """Give a sign of life."""
        self._words[_BEAT] = time.monotonic_ns()

    def count_ended(self) -> None:
        """Count a connection that has ended."""
        self._words[_ENDED] += 1

    def count_look(self) -> None:
        """Count a look at what others have changed."""
        self._words[_LOOKED] += 1

    def write(self, page: bytes) -> None:
        """Put a page in place of the one that is there; one that is too long is left out."""
        if len(page) > HALF - 8:
            return
        edition = self.edition + 1
        start = HEAD + edition % 2 * HALF
        self._map[start : start + 8 + len(page)] = len(page).to_bytes(8, "little") + page
        self._words[_EDITION] = edition

    def read(self) -> bytes:
        """Return the page; empty if there is none yet."""
        page, edition = b"", 0
        while edition != self.edition:  # a page that changed meanwhile is read again
            edition = self.edition
            start = HEAD + edition % 2 * HALF
            length = int.from_bytes(self._map[start : start + 8], "little")
            page = bytes(self._map[start + 8 : start + 8 + length])
        return page


def _memory() -> int:
    """Return an empty file of the size of a board that is on no disk, where that is possible."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("sfumato-board", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, HEAD + 2 * HALF)
    return descriptor
