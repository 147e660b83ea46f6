"""Densities on [0, 1] whose quantiles are known: smooth ones, peaks, and a few numbers only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from scipy import stats

from sfumato.arrays import Floats

__all__ = ["CDFS", "shares_of"]


def _two_peaks(width: float) -> Callable[[Floats], Floats]:
    return lambda x: np.asarray((stats.norm(0.3, width).cdf(x) + stats.norm(0.7, width).cdf(x)) / 2)


CDFS: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    "uniform": lambda x: x,
    "beta": stats.beta(2, 5).cdf,
    "bimodal": lambda x: (stats.beta(20, 60).cdf(x) + stats.beta(30, 12).cdf(x)) / 2,
    "exponential": lambda x: 1 - np.exp(-8 * x),
    "narrow": _two_peaks(0.02),
    "ten numbers": lambda x: stats.binom(9, 0.4).cdf(np.floor(10 * x - 0.55)),
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
