"""Tasks drawn at random, and what simulated fleets find in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.lab.simulation import simulate
from sfumato.lab.synthetic import LIVES, Life, Synthetic
from sfumato.planner import Expected, Pilot, expected
from sfumato.streams.weave import Binary, Category, Items, Values, Weave

__all__ = ["Cell", "drawn"]

PARTS = 8
ENOUGH = 2500
"""So many periods, entries and runs make a precise RMSE: one standard error is under 2%."""


@dataclass(frozen=True)
class Cell:
    """A task, and how its devices live."""

    values: Values
    periods: int
    changes: int
    epsilon: float
    devices: int
    life: Life
    seed: int

    @cached_property
    def protocol(self) -> Weave:
        return Weave.best(self.values, self.periods, self.changes, self.epsilon)

    def fleet(self, devices: int, seed: int) -> Synthetic:
        return Synthetic(self.values, self.periods, self.changes, devices, self.life, seed)

    def planned(self) -> Expected:
        """What a pilot of other devices leads to expect."""
        pilot = Pilot(self.values, self.fleet(2000, self.seed).all())
        return expected(self.protocol, self.devices, pilot.sample)["online"]

    def simulated(self, precision: float, most_symbols: float) -> tuple[float, float]:
        """Return the RMSE of simulated fleets and its standard error, as a share of it."""
        parts: list[float] = []
        symbols = self.devices * self.periods * self.values.width
        runs = 0
        while runs < 2 or (_error(parts) > precision and (runs + 1) * symbols <= most_symbols):
            runs += 1
            fleet = self.fleet(self.devices, self.seed + runs)
            outcome = simulate(self.protocol, fleet, seed=self.seed + runs)
            squares = np.nanmean((outcome.curve().values - outcome.truth) ** 2, axis=1)
            parts += [float(part.mean()) for part in np.array_split(squares, PARTS)]
        return float(np.mean(parts) ** 0.5), _error(parts)


def _error(parts: list[float]) -> float:
    """Return the standard error of the root of a mean, as a share of it, by parts of the curve.

    Errors of near periods go together, those of far ones do not; that the first periods' are
    larger or smaller only makes the error look larger than it is.
    """
    if not parts:
        return np.inf
    return float(np.std(parts, ddof=1) / np.sqrt(len(parts)) / np.mean(parts) / 2)


def drawn(seed: int, most_symbols: float) -> Cell:
    """Draw a cell that can be simulated precisely with so many symbols."""
    rng = np.random.default_rng([2022, seed])
    while True:
        devices = round(10 ** rng.uniform(4, 6))
        width = round(64 ** rng.uniform())
        periods = round(16 * 64 ** rng.uniform())
        changes = round(32 ** rng.uniform())
        epsilon = round(0.25 * 16 ** rng.uniform(), 3)
        category = bool(rng.integers(2))
        runs = max(2.0, ENOUGH / (width * periods))
        if devices * periods * width * runs > most_symbols:
            continue
        values: Values = Binary()
        if width > 1:
            values = Category(width) if category else Items(width)
        life = LIVES[seed % len(LIVES)]
        return Cell(values, periods, changes, epsilon, devices, life, 1000 * seed)
