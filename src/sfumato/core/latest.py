"""The latest results of what takes long to compute, and much memory to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Latest"]

T = TypeVar("T")


class Latest(Generic[T]):
    """The results for the numbers that were asked for last.

    A cache from ``functools`` around a method refers to the object that it belongs to, so that
    large results would stay in memory until the garbage collector looks for cycles. Nothing here
    refers to its owner: what is kept goes as soon as the owner goes.

    Parameters
    ----------
    most
        The largest number of results that are kept; the one asked for longest ago goes first.

    Examples
    --------
    >>> squares = Latest(1)
    >>> squares.of(3, lambda number: number**2), squares.of(3, lambda _: 0)
    (9, 9)

    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[int, T] = {}

    def of(self, number: int, compute: Callable[[int], T]) -> T:
        """Return the result for a number; it is computed unless it is kept."""
        if number in self._kept:
            result = self._kept.pop(number)
        else:
            while len(self._kept) >= self._most:  # before, so that there is room for the new one
                del self._kept[next(iter(self._kept))]
            result = compute(number)
        self._kept[number] = result
        return result
