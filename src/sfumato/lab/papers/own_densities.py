"""Numbers of our own docs: how often intervals of a distribution hold, and how wide they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from sfumato.arrays import Bools, Floats
from sfumato.core.tally import Tally
from sfumato.datasets.densities import shares_of
from sfumato.lab.experiment import Cell, Drawing, Experiment, Measured, Setting
from sfumato.mechanisms import SquareWave
from sfumato.mechanisms.density import Distribution
from sfumato.mechanisms.density.distribution import band
from sfumato.randomness import seeded

__all__ = ["EXPERIMENTS"]

QUANTILES: Final = (0.1, 0.5, 0.9)
COLLECTIONS: Final = 120
ROUNDS: Final = 100
SMOOTH: Final = ("uniform", "beta", "bimodal")
GRID: Final = 1024
SHAPES: Final[list[Cell]] = [
    *(
        {"density": name, "epsilon": epsilon, "people": people, "grid": GRID}
        for people in (10_000, 100_000)
        for epsilon in (1.0, 2.0)
        for name in SMOOTH
    ),
    *(
        {"density": name, "epsilon": 1.0, "people": 100_000, "grid": GRID}
        for name in ("exponential", "narrow", "ten numbers")
    ),
    *(
        {"density": "bimodal", "epsilon": 1.0, "people": 100_000, "grid": size}
        for size in (256, 64)
    ),
]


def _density(cell: Cell, setting: Setting) -> Mapping[str, Measured]:
    """Return how often both kinds of intervals hold quantiles, and how wide they are."""
    size, people = int(cell["grid"]), int(cell["people"])
    mechanism = SquareWave(float(cell["epsilon"]), 0, 1, grid=size)
    shares = shares_of(str(cell["density"]), size)
    nobody = Tally.zero(mechanism.size)
    truth = Distribution(mechanism, nobody, shares, True, size, 0.0, 0)  # noqa: FBT003
    true, chances = truth.quantile(QUANTILES), band(mechanism).positions(shares)
    coins = setting.coins(cell)
    drawn = seeded(coins).simulator().multinomial(people, chances / chances.sum(), COLLECTIONS)
    held: dict[str, list[Bools]] = {"interval": [], "bounds": []}
    wide: dict[str, list[Floats]] = {"interval": [], "bounds": []}
    for index, sums in enumerate(drawn):
        fit, rng = mechanism.distribution(Tally(people, sums)), seeded(coins + index)
        kinds = {
            "interval": fit.interval(lambda it: it.quantile(QUANTILES), rounds=ROUNDS, rng=rng),
            "bounds": fit.bounds(QUANTILES),
        }
        for kind, (low, high) in kinds.items():
            held[kind].append((low <= true) & (true <= high))
            wide[kind].append((high - low) / 2)
    return {
        metric: number
        for kind, widths in wide.items()
        for metric, number in _told(kind, np.mean(held[kind], axis=0), np.mean(widths, axis=0))
    }


def _told(kind: str, held: Floats, widths: Floats) -> Iterator[tuple[str, Measured]]:
    for quantile, share, width in zip(QUANTILES, held.tolist(), widths.tolist(), strict=True):
        error = 100 * (max(share * (1 - share), 0.01) / COLLECTIONS) ** 0.5
        yield f"{kind} at {quantile:g}", Measured(100 * share, error)
        yield f"{kind}, half width at {quantile:g}", Measured(width)


DENSITY: Final = Experiment(
    name="own/density",
    title="How often intervals hold the quantiles of a density, and how wide they are",
    data="collections drawn from the exact law of the reports",
    cells=lambda setting: SHAPES[-1:] if setting.quick else SHAPES,
    measure=_density,
    drawing=Drawing(
        "people",
        "people",
        {
            "interval at 0.5": "intervals that hold, percent",
            "bounds at 0.5": "bounds that hold, percent",
        },
        "density",
        "epsilon",
        log_x=True,
        log_y=False,
    ),
    seconds=25.0,
    partly=True,
)

EXPERIMENTS: Final = (DENSITY,)
