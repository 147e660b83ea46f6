"""Densities on [0, 1] whose quantiles are known: smooth ones, peaks, and a few numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from sfumato.arrays import Floats

__all__ = ["CDFS", "shares_of"]


_ERF: Final = np.frompyfunc(math.erf, 1, 1)


def _normal(middle: float, width: float, x: Floats) -> Floats:
    from_middle = (np.asarray(x) - middle) / (width * math.sqrt(2))
    return 0.5 + 0.5 * np.asarray(_ERF(from_middle), dtype=np.float64)


def _binomial(count: int, chance: Floats | float, most: Floats | int) -> Floats:
    """Return the probability that at most so many of independent events happen."""
    below = np.zeros(np.broadcast(chance, most).shape)
    for k in range(count + 1):
        below += (k <= np.asarray(most)) * (
            math.comb(count, k) * np.power(chance, k) * np.power(1 - chance, count - k)
        )
    return below


def _beta(a: int, b: int, x: Floats) -> Floats:
    """Return the share of a beta density that is at most x: of a + b - 1 events a happen."""
    return _binomial(a + b - 1, 1 - x, b - 1)


def _two_peaks(width: float) -> Callable[[Floats], Floats]:
    return lambda x: (_normal(0.3, width, x) + _normal(0.7, width, x)) / 2


CDFS: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    "uniform": lambda x: x,
    "beta": lambda x: _beta(2, 5, x),
    "bimodal": lambda x: (_beta(20, 60, x) + _beta(30, 12, x)) / 2,
    "exponential": lambda x: 1 - np.exp(-8 * x),
    "narrow": _two_peaks(0.02),
    "ten numbers": lambda x: _binomial(9, 0.4, np.floor(10 * x - 0.55)),
}
"""The share of people at or below a number, by the name of the density."""


def shares_of(name: str, grid: int) -> Floats:
    """Return the shares of a density in equal steps of [0, 1].

    Examples
    --------
    >>> shares_of("uniform", 4)
    array([0.25, 0.25, 0.25, 0.25])

    """
    steps = np.diff(CDFS[name](np.linspace(0, 1, grid + 1)))
    return np.asarray(steps / steps.sum())
