"""A set of report ids that keeps eight bytes of each, in one array."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Bools
from sfumato.randomness import secure

__all__ = ["ID_BYTES", "IdSet", "KeyedWords", "Words"]

Words = NDArray[np.uint64]

ID_BYTES: Final = 16
SMALLEST: Final = 1 << 10
"""The number of homes of an empty set."""
FULLEST: Final = 0.75
"""The largest share of cells that are taken before a set grows."""
GROWTH: Final = 1.5
SPARE: Final = 1 << 12
"""The number of cells behind the last home, where words go whose own cells are taken."""
CHUNK: Final = 1 << 20
"""The number of cells that move at once when a set grows."""


class KeyedWords:
    """Turns ids into words of 64 bits that nobody outside of this process can predict.

    Whoever makes up ids cannot make them meet in one cell, nor pass for the id of somebody else:
    two given ids get the same word with a probability of about 2^-64.
    """

    def __init__(self) -> None:
        self._keys = secure().words(4)

    def words(self, ids: bytes) -> Words:
        """Return a word other than 0 for each id."""
        halves = np.frombuffer(ids, "<u8").reshape(-1, 2)
        first, second, third, fourth = self._keys
        words = _mixed(halves[:, 0] ^ first) ^ halves[:, 1]
        words = _mixed(_mixed(words ^ second) + third) ^ fourth
        words[words == 0] = 1
        return np.asarray(words, dtype=np.uint64)


def _mixed(words: Words) -> Words:
    """Return words whose bits depend on all bits of the given ones, one to one."""
    words = words ^ (words >> np.uint64(33))
    words *= np.uint64(0xFF51AFD7ED558CCD)
    words ^= words >> np.uint64(33)
    words *= np.uint64(0xC4CEB9FE1A85EC53)
    words ^= words >> np.uint64(33)
    return words


class IdSet:
    """A growing set of words, with 11 to 16 bytes for each.

    It is a hash table with open addressing. The home of a word grows with the word, so that the
    table can grow in its place, from the last cell to the first, without a second copy.

    Examples
    --------
    >>> seen = IdSet()
    >>> seen.add(np.array([5, 7], dtype=np.uint64))
    >>> seen.fresh(np.array([7, 9, 9], dtype=np.uint64)).tolist(), len(seen)
    ([False, True, False], 2)

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

    def fresh(self, words: Words) -> Bools:
        """Return a mask of the words that are not in the set, each at its first place."""
        new = ~self.has(words)
        rows = np.flatnonzero(new)
        _, first = np.unique(words[rows], return_index=True)
        if len(first) < len(rows):
            new[:] = False
            new[rows[first]] = True
        return new

    def add(self, words: Words) -> None:
        """Add different words that are not in the set."""
        if self._n + len(words) > FULLEST * self._homes:
            self._grow(int(max(GROWTH * self._homes, 1.5 * (self._n + len(words)) / FULLEST)))
        self._place(words)
        self._n += len(words)

    def _home(self, words: Words) -> NDArray[np.intp]:
        """Return the first cell of each word: its upper half, scaled to the number of homes."""
        return (((words >> np.uint64(32)) * np.uint64(self._homes)) >> np.uint64(32)).astype(
            np.intp
        )

    def has(self, words: Words) -> Bools:
        """Return a mask of the words that are in the set."""
        present = np.zeros(len(words), dtype=bool)
        rows, at = np.arange(len(words)), self._home(words)
        while len(rows):
            held = self._cells[at]
            same = held == words[rows]
            present[rows[same]] = True
            on = (held != 0) & ~same
            rows, at = rows[on], at[on] + 1
        return present

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
