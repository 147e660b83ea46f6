"""One number with its interval, and a row of a table as it is printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sfumato.core.domain import Label
from sfumato.core.guarantee import Guarantee
from sfumato.core.quantity import Quantity

__all__ = ["Answer", "Printed"]


@dataclass(frozen=True)
class Answer:
    """One number with its interval, its quantity and the guarantee that is printed with it.

    Examples
    --------
    >>> from sfumato.core.quantity import AMOUNT
    >>> print(Answer("cat", 0.2, 0.1, 0.3, AMOUNT, None, ""))
    cat: 0.20 ± 0.10

    """

    label: Label
    value: float
    low: float
    high: float
    quantity: Quantity
    as_of: int | None
    guarantee: Guarantee | str

    def __str__(self) -> str:
        reach = (self.high - self.low) / 2
        decimals = self.quantity.decimals(reach)
        return (
            f"{self.label}: {self.quantity.text(self.value, decimals)} ± "
            f"{self.quantity.text(reach, decimals)}"
        )


class Printed(NamedTuple):
    """A row as text: if nothing is known, ``value`` is ``unknown`` and the rest is empty.

    A value that noise has moved out of its interval, below zero for example, is shown at the
    nearest end; ``raw`` is then the value itself, and empty otherwise.
    """

    value: str
    reach: str
    low: str
    high: str
    raw: str
