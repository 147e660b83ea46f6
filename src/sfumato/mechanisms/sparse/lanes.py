"""Rows of bits as columns of 64-bit words: bit i of person j is bit i % 64 of lanes[i // 64, j].

In this form long bit vectors of many people are eight times smaller than as bytes, and whole words
are handled at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools, Ints

__all__ = ["interleaved", "put", "read", "rows"]

Lanes = NDArray[np.uint64]

# Each step separates the bits that are still adjacent into two halves.
_SPREAD: Final = (
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, 0x5555555555555555),
)


def _bit_of(lanes: Lanes, items: Array) -> tuple[Ints, Lanes]:
    """Return the index of each person's word in the flat lanes, and a mask of the item's bit."""
    wide = items.astype(np.int64)
    index = (wide >> 6) * lanes.shape[1] + np.arange(lanes.shape[1])
    return index, np.uint64(1) << (wide & 63).astype(np.uint64)


def read(lanes: Lanes, items: Array) -> Bools:
    """Return one bit of each person; items beyond the end read as zero."""
    inside = items < 64 * len(lanes)
    index, bit = _bit_of(lanes, np.where(inside, items, 0))
    return np.asarray(inside & (lanes.reshape(-1)[index] & bit != 0))


def put(lanes: Lanes, items: Array, on: Bools) -> None:
    """Set or clear one bit of each person; items beyond the end are ignored."""
    inside = items < 64 * len(lanes)
    index, bit = _bit_of(lanes, np.where(inside, items, 0))
    flat = lanes.reshape(-1)
    flat[index] = np.where(inside, flat[index] & ~bit | bit * on, flat[index])


def interleaved(even: Lanes, odd: Lanes) -> Lanes:
    """Return lanes of twice as many bits, taken from ``even`` and ``odd`` in turn."""
    both = np.empty((2 * len(even), even.shape[1]), dtype=np.uint64)
    for half in (0, 1):
        both[half::2] = _spread(even, half) | _spread(odd, half) << np.uint64(1)
    return both


def _spread(lanes: Lanes, half: int) -> Lanes:
    """Return the lower or upper 32 bits of each word, with a zero bit between each two."""
    word = lanes >> np.uint64(32) if half else lanes & np.uint64((1 << 32) - 1)
    for shift, mask in _SPREAD:
        word = (word | word << np.uint64(shift)) & np.uint64(mask)
    return word


def rows(lanes: Lanes, bits: int) -> NDArray[np.uint8]:
    """Return the first ``bits`` bits of each person as a row of bytes, lowest bit first."""
    words, n = lanes.shape
    full, rest = divmod(bits, 64)
    if rest:
        lanes[full] &= np.uint64((1 << rest) - 1)
    flat = np.ascontiguousarray(lanes.T).astype("<u8", copy=False).view(np.uint8)
    return flat.reshape(n, 8 * words)[:, : (bits + 7) // 8]
