"""Made-up devices whose values are made one period at a time.

Only one period is held at a time, so any number of periods fits in the same memory.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Ints
from sfumato.core.domain import Domain, Label
from sfumato.core.fleet import Population
from sfumato.errors import InputError

__all__ = ["DRIFT", "TIDE", "ByPeriod", "Drifting", "DriftingLevels"]


DRIFT: Final = 0.03
"""The usual standard deviation of a step of a share's logarithm."""
TIDE: Final = 0.01
"""The usual standard deviation of a step of a level's tide."""
SPREAD: Final = 0.15
"""The standard deviation of made-up numbers around their level, as a part of the interval."""


class ByPeriod(Population):
    """Devices whose values are made one period at a time.

    Parameters
    ----------
    devices, periods
        The numbers of devices and of periods.
    seed
        The seed of all draws.

    """

    labels: tuple[Label, ...] = ()
    """The items; empty if devices hold numbers."""
    interval: tuple[float, float] | None = None
    """The interval of the numbers; None if devices hold items."""

    def __init__(self, devices: int, periods: int, seed: int) -> None:
        super().__init__(devices, periods)
        self.seed = seed
        self._last: tuple[int, Array] = (0, np.zeros(0))

    @cached_property
    def _places(self) -> NDArray[np.int32]:
        """The position of each device in a ring, in a random order."""
        rng = np.random.default_rng([self.seed, 0, 1])
        return rng.permutation(self.devices).astype(np.int32)

    def _around(self, counts: Ints, rng: np.random.Generator) -> NDArray[np.int16]:
        """Return the item of each device: counts[i] of item i around the ring, randomly rotated."""
        held = np.repeat(np.arange(counts.size, dtype=np.int16), counts)
        return np.roll(held, int(rng.integers(self.devices)))[self._places]

    @abstractmethod
    def _values(self, period: int, rng: np.random.Generator) -> Array:
        """Return the value of each device in a period."""

    def values(self, period: int) -> Array:
        """Return the item of each device as a code, or its number, in a period."""
        if not 1 <= period <= self.periods:
            raise InputError(f"period is {period}; a period in 1..{self.periods} is expected.")
        if self._last[0] != period:
            rng = np.random.default_rng([self.seed, period])
            self._last = (period, self._values(period, rng))
        return self._last[1]

    def said(self, cell: Any) -> Label | float:
        """Return the item, or the number."""
        return self.labels[int(cell)] if self.labels else float(cell)


class Drifting(ByPeriod):
    """Items whose shares drift: their logarithms are random walks that start at a power law.

    Parameters
    ----------
    domain
        The number of items, or their labels.
    devices, periods, seed
        The numbers of devices and of periods, and the seed of all draws.
    pace
        The standard deviation of a step of a share's logarithm.
    power
        The power of an item's rank by which its first share falls; 1 is Zipf's law.

    """

    def __init__(
        self,
        domain: int | tuple[Label, ...],
        devices: int,
        periods: int,
        seed: int = 1,
        pace: float = DRIFT,
        power: float = 1.0,
    ) -> None:
        super().__init__(devices, periods, seed)
        self.labels = tuple(Domain.of(domain).labels)
        size = len(self.labels)
        steps = np.random.default_rng([seed, 0]).normal(0, pace, (periods, size))
        raised = np.exp(np.cumsum(steps, axis=0)) / np.arange(1, size + 1) ** power
        self.curve = raised / raised.sum(axis=1, keepdims=True)

    def _counts(self, period: int) -> Ints:
        ends = np.round(np.cumsum(self.curve[period - 1]) * self.devices).astype(np.int64)
        return np.diff(ends, prepend=np.int64(0))

    def _values(self, period: int, rng: np.random.Generator) -> Array:
        return self._around(self._counts(period), rng)


class DriftingLevels(ByPeriod):
    """Numbers in an interval around a level that drifts like a tide, with a bias for each device.

    Parameters
    ----------
    interval
        The ends of the interval.
    devices, periods, seed
        The numbers of devices and of periods, and the seed of all draws.
    pace
        The standard deviation of a step of the tide.

    Examples
    --------
    >>> DriftingLevels((0.0, 10.0), devices=1000, periods=5).values(1).mean().round()
    np.float64(5.0)

    """

    def __init__(
        self,
        interval: tuple[float, float],
        devices: int,
        periods: int,
        seed: int = 1,
        pace: float = TIDE,
    ) -> None:
        super().__init__(devices, periods, seed)
        self.interval = interval
        rng = np.random.default_rng([seed, 0])
        drift = np.cumsum(rng.normal(0, pace, periods))
        self.level = 0.5 + 0.25 * np.sin(2 * np.pi * drift)
        self._bias = rng.normal(0, SPREAD, devices)

    def _values(self, period: int, rng: np.random.Generator) -> Array:
        low, high = self.interval or (0.0, 1.0)
        around = self.level[period - 1] + self._bias + rng.normal(0, SPREAD / 3, self.devices)
        return np.asarray(low + (high - low) * np.clip(around, 0.0, 1.0))
