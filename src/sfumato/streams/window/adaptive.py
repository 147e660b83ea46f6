"""Four methods that publish when the truth seems to have moved away: LBD, LBA, LPD and LPA.

In every period a part of the window is spent on looking: how far is the truth from the last
release? If further than a fresh one would be from the truth, another part is spent on publishing.
What is divided, budget or population, is one choice; how the parts for publications are handed
out, by distribution or by absorption, is the other.

Ren, Shi, Yu, Yang, Zhao, Xu, "LDP-IDS: Local Differential Privacy for Infinite Data Streams"
(2022), corrected: variances count the draw of the cohorts and the average over items as it is,
distances keep their sign, and nothing is absorbed of the time before the first period.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from sfumato.errors import ConfigurationError
from sfumato.streams.window.curators import Step
from sfumato.streams.window.divisions import Budget, Divided, Population, between

if TYPE_CHECKING:
    from sfumato.streams.window.protocol import Window

__all__ = ["LBA", "LBD", "LPA", "LPD", "Absorption", "Distribution"]


@dataclass
class Distribution:
    """Each publication is offered half of what the window has left.

    Parameters
    ----------
    window
        How many periods share the whole.
    whole
        How many parts all publications of a window have together.

    Examples
    --------
    >>> parts = Distribution(window=3, whole=80)
    >>> offers = []
    >>> for period in range(1, 7):
    ...     offers.append(parts.offer(period))
    ...     parts.take(period, offers[-1])
    >>> offers
    [40, 20, 10, 25, 22, 16]

    """

    window: int
    whole: int
    _taken: dict[int, int] = field(default_factory=dict)

    def offer(self, period: int) -> int:
        """Return how many parts a publication in this period could have."""
        self._taken = {
            past: parts for past, parts in self._taken.items() if past > period - self.window
        }
        return (self.whole - sum(self._taken.values())) // 2

    def take(self, period: int, parts: int) -> None:
        """Write down a publication."""
        self._taken[period] = parts


@dataclass
class Absorption:
    """Every period has its unit; a publication absorbs those unused before, and gives back after.

    Parameters
    ----------
    window
        How many periods share the whole.
    whole
        How many parts all publications of a window have together.

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

    window: int
    whole: int
    _published: int = 0
    _nullified: int = 0

    @property
    def unit(self) -> int:
        """How many parts each period has if all have the same."""
        return self.whole // self.window

    def offer(self, period: int) -> int:
        """Return how many parts a publication in this period could have; 0 if it pays one back."""
        since = period - self._published
        if self._published and since <= self._nullified:
            return 0
        return self.unit * min(since - self._nullified, self.window)

    def take(self, period: int, parts: int) -> None:
        """Write down a publication: as many periods after it have nothing as it had from others."""
        self._published, self._nullified = period, parts // self.unit - 1


class _Adaptive(Divided):
    """Look; offer; publish if that is nearer to the truth than the last release is."""

    rounds: ClassVar[int] = 2
    pooled: ClassVar[type[Distribution | Absorption]]
    """How publications share what is left of a window after the looks."""

    def __init__(self, protocol: Window, *, share: float = 0.5) -> None:
        super().__init__(protocol)
        between("share", share, 0, 1)
        self.look = self.parts(share / self.window, "each look")
        self.parts((1 - share) / self.window, "each period's publication")
        self.pool = self.pooled(self.window, int(self.whole * (1 - share)))
        self.least = 1

    def step(self, period: int) -> Step:
        """Look, and publish if the truth is further away than a fresh release would be."""
        reading = yield from self.asked(self.look)
        offered = self.pool.offer(period)
        if reading is None:
            return self.repeat()
        distance = self.dissimilarity(reading)
        if offered < self.least or distance <= self.error(offered, reading):
            return self.repeat(distance)
        self.pool.take(period, offered)
        return self.publish((yield from self.asked(offered)))


class _AdaptiveCohorts(_Adaptive, Population):
    """The same, where a publication of too few devices is not worth it."""

    def __init__(self, protocol: Window, *, share: float = 0.5, least: int = 1) -> None:
        super().__init__(protocol, share=share)
        if not isinstance(least, int) or isinstance(least, bool) or least < 1:
            raise ConfigurationError(
                f"least is {least!r}; the fewest devices of a publication are a whole number from "
                "1 on."
            )
        self.least = least


class LBD(_Adaptive, Budget):
    """Budget, by distribution: a publication has half of the budget that the window has left."""

    name: ClassVar[str] = "lbd"
    summary: ClassVar[str] = "publishes on change, with half of the budget left"
    pooled = Distribution


class LBA(_Adaptive, Budget):
    """Budget, by absorption: a publication absorbs the budget of periods without one."""

    name: ClassVar[str] = "lba"
    summary: ClassVar[str] = "publishes on change, with the budget of periods that did not"
    pooled = Absorption


class LPD(_AdaptiveCohorts):
    """Population, by distribution: a publication asks half of the devices left for it."""

    name: ClassVar[str] = "lpd"
    summary: ClassVar[str] = "publishes on change, by half of the devices left"
    pooled = Distribution


class LPA(_AdaptiveCohorts):
    """Population, by absorption: a publication asks the devices of periods without one, too."""

    name: ClassVar[str] = "lpa"
    summary: ClassVar[str] = "publishes on change, by the devices of periods that did not"
    pooled = Absorption
