"""Made-up streams of devices, the same for the same seed, in chunks of any fleet.

Three ways of living: *uniform* streams change at any time to any item; *moving* ones change in
waves, most devices together, so that curves rise and fall; *slow* ones change once or twice. No
stream has more changes than it is given, counted as a protocol counts them: from the empty state
on, entry by entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ConfigurationError
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values

__all__ = ["LIVES", "Life", "Synthetic"]

Life = Literal["uniform", "moving", "slow"]
LIVES: Final[tuple[Life, ...]] = get_args(Life)
CHUNK: Final = 1 << 15
"""Devices that are made together; a fleet's streams do not depend on how they are asked for."""

Times = NDArray[np.int64]


@dataclass(frozen=True)
class Synthetic:
    """A fleet of made-up devices.

    Parameters
    ----------
    values
        What a device observes.
    periods
        For how many periods.
    changes
        How many entries change over the horizon, at most, and in uniform and moving streams for
        most devices nearly as many.
    devices
        How many there are.
    life
        How values change: uniform, moving or slow.
    seed
        What everything is drawn from.

    Examples
    --------
    >>> fleet = Synthetic(Category(3), periods=8, changes=4, devices=5, seed=1)
    >>> [chunk.shape for chunk in fleet.chunks()]
    [(5, 8)]
    >>> same = Synthetic(Category(3), periods=8, changes=4, devices=5, seed=1)
    >>> bool((next(same.chunks()) == next(fleet.chunks())).all())
    True

    """

    values: Values
    periods: int
    changes: int
    devices: int
    life: Life = "moving"
    seed: int = 1

    def __post_init__(self) -> None:
        """Refuse lives nobody leads and fleets nobody is in."""
        if self.life not in LIVES:
            raise ConfigurationError(f"life is {self.life!r}; {', '.join(LIVES)} are there.")
        if self.devices < 1:
            raise ConfigurationError(f"devices is {self.devices}; at least 1 is expected.")

    def __len__(self) -> int:
        return self.devices

    def chunks(self) -> Iterator[NDArray[Any]]:
        """Yield the streams of all devices, some thousands at a time."""
        for place in range(self.chunk_count):
            yield self.chunk(place)

    @property
    def chunk_count(self) -> int:
        """How many chunks there are."""
        return -(-self.devices // CHUNK)

    def chunk(self, place: int) -> NDArray[Any]:
        """Return one chunk, in the form that the values encode."""
        n = min(CHUNK, self.devices - place * CHUNK)
        rng = np.random.default_rng([self.seed, place])
        if isinstance(self.values, Binary):
            # The first value is one change if it is on.
            return self._counted(rng, n, self.changes) % 2
        if isinstance(self.values, Category):
            return self._category(rng, n, self.values.width, self.changes)
        if isinstance(self.values, Items):
            return self._set(rng, n, self.values)
        if isinstance(self.values, Attributes):
            each = self.changes // len(self.values.categories)
            parts = [
                self._category(rng, n, items.width, each) for _, items in self.values.categories
            ]
            return np.stack(parts, axis=2)
        raise ConfigurationError(f"values are {self.values.kind}; no streams of these are made up.")

    def all(self) -> NDArray[Any]:
        """Return the streams of the whole fleet at once."""
        return np.concatenate(list(self.chunks()))

    # ---- times -----------------------------------------------------------------------------

    def _times(self, rng: np.random.Generator, n: int, most: int) -> Times:
        """Return when each of n devices changes (from 0 on; the number of periods is never)."""
        if most <= 0:
            return np.full((n, 0), self.periods, dtype=np.int64)
        used = rng.integers(0, min(most, 2), (n, 1), endpoint=True)
        if self.life != "slow":
            used = np.maximum(rng.binomial(most, 0.85, (n, 1)), used)
        if self.life == "moving":
            waves = (np.arange(most) + 0.5) / most
            at = waves + rng.normal(0, 0.15 / most, (n, most))
        else:
            at = rng.random((n, most))
        at = np.sort(np.clip(at, 0.0, 1 - 1e-9), axis=1)
        times = (at * self.periods).astype(np.int64)
        return np.where(np.arange(most) < used, times, self.periods)

    def _counted(self, rng: np.random.Generator, n: int, most: int) -> NDArray[np.int16]:
        """Return how many of its changes each device has made by each period."""
        times = self._times(rng, n, most)
        made = np.zeros((n, self.periods + 1), dtype=np.int16)
        rows = np.arange(n)
        for column in times.T:  # a device may change twice in a period
            made[rows, column] += 1
        return np.cumsum(made[:, :-1], axis=1, dtype=np.int16)

    # ---- values ----------------------------------------------------------------------------

    def _category(
        self, rng: np.random.Generator, n: int, items: int, changes: int
    ) -> NDArray[np.int16]:
        """Return items: the first appears (one change), each later one replaces another (two)."""
        moves = max((changes - 1) // 2, 0)
        made = self._counted(rng, n, moves)
        weights = 1 / np.arange(1, items + 1)
        first = rng.choice(items, (n, 1), p=weights / weights.sum())
        if self.life == "moving":
            steps = np.ones((n, moves), dtype=np.int64)
        else:
            steps = rng.integers(1, max(items, 2), (n, moves))
        held = np.cumsum(np.concatenate([first, steps], axis=1), axis=1) % items
        return np.take_along_axis(held.astype(np.int16), made.astype(np.intp), axis=1)

    def _set(self, rng: np.random.Generator, n: int, values: Items) -> NDArray[np.int8]:
        """Return sets of which one item after the other comes or goes."""
        times = self._times(rng, n, self.changes)
        weights = 1 / np.arange(1, values.width + 1)
        which = rng.choice(values.width, times.shape, p=weights / weights.sum())
        turned = np.zeros((n, self.periods + 1, values.width), dtype=np.int8)
        rows = np.arange(n)
        for column, item in zip(times.T, which.T, strict=True):
            turned[rows, column, item] ^= 1
        return np.bitwise_xor.accumulate(turned[:, :-1], axis=1)
