"""What simulated devices hold over time, the same for the same seed.

Populations are made up by device or by period, or they are recorded. Streams that are made up by
device live in one of three ways: *uniform* ones change at any time to any item; *moving* ones
change in waves, most devices together, so that curves rise and fall; *slow* ones change once or
twice. No stream has more changes than it is given, counted as a task counts them: from the empty
state on, entry by entry.

Of populations that are made up by period nothing is held but one period at a time: any number of
periods fits in the same memory.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, Final, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Domain, Label
from sfumato.core.fleet import Population
from sfumato.errors import ConfigurationError, InputError
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values

__all__ = [
    "DRIFT",
    "LIVES",
    "TIDE",
    "ByDevice",
    "ByPeriod",
    "Drifting",
    "DriftingLevels",
    "Life",
    "Moving",
    "Recorded",
    "Synthetic",
]

Life = Literal["uniform", "moving", "slow"]
LIVES: Final[tuple[Life, ...]] = get_args(Life)
CHUNK: Final = 1 << 15
"""Devices that are made together; their streams do not depend on how they are asked for."""
DRIFT: Final = 0.03
"""The usual deviation of a step of a share's logarithm."""
TIDE: Final = 0.01
"""The usual deviation of a step of a level's tide."""
SPREAD: Final = 0.15
"""How far made-up numbers lie about their level, as a share of the interval."""

Floats = NDArray[np.float64]
Times = NDArray[np.int64]


class Saying(Protocol):
    """A kind of values that knows how a device is told one."""

    def said(self, cell: Any) -> Any:
        """Return what a device holds, as an app says it to a device."""


# ---- by device -------------------------------------------------------------------------------


class ByDevice(Population):
    """Devices whose streams are made some thousands at a time.

    Parameters
    ----------
    kind
        How a device is told a value; None if no device will be told.
    devices, periods
        How many devices there are, and for how many periods they live.

    """

    def __init__(self, kind: Saying | None, devices: int, periods: int) -> None:
        super().__init__(devices, periods)
        self.kind = kind
        self.parts = -(-devices // CHUNK)
        self._streams: NDArray[Any] | None = None

    @abstractmethod
    def rows(self, place: int) -> NDArray[Any]:
        """Return the streams of one part."""

    def part(self, place: int) -> Population:
        """Return the devices of one part."""
        return Recorded(self.rows(place), kind=self.kind)

    def streams(self) -> NDArray[Any]:
        """Return the streams of all devices at once."""
        if self._streams is None:
            self._streams = np.concatenate([self.rows(place) for place in range(self.parts)])
        return self._streams

    def said(self, cell: Any) -> Any:
        """Return what a device holds, as an app says it to a device."""
        return cell if self.kind is None else self.kind.said(cell)

    def _size(self, place: int) -> int:
        return min(CHUNK, self.devices - place * CHUNK)


class Recorded(ByDevice):
    """Recorded streams: each once, or as many as are wanted, drawn with replacement.

    Parameters
    ----------
    recorded
        What each recorded device (rows) holds in each period (columns).
    devices
        How many to draw; each is taken once, if left out.
    seed
        What the draw follows from.
    kind
        How a device is told a value.

    Examples
    --------
    >>> population = Recorded(np.array([[0, 1], [1, 1]]), devices=5)
    >>> population.devices, population.streams().shape
    (5, (5, 2))

    """

    def __init__(
        self,
        recorded: NDArray[Any],
        devices: int | None = None,
        seed: int = 1,
        kind: Saying | None = None,
    ) -> None:
        if not len(recorded):
            raise ConfigurationError("there are no recorded streams; at least one is expected.")
        many = len(recorded) if devices is None else devices
        super().__init__(kind, many, recorded.shape[1])
        self._recorded = recorded
        self._seed = None if devices is None else seed

    def rows(self, place: int) -> NDArray[Any]:
        """Return the streams of one part."""
        return np.asarray(self._recorded[self._drawn(place)])

    def _drawn(self, place: int) -> Any:
        if self._seed is None:
            return slice(place * CHUNK, (place + 1) * CHUNK)
        rng = np.random.default_rng([self._seed, place])
        return rng.integers(len(self._recorded), size=self._size(place))

    @cached_property
    def _everybody(self) -> Any:
        if self._seed is None:
            return slice(None)
        return np.concatenate([self._drawn(place) for place in range(self.parts)])

    def values(self, period: int) -> NDArray[Any]:
        """Return what each device holds in a period."""
        return np.asarray(self._recorded[:, period - 1][self._everybody])


class Synthetic(ByDevice):
    """Made-up devices whose values stay until the next one.

    Parameters
    ----------
    kind
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
        if life not in LIVES:
            raise ConfigurationError(f"life is {life!r}; {', '.join(LIVES)} are there.")
        super().__init__(kind, devices, periods)
        self.changes = changes
        self.life = life
        self.seed = seed

    def rows(self, place: int) -> NDArray[Any]:
        """Return the streams of one part."""
        n = self._size(place)
        rng = np.random.default_rng([self.seed, place])
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


class Moving(ByDevice):
    """Made-up rises and falls: most devices see the same item rise or fall at about one time.

    Parameters
    ----------
    items
        How many items there are.
    periods, changes, devices, seed
        The same as in :class:`Synthetic`; ``changes`` are the moves that a device sees, at most.
    kind
        How a device is told its moves.

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

    def rows(self, place: int) -> NDArray[np.int8]:
        """Return the moves of one part."""
        devices = self._size(place)
        entries = self.periods * self.items
        phase = np.random.default_rng(self.seed).random()
        trend = np.sin(2 * np.pi * (np.arange(entries) / entries + phase))
        rng = np.random.default_rng([self.seed, place])
        # The entries with the smallest exponential times are drawn without replacement, by weight.
        times = rng.exponential(1.0, (devices, entries)) / (0.2 + np.abs(trend))
        count = min(self.changes, entries)
        used = rng.binomial(count, 0.85, (devices, 1))
        drawn = np.argsort(times, axis=1)[:, :count]
        moves = np.where((rng.random((devices, count)) < 0.85) == (trend[drawn] > 0), 1, -1)
        streams = np.zeros((devices, entries), dtype=np.int8)
        np.put_along_axis(streams, drawn, np.where(np.arange(count) < used, moves, 0), axis=1)
        return streams.reshape(devices, self.periods, self.items)


# ---- by period -------------------------------------------------------------------------------


class ByPeriod(Population):
    """Devices whose values are made one period at a time.

    Parameters
    ----------
    devices, periods
        How many devices there are, and for how many periods they live.
    seed
        What everything is drawn from.

    """

    labels: tuple[Label, ...] = ()
    """The items; none if devices hold numbers."""
    interval: tuple[float, float] | None = None
    """Where the numbers lie, if they are numbers."""

    def __init__(self, devices: int, periods: int, seed: int) -> None:
        super().__init__(devices, periods)
        self.seed = seed
        self._last: tuple[int, NDArray[Any]] = (0, np.zeros(0))

    @cached_property
    def _places(self) -> NDArray[np.int32]:
        """Where each device stands in a ring, in a random order."""
        rng = np.random.default_rng([self.seed, 0, 1])
        return rng.permutation(self.devices).astype(np.int32)

    def _around(self, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int16]:
        """Lay so many of each item around the ring, turned at random."""
        held = np.repeat(np.arange(counts.size, dtype=np.int16), counts)
        return np.roll(held, int(rng.integers(self.devices)))[self._places]

    @abstractmethod
    def _values(self, period: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return what each device holds."""

    def values(self, period: int) -> NDArray[Any]:
        """Return the item of each device as a code, or its number."""
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
    """Many items whose shares drift: their logarithms are random walks from Zipf's law on.

    Parameters
    ----------
    domain
        How many items there are, or what they are called.
    devices, periods, seed
        How many devices there are, for how many periods, and what all draws follow from.
    pace
        The deviation of a step of a share's logarithm.

    """

    def __init__(
        self,
        domain: int | tuple[Label, ...],
        devices: int,
        periods: int,
        seed: int = 1,
        pace: float = DRIFT,
    ) -> None:
        super().__init__(devices, periods, seed)
        self.labels = tuple(Domain.of(domain).labels)
        size = len(self.labels)
        steps = np.random.default_rng([seed, 0]).normal(0, pace, (periods, size))
        raised = np.exp(np.cumsum(steps, axis=0)) / np.arange(1, size + 1)
        self.curve = raised / raised.sum(axis=1, keepdims=True)

    def _counts(self, period: int) -> NDArray[np.int64]:
        ends = np.round(np.cumsum(self.curve[period - 1]) * self.devices).astype(np.int64)
        return np.diff(ends, prepend=np.int64(0))

    def _values(self, period: int, rng: np.random.Generator) -> NDArray[Any]:
        return self._around(self._counts(period), rng)


class DriftingLevels(ByPeriod):
    """Numbers of an interval about a level that drifts like a tide, each device with a bias.

    Parameters
    ----------
    interval
        Where the numbers lie.
    devices, periods, seed
        How many devices there are, for how many periods, and what all draws follow from.
    pace
        The deviation of a step of the tide.

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

    def _values(self, period: int, rng: np.random.Generator) -> NDArray[Any]:
        low, high = self.interval or (0.0, 1.0)
        around = self.level[period - 1] + self._bias + rng.normal(0, SPREAD / 3, self.devices)
        return np.asarray(low + (high - low) * np.clip(around, 0.0, 1.0))
