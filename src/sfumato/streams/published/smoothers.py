"""Smoothers: guesses of values in an incomplete block, from earlier blocks only.

The published sum of a block is known at its end. Until then each of its values is guessed as the
smoother's rate, which depends on complete blocks; the last value gets the rest of the block's sum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections import deque
from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.core.field_checks import check_one_of

__all__ = ["SMOOTHERS", "Smoother", "smoother", "spread"]


class Smoother(ABC):
    """Turns the means of complete blocks into a guess for the values of the next one.

    Parameters
    ----------
    start
        The guess before any block is complete: half the threshold.

    """

    name: ClassVar[str]

    def __init__(self, start: float) -> None:
        self.rate = start

    @abstractmethod
    def push(self, means: Floats) -> Floats:
        """Add the means of further blocks; return the guess after each."""


class Recent(Smoother):
    """Guesses the mean of the last block."""

    name: ClassVar[str] = "recent"

    def push(self, means: Floats) -> Floats:
        """Add the means of further blocks; return the guess after each."""
        if means.size:
            self.rate = float(means[-1])
        return means


class Mean(Smoother):
    """Guesses the mean of all blocks, including the start."""

    name: ClassVar[str] = "mean"

    def __init__(self, start: float) -> None:
        super().__init__(start)
        self._count, self._total = 1, start

    def push(self, means: Floats) -> Floats:
        """Add the means of further blocks; return the guess after each."""
        # One running sum, so that guesses do not depend on how blocks were grouped, to the last
        # bit.
        totals = np.cumsum(np.concatenate([[self._total], means]))
        rates = totals / (self._count + np.arange(totals.size))
        self._count, self._total = self._count + means.size, float(totals[-1])
        self.rate = float(rates[-1])
        return np.asarray(rates[1:])


class _OneByOne(Smoother):
    def push(self, means: Floats) -> Floats:
        """Add the means of further blocks; return the guess after each."""
        rates = np.empty(means.size)
        for index, mean in enumerate(means.tolist()):
            rates[index] = self.rate = self.next(mean)
        return rates

    @abstractmethod
    def next(self, mean: float) -> float:
        """Return the guess after one more block."""


class Median(_OneByOne):
    """Guesses the median of all blocks, including the start; it stores every block."""

    name: ClassVar[str] = "median"

    def __init__(self, start: float) -> None:
        super().__init__(start)
        self._seen = [start]

    def next(self, mean: float) -> float:
        """Return the guess after one more block."""
        insort(self._seen, mean)
        middle = len(self._seen) // 2
        if len(self._seen) % 2:
            return self._seen[middle]
        return (self._seen[middle - 1] + self._seen[middle]) / 2


class MovingAverage(_OneByOne):
    """Guesses the mean of up to ten last blocks."""

    name: ClassVar[str] = "moving"
    window: ClassVar[int] = 10

    def __init__(self, start: float) -> None:
        super().__init__(start)
        self._seen = deque([start], maxlen=self.window)

    def next(self, mean: float) -> float:
        """Return the guess after one more block."""
        self._seen.append(mean)
        return sum(self._seen) / len(self._seen)


class Exponential(_OneByOne):
    """Guesses half of the last block's mean plus half of the guess before it."""

    name: ClassVar[str] = "exponential"
    weight: ClassVar[float] = 0.5

    def next(self, mean: float) -> float:
        """Return the guess after one more block."""
        return self.weight * mean + (1 - self.weight) * self.rate


SMOOTHERS: Final[Mapping[str, type[Smoother]]] = {
    kind.name: kind for kind in (Recent, Mean, Median, MovingAverage, Exponential)
}


def smoother(name: str, threshold: float) -> Smoother:
    """Return a smoother by name, which starts at half the threshold."""
    check_one_of("smoother", name, SMOOTHERS)
    return SMOOTHERS[name](threshold / 2)


def spread(sums: Floats, rates: Floats, widths: int | Ints) -> Floats:
    """Return one value for each position: the guess or, at a block's end, the rest of its sum.

    Parameters
    ----------
    sums, rates
        The sum of each block, and the guess made *before* it.
    widths
        The number of values in every block, or in each block.

    Examples
    --------
    >>> spread(np.array([10.0]), np.array([2.0]), 4).tolist()
    [2.0, 2.0, 2.0, 4.0]

    """
    values = np.repeat(rates, widths)
    ends = np.cumsum(np.broadcast_to(widths, sums.shape)) - 1
    values[ends] = sums - rates * (np.asarray(widths) - 1)
    return values
