"""The latest results of what takes long to compute, and much memory to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Latest"]

T = TypeVar("T")


class Latest(Generic[T]):
    """The results for the numbers that were asked for last.

    A cache from ``functools`` around a method refers to the object that it belongs to, so that
    large results would stay in memory until the garbage collector looks for cycles. Nothing here
    refers to its owner: what is kept goes as soon as the owner goes.

    Threads may ask at the same time. One result is computed after the other, and whoever asks for
    one that is kept does not wait for another that is being computed.

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
        self._looking, self._computing = Lock(), Lock()

    def __contains__(self, number: int) -> bool:
        return number in self._kept

    def of(self, number: int, compute: Callable[[int], T]) -> T:
        """Return the result for a number; it is computed unless it is kept."""
        for result in self._asked(number):
            return result
        with self._computing:
            for result in self._asked(number):  # computed meanwhile
                return result
            with self._looking:
                while len(self._kept) >= self._most:  # before, so that there is room for this one
                    del self._kept[next(iter(self._kept))]
            result = compute(number)
            with self._looking:
                self._kept[number] = result
        return result

    def _asked(self, number: int) -> Sequence[T]:
        """Return the result for a number if it is kept; it is then the one asked for last."""
        with self._looking:
            if number not in self._kept:
                return ()
            self._kept[number] = result = self._kept.pop(number)
            return (result,)
