"""A budget over any w consecutive periods: what is spent comes back, and never too early.

A report counts against every window of w periods that holds its period. Of all windows that a new
report falls into the one that ends now holds the most, so one sum decides. What was spent in period
t is free again in period t + w, not one before: two reports of the whole budget are w apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sfumato.accounting.ledger import UNITS, units
from sfumato.core.exact import positive
from sfumato.errors import BudgetError, ConfigurationError

__all__ = ["LONGEST_WINDOW", "WindowLedger", "affordable", "whole_units"]

LONGEST_WINDOW: Final = 1 << 14


def whole_units(epsilon: float) -> int:
    """Return how many units a limit holds, rounded down.

    Examples
    --------
    >>> whole_units(0.1), whole_units(1.0)
    (100000, 1000000)

    """
    return math.floor(Fraction(epsilon) * UNITS)


def affordable(spent: int) -> float:
    """Return the largest epsilon that costs no more than so many units.

    Examples
    --------
    >>> units(0.3), units(affordable(300_000))
    (300000, 300000)
    >>> units(0.1), units(affordable(100_000))
    (100001, 100000)

    """
    exact = Fraction(spent, UNITS)
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, 0.0)


@dataclass(frozen=True)
class WindowLedger:
    """What a device has spent in the last periods, and how much any w of them may hold.

    Parameters
    ----------
    window
        How many consecutive periods share the budget.
    epsilon
        The largest total epsilon of any such window.
    period
        The last period something was asked in; time only goes forward.
    spent
        The periods of the present window in which something was spent, with the units.

    Examples
    --------
    >>> ledger = WindowLedger(window=3, epsilon=1.0).paid(5, 0.75)
    >>> ledger.left(7), ledger.left(8)
    (0.25, 1.0)
    >>> ledger.paid(7, 0.5)
    Traceback (most recent call last):
    ...
    sfumato.errors.BudgetError: period 7 is asked for epsilon 0.5; 0.25 of 1 is left in 3 periods.
    >>> ledger.left(4)
    Traceback (most recent call last):
    ...
    sfumato.errors.BudgetError: period is 4; it was 5 before, and periods only go forward.

    """

    window: int
    epsilon: float
    period: int = 0
    spent: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Refuse a window that is none."""
        whole = isinstance(self.window, int) and not isinstance(self.window, bool)
        if not whole or not 1 <= self.window <= LONGEST_WINDOW:
            raise ConfigurationError(
                f"window is {self.window!r}; a whole number in 1..{LONGEST_WINDOW} is expected."
            )
        positive("epsilon", self.epsilon)

    def at(self, period: int) -> WindowLedger:
        """Return the ledger of this period: what has left the window is forgotten."""
        if period < self.period:
            raise BudgetError(
                f"period is {period}; it was {self.period} before, and periods only go forward."
            )
        kept = tuple(entry for entry in self.spent if entry[0] > period - self.window)
        return WindowLedger(self.window, self.epsilon, period, kept)

    def units_left(self, period: int) -> int:
        """Return how many units a period may still spend."""
        return whole_units(self.epsilon) - sum(paid for _, paid in self.at(period).spent)

    def left(self, period: int) -> float:
        """Return the epsilon that a period may still spend, rounded down."""
        return affordable(self.units_left(period))

    def affords(self, period: int, epsilon: float) -> bool:
        """Return whether a report of this epsilon may be made in a period."""
        return units(epsilon) <= self.units_left(period)

    def paid(self, period: int, epsilon: float) -> WindowLedger:
        """Return the ledger after a report; raise BudgetError if a window would hold too much."""
        now = self.at(period)
        if not now.affords(period, epsilon):
            raise BudgetError(
                f"period {period} is asked for epsilon {epsilon:g}; {now.left(period):g} of "
                f"{self.epsilon:g} is left in {self.window} periods."
            )
        before = dict(now.spent)
        before[period] = before.get(period, 0) + units(epsilon)
        return WindowLedger(self.window, self.epsilon, period, tuple(sorted(before.items())))
