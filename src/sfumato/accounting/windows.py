"""A budget for any w consecutive periods; what is spent becomes free again after w periods.

A report counts against every window of w periods that holds its period. Of all windows with a new
report, the one that ends now has spent most, so one sum decides. What was spent in period t is free
again in period t + w and not earlier: two reports of the whole budget are at least w periods apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sfumato.accounting.ledger import UNITS, units
from sfumato.core.field_checks import check_number, check_whole
from sfumato.errors import BudgetError

__all__ = ["LONGEST_WINDOW", "WindowLedger", "affordable", "whole_units"]

LONGEST_WINDOW: Final = 1 << 14


def whole_units(epsilon: float) -> int:
    """Return an epsilon in units, rounded down.

    Examples
    --------
    >>> whole_units(0.1), whole_units(1.0)
    (100000, 1000000)

    """
    return math.floor(Fraction(epsilon) * UNITS)


def affordable(spent: int) -> float:
    """Return the largest epsilon that costs at most ``spent`` units.

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
    """What a device has spent in recent periods, and the limit for any w consecutive ones.

    Parameters
    ----------
    window
        How many consecutive periods share the budget.
    epsilon
        The largest total epsilon of any such window.
    period
        The last period for which the ledger was used; periods never go back.
    spent
        Pairs of a period in the present window and the units spent in it.

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
        """Raise ConfigurationError unless window and epsilon are in their ranges."""
        check_whole("window", self.window, 1, LONGEST_WINDOW)
        check_number("epsilon", self.epsilon, above=0)

    def at(self, period: int) -> WindowLedger:
        """Return the ledger at this period, without payments that have left the window."""
        if period < self.period:
            raise BudgetError(
                f"period is {period}; it was {self.period} before, and periods only go forward."
            )
        kept = tuple(entry for entry in self.spent if entry[0] > period - self.window)
        return WindowLedger(self.window, self.epsilon, period, kept)

    def units_left(self, period: int) -> int:
        """Return how many units may still be spent in a period."""
        return whole_units(self.epsilon) - sum(paid for _, paid in self.at(period).spent)

    def left(self, period: int) -> float:
        """Return the epsilon that may still be spent in a period, rounded down."""
        return affordable(self.units_left(period))

    def affords(self, period: int, epsilon: float) -> bool:
        """Return whether the budget allows a report of this epsilon in a period."""
        return units(epsilon) <= self.units_left(period)

    def paid(self, period: int, epsilon: float) -> WindowLedger:
        """Return the ledger after a report; raise BudgetError if a window would exceed epsilon."""
        now = self.at(period)
        if not now.affords(period, epsilon):
            raise BudgetError(
                f"period {period} is asked for epsilon {epsilon:g}; {now.left(period):g} of "
                f"{self.epsilon:g} is left in {self.window} periods."
            )
        before = dict(now.spent)
        before[period] = before.get(period, 0) + units(epsilon)
        return WindowLedger(self.window, self.epsilon, period, tuple(sorted(before.items())))
