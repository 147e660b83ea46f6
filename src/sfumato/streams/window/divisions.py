"""What a window has to hand out: units of budget, or devices.

Most methods can divide either. In parts: if budget is divided everybody answers everything, and a
question of k parts spends k millionths of an epsilon; if the population is divided a question of k
parts asks k devices, in expectation, and each of them spends everything it has in a window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Final

from sfumato.accounting.windows import whole_units
from sfumato.errors import ConfigurationError
from sfumato.streams.window.readings import Asking, Reading, planned_variance

if TYPE_CHECKING:  # a protocol makes its curators, and they hold a division
    from sfumato.streams.window.window import Window

__all__ = ["Budget", "Cohorts", "Division", "Spent"]

EVERYBODY: Final = 1.0


@dataclass
class Spent:
    """What the last w periods have spent, and how often.

    Examples
    --------
    >>> spent = Spent(window=3)
    >>> spent.add(1, 10)
    >>> spent.add(2, 5)
    >>> spent.total(3), spent.total(4), spent.times(4)
    (15, 5, 1)

    """

    window: int
    _parts: dict[int, float] = field(default_factory=dict)

    def add(self, period: int, parts: float) -> None:
        """Write down what a period spends."""
        self._parts[period] = self._of_window(period).get(period, 0) + parts

    def total(self, period: int) -> float:
        """Return what the w periods until this one have spent."""
        return sum(self._of_window(period).values())

    def times(self, period: int) -> int:
        """Return in how many of the w periods until this one anything was spent."""
        return len(self._of_window(period))

    def _of_window(self, period: int) -> dict[int, float]:
        """Forget the periods that have left the window; return the rest."""
        first = period - self.window + 1
        self._parts = {past: parts for past, parts in self._parts.items() if past >= first}
        return self._parts


class Division(ABC):
    """A whole that the questions of a window share, and what each part of it asks.

    Parameters
    ----------
    protocol
        The public design.
    method
        The name of the method that divides, for the sentence that says there is too little.

    """

    name: ClassVar[str]
    """What is divided: ``budget`` or ``population``."""

    def __init__(self, protocol: Window, method: str) -> None:
        self.protocol = protocol
        self.method = method
        self.units = whole_units(protocol.epsilon)
        """The whole budget of a window."""
        self.spent = Spent(protocol.window)
        """What the questions of the last periods have taken."""

    @property
    @abstractmethod
    def whole(self) -> int:
        """How many parts a window has."""

    @property
    @abstractmethod
    def even(self) -> float:
        """How many parts each period has if all have the same; raise if that is too little."""

    @abstractmethod
    def parts(self, share: float, purpose: str) -> int:
        """Return a share of the whole; raise if it is less than one part."""

    @abstractmethod
    def question(self, parts: float) -> tuple[Asking, float]:
        """Return what so many parts are asked with, and how many answers are expected."""

    @abstractmethod
    def spend(self, period: int, parts: float) -> float:
        """Spend parts on a question; return how likely a device that is free is to answer it."""

    def left(self, period: int) -> float:
        """Return how many parts a period can still spend."""
        return max(0.0, self.whole - self.spent.total(period))

    def error(self, parts: float, known: Reading | None = None) -> float:
        """Return the variance of what so many parts would say, on average over the items.

        Parameters
        ----------
        parts
            What would be spent.
        known
            What is known of the present values; without it they spread as widely as they can.

        """
        return planned_variance(*self.question(parts), self.protocol.people, known)


class Budget(Division):
    """Parts are units of budget: a question asks all devices with a part of epsilon."""

    name: ClassVar[str] = "budget"

    @property
    def whole(self) -> int:
        """How many units of budget a window has."""
        return self.units

    @property
    def even(self) -> int:
        """A w-th of the units."""
        return self.parts(1 / self.protocol.window, "each period")

    def parts(self, share: float, purpose: str) -> int:
        """Return a share of the units."""
        units, epsilon = int(self.units * share), self.protocol.epsilon
        if units < 1:
            raise ConfigurationError(
                f"epsilon is {epsilon:g} over a window of {self.protocol.window}; {purpose} "
                f"would get {epsilon * share:.2g}, and 1e-06 is the least."
            )
        return units

    def question(self, parts: float) -> tuple[Asking, float]:
        """Return the mechanism that spends so many units; all devices answer."""
        return self.protocol.mechanism(int(parts)), self.protocol.devices

    def spend(self, period: int, parts: float) -> float:
        """Ask everybody."""
        self.spent.add(period, parts)
        return EVERYBODY


class Cohorts(Division):
    """Parts are devices: a question asks a cohort of them with all of epsilon.

    A cohort is everybody who is free and whose own coin says so. How many devices are free is
    public, in expectation: all but the cohorts of the last w - 1 periods.
    """

    name: ClassVar[str] = "population"

    @property
    def whole(self) -> int:
        """How many devices there are."""
        return self.protocol.devices

    @property
    def even(self) -> float:
        """A w-th of the devices."""
        self._need(self.protocol.window)
        return self.whole / self.protocol.window

    def parts(self, share: float, purpose: str) -> int:
        """Return a share of the devices."""
        del purpose
        self._need(ceil(1 / share))
        return int(self.whole * share)

    def question(self, parts: float) -> tuple[Asking, float]:
        """Return the mechanism that spends everything; so many devices answer."""
        return self.protocol.mechanism(self.units), parts

    def spend(self, period: int, parts: float) -> float:
        """Ask a cohort of so many devices, in expectation, or of all that are free."""
        free = self.left(period)
        size = min(float(parts), free)
        self.spent.add(period, size)
        return size / free if free else 0.0

    def _need(self, least: int) -> None:
        if self.whole < least:
            raise ConfigurationError(
                f"devices is {self.whole} over a window of {self.protocol.window}; {self.method} "
                f"needs {least} at least, or a cohort has nobody in it."
            )
