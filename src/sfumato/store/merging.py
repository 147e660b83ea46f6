"""Merging the ids of all writers of a period: which reports are copies of earlier ones.

Ids are sorted by their first eight bytes, a range of them at a time, so that a hundred million take
a few hundred megabytes. Where two agree in these bytes, whole ids decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from sfumato.arrays import Array, Bools
from sfumato.store.word_table import Words

__all__ = ["copies", "distinct", "leading", "sorted_words"]

AT_ONCE: Final = 1 << 25
"""The number of ids that are sorted at once."""

IdRows = Callable[[], Iterator[tuple[int, bytes]]]
"""A function that reads the number and the ids of each row of a period, in the order of numbers."""


def leading(ids: bytes) -> Words:
    """Return the first eight bytes of each id as a number; numbers are ordered as ids are."""
    return np.frombuffer(ids, ">u8")[::2].astype(np.uint64)


def distinct(words: Words) -> Words:
    """Return each word once, in order; unlike `numpy.unique`, it lets other threads go on."""
    words = np.sort(words)
    return np.asarray(words[np.append(True, words[1:] != words[:-1])[: len(words)]])


def sorted_words(read: IdRows, total: int) -> Iterator[Words]:
    """Yield the first eight bytes of ``total`` ids in order, a range of them at a time."""
    parts = -(-total // AT_ONCE)
    for part in range(parts):
        low, high = (np.uint64((edge << 64) // parts - (edge > part)) for edge in (part, part + 1))
        chosen = [words[(words >= low) & (words <= high)] for words in _words(read)]
        words = np.concatenate([leading(b""), *chosen])  # others may have packed them meanwhile
        del chosen
        words.sort()
        yield words


def _words(read: IdRows) -> Iterator[Words]:
    for _, ids in read():
        yield leading(ids)


def copies(read: IdRows, total: int) -> dict[int, Bools]:
    """Return a mask of the copies in each row that has some; the first report of an id is none."""
    again = [words[1:][words[1:] == words[:-1]] for words in sorted_words(read, total)]
    doubtful = distinct(np.concatenate(again)) if again else np.zeros(0, np.uint64)
    if not len(doubtful):
        return {}
    sizes, rows, places, names = [], [], [], []
    for number, ids in read():
        words = leading(ids)
        at = np.minimum(np.searchsorted(doubtful, words), len(doubtful) - 1)
        hits = np.flatnonzero(doubtful[at] == words)
        sizes.append((number, len(words)))
        rows.append(np.full(len(hits), len(sizes) - 1))
        places.append(hits)
        names.append(np.frombuffer(ids, "<u8").reshape(-1, 2)[hits])
    if not sizes:  # others have packed them meanwhile
        return {}
    row, place = np.concatenate(rows), np.concatenate(places)
    marked: dict[int, Bools] = {}
    for one in _later(np.concatenate(names)):
        number, n = sizes[row[one]]
        marked.setdefault(number, np.zeros(n, dtype=bool))[place[one]] = True
    return marked


def _later(names: Array) -> Array:
    """Return the places of names that have come before."""
    order = np.lexsort((names[:, 1], names[:, 0]))  # stable: equal names stay as they come
    ordered = names[order]
    same = (ordered[1:] == ordered[:-1]).all(axis=1)
    return np.asarray(order[1:][same])
