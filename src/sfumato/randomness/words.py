"""Uniform words, from which all samplers are built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array

__all__ = ["BITS", "ONE", "Words"]

BITS: Final = 64
ONE: Final = 1 << BITS  # a threshold of ONE means certainty


class Words(ABC):
    """A stream of uniform bytes, taken as words or as fair bits."""

    @abstractmethod
    def take(self, size: int) -> bytearray:
        """Return ``size`` new uniform bytes."""

    def words(self, n: int, bits: Literal[8, 16, 32, 64] = 64) -> Array:
        """Return n uniform unsigned words."""
        return np.frombuffer(self.take(n * bits // 8), dtype=f"<u{bits // 8}")

    def bits(self, n: int) -> NDArray[np.uint8]:
        """Return n fair bits, each 0 or 1."""
        return cast("NDArray[np.uint8]", self.words(n, 8) & np.uint8(1))

    def bit_lanes(self, k: int, n: int) -> NDArray[np.uint64]:
        """Return n rows of k fair bits as lanes: bit i of row j is bit i % 64 of [i // 64, j]."""
        words = (k + 63) // 64
        lanes = self.words(words * n).reshape(words, n)
        if k % 64:
            lanes[-1] &= np.uint64((1 << k % 64) - 1)
        return lanes
