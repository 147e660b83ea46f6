"""Hashed buckets: their order, and the law of the one that is sent."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Bools, Ints
from sfumato.mechanisms.sparse.sparse_mechanism import EntryLaw

__all__ = ["BucketLaw", "Buckets", "in_order", "step_over"]

Buckets = NDArray[np.uint16]


@dataclass(frozen=True)
class BucketLaw(EntryLaw):
    """The law of the bucket sent, for one entry (numbers, or arrays for several hash ranges).

    Parameters
    ----------
    sparsity
        The number of non-zeros of the padded vector.
    p_true, p_opposite, p_false
        The probability that the bucket sent is that of the true sign of a non-zero entry, of its
        opposite sign, and of a given sign of a zero entry.
    contrast
        p_true - p_opposite, computed without cancellation.
    presence
        p_true + p_opposite - 2 p_false, computed without cancellation.
    meet_zero, meet_held
        The probability that the bucket sent is that of both signs, for a zero and a non-zero entry.

    """

    sparsity: int
    p_true: Any
    p_opposite: Any
    p_false: Any
    contrast: Any
    presence: Any
    meet_zero: Any
    meet_held: Any

    def value_variances(self) -> tuple[Any, Any]:
        """Return the variance of the value estimate at a zero and at a non-zero entry."""
        scale = self.contrast**2
        held = self.p_true + self.p_opposite - 2 * self.meet_held
        return 2 * (self.p_false - self.meet_zero) / scale, held / scale - 1

    def presence_variances(self) -> tuple[Any, Any]:
        """Return the variance of the presence estimate at a zero and at a non-zero entry."""
        if not np.all(self.presence > 0):
            return inf, inf
        scale, absent, present = self.presence**2, 2 * self.p_false, self.p_true + self.p_opposite
        return (
            (absent + 2 * self.meet_zero - absent**2) / scale,
            (present + 2 * self.meet_held - present**2) / scale,
        )


def in_order(numbers: Buckets) -> tuple[Buckets, Bools]:
    """Return the numbers of each column in rising order, and which ones repeat the one before."""
    ordered = np.array(numbers)
    # There are few rows, so neighbouring rows are compared and exchanged.
    for start in np.arange(len(ordered)) % 2:
        lower, upper = ordered[start:-1:2], ordered[start + 1 :: 2]
        smaller = np.minimum(lower, upper)
        np.maximum(lower, upper, out=upper)
        lower[:] = smaller
    repeated = np.zeros(ordered.shape, dtype=bool)
    np.equal(ordered[1:], ordered[:-1], out=repeated[1:])
    return ordered, repeated


def step_over(ranks: Ints, ordered: Buckets, repeated: Bools) -> Buckets:
    """Return the free number of each rank; numbers in the ordered rows are taken (some repeat)."""
    numbers = ranks.astype(np.uint16)
    for taken, again in zip(ordered, repeated, strict=True):
        numbers += (numbers >= taken) > again
    return numbers
