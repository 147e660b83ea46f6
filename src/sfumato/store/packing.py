"""Packing: the contents of a closed period in random order, many reports to a row.

What is left of a report is its period, its key and its randomized content; neither its neighbours
nor its row tell when it came, or with which others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

import numpy as np

from sfumato.arrays import Array
from sfumato.randomness import Source
from sfumato.store.word_table import Words

__all__ = ["CHUNK", "ROW", "chunks_of_words", "fits_a_step", "in_steps", "permuted"]

ROW: Final = 1 << 16
"""The largest number of reports in a row of the log."""
MOST_BYTES: Final = 1 << 28
"""The number of bytes of contents that are put in order at once."""
CHUNK: Final = 1 << 12
"""The number of ids in a row of those that a late report is compared with."""
STEP: Final = 1 << 22
"""The number of bytes that one transaction moves or erases, as others wait for it."""
OF_A_ROW: Final = 1 << 10
"""The number of bytes that take as long as a row without any."""

ContentRows = Callable[[], Iterator[tuple[int, bytes]]]
"""A function that reads the number of reports and the contents of each row, always the same."""


def permuted(read: ContentRows, n: int, size: int, rng: Source) -> Iterator[Array]:
    """Yield ``n`` contents of ``size`` bytes in random order, ``ROW`` or ``STEP`` bytes at a time.

    Every report is thrown into one of as many groups as memory asks for, and each group is put into
    random order; contents are read once for each group.
    """
    groups = min(-(-n * size // MOST_BYTES), 1 << 16)
    thrown = [_thrown(rows, groups, rng) for rows, _ in read()]
    for group in range(groups):
        parts = [
            np.frombuffer(contents, f"V{size}")[own == group]
            for own, (_, contents) in zip(thrown, read(), strict=True)
        ]
        joined = np.concatenate(parts)
        del parts
        order = np.argsort(rng.words(len(joined)), kind="stable")
        together = min(ROW, max(1, STEP // size))
        for start in range(0, len(joined), together):
            yield joined[order[start : start + together]]


def _thrown(n: int, groups: int, rng: Source) -> Array:
    if groups == 1:
        return np.zeros(n, np.uint8)
    return (rng.words(n, 16).astype(np.uint32) * np.uint32(groups) >> 16).astype(np.uint16)


_Item = TypeVar("_Item")


def in_steps(items: Iterable[_Item], size: Callable[[_Item], int]) -> Iterator[list[_Item]]:
    """Yield items, each time as many as one short transaction moves or erases, at least one.

    Parameters
    ----------
    items
        What each takes a row.
    size
        Returns the number of bytes of an item.

    """
    step: list[_Item] = []
    total = 0
    for item in items:
        more = size(item) + OF_A_ROW
        if step and total + more > STEP:
            yield step
            step, total = [], 0
        step.append(item)
        total += more
    if step:
        yield step


def fits_a_step(sizes: Iterable[tuple[object, int]]) -> bool:
    """Return whether rows can be moved in one short transaction; each comes with its bytes."""
    return sum(size + OF_A_ROW for _, size in sizes) <= STEP


def chunks_of_words(words: Words) -> Iterator[tuple[bytes, bytes]]:
    """Yield sorted words as bytes, some thousands at a time, each with its first one."""
    for start in range(0, len(words), CHUNK):
        chunk = words[start : start + CHUNK].astype(">u8").tobytes()
        yield chunk[:8], chunk
