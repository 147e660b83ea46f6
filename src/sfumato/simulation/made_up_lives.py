"""Made-up devices, which are the same for the same seed.

Streams have one of three lives: *uniform* ones change at any time to any item; *moving* ones
change in waves, most devices together, so that curves rise and fall; *slow* ones change once or
twice. No stream has more changes than allowed, counted as a task counts them: by entry, starting
from the empty state.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Ints
from sfumato.core.field_checks import check_one_of
from sfumato.errors import ConfigurationError
from sfumato.simulation.populations import ByDevice, Saying
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values

__all__ = ["LIVES", "Life", "Moving", "Synthetic"]


Life = Literal["uniform", "moving", "slow"]
LIVES: Final[tuple[Life, ...]] = get_args(Life)

Times = Ints


class Synthetic(ByDevice):
    """Made-up devices whose values stay until the next one.

    Parameters
    ----------
    kind
        The kind of values.
    periods
        The number of periods.
    changes
        The largest number of changed entries over the horizon; in uniform and moving streams most
        devices have nearly as many.
    devices
        The number of devices.
    life
        The way in which values change: uniform, moving or slow.
    seed
        The seed of all draws.

    Examples
    --------
    >>> population = Synthetic(Category(3), periods=8, changes=4, devices=5, seed=1)
    >>> population.streams().shape
    (5, 8)
    >>> same = Synthetic(Category(3), periods=8, changes=4, devices=5, seed=1)
    >>> bool((same.streams() == population.streams()).all())
    True

    """

    kind: Values

    def __init__(
        self,
        kind: Values,
        periods: int,
        changes: int,
        devices: int,
        life: Life = "moving",
        seed: int = 1,
    ) -> None:
        check_one_of("life", life, LIVES)
        super().__init__(kind, devices, periods)
        self.changes = changes
        self.life = life
        self.seed = seed

    def rows(self, index: int) -> Array:
        """Return the streams of one part."""
        n = self._size(index)
        rng = np.random.default_rng([self.seed, index])
        if isinstance(self.kind, Binary):
            # The first value is one change if it is on.
            return self._counted(rng, n, self.changes) % 2
        if isinstance(self.kind, Category):
            return self._category(rng, n, self.kind.width, self.changes)
        if isinstance(self.kind, Items):
            return self._set(rng, n, self.kind)
        if isinstance(self.kind, Attributes):
            each = self.changes // len(self.kind.categories)
            parts = [self._category(rng, n, items.width, each) for _, items in self.kind.categories]
            return np.stack(parts, axis=2)
        raise ConfigurationError(f"values are {self.kind.kind}; no streams of these are made up.")

    # ---- times -----------------------------------------------------------------------------

    def _times(self, rng: np.random.Generator, n: int, most: int) -> Times:
        """Return the times of each device's changes, from 0; the number of periods means never."""
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
        """Return how many changes each device has made by each period."""
        times = self._times(rng, n, most)
        steps = np.zeros((n, self.periods + 1), dtype=np.int16)
        rows = np.arange(n)
        for column in times.T:  # a device may change twice in a period
            steps[rows, column] += 1
        return np.cumsum(steps[:, :-1], axis=1, dtype=np.int16)

    # ---- values ----------------------------------------------------------------------------

    def _category(
        self, rng: np.random.Generator, n: int, items: int, changes: int
    ) -> NDArray[np.int16]:
        """Return items: the first one is one change, each replacement is two."""
        moves = max((changes - 1) // 2, 0)
        moved = self._counted(rng, n, moves)
        weights = 1 / np.arange(1, items + 1)
        first = rng.choice(items, (n, 1), p=weights / weights.sum())
        if self.life == "moving":
            steps = np.ones((n, moves), dtype=np.int64)
        else:
            steps = rng.integers(1, max(items, 2), (n, moves))
        held = np.cumsum(np.concatenate([first, steps], axis=1), axis=1) % items
        return np.take_along_axis(held.astype(np.int16), moved.astype(np.intp), axis=1)

    def _set(self, rng: np.random.Generator, n: int, values: Items) -> NDArray[np.int8]:
        """Return sets in which one item after the other is added or removed."""
        times = self._times(rng, n, self.changes)
        weights = 1 / np.arange(1, values.width + 1)
        which = rng.choice(values.width, times.shape, p=weights / weights.sum())
        turned = np.zeros((n, self.periods + 1, values.width), dtype=np.int8)
        rows = np.arange(n)
        for column, item in zip(times.T, which.T, strict=True):
            turned[rows, column, item] ^= 1
        return np.bitwise_xor.accumulate(turned[:, :-1], axis=1)


class Moving(ByDevice):
    """Made-up rises and falls, which are similar for most devices.

    Parameters
    ----------
    items
        The number of items.
    periods, changes, devices, seed
        The same as in :class:`Synthetic`; ``changes`` is the largest number of moves of a device.
    kind
        The kind of values, which converts codes.

    Examples
    --------
    >>> seen = Moving(2, periods=5, changes=3, devices=100).streams()
    >>> seen.shape, int(abs(seen).sum(axis=(1, 2)).max())
    ((100, 5, 2), 3)

    """

    def __init__(
        self,
        items: int,
        periods: int,
        changes: int,
        devices: int,
        seed: int = 1,
        kind: Saying | None = None,
    ) -> None:
        super().__init__(kind, devices, periods)
        self.items = items
        self.changes = changes
        self.seed = seed

    def rows(self, index: int) -> NDArray[np.int8]:
        """Return the moves of one part."""
        devices = self._size(index)
        entries = self.periods * self.items
        phase = np.random.default_rng(self.seed).random()
        trend = np.sin(2 * np.pi * (np.arange(entries) / entries + phase))
        rng = np.random.default_rng([self.seed, index])
        # Taking the entries with the smallest exponential times draws by weight without
        # replacement.
        times = rng.exponential(1.0, (devices, entries)) / (0.2 + np.abs(trend))
        count = min(self.changes, entries)
        used = rng.binomial(count, 0.85, (devices, 1))
        drawn = np.argsort(times, axis=1)[:, :count]
        moves = np.where((rng.random((devices, count)) < 0.85) == (trend[drawn] > 0), 1, -1)
        streams = np.zeros((devices, entries), dtype=np.int8)
        np.put_along_axis(streams, drawn, np.where(np.arange(count) < used, moves, 0), axis=1)
        return streams.reshape(devices, self.periods, self.items)
