"""Small populations for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Steady:
    """Everybody draws an item anew in each period, with shares that move as a list says."""

    shares: NDArray[np.float64]
    devices: int
    seed: int = 0

    @property
    def periods(self) -> int:
        return len(self.shares)

    def values(self, period: int) -> NDArray[Any]:
        draw = np.random.default_rng((self.seed, period))
        edges = np.cumsum(self.shares[period - 1])[:-1]
        return np.searchsorted(edges, draw.random(self.devices))

    def truth(self, period: int) -> NDArray[np.float64]:
        width = self.shares.shape[1]
        return np.bincount(self.values(period), minlength=width) / self.devices


def steady(periods: int, shares: tuple[float, ...], devices: int, seed: int = 0) -> Steady:
    return Steady(np.tile(np.array(shares), (periods, 1)), devices, seed)
