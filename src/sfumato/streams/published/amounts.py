"""Amounts as whole numbers of a unit, and the treatment of invalid ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final, Literal

import numpy as np

from sfumato.arrays import Array, Bools, Floats, Ints
from sfumato.core.field_checks import check_number, check_one_of
from sfumato.core.guarantee import Guarantee
from sfumato.errors import ConfigurationError, InputError

__all__ = ["INVALID", "Amounts", "Invalid"]

Invalid = Literal["clip", "zero", "stop"]
INVALID: Final[tuple[Invalid, ...]] = ("clip", "zero", "stop")
_LARGEST: Final = (1 << 63) - 1


@dataclass(frozen=True)
class Amounts:
    """Converts numbers to whole units between 0 and the bound, each on its own.

    Numbers are rounded to the nearest unit and clipped to the bound. Negative numbers, infinities
    and NaN are *invalid*: ``clip`` replaces them by the nearer end (NaN by 0), ``zero`` by 0, and
    ``stop`` raises InputError. Nothing is ever dropped, because a stream that is one value shorter
    would reveal it.

    Parameters
    ----------
    bound
        The public bound of a value.
    unit
        The size of the grid, such as 0.01 for cents.
    invalid
        The treatment of invalid values.

    Examples
    --------
    >>> amounts = Amounts(bound=10.0, unit=0.25, invalid="clip")
    >>> amounts.encode(np.array([1.3, 99.0, -2.0, np.nan, np.inf])).tolist()
    [5, 40, 0, 0, 40]

    """

    bound: float
    unit: float = 1.0
    invalid: Invalid = "clip"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all fields are allowed."""
        for name in ("bound", "unit"):
            number = getattr(self, name)
            check_number(name, number, above=0)
        if self.units < 1:
            raise ConfigurationError(
                f"unit is {self.unit:g}; it must not be larger than the bound, {self.bound:g}."
            )
        check_one_of("invalid", self.invalid, INVALID)

    def promised(self, guarantee: Guarantee, judged: str = "value") -> Guarantee:
        """Return a guarantee for the values of a table: what stops a release can be seen."""
        table = "the file is a well-formed table"
        table += f" and no {judged} is invalid" if self.invalid == "stop" else ""
        visible = f"{table}, as everybody sees where a release stops"
        return replace(guarantee, assumptions=(*guarantee.assumptions, visible))

    @property
    def units(self) -> int:
        """The bound in units, a whole number."""
        return self.in_units(self.bound)

    def in_units(self, value: float) -> int:
        """Return a public number in units, rounded down, with a tolerance for rounding errors."""
        return math.floor(min(value / self.unit * (1 + 1e-12), float(_LARGEST)))

    @cached_property
    def grid(self) -> Fraction:
        """The unit as an exact fraction, equal to the decimal number as written."""
        return Fraction(repr(float(self.unit)))

    def nearest(self, value: Fraction) -> int:
        """Return an exact number from 0 on in whole units, rounded to nearest, ties to even.

        Examples
        --------
        >>> amounts = Amounts(bound=10.0, unit=0.01)
        >>> amounts.nearest(Fraction("1.015")), amounts.nearest(Fraction(10**30))
        (102, 1000)

        """
        return min(round(value / self.grid), self.units)

    def rounded(self, quotients: Floats, exactly: Callable[[Ints], Sequence[int]]) -> Ints:
        """Return numbers in whole units, given their floating-point quotients by the unit.

        The relative error of a quotient is below 2^-51, which only matters next to the middle
        between two units; for the indices of such quotients ``exactly`` returns the exact results.
        """
        cut = np.minimum(quotients, self.units + 1.0)
        units = np.minimum(np.rint(cut), self.units).astype(np.int64)
        doubtful = np.flatnonzero(np.abs(cut - np.floor(cut) - 0.5) <= cut * 2.0**-50)
        if doubtful.size:
            units[doubtful] = exactly(doubtful)
        return units

    def encode(self, values: Array, first: int = 0, missing: Bools | None = None) -> Ints:
        """Return numbers in whole units.

        Parameters
        ----------
        values
            Whole numbers or floats; whole numbers of any size are converted exactly.
        first
            The index of the first number, for error messages.
        missing
            A mask of missing values, whatever ``values`` has there.

        """
        if values.dtype.kind not in "iuf":
            raise InputError(f"values have type {values.dtype}; numbers are expected.")
        if values.dtype.kind == "f":
            values = values.astype(np.float64, copy=False)
        with np.errstate(invalid="ignore"):
            wrong = ~((values >= 0) & (values < math.inf))
        if missing is not None:
            wrong |= missing
        if wrong.any():
            values = self._judged(values, wrong, first, missing)
        if values.dtype.kind == "f":
            with np.errstate(over="ignore"):  # what becomes infinite is cut like any large value
                scaled = values if self.unit == 1 else values / self.unit
            return np.rint(np.minimum(scaled, self.units)).astype(np.int64)
        whole = values.astype(np.uint64)
        if self.unit == 1:
            return np.minimum(whole, np.uint64(min(self.units, _LARGEST))).astype(np.int64)
        return self.rounded(
            whole / self.unit,
            lambda indices: [self.nearest(Fraction(number)) for number in whole[indices].tolist()],
        )

    def refusal(self, index: int, shown: str) -> InputError:
        """Return the error for an invalid value, given its index from 0."""
        return InputError(
            f"value {index + 1} is {shown}; a number from 0 on is expected "
            "(with invalid clip or zero it would go on)."
        )

    def _judged(
        self,
        values: Array,
        wrong: Bools,
        first: int,
        missing: Bools | None,
    ) -> Array:
        if self.invalid == "stop":
            index = int(np.flatnonzero(wrong)[0])
            gone = missing is not None and missing[index]
            raise self.refusal(first + index, "missing" if gone else str(values[index]))
        right = values.copy()
        right[wrong] = 0
        if self.invalid == "clip" and values.dtype.kind == "f":
            infinite = values == math.inf
            right[infinite if missing is None else infinite & ~missing] = self.bound
        return right
