"""A method that publishes when the truth seems to have moved away: LBD, LBA, LPD and LPA.

In every period a part of the window is spent on looking: how far is the truth from the last
release? If further than a fresh one would be from the truth, another part is spent on publishing.
What is divided, budget or population, is one choice; how the parts for publications are handed
out, by distribution or by absorption, is the other.

Ren, Shi, Yu, Yang, Zhao, Xu, "LDP-IDS: Local Differential Privacy for Infinite Data Streams"
(2022), corrected: variances count the draw of the cohorts and the average over items as it is,
distances keep their sign, and nothing is absorbed of the time before the first period.
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
    """What all publications of a window share.

    Parameters
    ----------
    window
        How many periods share the whole.
    whole
        How many parts all publications of a window have together.

    """

    window: int
    whole: int

    @abstractmethod
    def offer(self, period: int) -> int:
        """Return how many parts a publication in this period could have."""

    @abstractmethod
    def take(self, period: int, parts: int) -> None:
        """Write down a publication."""


@dataclass
class Halving(Pool):
    """Each publication is offered half of what the window has left.

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
        """Begin with nothing taken."""
        self._taken = Spent(self.window)

    def offer(self, period: int) -> int:
        """Return half of the parts that the publications before have left."""
        return int(self.whole - self._taken.total(period)) // 2

    def take(self, period: int, parts: int) -> None:
        """Write down a publication."""
        self._taken.add(period, parts)


@dataclass
class Absorption(Pool):
    """Every period has its unit; a publication absorbs those unused before, and gives back after.

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
        """How many parts each period has if all have the same."""
        return self.whole // self.window

    def offer(self, period: int) -> int:
        """Return the parts of this period and of those unused before; 0 if it pays one back."""
        since = period - self._published
        if self._published and since <= self._nullified:
            return 0
        return self.unit * min(since - self._nullified, self.window)

    def take(self, period: int, parts: int) -> None:
        """Write down a publication: as many periods after it have nothing as it had from others."""
        self._published, self._nullified = period, parts // self.unit - 1


@dataclass(eq=False, repr=False, kw_only=True)
class AdaptiveCurator(WindowCurator):
    """Look; offer; publish if that is nearer to the truth than the last release is.

    Parameters
    ----------
    rule
        How publications share what is left of a window after the looks.
    share
        Which share of the whole goes into looking for changes.
    least
        How many parts a publication must have to be worth it.

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
        """Look, and publish if the truth is further away than a fresh release would be."""
        reading = yield from self.asked(self.look)
        offered = self.pool.offer(period)
        if reading is None:
            return self.repeat()
        distance = self.dissimilarity(reading)
        if offered < self.least or distance <= self.division.error(offered, reading):
            return self.repeat(distance)
        self.pool.take(period, offered)
        return self.publish((yield from self.asked(offered)))
