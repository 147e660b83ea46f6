"""A growing hash table of words of 64 bits, in one array."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["WordTable", "Words"]

Words = NDArray[np.uint64]

SMALLEST: Final = 1 << 10
"""The number of homes of an empty table."""
FULLEST: Final = 0.75
"""The largest share of cells that are taken before a table grows."""
GROWTH: Final = 1.5
SPARE: Final = 1 << 12
"""The number of cells behind the last home, where words go whose own cells are taken."""
CHUNK: Final = 1 << 20
"""The number of cells that move at once when a table grows."""


class WordTable:
    """Different words other than 0, with 11 to 16 bytes for each.

    It is a hash table with open addressing. The home of a word grows with its upper half, so that
    the table can grow in its place, from the last cell to the first, without a second copy.

    Examples
    --------
    >>> table = WordTable()
    >>> table.add(np.array([5, 7], dtype=np.uint64))
    >>> len(table)
    2

    """

    def __init__(self) -> None:
        self._homes = SMALLEST
        self._cells: Words = np.zeros(SMALLEST + SPARE, dtype=np.uint64)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def nbytes(self) -> int:
        """The number of bytes of the table."""
        return self._cells.nbytes

    def add(self, words: Words) -> None:
        """Add different words that are not in the table."""
        if self._n + len(words) > FULLEST * self._homes:
            self._grow(int(max(GROWTH * self._homes, 1.5 * (self._n + len(words)) / FULLEST)))
        self._place(words)
        self._n += len(words)

    def _home(self, words: Words) -> NDArray[np.intp]:
        """Return the first cell of each word: its upper half, scaled to the number of homes."""
        return (((words >> np.uint64(32)) * np.uint64(self._homes)) >> np.uint64(32)).astype(
            np.intp
        )

    def _place(self, words: Words) -> None:
        at = self._home(words)
        while len(words):
            free = self._cells[at] == 0
            self._cells[at[free]] = words[free]
            left = self._cells[at] != words  # taken before, or by another of these words
            words, at = words[left], at[left] + 1

    def _grow(self, homes: int) -> None:
        cells = len(self._cells)
        self._homes = homes
        self._cells.resize(homes + SPARE, refcheck=False)  # keeps what it has, and adds zeros
        for start in reversed(range(0, cells, CHUNK)):
            chunk = self._cells[start : min(start + CHUNK, cells)]
            moving = chunk[chunk != 0]
            chunk[:] = 0
            self._place(moving)
