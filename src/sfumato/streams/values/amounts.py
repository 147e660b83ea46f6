"""Amounts as whole numbers of a unit, and what becomes of those that are none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import is_finite_number
from sfumato.errors import ConfigurationError, InputError

__all__ = ["INVALID", "Amounts", "Invalid"]

Invalid = Literal["clip", "zero", "stop"]
INVALID: Final[tuple[Invalid, ...]] = ("clip", "zero", "stop")


@dataclass(frozen=True)
class Amounts:
    """Turns numbers into whole units between 0 and the bound, each by itself.

    Numbers are rounded to the nearest unit and cut to the bound. What is negative, infinite or no
    number at all is *invalid*: ``clip`` puts it at the nearer end (and what is no number at 0),
    ``zero`` at 0, and ``stop`` raises. Nothing is ever dropped: a stream that is one value
    shorter would tell.

    Parameters
    ----------
    bound
        The public bound of a value.
    unit
        The grid: 0.01 for cents of a dollar.
    invalid
        What becomes of invalid values.

    Examples
    --------
    >>> amounts = Amounts(bound=10.0, unit=0.25, invalid="clip")
    >>> amounts.encode(np.array([1.3, 99.0, -2.0, np.nan, np.inf])).tolist()
    [5, 40, 0, 0, 40]

    """

    bound: float
    unit: float = 1.0
    invalid: Invalid = "stop"

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        for name in ("bound", "unit"):
            given = getattr(self, name)
            if not is_finite_number(given) or given <= 0:
                raise ConfigurationError(f"{name} is {given!r}; a number above 0 is expected.")
        if self.units < 1:
            raise ConfigurationError(
                f"unit is {self.unit:g}; it must not be larger than the bound, {self.bound:g}."
            )
        if self.invalid not in INVALID:
            raise ConfigurationError(
                f"invalid is {self.invalid!r}; {' or '.join(INVALID)} is expected."
            )

    @property
    def units(self) -> int:
        """The bound in units."""
        return self.in_units(self.bound)

    def in_units(self, value: float) -> int:
        """Return a public number in units, rounded down but for what rounding errors explain."""
        return math.floor(value / self.unit * (1 + 1e-12))

    def encode(self, values: NDArray[Any], first: int = 0) -> NDArray[np.int64]:
        """Return numbers in units; ``first`` is the place of the first one, for messages."""
        if values.dtype.kind in "iu":
            if values.dtype.kind == "i" and values.size and values.min() < 0:
                values = self._judged(values, values < 0, first)
            if self.unit == 1:
                return cast("NDArray[np.int64]", np.minimum(values, self.units).astype(np.int64))
            values = values.astype(np.float64)
        elif values.dtype.kind != "f":
            raise InputError(f"values have type {values.dtype}; numbers are expected.")
        numbers = values.astype(np.float64, copy=False)
        with np.errstate(invalid="ignore"):
            wrong = ~((numbers >= 0) & (numbers < math.inf))
        if wrong.any():
            numbers = self._judged(numbers, wrong, first)
        scaled = numbers if self.unit == 1 else numbers / self.unit
        return np.rint(np.minimum(scaled, self.units)).astype(np.int64)

    def _judged(self, values: NDArray[Any], wrong: NDArray[np.bool_], first: int) -> NDArray[Any]:
        if self.invalid == "stop":
            place = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"value {first + place + 1} is {values[place]}; a number from 0 on is expected "
                "(--invalid clip or zero goes on)."
            )
        right = values.copy()
        right[wrong] = 0
        if self.invalid == "clip":
            right[values == math.inf] = self.bound
        return right
