"""Cells of streams whose intervals are counted: how often they hold, how long they are.

Half of the cells are named, half are drawn; all that is random follows from a seed that is printed.
Devices are simulated by their own law. Beside the score intervals stand Wald's: value plus or minus
a multiple of the standard error at the estimate, not cut to what is possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.core.estimate import Estimate
from sfumato.core.intervals import z_score
from sfumato.randomness import seeded
from sfumato.simulation.made_up_lives import LIVES, Synthetic
from sfumato.streams.kinds import Binary, Category, Items, Values
from sfumato.streams.weave import Weave
from sfumato.streams.weave.curve import Reports
from sfumato.streams.weave.expected import sent
from sfumato.streams.weave.weave_fleet import collect

__all__ = ["DRAWN", "KINDS", "NAMED", "SEED", "Cell", "Cover", "counted", "covers", "reports"]

Floats = NDArray[np.float64]

SEED: Final = 20261116
KINDS: Final = ("online", "smoothed", "range", "difference")
LARGEST: Final = 12_000_000
"""Devices x periods x items of a drawn cell, at most."""
ASKED: Final = 6
"""Ranges, and differences, that are asked of each simulation online, and as many smoothed."""
CROWDS: Final = 8
"""So many crowds take turns: intervals speak of whoever takes part."""


_best = cache(Weave.best)


class Cell(NamedTuple):
    """A stream and who takes part."""

    kind: str
    items: int
    periods: int
    changes: int
    epsilon: float
    devices: int
    life: Any

    @property
    def values(self) -> Values:
        if self.items == 1:
            return Binary()
        return Items(self.items) if self.kind == "set" else Category(self.items)

    @property
    def stream(self) -> Weave:
        changes = max(self.changes, self.values.least_changes)
        return _best(self.values, self.periods, changes, self.epsilon)

    def __str__(self) -> str:
        return (
            f"{self.kind} of {self.items}, T={self.periods}, s={self.changes}, "
            f"eps={self.epsilon:g}, n={self.devices}, {self.life}"
        )


NAMED: Final = (
    Cell("binary", 1, 26, 4, 0.3, 200, "slow"),
    Cell("binary", 1, 48, 9, 1.0, 200, "moving"),
    Cell("binary", 1, 48, 9, 6.0, 200, "uniform"),
    Cell("binary", 1, 100, 3, 6.0, 1_000, "slow"),
    Cell("binary", 1, 48, 9, 3.0, 3_000, "moving"),
    Cell("binary", 1, 48, 9, 6.0, 10_000, "moving"),
    Cell("binary", 1, 365, 8, 1.0, 20_000, "uniform"),
    Cell("binary", 1, 26, 4, 2.0, 100_000, "slow"),
    Cell("category", 4, 32, 8, 6.0, 1_000, "slow"),
    Cell("category", 4, 26, 4, 1.5, 20_000, "moving"),
    Cell("category", 16, 48, 9, 1.0, 200, "moving"),
    Cell("category", 16, 48, 9, 3.0, 1_000, "uniform"),
    Cell("category", 16, 48, 9, 6.0, 200, "slow"),
    Cell("category", 16, 48, 9, 6.0, 1_000, "moving"),
    Cell("category", 17, 26, 13, 4.0, 3_000, "slow"),
    Cell("category", 8, 100, 5, 3.0, 10_000, "moving"),
    Cell("set", 5, 48, 9, 3.0, 1_000, "moving"),
    Cell("set", 5, 48, 9, 6.0, 1_000, "slow"),
    Cell("set", 3, 26, 6, 1.0, 10_000, "uniform"),
    Cell("set", 12, 32, 8, 4.0, 5_000, "uniform"),
)


def _drawn(count: int) -> Iterator[Cell]:
    """Yield cells whose sizes are spread evenly on a logarithmic scale."""
    draw = np.random.default_rng(SEED)
    while count:
        items = int(np.exp(draw.uniform(0, np.log(17.999))))
        periods = int(np.exp(draw.uniform(np.log(26), np.log(365))))
        devices = int(np.exp(draw.uniform(np.log(200), np.log(1e5))))
        epsilon = float(np.exp(draw.uniform(np.log(0.3), np.log(6))).round(2))
        changes = int(draw.integers(2, max(3, periods // 4)))
        kind = "binary" if items == 1 else str(draw.choice(["category", "category", "set"]))
        life = str(draw.choice(LIVES))
        if devices * periods * items <= LARGEST:
            count -= 1
            yield Cell(kind, items, periods, changes, epsilon, devices, life)


DRAWN: Final = tuple(_drawn(20))


@dataclass
class Cover:
    """What was counted of one kind of answers, simulation by simulation."""

    hits: list[float] = field(default_factory=list)
    walds: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    wald_lengths: list[float] = field(default_factory=list)
    unknown: list[float] = field(default_factory=list)

    @property
    def share(self) -> float:
        return float(np.nanmean(self.hits))

    @property
    def error(self) -> float:
        """The standard error of the share: simulations are independent, answers of one are not."""
        hits = np.array(self.hits)
        hits = hits[~np.isnan(hits)]
        return float(hits.std(ddof=1) / np.sqrt(hits.size))

    @property
    def wald(self) -> float:
        return float(np.nanmean(self.walds))

    @property
    def ratio(self) -> float:
        """How long the intervals are, Wald's being 1."""
        return float(np.nanmean(self.lengths) / np.nanmean(self.wald_lengths))

    @property
    def empty(self) -> float:
        return float(np.mean(self.unknown))

    def add(self, sides: list[tuple[Any, ...]]) -> None:
        """Take in the answers of one simulation: value, ends, standard error, truth."""
        value, low, high, error, truth = (np.concatenate(side) for side in zip(*sides, strict=True))
        known = np.isfinite(error)
        self.unknown.append(float(1 - known.mean()))
        columns = (value, low, high, error, truth)
        value, low, high, error, truth = (column[known] for column in columns)
        if not known.any():
            value = low = high = error = truth = np.array([np.nan])
        reach = z_score(0.95) * error
        self.hits.append(_mean((low <= truth) & (truth <= high), truth))
        self.walds.append(_mean(np.abs(value - truth) <= reach, truth))
        self.lengths.append(float(np.mean(high - low)))
        self.wald_lengths.append(float(2 * np.mean(reach)))


def _mean(inside: NDArray[np.bool_], truth: Floats) -> float:
    return float("nan") if np.isnan(truth).all() else float(inside.mean())


def _sides(estimate: Estimate, truth: Floats) -> tuple[Any, ...]:
    return (estimate.values, *estimate.interval(0.95), estimate.standard_errors, truth)


def counted(stream: Weave, streams: NDArray[Any], seed: Any) -> dict[str, list[tuple[Any, ...]]]:
    """Return value, ends, standard error and truth of all answers to one simulation."""
    truth = stream.values.totals(streams) / len(streams)
    seen = Reports(stream, collect(stream, streams, seeded(seed)))
    draw = np.random.default_rng(seed)
    width, periods = truth.shape[1], stream.periods
    online, smoothed = seen.online(), seen.smoothed()
    sides: dict[str, list[tuple[Any, ...]]] = {kind: [] for kind in KINDS}
    for place in range(width):
        sides["online"].append(_sides(online.entry(place), truth[:, place]))
        sides["smoothed"].append(_sides(smoothed.entry(place), truth[:, place]))
    for number in range(2 * ASKED):
        first, last = np.sort(draw.choice(periods, 2, replace=False))
        curve = smoothed if number % 2 else seen.smoothed(int(last) + 1)
        weights = np.zeros((2, curve.periods))
        weights[0, first : last + 1] = 1 / (last - first + 1)
        weights[1, [first, last]] = -1, 1
        for kind, row in zip(("range", "difference"), weights, strict=True):
            sides[kind].append(_sides(curve.combine(row), row @ truth[: curve.periods]))
    return sides


def covers(cell: Cell, runs: int, seed: int, stream: Weave | None = None) -> dict[str, Cover]:
    """Return what was counted of each kind of answers, by the best design or another one."""
    stream = stream or cell.stream
    counts = {kind: Cover() for kind in KINDS}
    for run in range(runs):
        population = Synthetic(
            cell.values,
            cell.periods,
            stream.changes,
            cell.devices,
            cell.life,
            seed=seed + run % CROWDS,
        )
        sides = counted(stream, population.streams(), 1000 * seed + run)
        for kind, cover in counts.items():
            cover.add(sides[kind])
    return counts


def reports(cell: Cell) -> float:
    """Return how many reports a period has, on average."""
    return sent(cell.stream).messages * cell.devices / cell.periods
