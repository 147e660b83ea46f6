"""Distributions to estimate: the share of people in each step of a grid on [0, 1]."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sfumato.core.tally import Tally
from sfumato.mechanisms import SquareWave
from sfumato.mechanisms.density import Distribution
from sfumato.mechanisms.density.distribution import band
from sfumato.randomness import seeded

Floats = NDArray[np.float64]


def _two_peaks(width: float) -> Callable[[Floats], Floats]:
    return lambda x: (stats.norm(0.3, width).cdf(x) + stats.norm(0.7, width).cdf(x)) / 2


CDFS: Mapping[str, Callable[[Floats], Floats]] = {
    "uniform": lambda x: x,
    "beta": stats.beta(2, 5).cdf,
    "bimodal": lambda x: (stats.beta(20, 60).cdf(x) + stats.beta(30, 12).cdf(x)) / 2,
    "exponential": lambda x: 1 - np.exp(-8 * x),
    "narrow": _two_peaks(0.02),
    "ten numbers": lambda x: stats.binom(9, 0.4).cdf(np.floor(10 * x - 0.55)),
}
SMOOTH = ("uniform", "beta", "bimodal")


def shape(name: str, grid: int) -> Floats:
    """Return the shares of a named distribution."""
    steps = np.diff(CDFS[name](np.linspace(0, 1, grid + 1)))
    return np.asarray(steps / steps.sum())


def truth(mechanism: SquareWave, name: str) -> Distribution:
    """Return the distribution itself, as if it had been fitted."""
    nobody = Tally.zero(mechanism.size)
    shares = shape(name, mechanism.grid)
    return Distribution(mechanism, nobody, shares, True, mechanism.grid, 0.0, 0)  # noqa: FBT003


def tallies(mechanism: SquareWave, name: str, n: int, draws: int) -> list[Tally]:
    """Return tallies of collections from n people each, drawn from the exact law."""
    chances = band(mechanism).positions(shape(name, mechanism.grid))
    draw = seeded(n).simulator()
    sums = draw.multinomial(n, chances / chances.sum(), size=draws)
    return [Tally(n, row) for row in sums]
