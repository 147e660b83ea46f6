"""What a number is and how it is printed, for pages, charts, tables and plain data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

__all__ = ["AMOUNT", "MEAN", "MOVE", "SHARE", "Quantity", "decimals", "fixed"]

Kind = Literal["share", "mean", "move", "amount"]


def fixed(value: float, decimals: int) -> str:
    """Return a number, rounded to some decimals; one that rounds to zero has no sign.

    Examples
    --------
    >>> fixed(0.126, 2), fixed(-0.0004, 2), fixed(-12_345.6, 0)
    ('0.13', '0.00', '-12,346')

    """
    return f"{value:z,.{decimals}f}"


def decimals(reach: float) -> int:
    """Return the number of decimals that shows the first two digits of an uncertainty.

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
    """What kind of number an answer's values are.

    Parameters
    ----------
    kind
        ``share`` (of the devices, 0 to 1), ``mean`` (of a number that devices hold), ``move`` (the
        mean of -1, 0 and 1) or ``amount`` (anything made of these, such as a sum or a change).
    noun
        A name for people to read, as the beginning of a title.
    unit
        The text that is printed after a number.
    scale
        The factor that a value is multiplied by before it is printed.
    from_zero
        Whether charts always include zero.

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
        """Return the number of decimals for values with this uncertainty."""
        return decimals(self.scale * reach)

    def text(self, value: float, decimals: int) -> str:
        """Return a value as it is printed, with its unit."""
        return fixed(self.scale * value, decimals) + self.unit

    def measured_in(self, unit: str) -> Quantity:
        """Return the same quantity in another unit, which is printed after a space."""
        return replace(self, unit=f" {unit}") if unit else self

    @property
    def changed(self) -> Quantity:
        """The quantity of the difference of two such values."""
        unit = " points" if self.unit == "%" else self.unit
        noun = f"{self.noun}, change"
        return replace(self, kind="amount", noun=noun, unit=unit, from_zero=True)

    @property
    def summed(self) -> Quantity:
        """The quantity of a sum of such values over periods: neither a share nor a mean."""
        return Quantity("amount", f"{self.noun}, sum")

    def plain(self) -> dict[str, Any]:
        """Return the quantity as plain data."""
        return asdict(self)


SHARE: Final = Quantity("share", "Share of devices", "%", 100.0)
MEAN: Final = Quantity("mean", "Mean", from_zero=False)
MOVE: Final = Quantity("move", "Mean move")
AMOUNT: Final = Quantity("amount", "Estimate", from_zero=False)
"""The quantity of numbers of which nothing else is known."""
