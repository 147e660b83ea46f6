"""Distributions to estimate: the share of people in each step of a grid on [0, 1]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.tally import Tally
from sfumato.datasets.densities import shares_of
from sfumato.mechanisms import SquareWave
from sfumato.mechanisms.density import Distribution
from sfumato.mechanisms.density.distribution import band
from sfumato.randomness import seeded

Floats = NDArray[np.float64]


SMOOTH = ("uniform", "beta", "bimodal")


def truth(mechanism: SquareWave, name: str) -> Distribution:
    """Return the distribution itself, as if it had been fitted."""
    nobody = Tally.zero(mechanism.size)
    shares = shares_of(name, mechanism.grid)
    return Distribution(mechanism, nobody, shares, True, mechanism.grid, 0.0, 0)  # noqa: FBT003


def tallies(mechanism: SquareWave, name: str, n: int, draws: int) -> list[Tally]:
    """Return tallies of collections from n people each, drawn from the exact law."""
    chances = band(mechanism).positions(shares_of(name, mechanism.grid))
    draw = seeded(n).simulator()
    sums = draw.multinomial(n, chances / chances.sum(), size=draws)
    return [Tally(n, row) for row in sums]
