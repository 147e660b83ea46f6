"""Discrete Laplace noise: the Laplace mechanism for integers, without a floating-point number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sfumato.arrays import Ints
from sfumato.core.noise import Noise, NoiseLaw, exact_epsilon, short_rate
from sfumato.errors import InputError
from sfumato.randomness import Source

__all__ = ["DiscreteLaplace"]


@dataclass(frozen=True)
class DiscreteLaplace(Noise):
    """Two-sided geometric noise of scale sensitivity / epsilon.

    P[z] is proportional to e^(-|z| epsilon / sensitivity), drawn exactly.

    Guarantee
    ---------
    epsilon-DP, exactly; the scale is rounded up where 64-bit arithmetic needs it.

    Error
    -----
    Variance 1 / (2 sinh(epsilon / (2 sensitivity))^2), just below 2 (sensitivity / epsilon)^2.

    Cost
    ----
    About 20 ns for each integer.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> noise = DiscreteLaplace(epsilon=0.5, sensitivity=10)
    >>> noise.law().rate
    Fraction(1, 20)
    >>> noise.add(np.array([1000, 2000]), seeded(1)).tolist()
    [1015, 2047]

    References
    ----------
    Ghosh, Roughgarden, Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms" (2009).

    """

    name: ClassVar[str] = "discrete_laplace"
    summary: ClassVar[str] = "the Laplace mechanism for integers"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 1)
        yield cls(0.3, 2)
        yield cls(2.5, 7)

    def law(self) -> NoiseLaw:
        """Return the law; its rate is epsilon / sensitivity, rounded down to a short fraction."""
        return NoiseLaw(short_rate(exact_epsilon(self.epsilon) / self.sensitivity))

    def add(self, integers: Ints, rng: Source) -> Ints:
        """Return the integers with independent noise added to each."""
        if integers.dtype.kind not in "iu":
            raise InputError(
                f"integers have dtype {integers.dtype}; noise is added to whole numbers only."
            )
        drawn = rng.discrete_laplace(self.law().rate, integers.size)
        return integers.astype(np.int64) + drawn.reshape(integers.shape)
