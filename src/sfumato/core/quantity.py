"""What a number is and how it is printed: pages, charts, tables and plain data all ask here."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

__all__ = ["AMOUNT", "MEAN", "MOVE", "SHARE", "Quantity", "decimals", "fixed"]

Kind = Literal["share", "mean", "move", "amount"]


def fixed(value: float, places: int) -> str:
    """Return a number with so many decimals; what rounds to zero has no sign.

    Examples
    --------
    >>> fixed(0.126, 2), fixed(-0.0004, 2), fixed(-0.0, 0)
    ('0.13', '0.00', '0')

    """
    return f"{value:z.{places}f}"


def decimals(reach: float) -> int:
    """Return the decimals at which an uncertainty shows its first two digits.

    Examples
    --------
    >>> decimals(0.0123), decimals(4.2), decimals(310.0)
    (3, 1, 0)

    """
    if not 0 < reach < math.inf:
        return 4
    return min(12, max(0, 1 - math.floor(math.log10(reach))))


@dataclass(frozen=True)
class Quantity:
    """What the values of an answer are.

    Parameters
    ----------
    kind
        ``share`` (of the devices, 0 to 1), ``mean`` (of a number that devices hold), ``move`` (the
        mean of -1, 0 and 1) or ``amount`` (anything made of these, such as a sum or a change).
    noun
        The same for people, as the beginning of a title.
    unit
        What is printed after a number.
    scale
        What a value is multiplied by before it is printed.
    from_zero
        Whether its charts show zero, however far away that is.

    Examples
    --------
    >>> SHARE.text(0.1321, 1), SHARE.changed.text(-0.00004, 1), MEAN.text(54.168, 1)
    ('13.2%', '0.0 points', '54.2')

    """

    kind: Kind
    noun: str
    unit: str = ""
    scale: float = 1.0
    from_zero: bool = True

    def decimals(self, reach: float) -> int:
        """Return the decimals of values whose uncertainty is so large."""
        return decimals(self.scale * reach)

    def text(self, value: float, places: int) -> str:
        """Return a value as it is printed, with its unit."""
        return fixed(self.scale * value, places) + self.unit

    def measured_in(self, unit: str) -> Quantity:
        """Return the same in a unit, which is printed after a space."""
        return replace(self, unit=f" {unit}") if unit else self

    @property
    def changed(self) -> Quantity:
        """What the difference of two such values is."""
        unit = " points" if self.unit == "%" else self.unit
        noun = f"{self.noun}, change"
        return replace(self, kind="amount", noun=noun, unit=unit, from_zero=True)

    @property
    def summed(self) -> Quantity:
        """What the sum of such values over several periods is: no share, and no mean."""
        return Quantity("amount", f"{self.noun}, sum")

    def plain(self) -> dict[str, Any]:
        """Return the same as plain data."""
        return asdict(self)


SHARE: Final = Quantity("share", "Share of devices", "%", 100.0)
MEAN: Final = Quantity("mean", "Mean", from_zero=False)
MOVE: Final = Quantity("move", "Mean move")
AMOUNT: Final = Quantity("amount", "Estimate", from_zero=False)
"""Numbers of which nothing else is known."""
