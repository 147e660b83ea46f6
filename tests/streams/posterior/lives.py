"""Made-up streams of devices, each like a kind of curve that is met in practice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.datasets.flights import PLACES, read_favourites
from sfumato.streams.kinds import Binary, Category, Items, Values
from sfumato.streams.weave import Weave

Draw = np.random.Generator
Streams = NDArray[Any]


class Life(NamedTuple):
    """What devices hold, how often it changes at most, and how it is asked for."""

    values: Values
    epsilon: float
    devices: int
    made: Callable[[Draw, int], Streams]
    changes: int | None = None
    """None: snapshots alone."""

    def design(self, periods: int) -> Weave:
        """Return the design that is best for the released periods."""
        if self.changes is None:
            return Weave(self.values, periods, periods, self.epsilon, (0,), (1.0,))
        return Weave.best(self.values, periods, self.changes, self.epsilon)


def planes(draw: Draw, devices: int) -> Streams:
    """Favourite cities of New York's planes, from none seen yet on."""
    recorded = read_favourites(26)
    return recorded[draw.integers(len(recorded), size=devices)]


def air(periods: int) -> Callable[[Draw, int], Streams]:
    """Six classes of the air that all stations breathe: days, weather, and each one's own level."""

    def made(draw: Draw, devices: int) -> Streams:
        weather = np.cumsum(draw.normal(0, 0.12, periods))
        level = weather + 0.4 * np.sin(2 * np.pi * np.arange(periods) / 24)
        own = draw.normal(0, 1.0, (devices, 1))
        return np.digitize(level + own, [-1.2, -0.5, 0.0, 0.5, 1.2])

    return made


def wind(draw: Draw, devices: int) -> Streams:
    """Sixteen directions that turn with the weather, each station about its own."""
    turned = np.cumsum(draw.normal(0, 0.25, 48)) + 0.1 * np.arange(48)
    own = draw.normal(0, 2.5, (devices, 1)) + np.where(draw.random((devices, 1)) < 0.3, 8, 0)
    return np.floor(turned + own).astype(int) % 16


def shop(draw: Draw, devices: int) -> Streams:
    """Sets of departments bought from so far: more from week to week, some of them in a wave."""
    middle, width = np.linspace(5, 45, 6), np.array([3, 12, 4, 20, 2, 8])
    ever = draw.random((devices, 6)) < np.array([0.5, 0.4, 0.3, 0.2, 0.2, 0.1])
    first = draw.normal(middle, width, (devices, 6))
    return (ever[:, None] & (np.arange(48)[:, None] >= first[:, None])).astype(np.int8)


def recent(draw: Draw, devices: int) -> Streams:
    """Bought within 28 days: none at first, a steep start, then hardly any change."""
    bought = draw.random((devices, 100)) < 1 / 70
    total = np.cumsum(bought, axis=1)
    before = np.concatenate([np.zeros((devices, 28), dtype=int), total[:, :-28]], axis=1)
    return (total > before).astype(int)


def zones(draw: Draw, devices: int) -> Streams:
    """Eight zones of a city with the hours of the day, drawn anew for each ride."""
    hours = np.arange(96)[:, None]
    phase = np.arange(8)
    rates = 1.0 + 0.4 * np.sin(2 * np.pi * hours / 24 + phase) + draw.normal(0, 0.08, (96, 8))
    shares = rates.clip(0.02) * (1 + phase)
    bounds = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    rides = draw.random((devices, 96))
    return np.stack([np.digitize(rides[:, t], bounds[t][:-1]) for t in range(96)], axis=1)


def jumps(draw: Draw, devices: int) -> Streams:
    """Four items; in two periods many devices move at once."""
    held = np.array([[0.55, 0.2, 0.15, 0.1], [0.25, 0.45, 0.2, 0.1], [0.25, 0.15, 0.2, 0.4]])
    place = draw.random(devices)
    rows = [np.digitize(place, np.cumsum(shares)[:-1]) for shares in held]
    return np.stack([rows[int(t >= 22) + int(t >= 43)] for t in range(64)], axis=1)


def constant(draw: Draw, devices: int) -> Streams:
    """Whoever has it keeps it."""
    return np.tile((draw.random((devices, 1)) < 0.3).astype(int), (1, 64))


def season(draw: Draw, devices: int) -> Streams:
    """A season of sixteen periods, drawn anew in each."""
    share = 0.4 + 0.1 * np.sin(2 * np.pi * np.arange(64) / 16)
    return (draw.random((devices, 64)) < share).astype(int)


def noise(draw: Draw, devices: int) -> Streams:
    """A share that is another one in each period."""
    share = (0.5 + draw.normal(0, 0.11, 64)).clip(0.05, 0.95)
    return (draw.random((devices, 64)) < share).astype(int)


LIVES: Mapping[str, Life] = {
    "planes": Life(Category(PLACES), 4.0, 3_000, planes, 9),
    "air": Life(Category(6), 0.7, 5_000, air(48), 25),
    "long air": Life(Category(6), 1.5, 20_000, air(100), 47),
    "wind": Life(Category(16), 3.0, 10_000, wind, 33),
    "shop": Life(Items(6), 1.5, 5_000, shop, 6),
    "recent": Life(Binary(), 1.0, 10_000, recent, 8),
    "zones": Life(Category(8), 1.0, 30_000, zones),
    "jumps": Life(Category(4), 1.0, 10_000, jumps, 5),
    "constant": Life(Binary(), 1.0, 10_000, constant, 1),
    "season": Life(Binary(), 1.0, 20_000, season),
    "noise": Life(Binary(), 1.0, 10_000, noise),
}
