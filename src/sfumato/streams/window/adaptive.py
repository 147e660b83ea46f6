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

from abc import abstractmethod
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.exact import is_finite_number
from sfumato.core.mechanism import Mechanism
from sfumato.core.protocol import Ask
from sfumato.errors import ConfigurationError
from sfumato.streams.window.curators import Step, WindowCurator

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
        """What each period has."""
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


class _Adaptive(WindowCurator):
    """Look; offer; publish if that is nearer to the truth than the last release is."""

    least: int
    """A publication with fewer parts is not worth it."""
    look: int
    """What is spent on looking in each period."""
    rest: int
    """What all publications of a window have together."""
    parts: Distribution | Absorption
    """How publications share the rest."""

    rounds: ClassVar[int] = 2

    def step(self, period: int) -> Step:
        """Look, and publish if the truth is further away than a fresh release would be."""
        looking = self.mechanism(self.look)
        tally = yield self.spend(looking, self.look)
        reading = self.read(looking, tally)
        offered = self.parts.offer(period)
        if reading is None:
            return self.repeat()
        distance = self.dissimilarity(reading)
        if offered < max(1, self.least):
            return self.repeat(distance)
        fresh = self.mechanism(offered)
        if distance <= self.variance(fresh, self.answers(offered), reading):
            return self.repeat(distance)
        self.parts.take(period, offered)
        tally = yield self.spend(fresh, offered)
        return self.publish(self.read(fresh, tally))

    @abstractmethod
    def mechanism(self, parts: int) -> Mechanism:
        """Return what so many parts are asked with."""

    @abstractmethod
    def spend(self, mechanism: Mechanism, parts: int) -> Ask:
        """Return the question that spends so many parts."""

    @abstractmethod
    def answers(self, parts: int) -> int:
        """Return how many answers so many parts bring."""

    def _checked_share(self, share: float) -> float:
        if not is_finite_number(share) or not 0 < share < 1:
            raise ConfigurationError(
                f"share is {share!r}; what goes into looking is a number between 0 and 1."
            )
        return share


class _Budget(_Adaptive):
    """The parts are units of budget, and everybody answers everything."""

    divides: ClassVar[str] = "budget"

    def __init__(self, protocol: Window, *, share: float = 0.5) -> None:
        super().__init__(protocol)
        self._checked_share(share)
        self.least = 1
        self.look = self.part(share / self.window, "each look")
        self.part((1 - share) / self.window, "each period's publication")
        self.rest = int(self.units * (1 - share))

    def mechanism(self, parts: int) -> Mechanism:
        """Return the mechanism that spends so many units."""
        return self.oracle(parts)

    def spend(self, mechanism: Mechanism, parts: int) -> Ask:
        """Ask everybody."""
        del parts
        return self.ask_all(mechanism)

    def answers(self, parts: int) -> int:
        """Everybody's."""
        del parts
        return self.devices


class _Population(_Adaptive):
    """The parts are devices, and whoever answers spends a whole window's budget."""

    divides: ClassVar[str] = "population"

    def __init__(self, protocol: Window, *, share: float = 0.5, least: int = 1) -> None:
        super().__init__(protocol)
        self._checked_share(share)
        whole = isinstance(least, int) and not isinstance(least, bool)
        if not whole or least < 1:
            raise ConfigurationError(
                f"least is {least!r}; the fewest devices of a publication are a whole number from "
                "1 on."
            )
        self.least = least
        self.look = int(self.devices * share / self.window)
        smaller = min(share, 1 - share)
        if self.devices * smaller < self.window:
            self.needs_devices(ceil(self.window / smaller))
        self.rest = int(self.devices * (1 - share))

    def mechanism(self, parts: int) -> Mechanism:
        """Return the mechanism that spends everything."""
        del parts
        return self.oracle()

    def spend(self, mechanism: Mechanism, parts: int) -> Ask:
        """Ask a cohort."""
        return self.ask(mechanism, parts)

    def answers(self, parts: int) -> int:
        """Theirs."""
        return parts


class LBD(_Budget):
    """Budget, by distribution: a publication has half of the budget that the window has left."""

    name: ClassVar[str] = "lbd"
    summary: ClassVar[str] = "publishes on change, with half of the budget left"

    def __init__(self, protocol: Window, *, share: float = 0.5) -> None:
        super().__init__(protocol, share=share)
        self.parts = Distribution(self.window, self.rest)


class LBA(_Budget):
    """Budget, by absorption: a publication absorbs the budget of periods without one."""

    name: ClassVar[str] = "lba"
    summary: ClassVar[str] = "publishes on change, with the budget of periods that did not"

    def __init__(self, protocol: Window, *, share: float = 0.5) -> None:
        super().__init__(protocol, share=share)
        self.parts = Absorption(self.window, self.rest)


class LPD(_Population):
    """Population, by distribution: a publication asks half of the devices left for it."""

    name: ClassVar[str] = "lpd"
    summary: ClassVar[str] = "publishes on change, by half of the devices left"

    def __init__(self, protocol: Window, *, share: float = 0.5, least: int = 1) -> None:
        super().__init__(protocol, share=share, least=least)
        self.parts = Distribution(self.window, self.rest)


class LPA(_Population):
    """Population, by absorption: a publication asks the devices of periods without one, too."""

    name: ClassVar[str] = "lpa"
    summary: ClassVar[str] = "publishes on change, by the devices of periods that did not"

    def __init__(self, protocol: Window, *, share: float = 0.5, least: int = 1) -> None:
        super().__init__(protocol, share=share, least=least)
        self.parts = Absorption(self.window, self.rest)
