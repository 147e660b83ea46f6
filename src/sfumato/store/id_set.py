"""A set of report ids that keeps eight bytes of each, in one array."""

from __future__ import annotations

from typing import Final

import numpy as np

from sfumato.arrays import Bools
from sfumato.randomness import secure
from sfumato.store.word_table import Words, WordTable

__all__ = ["ID_BYTES", "IdSet", "KeyedWords"]

ID_BYTES: Final = 16


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


class IdSet(WordTable):
    """A growing set of words, with 11 to 16 bytes for each.

    Examples
    --------
    >>> seen = IdSet()
    >>> seen.add(np.array([5, 7], dtype=np.uint64))
    >>> seen.fresh(np.array([7, 9, 9], dtype=np.uint64)).tolist(), len(seen)
    ([False, True, False], 2)

    """

    def fresh(self, words: Words) -> Bools:
        """Return a mask of the words that are not in the set, each at its first place."""
        new = ~self.has(words)
        rows = np.flatnonzero(new)
        _, first = np.unique(words[rows], return_index=True)
        if len(first) < len(rows):
            new[:] = False
            new[rows[first]] = True
        return new

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
