"""Small populations for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.fleet import Population


class Steady(Population):
    """Everybody draws an item anew in each period, with shares that move as a list says."""

    def __init__(self, shares: NDArray[np.float64], devices: int, seed: int = 0) -> None:
        super().__init__(devices, len(shares))
        self.shares = shares
        self.seed = seed

    def values(self, period: int) -> NDArray[Any]:
        draw = np.random.default_rng((self.seed, period))
        edges = np.cumsum(self.shares[period - 1])[:-1]
        return np.searchsorted(edges, draw.random(self.devices))

    def said(self, cell: Any) -> int:
        return int(cell)


def steady(periods: int, shares: tuple[float, ...], devices: int, seed: int = 0) -> Steady:
    return Steady(np.tile(np.array(shares), (periods, 1)), devices, seed)
