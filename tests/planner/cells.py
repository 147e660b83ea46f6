"""Random tasks, and the errors that simulated fleets have in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.planner import Expected, Pilot
from sfumato.simulation import simulate
from sfumato.simulation.made_up_lives import LIVES, Life, Synthetic
from sfumato.streams.kinds import Binary, Category, Items, Values
from sfumato.streams.weave import Curve, Weave, online
from sfumato.streams.weave.expected import expected

__all__ = ["Cell", "drawn"]

FEWEST, MOST = 10**4, 10**6


@dataclass(frozen=True)
class Cell:
    """A task, and how its devices live."""

    protocol: Weave
    devices: int
    life: Life
    seed: int

    def fleet(self, devices: int, seed: int) -> Synthetic:
        ours = self.protocol
        return Synthetic(ours.values, ours.periods, ours.changes, devices, self.life, seed)

    def planned(self) -> Expected:
        """What a pilot of other devices leads to expect."""
        pilot = Pilot(self.protocol.values, self.fleet(2000, self.seed).streams())
        return expected(self.protocol, self.devices, pilot.sample)["online"]

    def simulated(self, precision: float, most_symbols: float) -> tuple[float, float]:
        """Return the RMSE of simulated fleets and its standard error, as a share of it."""
        squares: list[float] = []
        symbols = self.devices * self.protocol.periods * self.protocol.values.width
        error = np.inf
        while not squares or (error > precision and (len(squares) + 1) * symbols <= most_symbols):
            run = len(squares) + 1
            fleet = self.fleet(self.devices, self.seed + run)
            outcome = simulate(self.protocol, fleet, seed=self.seed + run)
            squares.append(outcome.mse())
            error = _error(online(self.protocol, outcome.tallies)) / len(squares) ** 0.5
        return float(np.mean(squares) ** 0.5), error


def _error(curve: Curve) -> float:
    """Return the standard error of a curve's RMSE, as a share of it."""
    known = ~np.isnan(curve.values[:, 0])
    return _precision(curve.entry(0).covariance.matrix()[np.ix_(known, known)], len(curve.labels))


def _precision(covariance: NDArray[np.float64], width: int) -> float:
    """Return the standard error of the RMSE of a curve's errors, as a share of it.

    Of normal errors with covariance C over the periods the mean square has a variance of
    2 tr(C C) / T^2; the entries of a category sum to one, so that one of them tells nothing new.
    """
    spread = float(np.sqrt(2 * (covariance**2).sum()) / np.trace(covariance))
    return spread / (2 * float(np.sqrt(max(width - 1, 1))))


def _planned_precision(protocol: Weave) -> float:
    """Return the same by the plan alone, as periods near each other err alike."""
    network = protocol.network
    fusion = network.fusion(np.array(protocol.shares))
    weights = fusion.online()
    used = fusion.conductance > 0
    covariance = (weights[:, used] / fusion.conductance[used]) @ weights[:, used].T
    return _precision(covariance, protocol.values.width)


def drawn(seed: int, precision: float, most_symbols: float) -> Cell:
    """Draw a cell whose RMSE can be simulated so precisely with so many symbols."""
    rng = np.random.default_rng([2022, seed])
    while True:
        width = round(64 ** rng.uniform())
        periods = round(16 * 64 ** rng.uniform())
        changes = round(32 ** rng.uniform())
        epsilon = round(0.25 * 16 ** rng.uniform(), 3)
        category = bool(rng.integers(2))
        share = rng.uniform()
        values: Values = Binary()
        if width > 1:
            values = Category(width) if category else Items(width)
        if most_symbols < FEWEST * periods * width:
            continue
        protocol = Weave.best(values, periods, changes, epsilon)
        runs = np.ceil((_planned_precision(protocol) / precision) ** 2)
        most = min(MOST, most_symbols / (runs * periods * width))
        if most < FEWEST:
            continue
        devices = round(FEWEST * (most / FEWEST) ** share)
        life = LIVES[seed % len(LIVES)]
        return Cell(protocol, devices, life, 1000 * seed)
