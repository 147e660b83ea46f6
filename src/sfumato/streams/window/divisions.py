"""Divisions of a window into parts: units of budget, or devices.

Most methods can divide either. If the budget is divided, all devices answer every question, and a
question of k parts spends k millionths of epsilon. If the population is divided, a question of k
parts asks k devices in expectation, and each of them spends its whole budget of a window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Final

from sfumato.accounting.windows import whole_units
from sfumato.errors import ConfigurationError
from sfumato.streams.window.readings import Asking, Reading, planned_variance

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.window.window import Window

__all__ = ["Budget", "Cohorts", "Division", "Spent"]

EVERYBODY: Final = 1.0


@dataclass
class Spent:
    """The parts that the last w periods have spent.

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
        """Record the parts that a period spends."""
        self._parts[period] = self._of_window(period).get(period, 0) + parts

    def total(self, period: int) -> float:
        """Return the parts that the last w periods, up to this one, have spent."""
        return sum(self._of_window(period).values())

    def times(self, period: int) -> int:
        """Return in how many of the last w periods, up to this one, anything was spent."""
        return len(self._of_window(period))

    def _of_window(self, period: int) -> dict[int, float]:
        """Drop the periods that have left the window; return the rest."""
        first = period - self.window + 1
        self._parts = {past: parts for past, parts in self._parts.items() if past >= first}
        return self._parts


class Division(ABC):
    """A whole that the questions of a window share, and the question that some parts can ask.

    Parameters
    ----------
    protocol
        The stream.
    method
        The name of the method, for error messages.

    """

    name: ClassVar[str]
    """What is divided: ``budget`` or ``population``."""

    def __init__(self, protocol: Window, method: str) -> None:
        self.protocol = protocol
        self.method = method
        self.units = whole_units(protocol.epsilon)
        """The number of budget units of a window."""
        self.spent = Spent(protocol.window)
        """The parts that the last periods have spent."""

    @property
    @abstractmethod
    def whole(self) -> int:
        """The number of parts of a window."""

    @property
    @abstractmethod
    def even(self) -> float:
        """The number of parts of each period if all are equal; ConfigurationError if too few."""

    @abstractmethod
    def parts(self, share: float, purpose: str) -> int:
        """Return the parts of a share of the whole; ConfigurationError if below one part."""

    @abstractmethod
    def question(self, parts: float) -> tuple[Asking, float]:
        """Return the mechanism for some parts, and the expected number of answers."""

    @abstractmethod
    def spend(self, period: int, parts: float) -> float:
        """Spend parts on a question; return the probability that a free device answers it."""

    def left(self, period: int) -> float:
        """Return the number of parts that a period can still spend."""
        return max(0.0, self.whole - self.spent.total(period))

    def error(self, parts: float, known: Reading | None = None) -> float:
        """Return the variance of an estimate from some parts, averaged over the items.

        Parameters
        ----------
        parts
            The number of parts.
        known
            A reading of the present values; if None, the largest possible variance is assumed.

        """
        return planned_variance(*self.question(parts), self.protocol.people, known)


class Budget(Division):
    """A division into units of budget: each question asks all devices with a part of epsilon."""

    name: ClassVar[str] = "budget"

    @property
    def whole(self) -> int:
        """The number of budget units of a window."""
        return self.units

    @property
    def even(self) -> int:
        """The number of units of each period: a w-th of all."""
        return self.parts(1 / self.protocol.window, "each period")

    def parts(self, share: float, purpose: str) -> int:
        """Return the units of a share of the budget; ConfigurationError if below one unit."""
        units, epsilon = int(self.units * share), self.protocol.epsilon
        if units < 1:
            raise ConfigurationError(
                f"epsilon is {epsilon:g} over a window of {self.protocol.window}; {purpose} "
                f"would get {epsilon * share:.2g}, and 1e-06 is the least."
            )
        return units

    def question(self, parts: float) -> tuple[Asking, float]:
        """Return the mechanism that spends these units; all devices answer."""
        return self.protocol.mechanism(int(parts)), self.protocol.devices

    def spend(self, period: int, parts: float) -> float:
        """Record the spending; return 1, because all devices are asked."""
        self.spent.add(period, parts)
        return EVERYBODY


class Cohorts(Division):
    """A division into devices: each question asks a cohort of them with all of epsilon.

    A cohort consists of all free devices whose own coin says so. The expected number of free
    devices is public: all except the cohorts of the last w - 1 periods.
    """

    name: ClassVar[str] = "population"

    @property
    def whole(self) -> int:
        """The number of devices."""
        return self.protocol.devices

    @property
    def even(self) -> float:
        """The number of devices of each period: a w-th of all."""
        self._need(self.protocol.window)
        return self.whole / self.protocol.window

    def parts(self, share: float, purpose: str) -> int:
        """Return the number of devices of a share; ConfigurationError if it would be empty."""
        del purpose
        self._need(ceil(1 / share))
        return int(self.whole * share)

    def question(self, parts: float) -> tuple[Asking, float]:
        """Return the mechanism that spends the whole budget, and the number of devices."""
        return self.protocol.mechanism(self.units), parts

    def spend(self, period: int, parts: float) -> float:
        """Ask a cohort of this expected size, or of all free devices if they are fewer."""
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
