"""The output law of a mechanism as implemented: integers over one common denominator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from sfumato.arrays import Array, Floats

__all__ = ["Law", "worst_ratio"]


@dataclass(frozen=True, eq=False)
class Law:
    """The probability of each report, for one input.

    Parameters
    ----------
    outputs
        Every possible report (given the public part, if there is one), in the same order for all
        inputs.
    numerators
        The numerator of each output's probability, as Python integers.
    denominator
        What the numerators sum to.

    """

    outputs: Array
    numerators: tuple[int, ...]
    denominator: int

    @property
    def probabilities(self) -> Floats:
        """The law in floating point, for plots and statistics; privacy never reads it."""
        return np.array([numerator / self.denominator for numerator in self.numerators])


def worst_ratio(laws: Sequence[Law]) -> Fraction | None:
    """Return the largest ratio of two inputs' probabilities of one output; None if infinite."""
    worst = Fraction(1)
    whole = lcm(*(law.denominator for law in laws))
    scaled = [[whole // law.denominator * n for n in law.numerators] for law in laws]
    for column in zip(*scaled, strict=True):
        low, high = min(column), max(column)
        if high and not low:
            return None
        if high:
            worst = max(worst, Fraction(high, low))
    return worst
