"""Random whole numbers that are decided only as far as needed, so that paths branch less.

A device draws a number below k and asks whether it lies below a bound. Listing all k numbers would
take k paths, but two are enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sfumato.randomness import Coins

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.checks.paths import Path

__all__ = ["Drawn", "PathCoins"]


class Drawn:
    """A uniform whole number below k, which is only decided as far as it is used.

    It can be compared with whole numbers, which narrows it down, and used as an index, which
    decides it.
    """

    def __init__(self, path: Path, k: int) -> None:
        self._path, self._low, self._high = path, 0, k

    def __lt__(self, bound: int) -> bool:
        cut = min(max(int(bound), self._low), self._high)
        ways = self._high - cut, cut - self._low
        below = bool(self._path.weigh(ways)) if all(ways) else bool(ways[1])
        self._low, self._high = (self._low, cut) if below else (cut, self._high)
        return below

    def __ge__(self, bound: int) -> bool:
        return not self < bound

    def __le__(self, bound: int) -> bool:
        return self < bound + 1

    def __gt__(self, bound: int) -> bool:
        return not self < bound + 1

    def __index__(self) -> int:
        self._low += self._path.uniform(self._high - self._low)
        self._high = self._low + 1
        return self._low

    def __rmul__(self, factor: Any) -> Any:
        return factor * self.__index__()


class PathCoins(Coins):
    """Whole numbers, one at a time, whose outcomes follow a path."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def below(self, k: int) -> int:
        """Return a number in [0, k), which takes every value on some path."""
        return cast("int", Drawn(self._path, k))
