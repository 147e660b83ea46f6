"""Adaptive methods, which publish when the truth seems to have changed: LBD, LBA, LPD, LPA.

In every period a part of the window is spent on looking: how far is the truth from the last
release? If it is further than a new release would be, another part is spent on publishing. One
choice is what is divided, budget or population; the other is how the parts for publications are
shared, by distribution or by absorption.

Ren, Shi, Yu, Yang, Zhao, Xu, "LDP-IDS: Local Differential Privacy for Infinite Data Streams"
(2022), corrected: variances include the sampling of cohorts and the exact average over items,
distances keep their sign, and nothing is absorbed from before the first period.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from sfumato.errors import ConfigurationError
from sfumato.streams.window.curators import SHARE, Step, WindowCurator
from sfumato.streams.window.divisions import Spent

__all__ = ["Absorption", "AdaptiveCurator", "Halving", "Pool"]


@dataclass
class Pool(ABC):
    """The parts of a window that its publications share.

    Parameters
    ----------
    window
        The number of periods in a window.
    whole
        The number of parts of all publications of a window together.

    """

    window: int
    whole: int

    @abstractmethod
    def offer(self, period: int) -> int:
        """Return the number of parts that a publication in this period could have."""

    @abstractmethod
    def take(self, period: int, parts: int) -> None:
        """Record a publication."""


@dataclass
class Halving(Pool):
    """A pool that offers each publication half of what the window has left.

    Examples
    --------
    >>> parts = Halving(window=3, whole=80)
    >>> offers = []
    >>> for period in range(1, 7):
    ...     offers.append(parts.offer(period))
    ...     parts.take(period, offers[-1])
    >>> offers
    [40, 20, 10, 25, 22, 16]

    """

    def __post_init__(self) -> None:
        """Start with nothing taken."""
        self._taken = Spent(self.window)

    def offer(self, period: int) -> int:
        """Return half of the parts that earlier publications have left."""
        return int(self.whole - self._taken.total(period)) // 2

    def take(self, period: int, parts: int) -> None:
        """Record a publication."""
        self._taken.add(period, parts)


@dataclass
class Absorption(Pool):
    """A pool of equal units per period; a publication absorbs unused ones and skips as many later.

    Examples
    --------
    >>> parts = Absorption(window=4, whole=40)
    >>> offers = []
    >>> for period in range(1, 9):
    ...     offers.append(parts.offer(period))
    ...     if period in (3, 6):
    ...         parts.take(period, offers[-1])
    >>> offers
    [10, 20, 30, 0, 0, 10, 10, 20]

    """

    _published: int = 0
    _nullified: int = 0

    @property
    def unit(self) -> int:
        """The number of parts of each period if all have the same."""
        return self.whole // self.window

    def offer(self, period: int) -> int:
        """Return the parts of this period and of unused earlier ones; 0 if it must be skipped."""
        since = period - self._published
        if self._published and since <= self._nullified:
            return 0
        return self.unit * min(since - self._nullified, self.window)

    def take(self, period: int, parts: int) -> None:
        """Record a publication; as many later periods get nothing as it absorbed."""
        self._published, self._nullified = period, parts // self.unit - 1


@dataclass(eq=False, repr=False, kw_only=True)
class AdaptiveCurator(WindowCurator):
    """A curator that publishes if a new release would be closer to the truth than the last one.

    Parameters
    ----------
    rule
        The pool by which publications share what the looks leave of a window.
    share
        The share of the window that is spent on looking for changes.
    least
        The smallest number of parts of a publication.

    """

    rule: type[Pool]
    share: float = field(default=0.5, metadata=SHARE)
    least: int = 1

    rounds: ClassVar[int] = 2

    def __post_init__(self) -> None:
        """Divide the window into looks and publications."""
        super().__post_init__()
        self.look = self.division.parts(self.share / self.window, "each look")
        rest = 1 - self.share
        self.division.parts(rest / self.window, "each period's publication")
        self.pool = self.rule(self.window, int(self.division.whole * rest))
        if not isinstance(self.least, int) or isinstance(self.least, bool) or self.least < 1:
            raise ConfigurationError(
                f"least is {self.least!r}; the fewest devices of a publication are a whole number "
                "from 1 on."
            )

    def release(self, period: int) -> Step:
        """Look, and publish if the truth is further away than a new release would be."""
        reading = yield from self.asked(self.look)
        offered = self.pool.offer(period)
        if reading is None:
            return self.repeat()
        distance = self.dissimilarity(reading)
        if offered < self.least or distance <= self.division.error(offered, reading):
            return self.repeat(distance)
        self.pool.take(period, offered)
        return self.publish((yield from self.asked(offered)))
