"""A device's ledger over all tasks, in whole units, which is never overdrawn.

Promises add up over everybody who asks, so there is one ledger for all: separate budgets for each
asker are unsound as soon as one adapts to what another has learnt. A task is paid in full when it
is joined, and nothing is ever paid back: no change of clocks can free what is spent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from sfumato.core.field_checks import check_number
from sfumato.errors import BudgetError

__all__ = ["UNITS", "Ledger", "Payment", "units"]

UNITS: Final = 1_000_000
"""The number of units in an epsilon of 1."""


def units(epsilon: float) -> int:
    """Return an epsilon in units, rounded up.

    Examples
    --------
    >>> units(0.1), units(1.0)
    (100001, 1000000)

    """
    # As a float, 0.1 is a little more than a tenth, and the promise is about the float.
    return ceil(Fraction(epsilon) * UNITS)


@dataclass(frozen=True)
class Payment:
    """The payment for one task."""

    task_id: bytes
    units: int


@dataclass(frozen=True)
class Ledger:
    """The payments of a device, and the most that it may spend in all.

    Parameters
    ----------
    limit
        The largest total epsilon.
    entries
        One entry for each task that was ever joined.

    Examples
    --------
    >>> ledger = Ledger(1.5).paid(b"a", 1.0)
    >>> ledger.left
    0.5
    >>> ledger.paid(b"b", 0.75)
    Traceback (most recent call last):
    ...
    sfumato.errors.BudgetError: the task asks for epsilon 0.75; 0.5 of the limit of 1.5 is left.

    """

    limit: float
    entries: tuple[Payment, ...] = ()

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the limit is a finite number from 0 on."""
        check_number("limit", self.limit, least=0)

    @property
    def spent(self) -> int:
        """The number of units spent in all."""
        return sum(entry.units for entry in self.entries)

    @property
    def left(self) -> float:
        """The epsilon that is left, rounded down."""
        return max(0, int(Fraction(self.limit) * UNITS) - self.spent) / UNITS

    def paid(self, task_id: bytes, epsilon: float) -> Ledger:
        """Return the ledger after paying for a task; raise BudgetError if too little is left.

        A task that was paid for before costs nothing more, because its coins are the same again.
        """
        if any(entry.task_id == task_id for entry in self.entries):
            return self
        price = units(epsilon)
        # Units are rounded up, but a single task is compared with the limit exactly.
        fits = Fraction(epsilon) <= Fraction(self.limit) and not self.entries
        if not fits and self.spent + price > Fraction(self.limit) * UNITS:
            raise BudgetError(
                f"the task asks for epsilon {epsilon:.9g}; {self.left:.9g} of the limit of "
                f"{self.limit:.9g} is left."
            )
        return Ledger(self.limit, (*self.entries, Payment(task_id, price)))

    @classmethod
    def of(cls, limit: float, entries: Iterable[tuple[bytes, int]]) -> Ledger:
        """Return a ledger from recorded pairs of task id and units."""
        return cls(limit, tuple(Payment(bytes(task_id), paid) for task_id, paid in entries))
